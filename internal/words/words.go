// Package words turns lists, durations and long texts into text for messages.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
)

// JoinWithOr joins the values with commas and the word "or", for example "7, 30 or 90".
func JoinWithOr[T any](values []T) string { return join(values, "or") }

// JoinWithAnd joins the values with commas and the word "and", for example "views, likes and comments".
func JoinWithAnd[T any](values []T) string { return join(values, "and") }

func join[T any](values []T, word string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return english.WordSeries(texts, word)
}

// Duration writes a duration in the form that settings use. Whole days are written like "8d", other
// durations like "36h" or "1h30m".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	if d != 0 && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	// Remove the zeros at the end: 36h0m0s becomes 36h.
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, unit) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Truncate returns text, cut to maxLength characters if text is longer. The last character of a cut text is "…".
func Truncate(text string, maxLength int) string {
	n, end := 0, 0
	for i := range text {
		switch n {
		case maxLength - 1:
			end = i
		case maxLength:
			return text[:end] + "…"
		}
		n++
	}
	return text
}

// maxQuoted is the maximum length of a text in quotes, in characters.
const maxQuoted = 100

// Quote prepares a text from a request for a message. The result is cut to maxQuoted characters, escaped, and in quotes.
func Quote(text string) string { return strconv.Quote(Truncate(text, maxQuoted)) }
