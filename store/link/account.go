package link

import "strings"

// FoldUsername returns a username in the form in which ReelTally stores and compares usernames: in lower case, without surrounding blanks,
// and without one leading "@". It does not remove the suffix "~ID" that some Facebook usernames have.
func FoldUsername(s string) string {
	return strings.ToLower(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "@")))
}

// DisplayUsername returns a username without the suffix "~ID". The suffix makes the usernames of Facebook unique, because it contains the
// id of the account.
func DisplayUsername(s string) string {
	name, _, _ := strings.Cut(s, "~")
	return name
}
