package link

import (
	"net/url"
	"strings"
)

// AccountURL returns the canonical link of the account with a handle, or "" if the handle is "". It
// percent-encodes handles of YouTube and Facebook.
func AccountURL(p Platform, handle string) string {
	if handle == "" {
		return ""
	}
	switch p {
	case TikTok:
		return "https://www.tiktok.com/@" + handle
	case Instagram:
		return "https://www.instagram.com/" + handle + "/"
	case YouTube:
		if user, ok := YouTubeUser(p, handle); ok {
			return "https://www.youtube.com/user/" + url.PathEscape(user)
		}
		return "https://www.youtube.com/@" + url.PathEscape(handle)
	}
	return "https://www.facebook.com/" + url.PathEscape(DisplayUsername(handle))
}

// AccountURLFromID returns an account's link with the id instead of the handle. For Instagram, id
// must be the handle. For TikTok, id can be numeric or a secUid.
func AccountURLFromID(p Platform, id string) string {
	switch p {
	case TikTok:
		if consistsOf(id, 1, 20, isDigit) {
			return "https://www.tiktok.com/share/user/" + id
		}
	case YouTube:
		return "https://www.youtube.com/channel/" + id
	case Facebook:
		return "https://www.facebook.com/profile.php?id=" + id
	}
	return AccountURL(p, id)
}

// unknownHandle is the beginning of a canonical TikTok video link that does not contain the author's handle.
const unknownHandle = "https://www.tiktok.com/@/"

// WithHandle adds the author's handle to the canonical link of a TikTok video if the link contains no handle. It returns all other links
// unchanged.
func WithHandle(p Platform, canonical, handle string) string {
	if rest, ok := strings.CutPrefix(canonical, unknownHandle); ok && p == TikTok && handle != "" {
		return AccountURL(TikTok, handle) + "/" + rest
	}
	return canonical
}

// ReplaceHandle replaces the handle in the canonical link of a TikTok video. If handle is "", it removes the handle from the link. ReplaceHandle
// returns all other links unchanged.
func ReplaceHandle(p Platform, canonical, handle string) string {
	const before = "https://www.tiktok.com/@"
	rest, ok := strings.CutPrefix(canonical, before)
	if !ok || p != TikTok {
		return canonical
	}
	_, path, ok := strings.Cut(rest, "/")
	if !ok {
		return canonical
	}
	return before + handle + "/" + path
}
