package schedule

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

var (
	anyLane = rapid.SampledFrom([]queue.Lane{queue.LanePremium, queue.LaneBasic, queue.LaneFree})
	anyPace = rapid.SampledFrom([]queue.Pace{queue.PaceSteady, queue.PaceFast, queue.PaceSlow})
	someDay = time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
)

func randomTarget(t *rapid.T) queue.Target {
	return queue.Target{Platform: link.YouTube, Kind: queue.KindVideo, BaseLane: anyLane.Draw(t, "lane"),
		ExternalID: rapid.StringMatching(`[A-Za-z0-9_-]{11}`).Draw(t, "id")}
}

// listScheduledTimes returns the scheduled fetch times of a target for the given number of days. Each
// fetch is late by a random time, at most maxDelay.
func listScheduledTimes(t *rapid.T, s Plan, target queue.Target, pace queue.Pace, days int, maxDelay time.Duration) []time.Time {
	at, end := someDay, someDay.AddDate(0, 0, days)
	times := []time.Time{}
	for {
		next := s.Next(target, pace, at.Add(time.Duration(rapid.Int64Range(0, int64(maxDelay)).Draw(t, "delay"))))
		require.True(t, next.After(at), "each fetch must be after the previous one")
		if at = next; at.After(end) {
			return times
		}
		times = append(times, at)
	}
}

func TestNext_schedulesOneOrFourFetchesADayIfNoThrottleIsSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		target, pace := randomTarget(rt), anyPace.Draw(rt, "pace")
		days := map[store.Date]int{}
		for _, at := range listScheduledTimes(rt, Plan{}, target, pace, 10, 9*time.Minute) {
			days[store.DateOf(at)]++
		}
		for day := store.DateOf(someDay) + 1; day < store.DateOf(someDay)+10; day++ {
			if pace == queue.PaceFast {
				require.InDelta(rt, fastFetches, days[day], 1, "%s", day)
			} else {
				require.Equal(rt, 1, days[day], "%s", day)
			}
		}
	})
}

func TestNext_isAtMostAWeekAfterTheLastFetch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		target, pace := randomTarget(rt), anyPace.Draw(rt, "pace")
		s := Plan{Throttle: Throttle(rapid.Float64Range(0, float64(MaxThrottle)).Draw(rt, "throttle"))}
		last := store.DateOf(someDay)
		for _, at := range listScheduledTimes(rt, s, target, pace, 60, time.Hour) {
			require.LessOrEqual(rt, int(store.DateOf(at)-last), longestDays)
			last = store.DateOf(at)
		}
	})
}

// The alert must not fire while all fetches run as planned. Its limit is the label le, in seconds.
func TestNext_isWithinTheLimitOfTheAlertAboutOldNumbers(t *testing.T) {
	t.Parallel()
	alerts, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.yml"))
	require.NoError(t, err)
	limits := regexp.MustCompile(`reeltally_numbers_within\{le="(\d+)"\}`).FindAllSubmatch(alerts, -1)
	require.Len(t, limits, 1)
	limit, err := time.ParseDuration(string(limits[0][1]) + "s")
	require.NoError(t, err)
	midnight := someDay.Truncate(24 * time.Hour)
	for i := range 10_000 {
		target := queue.Target{Platform: link.YouTube, Kind: queue.KindVideo, BaseLane: queue.LaneFree, ExternalID: fmt.Sprintf("%011d", i)}
		require.LessOrEqual(t, Plan{}.Next(target, queue.PaceSteady, midnight).Sub(midnight), limit, target.ExternalID)
	}
}

func TestNext_agreesWithFetchesPerDay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lane, pace := anyLane.Draw(rt, "lane"), anyPace.Draw(rt, "pace")
		s := Plan{Throttle: Throttle(rapid.Float64Range(0, float64(MaxThrottle)).Draw(rt, "throttle"))}
		const targets, days = 200, 14
		n, most := 0, s.FetchesPerDay(lane, pace)*1.1
		for i := range targets {
			target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, BaseLane: lane, ExternalID: fmt.Sprint(7_000_000_000 + i)}
			n += len(listScheduledTimes(rt, s, target, pace, days, 0))
		}
		require.LessOrEqual(rt, float64(n)/targets/days, most)
		require.GreaterOrEqual(rt, float64(n)/targets/days, s.FetchesPerDay(lane, pace)*0.9)
	})
}

