package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestWebhookStatus_countsEnabledWebhooksOfAllOrganisations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		status, err := db.WebhookStatus(t.Context())
		require.NoError(t, err)
		require.Zero(t, status)
		for range 2 {
			o := storetest.NewOrg(t, db)
			for i := range 3 {
				w, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://example.test/", Secret: []byte("s")})
				require.NoError(t, err)
				if i > 0 {
					db.Exec(t, "UPDATE webhooks SET failing_since = ? WHERE organisation_id = ? AND id = ?", store.InstantOf(db.Clock.Now().Add(-time.Duration(i)*time.Hour)), o.ID(), w.ID)
				}
				if i == 2 { // a disabled webhook is not in the queue
					db.Exec(t, "UPDATE webhooks SET enabled = false WHERE organisation_id = ? AND id = ?", o.ID(), w.ID)
					db.Exec(t, "DELETE FROM webhook_queue WHERE organisation_id = ? AND webhook_id = ?", o.ID(), w.ID)
				}
			}
		}
		status, err = db.WebhookStatus(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.WebhookStatus{Enabled: 4, Failing: 2, Delay: time.Hour}, status)

		db.Exec(t, "UPDATE webhook_queue SET due_at = ?", store.InstantOf(db.Clock.Now().Add(-90*time.Minute)))
		status, err = db.WebhookStatus(t.Context())
		require.NoError(t, err)
		require.Equal(t, 90*time.Minute, status.Delay, "a due delivery that no server sends must count")
	})
}
