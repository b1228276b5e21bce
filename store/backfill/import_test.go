package backfill_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// scenario is a set of videos with counts on some days. Each point was either measured by a fetch or is imported from another tracker.
type scenario struct {
	first  time.Time
	days   int
	videos []scenarioVideo
}

type scenarioVideo struct {
	handle string
	points map[int]scenarioPoint // the key is the number of the day
}

type scenarioPoint struct {
	store.Counts
	imported bool
}

func randomScenario(rt *rapid.T, now time.Time, days int) scenario {
	t := scenario{days: days, first: now.AddDate(0, 0, 1-days)}
	count := rapid.Custom(func(rt *rapid.T) *int64 {
		if rapid.IntRange(0, 4).Draw(rt, "unknown") == 0 {
			return nil
		}
		return new(rapid.Int64Range(0, 1_000_000).Draw(rt, "count"))
	})
	for range rapid.IntRange(1, 4).Draw(rt, "videos") {
		v := scenarioVideo{handle: rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "handle"), points: map[int]scenarioPoint{}}
		for _, day := range rapid.SliceOfN(rapid.IntRange(0, days-1), 1, 12).Draw(rt, "days") {
			v.points[day] = scenarioPoint{imported: rapid.Bool().Draw(rt, "imported"), Counts: store.Counts{Views: count.Draw(rt, "views"),
				Likes: count.Draw(rt, "likes"), Comments: count.Draw(rt, "comments"), Shares: count.Draw(rt, "shares"), Bookmarks: count.Draw(rt, "bookmarks")}}
		}
		t.videos = append(t.videos, v)
	}
	return t
}

const scenarioUpload = "2023-11-14"

func (v scenarioVideo) videoLink(t *testing.T, org, n int) link.Link {
	return storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@%s/video/73012345%03d%08d", v.handle, org, n))
}

// trackAndFetch fetches each point for which isWanted returns true, on the point's day. It tracks a
// video on the day of its first fetched point.
func (s scenario) trackAndFetch(t *testing.T, db *storetest.DB, o *store.Org, org int, isWanted func(scenarioPoint) bool) {
	t.Helper()
	known := map[int]bool{}
	for day := range s.days {
		db.Clock.Set(s.first.AddDate(0, 0, day))
		facts := map[link.Link]ingest.VideoFacts{}
		for n, v := range s.videos {
			p, ok := v.points[day]
			if !ok || !isWanted(p) {
				continue
			}
			if !known[n] {
				known[n] = true
				storetest.Track(t, o, v.videoLink(t, org, n))
			}
			facts[v.videoLink(t, org, n)] = ingest.VideoFacts{Views: p.Views, Likes: p.Likes, Comments: p.Comments, Shares: p.Shares, Bookmarks: p.Bookmarks,
				Title: new("A #scenario"), Username: new(v.handle), LengthSeconds: new(7.5), UploadedAt: new(time.Date(2023, 11, 14, 0, 0, 0, 0, time.UTC))}
		}
		if len(facts) > 0 {
			storetest.Measure(t, db, db.Clock.Now(), facts)
		}
	}
}

// importArgument returns the imported points of the scenario as an argument of Import.
func (s scenario) importArgument(t *testing.T, org int) []backfill.ImportVideo {
	t.Helper()
	uploaded, err := store.ParseDate(scenarioUpload)
	require.NoError(t, err)
	var out []backfill.ImportVideo
	for n, v := range s.videos {
		in := backfill.ImportVideo{Link: v.videoLink(t, org, n), Title: "A #scenario", UploadedAt: &uploaded, VideoLength: new("7.5")}
		for day := range s.days {
			if p, ok := v.points[day]; ok && p.imported {
				in.Points = append(in.Points, backfill.Point{At: store.InstantOf(s.first.AddDate(0, 0, day)), Counts: p.Counts})
			}
		}
		if len(in.Points) > 0 {
			out = append(out, in)
		}
	}
	return out
}