func TestNext_isNotDelayedByALateFetch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		target := randomTarget(rt)
		punctual := listScheduledTimes(rt, Plan{}, target, queue.PaceFast, 5, 0)
		late := listScheduledTimes(rt, Plan{}, target, queue.PaceFast, 5, 2*time.Hour)
		require.Equal(rt, punctual[1:], late[len(late)-len(punctual)+1:]) // the first scheduled time is not compared, because Next can skip it after a late fetch
		for i := 1; i < len(punctual); i++ {
			require.Equal(rt, 6*time.Hour, punctual[i].Sub(punctual[i-1]))
		}
		early := punctual[2].Add(-Early)
		require.Equal(rt, punctual[3], Plan{}.Next(target, queue.PaceFast, early), "a fetch just before its scheduled time must count as the scheduled fetch")
	})
}

func TestNeedsDetails_isTrueForOneFetchAWeek(t *testing.T) {
	t.Parallel()
	const targets, days = 700, 28
	onDay := map[store.Date]int{}
	hours := map[time.Time][2]int{} // maps an hour to the number of fetches without details and the number of fetches with details
	for i := range targets {
		target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: fmt.Sprint(7_000_000_000 + i), DetailsAt: new(store.InstantOf(someDay))}
		asked := 0
		for now := (Plan{}).Next(target, queue.PaceSteady, someDay); now.Before(someDay.AddDate(0, 0, days)); now = (Plan{}).Next(target, queue.PaceSteady, now) {
			of := hours[now.Truncate(time.Hour)]
			if NeedsDetails(target, now) {
				target.DetailsAt = new(store.InstantOf(now))
				onDay[store.DateOf(now)]++
				asked++
				of[1]++
			} else {
				of[0]++
			}
			hours[now.Truncate(time.Hour)] = of
		}
		require.InDelta(t, days/detailsDays, asked, 1)
	}
	for day := store.DateOf(someDay) + 1; day < store.DateOf(someDay)+days; day++ {
		require.InDelta(t, targets/detailsDays, onDay[day], 30, "%s", day)
	}
	mixedHours := 0
	for _, of := range hours {
		if of[0] > 0 && of[1] > 0 {
			mixedHours++
		}
	}
	require.LessOrEqual(t, mixedHours, 2*days, "on average, at most two hours of a day may contain both kinds of fetches: with details and without details")
	require.True(t, NeedsDetails(queue.Target{ExternalID: "1"}, someDay), "the first fetch of a target must include the details")
}

func TestThrottle_reducesFetchesLaneByLane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		less := Throttle(rapid.Float64Range(0, float64(MaxThrottle)).Draw(rt, "less"))
		more := less + Throttle(rapid.Float64Range(0, float64(MaxThrottle-less)).Draw(rt, "more"))
		for _, lane := range throttledLanes {
			for _, pace := range []queue.Pace{queue.PaceFast, queue.PaceSteady, queue.PaceSlow} {
				require.GreaterOrEqual(rt, Plan{Throttle: less}.FetchesPerDay(lane, pace), Plan{Throttle: more}.FetchesPerDay(lane, pace), "%d %d", lane, pace)
			}
		}
		// The stages of throttling follow one after the other: a stage begins only after all earlier stages have been applied completely.
		order := []float64{}
		for _, lane := range throttledLanes {
			for stage := range stages {
				order = append(order, more.strengthOfStage(stage, lane))
			}
		}
		for i := 1; i < len(order); i++ {
			if order[i] > 0 {
				require.InDelta(rt, 1, order[i-1], 0, "%v", order)
			}
		}
	})
	require.InDelta(t, 7, Plan{Throttle: MaxThrottle}.activeDayInterval(queue.LanePremium, queue.PaceFast), 0)
	require.InDelta(t, 1, Plan{}.activeDayInterval(queue.LaneFree, queue.PaceSlow), 0)
}

