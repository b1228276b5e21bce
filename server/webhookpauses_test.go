package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func TestWebhooks_showNoNextAttemptWhileTheWebhookIsDisabledAndTheEndOfAPauseOtherwise(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		for n := range 3 {
			c.track(videoURL(n))
		}
		hook := c.createWebhook(r.URL, store.EventVideoMetrics)
		path := "/webhooks/" + hook.ID.String()
		r.answerWithStatus(http.StatusServiceUnavailable)
		a.fetch(factsWithViews(5))
		for range 5 {
			a.sendDueEvents(t)
			a.Clock.Advance(time.Minute)
		}
		requireNextAttempts := func(want *time.Time) {
			t.Helper()
			for _, d := range c.deliveries(hook.ID) {
				require.Equal(t, client.WebhookDeliveryStatusPending, d.Status)
				if want == nil {
					require.Nil(t, d.NextAttemptAt)
					continue
				}
				require.False(t, d.NextAttemptAt.Before(*want), "%s is before %s", d.NextAttemptAt, want)
			}
		}
		a.sendDueEvents(t)
		now := a.Clock.Now()
		requireNextAttempts(&now)
		c.send(http.MethodPatch, path, map[string]any{"enabled": false}).requireStatus(http.StatusOK)
		a.Clock.Advance(24 * time.Hour)
		requireNextAttempts(nil)
		c.send(http.MethodPatch, path, map[string]any{"enabled": true}).requireStatus(http.StatusOK)
		requireNextAttempts(new(time.Time))
		r.answerWithStatus(http.StatusOK)
		a.sendDueEvents(t)
		require.Equal(t, client.WebhookDeliveryStatusDelivered, c.deliveries(hook.ID)[0].Status)
	})
}

func TestWebhooks_showNoPauseWhileAnEventIsSent(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		hook := c.createWebhook(r.URL, store.EventVideoMetrics)
		c.track(tiktokLink)
		a.fetch(factsWithViews(5))
		var duringAttempt response
		var err error
		r.answerWithFunc(func(w http.ResponseWriter, _ *http.Request) {
			duringAttempt, err = c.exchange(http.MethodGet, "/webhooks/"+hook.ID.String()+"/deliveries", nil)
			w.WriteHeader(http.StatusOK)
		})
		a.sendDueEvents(t)
		require.NoError(t, err)
		next := decode[client.WebhookDeliveryPage](duringAttempt.requireStatus(http.StatusOK)).Data[0].NextAttemptAt
		require.NotNil(t, next)
		require.False(t, next.After(a.Clock.Now()), "%s is not the due time", next)
	})
}

func TestUpdateWebhook_newURLEndsThePauseAfterFailures(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, broken, r := a.newCaller(t, store.TierPremium), newReceiver(t), newReceiver(t)
		hook := c.createWebhook(broken.URL, store.EventVideoMetrics)
		path := "/webhooks/" + hook.ID.String()
		broken.answerWithStatus(http.StatusServiceUnavailable)
		c.track(tiktokLink)
		a.fetch(factsWithViews(5))
		for range 4 {
			a.sendDueEvents(t)
			a.Clock.Advance(time.Hour)
		}
		a.sendDueEvents(t)
		require.NotNil(t, decode[client.Webhook](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)).FailingSince)
		c.track(videoURL(1))
		a.fetch(factsWithViews(6))
		broken.takeRequests()
		a.sendDueEvents(t)
		require.Empty(t, broken.takeRequests(), "the pause must not have ended")
		c.send(http.MethodPatch, path, map[string]any{"description": "x", "url": broken.URL}).requireStatus(http.StatusOK)
		a.sendDueEvents(t)
		require.Empty(t, broken.takeRequests(), "the pause must not end if the URL stays the same")

		changed := decode[client.Webhook](c.send(http.MethodPatch, path, map[string]any{"url": r.URL}).requireStatus(http.StatusOK))
		require.Nil(t, changed.FailingSince)
		a.sendDueEvents(t)
		require.NotEmpty(t, r.takeRequests())
		require.Empty(t, broken.takeRequests())
	})
}

func TestUpdateWebhook_failuresAtTheOldURLDoNotCountForTheNewURL(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, old, r := a.newCaller(t, store.TierPremium), newReceiver(t), newReceiver(t)
		hook := c.createWebhook(old.URL, store.EventVideoMetrics)
		path := "/webhooks/" + hook.ID.String()
		var change response
		var err error
		old.answerWithFunc(func(w http.ResponseWriter, _ *http.Request) {
			change, err = c.exchange(http.MethodPatch, path, map[string]any{"url": r.URL}) // the URL changes during the attempt
			w.WriteHeader(http.StatusGone)
		})
		c.track(tiktokLink)
		a.fetch(factsWithViews(5))
		a.sendDueEvents(t)
		require.NoError(t, err)
		change.requireStatus(http.StatusOK)
		require.NotEmpty(t, old.takeRequests())
		now := decode[client.Webhook](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK))
		require.True(t, now.Enabled)
		require.Nil(t, now.FailingSince)
		a.Clock.Advance(time.Hour)
		a.sendDueEvents(t)
		require.NotEmpty(t, r.takeRequests())
	})
}

func TestWebhooks_continueSecondsAfterAShortFailureOfTheReceiver(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		const events = 12
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		for n := range events {
			c.track(videoURL(n))
		}
		c.createWebhook(r.URL, store.EventVideoMetrics)
		r.answerWithStatus(http.StatusServiceUnavailable)
		a.fetch(factsWithViews(5))
		a.sendDueEvents(t)
		require.Len(t, r.takeRequests(), 8, "the requests of a claim are sent at the same time")
		a.Clock.Advance(time.Second)
		a.sendDueEvents(t)
		require.Len(t, r.takeRequests(), 1, "the pause after the first failed claim is a second")
		a.Clock.Advance(time.Second)
		a.sendDueEvents(t)
		require.Empty(t, r.takeRequests(), "each further failed claim doubles the pause")
		r.answerWithStatus(http.StatusOK)
		a.Clock.Advance(4 * time.Second)
		a.sendDueEvents(t)
		require.Len(t, r.takeRequests(), events, "each delivery is repeated five seconds after its failure")
	})
}
