package store_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// randomSeries returns a random history of up to two years. Its counts mostly grow, and some fall or are missing. Some days have no point.
func randomSeries(t *rapid.T, today store.Date) storetest.Series {
	s := storetest.Series{Daily: map[store.Date]store.Counts{}, Weekly: map[store.Date]store.Counts{}}
	base := rapid.SampledFrom([]int64{0, 1000, 9_000_000_000_000_000_000}).Draw(t, "base")
	count := func(name string) *int64 {
		base += rapid.Int64Range(-50, 500).Draw(t, name)
		base = max(base, 0)
		if rapid.IntRange(0, 9).Draw(t, name+" is missing") == 0 {
			return nil
		}
		return new(base)
	}
	point := func() store.Counts {
		return store.Counts{Views: count("views"), Likes: count("likes"), Comments: count("comments"), Shares: count("shares"), Bookmarks: count("bookmarks")}
	}
	weeks := map[store.Date]bool{}
	for _, ago := range rapid.SliceOfNDistinct(rapid.IntRange(0, 740), 0, 30, rapid.ID[int]).Draw(t, "days ago") {
		day := today - store.Date(ago)
		rolledUp := ago > storetest.DailyDays && !weeks[day.Week()]
		if rolledUp {
			s.Weekly[day], weeks[day.Week()] = point(), true
		}
		// A roll-up replaces the daily points of a week by a weekly point. Until the partition with
		// the daily points is dropped, a day can have both.
		if !rolledUp || rapid.IntRange(0, 9).Draw(t, "the partition with the daily points still exists") == 0 {
			s.Daily[day] = point()
		}
	}
	return s
}

// TestHistory_returnsTheSamePointsAsASimpleImplementation compares History with a simple implementation, for random histories and ranges.
// Requirements in docs/coverage.md: 2.4-02, 4.2-27
func TestHistory_returnsTheSamePointsAsASimpleImplementation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Clock.Set(time.Date(2024, 6, 15, 12, 0, 0, 0, time.UTC)) // the interpolated days include 29 February 2024
		storetest.CreatePartitions(t, db, 800)
		o, today, next := storetest.NewOrg(t, db), storetest.Today(db), 0
		rapid.Check(t, func(rt *rapid.T) {
			l := storetest.VideoLink(t, next)
			next++
			id := storetest.Track(t, o, l)[0].ID
			s := randomSeries(rt, today)
			s.Insert(t, db, o, id)
			day := func(name string) store.Date { return today - store.Date(rapid.IntRange(-2, 760).Draw(rt, name)) }
			ranges := [][2]store.Date{{today - 730, today}, {today - 100, today - 80}, {today - 90, today}, {day("from"), day("to")}}
			if at := slices.Sorted(maps.Keys(s.Weekly)); len(at) > 0 {
				ranges = append(ranges, [2]store.Date{at[0] + 1, at[0] + 1}) // a range of one day between two stored points
			}
			if at := slices.Sorted(maps.Keys(s.Points())); len(at) > 0 {
				day := rapid.SampledFrom(at).Draw(rt, "day that has a point")
				ranges = append(ranges, [2]store.Date{day, day}, [2]store.Date{day, today})
			}
			for _, r := range ranges {
				got, err := o.History(t.Context(), store.Ref{ID: id}, r[0], r[1])
				require.NoError(rt, err)
				require.Equal(rt, s.ExpectedHistory(r[0], r[1]), got, "%s to %s", r[0], r[1])
			}
		})
	})
}

// TestHistory_interpolatesBetweenTwoPoints checks the interpolated days between a weekly point and two daily points.
// Requirements in docs/coverage.md: 4.2-27
func TestHistory_interpolatesBetweenTwoPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 120)
		o, l, today := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		id := storetest.Track(t, o, l)[0].ID
		at := func(n int64) store.Counts { return store.Counts{Views: &n} }
		storetest.Series{Daily: map[store.Date]store.Counts{today - 3: at(110), today - 6: at(107)}, Weekly: map[store.Date]store.Counts{today - 30: at(100)}}.Insert(t, db, o, id)
		between := func(day store.Date, n int64) store.Point {
			return store.Point{Day: day, Counts: at(n), Provenance: store.Provenance{Quality: store.QualityInterpolated}}
		}
		got, err := o.History(t.Context(), store.Ref{ID: id}, today-7, today)
		require.NoError(t, err)
		require.Equal(t, []store.Point{{Day: today - 3, Counts: at(110)}, between(today-4, 109), between(today-5, 108), {Day: today - 6, Counts: at(107)}, between(today-7, 106)},
			storetest.WithoutProvenance(got), "days after the last stored point must have no interpolated points")
		for _, day := range []store.Date{today - 7, today - 18, today - 29} {
			got, err = o.History(t.Context(), store.Ref{ID: id}, day, day)
			require.NoError(t, err)
			require.Equal(t, []store.Point{between(day, 107-7*int64(today-6-day)/24-min(1, 7*int64(today-6-day)%24))}, got, "points outside the range must be used for the interpolation")
		}
		got, err = o.History(t.Context(), store.Ref{ID: id}, today-40, today-31)
		require.NoError(t, err)
		require.Empty(t, got, "days before the first stored point must have no interpolated points")
	})
}