func TestPaceOf_dependsOnTheAgeOfTheVideoAndTheGrowthOfItsViews(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) *store.Instant { return new(store.InstantOf(someDay.Add(-d))) }
	uploaded := func(days int) *time.Time { return new(someDay.AddDate(0, 0, -days)) }
	for name, c := range map[string]struct {
		viewsBefore *int64
		fetchedAt   *store.Instant
		pace        queue.Pace
		viewsNow    *int64
		uploadedAt  *time.Time
		want        queue.Pace
	}{
		"a video uploaded two days ago":                              {nil, nil, 0, new(int64(1)), uploaded(2), queue.PaceFast},
		"an old video that is fetched for the first time":            {nil, nil, 0, new(int64(1)), uploaded(200), queue.PaceSteady},
		"a video that is 30 days old and has views that hardly grow": {new(int64(100_000)), ago(24 * time.Hour), 0, new(int64(100_900)), uploaded(30), queue.PaceSlow},
		"a video that is 29 days old and has views that hardly grow": {new(int64(100_000)), ago(24 * time.Hour), 0, new(int64(100_900)), uploaded(29), queue.PaceSteady},
		"a video of unknown age whose views do not grow":             {new(int64(100_000)), ago(24 * time.Hour), 0, new(int64(100_000)), nil, queue.PaceSteady},
		"an old video whose views grow by 1.1 % a day":               {new(int64(100_000)), ago(24 * time.Hour), 0, new(int64(101_100)), uploaded(300), queue.PaceSteady},
		"an old, slow video whose views grow by 10 % a day":          {new(int64(100_000)), ago(24 * time.Hour), queue.PaceSlow, new(int64(110_000)), uploaded(300), queue.PaceFast},
		"an old video whose views have grown by 2.6 % in six hours":  {new(int64(100_000)), ago(6 * time.Hour), 0, new(int64(102_600)), uploaded(300), queue.PaceFast},
		"an old video whose views have grown by 2.6 % in a week":     {new(int64(100_000)), ago(7 * 24 * time.Hour), 0, new(int64(102_600)), uploaded(300), queue.PaceSlow},
		"a video whose views fall by 20 % a day":                     {new(int64(100_000)), ago(24 * time.Hour), 0, new(int64(80_000)), uploaded(300), queue.PaceFast},
		"a video whose views grow from 10 to 60 in a day":            {new(int64(10)), ago(24 * time.Hour), 0, new(int64(60)), uploaded(300), queue.PaceSteady},
		"a video that is fetched again after one minute":             {new(int64(100_000)), ago(time.Minute), queue.PaceSlow, new(int64(100_100)), uploaded(300), queue.PaceSlow},
		"a video whose views are hidden":                             {new(int64(100_000)), ago(24 * time.Hour), queue.PaceFast, nil, uploaded(300), queue.PaceSteady},
	} {
		got := PaceOf(queue.Target{Counts: store.Counts{Views: c.viewsBefore}, FetchedAt: c.fetchedAt, Pace: c.pace}, &ingest.VideoFacts{Views: c.viewsNow, UploadedAt: c.uploadedAt}, someDay)
		require.Equal(t, c.want, got, name)
	}
}

// randomNeeds returns random needs of three groups. The first two groups share a budget. The third group has a separate budget.
func randomNeeds(t *rapid.T) []Need {
	costs := [][]map[string]float64{{{"a": 0.02}, {"b": 0.02}}, {{"b": 1}}, {{"c": 1}}}
	needs := make([]Need, len(costs))
	for i, p := range []link.Platform{link.YouTube, link.TikTok, link.Instagram} {
		needs[i] = Need{Group: Group{p, queue.KindVideo}, Counts: costs[i], Details: costs[i]}
		for _, lane := range throttledLanes {
			for _, pace := range []queue.Pace{queue.PaceSteady, queue.PaceFast, queue.PaceSlow} {
				needs[i].Targets = append(needs[i].Targets, queue.Demand{Lane: lane, Pace: pace, Targets: rapid.Int64Range(0, 5000).Draw(t, "targets")})
			}
		}
	}
	return needs
}

func TestFindSmallestThrottles_returnsTheSmallestSufficientThrottle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		needs := randomNeeds(rt)
		supply := map[string]float64{}
		for _, b := range []string{"a", "b", "c"} {
			supply[b] = rapid.Float64Range(1, 50_000).Draw(rt, "budget "+b)
		}
		got := FindSmallestThrottles(needs, supply, nil)
		require.Len(rt, got, len(needs))
		require.InDelta(rt, float64(got[needs[0].Group]), float64(got[needs[1].Group]), 0, "groups with a shared budget must have the same throttle")
		for _, pool := range [][]Need{needs[:2], needs[2:]} {
			s := got[pool[0].Group]
			if s < MaxThrottle {
				require.True(rt, supplySuffices(pool, supply, Plan{Throttle: s}), "the budgets must be large enough for the fetches of the plan")
			}
			if s > 0 {
				require.False(rt, supplySuffices(pool, supply, Plan{Throttle: s - Throttle(1.0/128)}), "with a smaller throttle, the fetches of the plan must need more units than the budgets have")
			}
		}
	})
}

