package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) {
	// The property tests use a database, which is slow. So each of them checks only 15 random cases by default.
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

func newOrg(t *testing.T, db *storetest.DB) *store.Org {
	t.Helper()
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	return db.Org(o.ID)
}

func refuseShortLinks(context.Context, link.Link) (link.Link, error) {
	return link.Link{}, errors.New("the short link cannot be resolved in this test")
}

// runImport imports a file with the given text into the organisation o. The given functions can change the settings of the Import.
func runImport(t *testing.T, db *storetest.DB, o *store.Org, text string, change ...func(*transfer.Import)) (transfer.Summary, error) {
	t.Helper()
	i := transfer.Import{Org: o, In: strings.NewReader(text), Resolve: refuseShortLinks, Now: db.Clock.Now(), TempDir: t.TempDir(),
		Numbers: transfer.AutoNumbers, Dates: transfer.AutoDates, Progress: func(transfer.Stage, int64, int64) {}}
	for _, c := range change {
		c(&i)
	}
	return i.Run(t.Context())
}

// exportedText returns the export of an organisation as text. If q.To is 0, the export has all days.
func exportedText(t *testing.T, o *store.Org, f transfer.Format, q store.ExportQuery) string {
	t.Helper()
	if q.To == 0 {
		q.To = store.DateOf(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	var b bytes.Buffer
	_, err := transfer.Export{Org: o, Format: f, Query: q, Progress: func(int64) {}}.Write(t.Context(), &b)
	require.NoError(t, err)
	return b.String()
}

// sortedLines returns the lines of an export in alphabetical order. So a test can compare two exports whose videos are in different order.
func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

// randomVideos returns random videos to import, with random history points.
func randomVideos(rt *rapid.T, today store.Date) []backfill.ImportVideo {
	count := rapid.Custom(func(rt *rapid.T) *int64 {
		if rapid.IntRange(0, 3).Draw(rt, "unknown") == 0 {
			return nil
		}
		return new(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1_000_000_000_000)).Draw(rt, "count"))
	})
	title := rapid.OneOf(rapid.SampledFrom([]string{"", "=1+1", "'=1+1", "''-", "@name \"quoted\", said", "two\nlines", "\ttab", "'plain", "＝wide", " blank ", "x;=HYPERLINK(1)", "a\tb\t'@c", "two\n- lines", `x;"=1"`}),
		rapid.StringMatching(`[ -~àñ漢🎬\n\t;;'"=+@-]{0,20}`))
	var out []backfill.ImportVideo
	for n := range rapid.IntRange(1, 5).Draw(rt, "videos") {
		l, err := link.Parse([]string{fmt.Sprintf("https://www.tiktok.com/@some.one/video/73012345%011d", n), fmt.Sprintf("https://www.youtube.com/shorts/dQw4w9WgX%d0", n),
			fmt.Sprintf("https://www.instagram.com/reel/C0aaaaaaa%02d/", n), fmt.Sprintf("https://www.facebook.com/reel/11392477642%05d", n)}[n%4])
		if err != nil {
			rt.Fatal(err)
		}
		v := backfill.ImportVideo{Link: l, Title: title.Draw(rt, "title")}
		if rapid.Bool().Draw(rt, "described") {
			v.UploadedAt, v.VideoLength, v.Username = new(today-1000), new("12.5"), "some.one"
		}
		// If an account has no handle, sources give its id instead.
		if id := map[link.Platform]string{link.Facebook: "100064550044307", link.YouTube: "UCLqxVugv74EIW3VWh2NOa3Q"}[l.Platform]; id != "" && rapid.Bool().Draw(rt, "by id") {
			v.Username, v.AccountID = "", id
		}
		days := rapid.SliceOfNDistinct(rapid.Int32Range(0, 720), 0, 30, rapid.ID).Draw(rt, "days ago")
		slices.Sort(days)
		for _, daysAgo := range slices.Backward(days) {
			at := store.InstantOf((today - store.Date(daysAgo)).Time()).Add(time.Duration(rapid.Int64Range(0, 11*int64(time.Hour)).Draw(rt, "time")))
			p := backfill.Point{At: at, Counts: store.Counts{Views: count.Draw(rt, "views"), Likes: count.Draw(rt, "likes"),
				Comments: count.Draw(rt, "comments"), Shares: count.Draw(rt, "shares"), Bookmarks: count.Draw(rt, "bookmarks")}}
			if p.Counts != (store.Counts{}) { // a point needs at least one count
				v.Points = append(v.Points, p)
			}
		}
		// An upload date can be one day after the first point, because sources give dates that are
		// too late or in another time zone.
		if len(v.Points) > 0 && v.Points[0].At.Day() < today && rapid.Bool().Draw(rt, "measured before the upload") {
			v.UploadedAt = new(v.Points[0].At.Day() + 1)
		}
		out = append(out, v)
	}
	return out
}

func TestExport_canBeImportedUnchanged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		today := store.DateOf(db.Clock.Now())
		rapid.Check(t, func(rt *rapid.T) {
			from, to := newOrg(t, db), newOrg(t, db)
			videos := randomVideos(rt, today)
			imported := slices.Clone(videos)
			for n := range imported {
				imported[n].UploadedAt = nil
			}
			_, err := backfill.Import(t.Context(), from, imported, false)
			require.NoError(rt, err)
			for n := range imported {
				imported[n].UploadedAt, imported[n].Points = videos[n].UploadedAt, nil
			}
			_, err = backfill.Import(t.Context(), from, imported, false)
			require.NoError(rt, err)
			f := rapid.SampledFrom([]transfer.Format{transfer.CSV, transfer.JSONLines}).Draw(rt, "format")
			q := store.ExportQuery{Interpolated: rapid.Bool().Draw(rt, "interpolated")}
			out := exportedText(t, from, f, q)
			summary, err := runImport(t, db, to, out)
			require.NoError(rt, err, out)
			points := int64(0)
			for _, v := range videos {
				points += int64(len(v.Points))
			}
			require.LessOrEqual(rt, summary.Added+summary.RolledUp, points)
			require.Zero(rt, summary.InvalidUsernames+summary.WithoutCounts)
			require.Equal(rt, int64(strings.Count(out, "true,")+strings.Count(out, `"interpolated":true`)) > 0, summary.Interpolated > 0)
			require.Equal(rt, sortedLines(out), sortedLines(exportedText(t, to, f, q)))
		})
	})
}

