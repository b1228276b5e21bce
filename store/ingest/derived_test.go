package ingest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// randomCount returns a random count between 0 and maximum. It sometimes returns nil, as if the source had not reported the count.
func randomCount(t *rapid.T, name string, maximum int64) *int64 {
	if rapid.IntRange(0, 5).Draw(t, name+" is missing") == 0 {
		return nil
	}
	return new(rapid.Int64Range(0, maximum).Draw(t, name))
}

// expectedGrowth returns how much the views grew in the period up to `day`, as a number and in
// percent. A result that cannot be computed is nil.
func expectedGrowth(byDay map[store.Date]int64, latest *int64, day store.Date, days int) (gained *int64, percent *float64) {
	start, measured := day-store.Date(days), false
	for d := day; d > start; d-- {
		_, known := byDay[d]
		measured = measured || known
	}
	// Subtract the last views that were known before the period.
	for d := start; measured && latest != nil && d >= day-400; d-- {
		before, known := byDay[d]
		if !known {
			continue
		}
		if before > 0 {
			percent = new((float64(*latest) - float64(before)) * 100 / float64(before))
		}
		return new(*latest - before), percent
	}
	return nil, nil
}

// Requirements in docs/coverage.md: 2.2-21, 11.2-01, 11.6-02
func TestIncreases_compareWithTheLastPointBeforeThePeriod(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		start, next := db.Clock.Now().AddDate(0, 0, -45), 0
		rapid.Check(t, func(rt *rapid.T) {
			o := storetest.NewOrg(t, db)
			links := storetest.VideoLinksFrom(t, next, 4)
			next += len(links)
			storetest.Track(t, o, links...)
			byDay, latest := make([]map[store.Date]int64, len(links)), make([]*int64, len(links))
			for i := range links {
				byDay[i] = map[store.Date]int64{}
			}
			for day := 0; day <= 45; day += rapid.SampledFrom([]int{1, 6, 7, 8, 14, 16}).Draw(rt, "days until the next fetch") {
				at, facts := start.AddDate(0, 0, day), map[link.Link]ingest.VideoFacts{}
				for i, l := range links {
					facts[l] = ingest.VideoFacts{Views: randomCount(rt, "views", 20)}
					if n := facts[l].Views; n != nil {
						byDay[i][store.DateOf(at)], latest[i] = *n, n
					}
				}
				storetest.Measure(t, db, at, facts)
				for i, v := range storetest.ListVideos(t, o, storetest.OrderedBy("created_at", false)).Rows { // the list is ordered by created_at, so the videos are in the order of the links
					today := store.DateOf(at)
					require.Equal(rt, latest[i], v.Latest.Views)
					for days, got := range map[int]*float64{1: v.Increase1d, 7: v.Increase7d, 14: v.Increase14d, 30: v.Increase30d} {
						_, want := expectedGrowth(byDay[i], latest[i], today, days)
						require.Equal(rt, want == nil, got == nil, "%d days", days)
						if want != nil {
							require.InDelta(rt, *want, *got, 1e-9, "%d days", days)
						}
					}
					gained, _ := expectedGrowth(byDay[i], latest[i], today, 7)
					require.Equal(rt, gained, v.ViewsGained7d)
				}
			}
		})
	})
}

// Requirements in docs/coverage.md: 11.2-01
func TestIncreases_areUnknownForANewVideo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(100)})
		storetest.Measure(t, db, db.Clock.Now().Add(time.Hour), map[link.Link]ingest.VideoFacts{l: storetest.Views(900)})
		require.Zero(t, storetest.VideoOf(t, o, l).Growth, "the growth must be unknown after two fetches of the same day")

		db.Clock.Advance(8 * 24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(900)})
		require.Equal(t, store.Growth{Increase1d: new(0.0), Increase7d: new(0.0), ViewsGained7d: new(int64(0))}, storetest.VideoOf(t, o, l).Growth, "the increase must be 0 if the views did not change")
	})
}

// If a fetch does not report views, latest_views keeps its old value. The growth is then unknown, and must not be computed from this old value.
//
// Requirements in docs/coverage.md: 11.2-01
func TestIncreases_areUnknownIfNoViewsWereReportedInThePeriod(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		measure := func(daysLater int, facts ingest.VideoFacts) store.Video {
			db.Clock.Advance(time.Duration(daysLater) * 24 * time.Hour)
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: facts})
			return storetest.VideoOf(t, o, l)
		}
		measure(0, storetest.Views(100))
		measure(10, storetest.Views(300))
		v := measure(3, ingest.VideoFacts{Likes: new(int64(1))})
		require.EqualValues(t, 300, *v.Latest.Views)
		require.Equal(t, store.Growth{Increase7d: new(200.0), ViewsGained7d: new(int64(200))}, v.Growth)
		require.Zero(t, measure(7, ingest.VideoFacts{Likes: new(int64(2))}).ViewsGained7d)
	})
}

