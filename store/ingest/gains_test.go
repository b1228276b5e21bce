package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestOrganisationHistory_viewsOfTheFirstDayAreNoGain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, begin := storetest.NewOrg(t, db), storetest.Today(db)
		one, two := storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)
		fetch := func(l link.Link, facts ingest.VideoFacts) {
			t.Helper()
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: facts})
			db.Clock.Advance(time.Hour)
		}
		nextDay := func() { db.Clock.Advance(22 * time.Hour) } // two fetches a day take the other two hours
		storetest.Track(t, o, one)
		fetch(one, storetest.Views(100))
		fetch(one, storetest.Views(150)) // a later fetch of the first day
		nextDay()
		fetch(one, storetest.Views(150))
		fetch(one, storetest.Views(180))
		nextDay()
		storetest.Track(t, o, two)
		fetch(two, ingest.VideoFacts{Likes: new(int64(3))}) // the views are not known yet
		fetch(one, storetest.Views(170))
		nextDay()
		fetch(two, storetest.Views(5000))
		fetch(two, storetest.Views(6000))
		nextDay()
		storetest.StopVideos(t, o, one)
		fetch(two, storetest.Views(6000))
		fetch(two, storetest.Views(6500))
		nextDay()
		storetest.Track(t, o, one)
		fetch(one, storetest.Views(400))
		fetch(two, storetest.Views(6600))

		points, err := o.OrganisationHistory(t.Context(), begin, begin+9)
		require.NoError(t, err)
		gains := map[store.Date]*int64{}
		for _, p := range points {
			gains[p.Day-begin] = p.ViewsGained
		}
		require.Equal(t, map[store.Date]*int64{0: nil, 1: new(int64(30)), 2: new(int64(-10)), 3: new(int64(0)), 4: new(int64(500)), 5: new(int64(330))}, gains)
		points, err = o.OrganisationHistory(t.Context(), begin+4, begin+4)
		require.NoError(t, err)
		require.Len(t, points, 1, "the previous point must be read, but not returned")
		require.Equal(t, int64(500), *points[0].ViewsGained)
		require.Equal(t, []int64{150 + 6000}, storetest.Column[int64](t, db, "SELECT first_views FROM organisation_totals"))
	})
}
