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

func TestAcknowledge_runsAsManyStatementsForManyOrganisationsAsForTwo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const videos, authors = 20, 5
		statements := func(orgs, from int) int {
			links := make([]link.Link, videos)
			for i := range links {
				links[i] = storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@author%d/video/73012345678%08d", i%authors, from+i))
			}
			for range orgs {
				_, err := storetest.NewOrg(t, db).Track(t.Context(), store.TrackRequest{Links: links, Immediate: videos, Enqueue: videos})
				require.NoError(t, err)
			}
			write := func(views int64) int {
				db.Clock.Advance(time.Hour)
				at := store.InstantOf(db.Clock.Now())
				outcomes := make([]ingest.Outcome, videos)
				for i, l := range links {
					outcomes[i] = ingest.Outcome{Source: "test", State: "active", NextAt: at, Target: queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: l.ID},
						Facts: &ingest.VideoFacts{Views: new(views + int64(i)), Username: new(fmt.Sprintf("author%d", i%authors))}}
				}
				db.Guard.Statements()
				require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, at, outcomes))
				return len(db.Guard.Statements())
			}
			write(100) // the first write also creates the authors' accounts
			return write(200)
		}
		few := statements(2, 0) // two organisations, because a write for a single organisation runs one statement fewer
		many := statements(20, 1000)
		require.Equal(t, few, many)
		require.LessOrEqual(t, many, 20)
	})
}
