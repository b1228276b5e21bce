package ingest

import (
	"math"
	"strconv"

	"github.com/reeltally/reeltally/store"
)

// applyLength sets the length of a video if the reported length is known and not less exact than the known length.
func applyLength(v *store.Video, reportedSeconds *float64) {
	switch {
	case reportedSeconds == nil:
	case *reportedSeconds == 0:
		if v.VideoLength != nil && *v.VideoLength == "0" { // older releases stored "0" for an unknown length
			v.VideoLength = nil
		}
	case !isRoundedLength(v.VideoLength, *reportedSeconds):
		v.VideoLength = new(strconv.FormatFloat(*reportedSeconds, 'f', -1, 64))
	}
}

// isRoundedLength returns true if reportedSeconds is the known length, rounded or truncated to
// whole seconds. Such a value must not replace the known length.
func isRoundedLength(known *string, reportedSeconds float64) bool {
	if known == nil {
		return false
	}
	exact, err := strconv.ParseFloat(*known, 64)
	return err == nil && (math.Floor(exact) == reportedSeconds || math.Round(exact) == reportedSeconds)
}

// canBeRounding returns true if n can be the rounded form of the count `exact`. It is for a source that reports counts in thousands, millions or billions,
// such as 573.9K or 574K. The source can round to one decimal place, either down or to the nearest number. If the count has at least ten units, such as 12.9K, the source
// can also round down to whole units. roundsFrom is the smallest number that the source rounds, at least 1,000.
func canBeRounding(n, exact, roundsFrom int64) bool {
	if exact < roundsFrom {
		return false
	}
	step := int64(100)
	for exact >= step*10_000 && step < 1e8 {
		step *= 1000
	}
	return n == exact/step*step || n == (exact+step/2)/step*step || exact >= 100*step && n == exact/(10*step)*(10*step)
}
