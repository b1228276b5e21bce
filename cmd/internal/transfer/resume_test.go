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
	"github.com/reeltally/reeltally/store/storetest"
)

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func manyVideos(day store.Date, n int) string {
	var rows strings.Builder
	rows.WriteString("link,date,views\n")
	for i := range n {
		for ago := range 2 {
			fmt.Fprintf(&rows, "https://www.tiktok.com/@a/video/73012345%011d,%s,%d\n", i, day-store.Date(ago), 2*i-i*ago)
		}
	}
	return rows.String()
}

func TestImport_goesOnWhereItWas(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		text := manyVideos(store.DateOf(db.Clock.Now()), 500)
		o, whole, dir := newOrg(t, db), newOrg(t, db), t.TempDir()
		state := func() *transfer.State {
			return &transfer.State{Path: filepath.Join(dir, "state"), Failed: func(err error) { require.NoError(t, err) }}
		}
		ctx, stop := context.WithCancel(t.Context())
		i := transfer.Import{Org: o, In: strings.NewReader(text), Resolve: noShortLinks, Now: db.Clock.Now(), State: state(), TempDir: t.TempDir(),
			Progress: func(s transfer.Stage, done, total int64) {
				if s == transfer.Writing {
					require.EqualValues(t, 500, total)
					stop()
				}
			}}
		_, err := i.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{"state"}, entries(t, dir))
		page, err := o.Videos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 5000}})
		require.NoError(t, err)
		require.Len(t, page.Videos, 200)

		sum, err := importing(t, db, o, text, func(i *transfer.Import) { i.State = state() })
		require.NoError(t, err)
		require.Equal(t, transfer.Summary{Rows: 1000, Videos: 500, New: 500, Added: 1000}, sum, "of both runs, and nothing was found there")
		require.Empty(t, entries(t, dir), "nothing is left to remember")

		_, err = importing(t, db, whole, text)
		require.NoError(t, err)
		all := store.ExportQuery{}
		require.Equal(t, exported(t, whole, transfer.CSV, all), exported(t, o, transfer.CSV, all))
		day := store.DateOf(db.Clock.Now())
		a, err := whole.OrganisationHistory(t.Context(), day-5, day)
		require.NoError(t, err)
		b, err := o.OrganisationHistory(t.Context(), day-5, day)
		require.NoError(t, err)
		require.Equal(t, a, b)
	})
}

// What is remembered counts for the same file, meant the same way, in the same organisation.
func TestImport_remembersTheSameFileOnly(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	path := filepath.Join(t.TempDir(), "state")
	text := manyVideos(store.DateOf(db.Clock.Now()), 250)
	run := func(o *store.Org, text string, columns transfer.Columns) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_, err := transfer.Import{Org: o, In: strings.NewReader(text), Columns: columns, Resolve: noShortLinks, Now: db.Clock.Now(), TempDir: t.TempDir(),
			State: &transfer.State{Path: path}, Progress: func(s transfer.Stage, done, total int64) {
				if s == transfer.Writing && done < total {
					stop()
				}
			}}.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
	}
	o, other := newOrg(t, db), newOrg(t, db)
	for _, c := range []struct {
		org     *store.Org
		text    string
		columns transfer.Columns
	}{{other, text, transfer.Columns{}}, {o, strings.Replace(text, ",0\n", ",1\n", 1), transfer.Columns{}}, {o, text, transfer.Columns{Map: map[string]string{"x": "likes"}}}} {
		run(o, text, transfer.Columns{})
		sum, err := importing(t, db, c.org, c.text, func(i *transfer.Import) {
			i.Columns, i.State = c.columns, &transfer.State{Path: path}
		})
		require.NoError(t, err)
		require.EqualValues(t, 500, sum.Added+sum.There+sum.Kept)
		require.NotEqualValues(t, 500, sum.New)
		require.NoFileExists(t, path)
		o = newOrg(t, db)
	}
}

func TestImport_worksWithoutItsState(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	var failed []error
	sum, err := importing(t, db, newOrg(t, db), manyVideos(store.DateOf(db.Clock.Now()), 450), func(i *transfer.Import) {
		i.State = &transfer.State{Path: filepath.Join(t.TempDir(), "missing", "state"), Failed: func(err error) { failed = append(failed, err) }}
	})
	require.NoError(t, err)
	require.EqualValues(t, 900, sum.Added)
	require.Len(t, failed, 1, "it says so once")
}

func TestExport_goesOnWhereItWas(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, dir := newOrg(t, db), t.TempDir()
		path := filepath.Join(dir, "out")
		_, err := importing(t, db, o, manyVideos(store.DateOf(db.Clock.Now()), 500))
		require.NoError(t, err)
		noFault := func(err error) { require.NoError(t, err) }
		for _, f := range []transfer.Format{transfer.CSV, transfer.JSONLines} {
			e := transfer.Export{Org: o, Format: f, Query: store.ExportQuery{To: 1 << 30}, Progress: func(int64) {}}
			want := exported(t, o, f, store.ExportQuery{})
			ctx, stop := context.WithCancel(t.Context())
			broken := e
			broken.Progress = func(int64) { stop() }
			_, err = broken.ToFile(ctx, path, false, noFault)
			require.ErrorIs(t, err, context.Canceled)
			require.NoFileExists(t, path)

			_, err = e.ToFile(t.Context(), path, false, noFault)
			require.ErrorContains(t, err, "--resume")
			another := e
			another.Query.Interpolated = true
			_, err = another.ToFile(t.Context(), path, true, noFault)
			require.ErrorContains(t, err, "interpolated=false")

			half, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			_, err = half.WriteString("half of a ro")
			require.NoError(t, err)
			require.NoError(t, half.Close())
			done, err := e.ToFile(t.Context(), path, true, noFault)
			require.NoError(t, err)
			require.Equal(t, transfer.Exported{Videos: 500, Rows: 1000}, done, "of both runs")
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
			require.Equal(t, []string{"out"}, entries(t, dir))

			done, err = e.ToFile(t.Context(), path, true, noFault)
			require.NoError(t, err, "with nothing to resume it begins, and replaces the file once it is whole")
			require.EqualValues(t, 1000, done.Rows)
			require.NoError(t, os.Remove(path))
		}

		// Broken off before anything of it was whole.
		require.NoError(t, os.WriteFile(path+".part", []byte("link,user"), 0o600))
		e := transfer.Export{Org: o, Format: transfer.CSV, Query: store.ExportQuery{To: 1 << 30}, Progress: func(int64) {}}
		_, err = e.ToFile(t.Context(), path, true, noFault)
		require.NoError(t, err)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, exported(t, o, transfer.CSV, store.ExportQuery{}), string(got))
	})
}