func TestFindSmallestThrottles_returnsZeroIfTheBudgetsAreUnlimited(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		for g, s := range FindSmallestThrottles(randomNeeds(rt), map[string]float64{"a": math.MaxFloat64, "c": math.MaxFloat64}, nil) {
			require.Zero(rt, s, "%v", g)
		}
	})
}

func TestDue_defersFetchesThatWereScheduledBeforeTheThrottleRose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		target, s := randomTarget(rt), Plan{Throttle: Throttle(rapid.Float64Range(0, float64(MaxThrottle)).Draw(rt, "throttle"))}
		target.Pace, target.Lane = anyPace.Draw(rt, "pace"), target.BaseLane
		fetched := store.InstantOf(someDay)
		target.FetchedAt, target.RequestedAt = &fetched, fetched-1
		want := s.Next(target, target.Pace, someDay)
		now := someDay.Add(time.Duration(rapid.Int64Range(0, int64(8*24*time.Hour)).Draw(rt, "later")))
		next, due := s.Due(target, now)
		require.Equal(rt, s.Throttle == 0 || !want.After(now.Add(Early)), due)
		if !due {
			require.Equal(rt, want, next)
		}
		for name, change := range map[string]func(*queue.Target){
			"target for which a user waits":                                         func(t *queue.Target) { t.Lane = queue.LaneInteractive },
			"target that a further organisation has requested since the last fetch": func(t *queue.Target) { t.RequestedAt = fetched + 1 },
			"target whose last fetch failed":                                        func(t *queue.Target) { t.Attempts = 1 },
			"target whose last counts were suspicious":                              func(t *queue.Target) { t.Suspect = new("0 views") },
			"target that was never fetched":                                         func(t *queue.Target) { t.FetchedAt = nil },
		} {
			other := target
			change(&other)
			_, due := s.Due(other, now)
			require.True(rt, due, name)
		}
	})
}

// Requirements in docs/coverage.md: 11.8-09
func TestPlan_keepsTheIntervalOfEachTier(t *testing.T) {
	t.Parallel()
	intervals, err := ParseIntervals(map[string]time.Duration{"limited": 5 * 24 * time.Hour, "basic": 36 * time.Hour, "premium": 2 * time.Hour})
	require.NoError(t, err)
	plan := Plan{Intervals: intervals}
	for lane, want := range map[queue.Lane]time.Duration{queue.LaneFree: 5 * 24 * time.Hour, queue.LaneBasic: 36 * time.Hour, queue.LanePremium: 2 * time.Hour} {
		for _, pace := range []queue.Pace{queue.PaceFast, queue.PaceSteady, queue.PaceSlow} {
			const targets, days = 200, 30
			fetches := 0
			for i := range targets {
				target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, BaseLane: lane, ExternalID: fmt.Sprint(7_000_000_000 + i)}
				require.Equal(t, want, plan.Interval(target))
				for now := plan.Next(target, pace, someDay); now.Before(someDay.AddDate(0, 0, days)); now = plan.Next(target, pace, now) {
					fetches++
				}
			}
			expected := targets * days * 24 / want.Hours()
			require.InDelta(t, expected, fetches, 0.06*expected, "lane %d, pace %d", lane, pace)
		}
	}
	require.InDelta(t, 1.0/longestDays, Plan{intervals, MaxThrottle}.FetchesPerDay(queue.LanePremium, queue.PaceFast), 1e-9, "with the largest throttle, every target must be fetched once a week")
}

func TestParseIntervals_refusesUnknownTiersAndIntervalsOutOfRange(t *testing.T) {
	t.Parallel()
	for text, of := range map[string]map[string]time.Duration{
		`"gold" is not a tier`:                   {"gold": time.Hour},
		"basic is 59m; it must be from 1h to 7d": {"basic": 59 * time.Minute},
		"premium is 8d; it must be from 1h to":   {"premium": 8 * 24 * time.Hour},
	} {
		_, err := ParseIntervals(of)
		require.ErrorContains(t, err, text)
	}
}
