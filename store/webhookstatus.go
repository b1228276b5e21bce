package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// WebhookStatus describes the enabled webhooks of all organisations, for operators.
type WebhookStatus struct {
	Enabled int64 // number of enabled webhooks
	Failing int64 // number of enabled webhooks that have received nothing since their last failure
	// Delay is the longest time for which an enabled webhook has not received its events: since the first failed attempt after the last successful
	// one, or since a delivery became due. It is 0 if no webhook waits for an event.
	Delay time.Duration
}

// WebhookStatus reads the status of all enabled webhooks. It reads only the queue of webhooks and the rows of the webhooks. It does not read the deliveries.
func (s *Store) WebhookStatus(ctx context.Context) (WebhookStatus, error) {
	var status WebhookStatus
	now := s.db.Now()
	var organisations []uuid.UUID
	if err := s.db.Read(ctx).Raw(`SELECT DISTINCT organisation_id FROM webhook_queue ORDER BY organisation_id`).Scan(&organisations).Error; err != nil {
		return status, db.Translate(err)
	}
	var due []db.Instant
	if err := s.db.Read(ctx).Raw(`SELECT due_at FROM webhook_queue WHERE due_at <= ? ORDER BY due_at LIMIT 1`, now).Scan(&due).Error; err != nil {
		return status, db.Translate(err)
	}
	oldest := now
	if len(due) > 0 {
		oldest = due[0]
	}
	type counts struct {
		Enabled, Failing int64
		FailingSince     *db.Instant
	}
	found, err := db.FindRows[counts](s.db.Read(ctx), db.Orgs(organisations), `SELECT COUNT(*) AS enabled, COUNT(w.failing_since) AS failing, MIN(w.failing_since) AS failing_since
 FROM wanted CROSS JOIN webhooks w WHERE w.organisation_id = {org} AND w.enabled`)
	for _, c := range found {
		status.Enabled, status.Failing = status.Enabled+c.Enabled, status.Failing+c.Failing
		if c.FailingSince != nil {
			oldest = min(oldest, *c.FailingSince)
		}
	}
	status.Delay = now.Sub(oldest)
	return status, db.Translate(err)
}
