package store_test

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// series is what is stored of a video: the points of days, and those of weeks.
type series struct {
	daily, weekly map[store.Date]store.Counts
}

// bare are points without what tells where they come from; only what nobody measured stays marked.
func bare(points []store.Point) []store.Point {
	out := slices.Clone(points)
	for i := range out {
		interpolated := out[i].Quality == store.QualityInterpolated
		if out[i].Provenance = (store.Provenance{}); interpolated {
			out[i].Quality = store.QualityInterpolated
		}
	}
	return out
}

// room makes sure that points of so many days ago can be stored.
func room(t *testing.T, db *storetest.DB, days int) {
	t.Helper()
	nobody := outcome(db, store.Target{Platform: link.TikTok, Kind: "video", ExternalID: "0"}, views(1))
	for d := 0; d <= days; d += 28 {
		require.NoError(t, db.Acknowledge(t.Context(), store.Claim{}, store.InstantOf(db.Clock.Now().AddDate(0, 0, -d)), []store.Outcome{nobody}))
	}
}

// keep stores a series past the store.
func (s series) keep(t *testing.T, db *storetest.DB, o *store.Org, video uuid.UUID) {
	t.Helper()
	for table, points := range map[string]map[store.Date]store.Counts{"snapshots_daily": s.daily, "snapshots_weekly": s.weekly} {
		if len(points) == 0 {
			continue
		}
		var args []any
		for day, c := range points {
			args = append(args, o.ID(), video, day, day.Week(), c.Views, c.Likes, c.Comments, c.Shares, c.Bookmarks)
		}
		row := "(?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 'test')"
		db.Exec(t, "INSERT INTO "+table+" (organisation_id, video_id, day, week, views, likes, comments, shares, bookmarks, fetched_at, source) VALUES "+
			row+strings.Repeat(", "+row, len(points)-1), args...)
	}
}

// over are counts, and where they are silent, those under them.
func over(c, under store.Counts) store.Counts {
	return store.Counts{Views: cmp.Or(c.Views, under.Views), Likes: cmp.Or(c.Likes, under.Likes), Comments: cmp.Or(c.Comments, under.Comments),
		Shares: cmp.Or(c.Shares, under.Shares), Bookmarks: cmp.Or(c.Bookmarks, under.Bookmarks)}
}

// points are those of both tables: a day that is in both counts once, with all that is known of it.
func (s series) points() map[store.Date]store.Counts {
	known := map[store.Date]store.Counts{}
	maps.Copy(known, s.weekly)
	for day, c := range s.daily {
		known[day] = over(c, s.weekly[day])
	}
	return known
}

// read is the plain reading of the rules, one day after the other.
func (s series) read(from, to store.Date) []store.Point {
	known, before := s.points(), map[store.Date]store.Counts{}
	days := slices.Sorted(maps.Keys(known))
	for i := 1; i < len(days); i++ {
		before[days[i]] = over(known[days[i-1]], before[days[i-1]])
	}
	out := []store.Point{}
	for day := to; day >= from; day-- {
		later, _ := slices.BinarySearch(days, day)
		if c, ok := known[day]; ok {
			p := store.Point{Day: day, Counts: c, Provenance: store.Provenance{Quality: store.QualityMeasured, Source: new("test"), FetchedAt: new(store.Instant(0))}}
			if lower(c, before[day]) {
				p.Quality = store.QualityCorrected
			}
			out = append(out, p)
			continue
		}
		if later == 0 || later == len(days) {
			continue
		}
		a, b := days[later-1], days[later]
		line := func(x, y *int64) *int64 {
			if x == nil || y == nil {
				return nil
			}
			n := new(big.Int).Sub(big.NewInt(*y), big.NewInt(*x))
			n.Mul(n, big.NewInt(int64(day-a))).Quo(n, big.NewInt(int64(b-a)))
			return new(n.Int64() + *x)
		}
		ca, cb := known[a], known[b]
		out = append(out, store.Point{Day: day, Provenance: store.Provenance{Quality: store.QualityInterpolated}, Counts: store.Counts{Views: line(ca.Views, cb.Views), Likes: line(ca.Likes, cb.Likes),
			Comments: line(ca.Comments, cb.Comments), Shares: line(ca.Shares, cb.Shares), Bookmarks: line(ca.Bookmarks, cb.Bookmarks)}})
	}
	return out
}

