package schedule

import (
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Waits are waiting times after consecutive events, such as failures. The last entry is also used for
// all further events.
type Waits []time.Duration

// Nth returns the waiting time after the nth consecutive event, counted from 1.
func (w Waits) Nth(n int) time.Duration { return w[max(0, min(n-1, len(w)-1))] }

var (
	// FailureWaits are the waiting times after consecutive failed fetches of a target. The last waiting time applies to a parked target,
	// which is fetched only rarely.
	FailureWaits = Waits{2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 25 * time.Minute, 25 * time.Minute, 25 * time.Minute, 24 * time.Hour}
	// RefusedWaits are the waiting times after a source answered that a target is private or restricted.
	RefusedWaits = Waits{24 * time.Hour, 24 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	// GoneWaits are the waiting times after answers that a target does not exist. The first waiting time is short, because a new upload may
	// not be visible everywhere yet.
	GoneWaits = Waits{time.Minute, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	// DoubtWaits are the waiting times after answers of the class source.Doubted. They are shorter than the time for which verify.Disappearances remembers
	// an answer.
	DoubtWaits = Waits{time.Minute, 6 * time.Hour, 8 * time.Hour}
	// SuspectWaits are the waiting times before a target with a suspicious number is fetched again.
	SuspectWaits = Waits{3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}
	// RiseWait is the waiting time before a video with an implausible rise of its views is fetched again. The next answer confirms or refutes the rise.
	RiseWait = 10 * time.Minute
	// PauseWaits are the lengths of the pauses of a source that has failed. They are used if the source does
	// not say when it accepts calls again.
	PauseWaits = Waits{2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute}
	// ProbeWaits are the lengths of pauses after a refused credential or a spent quota. The first pauses are short, because operators can
	// renew both at any time.
	ProbeWaits = Waits{20 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}
)

const (
	// AnswersUntilGone is the number of consecutive answers "the target does not exist" after which the target counts as gone.
	AnswersUntilGone = 3
	// RefusalsUntilParked is the number of consecutive answers "the target is private" or "the target is restricted" after which the target is
	// parked. A target that is parked for this reason is fetched only once a week.
	RefusalsUntilParked = 4
	// FailuresUntilParked is the number of consecutive failed fetches after which a target is parked: it is then fetched only once a day.
	FailuresUntilParked = 12
	// Weekly is the time after which a source is asked again about a target that it could not fetch. It is also
	// the wait until the next attempt if no source supports the target.
	Weekly = 7 * 24 * time.Hour
)

// NextFetchTime returns the time of a target's next fetch, approximately now + wait. Waits of at least
// a day end at the target's fixed time of the day.
func NextFetchTime(t queue.Target, wait time.Duration, now time.Time) time.Time {
	if wait < 24*time.Hour {
		return now.Add(Jitter(wait))
	}
	earliest := now.Add(wait - 12*time.Hour)
	if slot := firstFetchOn(t, store.DateOf(earliest)); !slot.Before(earliest) {
		return slot
	}
	return firstFetchOn(t, store.DateOf(earliest)+1)
}
