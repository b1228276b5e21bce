package store_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestListVideos_runsAtMostFourStatementsForAnyPage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for first := 0; first < 1500; first += 500 {
			storetest.Track(t, o, storetest.VideoLinksFrom(t, first, 500)...)
		}
		_, err := o.CreateCollection(t.Context(), store.NewCollection{Name: "Launch", Access: store.AccessPrivate})
		require.NoError(t, err)
		for range 2 { // the cache has all labels only after the second call
			storetest.ListVideos(t, o, storetest.OrderedBy("created_at", true))
		}
		for name, c := range map[string]struct {
			window     store.Window
			statements int
		}{
			"a short page":                  {store.Window{Limit: 1}, 2}, // one statement reads the version with the total, and one reads the rows
			"a long page":                   {store.Window{Limit: 1500}, 2},
			"a page far from the beginning": {store.Window{Offset: 700, Limit: 10}, 3},  // the third statement finds the position of the row before the page
			"a page near the end":           {store.Window{Offset: 1490, Limit: 10}, 4}, // the fourth statement reads the version again
			"a page beyond the end":         {store.Window{Offset: 1500, Limit: 10}, 1},
		} {
			db.Guard.Statements()
			_, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at", Descending: true}, Window: c.window})
			require.NoError(t, err)
			statements := db.Guard.Statements()
			require.Len(t, statements, c.statements, "%s: %q", name, statements)
		}
	})
}

func TestListVideos_isPlannedOnceForEachConnectionToPostgreSQL(t *testing.T) {
	t.Parallel()
	shared := storetest.New(t, "postgres")
	separator := map[bool]string{true: "&", false: "?"}[strings.Contains(shared.URL, "?")]
	s, err := store.Open(t.Context(), store.Options{URL: shared.URL + separator + "pool_max_conns=1", Now: shared.Clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	o := s.Org(storetest.NewOrg(t, shared).ID())
	storetest.Track(t, o, storetest.VideoLinksFrom(t, 0, 500)...)
	for range 20 {
		for _, limit := range []int{10, 100} {
			query := storetest.OrderedBy("latest_views", true)
			query.Window.Limit = limit
			_, err := o.ListVideos(t.Context(), query)
			require.NoError(t, err)
		}
	}
	// readRow returns the two values in the single row of a query. It uses the connection through which the
	// lists were read, because the pool has only one.
	readRow := func(query string) (values []string) {
		require.NoError(t, s.DB().EachRowOf(t.Context(), s.DB().StaticQuery(query).Select(nil, func(row *db.Values) error {
			values = []string{row.String(0), row.String(1)}
			return nil
		})))
		return values
	}
	require.Equal(t, []string{"40", "0"}, readRow(`SELECT CAST(generic_plans AS text), CAST(custom_plans AS text) FROM pg_prepared_statements
 WHERE statement LIKE 'SELECT videos.latest_views%'`), "all 40 executions must use the generic plan that the connection has kept")
	require.Equal(t, []string{"auto", "on"}, readRow("SELECT current_setting('plan_cache_mode'), current_setting('enable_sort')"), "other statements must be planned as usual")
}

// An Org must read the version before the data. Otherwise the data can change between the two
// reads, and the response has old data with a new ETag.
func TestOnVersion_readsTheVersionOnceBeforeAllOtherData(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		video := storetest.Track(t, o, storetest.VideoLinks(t, 3)...)[0].ID
		require.Equal(t, 3, storetest.Deliver(t, db, link.TikTok, storetest.Views(5)))
		for range 2 { // the cache has all labels only after the second call
			storetest.ListVideos(t, o, storetest.OrderedBy("created_at", true))
		}
		today := storetest.Today(db)
		for name, c := range map[string]struct {
			read       func(o *store.Org) error
			statements int
		}{
			"a list": {func(o *store.Org) error {
				_, err := o.ListVideos(t.Context(), storetest.OrderedBy("latest_views", true))
				return err
			}, 2},
			"a filtered list": {func(o *store.Org) error {
				query := storetest.OrderedBy("created_at", true)
				query.Platform = new(link.TikTok)
				_, err := o.ListVideos(t.Context(), query)
				return err
			}, 3}, // the third statement counts the rows
			// The statements read the version, the ids of the collections, and the order of their videos. There is no such collection, so no
			// fourth statement reads rows.
			"a list of the videos in a collection": {func(o *store.Org) error {
				query := storetest.OrderedBy("created_at", true)
				query.Collections = []string{"Launch"}
				_, err := o.ListVideos(t.Context(), query)
				return err
			}, 3},
			"a history that begins before the range": {func(o *store.Org) error {
				db.Clock.Advance(24 * time.Hour)
				_, err := o.History(t.Context(), store.Ref{ID: video}, today+1, today+1)
				return err
			}, 2},
			"a history that begins in the range": {func(o *store.Org) error {
				_, err := o.History(t.Context(), store.Ref{ID: video}, today-700, today)
				return err
			}, 3}, // one more statement reads the last point before the range
			"the organisation's history": {func(o *store.Org) error {
				_, err := o.OrganisationHistory(t.Context(), today-30, today)
				return err
			}, 2},
		} {
			var versions []store.Version
			db.Guard.Statements()
			require.NoError(t, c.read(o.OnVersion(func(v store.Version) { versions = append(versions, v) })), name)
			statements := db.Guard.Statements()
			require.Len(t, statements, c.statements, "%s: %q", name, statements)
			require.Contains(t, statements[0], "organisation_totals", name)
			require.NotContains(t, strings.Join(statements[1:], "\n"), "organisation_totals", name)
			now, err := o.Version(t.Context())
			require.NoError(t, err)
			require.Equal(t, []store.Version{now}, versions, name)
		}
		db.Guard.Statements()
		_, err := o.Video(t.Context(), store.Ref{ID: video})
		require.NoError(t, err)
		require.Len(t, db.Guard.Statements(), 2, "one statement must read the version, and another statement must read the video")
	})
}

