package store

import (
	"context"
	"time"

	"github.com/reeltally/reeltally/store/internal/db"
)

// WebhookStatus describes the enabled webhooks of all organisations, for operators. Webhooks whose receivers answer with an error are not counted as
// unreachable, because only their organisations can mend them.
type WebhookStatus struct {
	Enabled       int64 // number of enabled webhooks
	Organisations int64 // number of organisations with an enabled webhook
	Unreachable   int64 // number of enabled webhooks of which the last attempt got no response
	// UnreachableOrganisations is the number of organisations with such a webhook. If it is high, the servers probably cannot reach the internet.
	UnreachableOrganisations int64
	// Delay is the longest time for which a webhook has waited for a server that sends its due events. The pauses after failed attempts do not count.
	// It is 0 if no webhook waits.
	Delay time.Duration
}

// WebhookStatus reads the status of all enabled webhooks. It reads only the queue of webhooks.
func (s *Store) WebhookStatus(ctx context.Context) (WebhookStatus, error) {
	now := s.db.Now()
	var found struct {
		Enabled, Organisations, Unreachable, UnreachableOrganisations int64
		WaitingSince                                                  *db.Instant
	}
	err := s.db.Read(ctx).Raw(`SELECT COUNT(*) AS enabled, COUNT(DISTINCT organisation_id) AS organisations, COUNT(CASE WHEN unreachable THEN 1 END) AS unreachable,
 COUNT(DISTINCT CASE WHEN unreachable THEN organisation_id END) AS unreachable_organisations,
 MIN(CASE WHEN due_at > claimed_until THEN due_at ELSE claimed_until END) AS waiting_since FROM webhook_queue`).Scan(&found).Error
	status := WebhookStatus{Enabled: found.Enabled, Organisations: found.Organisations, Unreachable: found.Unreachable, UnreachableOrganisations: found.UnreachableOrganisations}
	if found.WaitingSince != nil && *found.WaitingSince < now {
		status.Delay = now.Sub(*found.WaitingSince)
	}
	return status, db.Translate(err)
}
