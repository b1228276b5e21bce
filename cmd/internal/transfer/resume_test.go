package transfer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func fileNames(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

// csvOfManyVideos returns a CSV file with n videos that have two points each.
func csvOfManyVideos(day store.Date, n int) string {
	var rows strings.Builder
	rows.WriteString("link,date,views\n")
	for i := range n {
		for daysAgo := range 2 {
			fmt.Fprintf(&rows, "https://www.tiktok.com/@a/video/73012345%011d,%s,%d\n", i, day-store.Date(daysAgo), 2*i-i*daysAgo)
		}
	}
	return rows.String()
}

func TestImport_continuesAfterInterruption(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		text := csvOfManyVideos(store.DateOf(db.Clock.Now()), 500)
		o, uninterrupted := newOrg(t, db), newOrg(t, db)
		interruptImport(t, db, o, text)
		page, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 5000}})
		require.NoError(t, err)
		require.Len(t, page.Rows, 200)

		var progress []int64
		summary, err := runImport(t, db, o, text, func(i *transfer.Import) {
			i.Progress = func(s transfer.Stage, done, total int64) {
				if s == transfer.Writing {
					require.EqualValues(t, 500, total)
					progress = append(progress, done)
				}
			}
		})
		require.NoError(t, err)
		require.Equal(t, transfer.Summary{Rows: 1000, Videos: 500, New: 300, Added: 600, Existing: 400}, summary)
		require.Equal(t, []int64{200, 400, 500}, progress)

		_, err = runImport(t, db, uninterrupted, text)
		require.NoError(t, err)
		all := store.ExportQuery{}
		require.Equal(t, exportedText(t, uninterrupted, transfer.CSV, all), exportedText(t, o, transfer.CSV, all))
		day := store.DateOf(db.Clock.Now())
		a, err := uninterrupted.OrganisationHistory(t.Context(), day-5, day)
		require.NoError(t, err)
		b, err := o.OrganisationHistory(t.Context(), day-5, day)
		require.NoError(t, err)
		require.Equal(t, a, b)
	})
}

// If the database is restored from a backup after an interrupted import, the next run must import all missing videos again.
func TestImport_continuesAfterDatabaseRestore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, text := newOrg(t, db), csvOfManyVideos(store.DateOf(db.Clock.Now()), 250)
		interruptImport(t, db, o, text)

		restored := storetest.New(t, db.Engine)
		restored.Clock.Set(db.Clock.Now())
		_, err := backfill.CreateOrganisation(t.Context(), restored.Store, store.Organisation{ID: o.ID(), Name: "Tester", Tier: store.TierPremium,
			Subscription: store.SubscriptionActive, CreatedAt: store.InstantOf(db.Clock.Now())})
		require.NoError(t, err)
		summary, err := runImport(t, restored, restored.Org(o.ID()), text)
		require.NoError(t, err)
		require.Equal(t, transfer.Summary{Rows: 500, Videos: 250, New: 250, Added: 500}, summary)
		require.Equal(t, 501, strings.Count(exportedText(t, restored.Org(o.ID()), transfer.CSV, store.ExportQuery{}), "\n"))
	})
}

// The first run skips a row whose short link cannot be resolved. If a second run can resolve the link, it must import the row.
func TestImport_importsRowsThatAnEarlierRunSkipped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, day := newOrg(t, db), store.DateOf(db.Clock.Now())
		text := csvOfManyVideos(day, 250) + fmt.Sprintf("https://youtu.be/dQw4w9WgXcQ,%s,1\nhttps://vm.tiktok.com/ZMabcdefg/,%s,7\n", day, day)
		skipBadRows := func(i *transfer.Import) { i.Bad = func(transfer.BadRow) error { return nil } }
		interruptImport(t, db, o, text, skipBadRows)
		first, err := link.Parse("https://www.tiktok.com/@a/video/7000000000000000000") // the smallest id of the file, so this video is in the first batch
		require.NoError(t, err)
		summary, err := runImport(t, db, o, text, skipBadRows, func(i *transfer.Import) {
			i.Resolve = func(context.Context, link.Link) (link.Link, error) { return first, nil }
		})
		require.NoError(t, err)
		require.Zero(t, summary.Bad)
		v, err := o.Video(t.Context(), store.Ref{Link: first})
		require.NoError(t, err)
		require.EqualValues(t, 7, *v.Latest.Views)
	})
}

