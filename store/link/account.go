package link

import "strings"

// FoldUsername brings a username into the form in which it is stored and compared: without surrounding blanks,
// without one leading "@", in lower case of any script. A "~" suffix is part of the username and stays.
func FoldUsername(s string) string {
	return strings.ToLower(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "@")))
}

// DisplayUsername is the username as people know it: all before the first "~". What follows is the creator's id, with
// which Facebook names are made unique.
func DisplayUsername(s string) string {
	name, _, _ := strings.Cut(s, "~")
	return name
}
