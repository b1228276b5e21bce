package link

import "strings"

// FoldUsername returns a username in the form in which usernames are stored and compared: without surrounding blanks and one leading "@", in
// lower case. A suffix that begins with "~" is part of the username and stays.
func FoldUsername(s string) string {
	return strings.ToLower(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "@")))
}

// DisplayUsername returns the part of a username before the first "~". The part after the "~" is the creator's id, which makes usernames of
// Facebook unique.
func DisplayUsername(s string) string {
	name, _, _ := strings.Cut(s, "~")
	return name
}
