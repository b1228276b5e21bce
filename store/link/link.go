// Package link parses links: it returns the platform, whether the link is a video, an account or a short link, and the id. It uses no
// network, no database and no clock. All parts of ReelTally parse links with this package.
//
// Start reading at [Parse].
package link

// Platform is one of the four supported platforms.
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

// Kind says what a link points to.
type Kind string

// The kinds. A short link must be resolved over the network to find its video or account.
const (
	Video   Kind = "video"
	Account Kind = "account"
	Short   Kind = "short"
)

// Link is a parsed link.
type Link struct {
	Platform Platform
	Kind     Kind
	// ID is the platform's own id. A video always has one. An account has one only if the link contains it, such as a YouTube channel id or a
	// numeric TikTok or Facebook id. For a short link it is the code. It is "" if the link has no id.
	ID string
	// Handle is the account's handle in lower case, without "@". It is "" if the link does not contain the handle.
	Handle string
	// Canonical is the one form in which links to this video or account are stored. For a short link it is the https form of the link itself.
	Canonical string
}

// Reason is the code of a refusal. The values are result codes of the contract.
type Reason string

// The reasons of a refusal.
const (
	InvalidURL          Reason = "invalid_url"          // not a valid web address
	UnsupportedPlatform Reason = "unsupported_platform" // a web address of another site
	UnsupportedLink     Reason = "unsupported_link"     // an address of a platform that is neither a video nor an account
)

// Error reports that a link was refused.
type Error struct {
	Reason Reason
	// Detail is a sentence for the caller. It says what is wrong and what is accepted, and never contains the whole link.
	Detail string
}

func (e *Error) Error() string { return e.Detail }
