package backfill_test

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

// dayTotals has the number of videos and the views of an account or organisation on one day.
type dayTotals struct {
	day    store.Date
	videos int64
	views  int64
}

// accountTotals returns the rows of account_days of the TikTok account with this handle, the oldest day first.
func accountTotals(t *testing.T, db *storetest.DB, o *store.Org, handle string) []dayTotals {
	t.Helper()
	account := storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@"+handle))
	return storedTotals(t, db, "account_days WHERE organisation_id = ? AND account_id = ?", o.ID(), account.ID)
}

// organisationTotals returns the rows of organisation_days of an organisation, the oldest day first.
func organisationTotals(t *testing.T, db *storetest.DB, o *store.Org) []dayTotals {
	t.Helper()
	return storedTotals(t, db, "organisation_days WHERE organisation_id = ?", o.ID())
}

// storedTotals returns the day, the number of videos and the views of each selected row, the oldest day first. tableAndCondition is the SQL text after
// FROM. Unknown views are -1.
func storedTotals(t *testing.T, db *storetest.DB, tableAndCondition string, args ...any) []dayTotals {
	t.Helper()
	days := storetest.Column[string](t, db, "SELECT CAST(day AS text) FROM "+tableAndCondition+" ORDER BY day", args...)
	videos := storetest.Column[int64](t, db, "SELECT videos FROM "+tableAndCondition+" ORDER BY day", args...)
	views := storetest.Column[int64](t, db, "SELECT COALESCE(views, -1) FROM "+tableAndCondition+" ORDER BY day", args...)
	totals := make([]dayTotals, len(days))
	for n := range days {
		day, err := store.ParseDate(days[n])
		require.NoError(t, err)
		totals[n] = dayTotals{day, videos[n], views[n]}
	}
	return totals
}

// orgWithTwoVideos returns an organisation that has just begun to track two videos of two accounts. The first video is of @one and has 100 views. The
// second video is of @two and has 7 views. The day begin is today.
func orgWithTwoVideos(t *testing.T, db *storetest.DB) (o *store.Org, first, second link.Link, begin store.Date) {
	t.Helper()
	o = storetest.NewOrg(t, db)
	first = storetest.ParseLink(t, "https://www.tiktok.com/@one/video/7301234500000000001")
	second = storetest.ParseLink(t, "https://www.tiktok.com/@two/video/7301234500000000002")
	begin = storetest.Today(db)
	storetest.Track(t, o, first, second)
	storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{first: storetest.Views(100), second: storetest.Views(7)})
	return o, first, second, begin
}

func TestImport_keepsTheDaysOnWhichTheAccountDidNotHaveTheVideo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, moved, other, begin := orgWithTwoVideos(t, db)
		db.Clock.Advance(2 * 24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{other: storetest.Views(8)})
		db.Clock.Advance(3 * 24 * time.Hour)
		facts := storetest.Views(150)
		facts.Username = new("two")
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{moved: facts})
		one := accountTotals(t, db, o, "one")
		require.Equal(t, []dayTotals{{begin, 1, 7}, {begin + 2, 1, 8}, {begin + 5, 2, 158}}, accountTotals(t, db, o, "two"))

		importResults(t, o, importOf(moved, viewsPoint(begin-3, 40), viewsPoint(begin+1, 120), viewsPoint(begin+3, 90)))
		require.Equal(t, []dayTotals{{begin, 1, 7}, {begin + 2, 1, 8}, {begin + 5, 2, 158}}, accountTotals(t, db, o, "two"))
		require.Equal(t, one, accountTotals(t, db, o, "one"))
		require.Equal(t, []dayTotals{{begin - 3, 1, 40}, {begin, 2, 107}, {begin + 1, 2, 127}, {begin + 2, 2, 128}, {begin + 3, 2, 98}, {begin + 5, 2, 158}},
			organisationTotals(t, db, o))

		db.Clock.Advance(2 * 24 * time.Hour)
		importResults(t, o, importOf(moved, viewsPoint(begin+6, 170)))
		require.Equal(t, []dayTotals{{begin, 1, 7}, {begin + 2, 1, 8}, {begin + 5, 2, 158}, {begin + 6, 2, 178}}, accountTotals(t, db, o, "two"))
	})
}

func TestImport_knowsNoGainsOfDaysBeforeTheFirstViewsWereStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, first, second, begin := orgWithTwoVideos(t, db)
		for _, old := range []string{"videos SET first_views = NULL", "organisation_days SET first_views = NULL", "organisation_totals SET first_views = 0"} {
			db.Exec(t, "UPDATE "+old) // as after the update of a database that has no first views
		}
		importResults(t, o, importOf(first, viewsPoint(begin-20, 40), viewsPoint(begin-10, 90)))
		importResults(t, o, importOf(second, viewsPoint(begin-15, 5)))
		points, err := o.OrganisationHistory(t.Context(), begin-30, begin)
		require.NoError(t, err)
		require.Len(t, points, 4)
		for _, p := range points {
			require.Nil(t, p.ViewsGained, p.Day-begin)
		}
	})
}

