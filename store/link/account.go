package link

import "strings"

// FoldUsername returns a username as it is stored and compared: without surrounding blanks, without one leading "@", in lower case of any
// script. A "~" suffix is part of the username and stays.
func FoldUsername(s string) string {
	return strings.ToLower(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "@")))
}

// DisplayUsername returns the part of a username before the first "~". The part after it is the creator's id, which makes Facebook names
// unique.
func DisplayUsername(s string) string {
	name, _, _ := strings.Cut(s, "~")
	return name
}