// After a failed fetch, other trackers write a row without counts. Such a row must add no point, so
// that the counts can be interpolated.
func TestImport_addsNoPointForRowWithoutCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, today := newOrg(t, db), store.DateOf(db.Clock.Now())
		sunday := (today - 200).Week() + 6
		text := fmt.Sprintf("link,date,views,likes,title\n%[1]s,%[2]s,10,,\n%[1]s,%[3]s,,,\n%[1]s,%[4]s,20,,\n%[1]s,%[5]s,,,Late\n%[1]s,%[6]s,30,,\n%[1]s,%[7]s,,,\n",
			videoURL, sunday-1, sunday, today-4, today-3, today-2, today)
		summary, err := runImport(t, db, o, text+"https://youtu.be/dQw4w9WgXcA,"+today.String()+",,,Named\n")
		require.NoError(t, err)
		require.Equal(t, transfer.Summary{Rows: 7, WithoutCounts: 4, Videos: 2, New: 2, Added: 3}, summary)
		points, err := o.History(t.Context(), store.Ref{Link: videoLink(t)}, sunday-1, today)
		require.NoError(t, err)
		views := map[store.Date]int64{}
		for _, p := range points {
			require.NotNil(t, p.Views, p.Day)
			views[p.Day] = *p.Views
		}
		require.EqualValues(t, 10, views[sunday-1])
		require.EqualValues(t, 25, views[today-3], "views must be interpolated between the neighbouring days")
		v, err := o.Video(t.Context(), store.Ref{Link: videoLink(t)})
		require.NoError(t, err)
		require.Equal(t, "Late", v.Title)
		require.Equal(t, store.InstantOf((today - 2).Time()), *v.LatestUpdatedAt)
	})
}