func TestImport_keepsTheDaysOnWhichTheVideoWasStopped(t *testing.T) {
	t.Parallel()
	for name, resume := range map[string]func(t *testing.T, db *storetest.DB, o *store.Org, l link.Link){
		"the link is tracked again": func(t *testing.T, _ *storetest.DB, o *store.Org, l link.Link) { storetest.Track(t, o, l) },
		"the account is tracked": func(t *testing.T, db *storetest.DB, o *store.Org, l link.Link) {
			db.Exec(t, "UPDATE videos SET direct = false WHERE organisation_id = ? AND external_id = ?", o.ID(), l.ID)
			storetest.Follow(t, o, store.TrackAll, storetest.ParseLink(t, "https://www.tiktok.com/@one"))
			storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("1"), Username: new("one"), Videos: []ingest.FoundVideo{{ID: l.ID, Link: l.Canonical}}, Listed: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o, stopped, other, begin := orgWithTwoVideos(t, db)
				storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{other: {Views: new(int64(7)), Username: new("one")}})
				db.Clock.Advance(24 * time.Hour)
				storetest.StopVideos(t, o, stopped)
				db.Clock.Advance(4 * 24 * time.Hour)
				resume(t, db, o, stopped)
				storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{stopped: storetest.Views(150)})
				want := []dayTotals{{begin, 2, 107}, {begin + 1, 1, 7}, {begin + 5, 2, 157}}
				require.Equal(t, want, accountTotals(t, db, o, "one"))
				importResults(t, o, importOf(stopped, viewsPoint(begin-3, 40), viewsPoint(begin+3, 90)))
				require.Equal(t, want, accountTotals(t, db, o, "one"))
			})
		})
	}
}

func TestImport_countsAStoppedVideoOnTheDaysBeforeItWasTracked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, stopped, _, begin := orgWithTwoVideos(t, db)
		db.Clock.Advance(24 * time.Hour)
		storetest.StopVideos(t, o, stopped)
		require.Equal(t, []dayTotals{{begin, 2, 107}, {begin + 1, 1, 107}}, organisationTotals(t, db, o))
		account := accountTotals(t, db, o, "one")
		importResults(t, o, importOf(stopped, viewsPoint(begin-3, 40)))
		require.Equal(t, []dayTotals{{begin - 3, 1, 40}, {begin, 2, 107}, {begin + 1, 1, 107}}, organisationTotals(t, db, o))
		require.Equal(t, account, accountTotals(t, db, o, "one"), "the day of the stop is not stored, so it is unknown which days of the account include the video")
	})
}

func TestImport_countsVideosAndAccountsThatWereTrackedBeforeTheFirstPoint(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, begin := storetest.NewOrg(t, db), storetest.Today(db)
		storetest.Track(t, o, storetest.VideoLinks(t, 3)...)
		db.Clock.Advance(24 * time.Hour)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, storetest.AccountURL))
		db.Clock.Advance(24 * time.Hour)
		videos := append(importOf(storetest.VideoLink(t, 0), viewsPoint(begin-1, 40), viewsPoint(begin, 50), viewsPoint(begin+2, 60)),
			importOf(storetest.VideoLink(t, 9), viewsPoint(begin+1, 100))...)
		_, err := backfill.Import(t.Context(), o, videos, false)
		require.NoError(t, err)
		require.Equal(t, []dayTotals{{begin - 1, 1, 40}, {begin, 3, 50}, {begin + 1, 4, 150}, {begin + 2, 4, 160}}, organisationTotals(t, db, o))
		points, err := o.OrganisationHistory(t.Context(), begin-1, begin+2)
		require.NoError(t, err)
		var accounts []int64
		for _, p := range points {
			accounts = append(accounts, p.Accounts)
		}
		require.Equal(t, []int64{1, 1, 0, 0}, accounts)
	})
}

func TestImport_countsAnAccountThatWasTrackedAfterAllPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, begin := storetest.NewOrg(t, db), storetest.Today(db)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, storetest.AccountURL))
		db.Clock.Advance(24 * time.Hour)
		importResults(t, o, importOf(storetest.VideoLink(t, 1), viewsPoint(begin-3, 40)))
		points, err := o.OrganisationHistory(t.Context(), begin-3, begin+1)
		require.NoError(t, err)
		require.Equal(t, []int64{1, 0}, []int64{points[0].Accounts, points[1].Accounts})
		require.Equal(t, []dayTotals{{begin - 3, 1, 40}, {begin, 1, 40}}, organisationTotals(t, db, o))
	})
}

