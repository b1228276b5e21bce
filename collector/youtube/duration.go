package youtube

import (
	"regexp"
	"strconv"
	"strings"
)

// These are the two formats of durations in YouTube's answers. The expressions limit the number of digits, so that no number overflows.
// fetch.CheckLength refuses lengths that are too large.
var (
	isoDuration   = regexp.MustCompile(`^P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$`)
	protoDuration = regexp.MustCompile(`^(\d{1,12}(?:\.\d{1,9})?)s$`)
)

// parseDuration parses a duration and returns it in seconds. It returns false if the duration is
// malformed or contains years or months.
func parseDuration(text string) (seconds float64, ok bool) {
	// batchGetStats returns protobuf durations such as 58s or 58.5s.
	if m := protoDuration.FindStringSubmatch(text); m != nil {
		seconds, err := strconv.ParseFloat(m[1], 64)
		return seconds, err == nil
	}
	// videos.list returns ISO 8601 durations such as P1DT2H3S, and P0D for a live or upcoming
	// video.
	m := isoDuration.FindStringSubmatch(text)
	// isoDuration also matches P and PT, which contain no number.
	if m == nil || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return 0, false
	}
	for i, unit := range []float64{7 * 86400, 86400, 3600, 60, 1} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil {
			return 0, false
		}
		seconds += n * unit
	}
	return seconds, true
}
