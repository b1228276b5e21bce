package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// Requirements in docs/coverage.md: 14.5-05
func TestRotateWebhookSecret_signsWithBothSecretsForADay(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		hook := c.createWebhook(r.URL)
		path := "/webhooks/" + hook.ID.String()
		rotated := decode[client.WebhookSecret](c.send(http.MethodPost, path+"/rotate-secret", nil).requireStatus(http.StatusOK))
		require.NotEqual(t, *hook.Secret, *rotated.Secret)
		test := func() received {
			c.send(http.MethodPost, path+"/test", nil).requireStatus(http.StatusAccepted)
			a.sendDueEvents(t)
			return r.takeRequests()[0]
		}
		both := test()
		require.Len(t, strings.Fields(both.header.Get("webhook-signature")), 2)
		both.requireValidSignature(t, *hook.Secret)
		both.requireValidSignature(t, *rotated.Secret)

		a.Clock.Advance(24*time.Hour + time.Second)
		one := test()
		require.Len(t, strings.Fields(one.header.Get("webhook-signature")), 1)
		one.requireValidSignature(t, *rotated.Secret)
		require.Nil(t, decode[client.Webhook](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)).PreviousSecretExpiresAt)
	})
}

// TestRotateWebhookSecret_keepsEachEarlierSecretForItsDay rotates a secret several times within a day. The server must sign with each earlier secret for
// a day after its replacement, because a receiver can have missed the newer secrets. It signs with at most 12 secrets.
func TestRotateWebhookSecret_keepsEachEarlierSecretForItsDay(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		hook := c.createWebhook(r.URL)
		path := "/webhooks/" + hook.ID.String()
		secrets := []string{*hook.Secret}
		rotate := func() {
			t.Helper()
			rotated := decode[client.WebhookSecret](c.send(http.MethodPost, path+"/rotate-secret", nil).requireStatus(http.StatusOK))
			secrets = append(secrets, *rotated.Secret)
			require.Equal(t, a.Clock.Now().Add(24*time.Hour).UTC(), rotated.PreviousSecretExpiresAt.UTC())
		}
		requireSecrets := func(valid ...string) {
			t.Helper()
			c.testWebhook(hook.ID)
			a.sendDueEvents(t)
			request := r.takeRequests()[0]
			require.Len(t, strings.Fields(request.header.Get("webhook-signature")), len(valid))
			for _, secret := range valid {
				request.requireValidSignature(t, secret)
			}
		}
		for range 3 {
			rotate()
			a.Clock.Advance(time.Hour)
		}
		requireSecrets(secrets...)
		a.Clock.Advance(21 * time.Hour)
		requireSecrets(secrets[1:]...)
		a.Clock.Advance(time.Hour)
		requireSecrets(secrets[2:]...)
		a.Clock.Advance(time.Hour)
		requireSecrets(secrets[3])

		for range 15 {
			rotate()
		}
		requireSecrets(secrets[len(secrets)-12:]...)
	})
}
