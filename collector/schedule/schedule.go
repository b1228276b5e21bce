// Package schedule computes when a target is fetched next. All of it is pure: it reads no clock and no database.
//
// Each target is fetched once a day, in its own second of the UTC day. A target that is new or grows fast is fetched several
// times a day. If the calls of a day exceed the budgets, a [Throttle] makes fetches rarer (throttle.go). Failed and refused
// fetches are retried after the waits in retry.go. Start reading at [Throttle.Next].
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
	newVideo  = 3 * 24 * time.Hour  // a video's numbers change most in its first days
	slowVideo = 30 * 24 * time.Hour // only older videos can be slow
	// A video is fast if its views grow by at least fastGrowth of themselves and by fastViews a day, and slow if they grow by less than
	// slowGrowth.
	fastGrowth = 0.1
	fastViews  = 100
	slowGrowth = 0.01
	// shortestGrowth is the shortest time between two counts from which growth is computed.
	shortestGrowth = time.Hour
	// fastFetches is how often a day a fast target is fetched.
	fastFetches = 4
	// longestDays is the largest number of days between two fetches, however small the budget.
	longestDays = 7
	// detailsDays is the number of days after which title, account and the like are fetched again.
	detailsDays = 7
	// Early is how much too early a target may be fetched if a call has room for it.
	Early = 15 * time.Minute
)

// PaceOf returns how fast a video's numbers change, from its last counts and the new facts.
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

// Next returns the time of the next fetch after a successful one. The fetches of a day start at the target's second of the day and
// are spread evenly, so that a late fetch does not move the following ones.
func (s Throttle) Next(t queue.Target, pace queue.Pace, now time.Time) time.Time {
	today, every := store.DateOf(now), s.days(t.BaseLane, pace)
	day := today + 1
	for fetchDays(t, day, every) == fetchDays(t, today, every) {
		day++
	}
	next := slotOn(t, day)
	// If the mean is 2.7 fetches a day, seven of ten targets have three.
	fetches := int(s.fetches(t.BaseLane, pace) + fraction(t, "turn"))
	if fetches <= 1 {
		return next
	}
	apart := 24 * time.Hour / time.Duration(fetches)
	soonest := now.Add(apart / 2) // this fetch may have been early
	for _, slot := range []time.Time{slotOn(t, today-1), slotOn(t, today)} {
		for k := range fetches {
			if at := slot.Add(time.Duration(k) * apart); at.After(soonest) && at.Before(next) {
				return at
			}
		}
	}
	return next
}

// Due returns whether a claimed target must be fetched now. The throttle may have become stronger since its fetch was planned; then
// next is the new time of the fetch. A target that an organisation waits for, that failed, or whose number is doubted is always due.
func (s Throttle) Due(t queue.Target, now time.Time) (next time.Time, due bool) {
	if s == 0 || t.Lane == queue.LaneInteractive || t.Attempts > 0 || t.Suspect != nil || t.FetchedAt == nil || t.RequestedAt > *t.FetchedAt {
		return now, true
	}
	next = s.Next(t, t.Pace, t.FetchedAt.Time())
	return next, !next.After(now.Add(Early))
}

// Interval returns the mean time between two scheduled fetches of a target.
func (s Throttle) Interval(t queue.Target) time.Duration {
	return time.Duration(float64(24*time.Hour) / s.PerDay(t.BaseLane, t.Pace))
}

// NeedsDetails returns whether the next fetch of a video needs title, account and the like: the first fetch on one day in detailsDays.
// Targets with similar slots have the same day, because a call that includes details costs more, whether for one target or for all.
func NeedsDetails(t queue.Target, now time.Time) bool {
	return t.DetailsAt == nil || detailsUntil(t, now) > detailsUntil(t, t.DetailsAt.Time())
}

// detailsUntil returns how often a target's details were due until a time.
func detailsUntil(t queue.Target, at time.Time) int64 {
	const day, early = 24 * 60 * 60, 60 * 60 // a fetch may be early
	slot := int64(queue.SlotOf(t.Platform, t.ExternalID) / time.Second)
	own := detailsDays * slot / day // the target's day of detailsDays
	return (at.Unix() - (slot - early + own*day)) / (detailsDays * day)
}

// fetchDays returns how many days with a fetch a target has had up to a day, if it is fetched on one day in every so many. Targets are
// spread over the days by hash.
func fetchDays(t queue.Target, day store.Date, every float64) float64 {
	return math.Floor((float64(day) + fraction(t, "day")*every) / every)
}

// slotOn returns the target's second of a day.
func slotOn(t queue.Target, day store.Date) time.Time {
	return day.Time().Add(queue.SlotOf(t.Platform, t.ExternalID))
}

// fraction returns a number in [0, 1) that depends on the target and a purpose only.
func fraction(t queue.Target, purpose string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose + "/" + string(t.Platform) + "/" + t.ExternalID))
	return float64(h.Sum64()%1024) / 1024
}

// Jitter changes a wait by up to a tenth, so that targets that failed together are not retried together.
func Jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // chance, not secrecy
}
