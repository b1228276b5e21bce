package schedule

import (
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Waits are the waiting times after the first, second, … event in a row. The last waiting time is used for all further events.
type Waits []time.Duration

// Nth returns the waiting time after the nth event in a row. n counts from 1.
func (w Waits) Nth(n int) time.Duration { return w[max(0, min(n-1, len(w)-1))] }

var (
	// failureWaits are the waiting times after failed fetches of a target.
	failureWaits = Waits{2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 25 * time.Minute}
	// RefusedWaits are the waiting times after a source answered that a target is private or restricted.
	RefusedWaits = Waits{24 * time.Hour, 24 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	// GoneWaits are the waiting times after the sources answered that a target does not exist. The first is short, because a new upload may
	// not be visible everywhere yet.
	GoneWaits = Waits{time.Minute, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	// SuspectWaits are the waiting times before a target with a suspicious number is fetched again.
	SuspectWaits = Waits{3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}
	// PauseWaits are the pauses of a source that failed and did not say when it can be asked again.
	PauseWaits = Waits{2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute}
	// ProbeWaits are the pauses of a source whose credential or quota was refused. They are short at first, because operators can renew a
	// credential or a quota at any time.
	ProbeWaits = Waits{20 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}
)

const (
	// GoneConfirmed is the number of answers in a row that a target does not exist after which the target counts as gone.
	GoneConfirmed = 3
	// RefusedParked is the number of refusals in a row after which a target is parked.
	RefusedParked = 4
	// FailedParked is the number of failed fetches in a row after which a target is parked.
	FailedParked = 12
	// Weekly is the waiting time of a target that no source can fetch. It is also the time after which a source that could not answer for a
	// target is asked again.
	Weekly = 7 * 24 * time.Hour
)

// AfterFailures returns the time of the next fetch of a target that failed the given number of times in a row.
func AfterFailures(t queue.Target, failures int, now time.Time) time.Time {
	if failures >= FailedParked {
		return After(t, 24*time.Hour, now)
	}
	return After(t, failureWaits.Nth(failures), now)
}

// After returns the time of the next fetch after a waiting time. If wait is at least a day, the result is the target's usual time of day,
// at most half a day earlier or later. A shorter wait is changed at random by up to a tenth.
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
