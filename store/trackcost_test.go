package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestTrack_allocatesFewObjectsForEachLink counts the objects that a request with new links allocates. The database of this test does not
// check its statements, because such checks allocate many objects.
//
//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestTrack_allocatesFewObjectsForEachLink(t *testing.T) {
	const links = 500
	for engine, most := range map[string]float64{"sqlite": 90, "postgres": 80} {
		db := storetest.New(t, engine)
		plain, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, plain.Close()) })
		o, first := plain.Org(storetest.NewOrg(t, db).ID()), 0
		requests := make([]store.TrackRequest, 7)
		for i := range requests {
			requests[i] = store.TrackRequest{Links: storetest.VideoLinksFrom(t, i*links, links), Immediate: links}
		}
		track := func() {
			if _, err := o.Track(t.Context(), requests[first]); err != nil {
				t.Fatal(err)
			}
			first++
		}
		track()
		objects := testing.AllocsPerRun(5, track) / links // AllocsPerRun calls the function "track" six times
		t.Logf("%s: %.1f objects for each link", engine, objects)
		require.LessOrEqual(t, objects, most, engine)
	}
}
