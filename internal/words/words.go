// Package words formats lists of values for sentences in messages.
package words

import (
	"fmt"

	"github.com/dustin/go-humanize/english"
)

// Or returns the values as a list for a sentence, for example "7, 30 or 90".
func Or[T any](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return english.WordSeries(texts, "or")
}
