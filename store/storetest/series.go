package storetest

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Series contains the stored points of a video: the daily points and the weekly points.
type Series struct {
	Daily, Weekly map[store.Date]store.Counts
}

// WithoutProvenance returns copies of the points without source, fetch time and quality. Only the quality "interpolated" is kept.
func WithoutProvenance(points []store.Point) []store.Point {
	out := slices.Clone(points)
	for i := range out {
		interpolated := out[i].Quality == store.QualityInterpolated
		if out[i].Provenance = (store.Provenance{}); interpolated {
			out[i].Quality = store.QualityInterpolated
		}
	}
	return out
}

// CreatePartitions creates the monthly partitions for the given number of past days. It calls
// Acknowledge with a result from each of these months, for a video that no organisation tracks.
func CreatePartitions(t *testing.T, db *DB, days int) {
	t.Helper()
	untracked := Outcome(db, queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: "0"}, Views(1))
	for d := 0; d < days+28; d += 28 { // no month is shorter than 28 days
		at := store.InstantOf(db.Clock.Now().AddDate(0, 0, -min(d, days)))
		require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, at, []ingest.Outcome{untracked}))
	}
}

// Insert writes the points of the series directly to the tables of daily and weekly points, as points of the given video.
func (s Series) Insert(t *testing.T, db *DB, o *store.Org, video uuid.UUID) {
	t.Helper()
	for table, points := range map[string]map[store.Date]store.Counts{"snapshots_daily": s.Daily, "snapshots_weekly": s.Weekly} {
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

// MergeCounts returns c with each nil count replaced by the count of the same metric in fallback.
func MergeCounts(c, fallback store.Counts) store.Counts {
	return store.Counts{Views: cmp.Or(c.Views, fallback.Views), Likes: cmp.Or(c.Likes, fallback.Likes), Comments: cmp.Or(c.Comments, fallback.Comments),
		Shares: cmp.Or(c.Shares, fallback.Shares), Bookmarks: cmp.Or(c.Bookmarks, fallback.Bookmarks)}
}

// Points returns a map from days to the points of both tables. If a day is in both tables, its point has the counts of both.
func (s Series) Points() map[store.Date]store.Counts {
	known := map[store.Date]store.Counts{}
	maps.Copy(known, s.Weekly)
	for day, c := range s.Daily {
		known[day] = MergeCounts(c, s.Weekly[day])
	}
	return known
}

// ExpectedHistory computes the points that Org.History must return for the series. It uses a simple algorithm that processes one day after the
// other.
func (s Series) ExpectedHistory(from, to store.Date) []store.Point {
	known, before := s.Points(), map[store.Date]store.Counts{}
	days := slices.Sorted(maps.Keys(known))
	for i := 1; i < len(days); i++ {
		before[days[i]] = MergeCounts(known[days[i-1]], before[days[i-1]])
	}
	out := []store.Point{}
	for day := to; day >= from; day-- {
		next, _ := slices.BinarySearch(days, day)
		if c, ok := known[day]; ok {
			p := store.Point{Day: day, Counts: c, Provenance: store.Provenance{Quality: store.QualityMeasured, Source: new("test"), FetchedAt: new(store.Instant(0))}}
			if isLower(c, before[day]) {
				p.Quality = store.QualityCorrected
			}
			out = append(out, p)
			continue
		}
		if next == 0 || next == len(days) {
			continue
		}
		earlier, later := days[next-1], days[next]
		interpolate := func(before, after *int64) *int64 {
			if before == nil || after == nil {
				return nil
			}
			n := new(big.Int).Sub(big.NewInt(*after), big.NewInt(*before))
			n.Mul(n, big.NewInt(int64(day-earlier))).Quo(n, big.NewInt(int64(later-earlier)))
			return new(n.Int64() + *before)
		}
		countsBefore, countsAfter := known[earlier], known[later]
		p := store.Point{Day: day, Provenance: store.Provenance{Quality: store.QualityInterpolated}, Counts: store.Counts{Views: interpolate(countsBefore.Views, countsAfter.Views), Likes: interpolate(countsBefore.Likes, countsAfter.Likes),
			Comments: interpolate(countsBefore.Comments, countsAfter.Comments), Shares: interpolate(countsBefore.Shares, countsAfter.Shares), Bookmarks: interpolate(countsBefore.Bookmarks, countsAfter.Bookmarks)}}
		p.EngagementUnknown = (countsBefore.Likes == nil) != (countsAfter.Likes == nil) || (countsBefore.Comments == nil) != (countsAfter.Comments == nil) ||
			(countsBefore.Shares == nil) != (countsAfter.Shares == nil) || (countsBefore.Bookmarks == nil) != (countsAfter.Bookmarks == nil)
		if p.Counts != (store.Counts{}) {
			out = append(out, p)
		}
	}
	return out
}

// isLower returns true if at least one count in current is lower than the count of the same metric in previous.
func isLower(current, previous store.Counts) bool {
	values := func(c store.Counts) []*int64 { return []*int64{c.Views, c.Likes, c.Comments, c.Shares, c.Bookmarks} }
	for i, n := range values(current) {
		if b := values(previous)[i]; n != nil && b != nil && *n < *b {
			return true
		}
	}
	return false
}

// RetainedPart returns the series that retention must keep: the daily points since firstDaily, and
// one point for each earlier week. It omits weekly points before firstWeekly.
func (s Series) RetainedPart(firstDaily, firstWeekly store.Date) Series {
	kept := Series{Daily: map[store.Date]store.Counts{}, Weekly: map[store.Date]store.Counts{}}
	last, known := map[store.Date]store.Date{}, s.Points() // maps a week to its last day that has a point
	for day, c := range s.Daily {
		if day >= firstDaily {
			kept.Daily[day] = c
		}
	}
	for day := range known {
		if _, stays := kept.Daily[day]; !stays {
			last[day.Week()] = max(last[day.Week()], day)
		}
	}
	for week, day := range last {
		if day < firstWeekly {
			continue
		}
		// The weekly point has the last known value of each count in the week.
		for d := week; d <= day; d++ {
			kept.Weekly[day] = MergeCounts(known[d], kept.Weekly[day])
		}
	}
	return kept
}

// WeekWhoseSundayLacksViews returns the Monday and the counts of a week about 150 days ago. Its Sunday has
// likes but no views. If `cut` is true, the week contains days of two months.
func WeekWhoseSundayLacksViews(db *DB, cut bool) (monday store.Date, days map[store.Date]store.Counts) {
	monday = (Today(db) - 150).Week()
	for ((monday + 6).Time().Day() < 7) != cut {
		monday -= 7
	}
	days = map[store.Date]store.Counts{monday + 6: {Likes: new(int64(70))}}
	for n := range store.Date(6) {
		days[monday+n] = store.Counts{Views: new(1000 + 100*int64(n)), Likes: new(int64(n))}
	}
	return monday, days
}
