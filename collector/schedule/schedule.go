// Package schedule computes when a target is fetched next. Its functions read no clock and no database.
//
// By default, each target is fetched once a day, at a fixed second of the UTC day that is derived from its id. A new or fast growing target is
// fetched several times a day. The operator can set another interval for each lane (intervals.go). If the calls of a day exceed the budgets, a
// [Throttle] reduces the number of fetches (throttle.go). Failed and refused fetches are retried after the waiting times in retry.go. Start
// reading at [Plan.Next].
package schedule

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	newVideo  = 3 * 24 * time.Hour  // a video below this age has the pace "fast", because the counts of a video change most in its first days
	slowVideo = 30 * 24 * time.Hour // a video below this age never has the pace "slow", even if its views hardly change
	// A video is fast if its views change by at least this fraction a day, and by at least fastViews a
	// day.
	fastGrowth = 0.1
	fastViews  = 100
	// A video is slow if its views change by less than this fraction a day.
	slowGrowth = 0.01
	// shortestGrowth is the minimum time between two counts from which growth is computed.
	shortestGrowth = time.Hour
	// fastFetches is the smallest number of fetches a day of a target with the pace "fast". It applies if the interval of the target is at most
	// a day and there is no throttle.
	fastFetches = 4
	// longestDays is the maximum number of days between two fetches of a target. It also applies with the largest throttle.
	longestDays = 7
	// detailsDays is the number of days after which the details of a video, such as title and account, are fetched again.
	detailsDays = 7
	// Early is a duration. To fill a batch of due targets, the collector may also fetch targets that become due within this duration.
	Early = 15 * time.Minute
)

// PaceOf returns how fast the views of a video change: fast, steady or slow. It compares the newly fetched views to those in the target's
// record.
func PaceOf(t queue.Target, f *ingest.VideoFacts, now time.Time) queue.Pace {
	if f.UploadedAt != nil && now.Sub(*f.UploadedAt) < newVideo {
		return queue.PaceFast
	}
	if f.Views == nil || t.Views == nil || t.FetchedAt == nil {
		return queue.PaceSteady
	}
	span := now.Sub(t.FetchedAt.Time())
	if span < shortestGrowth {
		return t.Pace
	}
	perDay := math.Abs(float64(*f.Views)-float64(*t.Views)) / (span.Hours() / 24)
	growth := perDay / max(1, float64(*t.Views))
	switch {
	case growth >= fastGrowth && perDay >= fastViews:
		return queue.PaceFast
	case growth < slowGrowth && f.UploadedAt != nil && now.Sub(*f.UploadedAt) >= slowVideo:
		return queue.PaceSlow
	}
	return queue.PaceSteady
}

// Next returns the time of the next fetch of a target after a successful fetch. A late fetch does not
// delay the following fetches.
func (p Plan) Next(t queue.Target, pace queue.Pace, now time.Time) time.Time {
	today, every := store.DateOf(now), p.activeDayInterval(t.BaseLane, pace)
	day := today + 1
	for countActiveDays(t, day, every) == countActiveDays(t, today, every) {
		day++
	}
	next := firstFetchOn(t, day)
	// The planned number of fetches can be a fraction. It is rounded up for some targets and down for others,
	// so that the mean over all targets is the planned number.
	fetches := int(p.fetchesPerActiveDay(t.BaseLane, pace) + fractionFromHash(t, "turn"))
	if fetches <= 1 {
		return next
	}
	// The fetches of a day start at the target's fixed second and are spread evenly over 24 hours.
	slotInterval := 24 * time.Hour / time.Duration(fetches)
	// If a fetch ran slightly before its slot, this slot is still in the future. The minimum of half an interval excludes it.
	earliest := now.Add(slotInterval / 2)
	for _, slot := range []time.Time{firstFetchOn(t, today-1), firstFetchOn(t, today)} {
		for k := range fetches {
			if at := slot.Add(time.Duration(k) * slotInterval); at.After(earliest) && at.Before(next) {
				return at
			}
		}
	}
	return next
}

// Due returns due = false if the throttle postpones the fetch of a claimed target. This happens if the
// throttle became stronger after the target was scheduled. newTime is then the new time of the fetch.
func (p Plan) Due(t queue.Target, now time.Time) (newTime time.Time, due bool) {
	// A target is always due if an organisation waits, the last fetch failed, or the counts were
	// suspicious.
	if p.Throttle == 0 || t.Lane == queue.LaneInteractive || t.Attempts > 0 || t.Suspect != nil || t.FetchedAt == nil || t.RequestedAt > *t.FetchedAt {
		return now, true
	}
	newTime = p.Next(t, t.Pace, t.FetchedAt.Time())
	return newTime, !newTime.After(now.Add(Early))
}

// Interval returns the mean time between two scheduled fetches of a target.
func (p Plan) Interval(t queue.Target) time.Duration {
	return time.Duration(float64(24*time.Hour) / p.FetchesPerDay(t.BaseLane, t.Pace))
}

// NeedsDetails returns true if the next fetch of a video must include details such as title and
// account.
func NeedsDetails(t queue.Target, now time.Time) bool {
	// Videos whose fetches are due at similar times get their details on the same day, so that a few calls can
	// request the details of all of them.
	return t.DetailsAt == nil || countFetchesOfDetails(t, now) > countFetchesOfDetails(t, t.DetailsAt.Time())
}

// countFetchesOfDetails returns how many fetches of the target's details were scheduled between 1970 and the given time.
func countFetchesOfDetails(t queue.Target, end time.Time) int64 {
	const day, early = 24 * 60 * 60, 60 * 60 // a day and an hour in seconds; a fetch at most an hour before its scheduled time counts as the scheduled fetch
	slot := int64(queue.SlotOf(t.Platform, t.ExternalID) / time.Second)
	// The details are fetched on one day in each cycle of detailsDays days. The first day of a cycle has the number 0.
	dayInCycle := detailsDays * slot / day
	return (end.Unix() - (slot - early + dayInCycle*day)) / (detailsDays * day)
}

// countActiveDays returns how many active days (days with a fetch) a target has from 1970 to the given
// day. The mean distance of active days is daysBetween.
func countActiveDays(t queue.Target, day store.Date, daysBetween float64) float64 {
	// The hash of a target makes sure that not all targets have the same active days.
	return math.Floor((float64(day) + fractionFromHash(t, "day")*daysBetween) / daysBetween)
}

// firstFetchOn returns the time at which the first fetch of the target on the given day is scheduled.
func firstFetchOn(t queue.Target, day store.Date) time.Time {
	return day.Time().Add(queue.SlotOf(t.Platform, t.ExternalID))
}

// fractionFromHash hashes the target and the purpose, and returns a number in [0, 1) that is derived from the hash. Different purposes give
// independent numbers.
func fractionFromHash(t queue.Target, purpose string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose + "/" + string(t.Platform) + "/" + t.ExternalID))
	return float64(h.Sum64()%1024) / 1024
}

// Jitter returns a random duration that differs from d by at most a tenth. Targets that failed together are then retried at different times.
func Jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // math/rand is enough, because the result has no effect on security
}
