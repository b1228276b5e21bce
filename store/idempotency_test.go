package store_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// reserveKey calls ReserveKey and fails the test if ReserveKey returns an error.
func reserveKey(t *testing.T, o *store.Org, operation, key, fingerprint string) store.IdempotencyKey {
	t.Helper()
	k, err := o.ReserveKey(t.Context(), operation, key, []byte(fingerprint))
	require.NoError(t, err)
	return k
}

func TestIdempotencyKey_returnsTheStoredAnswerToARepeatedRequest(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		first := reserveKey(t, o, "TrackVideo", "k", "body")
		require.Equal(t, store.KeyFresh, first.State)
		running := store.IdempotencyKey{State: store.KeyRunning, EffectID: first.EffectID, RetryAfter: time.Second}
		require.Equal(t, running, reserveKey(t, o, "TrackVideo", "k", "body"), "most requests end within a second")
		db.Clock.Advance(time.Second)
		running.RetryAfter = store.KeyLease - time.Second
		require.Equal(t, running, reserveKey(t, o, "TrackVideo", "k", "body"), "a request that runs for a second can take longer, or its server crashed")
		db.Clock.Advance(-time.Second)
		require.Equal(t, store.KeyMismatch, reserveKey(t, o, "TrackVideo", "k", "other").State)

		response := store.KeptResponse{Status: 201, ContentType: "application/json", Body: []byte("{\"a\":\x00\xff}")}
		require.NoError(t, o.FinishKey(t.Context(), "TrackVideo", "k", response))
		require.NoError(t, o.ReleaseKey(t.Context(), "TrackVideo", "k"), "a key with a response must not be released")
		require.Equal(t, store.IdempotencyKey{State: store.KeyDone, EffectID: first.EffectID, Response: response}, reserveKey(t, o, "TrackVideo", "k", "body"))
		require.Equal(t, store.KeyMismatch, reserveKey(t, o, "TrackVideo", "k", "other").State)

		for name, other := range map[string]store.IdempotencyKey{"operation": reserveKey(t, o, "StopVideo", "k", "x"), "key": reserveKey(t, o, "TrackVideo", "l", "x"),
			"organisation": reserveKey(t, storetest.NewOrg(t, db), "TrackVideo", "k", "x")} {
			require.Equal(t, store.KeyFresh, other.State, "a different %s must make a different key", name)
		}
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, store.KeyDone, reserveKey(t, o, "TrackVideo", "k", "body").State)
		db.Clock.Advance(time.Microsecond)
		again := reserveKey(t, o, "TrackVideo", "k", "other")
		require.Equal(t, store.KeyFresh, again.State, "a key must expire after a day")
		require.NotEqual(t, first.EffectID, again.EffectID)
	})
}

func TestIdempotencyKey_canBeUsedAgainAfterAnAbortedRequest(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		first := reserveKey(t, o, "TrackVideo", "k", "body")
		db.Clock.Advance(store.KeyLease - time.Microsecond)
		running := store.IdempotencyKey{State: store.KeyRunning, EffectID: first.EffectID, RetryAfter: time.Microsecond}
		require.Equal(t, running, reserveKey(t, o, "TrackVideo", "k", "body"))
		db.Clock.Advance(time.Microsecond)
		require.Equal(t, store.KeyMismatch, reserveKey(t, o, "TrackVideo", "k", "other").State)
		second := reserveKey(t, o, "TrackVideo", "k", "body")
		require.Equal(t, store.IdempotencyKey{State: store.KeyFresh, EffectID: first.EffectID}, second, "the repeated request must have the EffectID of the first request")
		require.Equal(t, store.KeyRunning, reserveKey(t, o, "TrackVideo", "k", "body").State)

		require.NoError(t, o.ReleaseKey(t.Context(), "TrackVideo", "k"))
		require.Equal(t, store.KeyMismatch, reserveKey(t, o, "TrackVideo", "k", "other").State, "another request must not use the key, because the effect of the first request is unknown")
		require.Equal(t, second, reserveKey(t, o, "TrackVideo", "k", "body"), "after ReleaseKey, the same request must get the key again without a wait")
	})
}

func TestIdempotencyKey_isReservedAsLongAsItsLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		first := reserveKey(t, o, "TrackVideo", "k", "body")
		for range 3 {
			db.Clock.Advance(store.KeyLease - time.Second)
			require.NoError(t, o.RenewKey(t.Context(), "TrackVideo", "k"))
		}
		db.Clock.Advance(store.KeyLease - time.Second)
		require.Equal(t, store.IdempotencyKey{State: store.KeyRunning, EffectID: first.EffectID, RetryAfter: time.Second}, reserveKey(t, o, "TrackVideo", "k", "body"))
		db.Clock.Advance(-time.Hour) // the clock of another server can be wrong
		require.Equal(t, store.KeyLease, reserveKey(t, o, "TrackVideo", "k", "body").RetryAfter)
		db.Clock.Advance(time.Hour)

		require.NoError(t, o.FinishKey(t.Context(), "TrackVideo", "k", store.KeptResponse{Status: 201}))
		require.NoError(t, o.RenewKey(t.Context(), "TrackVideo", "k"))
		require.Equal(t, store.KeyDone, reserveKey(t, o, "TrackVideo", "k", "body").State, "RenewKey must not change a key that already has a response")
	})
}

