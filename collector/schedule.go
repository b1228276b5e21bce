package collector

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// When a target is asked for again. All of it is pure: the time comes in, a time goes out.
//
// While the budgets allow, a target is asked for once a day, in its own second of the UTC day, and several times a day
// while it is young or moves. When a budget is short, turns are spaced out, the lowest lane first, and in each by stages:
// what is old and hardly moves down to once a week; then the further turns of a day; then all else down to once a week.
// capacity.go says how far.

const (
	youngAge = 3 * 24 * time.Hour // a video's numbers move most in its first days
	stillAge = 30 * 24 * time.Hour
	// Growth of the views in a day, as a share of them.
	movingGrowth = 0.1
	stillGrowth  = 0.01
	movingViews  = 100 // fewer a day are no movement, whatever their share
	// growthSpan is the least time between two counts that says how fast they grow.
	growthSpan = time.Hour
	// fastTurns is how often a day a fast target is asked for.
	fastTurns = 4
	// longestDays is the most days between two turns, however short the budget.
	longestDays = 7
	// detailsDays is how many days title, account and the like are believed before they are asked for again.
	detailsDays = 7
)

// paceOf says how a video's numbers move, from what was known of them before and what a source says now.
func paceOf(t queue.Target, f *Facts, now time.Time) queue.Pace {
	if f.UploadedAt != nil && now.Sub(*f.UploadedAt) < youngAge {
		return queue.PaceFast
	}
	if f.Views == nil || t.Views == nil || t.FetchedAt == nil {
		return queue.PaceSteady
	}
	span := now.Sub(t.FetchedAt.Time())
	if span < growthSpan {
		return t.Pace
	}
	perDay := math.Abs(float64(*f.Views)-float64(*t.Views)) / (span.Hours() / 24)
	growth := perDay / max(1, float64(*t.Views))
	switch {
	case growth >= movingGrowth && perDay >= movingViews:
		return queue.PaceFast
	case growth < stillGrowth && f.UploadedAt != nil && now.Sub(*f.UploadedAt) >= stillAge:
		return queue.PaceStill
	}
	return queue.PaceSteady
}

// stretch is how far the turns of a platform's targets are spaced out: 0 not at all, to stretchMost.
type stretch float64

// lowestFirst are the lanes in the order in which they give way.
var lowestFirst = []queue.Lane{queue.LaneFree, queue.LaneBasic, queue.LanePremium}

// The stages of a lane, in this order.
const (
	stageStill = iota
	stageFast
	stageAll
	stages
)

var stretchMost = stretch(stages * len(lowestFirst))

// share is how far a stage of a lane has gone, 0 to 1.
func (s stretch) share(stage int, lane queue.Lane) float64 {
	at := slices.Index(lowestFirst, lane)
	if at < 0 {
		at = len(lowestFirst) - 1 // somebody waits
	}
	return min(1, max(0, float64(s)-float64(at*stages+stage)))
}

// days returns the mean number of days between two days on which a target is asked for, 1 to longestDays.
func (s stretch) days(lane queue.Lane, pace queue.Pace) float64 {
	stage := stageAll
	if pace == queue.PaceStill {
		stage = stageStill
	}
	return 1 + (longestDays-1)*s.share(stage, lane)
}

// turns returns the mean number of turns on such a day.
func (s stretch) turns(lane queue.Lane, pace queue.Pace) float64 {
	if pace != queue.PaceFast {
		return 1
	}
	return fastTurns - (fastTurns-1)*s.share(stageFast, lane)
}

// perDay is how often a day a target is asked for.
func (s stretch) perDay(lane queue.Lane, pace queue.Pace) float64 {
	return s.turns(lane, pace) / s.days(lane, pace)
}

