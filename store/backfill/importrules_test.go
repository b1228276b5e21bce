package backfill_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestImport_recordsNoEvents imports a stopped video of an account with three other videos. After Import has added the video, the median of the
// account is 50.5 views. After Import has stopped the video, the median is 1 again, and a video with 100 views reaches the outlier thresholds.
func TestImport_recordsNoEvents(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, links := storetest.NewOrg(t, db), storetest.VideoLinks(t, 4)
		storetest.Track(t, o, links[:3]...)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{
			links[0]: storetest.Views(1), links[1]: storetest.Views(1), links[2]: storetest.Views(100)})
		_, _, err := o.OpenFeed(t.Context())
		require.NoError(t, err)

		in := importOf(links[3], viewsPoint(storetest.Today(db)-1, 100))
		in[0].Stopped = true
		importResults(t, o, in)
		require.True(t, storetest.VideoOf(t, o, links[3]).Removed)
		require.InDelta(t, 100, *storetest.VideoOf(t, o, links[2]).OutlierMultiplier, 0)
		list, err := o.ListEvents(t.Context(), store.EventQuery{Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Empty(t, list.Rows)
	})
}

// likesPoint returns a point that has a number of views and a number of likes.
func likesPoint(day store.Date, views, likes int64) backfill.Point {
	p := viewsPoint(day, views)
	p.Likes = &likes
	return p
}

func TestImport_keepsHiddenLikesHidden(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, begin := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Views: new(int64(100)), Likes: new(int64(10))}})
		db.Clock.Advance(2 * 24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Views: new(int64(120)), HiddenStats: new(true)}})
		db.Clock.Advance(2 * 24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Views: new(int64(140)), HiddenStats: new(true)}})
		require.Nil(t, storetest.VideoOf(t, o, l).Latest.Likes)

		importResults(t, o, importOf(l, likesPoint(begin-3, 40, 4), likesPoint(begin+1, 110, 11), likesPoint(begin+3, 130, 13)))
		v := storetest.VideoOf(t, o, l)
		require.True(t, v.HiddenStats)
		require.Nil(t, v.Latest.Likes)
		require.Nil(t, v.LatestEngagement)
		for table, id := range map[string]any{"organisation_days": o.ID(), "account_days": *v.LinkedAccountID} {
			column := map[string]string{"organisation_days": "organisation_id", "account_days": "account_id"}[table]
			likes := storetest.Column[int64](t, db, "SELECT COALESCE(likes, -1) FROM "+table+" WHERE organisation_id = ? AND "+column+" = ? ORDER BY day", o.ID(), id)
			require.Equal(t, []int64{4, 10, 11, -1, -1, -1}, likes, table)
		}
	})
}

func TestImport_doesNotMoveAVideoAwayFromItsAccountWithoutHandle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, today := storetest.NewOrg(t, db), storetest.Today(db)
		watch := storetest.ParseLink(t, "https://www.youtube.com/watch?v=dQw4w9WgXcQ")
		storetest.Track(t, o, watch)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{watch: storetest.FactsWithAuthor("UCLqxVugv74EIW3VWh2NOa3Q", "")})
		before := storetest.VideoOf(t, o, watch)
		require.NotNil(t, before.LinkedAccountID)
		require.Empty(t, before.Username)

		for n, in := range []backfill.ImportVideo{{Username: "rick"}, {AccountID: "UC38IQsAvIsxxjztdMZQtwHA", Username: "other"}} {
			in.Link, in.Points = watch, []backfill.Point{viewsPoint(today-9+store.Date(n), 20)}
			importResults(t, o, []backfill.ImportVideo{in})
			require.Equal(t, before.LinkedAccountID, storetest.VideoOf(t, o, watch).LinkedAccountID)
			require.Equal(t, []int64{1}, storetest.Column[int64](t, db, "SELECT total_videos_tracked FROM accounts"))
		}
	})
}

func TestImport_addsAPointOfTodayForVideosWithoutPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, _, _, begin := orgWithTwoVideos(t, db)
		db.Clock.Advance(24 * time.Hour)
		importResults(t, o, importOf(storetest.VideoLink(t, 3), viewsPoint(begin, 3)))
		require.Equal(t, []dayTotals{{begin, 3, 110}}, organisationTotals(t, db, o), "a video counts from the day of its first point")
		importResults(t, o, importOf(storetest.VideoLink(t, 4)))
		want := []dayTotals{{begin, 3, 110}, {begin + 1, 4, 110}}
		require.Equal(t, want, organisationTotals(t, db, o), "a video without points counts from today")
		importResults(t, o, importOf(storetest.VideoLink(t, 4)))
		require.Equal(t, want, organisationTotals(t, db, o))

		fresh := storetest.NewOrg(t, db)
		importResults(t, fresh, importOf(storetest.VideoLink(t, 4)))
		require.Empty(t, organisationTotals(t, db, fresh), "the history must begin with the first counts")
	})
}

func TestImport_countsTheTrackedVideosOnlyForTheFirstPoint(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite") // on PostgreSQL, the guard does not see the statements of an import
	o, today := storetest.NewOrg(t, db), storetest.Today(db)
	for _, step := range []struct {
		videos []backfill.ImportVideo
		counts int // number of statements that count all tracked videos or accounts
	}{
		{importOf(storetest.VideoLink(t, 1)), 0},
		{importOf(storetest.VideoLink(t, 2)), 0},
		{importOf(storetest.VideoLink(t, 3), viewsPoint(today, 3)), 2},
		{importOf(storetest.VideoLink(t, 4), viewsPoint(today, 4)), 0},
	} {
		db.Guard.Statements()
		importResults(t, o, step.videos)
		counts := 0
		for _, statement := range db.Guard.Statements() {
			counts += strings.Count(statement, "COUNT(*) AS n FROM")
		}
		require.Equal(t, step.counts, counts)
	}
	require.Equal(t, []dayTotals{{today, 4, 7}}, organisationTotals(t, db, o))
}
