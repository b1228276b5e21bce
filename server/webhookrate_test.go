package server_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

func TestSendWebhooks_sendsTheNextBatchAtOnce(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		const events = 160 // 20 batches
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		c.createWebhook(r.URL, store.EventVideoMetrics)
		var links []string
		for n := range events {
			links = append(links, videoURL(n))
		}
		c.trackVideos(http.StatusOK, links)
		a.fetch(factsWithViews(5))
		arrived := make(chan struct{}, events)
		r.answerWithFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		began := time.Now()
		go func() {
			defer close(done)
			a.server.SendWebhooks(ctx)
		}()
		for range events {
			<-arrived
		}
		took := time.Since(began)
		cancel()
		<-done
		t.Logf("%d events in %s: %.0f a second", events, took, events/took.Seconds())
		require.Less(t, took, 10*time.Second, "with one batch a second, the events take 19 seconds")
	})
}

func TestClaimWebhooks_prefersAWebhookThatWaitsToOneWithFurtherBatches(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		busy, waiting := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
		first := busy.createWebhook("https://busy.example.com/")
		second := waiting.createWebhook("https://waiting.example.com/")
		busy.testWebhook(first.ID)
		busy.testWebhook(first.ID)
		a.Clock.Advance(time.Second)
		waiting.testWebhook(second.ID)
		claimOne := func() store.WebhookClaim {
			t.Helper()
			a.Clock.Advance(time.Second)
			claims, err := a.ClaimWebhooks(t.Context(), 1, time.Minute)
			require.NoError(t, err)
			require.Len(t, claims, 1)
			_, _, due, err := a.DueDeliveries(t.Context(), claims[0], 1)
			require.NoError(t, err)
			require.Len(t, due, 1)
			attempts := []store.Attempt{{DeliveryID: due[0].ID, At: store.InstantOf(a.Clock.Now()), Status: http.StatusOK}}
			require.NoError(t, a.FinishClaim(t.Context(), claims[0], attempts))
			return claims[0]
		}
		require.Equal(t, first.ID, claimOne().WebhookID)
		require.Equal(t, second.ID, claimOne().WebhookID)
		require.Equal(t, first.ID, claimOne().WebhookID)
	})
}
