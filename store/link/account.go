package link

import "strings"

// FoldUsername returns a username as ReelTally stores and compares it: in lower case, without
// surrounding blanks and a leading "@". It keeps the suffixes that DisplayUsername removes.
func FoldUsername(s string) string {
	return strings.ToLower(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "@")))
}

// DisplayUsername returns a username without its suffix. On Facebook, the suffix is "~" and the id of the account, because several accounts can have
// the same name. On YouTube, it is YouTubeUserSuffix.
func DisplayUsername(s string) string {
	name, _, _ := strings.Cut(s, "~")
	return name
}

// IsSameHandle returns true if two handles name the same account. Facebook ignores dots in handles.
func IsSameHandle(p Platform, a, b string) bool {
	a, b = DisplayUsername(FoldUsername(a)), DisplayUsername(FoldUsername(b))
	if p == Facebook {
		a, b = strings.ReplaceAll(a, ".", ""), strings.ReplaceAll(b, ".", "")
	}
	return a == b
}

// YouTubeUserSuffix is the end of the handle of a YouTube link /user/NAME. The suffix distinguishes the user name NAME from the handle @NAME,
// which can belong to another channel.
const YouTubeUserSuffix = "~user"

// YouTubeUser returns the user name NAME if the handle comes from a YouTube link /user/NAME. It returns false for all other handles.
func YouTubeUser(p Platform, handle string) (name string, ok bool) {
	if p != YouTube {
		return "", false
	}
	return strings.CutSuffix(handle, YouTubeUserSuffix)
}