func TestListVideos_cachesTheTotalOfAFilterUntilAChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinksFrom(t, 0, 3)...)
		storetest.Track(t, other, storetest.VideoLinksFrom(t, 0, 7)...)
		platforms := []link.Platform{link.TikTok, link.YouTube}
		list := func(o *store.Org, p *link.Platform) (total int64, statements int) {
			db.Guard.Statements()
			page, err := o.ListVideos(t.Context(), store.VideoQuery{Platform: p, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
			require.NoError(t, err)
			return page.Total, len(db.Guard.Statements())
		}
		total, first := list(o, &platforms[0])
		require.EqualValues(t, 3, total)
		total, again := list(o, &platforms[0])
		require.EqualValues(t, 3, total)
		require.Equal(t, first-1, again, "the second list must not count the rows again")

		platforms[0], platforms[1] = platforms[1], platforms[0]
		total, _ = list(o, &platforms[0])
		require.Zero(t, total, "a filter with another platform must not get the number that is cached for the first platform")
		total, _ = list(other, &platforms[1])
		require.EqualValues(t, 7, total, "the list must return the total of the other organisation")

		storetest.Track(t, o, storetest.VideoLinksFrom(t, 100, 2)...)
		total, _ = list(o, &platforms[1])
		require.EqualValues(t, 5, total)
		version, err := o.Version(t.Context())
		require.NoError(t, err)
		storetest.Track(t, o, storetest.VideoLinksFrom(t, 200, 1)...)
		total, _ = list(o.AtVersion(version), &platforms[1])
		require.EqualValues(t, 5, total, "a list at an older version must return the total of this older version")
		total, _ = list(o, &platforms[1])
		require.EqualValues(t, 6, total)
	})
}

//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestListVideos_allocatesLessThanOneObjectForEachRow(t *testing.T) {
	db := storetest.New(t, "postgres")
	o := storetest.NewOrg(t, db)
	for first := 0; first < 2000; first += 500 {
		storetest.Track(t, o, storetest.VideoLinksFrom(t, first, 500)...)
	}
	allocations := func(rows int) float64 {
		return testing.AllocsPerRun(20, func() {
			page, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: rows}})
			require.NoError(t, err)
			require.Len(t, page.Rows, rows)
		})
	}
	perRow := (allocations(2000) - allocations(200)) / 1800
	require.Less(t, perRow, 1.0)
	bytes := func(rows int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocations(rows)
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / 21 // 21 runs, because AllocsPerRun runs the function once before it counts 20 runs
	}
	bytesPerRow := (bytes(2000) - bytes(200)) / 1800
	require.Less(t, bytesPerRow, uint64(1000), "the memory for the rows must be allocated once")
	t.Logf("%.3f allocations and %d bytes for each row", perRow, bytesPerRow)
}

//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestHistory_allocatesNoAdditionalObjectsForLongerRanges(t *testing.T) {
	db := storetest.New(t, "postgres")
	o, today := storetest.NewOrg(t, db), storetest.Today(db)
	storetest.Track(t, o, storetest.VideoLink(t, 1))
	for _, day := range []store.Date{today - 700, today} {
		db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, likes, comments, shares, bookmarks, fetched_at, source)
SELECT organisation_id, id, ?, ?, 1000000, 20000, 3000, 400, 50, 1800000000000000, 'youtube' FROM videos`, day.Week(), day)
	}
	allocations := func(days int) float64 {
		return testing.AllocsPerRun(20, func() {
			points, err := o.History(t.Context(), store.Ref{Link: storetest.VideoLink(t, 1)}, today-store.Date(days)+1, today)
			require.NoError(t, err)
			require.Len(t, points, days)
		})
	}
	perDay := (allocations(690) - allocations(30)) / 660
	require.Less(t, perDay, 0.05)
	t.Logf("%.3f allocations for each day", perDay)
}