func TestIncreases_useWeeklyPointsIfDailyPointsWereRolledUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		id, day := storetest.Track(t, o, l)[0].ID, storetest.Today(db)-120
		db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, fetched_at, source) VALUES (?, ?, ?, ?, 50, 0, 'test')`, o.ID(), id, day.Week(), day)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(75)})
		require.InDelta(t, 50, *storetest.VideoOf(t, o, l).Increase30d, 1e-9)
	})
}

// A daily point can be older than a weekly point: the import adds weekly points, and PostgreSQL keeps
// old daily points until it drops their month.
func TestIncreases_useTheLaterOfTheLastDailyAndTheLastWeeklyPoint(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 130)
		o, today := storetest.NewOrg(t, db), storetest.Today(db)
		for n, c := range []struct {
			dailyDay, weeklyDay store.Date
			gained              int64
		}{{today - 120, today - 100, 100}, {today - 100, today - 120, 1100}, {today - 100, today - 100, 1100}} {
			l := storetest.VideoLink(t, n)
			id := storetest.Track(t, o, l)[0].ID
			db.Exec(t, `INSERT INTO snapshots_daily (organisation_id, video_id, week, day, views, fetched_at, source) VALUES (?, ?, ?, ?, 1000, 0, 'test')`, o.ID(), id, c.dailyDay.Week(), c.dailyDay)
			db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, fetched_at, source) VALUES (?, ?, ?, ?, 2000, 0, 'test')`, o.ID(), id, c.weeklyDay.Week(), c.weeklyDay)
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(2100)})
			require.Equal(t, c.gained, *storetest.VideoOf(t, o, l).ViewsGained7d, n)
		}
	})
}

// Requirements in docs/coverage.md: 11.2-01
func TestIncrease_isUnknownIfTheEarlierCountIsZeroOrUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		latest, before *int64
		want           *float64
	}{
		{nil, nil, nil}, {nil, new(int64(1)), nil}, {new(int64(1)), nil, nil}, {new(int64(7)), new(int64(0)), nil}, {new(int64(0)), new(int64(0)), nil},
		{new(int64(15)), new(int64(10)), new(50.0)}, {new(int64(5)), new(int64(10)), new(-50.0)}, {new(int64(0)), new(int64(10)), new(-100.0)},
		{new(int64(10)), new(int64(10)), new(0.0)},
	} {
		require.Equal(t, c.want, ingest.Increase(c.latest, c.before))
	}
}

// expectedStats is the result of a second, simple implementation of an account's statistics.
type expectedStats struct {
	mean, median, nonZero *float64
	most, total           *int64
	over10, over25        *float64
}

func expectedStatsOf(latest []*int64) (s expectedStats) {
	var known, positive []int64
	for _, n := range latest {
		if n != nil {
			known = append(known, *n)
			if *n > 0 {
				positive = append(positive, *n)
			}
		}
	}
	if len(known) == 0 {
		return s
	}
	middle := func(ns []int64) *float64 {
		if len(ns) == 0 {
			return nil
		}
		ns = slices.Sorted(slices.Values(ns))
		return new(float64(ns[(len(ns)-1)/2]+ns[len(ns)/2]) / 2)
	}
	sum, over := int64(0), map[float64]int{}
	s.median, s.nonZero, s.most = middle(known), middle(positive), new(slices.Max(known))
	for _, n := range known {
		sum += n
		for _, times := range []float64{10, 25} {
			if *s.median > 0 && float64(n) >= times**s.median {
				over[times]++
			}
		}
	}
	s.total, s.mean = &sum, new(float64(sum)/float64(len(known)))
	s.over10, s.over25 = new(float64(over[10])*100/float64(len(known))), new(float64(over[25])*100/float64(len(known)))
	return s
}

func requireEqualFloat(t require.TestingT, want, got *float64, what string) {
	require.Equal(t, want == nil, got == nil, what)
	if want != nil {
		require.InEpsilon(t, *want+1, *got+1, 1e-9, what)
	}
}

