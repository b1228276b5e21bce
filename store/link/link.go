// Package link says what a pasted link means: which platform, a video, an account or a short link, and by
// which id. It is pure: no network, no database, no clock. Every part of ReelTally that reads a link reads
// it here.
package link

// Platform is one of the four platforms whose links are understood.
type Platform string

// The platforms, in the spelling of the contract.
const (
	TikTok    Platform = "tiktok"
	Instagram Platform = "instagram"
	YouTube   Platform = "youtube"
	Facebook  Platform = "facebook"
)

// Platforms lists every platform in the order of the contract's enumeration.
var Platforms = []Platform{TikTok, Instagram, YouTube, Facebook}

// Kind says what a link leads to.
type Kind string

// The kinds. A short link has to be resolved over the network before it means a video or an account.
const (
	Video   Kind = "video"
	Account Kind = "account"
	Short   Kind = "short"
)

// Link is a parsed link.
type Link struct {
	Platform Platform
	Kind     Kind
	// ID is the platform's own id: of a video always, of an account only where the link carries it (a YouTube
	// channel id, a numeric TikTok or Facebook id), of a short link its code. "" when the link has none.
	ID string
	// Handle is the account's handle, folded to lower case, without "@". "" when the link does not name it.
	Handle string
	// Canonical is the one spelling under which the same video or account is always stored; for a short link,
	// the https form of the link itself.
	Canonical string
}

// Reason is the stable code of a refusal; the values are result codes of the contract.
type Reason string

// The reasons for which a link is refused.
const (
	InvalidURL          Reason = "invalid_url"          // not a web address that could be fetched
	UnsupportedPlatform Reason = "unsupported_platform" // a web address of none of the four platforms
	UnsupportedLink     Reason = "unsupported_link"     // a platform's address that is no video and no account
)

// Error is the refusal of a link.
type Error struct {
	Reason Reason
	// Detail is a plain sentence for the caller. It names what is wrong and what is accepted, never the whole link.
	Detail string
}

func (e *Error) Error() string { return e.Detail }