// lower says whether some count fell.
func lower(now, before store.Counts) bool {
	values := func(c store.Counts) []*int64 { return []*int64{c.Views, c.Likes, c.Comments, c.Shares, c.Bookmarks} }
	for i, n := range values(now) {
		if b := values(before)[i]; n != nil && b != nil && *n < *b {
			return true
		}
	}
	return false
}

// drawSeries draws a past of up to two years: mostly growing, with gaps, falls and silence.
func drawSeries(t *rapid.T, today store.Date) series {
	s := series{daily: map[store.Date]store.Counts{}, weekly: map[store.Date]store.Counts{}}
	base := rapid.SampledFrom([]int64{0, 1000, 9_000_000_000_000_000_000}).Draw(t, "base")
	count := func(name string) *int64 {
		base += rapid.Int64Range(-50, 500).Draw(t, name)
		base = max(base, 0)
		if rapid.IntRange(0, 9).Draw(t, name+" is silent") == 0 {
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
		rolledUp := ago > store.DailyDays && !weeks[day.Week()]
		if rolledUp {
			s.weekly[day], weeks[day.Week()] = point(), true
		}
		// Between the roll-up and the drop of a month, a point is there as both.
		if !rolledUp || rapid.IntRange(0, 9).Draw(t, "not dropped yet") == 0 {
			s.daily[day] = point()
		}
	}
	return s
}

// Spec: 2.4-02, 4.2-27
func TestHistory_isWhatItsPlainReadingSays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Clock.Set(time.Date(2024, 6, 15, 12, 0, 0, 0, time.UTC)) // 29 February lies among the days that are interpolated
		room(t, db, 800)
		o, today, next := newOrg(t, db), today(db), 0
		rapid.Check(t, func(rt *rapid.T) {
			l := clip(t, next)
			next++
			id := track(t, o, l)[0].VideoID
			s := drawSeries(rt, today)
			s.keep(t, db, o, id)
			day := func(name string) store.Date { return today - store.Date(rapid.IntRange(-2, 760).Draw(rt, name)) }
			ranges := [][2]store.Date{{today - 730, today}, {today - 100, today - 80}, {today - 90, today}, {day("from"), day("to")}}
			if at := slices.Sorted(maps.Keys(s.weekly)); len(at) > 0 {
				ranges = append(ranges, [2]store.Date{at[0] + 1, at[0] + 1}) // a single day between two points
			}
			if at := slices.Sorted(maps.Keys(s.points())); len(at) > 0 {
				day := rapid.SampledFrom(at).Draw(rt, "day of a point")
				ranges = append(ranges, [2]store.Date{day, day}, [2]store.Date{day, today})
			}
			for _, r := range ranges {
				got, err := o.History(t.Context(), store.VideoRef{ID: id}, r[0], r[1])
				require.NoError(rt, err)
				require.Equal(rt, s.read(r[0], r[1]), got, "%s to %s", r[0], r[1])
			}
		})
	})
}

// Spec: 4.2-27
func TestHistory_interpolatesWhatLiesBetweenTwoPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		room(t, db, 120)
		o, l, today := newOrg(t, db), clip(t, 1), today(db)
		id := track(t, o, l)[0].VideoID
		at := func(n int64) store.Counts { return store.Counts{Views: &n} }
		series{daily: map[store.Date]store.Counts{today - 3: at(110), today - 6: at(107)}, weekly: map[store.Date]store.Counts{today - 30: at(100)}}.keep(t, db, o, id)
		between := func(day store.Date, n int64) store.Point {
			return store.Point{Day: day, Counts: at(n), Provenance: store.Provenance{Quality: store.QualityInterpolated}}
		}
		got, err := o.History(t.Context(), store.VideoRef{ID: id}, today-7, today)
		require.NoError(t, err)
		require.Equal(t, []store.Point{{Day: today - 3, Counts: at(110)}, between(today-4, 109), between(today-5, 108), {Day: today - 6, Counts: at(107)}, between(today-7, 106)},
			bare(got), "and none after the last point")
		for _, day := range []store.Date{today - 7, today - 18, today - 29} {
			got, err = o.History(t.Context(), store.VideoRef{ID: id}, day, day)
			require.NoError(t, err)
			require.Equal(t, []store.Point{between(day, 107-7*int64(today-6-day)/24-min(1, 7*int64(today-6-day)%24))}, got, "its neighbours lie far outside of the range")
		}
		got, err = o.History(t.Context(), store.VideoRef{ID: id}, today-40, today-31)
		require.NoError(t, err)
		require.Empty(t, got, "none before the first point")
	})
}

