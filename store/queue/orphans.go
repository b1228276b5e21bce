package queue

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// DeleteOrphans deletes subscriptions of deleted organisations, and old targets without a
// subscription. It returns the numbers of deleted rows by table. It stops if keepAlive returns an
// error.
func (s *Queue) DeleteOrphans(ctx context.Context, keepAlive func() error) (map[string]int64, error) {
	deleted := map[string]int64{}
	// If the clock may be wrong, delete nothing and return a *ClockError.
	if err := s.db.CheckAndWriteClock(ctx); err != nil {
		return deleted, err
	}
	if err := s.deleteOrphanSubscriptions(ctx, deleted, keepAlive); err != nil {
		return deleted, err
	}
	return deleted, s.deleteOrphanTargets(ctx, deleted, keepAlive)
}

// deleteOrphanSubscriptions deletes the subscriptions of deleted organisations. It adds the number of these subscriptions to
// deleted["fetch_subscriptions"].
func (s *Queue) deleteOrphanSubscriptions(ctx context.Context, deleted map[string]int64, keepAlive func() error) error {
	after := uuid.Nil
	for {
		var next []uuid.UUID
		err := s.db.Read(ctx).Raw(`SELECT organisation_id FROM fetch_subscriptions WHERE organisation_id > ? ORDER BY organisation_id LIMIT 1`,
			after).Scan(&next).Error
		if err != nil || len(next) == 0 {
			return db.Translate(err)
		}
		after = next[0]
		var there []uuid.UUID
		if err := s.db.Read(ctx).Raw(`SELECT id FROM organisations WHERE id = ?`, after).Scan(&there).Error; err != nil {
			return db.Translate(err)
		}
		if len(there) > 0 {
			continue
		}
		err = s.DeleteSubscriptions(ctx, after, func(n int64) error {
			deleted["fetch_subscriptions"] += n
			return keepAlive()
		})
		if err != nil {
			return err
		}
	}
}

// DeleteSubscriptions deletes the subscriptions of an organisation in batches. It also deletes the targets that no other organisation tracks, unless
// a collector is fetching them. Claim deletes these later. No target names the organisation in asked_by any more. After each transaction,
// DeleteSubscriptions calls done with the number of deleted subscriptions, and stops if done fails. The caller must ensure that the organisation
// gets no new subscriptions.
func (s *Queue) DeleteSubscriptions(ctx context.Context, org uuid.UUID, done func(subscriptions int64) error) error {
	for {
		var n int64
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			deleted, err := deleteSubscriptions(tx, org)
			n = int64(len(deleted))
			return err
		})
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if err := done(n); err != nil {
			return err
		}
	}
	// The organisation can have requested targets and then stopped their tracking.
	for {
		var requested []Target
		err := s.db.Read(ctx).Raw(`SELECT source, kind, external_id FROM fetch_targets WHERE bucket = ? AND asked_by = ? LIMIT ?`, Bucket, org, db.DeleteBatch).Find(&requested).Error
		if err != nil || len(requested) == 0 {
			return db.Translate(err)
		}
		_, err = s.changeTargets(ctx, requested, func(tx *gorm.DB, g KindGroup) *gorm.DB { return forgetAskedBy(tx, g, org) })
		if err != nil {
			return err
		}
		if err := done(0); err != nil {
			return err
		}
	}
}