// Requirements in docs/coverage.md: 11.9-05, 11.9-06
func TestImport_readsNumbersAndDatesOfOtherCountries(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, copied := newOrg(t, db), newOrg(t, db)
		yesterday := db.Clock.Now().UTC().AddDate(0, 0, -1)
		early := time.Date(yesterday.Year()-1, 12, 31, 0, 0, 0, 0, time.UTC)
		text := fmt.Sprintf("url;Datum;views;likes\n%[1]s;%[2]s;1.500;12\n%[1]s;%[3]s;2.500.000;12,3K\n", videoURL, early.Format("02.01.2006"), yesterday.Format("02.01.2006"))
		mapped := func(i *transfer.Import) { i.Columns.Map = map[string]string{"Datum": "date"} }
		var found []transfer.ColumnFormat
		_, err := runImport(t, db, o, text, mapped, func(i *transfer.Import) { i.Formats = func(f []transfer.ColumnFormat) { found = f } })
		require.NoError(t, err)
		require.Equal(t, []transfer.ColumnFormat{{Column: "views", Format: "decimal-comma", Example: "2.500.000", ReadAs: "2500000"},
			{Column: "likes", Format: "decimal-comma", Example: "12,3K", ReadAs: "12300 (rounded)"},
			{Column: "date", Format: "day-first", Example: early.Format("02.01.2006"), ReadAs: early.Format(time.RFC3339)}}, found)
		day := store.DateOf(yesterday)
		points, err := o.History(t.Context(), store.Ref{Link: videoLink(t)}, day, day)
		require.NoError(t, err)
		require.EqualValues(t, 12300, *points[0].Likes)
		require.Equal(t, store.QualityRounded, points[0].Quality)
		require.Equal(t, backfill.ImportSource, *points[0].Source)

		out := exportedText(t, o, transfer.CSV, store.ExportQuery{})
		summary, err := runImport(t, db, copied, out)
		require.NoError(t, err)
		require.EqualValues(t, 2, summary.Added)
		require.Equal(t, out, exportedText(t, copied, transfer.CSV, store.ExportQuery{}))
		points, err = copied.History(t.Context(), store.Ref{Link: videoLink(t)}, day, day)
		require.NoError(t, err)
		require.Equal(t, store.QualityRounded, points[0].Quality)

		ambiguous := "link,date,views\n" + videoURL + "," + day.String() + ",1.500\n"
		_, err = runImport(t, db, o, ambiguous)
		require.ErrorContains(t, err, "--number-format=decimal-point")
		_, err = runImport(t, db, copied, ambiguous, func(i *transfer.Import) { i.Numbers, i.DryRun = transfer.DecimalComma, true })
		require.NoError(t, err)
	})
}

// Requirements in docs/coverage.md: 11.9-07
func TestImport_importsVideosAsStoppedIfTheOtherTrackerStoppedThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		text := fmt.Sprintf("ad_link,date,views,removed\n%s,%s,7,true\n", videoURL, store.DateOf(db.Clock.Now())-1)
		for range 2 {
			summary, err := runImport(t, db, o, text)
			require.NoError(t, err)
			require.EqualValues(t, 1, summary.Stopped)
			v, err := o.Video(t.Context(), store.Ref{Link: videoLink(t)})
			require.NoError(t, err)
			require.True(t, v.Removed)
			require.EqualValues(t, 7, *v.Latest.Views)
		}
		for _, f := range []transfer.Format{transfer.CSV, transfer.JSONLines} {
			other := newOrg(t, db)
			_, err := runImport(t, db, other, exportedText(t, o, f, store.ExportQuery{IncludeRemoved: true}))
			require.NoError(t, err)
			v, err := other.Video(t.Context(), store.Ref{Link: videoLink(t)})
			require.NoError(t, err)
			require.True(t, v.Removed, "the import of an export must not track a stopped video again")
		}
		tracked := newOrg(t, db)
		storetest.Track(t, tracked, videoLink(t))
		_, err := runImport(t, db, tracked, text)
		require.NoError(t, err)
		v, err := tracked.Video(t.Context(), store.Ref{Link: videoLink(t)})
		require.NoError(t, err)
		require.False(t, v.Removed, "an import must not stop a video that the organisation tracks")
	})
}