// A count that another source did not give, or that was hidden for a time, is compared with what it was before.
func TestHistory_comparesWithWhatWasKnownLast(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		room(t, db, 200)
		o, today := newOrg(t, db), today(db)
		likes := func(n int64) store.Counts { return store.Counts{Likes: &n} }
		at := func(views, likes int64) store.Counts { return store.Counts{Views: &views, Likes: &likes} }
		for n, s := range []series{
			{daily: map[store.Date]store.Counts{today - 2: at(1000, 5), today - 1: likes(6), today: at(900, 7)}},
			{daily: map[store.Date]store.Counts{today - 60: at(1000, 5), today - 20: likes(6), today - 1: likes(7), today: at(900, 8)}},
			{daily: map[store.Date]store.Counts{today - 60: likes(6), today: at(900, 8)}, weekly: map[store.Date]store.Counts{today - 150: at(1000, 5), today - 120: likes(5)}},
		} {
			id := track(t, o, clip(t, n))[0].VideoID
			s.keep(t, db, o, id)
			for _, days := range []store.Date{0, 1, 2, 19, 100, 200} {
				got, err := o.History(t.Context(), store.VideoRef{ID: id}, today-days, today)
				require.NoError(t, err)
				require.Equal(t, store.QualityCorrected, got[0].Quality, "case %d, as read from %d days ago", n, days)
				require.NotContains(t, qualities(got[1:]), store.QualityCorrected, "case %d", n)
			}
			exported, err := o.Export(t.Context(), store.ExportQuery{From: today, To: today, Limit: 10})
			require.NoError(t, err)
			require.Equal(t, store.QualityCorrected, exported[n].Points[0].Quality)
		}
	})
}

func qualities(points []store.Point) []store.Quality {
	var out []store.Quality
	for _, p := range points {
		out = append(out, p.Quality)
	}
	return out
}

func TestHistory_neverFallsBetweenTwoPointsThatRise(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, today, next := newOrg(t, db), today(db), 0
		rapid.Check(t, func(rt *rapid.T) {
			l := clip(t, next)
			next++
			id := track(t, o, l)[0].VideoID
			first, last := today-130, today-130+store.Date(rapid.IntRange(7, 38).Draw(rt, "days apart"))
			low := rapid.Int64Range(0, 9e18).Draw(rt, "first")
			high := low + rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 9e18-low)).Draw(rt, "growth")
			series{weekly: map[store.Date]store.Counts{first: {Views: &low}, last: {Views: &high}}}.keep(t, db, o, id)
			got, err := o.History(t.Context(), store.VideoRef{ID: id}, first, last)
			require.NoError(rt, err)
			require.Len(rt, got, int(last-first)+1)
			for i := 1; i < len(got); i++ {
				require.LessOrEqual(rt, *got[i].Views, *got[i-1].Views, "%s", got[i].Day)
			}
		})
	})
}

func TestHistory_tellsAnUnknownVideoFromOneWithoutPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		got, err := o.History(t.Context(), store.VideoRef{Link: l}, today(db)-30, today(db))
		require.NoError(t, err)
		require.Equal(t, []store.Point{}, got)
		_, err = o.History(t.Context(), store.VideoRef{Link: clip(t, 2)}, today(db)-30, today(db))
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, clip(t, 2).Canonical)
	})
}

func TestEngagement_isTheSumOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	require.Nil(t, store.Counts{Views: new(int64(5))}.Engagement(), "views are no engagement")
	require.EqualValues(t, 0, *store.Counts{Likes: new(int64(0))}.Engagement())
	require.EqualValues(t, 1111, *store.Counts{Views: new(int64(5)), Likes: new(int64(1)), Comments: new(int64(10)), Shares: new(int64(100)), Bookmarks: new(int64(1000))}.Engagement())
	require.EqualValues(t, 101, *store.Counts{Likes: new(int64(1)), Shares: new(int64(100))}.Engagement())
}
