package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// countBatchStatements tracks new videos for some organisations, and stores answers for the videos
// twice. It returns the number of statements of the second write.
func countBatchStatements(t *testing.T, db *storetest.DB, orgs, firstVideo, videos int) int {
	t.Helper()
	const authors = 5
	links := make([]link.Link, videos)
	for i := range links {
		links[i] = storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@author%d/video/73012345678%08d", i%authors, firstVideo+i))
	}
	for range orgs {
		_, err := storetest.NewOrg(t, db).Track(t.Context(), store.TrackRequest{Links: links, Immediate: videos})
		require.NoError(t, err)
	}
	write := func(views int64) int {
		db.Clock.Advance(time.Hour)
		at := store.InstantOf(db.Clock.Now())
		outcomes := make([]ingest.Outcome, videos)
		for i, l := range links {
			outcomes[i] = ingest.Outcome{Source: "test", State: "active", NextAt: at, Target: queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: l.ID},
				Facts: &ingest.VideoFacts{Views: new(views + int64(i)), Username: new(fmt.Sprintf("author%d", i%authors)), Title: new(fmt.Sprintf("#day%d", views))}}
		}
		db.Guard.Statements()
		require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, at, outcomes))
		return len(db.Guard.Statements())
	}
	write(100) // the first write also creates the authors' accounts
	return write(200)
}

func TestAcknowledge_runsEachStatementAtMostOnceForEachOrganisation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		few := countBatchStatements(t, db, 2, 0, 20) // at least two organisations, because a write for a single one runs fewer statements: it needs no statement that locks several rows
		many := countBatchStatements(t, db, 20, 1000, 20)
		if db.Engine == "citus" {
			require.LessOrEqual(t, many, 10*few, "on Citus, each statement must run at most once for each of the 20 organisations")
			return
		}
		// Each of the 18 additional organisations needs one more statement, which deletes the hashtags of changed titles.
		require.Equal(t, few+18, many)
		require.LessOrEqual(t, few, 19)
	})
}

func TestAcknowledge_runsTheSameStatementsForEveryBatchSize(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		few := countBatchStatements(t, db, 1, 0, 50)
		many := countBatchStatements(t, db, 1, 1000, 2000)
		if db.Engine == "citus" {
			many -= 2 // the larger batch needs one more INSERT for the points, and one more for the hashtags
		}
		require.Equal(t, few, many)
		require.LessOrEqual(t, many, 18, "a write must run at most 18 statements; one of them reads which organisations record events")
		if db.Engine != "sqlite" {
			var transactions int
			require.NoError(t, db.Raw(t).QueryRowContext(t.Context(), `SELECT COUNT(DISTINCT x) FROM (
SELECT xmin::text AS x FROM videos WHERE latest_views >= 200 UNION ALL SELECT xmin::text FROM snapshots_daily WHERE views >= 200
UNION ALL SELECT xmin::text FROM fetch_targets WHERE views >= 200 UNION ALL SELECT xmin::text FROM video_hashtags WHERE tag = 'day200') w`).Scan(&transactions))
			require.Equal(t, 2, transactions, "each of the two batches must be one transaction")
		}
	})
}