// deleteSubscriptions deletes a batch of the subscriptions of an organisation that is deleted, and the targets that no organisation tracks any more.
func deleteSubscriptions(tx *gorm.DB, org uuid.UUID) ([]FetchSubscription, error) {
	batch, err := SubscriptionsAfter(tx, org, uuid.Nil)
	if err != nil || len(batch) == 0 {
		return nil, err
	}
	last := batch[len(batch)-1].SubjectID
	// Lock the targets before the subscriptions, as the transactions of collectors do.
	if _, _, err := lockTargets(tx, batch); err != nil {
		return nil, err
	}
	deleted, err := unsubscribe(tx, org, "subject_id <= ?", last)
	if err != nil {
		return nil, err
	}
	targets := make([]Target, len(deleted))
	for i, d := range deleted {
		targets[i] = Target{Platform: d.Platform, Kind: d.Kind, ExternalID: d.ExternalID}
	}
	for _, g := range GroupByKind(targets) {
		if err := forgetAskedBy(tx, g, org).Error; err != nil {
			return nil, err
		}
		err := tx.Exec(`DELETE FROM fetch_targets WHERE ? AND claimed_by IS NULL AND NOT EXISTS (SELECT 1 FROM fetch_subscriptions s WHERE `+
			SameTarget("s", "fetch_targets")+`)`, g.Condition()).Error
		if err != nil {
			return nil, err
		}
	}
	return deleted, nil
}

// forgetAskedBy removes an organisation from the column asked_by of the targets.
func forgetAskedBy(tx *gorm.DB, g KindGroup, org uuid.UUID) *gorm.DB {
	return tx.Exec(`UPDATE fetch_targets SET asked_by = NULL WHERE ? AND asked_by = ?`, g.Condition(), org)
}

// deleteOrphanTargets deletes targets that have no subscription, are not claimed, and were due and last requested more than a day ago. It adds the
// number of these targets to deleted["fetch_targets"].
func (s *Queue) deleteOrphanTargets(ctx context.Context, deleted map[string]int64, keepAlive func() error) error {
	// Claim deletes most targets without a subscription, but not those of a platform without a
	// source.
	dayAgo := s.db.Now().Add(-db.Day)
	var last Key
	for {
		targets := []struct {
			Key
			Orphan bool
		}{}
		err := s.db.Read(ctx).Raw(`SELECT t.source, t.kind, t.external_id,
  t.claimed_by IS NULL AND t.next_at < ? AND NOT EXISTS (SELECT 1 FROM fetch_subscriptions s
    WHERE `+SameTarget("s", "t")+`) AS orphan
  FROM fetch_targets t WHERE t.bucket = ? AND (t.source, t.kind, t.external_id) > (?, ?, ?) ORDER BY t.source, t.kind, t.external_id LIMIT ?`,
			dayAgo, Bucket, last.Platform, last.Kind, last.ExternalID, db.DeleteBatch).Scan(&targets).Error
		if err != nil || len(targets) == 0 {
			return db.Translate(err)
		}
		var orphans []Target
		for _, t := range targets {
			if t.Orphan {
				orphans = append(orphans, Target{Platform: t.Platform, Kind: t.Kind, ExternalID: t.ExternalID})
			}
			last = t.Key
		}
		n, err := s.changeTargets(ctx, orphans, func(tx *gorm.DB, g KindGroup) *gorm.DB {
			// An organisation may have subscribed to a target since the targets were read, so the DELETE has the conditions again. Lock the
			// targets first, in a statement of its own: it waits until no other transaction locks one of them. So the DELETE sees the
			// subscriptions that these transactions have added.
			err := db.LockRows(tx, `SELECT t.external_id FROM fetch_targets t WHERE t.bucket = ? AND t.source = ? AND t.kind = ? AND t.external_id IN ?
 ORDER BY t.external_id`, "t", Bucket, g.Platform, g.Kind, g.IDs)
			if err != nil {
				return &gorm.DB{Error: err}
			}
			return tx.Exec(`DELETE FROM fetch_targets WHERE ? AND claimed_by IS NULL AND next_at < ? AND requested_at < ? AND NOT EXISTS (SELECT 1 FROM fetch_subscriptions s WHERE `+SameTarget("s", "fetch_targets")+`)`, g.Condition(), dayAgo, dayAgo)
		})
		if err != nil {
			return err
		}
		deleted["fetch_targets"] += n
		if err := keepAlive(); err != nil {
			return err
		}
	}
}