// Requirements in docs/coverage.md: 2.2-20, 11.2-02
func TestAccountStatistics_areComputedFromTheTrackedVideosOfTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		next := 0
		rapid.Check(t, func(rt *rapid.T) {
			o, links := storetest.NewOrg(t, db), storetest.VideoLinksFrom(t, next, 8)
			next += len(links)
			n := rapid.IntRange(1, len(links)).Draw(rt, "videos")
			storetest.Track(t, o, links[:n]...)
			facts, latest, uploaded := map[link.Link]ingest.VideoFacts{}, make([]*int64, n), (*store.Date)(nil)
			for i, l := range links[:n] {
				at := db.Clock.Now().AddDate(0, 0, -rapid.IntRange(0, 9).Draw(rt, "days since the upload"))
				latest[i] = randomCount(rt, "views", rapid.SampledFrom([]int64{3, 50, 100_000}).Draw(rt, "scale"))
				facts[l] = ingest.VideoFacts{Views: latest[i], UploadedAt: &at}
				if d := store.DateOf(at); uploaded == nil || d > *uploaded {
					uploaded = &d
				}
			}
			storetest.Measure(t, db, db.Clock.Now(), facts)

			want, a := expectedStatsOf(latest), storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
			require.EqualValues(rt, n, a.TotalVideosTracked)
			require.Equal(rt, want.total, a.Total.Views)
			require.Equal(rt, want.most, a.MostViewed)
			require.Equal(rt, uploaded, a.LastUploadedAt)
			requireEqualFloat(rt, want.mean, a.MeanViews, "mean")
			requireEqualFloat(rt, want.median, a.MedianViews, "median")
			requireEqualFloat(rt, want.nonZero, a.MedianViewsNonZero, "median views of the videos that have views")
			requireEqualFloat(rt, want.over10, a.PercentOutperform10x, "percentage of videos with 10 times the median views")
			requireEqualFloat(rt, want.over25, a.PercentOutperform25x, "percentage of videos with 25 times the median views")
			for i, v := range storetest.ListVideos(t, o, storetest.OrderedBy("created_at", false)).Rows { // the list is ordered by created_at, so the videos are in the order of the links
				known := want.median != nil && *want.median > 0 && latest[i] != nil
				require.Equal(rt, known, v.OutlierMultiplier != nil)
				if known {
					require.InDelta(rt, float64(*latest[i]) / *want.median, *v.OutlierMultiplier, 1e-9)
				}
			}
		})
	})
}

// A batch that contains only some videos of an account must also change the multipliers of the account's other videos, because the median
// of the account changes.
func TestAcknowledge_updatesTheMultipliersOfOtherVideosOfTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, links := storetest.NewOrg(t, db), storetest.VideoLinks(t, 3)
		storetest.Track(t, o, links...)
		measure := func(views ...int64) {
			db.Clock.Advance(time.Hour)
			facts := map[link.Link]ingest.VideoFacts{}
			for i, n := range views {
				facts[links[i]] = ingest.VideoFacts{Views: &n}
			}
			storetest.Measure(t, db, db.Clock.Now(), facts)
		}
		multipliers := func() (all []*float64) {
			for _, l := range links {
				all = append(all, storetest.VideoOf(t, o, l).OutlierMultiplier)
			}
			return all
		}
		measure(100, 200, 400)
		require.Equal(t, []*float64{new(0.5), new(1.0), new(2.0)}, multipliers())
		measure(1000)
		require.Equal(t, []*float64{new(2.5), new(0.5), new(1.0)}, multipliers())
		measure(0, 0)
		require.Equal(t, []*float64{nil, nil, nil}, multipliers(), "the multiplier must be unknown if the median is 0")
		measure(100)
		require.Equal(t, []*float64{new(1.0), new(0.0), new(4.0)}, multipliers())
	})
}

func TestMedian_isTheMiddleValueOrTheMeanOfTheTwoMiddleValues(t *testing.T) {
	t.Parallel()
	require.Zero(t, store.Median(nil))
	require.InDelta(t, 3, store.Median([]int64{3}), 0)
	require.InDelta(t, 2.5, store.Median([]int64{1, 2, 3, 9}), 0)
	require.InDelta(t, 2, store.Median([]int64{1, 2, 9}), 0)
	require.InEpsilon(t, 9.2e18, store.Median([]int64{9_200_000_000_000_000_000, 9_200_000_000_000_000_000}), 1e-9, "the mean must be right although the sum of the two middle values does not fit into 64 bits")
}

func TestTrack_countsNewVideosAndAccountsOnTheSameDay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, day := storetest.NewOrg(t, db), storetest.Today(db)
		first := storetest.VideoLink(t, 1)
		storetest.Track(t, o, first)
		points, err := o.OrganisationHistory(t.Context(), day, day)
		require.NoError(t, err)
		require.Empty(t, points, "before the first fetch, no counts are known")
		storetest.Deliver(t, db, link.TikTok, storetest.FactsWithAuthor("42", "someone"))
		account := func() store.Account { return storetest.AccountOf(t, o, first) }
		require.EqualValues(t, 1, account().TotalVideosTracked)

		db.Clock.Advance(time.Hour)
		storetest.Track(t, o, append(storetest.VideoLinksFrom(t, 2, 9), storetest.ParseLink(t, "https://www.tiktok.com/@stranger/video/7301234567890123999"))...)
		require.EqualValues(t, 10, account().TotalVideosTracked)
		require.EqualValues(t, 1, storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@stranger")).TotalVideosTracked)
		storetest.Track(t, o, storetest.VideoLinksFrom(t, 2, 9)...)
		require.EqualValues(t, 10, account().TotalVideosTracked, "the videos were already tracked")
		points, err = o.OrganisationHistory(t.Context(), day, day)
		require.NoError(t, err)
		require.EqualValues(t, 11, points[0].Videos)
		require.EqualValues(t, 0, points[0].Accounts)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@other"))
		points, err = o.OrganisationHistory(t.Context(), day, day)
		require.NoError(t, err)
		require.EqualValues(t, 1, points[0].Accounts)
		storetest.RequireConsistent(t, db, o)
	})
}