// Requirements in docs/coverage.md: 4-12
func TestImport_leavesSumsOfUnknownCountsNull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, today := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		point := func(day store.Date, counts store.Counts) backfill.Point {
			return backfill.Point{At: store.InstantOf(day.Time()), Counts: counts}
		}
		importResults(t, o, importOf(l, point(today-3, store.Counts{Likes: new(int64(0))}), point(today-2, store.Counts{Likes: new(int64(8))})))
		importResults(t, o, importOf(storetest.VideoLink(t, 2), point(today-1, store.Counts{Views: new(int64(0))})))
		points, err := o.OrganisationHistory(t.Context(), today-9, today-1)
		require.NoError(t, err)
		require.Equal(t, []store.OrganisationPoint{
			{Day: today - 1, Videos: 2, Counts: store.Counts{Views: new(int64(0)), Likes: new(int64(8))}, ViewsGained: new(int64(0))},
			{Day: today - 2, Videos: 1, Counts: store.Counts{Likes: new(int64(8))}},
			{Day: today - 3, Videos: 1, Counts: store.Counts{Likes: new(int64(0))}},
		}, points)
	})
}

func TestImport_keepsTheDaysOfAWeekThatAnEarlierImportStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		monday := (storetest.Today(db) - 200).Week()
		whole, parts, single := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		l, other := storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)
		points := []backfill.Point{viewsPoint(monday-8, 10), viewsPoint(monday+2, 60), viewsPoint(monday+4, 70)}
		everyDay := make([]backfill.Point, 0, 7)
		for d := monday; d < monday+7; d++ {
			everyDay = append(everyDay, viewsPoint(d, 1000))
		}
		for _, o := range []*store.Org{whole, parts, single} {
			importResults(t, o, importOf(other, everyDay...))
		}
		importResults(t, whole, importOf(l, points...))
		importResults(t, parts, importOf(l, points[1:]...))
		importResults(t, parts, importOf(l, points[:1]...))
		for _, n := range []int{1, 2, 0} {
			importResults(t, single, importOf(l, points[n]))
		}
		for _, o := range []*store.Org{parts, single} {
			require.Equal(t, organisationTotals(t, db, whole), organisationTotals(t, db, o))
			require.Equal(t, accountTotals(t, db, whole, l.Handle), accountTotals(t, db, o, l.Handle))
		}
	})
}

func TestImport_countsAVideoThatGetsItsAccountByTheImport(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		watch, today := storetest.ParseLink(t, "https://www.youtube.com/watch?v=dQw4w9WgXcQ"), storetest.Today(db)
		points := []backfill.Point{viewsPoint(today-9, 20), viewsPoint(today-6, 40)}
		totals := map[string][]dayTotals{}
		file := func(author string, points ...backfill.Point) backfill.ImportVideo {
			return backfill.ImportVideo{Link: watch, Username: author, Points: points}
		}
		for name, files := range map[string][]backfill.ImportVideo{"one file": {file("rick", points...)}, "two files": {file("rick", points[1]), file("rick", points[0])},
			"author in the second file": {file("", points[1]), file("rick", points[0])}} {
			o := storetest.NewOrg(t, db)
			storetest.Track(t, o, watch)
			storetest.StopVideos(t, o, watch)
			storetest.Track(t, o, watch)
			for _, f := range files {
				importResults(t, o, []backfill.ImportVideo{f})
			}
			account := storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.youtube.com/@rick"))
			totals[name] = storedTotals(t, db, "account_days WHERE organisation_id = ? AND account_id = ?", o.ID(), account.ID)
		}
		require.Equal(t, []dayTotals{{today - 9, 1, 20}, {today - 6, 1, 40}}, totals["one file"])
		require.Equal(t, totals["one file"], totals["two files"])
		require.Equal(t, totals["one file"], totals["author in the second file"])
	})
}

func TestImport_countsAnUploadOnceIfTheVideoIsImportedAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, today := storetest.NewOrg(t, db), storetest.Today(db)
		for n := range store.Date(2) {
			uploaded := today - 9
			importResults(t, o, []backfill.ImportVideo{{Link: storetest.VideoLink(t, 1), UploadedAt: &uploaded, Points: []backfill.Point{viewsPoint(today-5+n, 10)}}})
		}
		require.Equal(t, []int64{1}, storetest.Column[int64](t, db, "SELECT uploads FROM organisation_uploads"))
	})
}

func TestImport_beginsTheGainsAnewIfAnEarlierReleaseWroteTheLastDay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, first, _, begin := orgWithTwoVideos(t, db)
		fetch := func(views int64) *int64 {
			t.Helper()
			db.Clock.Advance(24 * time.Hour)
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{first: storetest.Views(views)})
			return storetest.AccountOf(t, o, first).ViewsGained7d
		}
		fetch(4100)
		fetch(4150)
		db.Exec(t, "UPDATE account_days SET views_gained = NULL WHERE day = ?", begin+2)
		db.Clock.Advance(8 * 24 * time.Hour)
		importResults(t, o, importOf(first, viewsPoint(begin-1, 40)))
		require.Nil(t, storetest.AccountOf(t, o, first).ViewsGained7d)
		require.Nil(t, fetch(4200), "the total before the import and the total after it begin at different times")
		for range 6 {
			require.Nil(t, fetch(4200))
		}
		require.Equal(t, new(int64(5)), fetch(4205))
	})
}
