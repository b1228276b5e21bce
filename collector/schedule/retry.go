package schedule

import (
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Waits are the waits after the first, second, … event in a row. The last one repeats.
type Waits []time.Duration

// Nth returns the wait after the nth event in a row, counted from 1.
func (w Waits) Nth(n int) time.Duration { return w[max(0, min(n-1, len(w)-1))] }

var (
	// failureWaits are the waits after failed fetches of a target.
	failureWaits = Waits{2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 25 * time.Minute}
	// RefusedWaits are the waits after a source said that it may not show a target.
	RefusedWaits = Waits{24 * time.Hour, 24 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	// GoneWaits are the waits after the sources said that a target does not exist. The first is short, because an upload may not be
	// visible everywhere yet.
	GoneWaits = Waits{time.Minute, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	// SuspectWaits are the waits until a doubted number is fetched again.
	SuspectWaits = Waits{3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}
	// PauseWaits are the pauses of a source that failed without saying for how long.
	PauseWaits = Waits{2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute}
	// ProbeWaits are the pauses of a source whose credential or quota was refused. Operators may renew either at any time.
	ProbeWaits = Waits{20 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}
)

const (
	// GoneConfirmed is how often in a row sources must say that a target does not exist before it counts as gone.
	GoneConfirmed = 3
	// RefusedParked is how often in a row a target is refused before it is parked.
	RefusedParked = 4
	// FailedParked is how often in a row a target's own fetch fails before it is parked.
	FailedParked = 12
	// Weekly is the wait of a target that no source can fetch, and the time after which sources that could not answer for a target
	// are asked again.
	Weekly = 7 * 24 * time.Hour
)

// AfterFailures returns the next fetch of a target that failed the given number of times in a row.
func AfterFailures(t queue.Target, failures int, now time.Time) time.Time {
	if failures >= FailedParked {
		return After(t, 24*time.Hour, now)
	}
	return After(t, failureWaits.Nth(failures), now)
}

// After returns the end of a wait. A wait of days ends at the target's second of the day; a shorter one ends at random up to a tenth
// earlier or later.
func After(t queue.Target, wait time.Duration, now time.Time) time.Time {
	if wait < 24*time.Hour {
		return now.Add(Jitter(wait))
	}
	earliest := now.Add(wait - 12*time.Hour)
	if slot := slotOn(t, store.DateOf(earliest)); !slot.Before(earliest) {
		return slot
	}
	return slotOn(t, store.DateOf(earliest)+1)
}
