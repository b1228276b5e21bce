package store_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// Like the collectors, the test stores the points of all videos day by day. So the points of one
// video are far apart in the tables.
func TestHistory_readsFewDatabasePagesForARangeOf730Days(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	storetest.CreatePartitions(t, db, 130)
	o, today := storetest.NewOrg(t, db), storetest.Today(db)
	storetest.Track(t, o, storetest.VideoLinksFrom(t, 0, 400)...)
	db.Exec(t, `INSERT INTO snapshots_daily (organisation_id, video_id, day, week, views, likes, comments, shares, bookmarks, fetched_at, source)
SELECT v.organisation_id, v.id, d.day, date_trunc('week', d.day)::date, 1000000, 20000, 3000, 400, 50, 1800000000000000, 'youtube'
 FROM (SELECT generate_series(CAST(? AS date) - 90, CAST(? AS date), '1 day')::date AS day) d CROSS JOIN videos v ORDER BY d.day, v.external_id`, today, today)
	db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, likes, comments, shares, bookmarks, fetched_at, source)
SELECT v.organisation_id, v.id, w.week, w.week + 6, 1000000, 20000, 3000, 400, 50, 1800000000000000, 'youtube'
 FROM (SELECT generate_series(date_trunc('week', CAST(? AS date) - 744), CAST(? AS date) - 97, '7 days')::date AS week) w CROSS JOIN videos v ORDER BY w.week, v.external_id`, today, today)
	_, err := o.History(t.Context(), store.Ref{Link: storetest.VideoLink(t, 7)}, today-730, today)
	require.NoError(t, err)
	var reading []string
	for _, statement := range db.Guard.Statements() {
		if strings.Contains(statement, "snapshots_") && strings.HasPrefix(statement, "SELECT") {
			reading = append(reading, statement)
		}
	}
	require.Len(t, reading, 1, "exactly one statement must read the points")
	id := storetest.VideoOf(t, o, storetest.VideoLink(t, 7)).ID
	// An index-only read needs pages that VACUUM has prepared. Another session can prevent VACUUM from
	// preparing a page, so VACUUM is repeated until the plan reads few pages.
	require.Eventually(t, func() bool {
		db.Exec(t, "VACUUM ANALYZE")
		rows, err := db.Raw(t).QueryContext(t.Context(), "EXPLAIN (ANALYZE, BUFFERS) "+reading[0], o.ID(), id, today-737, today+7)
		require.NoError(t, err)
		plan := lastColumn(t, rows, 1)
		pages := pageCountOfPlan(t, plan)
		t.Logf("%d pages: %s", pages, plan)
		return pages <= 24
	}, time.Minute, time.Second)
}

var usedPages = regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`)

// pageCountOfPlan returns how many pages a statement has read. It takes the number from the query plan of the statement.
func pageCountOfPlan(t *testing.T, plan string) int {
	t.Helper()
	found := usedPages.FindStringSubmatch(plan)
	require.NotNil(t, found, "%s", plan)
	hit, _ := strconv.Atoi(found[1])
	read, _ := strconv.Atoi(found[2])
	return hit + read
}
