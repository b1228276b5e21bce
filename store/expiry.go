package store

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/link"
)

// This file deletes the rows, other than points, that accumulate over time. Each transaction deletes one batch. So no statement holds
// locks for long, and an interrupted run loses nothing.

// expiryBatch is how many rows one transaction deletes.
const expiryBatch = 500

// timedRows are the tables whose rows expire by a condition on a time. The condition's parameter is now minus Table.Retention.
var timedRows = []struct{ table, key, expired string }{
	{"short_links", "platform, code", "resolved_at < ?"},
	{"quota_windows", "source, win", "updated_at < ?"},
	{"source_pauses", "source", "blocked_until < ?"},
	// turn is the time in microseconds of the organisation's first link; each further link adds one.
	{"org_turns", "route, organisation_id", "turn < ?"},
	{"api_tokens", "id", "COALESCE(revoked_at, expires_at) < ?"},
	{"token_uses", "token_id", "last_used_at < ? AND NOT EXISTS (SELECT 1 FROM api_tokens t WHERE t.id = token_uses.token_id)"},
}

// DeleteExpired deletes rows, other than points, whose retention has ended: see Tables. It returns how many rows it deleted from each
// table. It calls alive after each transaction and stops if alive returns an error. It may be interrupted and repeated at any time. If the
// clock may be wrong, it deletes nothing and returns a *ClockError.
func (s *Store) DeleteExpired(ctx context.Context, alive func() error) (map[string]int64, error) {
	deleted := map[string]int64{}
	if err := s.seeClock(ctx); err != nil {
		return deleted, err
	}
	now := s.now()
	for _, t := range timedRows {
		before := now.Add(-Tables[t.table].Retention)
		statement := "DELETE FROM " + t.table + " WHERE (" + t.key + ") IN (SELECT " + t.key + " FROM " + t.table + " WHERE " + t.expired + " LIMIT ?)"
		err := s.inExpiryBatches(ctx, t.table, deleted, alive, expiryBatch, func(tx *gorm.DB) (int64, error) {
			done := tx.Exec(statement, before, expiryBatch)
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
		var oldest []Instant
		err := scoped(s.read.WithContext(ctx), "idempotency_keys", org).Where("created_at < ?", now.Add(-idempotencyLife)).Limit(1).Pluck("created_at", &oldest).Error
		if err != nil {
			return deleted, translate(err)
		}
		if len(oldest) == 0 {
			continue
		}
		err = s.inExpiryBatches(ctx, "idempotency_keys", deleted, alive, idempotencyBatch, func(tx *gorm.DB) (int64, error) {
			return deleteExpiredKeys(tx, org, now, idempotencyBatch)
		})
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// inExpiryBatches calls f until f deletes fewer than batch rows. f deletes up to batch rows of a table and returns how many.
func (s *Store) inExpiryBatches(ctx context.Context, table string, deleted map[string]int64, alive func() error, batch int64, f func(tx *gorm.DB) (int64, error)) error {
	for {
		var n int64
		err := s.tx(ctx, func(tx *gorm.DB) (err error) {
			n, err = f(tx)
			return err
		})
		if err != nil {
			return err
		}
		deleted[table] += n
		if err := alive(); err != nil {
			return err
		}
		if n < batch {
			return nil
		}
	}
}

func (s *Store) organisationIDs(ctx context.Context) (orgs []uuid.UUID, err error) {
	err = s.read.WithContext(ctx).Raw("SELECT id FROM organisations ORDER BY id").Scan(&orgs).Error
	return orgs, translate(err)
}

// DeleteOrphans deletes the subscriptions of deleted organisations, and targets that have no subscription and were due more than a day
// ago. Usually a collector deletes such a target when it claims it, but nothing claims the targets of a platform without a source.
// DeleteOrphans reads the whole queue. alive and errors are as for DeleteExpired.
func (s *Store) DeleteOrphans(ctx context.Context, alive func() error) (map[string]int64, error) {
	deleted := map[string]int64{}
	if err := s.seeClock(ctx); err != nil {
		return deleted, err
	}
	if err := s.deleteOrphanSubscriptions(ctx, deleted, alive); err != nil {
		return deleted, err
	}
	return deleted, s.deleteOrphanTargets(ctx, deleted, alive)
}

func (s *Store) deleteOrphanSubscriptions(ctx context.Context, deleted map[string]int64, alive func() error) error {
	after := uuid.Nil
	for {
		var next []uuid.UUID
		err := s.read.WithContext(ctx).Raw(`SELECT organisation_id FROM fetch_subscriptions WHERE organisation_id > ? ORDER BY organisation_id LIMIT 1`,
			after).Scan(&next).Error
		if err != nil || len(next) == 0 {
			return translate(err)
		}
		after = next[0]
		var there []uuid.UUID
		if err := s.read.WithContext(ctx).Raw(`SELECT id FROM organisations WHERE id = ?`, after).Scan(&there).Error; err != nil {
			return translate(err)
		}
		if len(there) > 0 {
			continue
		}
		err = s.inExpiryBatches(ctx, "fetch_subscriptions", deleted, alive, 1, func(tx *gorm.DB) (int64, error) {
			subscriptions, err := subscriptionsAfter(tx, after, uuid.Nil)
			if err != nil || len(subscriptions) == 0 {
				return 0, err
			}
			last := subscriptions[len(subscriptions)-1].SubjectID
			return int64(len(subscriptions)), unsubscribe(tx, s.dialect, after, "subject_id <= ?", last)
		})
		if err != nil {
			return err
		}
	}
}

func (s *Store) deleteOrphanTargets(ctx context.Context, deleted map[string]int64, alive func() error) error {
	unclaimedSince := s.now().Add(-day)
	var last struct {
		Source     link.Platform
		Kind       Kind
		ExternalID string
	}
	for {
		targets := []struct {
			Source     link.Platform
			Kind       Kind
			ExternalID string
			Orphan     bool
		}{}
		err := s.read.WithContext(ctx).Raw(`SELECT t.source, t.kind, t.external_id,
  t.claimed_by IS NULL AND t.next_at < ? AND NOT EXISTS (SELECT 1 FROM fetch_subscriptions s
    WHERE s.bucket = t.bucket AND s.source = t.source AND s.kind = t.kind AND s.external_id = t.external_id) AS orphan
  FROM fetch_targets t WHERE t.bucket = ? AND (t.source, t.kind, t.external_id) > (?, ?, ?) ORDER BY t.source, t.kind, t.external_id LIMIT ?`,
			unclaimedSince, bucket, last.Source, last.Kind, last.ExternalID, expiryBatch).Scan(&targets).Error
		if err != nil || len(targets) == 0 {
			return translate(err)
		}
		var orphans []Target
		for _, t := range targets {
			if t.Orphan {
				orphans = append(orphans, Target{Platform: t.Source, Kind: t.Kind, ExternalID: t.ExternalID})
			}
			last.Source, last.Kind, last.ExternalID = t.Source, t.Kind, t.ExternalID
		}
		var n int64
		err = s.tx(ctx, func(tx *gorm.DB) error {
			n = 0
			for _, group := range byKind(orphans) {
				// Check again in the statement that locks the rows: an organisation may have subscribed meanwhile, which sets requested_at.
				done := tx.Exec(`DELETE FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ?
 AND claimed_by IS NULL AND next_at < ? AND requested_at < ? AND NOT EXISTS (SELECT 1 FROM fetch_subscriptions s
  WHERE s.bucket = fetch_targets.bucket AND s.source = fetch_targets.source AND s.kind = fetch_targets.kind AND s.external_id = fetch_targets.external_id)`,
					bucket, group.platform, group.kind, group.ids, unclaimedSince, unclaimedSince)
				if done.Error != nil {
					return done.Error
				}
				n += done.RowsAffected
			}
			return nil
		})
		if err != nil {
			return err
		}
		deleted["fetch_targets"] += n
		if err := alive(); err != nil {
			return err
		}
	}
}
