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

// TestAcknowledge_allocatesFewObjectsForEachVideo counts the objects that a batch allocates. It opens the database without Options.Inspect, because
// the inspection of statements allocates many objects.
//
//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestAcknowledge_allocatesFewObjectsForEachVideo(t *testing.T) {
	const videos, authors = 1000, 20
	for engine, most := range map[string]float64{"sqlite": 185, "postgres": 170} {
		db := storetest.New(t, engine)
		plain, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, plain.Close()) })
		writer := ingest.New(plain)
		links := make([]link.Link, videos)
		for i := range links {
			links[i] = storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@author%d/video/73012345678%08d", i%authors, i))
		}
		storetest.Track(t, storetest.NewOrg(t, db), links...)
		views := int64(1)
		outcomes := make([]ingest.Outcome, videos)
		write := func() {
			views++
			db.Clock.Advance(time.Minute)
			at := store.InstantOf(db.Clock.Now())
			for i, l := range links {
				outcomes[i] = ingest.Outcome{Source: "test", State: "active", NextAt: at, Target: queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: l.ID},
					Facts: &ingest.VideoFacts{Views: new(views * int64(i)), Likes: &views, Username: new(fmt.Sprintf("author%d", i%authors))}}
			}
			if err := writer.Acknowledge(t.Context(), queue.Claim{}, at, outcomes); err != nil {
				t.Fatal(err)
			}
		}
		write() // the first write also creates the accounts of the authors
		objects := testing.AllocsPerRun(5, write) / videos
		t.Logf("%s: %.1f objects for each video", engine, objects)
		require.LessOrEqual(t, objects, most, engine)
	}
}