// readableData returns what callers of the store can read about an organisation's videos and accounts. It leaves out ids, creation times and the
// sources of counts.
func readableData(t *testing.T, o *store.Org, first, last store.Date) []any {
	t.Helper()
	var out []any
	videos := allVideos(t, o)
	for _, v := range videos {
		points, err := o.History(t.Context(), store.Ref{ID: v.ID}, first, last)
		require.NoError(t, err)
		for n := range points {
			points[n].Provenance = store.Provenance{Quality: points[n].Quality}
		}
		v.OrganisationID, v.ID, v.LinkedAccountID, v.CreatedAt, v.ExternalID, v.Link = store.NewID(), store.NewID(), nil, 0, "", ""
		v.OrganisationID, v.ID = [16]byte{}, [16]byte{}
		v.FetchState = store.FetchState{} // an imported video was not fetched yet, so do not compare the fetch states
		out = append(out, v, points)
	}
	accounts, err := o.ListAccounts(t.Context(), store.AccountQuery{IncludeLinked: true, Order: store.Order{Column: "username"}, Window: store.Window{Limit: 10}})
	require.NoError(t, err)
	for _, a := range accounts.Rows {
		days, err := o.AccountHistory(t.Context(), store.Ref{ID: a.ID}, first, last)
		require.NoError(t, err)
		for n := range days {
			days[n].Provenance = store.Provenance{Quality: days[n].Quality}
		}
		a.OrganisationID, a.ID, a.CreatedAt = [16]byte{}, [16]byte{}, 0
		out = append(out, a, days)
	}
	days, err := o.OrganisationHistory(t.Context(), first, last)
	require.NoError(t, err)
	statistics, err := o.VideoStatistics(t.Context())
	require.NoError(t, err)
	statistics.ByStatus = nil
	tagged, err := o.ListVideos(t.Context(), store.VideoQuery{Hashtag: new("scenario"), Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}})
	require.NoError(t, err)
	return append(out, days, statistics, tagged.Total)
}

func TestImport_givesTheSameDataAsFetching(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		now, org := db.Clock.Now(), 0
		rapid.Check(t, func(rt *rapid.T) {
			s := randomScenario(rt, now, 60)
			first, last := store.DateOf(now)-100, store.DateOf(now)
			org += 2
			fetched, imported := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
			s.trackAndFetch(t, db, fetched, org, func(scenarioPoint) bool { return true })
			s.trackAndFetch(t, db, imported, org+1, func(p scenarioPoint) bool { return !p.imported })
			db.Clock.Set(now)
			videos := s.importArgument(t, org+1)
			before := storetest.StoredRows(t, db, imported)
			dry, err := backfill.Import(t.Context(), imported, videos, true)
			require.NoError(t, err)
			require.Equal(t, before, storetest.StoredRows(t, db, imported), "a dry run must write nothing")
			parts := [][]backfill.ImportVideo{videos}
			if rapid.Bool().Draw(rt, "in two parts") && len(videos) > 1 {
				parts = [][]backfill.ImportVideo{videos[1:], videos[:1]}
			}
			for _, part := range parts {
				done, err := backfill.Import(t.Context(), imported, part, false)
				require.NoError(t, err)
				if len(parts) == 1 {
					require.Equal(t, dry, done)
				}
				for _, v := range done {
					for _, result := range v.Results {
						require.Equal(t, backfill.PointAdded, result)
					}
				}
			}
			require.Equal(rt, readableData(t, fetched, first, last), readableData(t, imported, first, last))

			once := storetest.StoredRows(t, db, imported)
			again, err := backfill.Import(t.Context(), imported, videos, false)
			require.NoError(t, err)
			require.Equal(rt, once, storetest.StoredRows(t, db, imported), "repeating the import must change nothing")
			for _, v := range again {
				require.False(t, v.New)
				for _, result := range v.Results {
					require.Equal(t, backfill.PointUnchanged, result)
				}
			}
		})
	})
}

// importOf returns an argument of Import that adds points to the video with the link l.
func importOf(l link.Link, points ...backfill.Point) []backfill.ImportVideo {
	return []backfill.ImportVideo{{Link: l, Points: points}}
}

// viewsPoint returns a point that has a number of views and no other counts.
func viewsPoint(day store.Date, views int64) backfill.Point {
	return backfill.Point{At: store.InstantOf(day.Time()), Counts: store.Counts{Views: &views}}
}

// importResults calls Import for one video and returns the result of each point.
func importResults(t *testing.T, o *store.Org, videos []backfill.ImportVideo) []backfill.ImportResult {
	t.Helper()
	done, err := backfill.Import(t.Context(), o, videos, false)
	require.NoError(t, err)
	require.Len(t, done, 1)
	return done[0].Results
}

