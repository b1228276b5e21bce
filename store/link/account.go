package link

import "strings"

// FoldUsername returns a username as ReelTally stores and compares it: in lower case, without
// surrounding blanks and a leading "@". It keeps the suffix "~ID" of some Facebook usernames.
func FoldUsername(s string) string {
	return strings.ToLower(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "@")))
}

// DisplayUsername returns a username without the suffix "~ID". The suffix makes the usernames of Facebook unique, because it contains the
// id of the account.
func DisplayUsername(s string) string {
	name, _, _ := strings.Cut(s, "~")
	return name
}
