package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
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

// Requirements in docs/coverage.md: 11.6-05
func TestAccountGain_isTheChangeOfTheHistoryOfTheAccountInSevenDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, links := storetest.NewOrg(t, db), storetest.VideoLinks(t, 3)
		storetest.Track(t, o, links[:2]...)
		views := []int64{1000, 200, 5000}
		fetch := func(gains ...int64) *int64 {
			t.Helper()
			facts := map[link.Link]ingest.VideoFacts{}
			for i, n := range gains {
				views[i] += n
				facts[links[i]] = storetest.Views(views[i])
			}
			storetest.Measure(t, db, db.Clock.Now(), facts)
			return storetest.AccountOf(t, o, links[0]).ViewsGained7d
		}
		// changeOfHistory is the difference between the views of the account today and seven days ago, as its history gives them.
		changeOfHistory := func() int64 {
			t.Helper()
			today := storetest.Today(db)
			points, err := o.AccountHistory(t.Context(), store.Ref{ID: storetest.AccountOf(t, o, links[0]).ID}, today-7, today)
			require.NoError(t, err)
			return *points[0].Views - *points[len(points)-1].Views
		}
		for day := range int64(7) {
			require.Nil(t, fetch(10*day, -day), "on day %d, the views of seven days before are not known", day)
			db.Clock.Advance(24 * time.Hour)
		}
		require.Equal(t, new(changeOfHistory()+7), fetch(0, 7))
		require.Equal(t, new(int64(210-21+7)), fetch())
		for day := range int64(3) {
			db.Clock.Advance(24 * time.Hour)
			require.Equal(t, fetch(-100*day), new(changeOfHistory()))
		}

		storetest.Track(t, o, links[2])
		before := storetest.AccountOf(t, o, links[0]).ViewsGained7d
		require.Equal(t, before, fetch(0, 0, 0), "the first views of a video are no gain")
		require.Equal(t, *before, changeOfHistory()-5000)
		require.Equal(t, before, fetch(0, 0, 70), "as for the organisation, a later fetch of the first day replaces the first views")
		db.Clock.Advance(24 * time.Hour)
		gained := fetch(0, 0, 400)
		require.Equal(t, new(changeOfHistory()-5070), gained)

		storetest.StopVideos(t, o, links[2])
		require.Equal(t, gained, storetest.AccountOf(t, o, links[0]).ViewsGained7d, "a stopped video does not take back what it has gained")
		storetest.StopVideos(t, o, links[:2]...)
		require.Equal(t, gained, storetest.AccountOf(t, o, links[0]).ViewsGained7d)
		db.Clock.Advance(20 * 24 * time.Hour)
		storetest.Track(t, o, links[0])
		require.Equal(t, new(int64(0)), storetest.AccountOf(t, o, links[0]).ViewsGained7d, "no video gained views in the seven days before today")
		require.Equal(t, new(int64(33)), fetch(33), "as for a video, the gain begins with the last known views that are at least seven days old")
	})
}

// If an answer from before midnight is stored after an answer of the next day, the history of the account counts the gain of the late answer on the
// next day.
func TestAccountGain_keepsThePeriodIfAnAnswerIsStoredLate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, links := storetest.NewOrg(t, db), storetest.VideoLinks(t, 2)
		storetest.Track(t, o, links...)
		gained := func(at time.Time, facts map[link.Link]ingest.VideoFacts) *int64 {
			storetest.Measure(t, db, at, facts)
			return storetest.AccountOf(t, o, links[0]).ViewsGained7d
		}
		for day := range int64(8) { // the last fetch is on day 7
			gained(db.Clock.Now(), map[link.Link]ingest.VideoFacts{links[0]: storetest.Views(100 + day), links[1]: storetest.Views(500)})
			db.Clock.Advance(24 * time.Hour)
		}
		yesterday := db.Clock.Now().Add(-24 * time.Hour)
		require.Equal(t, new(int64(9-1)), gained(db.Clock.Now(), map[link.Link]ingest.VideoFacts{links[0]: storetest.Views(109)}))
		require.Equal(t, new(int64(9-1+30)), gained(yesterday.Add(time.Hour), map[link.Link]ingest.VideoFacts{links[1]: storetest.Views(530)}))
		require.Equal(t, new(int64(9-1+40)), gained(db.Clock.Now(), map[link.Link]ingest.VideoFacts{links[1]: storetest.Views(540)}))
	})
}

// Rows that an earlier release wrote have no gained views. The gain of an older account is known seven days after its first fetch with this release.
func TestAccountGain_beginsWithTheFirstFetchAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, other := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)
		storetest.Track(t, o, l, other)
		fetch := func(views int64) *int64 {
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(views), other: {Likes: new(int64(1))}})
			return storetest.AccountOf(t, o, l).ViewsGained7d
		}
		for day := range int64(10) {
			fetch(day)
			db.Clock.Advance(24 * time.Hour)
		}
		db.Exec(t, "UPDATE account_days SET views_gained = NULL")
		db.Exec(t, "UPDATE accounts SET views_gained = NULL, views_gained_7d = NULL")
		for day := range int64(7) {
			require.Nil(t, fetch(100+day), "day %d", day)
			if day == 3 { // an imported older point must not make the sum of gained views begin earlier
				_, err := backfill.Import(t.Context(), o, []backfill.ImportVideo{{Link: other, Points: []backfill.Point{
					{At: store.InstantOf(db.Clock.Now().AddDate(0, 0, -30)), Counts: store.Counts{Views: new(int64(7))}}}}}, false)
				require.NoError(t, err)
			}
			db.Clock.Advance(24 * time.Hour)
		}
		require.Equal(t, new(int64(150-100)), fetch(150))
	})
}
