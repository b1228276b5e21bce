package collector_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// faultyDatabase opens stores of a test database, and makes the statements fail that a call of the method "fail" chooses.
type faultyDatabase struct {
	mu       sync.Mutex
	fragment string // statements that contain this text, without quotes, fail
	failures int    // number of statements that will still fail
	err      error
}

// fail makes the next statements that contain the fragment fail with err.
func (o *faultyDatabase) fail(fragment string, failures int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fragment, o.failures, o.err = fragment, failures, err
}

// openStore opens the test's database again, as a store whose statements fail if the test calls `fail`.
func (o *faultyDatabase) openStore(t *testing.T, db *storetest.DB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: func(statement string, _ []any) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.failures > 0 && strings.Contains(strings.NewReplacer("`", "", `"`, "").Replace(statement), o.fragment) {
			o.failures--
			return o.err
		}
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// countingSource is a source that counts its fetches.
type countingSource struct {
	source.Source
	fetches int
}

func (s *countingSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	s.fetches++
	return s.Source.Fetch(ctx, batch, budget)
}

// trackChannel tracks a channel of the sandbox. A fetch of an account has the longest lease.
func (w *testSystem) trackChannel() {
	w.t.Helper()
	l, err := link.Parse("https://www.youtube.com/@" + w.sandbox.World().FindAccount(link.YouTube, sandbox.AccountNormal))
	require.NoError(w.t, err)
	_, err = w.org.TrackAccounts(w.t.Context(), store.TrackRequest{Links: []link.Link{l}, Type: store.TrackAll, Immediate: 1})
	require.NoError(w.t, err)
}

// fetchedAccounts returns the number of accounts whose followers are stored.
func (w *testSystem) fetchedAccounts() int {
	w.t.Helper()
	return storetest.Column[int](w.t, w.db, "SELECT COUNT(*) FROM fetch_targets WHERE kind = 'account' AND fetched_at IS NOT NULL AND claimed_by IS NULL")[0]
}

// newOutageTest returns a test system that tracks a channel, and a collector with one source. The test can make statements of the collector fail with the
// faultyDatabase. The countingSource is the collector's source and counts the fetches.
func newOutageTest(t *testing.T, db *storetest.DB) (*testSystem, *faultyDatabase, *countingSource, *collector.Collector) {
	t.Helper()
	w, faulty := newTestSystem(t, db), &faultyDatabase{}
	w.trackChannel()
	counting := &countingSource{Source: w.newSources()[0]}
	return w, faulty, counting, w.newCollectorOf(faulty.openStore(t, db), counting)
}

func TestCollector_storesAnAnswerWhenTheDatabaseIsAvailableAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		for _, fragment := range []string{
			"SET claimed_by = NULL, token = NULL, pace", // a statement of Acknowledge
			"DELETE FROM source_pauses",                 // a statement after the answer, before Acknowledge
		} {
			w := newTestSystem(t, db)
			w.trackChannel()
			db.Clock.Advance(time.Hour)
			require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "youtube", Class: string(source.RateLimited), BlockedUntil: store.InstantOf(db.Clock.Now().Add(-time.Minute))}))
			var faulty faultyDatabase
			counting := &countingSource{Source: w.newSources()[0]}
			c := w.newCollectorOf(faulty.openStore(t, db), counting)
			faulty.fail(fragment, 2, store.ErrUnavailable)
			_, _ = c.ClaimAndFetch(t.Context()) // it may return the error of a statement whose failure loses no answer
			require.Equal(t, 1, w.fetchedAccounts(), fragment)
			require.Equal(t, 1, counting.fetches)
			db.Exec(t, "DELETE FROM fetch_targets")
		}
	})
}

func TestCollector_releasesTargetsIfTheDatabaseIsUnavailableBeforeTheCall(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w, faulty, counting, c := newOutageTest(t, db)
		faulty.fail("FROM source_pauses", 1, store.ErrUnavailable)
		_, err := c.ClaimAndFetch(t.Context())
		require.ErrorIs(t, err, store.ErrUnavailable)
		busy, err := c.ClaimAndFetch(t.Context())
		require.NoError(t, err)
		require.False(t, busy, "the target must stay leased until the next heartbeat")

		faulty.fail("claimed_by = NULL, token = NULL WHERE", 1, store.ErrUnavailable)
		require.ErrorIs(t, c.WriteHeartbeat(t.Context()), store.ErrUnavailable)
		require.NoError(t, c.WriteHeartbeat(t.Context()), "a failed release must be repeated")
		busy, err = c.ClaimAndFetch(t.Context())
		require.NoError(t, err)
		require.True(t, busy)
		require.Equal(t, 1, w.fetchedAccounts())
		require.Equal(t, 1, counting.fetches)
	})
}

func TestCollector_doesNotReleaseATargetThatAnotherCollectorHasClaimedAfterAnOutage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		_, faulty, _, c := newOutageTest(t, db)
		faulty.fail("FROM source_pauses", 1, store.ErrUnavailable)
		_, err := c.ClaimAndFetch(t.Context())
		require.ErrorIs(t, err, store.ErrUnavailable)

		db.Clock.Advance(2 * time.Hour) // the lease ends
		other := storetest.NewClaimRequest(store.NewID(), link.YouTube, queue.KindAccount, 1, time.Hour, queue.LaneInteractive)
		other.Route = "youtube"
		claim, err := db.Claim(t.Context(), other)
		require.NoError(t, err)
		require.Len(t, claim.Targets, 1)
		require.NoError(t, c.WriteHeartbeat(t.Context()))
		require.Equal(t, []string{claim.Token.String()}, storetest.Column[string](t, db, "SELECT CAST(token AS text) FROM fetch_targets"))
	})
}

func TestCollector_keepsTheLeaseOfATargetAfterAnErrorThatIsNoOutage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		_, faulty, _, c := newOutageTest(t, db)
		faulty.fail("SET claimed_by = NULL, token = NULL, pace", 1, errors.New("a statement with a mistake"))
		_, err := c.ClaimAndFetch(t.Context())
		require.Error(t, err)
		require.NoError(t, c.WriteHeartbeat(t.Context()))
		busy, err := c.ClaimAndFetch(t.Context())
		require.NoError(t, err)
		require.False(t, busy, "the answer must not be bought again at once")
	})
}

func TestRun_reportsMixedDataAlsoIfTheDatabaseIsUnavailableAtTheEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		w.trackChannel()
		storetest.SetDataKind(t, db, store.RealData)
		var faulty faultyDatabase
		c := w.newCollectorOf(faulty.openStore(t, db), w.newSources()...)
		faulty.fail("DELETE FROM collectors WHERE id = ", 1, store.ErrUnavailable)
		err := c.Run(t.Context())
		require.ErrorIs(t, err, store.ErrUnavailable)
		var kind *store.DataKindError
		require.ErrorAs(t, err, &kind)
	})
}
