package db_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestOpen_refusesAURLThatIsNotADatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(file, []byte("This file is not a database. It is long enough to be read as one. "+strings.Repeat("x", 200)), 0o600))
	for given, because := range map[string]string{
		"":                                       "it must be sqlite:PATH or postgres://",
		"mysql://root:hush@db/x":                 `"mysql:"`,
		"host=h password=hush port=1:2 dbname=x": "database URL begins without a scheme",
		"sqlite:":                                `database URL "sqlite:" names no file`,
		"sqlite:" + folder:                       "unable to open database file",
		"sqlite:" + file + "/below":              "not a directory",
		"sqlite:" + file:                         "file is not a database",
		"postgres://u:hush@h:port/":              "the PostgreSQL URL cannot be read",
	} {
		s, err := store.Open(t.Context(), store.Options{URL: given, Now: time.Now})
		require.ErrorContains(t, err, because, given)
		require.NotContains(t, err.Error(), "hush", "the error must not contain the password")
		require.Nil(t, s)
	}
	_, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + filepath.Join(folder, "x.db")})
	require.ErrorContains(t, err, "Options.Now is required")
}

func TestOpen_createsASQLiteFileWithAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain.db", "with blank.db", "100%?x=1#y&z.db", "日本.db", filepath.Join("new", "folders", "x.db")} {
		path := filepath.Join(t.TempDir(), name)
		s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Now: time.Now})
		require.NoError(t, err, name)
		_, err = s.Migrate(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Close())
		info, err := os.Stat(path)
		require.NoError(t, err, name)
		require.Positive(t, info.Size())
	}
}

func TestOpen_returnsErrUnavailableIfTheServerIsDown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = store.Open(t.Context(), store.Options{URL: "postgres://u:hush@" + address + "/x", Now: time.Now})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NotContains(t, err.Error(), "hush")
}

func TestStore_worksAgainAfterAnOutageOfTheServer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		if !db.SharedByProcesses() {
			require.NoError(t, db.Ready(t.Context())) // SQLite has no server that could stop
			return
		}
		name := storetest.Column[string](t, db, "SELECT current_database()::text")[0]
		admin, err := sql.Open("pgx", os.Getenv(storetest.PostgresURL))
		require.NoError(t, err)
		defer func() { require.NoError(t, admin.Close()) }()
		_, err = admin.ExecContext(t.Context(), "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
		require.NoError(t, err)
		_, err = admin.ExecContext(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
		require.NoError(t, err)

		for name, ask := range map[string]func() error{
			"ready": func() error { return db.Ready(t.Context()) },
			"read":  func() error { _, err := o.VideoStatistics(t.Context()); return err },
			"write": func() error {
				_, err := db.CreateOrganisation(t.Context(), "X", store.TierBasic, store.SubscriptionNone)
				return err
			},
			"row":    func() error { _, err := db.DueLanes(t.Context(), ""); return err },
			"schema": func() error { return db.CheckSchema(t.Context()) },
			"auth": func() error {
				_, err := db.Authenticate(t.Context(), "rt_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd4Q6C45")
				return err
			},
		} {
			require.ErrorIs(t, ask(), store.ErrUnavailable, name)
		}
		_, err = admin.ExecContext(t.Context(), "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
		require.NoError(t, err)
		require.NoError(t, db.Ready(t.Context()))
		_, err = o.VideoStatistics(t.Context())
		require.NoError(t, err)
	})
}

// A migration of the next version can add columns while this version works.
func TestStore_readsAndWritesWhileAMigrationAddsColumns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		org := storetest.NewOrg(t, db)
		collection := storetest.Collection(t, org, "Launch", nil)
		useAllConnections := func() {
			var calls errgroup.Group
			for range 16 {
				calls.Go(func() error {
					for range 5 {
						if _, err := org.Collection(t.Context(), collection.ID, false); err != nil {
							return err
						}
						if _, err := org.Tokens(t.Context()); err != nil {
							return err
						}
						if _, err := org.UpdateCollection(t.Context(), collection.ID, store.CollectionPatch{Name: new("Launch")}); err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, calls.Wait())
		}
		useAllConnections() // each connection now has plans
		for _, table := range []string{"collections", "api_tokens", "organisations", "share_pages"} {
			db.Exec(t, "ALTER TABLE "+table+" ADD COLUMN added_by_next_version bigint NOT NULL DEFAULT 7")
		}
		useAllConnections()
	})
}

func TestStore_returnsErrUnavailableIfTheServerCrashesInATransaction(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	db := server.New(t, "crash")
	create := func() error {
		_, err := db.CreateOrganisation(t.Context(), "X", store.TierBasic, store.SubscriptionNone)
		return err
	}
	require.NoError(t, create())
	db.Guard.BeforeStatement("organisations", func() { server.Crash(t) })
	require.ErrorIs(t, create(), store.ErrUnavailable)
	require.NoError(t, create())
}

func TestStore_returnsErrorsAfterItIsClosed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		require.NoError(t, s.Ready(t.Context()))
		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "twice")
		require.Error(t, s.Ready(t.Context()))
		_, err := s.Organisations(t.Context())
		require.Error(t, err)
		_, err = s.Org(store.NewID()).Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinks(t, 1)})
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrNotFound)
	})
}

func TestStore_methodsStopIfTheirContextIsCancelled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := o.ListVideos(gone, storetest.OrderedBy("created_at", true))
		require.ErrorIs(t, err, context.Canceled)
		_, err = o.Track(gone, store.TrackRequest{Links: storetest.VideoLinks(t, 1)})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, store.ErrUnavailable, "a cancelled context must not count as an outage of the database")
		require.Zero(t, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
	})
}

func TestSecret_isCreatedOnceForAllProcesses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const processes = 8
		var wg sync.WaitGroup
		secrets, errs := make([]string, processes), make([]error, processes)
		for i := range processes {
			s := db.Open(t)
			wg.Go(func() {
				secret, err := s.Secret(t.Context(), "cursor")
				secrets[i], errs[i] = string(secret), err
			})
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		require.Len(t, slices.Compact(slices.Clone(secrets)), 1)
		require.Len(t, secrets[0], 32)
		other, err := db.Secret(t.Context(), "share")
		require.NoError(t, err)
		require.NotEqual(t, secrets[0], string(other))
		again, err := db.Secret(t.Context(), "cursor")
		require.NoError(t, err)
		require.Equal(t, secrets[0], string(again))
	})
}

func TestNewID_returnsIDsThatSortByTheirTimeOfCreation(t *testing.T) {
	t.Parallel()
	var ids []string
	for range 1000 {
		ids = append(ids, store.NewID().String())
	}
	require.True(t, slices.IsSorted(ids))
	require.Len(t, slices.Compact(ids), 1000)
	require.EqualValues(t, '7', ids[0][14], "UUIDv7")
}

func TestNotFoundError_namesTheMissingObjects(t *testing.T) {
	t.Parallel()
	err := error(&store.NotFoundError{Kind: "collection", Names: []string{"a", "b"}})
	require.EqualError(t, err, "no such collection: a, b")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NotErrorIs(t, err, store.ErrDuplicate)
}
