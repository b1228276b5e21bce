package collector

import (
	"math/rand/v2"
	"time"

	"github.com/reeltally/reeltally/store"
)

// When a target is asked for again. All of it is pure: the time comes in, a time goes out.

const (
	youngAge      = 3 * 24 * time.Hour // a video's numbers move most in its first days
	youngInterval = 6 * time.Hour
	// detailsLife is for how long title, account and the like are believed before they are asked for again.
	detailsLife = 7 * 24 * time.Hour
)

// nextRegular returns the next turn after a fetch that succeeded: the target's own second of the next UTC day, so that
// each day has a point and the load is flat, and for a young video sooner.
func nextRegular(t store.Target, uploaded *time.Time, now time.Time) time.Time {
	next := store.DateOf(now).Time().Add(24*time.Hour + store.SlotOf(t.Platform, t.ExternalID))
	if uploaded != nil && now.Sub(*uploaded) < youngAge {
		if soon := now.Add(youngInterval); soon.Before(next) {
			return soon
		}
	}
	return next
}

// retries are the waits after the first, second, … failure in a row; the last one repeats.
var retries = []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 25 * time.Minute}

// parkedAfter is how many failures in a row of the target itself make it wait a day each.
const parkedAfter = 12

// nextRetry returns the next turn of a target that failed for the given time in a row.
func nextRetry(failures int, now time.Time) time.Time {
	if failures >= parkedAfter {
		return now.Add(jitter(24 * time.Hour))
	}
	return now.Add(jitter(step(retries, failures-1)))
}

// goneWaits are the waits after a source said for the first, second, … time that there is no such thing: soon again,
// since an upload may not be visible everywhere yet, then rarely.
var goneWaits = []time.Duration{time.Minute, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// goneConfirmed is from which time on it is believed.
const goneConfirmed = 3

// pauses are the waits of a source that failed or refused for the first, second, … time in a row without saying for how
// long.
var pauses = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute}

// probes are the waits of a budget that its source says is spent, though it was not spent by our count: until
// it returns, it is tried now and then, since operators buy more.
var probes = []time.Duration{20 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// suspectWaits are the waits until a number that is held back is asked for again.
var suspectWaits = []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}

func step(waits []time.Duration, i int) time.Duration {
	return waits[max(0, min(i, len(waits)-1))]
}

// jitter spreads a wait by a tenth to either side, so that what failed together does not come back together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // chance, not secrecy
}
