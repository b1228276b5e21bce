// Package docs has no code of its own: its tests make the documents beside it, or hold them true.
//
//	go test ./docs -update
//
// writes anew those that are made: coverage.md and errors.md.
package docs