// interruptImport runs an import and cancels it after its first batch was written.
func interruptImport(t *testing.T, db *storetest.DB, o *store.Org, text string, change ...func(*transfer.Import)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	i := transfer.Import{Org: o, In: strings.NewReader(text), Resolve: refuseShortLinks, Now: db.Clock.Now(), TempDir: t.TempDir(),
		Progress: func(s transfer.Stage, done, total int64) {
			if s == transfer.Writing && done < total {
				stop()
			}
		}}
	for _, c := range change {
		c(&i)
	}
	_, err := i.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestExport_resumesAfterInterruption(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, dir := newOrg(t, db), t.TempDir()
		path := filepath.Join(dir, "out")
		_, err := runImport(t, db, o, csvOfManyVideos(store.DateOf(db.Clock.Now()), 500))
		require.NoError(t, err)
		failOnError := func(err error) { require.NoError(t, err) }
		for _, f := range []transfer.Format{transfer.CSV, transfer.JSONLines} {
			e := transfer.Export{Org: o, Format: f, Query: store.ExportQuery{To: 1 << 30}, Progress: func(int64) {}}
			want := exportedText(t, o, f, store.ExportQuery{})
			ctx, stop := context.WithCancel(t.Context())
			interrupted := e
			interrupted.Progress = func(int64) { stop() }
			_, err = interrupted.WriteFile(ctx, path, false, failOnError)
			require.ErrorIs(t, err, context.Canceled)
			require.NoFileExists(t, path)

			_, err = e.WriteFile(t.Context(), path, false, failOnError)
			require.ErrorContains(t, err, "--resume")
			other := e
			other.Query.Interpolated = true
			_, err = other.WriteFile(t.Context(), path, true, failOnError)
			require.ErrorContains(t, err, "interpolated=false")

			partFile, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			_, err = partFile.WriteString("half of a ro")
			require.NoError(t, err)
			require.NoError(t, partFile.Close())
			done, err := e.WriteFile(t.Context(), path, true, failOnError)
			require.NoError(t, err)
			require.Equal(t, transfer.Exported{Videos: 500, Rows: 1000}, done, "the totals must include both runs")
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
			require.Equal(t, []string{"out"}, fileNames(t, dir))

			done, err = e.WriteFile(t.Context(), path, true, failOnError)
			require.NoError(t, err, "without a part file, --resume must start a new export and replace the complete file")
			require.EqualValues(t, 1000, done.Rows)
			require.NoError(t, os.Remove(path))
		}

		// If an export was interrupted before its first batch was complete, the next run starts from the beginning.
		require.NoError(t, os.WriteFile(path+".part", []byte("link,user"), 0o600))
		e := transfer.Export{Org: o, Format: transfer.CSV, Query: store.ExportQuery{To: 1 << 30}, Progress: func(int64) {}}
		_, err = e.WriteFile(t.Context(), path, true, failOnError)
		require.NoError(t, err)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, exportedText(t, o, transfer.CSV, store.ExportQuery{}), string(got))
	})
}

func TestExport_completesIfStateCannotBeSaved(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o, path := newOrg(t, db), filepath.Join(t.TempDir(), "out")
	_, err := runImport(t, db, o, csvOfManyVideos(store.DateOf(db.Clock.Now()), 450))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(path+".part-state", "in the way"), 0o700))
	var failed []error
	e := transfer.Export{Org: o, Format: transfer.CSV, Query: store.ExportQuery{To: 1 << 30}, Progress: func(int64) {}}
	done, err := e.WriteFile(t.Context(), path, false, func(err error) { failed = append(failed, err) })
	require.NoError(t, err)
	require.EqualValues(t, 900, done.Rows)
	require.Len(t, failed, 2, "the export must report two errors: one for saving the state and one for deleting it")
}
