// Package link parses links of videos and accounts. It returns the platform, the kind and the id of a link. It uses no network, no database
// and no clock. All parts of ReelTally parse links with this package.
//
// Start reading at [Parse].
package link

// Platform is one of the four supported platforms.
type Platform string

// The platforms. The values are used in the API.
const (
	TikTok    Platform = "tiktok"
	Instagram Platform = "instagram"
	YouTube   Platform = "youtube"
	Facebook  Platform = "facebook"
)

// Platforms lists every platform, in the order in which the API contract lists them.
var Platforms = []Platform{TikTok, Instagram, YouTube, Facebook}

// Title returns the name of the platform in texts for people, such as "YouTube". It returns "" if p is not one of Platforms.
func (p Platform) Title() string {
	switch p {
	case TikTok:
		return "TikTok"
	case Instagram:
		return "Instagram"
	case YouTube:
		return "YouTube"
	case Facebook:
		return "Facebook"
	}
	return ""
}

// Kind says what a link leads to: a video, an account, or a short link.
type Kind string

// The kinds of links. A short link must be resolved over the network to find its video or account.
const (
	Video   Kind = "video"
	Account Kind = "account"
	Short   Kind = "short"
)

// Link is a parsed link of a video or account, or a parsed short link.
type Link struct {
	Platform Platform
	Kind     Kind
	// ID is the platform's id of the video or account, or the code of a short link. It is "" if the link of an account contains no id.
	ID string
	// Handle is the account's handle in lower case, without "@". It is "" if the link does not contain the handle. If a link of YouTube
	// contains another name of the account, Handle is that name: NAME for /c/NAME and /NAME, and NAME with YouTubeUserSuffix for /user/NAME.
	Handle string
	// Canonical is the link to this video or account in the form that ReelTally stores. For a short link, it is the https form of the short
	// link.
	Canonical string
}

// Reason says why a link was refused. The values are result codes of the API.
type Reason string

// The reasons why Parse refuses a link. UnsupportedLink is also the reason for a link with too many path parts or too deeply nested links.
const (
	InvalidURL          Reason = "invalid_url"          // the link is not a valid web address
	UnsupportedPlatform Reason = "unsupported_platform" // the link is a web address of another site
	UnsupportedLink     Reason = "unsupported_link"     // the link leads to another page or the application of a platform, or has an invalid id or handle
)

// Error reports that a link was refused.
type Error struct {
	Reason Reason
	// Detail is a sentence for the caller. It says what is wrong and which links are accepted. It never contains the whole link.
	Detail string
}

func (e *Error) Error() string { return e.Detail }