// next returns the next turn after a fetch that succeeded. The turns of a day begin with the target's second of the day and
// are spread evenly from there, so that a turn that comes late does not move those after it.
func (s stretch) next(t queue.Target, pace queue.Pace, now time.Time) time.Time {
	today, every := store.DateOf(now), s.days(t.BaseLane, pace)
	day := today + 1
	for turnsBy(t, day, every) == turnsBy(t, today, every) {
		day++
	}
	next := slotOn(t, day)
	// Of a mean of 2.7 turns, seven of ten targets have three.
	turns := int(s.turns(t.BaseLane, pace) + share(t, "turn"))
	if turns <= 1 {
		return next
	}
	apart := 24 * time.Hour / time.Duration(turns)
	soonest := now.Add(apart / 2) // this fetch may have come early
	for _, slot := range []time.Time{slotOn(t, today-1), slotOn(t, today)} {
		for k := range turns {
			if at := slot.Add(time.Duration(k) * apart); at.After(soonest) && at.Before(next) {
				return at
			}
		}
	}
	return next
}

func slotOn(t queue.Target, day store.Date) time.Time {
	return day.Time().Add(queue.SlotOf(t.Platform, t.ExternalID))
}

// slotAround returns the target's second of a day that is nearest to a wait of days.
func slotAround(t queue.Target, wait time.Duration, now time.Time) time.Time {
	earliest := now.Add(wait - 12*time.Hour)
	if slot := slotOn(t, store.DateOf(earliest)); !slot.Before(earliest) {
		return slot
	}
	return slotOn(t, store.DateOf(earliest)+1)
}

// after returns when a wait is over. Waits of days end in the target's second of the day, shorter ones by chance a little
// earlier or later.
func after(t queue.Target, wait time.Duration, now time.Time) time.Time {
	if wait >= 24*time.Hour {
		return slotAround(t, wait, now)
	}
	return now.Add(jitter(wait))
}

// due says whether a claimed target's turn has come as far as turns are spaced out now, which may be farther than when it
// was planned; if not, next is when it comes. What somebody waits for, and what failed or is doubted, is due.
func (s stretch) due(t queue.Target, now time.Time) (next time.Time, due bool) {
	if s == 0 || t.Lane == queue.LaneInteractive || t.Attempts > 0 || t.Suspect != nil || t.FetchedAt == nil || t.RequestedAt > *t.FetchedAt {
		return now, true
	}
	next = s.next(t, t.Pace, t.FetchedAt.Time())
	return next, !next.After(now.Add(fillAhead))
}

// turnsBy counts a target's days of turn up to a day, of which there is one in every so many. Each target has its own by
// hash, so that each day has as many.
func turnsBy(t queue.Target, day store.Date, every float64) float64 {
	return math.Floor((float64(day) + share(t, "day")*every) / every)
}

// needsDetails says whether title, account and the like are asked for again: with the first turn on one day in detailsDays.
// Targets whose turns are near each other have the same day, since a call that asks for details costs more, whether for one
// target or for all.
func needsDetails(t queue.Target, now time.Time) bool {
	return t.DetailsAt == nil || detailsBy(t, now) > detailsBy(t, t.DetailsAt.Time())
}

// detailsBy counts the times that a target's details were due.
func detailsBy(t queue.Target, at time.Time) int64 {
	const day, early = 24 * 60 * 60, 60 * 60 // a turn may come before its time
	slot := int64(queue.SlotOf(t.Platform, t.ExternalID) / time.Second)
	own := detailsDays * slot / day // of the days
	return (at.Unix() - (slot - early + own*day)) / (detailsDays * day)
}

// share is a target's place in [0, 1) by hash: another for each purpose.
func share(t queue.Target, purpose string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose + "/" + string(t.Platform) + "/" + t.ExternalID))
	return float64(h.Sum64()%1024) / 1024
}

// retries are the waits after the first, second, … failure in a row; the last one repeats.
var retries = []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 25 * time.Minute}

// refusedWaits are the waits after a source said for the first, second, … time that it may not show the video. From
// refusedParked on, it is parked.
var refusedWaits = []time.Duration{24 * time.Hour, 24 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

const refusedParked = 4

// parkedAfter is how many failures in a row of the target itself make it wait a day each.
const parkedAfter = 12

// nextRetry returns the next turn of a target that failed for the given time in a row.
func nextRetry(t queue.Target, failures int, now time.Time) time.Time {
	if failures >= parkedAfter {
		return after(t, 24*time.Hour, now)
	}
	return after(t, step(retries, failures-1), now)
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
