package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func begin(t *testing.T, o *store.Org, operation, key, fingerprint string) store.IdempotencyKey {
	t.Helper()
	k, err := o.BeginKey(t.Context(), operation, key, []byte(fingerprint))
	require.NoError(t, err)
	return k
}

func TestIdempotencyKey_givesTheFirstAnswerAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		first := begin(t, o, "TrackVideo", "k", "body")
		require.Equal(t, store.KeyFresh, first.State)
		require.Equal(t, store.IdempotencyKey{State: store.KeyRunning, EffectID: first.EffectID}, begin(t, o, "TrackVideo", "k", "body"))
		require.Equal(t, store.KeyMismatch, begin(t, o, "TrackVideo", "k", "other").State)

		answer := store.KeptAnswer{Status: 201, ContentType: "application/json", Body: []byte("{\"a\":\x00\xff}")}
		require.NoError(t, o.FinishKey(t.Context(), "TrackVideo", "k", answer))
		require.NoError(t, o.ReleaseKey(t.Context(), "TrackVideo", "k"), "which has an answer and stays")
		require.Equal(t, store.IdempotencyKey{State: store.KeyDone, EffectID: first.EffectID, Answer: answer}, begin(t, o, "TrackVideo", "k", "body"))
		require.Equal(t, store.KeyMismatch, begin(t, o, "TrackVideo", "k", "other").State)

		for name, other := range map[string]store.IdempotencyKey{"operation": begin(t, o, "StopVideo", "k", "x"), "key": begin(t, o, "TrackVideo", "l", "x"),
			"organisation": begin(t, newOrg(t, db), "TrackVideo", "k", "x")} {
			require.Equal(t, store.KeyFresh, other.State, "another %s", name)
		}
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, store.KeyDone, begin(t, o, "TrackVideo", "k", "body").State)
		db.Clock.Advance(time.Microsecond)
		again := begin(t, o, "TrackVideo", "k", "other")
		require.Equal(t, store.KeyFresh, again.State, "after a day it is free")
		require.NotEqual(t, first.EffectID, again.EffectID)
	})
}

func TestIdempotencyKey_ofADeadRequestCanBeTakenUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		first := begin(t, o, "TrackVideo", "k", "body")
		db.Clock.Advance(time.Minute - time.Microsecond)
		require.Equal(t, store.KeyRunning, begin(t, o, "TrackVideo", "k", "body").State)
		db.Clock.Advance(time.Microsecond)
		require.Equal(t, store.KeyMismatch, begin(t, o, "TrackVideo", "k", "other").State)
		second := begin(t, o, "TrackVideo", "k", "body")
		require.Equal(t, store.IdempotencyKey{State: store.KeyFresh, EffectID: first.EffectID}, second, "what the dead one made is found again")
		require.Equal(t, store.KeyRunning, begin(t, o, "TrackVideo", "k", "body").State)

		require.NoError(t, o.ReleaseKey(t.Context(), "TrackVideo", "k"))
		require.Equal(t, store.KeyMismatch, begin(t, o, "TrackVideo", "k", "other").State, "what it did is unknown: it is not free for another")
		require.Equal(t, second, begin(t, o, "TrackVideo", "k", "body"), "and goes on at once")
	})
}

func TestIdempotencyKey_letsOneOfManyRequestsGoOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const requests = 16
		o := newOrg(t, db)
		var wg sync.WaitGroup
		states, errs := make([]store.IdempotencyState, requests), make([]error, requests)
		for i := range requests {
			wg.Go(func() {
				k, err := o.BeginKey(t.Context(), "TrackVideo", "k", []byte("body"))
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
