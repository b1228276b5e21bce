package main

import "github.com/dustin/go-humanize/english"

// numberWithNoun returns a number with its noun in the singular or plural, for example "1 video" or "2 videos".
func numberWithNoun[N int | int32 | int64](n N, noun string) string {
	return english.Plural(int(n), noun, "")
}
