package store_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestWebhookStatus_countsReceiversWithoutAResponse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		status := func() store.WebhookStatus {
			t.Helper()
			s, err := db.WebhookStatus(t.Context())
			require.NoError(t, err)
			return s
		}
		require.Zero(t, status())
		for i := range 2 {
			o := storetest.NewOrg(t, db)
			for range 2 + i {
				w, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://example.test/", Secret: []byte("s")})
				require.NoError(t, err)
				_, err = o.TestWebhook(t.Context(), w.ID, store.NewID())
				require.NoError(t, err)
			}
		}
		// attempt claims all due webhooks, and finishes each claim with an attempt that got the given status; 0 means no response.
		attempt := func(response int, message string) {
			t.Helper()
			claims, err := db.ClaimWebhooks(t.Context(), 10, time.Minute)
			require.NoError(t, err)
			require.Len(t, claims, 5)
			for _, c := range claims {
				_, _, due, err := db.DueDeliveries(t.Context(), c, 1)
				require.NoError(t, err)
				require.Len(t, due, 1)
				require.NoError(t, db.FinishClaim(t.Context(), c, []store.Attempt{{DeliveryID: due[0].ID, URL: "https://example.test/", At: store.InstantOf(db.Clock.Now()), Status: response, Error: message}}))
			}
		}
		attempt(0, "The connection has failed.")
		want := store.WebhookStatus{Enabled: 5, Organisations: 2, Unreachable: 5, UnreachableOrganisations: 2}
		require.Equal(t, want, status(), "the pause after a failed attempt must not count as a delay")
		db.Clock.Advance(5*time.Second + time.Minute) // the second attempts are due five seconds after the first ones
		want.Delay = time.Minute
		require.Equal(t, want, status(), "a due delivery that no server sends must count as a delay")

		claims, err := db.ClaimWebhooks(t.Context(), 10, time.Minute)
		require.NoError(t, err)
		for _, c := range claims {
			require.NoError(t, db.FinishClaim(t.Context(), c, nil)) // a server that stops ends its claims without an attempt
		}
		require.EqualValues(t, 5, status().Unreachable)
		attempt(http.StatusInternalServerError, "The response has status 500.")
		require.Equal(t, store.WebhookStatus{Enabled: 5, Organisations: 2}, status(), "a receiver that answers with an error is not unreachable")
	})
}

func TestWebhookStatus_forgetsTheOldURLOfAWebhook(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		unreachable := func() int64 {
			t.Helper()
			s, err := db.WebhookStatus(t.Context())
			require.NoError(t, err)
			return s.Unreachable
		}
		const first, second, third = "https://one.test/", "https://two.test/", "https://three.test/"
		o := storetest.NewOrg(t, db)
		w, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: first, Secret: []byte("s")})
		require.NoError(t, err)
		changeURL := func(to string) {
			t.Helper()
			_, err := o.UpdateWebhook(t.Context(), w.ID, store.WebhookChange{URL: &to})
			require.NoError(t, err)
		}
		claim := func() store.WebhookClaim {
			t.Helper()
			_, err := o.TestWebhook(t.Context(), w.ID, store.NewID())
			require.NoError(t, err)
			claims, err := db.ClaimWebhooks(t.Context(), 1, time.Minute)
			require.NoError(t, err)
			require.Len(t, claims, 1)
			return claims[0]
		}
		// finish ends a claim. It stores one attempt without a response for each URL.
		finish := func(c store.WebhookClaim, urls ...string) {
			t.Helper()
			_, _, due, err := db.DueDeliveries(t.Context(), c, 1)
			require.NoError(t, err)
			attempts := make([]store.Attempt, len(urls))
			for i, url := range urls {
				attempts[i] = store.Attempt{DeliveryID: due[0].ID, URL: url, At: store.InstantOf(db.Clock.Now()), Error: "The connection has failed."}
			}
			require.NoError(t, db.FinishClaim(t.Context(), c, attempts))
		}
		finish(claim(), first)
		require.EqualValues(t, 1, unreachable())
		changeURL(second)
		require.Zero(t, unreachable(), "nothing was sent to the new URL yet")
		finish(claim(), second)
		require.EqualValues(t, 1, unreachable())

		c := claim()
		changeURL(third)
		finish(c, second)
		require.Zero(t, unreachable(), "the attempt was at the old URL")
		finish(claim(), third)
		c = claim()
		changeURL(first)
		finish(c)
		require.Zero(t, unreachable(), "a claim without attempts must not restore the result of the old URL")
		finish(claim(), first, third)
		require.EqualValues(t, 1, unreachable(), "the last attempt at the present URL got no response")
	})
}