// TestHistory_comparesEachCountWithItsLastKnownValue checks the quality of a point if the points before it lack a count.
func TestHistory_comparesEachCountWithItsLastKnownValue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 200)
		o, today := storetest.NewOrg(t, db), storetest.Today(db)
		likes := func(n int64) store.Counts { return store.Counts{Likes: &n} }
		at := func(views, likes int64) store.Counts { return store.Counts{Views: &views, Likes: &likes} }
		for n, s := range []storetest.Series{
			{Daily: map[store.Date]store.Counts{today - 2: at(1000, 5), today - 1: likes(6), today: at(900, 7)}},
			{Daily: map[store.Date]store.Counts{today - 60: at(1000, 5), today - 20: likes(6), today - 1: likes(7), today: at(900, 8)}},
			{Daily: map[store.Date]store.Counts{today - 60: likes(6), today: at(900, 8)}, Weekly: map[store.Date]store.Counts{today - 150: at(1000, 5), today - 120: likes(5)}},
		} {
			id := storetest.Track(t, o, storetest.VideoLink(t, n))[0].ID
			s.Insert(t, db, o, id)
			for _, days := range []store.Date{0, 1, 2, 19, 100, 200} {
				got, err := o.History(t.Context(), store.Ref{ID: id}, today-days, today)
				require.NoError(t, err)
				require.Equal(t, store.QualityCorrected, got[0].Quality, "case %d, range begins %d days ago", n, days)
				require.NotContains(t, qualitiesOf(got[1:]), store.QualityCorrected, "case %d", n)
			}
			exported, err := o.Export(t.Context(), store.ExportQuery{From: today, To: today, Limit: 10})
			require.NoError(t, err)
			require.Equal(t, store.QualityCorrected, exported[n].Points[0].Quality)
		}
	})
}

func qualitiesOf(points []store.Point) []store.Quality {
	var out []store.Quality
	for _, p := range points {
		out = append(out, p.Quality)
	}
	return out
}

func TestInterpolatedViews_neverFallIfTheStoredViewsRise(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, today, next := storetest.NewOrg(t, db), storetest.Today(db), 0
		rapid.Check(t, func(rt *rapid.T) {
			l := storetest.VideoLink(t, next)
			next++
			id := storetest.Track(t, o, l)[0].ID
			first, last := today-130, today-130+store.Date(rapid.IntRange(7, 38).Draw(rt, "days apart"))
			low := rapid.Int64Range(0, 9e18).Draw(rt, "first")
			high := low + rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 9e18-low)).Draw(rt, "growth")
			storetest.Series{Weekly: map[store.Date]store.Counts{first: {Views: &low}, last: {Views: &high}}}.Insert(t, db, o, id)
			got, err := o.History(t.Context(), store.Ref{ID: id}, first, last)
			require.NoError(rt, err)
			require.Len(rt, got, int(last-first)+1)
			for i := 1; i < len(got); i++ {
				require.LessOrEqual(rt, *got[i].Views, *got[i-1].Views, "%s", got[i].Day)
			}
		})
	})
}

func TestHistory_interpolatesEngagementsOnlyOfTheSameCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, today := storetest.NewOrg(t, db), storetest.Today(db)
		likes, comments, shares := new(int64(100)), new(int64(10)), new(int64(30))
		for n, of := range []struct {
			first, last    store.Counts
			points         int
			engagement     *int64
			shownInBetween store.Counts
		}{
			{store.Counts{Likes: likes, Shares: shares}, store.Counts{Likes: likes, Shares: shares}, 3, new(int64(130)), store.Counts{Likes: likes, Shares: shares}},
			{store.Counts{Views: likes, Likes: likes, Comments: comments}, store.Counts{Likes: likes, Comments: comments}, 3, new(int64(110)), store.Counts{Likes: likes, Comments: comments}},
			{store.Counts{Likes: likes, Comments: comments}, store.Counts{Comments: comments, Shares: shares}, 3, nil, store.Counts{Comments: comments}},
			{store.Counts{Likes: likes, Comments: comments}, store.Counts{Likes: likes}, 3, nil, store.Counts{Likes: likes}},
			{store.Counts{Views: likes, Likes: likes}, store.Counts{Comments: comments, Shares: shares}, 2, nil, store.Counts{}},
		} {
			id := storetest.Track(t, o, storetest.VideoLink(t, n))[0].ID
			storetest.Series{Daily: map[store.Date]store.Counts{today - 2: of.first, today: of.last}}.Insert(t, db, o, id)
			got, err := o.History(t.Context(), store.Ref{ID: id}, today-2, today)
			require.NoError(t, err)
			require.Len(t, got, of.points, "case %d: a point without any count must not exist", n)
			if of.points == 3 {
				require.Equal(t, of.shownInBetween, got[1].Counts, "case %d", n)
				require.Equal(t, of.engagement, got[1].Engagement(), "case %d", n)
			}
			require.Equal(t, of.last.Engagement(), got[0].Engagement(), "case %d", n)
		}
	})
}

func TestHistory_distinguishesUnknownVideosFromVideosWithoutPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		got, err := o.History(t.Context(), store.Ref{Link: l}, storetest.Today(db)-30, storetest.Today(db))
		require.NoError(t, err)
		require.Equal(t, []store.Point{}, got)
		_, err = o.History(t.Context(), store.Ref{Link: storetest.VideoLink(t, 2)}, storetest.Today(db)-30, storetest.Today(db))
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, storetest.VideoLink(t, 2).Canonical)
	})
}

func TestEngagement_isTheSumOfTheKnownCounts(t *testing.T) {
	t.Parallel()
	require.Nil(t, store.Counts{Views: new(int64(5))}.Engagement(), "views must not count as engagement")
	require.EqualValues(t, 0, *store.Counts{Likes: new(int64(0))}.Engagement())
	require.EqualValues(t, 1111, *store.Counts{Views: new(int64(5)), Likes: new(int64(1)), Comments: new(int64(10)), Shares: new(int64(100)), Bookmarks: new(int64(1000))}.Engagement())
	require.EqualValues(t, 101, *store.Counts{Likes: new(int64(1)), Shares: new(int64(100))}.Engagement())
}