func TestIdempotencyKey_letsOneOfManyConcurrentRequestsContinue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const requests = 16
		o := storetest.NewOrg(t, db)
		var wg sync.WaitGroup
		states, errs := make([]store.IdempotencyState, requests), make([]error, requests)
		for i := range requests {
			wg.Go(func() {
				k, err := o.ReserveKey(t.Context(), "TrackVideo", "k", []byte("body"))
				states[i], errs[i] = k.State, err
			})
		}
		wg.Wait()
		fresh := 0
		for i := range requests {
			require.NoError(t, errs[i])
			if states[i] == store.KeyFresh {
				fresh++
			} else {
				require.Equal(t, store.KeyRunning, states[i])
			}
		}
		require.Equal(t, 1, fresh)
	})
}

// fillKeyStorage makes the store assume that the organisation's idempotency keys take all allowed bytes except freeBytes. It adds no keys.
func fillKeyStorage(t *testing.T, db *storetest.DB, o *store.Org, freeBytes int) {
	t.Helper()
	db.Exec(t, "INSERT INTO idempotency_usage (organisation_id, bytes) VALUES (?, ?)", o.ID(), store.IdempotencyLimit-freeBytes)
}

func TestIdempotencyKeys_useNoMoreDiskSpaceThanTheLimit(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	const left = 8 << 20
	o := storetest.NewOrg(t, db)
	fillKeyStorage(t, db, o, left)
	size := func() int64 {
		return storetest.Column[int64](t, db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")[0]
	}
	before, body := size(), make([]byte, 256<<10)
	storeKeysForADay := func(calls int) (kept int) { // makes requests with new keys over one day, and returns how many keys were stored
		for n := range calls {
			_, err := rand.Read(body) // random bytes cannot be compressed
			require.NoError(t, err)
			key := fmt.Sprint(db.Clock.Now().Day(), "-", n)
			if reserveKey(t, o, "TrackVideos", key, "f").State == store.KeyFresh {
				kept++
				require.NoError(t, o.FinishKey(t.Context(), "TrackVideos", key, store.KeptResponse{Status: 422, Body: body}))
			}
			db.Clock.Advance(24 * time.Hour / time.Duration(calls))
		}
		return kept
	}
	require.Equal(t, left/len(body), storeKeysForADay(60))
	first := size() - before
	require.Less(t, first, int64(left+left/10))
	storeKeysForADay(60)
	require.Less(t, size()-before, first+left/10, "new keys must reuse the space of expired keys")
}

func TestIdempotencyKey_isRefusedAboveTheOrganisationsLimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		fillKeyStorage(t, db, o, 1000)
		require.Equal(t, store.KeyFresh, reserveKey(t, o, "TrackVideo", "a", "f").State)
		response := store.KeptResponse{Status: 200, ContentType: "application/json", Body: []byte(strings.Repeat("x", 100_000))}
		require.NoError(t, o.FinishKey(t.Context(), "TrackVideo", "a", response))
		db.Clock.Advance(time.Hour)
		require.Equal(t, store.KeyFresh, reserveKey(t, o, "TrackVideo", "b", "f").State, "a response that compresses well must use few bytes")

		require.Equal(t, store.IdempotencyKey{State: store.KeyStoreFull, RetryAfter: 23 * time.Hour}, reserveKey(t, o, "TrackVideo", "c", "f"))
		require.Equal(t, response, reserveKey(t, o, "TrackVideo", "a", "f").Response, "stored responses must still be returned")
		require.Equal(t, store.KeyRunning, reserveKey(t, o, "TrackVideo", "b", "f").State)
		require.Equal(t, store.KeyFresh, reserveKey(t, other, "TrackVideo", "c", "f").State, "another organisation must have its own limit")

		db.Clock.Advance(23*time.Hour + time.Microsecond)
		require.Equal(t, store.KeyFresh, reserveKey(t, o, "TrackVideo", "c", "f").State, "a new key must fit as soon as the first key has expired")
	})
}

func TestIdempotencyUsage_isTheSumOfTheSizesOfTheKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for n := range 250 {
			key := fmt.Sprint("k", n)
			require.Equal(t, store.KeyFresh, reserveKey(t, o, "TrackVideo", key, "f").State)
			if n%3 > 0 {
				require.NoError(t, o.FinishKey(t.Context(), "TrackVideo", key, store.KeptResponse{Status: 200, Body: []byte(key)}))
				require.NoError(t, o.FinishKey(t.Context(), "TrackVideo", key, store.KeptResponse{Status: 500, Body: []byte("a second response")}))
			}
			db.Clock.Advance(time.Second)
		}
		requireSum := func(rows int64) {
			t.Helper()
			require.Equal(t, []int64{rows}, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM idempotency_keys"))
			require.Equal(t, storetest.Column[int64](t, db, "SELECT SUM(bytes) FROM idempotency_keys"), storetest.Column[int64](t, db, "SELECT bytes FROM idempotency_usage"))
		}
		requireSum(250)
		db.Clock.Advance(24*time.Hour - 30*time.Second)
		require.Equal(t, store.KeyFresh, reserveKey(t, o, "TrackVideo", "new", "f").State)
		requireSum(151)
		require.Equal(t, store.KeyFresh, reserveKey(t, o, "TrackVideo", "k150", "f").State, "an expired key must be usable again even if its row is not deleted yet")
		requireSum(101 - 49)
		_, err := db.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		requireSum(32)
	})
}
