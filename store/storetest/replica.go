package storetest

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ReplicaURL is the environment variable with the URL of the streaming replica that with-postgres has started.
const ReplicaURL = "REELTALLY_TEST_REPLICA_URL"

// Replica is a PostgreSQL server that streams the changes of another server, its primary.
type Replica struct {
	*Server
	primary, own *sql.DB
}

// NewServerWithReplica starts a PostgreSQL server and a streaming replica of it, and stops both when the test ends. The method Crash is only for the
// primary.
func NewServerWithReplica(t testing.TB) (primary *Server, replica *Replica) {
	t.Helper()
	primary, replicaServer := startServers(t, "--replica")
	replica = &Replica{Server: replicaServer}
	for pool, s := range map[**sql.DB]*Server{&replica.primary: primary, &replica.own: replicaServer} {
		var err error
		*pool, err = sql.Open("pgx", s.url)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, (*pool).Close()) })
	}
	return primary, replica
}

// Await waits until the replica has applied everything that the primary has committed before the call of Await.
func (r *Replica) Await(t testing.TB) {
	t.Helper()
	var written string
	require.NoError(t, r.primary.QueryRowContext(t.Context(), "SELECT CAST(pg_current_wal_lsn() AS text)").Scan(&written))
	require.Eventually(t, func() bool {
		var done bool
		return r.own.QueryRowContext(t.Context(), "SELECT pg_last_wal_replay_lsn() >= CAST($1 AS pg_lsn)", written).Scan(&done) == nil && done
	}, time.Minute, 5*time.Millisecond)
}

// Pause makes the replica apply no more changes. It returns when the replica has applied its last change.
func (r *Replica) Pause(t testing.TB) {
	t.Helper()
	_, err := r.own.ExecContext(t.Context(), "SELECT pg_wal_replay_pause()")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var state string
		return r.own.QueryRowContext(t.Context(), "SELECT pg_get_wal_replay_pause_state()").Scan(&state) == nil && state == "paused"
	}, time.Minute, 5*time.Millisecond)
}

// Resume makes the replica apply changes again.
func (r *Replica) Resume(t testing.TB) {
	t.Helper()
	_, err := r.own.ExecContext(t.Context(), "SELECT pg_wal_replay_resume()")
	require.NoError(t, err)
}

// Promote makes the replica an independent server. The server then accepts writes, and no longer applies the changes of the primary.
func (r *Replica) Promote(t testing.TB) {
	t.Helper()
	_, err := r.own.ExecContext(t.Context(), "SELECT pg_promote()")
	require.NoError(t, err)
}