func TestImport_neverChangesMeasuredPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, day := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(100)})
		require.Equal(t, []backfill.ImportResult{backfill.PointAdded, backfill.PointConflicts}, importResults(t, o, importOf(l, viewsPoint(day-1, 80), viewsPoint(day, 7))))
		require.Equal(t, []backfill.ImportResult{backfill.PointUnchanged, backfill.PointUnchanged}, importResults(t, o, importOf(l, viewsPoint(day-1, 80), viewsPoint(day, 100))))
		require.Equal(t, []backfill.ImportResult{backfill.PointConflicts}, importResults(t, o, importOf(l, viewsPoint(day-1, 81))), "a second import must not change an imported point")
		v := storetest.VideoOf(t, o, l)
		require.EqualValues(t, 100, *v.Latest.Views)
		require.InDelta(t, 25, *v.Increase1d, 1e-9)
		require.Nil(t, v.Increase7d)
		require.Nil(t, v.ViewsGained7d)
		require.Equal(t, []string{"import", "test"}, storetest.Column[string](t, db, "SELECT source FROM snapshots_daily WHERE organisation_id = ? ORDER BY day", o.ID()))

		// A later fetch on an imported day replaces the imported point.
		next := storetest.VideoLink(t, 2)
		require.Equal(t, []backfill.ImportResult{backfill.PointAdded}, importResults(t, o, importOf(next, viewsPoint(day, 5))))
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{next: storetest.Views(9)})
		require.EqualValues(t, 9, *storetest.VideoOf(t, o, next).Latest.Views)
	})
}

// The first import stores a point without counts, and the second import replaces this point. The result is the same as if the first import had left
// out the point.
func TestImport_replacesImportedPointsThatHaveNoCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		day := storetest.Today(db)
		monday := (day - 200).Week()
		blank := func(d store.Date) backfill.Point { return backfill.Point{At: store.InstantOf(d.Time())} }
		for n, c := range []struct{ before, after []backfill.Point }{
			{[]backfill.Point{blank(day - 3), blank(day - 1)}, []backfill.Point{viewsPoint(day-3, 5), viewsPoint(day-1, 7)}},
			{[]backfill.Point{viewsPoint(day-5, 4), blank(day - 3)}, []backfill.Point{viewsPoint(day-3, 5)}},
			{[]backfill.Point{blank(monday + 6)}, []backfill.Point{viewsPoint(monday, 3), viewsPoint(monday+5, 5)}},
			{[]backfill.Point{blank(monday + 2)}, []backfill.Point{viewsPoint(monday+6, 5)}},
			{[]backfill.Point{blank(monday), blank(day)}, []backfill.Point{viewsPoint(monday, 5), viewsPoint(day, 9)}},
		} {
			o, clean, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@one/video/73012345%011d", n))
			importResults(t, o, importOf(l, c.before...))
			got := importResults(t, o, importOf(l, c.after...))
			require.NotContains(t, got, backfill.PointConflicts, n)
			require.Contains(t, got, backfill.PointAdded, n)
			for _, p := range c.before {
				if p.Views != nil {
					importResults(t, clean, importOf(l, p))
				}
			}
			require.Equal(t, importResults(t, clean, importOf(l, c.after...)), got, n)
			points := func(o *store.Org) []store.Point {
				points, err := o.History(t.Context(), store.Ref{Link: l}, monday, day)
				require.NoError(t, err)
				return points
			}
			require.Equal(t, points(clean), points(o), n)
			want, stored := storetest.VideoOf(t, clean, l), storetest.VideoOf(t, o, l)
			require.Equal(t, want.Growth, stored.Growth, n)
			require.Equal(t, want.Latest.Views, stored.Latest.Views, n)
			require.Equal(t, want.LatestUpdatedAt, stored.LatestUpdatedAt, n)
			history := func(o *store.Org) []store.OrganisationPoint {
				days, err := o.OrganisationHistory(t.Context(), monday+6, day)
				require.NoError(t, err)
				for n := range days {
					days[n].ViewsGained = nil // an additional earlier day of o can have the gain
				}
				return days
			}
			// The history of o can have more days than that of `clean`. If the second import replaces the only point of a day, the row of that day
			// stays, although the day has no point any more.
			for _, day := range history(clean) {
				require.Contains(t, history(o), day, n)
			}
			once := storetest.StoredRows(t, db, o)
			require.NotContains(t, importResults(t, o, importOf(l, c.after...)), backfill.PointAdded)
			require.Equal(t, once, storetest.StoredRows(t, db, o))
		}
		// A measured point stays unchanged even if it has no counts.
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 99)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {}})
		if got := storetest.Column[int64](t, db, "SELECT COUNT(*) FROM snapshots_daily WHERE organisation_id = ?", o.ID()); got[0] == 1 {
			require.Equal(t, []backfill.ImportResult{backfill.PointConflicts}, importResults(t, o, importOf(l, viewsPoint(day, 5))))
		}
	})
}

func TestImport_storesOldDaysAsWeeklyPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, day := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		var points []backfill.Point
		for d := day - 140; d <= day; d++ {
			points = append(points, viewsPoint(d, 1000+int64(d)))
		}
		got := importResults(t, o, importOf(l, points...))
		rolledUp := 0
		for n, f := range got {
			if f == backfill.PointRolledUp {
				rolledUp++
				require.Less(t, points[n].At.Day(), day-storetest.DailyDays)
			} else {
				require.Equal(t, backfill.PointAdded, f)
			}
		}
		require.InDelta(t, 43, rolledUp, 2, "six of seven old points must become part of a weekly point")
		history, err := o.History(t.Context(), store.Ref{Link: l}, day-140, day)
		require.NoError(t, err)
		for _, p := range history {
			require.Equal(t, 1000+int64(p.Day), *p.Views)
		}
		days, err := o.OrganisationHistory(t.Context(), day-200, day)
		require.NoError(t, err)
		require.Len(t, days, 141)
		for _, d := range days {
			require.Equal(t, new(1000+int64(d.Day)), d.Views)
			require.EqualValues(t, 1, d.Videos)
		}

		once := storetest.StoredRows(t, db, o)
		again := importResults(t, o, importOf(l, points...))
		require.NotContains(t, again, backfill.PointAdded)
		require.NotContains(t, again, backfill.PointConflicts)
		require.Equal(t, once, storetest.StoredRows(t, db, o))
		db.Clock.Advance(5 * 24 * time.Hour)
		require.NotContains(t, importResults(t, o, importOf(l, points...)), backfill.PointAdded)
		require.Equal(t, once, storetest.StoredRows(t, db, o), "repeating the import later must change nothing either")
	})
}

// TestImport_mergesTwoFilesThatDivideAWeek checks that two files, each with a part of a week, give the same result as one file with the
// whole history.
func TestImport_mergesTwoFilesThatDivideAWeek(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		whole, halves, day := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.Today(db)
		monday := (day - 200).Week()
		var points []backfill.Point
		for d := monday; d < monday+14; d++ {
			points = append(points, viewsPoint(d, 10*int64(d-monday+1)))
		}
		for cut := 1; cut < 10; cut++ {
			importResults(t, whole, importOf(storetest.VideoLink(t, cut), points...))
			importResults(t, halves, importOf(storetest.VideoLink(t, cut), points[:cut]...))
			require.NotContains(t, importResults(t, halves, importOf(storetest.VideoLink(t, cut), points[cut:]...)), backfill.PointConflicts)
		}
		first, last := monday-10, day
		require.Equal(t, readableData(t, whole, first, last), readableData(t, halves, first, last))
	})
}

func TestImport_keepsMeasuredWeeklyPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, day := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		monday := (day - 200).Week()
		id := storetest.Track(t, o, l)[0].ID
		db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, fetched_at, source) VALUES (?, ?, ?, ?, 50, 0, 'test')`,
			o.ID(), id, monday, monday+5)
		// The video was fetched daily from Thursday to Saturday. The organisation's rows of these days still contain the measured views.
		for d := monday + 3; d < monday+6; d++ {
			db.Exec(t, `INSERT INTO organisation_days (organisation_id, day, videos, views, likes, comments, shares, bookmarks) VALUES (?, ?, 1, ?, 0, 0, 0, 0)`,
				o.ID(), d, 45+int64(d-monday))
		}
		defer func() {
			views := "SELECT views FROM organisation_days WHERE organisation_id = ? AND day BETWEEN ? AND ? ORDER BY day"
			require.Equal(t, []int64{40, 48, 49, 50, 60}, storetest.Column[int64](t, db, views, o.ID(), monday-1, monday+7))
		}()
		require.Equal(t, []backfill.ImportResult{backfill.PointAdded, backfill.PointConflicts, backfill.PointConflicts, backfill.PointAdded},
			importResults(t, o, importOf(l, viewsPoint(monday-1, 40), viewsPoint(monday, 45), viewsPoint(monday+6, 55), viewsPoint(monday+7, 60))))
		require.Equal(t, []int64{40, 50, 60}, storetest.Column[int64](t, db, "SELECT views FROM snapshots_weekly WHERE organisation_id = ? ORDER BY day", o.ID()))
	})
}

func TestImport_refusesInvalidPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, day := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		_, err := backfill.Import(t.Context(), db.Org(store.NewID()), importOf(l, viewsPoint(day, 1)), false)
		require.ErrorIs(t, err, store.ErrOrganisationDeleted)
		_, err = backfill.Import(t.Context(), o, importOf(l, viewsPoint(day+1, 1)), false)
		require.ErrorContains(t, err, "points must be in the order of time, at most one on each day, and not in the future")
		_, err = backfill.Import(t.Context(), o, importOf(l, viewsPoint(day, 1), viewsPoint(day, 2)), false)
		require.ErrorContains(t, err, "points must be in the order of time, at most one on each day, and not in the future")
		_, err = backfill.Import(t.Context(), o, importOf(storetest.ParseLink(t, "https://www.tiktok.com/@someone"), viewsPoint(day, 1)), false)
		require.ErrorContains(t, err, "https://www.tiktok.com/@someone is not a link of a video")

		in := importOf(l, viewsPoint(day-731, 1), viewsPoint(day-730, 2), viewsPoint(day-4, 3), viewsPoint(day-3, 3), viewsPoint(day-2, 4))
		in[0].UploadedAt = new(day - 2)
		require.Equal(t, []backfill.ImportResult{backfill.PointTooOld, backfill.PointBeforeUpload, backfill.PointBeforeUpload, backfill.PointAdded, backfill.PointAdded}, importResults(t, o, in))
		in = importOf(l, viewsPoint(day-4, 3))
		require.Equal(t, []backfill.ImportResult{backfill.PointBeforeUpload}, importResults(t, o, in), "a point must not be earlier than the upload date that the first import has stored")

		recent := storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@someone/video/%d", db.Clock.Now().AddDate(0, 0, -5).Unix()<<32))
		require.Equal(t, []backfill.ImportResult{backfill.PointBeforeUpload, backfill.PointAdded, backfill.PointAdded},
			importResults(t, o, importOf(recent, viewsPoint(day-7, 1), viewsPoint(day-6, 2), viewsPoint(day-4, 3))), "a point must not be earlier than the upload day that the id contains")
	})
}

func TestImport_tracksNewVideosAndKeepsStoppedVideosStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, day := storetest.NewOrg(t, db), storetest.Today(db)
		watch := storetest.ParseLink(t, "https://www.youtube.com/watch?v=dQw4w9WgXcQ")
		in := []backfill.ImportVideo{{Link: watch, Username: "rick", Points: []backfill.Point{viewsPoint(day-1, 3)}}, {Link: storetest.VideoLink(t, 1)}}
		done, err := backfill.Import(t.Context(), o, in, false)
		require.NoError(t, err)
		require.Equal(t, []bool{true, true}, []bool{done[0].New, done[1].New})
		require.Equal(t, "rick", storetest.VideoOf(t, o, watch).Username)
		require.EqualValues(t, 1, storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.youtube.com/@rick")).TotalVideosTracked)
		require.Nil(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 1)).LatestUpdatedAt)
		require.Empty(t, storetest.DueTargets(t, db), "imported videos must be fetched on schedule, not immediately")
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, []string{storetest.VideoLink(t, 1).ID}, storetest.DueTargets(t, db))

		storetest.StopVideos(t, o, watch)
		done, err = backfill.Import(t.Context(), o, importOf(watch, viewsPoint(day-2, 2), viewsPoint(day, 5)), false)
		require.NoError(t, err)
		require.True(t, done[0].Stopped)
		require.False(t, done[0].New)
		v := storetest.VideoOf(t, o, watch)
		require.True(t, v.Removed)
		require.EqualValues(t, 5, *v.Latest.Views)
		require.Zero(t, storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.youtube.com/@rick")).TotalVideosTracked)

		free, err := db.CreateOrganisation(t.Context(), "Free", store.TierLimited, store.SubscriptionNone)
		require.NoError(t, err)
		_, err = backfill.Import(t.Context(), db.Org(free.ID), importOf(storetest.VideoLink(t, 2), viewsPoint(day, 5)), false)
		require.NoError(t, err)
		require.True(t, storetest.VideoOf(t, db.Org(free.ID), storetest.VideoLink(t, 2)).Pending, "without a subscription, the video must not be fetched")
	})
}

// TestImport_findsAccountsByTheirID checks that imported videos with the same account id belong to
// one account, even after a source has reported the account's handle.
func TestImport_findsAccountsByTheirID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const id = "UCLqxVugv74EIW3VWh2NOa3Q"
		day := storetest.Today(db)
		watch := func(n int) link.Link {
			return storetest.ParseLink(t, fmt.Sprintf("https://www.youtube.com/watch?v=dQw4w9WgX%dQ", n))
		}
		importVideo := func(o *store.Org, n int) {
			in := importOf(watch(n), viewsPoint(day-1, 3))
			in[0].AccountID = id
			importResults(t, o, in)
		}
		byID, o := storetest.ParseLink(t, "https://www.youtube.com/channel/"+id), storetest.NewOrg(t, db)
		importVideo(o, 1)
		importVideo(o, 2)
		a := storetest.AccountByLink(t, o, byID)
		require.Equal(t, id, a.Username)
		require.EqualValues(t, 2, a.TotalVideosTracked)
		require.Equal(t, byID.Canonical, a.Link)

		// Two fetches: the source first reports the id in place of the handle, and then the handle.
		for _, name := range []string{id, "rick"} {
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{watch(1): {Views: new(int64(9)), AccountID: new(id), Username: &name}})
			require.Equal(t, a.ID, storetest.AccountByLink(t, o, byID).ID)
			require.Equal(t, name, storetest.VideoOf(t, o, watch(2)).Username)
		}
		storetest.Track(t, o, watch(4)) // this video is never fetched, so no source has reported its author
		importVideo(o, 3)
		importVideo(o, 4)
		for n := range 2 {
			v := storetest.VideoOf(t, o, watch(3+n))
			require.Equal(t, "rick", v.Username)
			require.Equal(t, a.ID, *v.LinkedAccountID)
		}
		require.EqualValues(t, 4, storetest.AccountByLink(t, o, byID).TotalVideosTracked)
		require.Equal(t, "https://www.youtube.com/@rick", storetest.AccountByLink(t, o, byID).Link)
	})
}

// TestImport_fillsLatestCountsThatTheLastFetchLacks checks that imported counts become latest
// counts only if the last fetch did not report them. The imported point is older than this fetch.
func TestImport_fillsLatestCountsThatTheLastFetchLacks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, day := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.Today(db)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(100)})
		p := viewsPoint(day-1, 300)
		p.Shares = new(int64(4))
		importResults(t, o, importOf(l, p))
		v := storetest.VideoOf(t, o, l)
		require.EqualValues(t, 100, *v.Latest.Views)
		require.EqualValues(t, 4, *v.Latest.Shares, "the imported count must become the latest count")
		require.EqualValues(t, 4, *v.LatestEngagement)
		require.Equal(t, store.InstantOf(db.Clock.Now()), *v.LatestUpdatedAt)
		points, err := o.History(t.Context(), store.Ref{Link: l}, day-5, day)
		require.NoError(t, err)
		require.True(t, slices.EqualFunc(points, []int64{100, 300}, func(p store.Point, n int64) bool { return *p.Views == n }))
	})
}

func TestImport_fetchesNewVideosIfASubscriptionBeginsMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewFreeOrg(t, db), storetest.VideoLink(t, 1)
		done := make(chan error, 1)
		require.NoError(t, db.Store.DB().Change(t.Context(), o.ID(), func(tx *gorm.DB) error {
			go func() {
				_, err := backfill.Import(t.Context(), o, []backfill.ImportVideo{{Link: l}}, false)
				done <- err
			}()
			require.Eventually(t, func() bool { return storetest.IsWaitingForLock(t, db) }, time.Minute, time.Millisecond)
			return tx.Exec("UPDATE organisations SET subscription = ? WHERE id = ?", store.SubscriptionActive, o.ID()).Error
		}))
		require.NoError(t, <-done)
		require.False(t, storetest.VideoOf(t, o, l).Pending)
	})
}