func TestExport_writesOnlyRequestedDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other, today := newOrg(t, db), newOrg(t, db), store.DateOf(db.Clock.Now())
		monday := (today - 200).Week()
		rows := "link,date,views\n"
		for _, p := range []struct {
			day   store.Date
			views int
		}{{monday, 10}, {monday + 7, 80}, {today - 1, 500}, {today, 600}} {
			rows += fmt.Sprintf("https://youtu.be/dQw4w9WgXcQ,%s,%d\n", p.day, p.views)
		}
		_, err := runImport(t, db, o, rows)
		require.NoError(t, err)
		days := func(q store.ExportQuery) (found []string) {
			for line := range strings.Lines(exportedText(t, o, transfer.CSV, q)) {
				cells := strings.Split(line, ",")
				found = append(found, cells[5]+" "+cells[7]+" "+cells[12])
			}
			return found[1:]
		}
		row := func(day store.Date, views int, interpolated bool) string {
			return fmt.Sprintf("%s %d %t", day, views, interpolated)
		}
		require.Equal(t, []string{row(monday, 10, false), row(monday+7, 80, false), row(today-1, 500, false), row(today, 600, false)}, days(store.ExportQuery{}))
		require.Equal(t, []string{row(monday+5, 60, true), row(monday+6, 70, true), row(monday+7, 80, false)},
			days(store.ExportQuery{From: monday + 5, To: monday + 7, Interpolated: true}))
		require.Equal(t, []string{row(today-1, 500, false)}, days(store.ExportQuery{From: today - 5, To: today - 1}))
		require.Equal(t, []string{"  false"}, days(store.ExportQuery{From: today - 5, To: today - 4}), "the export must include a video without points")
		require.Equal(t, 1, strings.Count(exportedText(t, other, transfer.CSV, store.ExportQuery{}), "\n"), "the export of another organisation must contain nothing but the header")

		storetest.StopVideos(t, o, videoLink(t))
		require.Empty(t, days(store.ExportQuery{}))
		require.Len(t, days(store.ExportQuery{IncludeRemoved: true}), 4)
	})
}

const videoURL = "https://youtu.be/dQw4w9WgXcQ"

func videoLink(t *testing.T) link.Link {
	t.Helper()
	l, err := link.Parse(videoURL)
	require.NoError(t, err)
	return l
}

// The export reads the videos in several batches. It must contain each video once, and a second export must have the videos in the same order.
func TestExport_writesMoreVideosThanOneBatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		var rows strings.Builder
		rows.WriteString("link,date,views\n")
		for n := range 450 {
			fmt.Fprintf(&rows, "https://www.tiktok.com/@a/video/73012345%011d,%s,%d\n", n, store.DateOf(db.Clock.Now()), n)
		}
		summary, err := runImport(t, db, o, rows.String())
		require.NoError(t, err)
		require.EqualValues(t, 450, summary.Added)
		out := exportedText(t, o, transfer.JSONLines, store.ExportQuery{})
		require.Len(t, slices.Compact(sortedLines(out)), 450)
		require.Equal(t, out, exportedText(t, o, transfer.JSONLines, store.ExportQuery{}))
		page, err := o.Export(t.Context(), store.ExportQuery{Limit: 10, After: uuid.Max})
		require.NoError(t, err)
		require.Empty(t, page)
	})
}

// An imported file can have the rows of a video in any order, several rows for one day, and different links of one video.
func TestImport_sortsRowsAndMergesRowsOfSameDay(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o, today := newOrg(t, db), store.DateOf(db.Clock.Now())
	rows := []string{}
	for n := range 700 {
		day := today - store.Date(n)
		rows = append(rows, fmt.Sprintf(`{"url":"https://youtu.be/dQw4w9WgXcQ","measured_at":"%sT08:00:00Z","views":%d,"likes":7}`, day, 1000-n),
			fmt.Sprintf(`{"url":"https://www.youtube.com/videoURL?v=dQw4w9WgXcQ","measured_at":"%sT09:30:00+01:00","views":%d}`, day, 1001-n))
	}
	slices.Sort(rows[100:])
	summary, err := runImport(t, db, o, "["+strings.Join(rows, ",\n")+"]\n")
	require.NoError(t, err)
	require.EqualValues(t, 1400, summary.Rows)
	require.EqualValues(t, 1, summary.Videos)
	require.EqualValues(t, 700, summary.Added+summary.RolledUp)
	points, err := o.History(t.Context(), store.Ref{Link: videoLink(t)}, today-699, today)
	require.NoError(t, err)
	require.InDelta(t, 697, len(points), 3, "points older than 90 days must be reduced to one a week")
	for _, p := range points[:90] {
		require.EqualValues(t, 1001-int(today-p.Day), *p.Views, "if a day has two rows, the point must have the views of the later row")
		require.EqualValues(t, 7, *p.Likes, "likes must come from the earlier row, because the later row has no likes")
	}
}

