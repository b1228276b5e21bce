package ingest

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// This file deletes expired rows of the tables in timedRows, and expired events and idempotency keys. For points, see retention.go. Each transaction
// deletes one batch, so no statement holds locks for long.

// timedRows lists tables whose rows expire. The parameter of the SQL condition `expired` is the
// current time minus Table.Retention.
var timedRows = []struct{ table, key, expired string }{
	{"short_links", "platform, code", "resolved_at < ?"},
	{"quota_windows", "source, win", "updated_at < ?"},
	{"source_pauses", "source", "blocked_until < ?"},
	// The column "turn" is approximately the time, in microseconds, when the organisation last requested a fetch
	// from this source. For its purpose, see queue.TakeTurns.
	{"org_turns", "route, organisation_id", "turn < ?"},
	{"api_tokens", "id", "COALESCE(revoked_at, expires_at) < ?"},
	{"sessions", "hash", "expires_at < ?"},
	{"login_links", "hash", "expires_at < ?"},
	{"token_uses", "token_id", "last_used_at < ? AND NOT EXISTS (SELECT 1 FROM api_tokens t WHERE t.id = token_uses.token_id)"},
}

// DeleteExpired deletes expired rows, except points, and returns the number of deleted rows of each
// table. After each transaction, it calls keepAlive, and stops if keepAlive fails.
func (s *Writer) DeleteExpired(ctx context.Context, keepAlive func() error) (map[string]int64, error) {
	deleted := map[string]int64{}
	// If the clock may be wrong, delete nothing and return a *ClockError.
	if err := s.db.CheckAndWriteClock(ctx); err != nil {
		return deleted, err
	}
	now := s.db.Now()
	for _, t := range timedRows {
		before := now.Add(-db.Tables[t.table].Retention)
		statement := "DELETE FROM " + t.table + " WHERE (" + t.key + ") IN (SELECT " + t.key + " FROM " + t.table + " WHERE " + t.expired + " LIMIT ?)"
		err := s.db.DeleteInBatches(ctx, t.table, deleted, keepAlive, db.DeleteBatch, func(tx *gorm.DB) (int64, error) {
			done := tx.Exec(statement, before, db.DeleteBatch)
			return done.RowsAffected, done.Error
		})
		if err != nil {
			return deleted, err
		}
	}
	orgs, err := s.organisationIDs(ctx)
	if err != nil {
		return deleted, err
	}
	for _, org := range orgs {
		// The deletion of the organisation can have begun since its id was read.
		if err := s.deleteExpiredEvents(ctx, s.store.Org(org), deleted, keepAlive); err != nil && !errors.Is(err, db.ErrOrganisationDeleted) {
			return deleted, err
		}
		var oldest []db.Instant
		err := db.Scoped(s.db.Read(ctx), "idempotency_keys", org).Where("created_at < ?", now.Add(-db.IdempotencyLife)).Limit(1).Pluck("created_at", &oldest).Error
		if err != nil {
			return deleted, db.Translate(err)
		}
		if len(oldest) == 0 {
			continue
		}
		err = s.db.DeleteInBatches(ctx, "idempotency_keys", deleted, keepAlive, store.IdempotencyBatch, func(tx *gorm.DB) (int64, error) {
			return store.DeleteExpiredKeys(tx, org, now, store.IdempotencyBatch)
		})
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// deleteExpiredEvents deletes the old events of an organisation, with their deliveries, and ends the recording of events that the organisation
// does not use.
func (s *Writer) deleteExpiredEvents(ctx context.Context, org *store.Org, deleted map[string]int64, keepAlive func() error) error {
	if err := org.PauseUnusedFeed(ctx); err != nil {
		return err
	}
	for {
		n, err := org.DeleteExpiredEvents(ctx)
		if err != nil {
			return err
		}
		deleted["events"] += n
		if err := keepAlive(); err != nil {
			return err
		}
		if n < db.DeleteBatch {
			return nil
		}
	}
}

// organisationIDs returns the ids of all organisations in ascending order, without those that are being deleted.
func (s *Writer) organisationIDs(ctx context.Context) (orgs []uuid.UUID, err error) {
	err = s.db.Read(ctx).Raw("SELECT id FROM organisations WHERE deleting_since IS NULL ORDER BY id").Scan(&orgs).Error
	return orgs, db.Translate(err)
}
