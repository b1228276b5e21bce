package store_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver "pgx", with which the test writes to the promoted replica
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/storetest"
)

// replicatedStore is a store with a replica for reads. The store's database has the name "replicated", on the primary server and on the replica.
type replicatedStore struct {
	*storetest.DB
	reader *store.Store // the store that reads from the replica
	log    *storetest.Log
}

// newReplicatedStore creates a database on the primary server, and a store that reads from the replica.
func newReplicatedStore(t *testing.T, primary *storetest.Server, replica *storetest.Replica) *replicatedStore {
	t.Helper()
	r := &replicatedStore{DB: primary.New(t, "replicated"), log: &storetest.Log{}}
	replica.Await(t)
	r.reader = r.openStore(t, replica.Database("replicated"))
	return r
}

// openStore returns a store that reads from the replica with the given URL.
func (r *replicatedStore) openStore(t *testing.T, readURL string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: r.URL, ReadURL: readURL, Now: r.Clock.Now, Inspect: r.Guard.Inspect, Logger: slog.New(slog.NewTextHandler(r.log, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// videoTitles returns the titles of the organisation's videos. The store reads them from the replica if that is possible.
func videoTitles(t *testing.T, s *store.Store, o *store.Org) []string {
	t.Helper()
	list, err := store.FromReplica(t.Context(), s.Org(o.ID()), func(o *store.Org) (*store.List[store.Video], error) {
		return o.ListVideos(t.Context(), storetest.OrderedBy("created_at", false))
	})
	require.NoError(t, err)
	var found []string
	for _, video := range list.Rows {
		found = append(found, video.Title)
	}
	return found
}

// requireSameHistories fails the test if the histories from the replica differ from the histories from the primary.
func requireSameHistories(t *testing.T, r *replicatedStore, o *store.Org) {
	t.Helper()
	page, err := o.ListVideos(t.Context(), storetest.OrderedBy("created_at", false))
	require.NoError(t, err)
	today := r.Clock.Now()
	from, to := store.DateOf(today)-10, store.DateOf(today)
	histories := func(o *store.Org) ([]any, error) {
		points, err := o.History(t.Context(), store.Ref{ID: page.Rows[0].ID}, from, to)
		days, err2 := o.OrganisationHistory(t.Context(), from, to)
		accounts, err3 := o.AccountHistory(t.Context(), store.Ref{ID: *page.Rows[0].LinkedAccountID}, from, to)
		return []any{points, days, accounts}, errors.Join(err, err2, err3)
	}
	want, err := histories(o)
	require.NoError(t, err)
	got, err := store.FromReplica(t.Context(), r.reader.Org(o.ID()), histories)
	require.NoError(t, err)
	require.NotEmpty(t, want[0])
	require.Equal(t, want, got)
}

// countReads returns how many reads the replica has answered, and how many it could not answer, since the last call.
func countReads(t *testing.T, s *store.Store, before *store.ReplicaState) (replica, primary int64) {
	t.Helper()
	now, ok := s.Replica(t.Context())
	require.True(t, ok)
	defer func() { *before = now }()
	return now.Answered - before.Answered, now.Behind - before.Behind + now.Failed - before.Failed
}

func TestReplica_answersOnlyIfItHasTheLastChangeOfTheOrganisation(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	primary, replica := storetest.NewServerWithReplica(t)
	r := newReplicatedStore(t, primary, replica)
	o, other := storetest.NewOrg(t, r.DB), storetest.NewOrg(t, r.DB)
	storetest.Track(t, o, storetest.VideoLink(t, 1))
	storetest.Track(t, other, storetest.VideoLink(t, 2))
	title := func(text string) {
		r.Clock.Advance(24 * time.Hour)
		storetest.Deliver(t, r.DB, storetest.VideoLink(t, 1).Platform, ingest.VideoFacts{Title: &text, Views: new(int64(1000))})
	}
	title("first")
	replica.Await(t)
	var state store.ReplicaState

	require.Equal(t, []string{"first"}, videoTitles(t, r.reader, o))
	onReplica, onPrimary := countReads(t, r.reader, &state)
	require.Positive(t, onReplica)
	require.Zero(t, onPrimary)
	require.True(t, state.Up)
	require.Zero(t, state.Lag)

	// While the replica lags, it answers an organisation only if it has the organisation's last change. Otherwise the primary answers.
	replica.Pause(t)
	storetest.Track(t, other, storetest.VideoLink(t, 3))
	require.Equal(t, []string{"first"}, videoTitles(t, r.reader, o))
	onReplica, onPrimary = countReads(t, r.reader, &state)
	require.Positive(t, onReplica, "the replica must answer although it lacks a change of another organisation")
	require.Zero(t, onPrimary)
	require.Positive(t, state.Lag)
	title("second")
	require.Equal(t, []string{"second"}, videoTitles(t, r.reader, o))
	require.Len(t, videoTitles(t, r.reader, other), 2)
	onReplica, onPrimary = countReads(t, r.reader, &state)
	require.Zero(t, onReplica)
	require.Equal(t, int64(2), onPrimary)
	requireSameHistories(t, r, o)
	_, _ = countReads(t, r.reader, &state)

	replica.Resume(t)
	replica.Await(t)
	require.Equal(t, []string{"second"}, videoTitles(t, r.reader, o))
	require.Len(t, videoTitles(t, r.reader, other), 2)
	requireSameHistories(t, r, o)
	onReplica, onPrimary = countReads(t, r.reader, &state)
	require.Positive(t, onReplica)
	require.Zero(t, onPrimary)

	// The replica has not applied the creation of this new organisation yet.
	replica.Pause(t)
	late := storetest.NewOrg(t, r.DB)
	require.Empty(t, videoTitles(t, r.reader, late))
	replica.Resume(t)
	replica.Await(t)

	// While the replica does not answer, the primary answers. Only the first read waits for the replica.
	thaw := replica.Freeze(t)
	require.Equal(t, []string{"second"}, videoTitles(t, r.reader, o))
	require.Equal(t, []string{"second"}, videoTitles(t, r.reader, o))
	require.False(t, r.reader.DB().HasReplica())
	thaw()
	require.Eventually(t, r.reader.DB().HasReplica, time.Minute, 10*time.Millisecond)
	require.Contains(t, r.log.String(), "the replica answers again")

	// Statements that are sent together see one state of the data.
	var isolation string
	require.NoError(t, r.reader.DB().OnReplica(o.ID(), 1).EachRowOf(t.Context(), r.reader.DB().StaticQuery("SELECT current_setting('transaction_isolation')").Select(nil, func(row *db.Values) error {
		isolation = row.String(0)
		return nil
	})))
	require.Equal(t, "repeatable read", isolation)

	// A promoted replica gets no more changes of the primary. It must not be read, even if its version of the organisation's data is higher
	// than the primary's version.
	replica.Promote(t)
	promoted, err := sql.Open("pgx", replica.Database("replicated"))
	require.NoError(t, err)
	defer func() { require.NoError(t, promoted.Close()) }()
	for _, statement := range []string{"UPDATE videos SET title = 'of another server'", "UPDATE organisation_totals SET version = version + 1000"} {
		_, err := promoted.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"second"}, videoTitles(t, r.reader, o))
	_, _ = countReads(t, r.reader, &state)
	require.False(t, state.Up)
	require.False(t, r.reader.DB().HasReplica())
	require.Contains(t, r.log.String(), "the server is no longer a replica")
}

func TestReplica_mustBelongToTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	primary, replica := storetest.NewServerWithReplica(t)
	r := newReplicatedStore(t, primary, replica)
	o := storetest.NewOrg(t, r.DB)
	storetest.Track(t, o, storetest.VideoLink(t, 1))

	elsewhere := r.openStore(t, storetest.CreateDatabase(t, "postgres")) // a database on another server
	require.Len(t, videoTitles(t, elsewhere, o), 1)
	require.Contains(t, r.log.String(), "the server is not a replica of the database")

	down, err := url.Parse(replica.Database("replicated"))
	require.NoError(t, err)
	down.Host = "127.0.0.1:1" // no server listens on port 1
	require.Len(t, videoTitles(t, r.openStore(t, down.String()), o), 1)

	_, err = store.Open(t.Context(), store.Options{URL: storetest.CreateDatabase(t, "sqlite"), ReadURL: replica.Database("replicated"), Now: r.Clock.Now})
	require.ErrorContains(t, err, "a replica for reads is possible only for a PostgreSQL database")
}