// failingReader returns an error instead of io.EOF.
type failingReader struct{ r io.Reader }

func (f failingReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p[:min(len(p), 100)])
	if errors.Is(err, io.EOF) {
		err = errors.New("simulated failure of the reader")
	}
	return n, err
}

// Some trackers export one row for each metric.
func TestImport_comparesOnlyCountsOfTheSameTime(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	day := store.DateOf(db.Clock.Now()) - 1
	rows := func(lines ...string) string {
		text := "link,date,time,views,likes,rounded\n"
		for _, line := range lines {
			clock, counts, _ := strings.Cut(line, " ")
			text += fmt.Sprintf("%s,%s,%sT%s:00Z,%s\n", videoURL, day, day, clock, counts)
		}
		return text
	}
	for name, c := range map[string]struct {
		lines        []string
		views, likes int64
		quality      store.Quality
		conflict     string
	}{
		"one metric a row":                   {lines: []string{"10:00 100,,", "10:00 ,5,", "12:00 120,,", "12:00 ,7,"}, views: 120, likes: 7, quality: store.QualityMeasured},
		"different counts":                   {lines: []string{"10:00 100,,", "12:00 120,,", "12:00 ,7,", "12:00 121,,"}, conflict: "line 5: line 3 has different counts"},
		"all rounded counts replaced":        {lines: []string{"10:00 12.3K,1K,", "12:00 12345,1001,"}, views: 12345, likes: 1001, quality: store.QualityMeasured},
		"the only rounded count replaced":    {lines: []string{"10:00 12.3K,5,", "12:00 12345,,"}, views: 12345, likes: 5, quality: store.QualityMeasured},
		"a rounded count kept":               {lines: []string{"10:00 12345,1K,", "12:00 12346,,"}, views: 12346, likes: 1000, quality: store.QualityRounded},
		"a row marked as rounded":            {lines: []string{"10:00 12345,5,", "12:00 12000,,true"}, views: 12000, likes: 5, quality: store.QualityRounded},
		"the same count exact, then rounded": {lines: []string{"12:00 12000,5,", "12:00 12K,,"}, views: 12000, likes: 5, quality: store.QualityMeasured},
		"the same count rounded, then exact": {lines: []string{"12:00 12K,5,", "12:00 12000,,"}, views: 12000, likes: 5, quality: store.QualityMeasured},
	} {
		o := newOrg(t, db)
		_, err := runImport(t, db, o, rows(c.lines...), func(i *transfer.Import) { i.Numbers = transfer.DecimalPoint })
		if c.conflict != "" {
			require.ErrorContains(t, err, c.conflict, name)
			continue
		}
		require.NoError(t, err, name)
		points, err := o.History(t.Context(), store.Ref{Link: videoLink(t)}, day, day)
		require.NoError(t, err, name)
		require.Equal(t, []any{c.views, c.likes, c.quality}, []any{*points[0].Views, *points[0].Likes, points[0].Quality}, name)
	}
}

func TestImport_reportsReadErrors(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o := newOrg(t, db)
	for _, text := range []string{"link,date,views\nhttps://youtu.be/dQw4w9WgXcQ,2026-01-01,5\n", `{"link":"https://youtu.be/dQw4w9WgXcQ"}` + "\n", "["} {
		_, err := runImport(t, db, o, "", func(i *transfer.Import) { i.In = failingReader{strings.NewReader(text)} })
		require.ErrorContains(t, err, "simulated failure of the reader")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	i := transfer.Import{Org: o, In: strings.NewReader("link\nhttps://youtu.be/dQw4w9WgXcQ\n"), Resolve: refuseShortLinks, Now: db.Clock.Now(),
		Numbers: transfer.AutoNumbers, Dates: transfer.AutoDates, TempDir: t.TempDir(), Progress: func(transfer.Stage, int64, int64) {}}
	_, err := i.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
