package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

const (
	// idempotencyLife is how long an answer is kept for its key.
	idempotencyLife = 24 * time.Hour
	// abandonedAfter is when a request that never finished counts as dead: its server was killed.
	abandonedAfter = time.Minute
)

// IdempotencyState says what a key means for a request.
type IdempotencyState int

// The states.
const (
	// KeyFresh: go on, and call FinishKey or ReleaseKey at the end.
	KeyFresh IdempotencyState = iota
	// KeyDone: give the answer that is kept.
	KeyDone
	// KeyRunning: another request with this key is under way.
	KeyRunning
	// KeyMismatch: the key belongs to another request.
	KeyMismatch
)

// KeptAnswer is an answer as it was first given.
type KeptAnswer struct {
	Status      int
	ContentType string
	Body        []byte
}

// IdempotencyKey is what is known of a key.
type IdempotencyKey struct {
	State IdempotencyState
	// EffectID is the identifier for what the request makes. It stays the same when a request whose server died is
	// repeated: what it had made already is found again instead of being made twice.
	EffectID uuid.UUID
	Answer   KeptAnswer // of KeyDone
}

type idempotencyRow struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	Operation      string    `gorm:"primaryKey"`
	Key            string    `gorm:"primaryKey"`
	Fingerprint    []byte
	EffectID       uuid.UUID
	CreatedAt      Instant `gorm:"autoCreateTime:false"`
	StartedAt      Instant
	Status         *int
	ContentType    *string
	Body           []byte
}

func (idempotencyRow) TableName() string { return "idempotency_keys" }

// BeginKey claims a key for a request to an operation; fingerprint tells requests apart. Of requests at once exactly one
// gets KeyFresh.
func (o *Org) BeginKey(ctx context.Context, operation, key string, fingerprint []byte) (IdempotencyKey, error) {
	for attempt := 1; ; attempt++ {
		k, err := o.beginKey(ctx, operation, key, fingerprint)
		// The key may run out between the look at it and the reading of it.
		if !errors.Is(err, ErrNotFound) || attempt == maxAttempts {
			return k, err
		}
	}
}

func (o *Org) beginKey(ctx context.Context, operation, key string, fingerprint []byte) (IdempotencyKey, error) {
	var out IdempotencyKey
	err := o.s.tx(ctx, func(tx *gorm.DB) error {
		now := o.s.now()
		if err := tx.Exec("DELETE FROM idempotency_keys WHERE organisation_id = ? AND created_at < ?", o.id, now.Add(-idempotencyLife)).Error; err != nil {
			return err
		}
		fresh := idempotencyRow{OrganisationID: o.id, Operation: operation, Key: key, Fingerprint: fingerprint, EffectID: NewID(), CreatedAt: now, StartedAt: now}
		inserted := tx.Clauses(doNothing("organisation_id", "operation", "key")).Create(&fresh)
		if inserted.Error != nil {
			return inserted.Error
		}
		if inserted.RowsAffected == 1 {
			out = IdempotencyKey{State: KeyFresh, EffectID: fresh.EffectID}
			return nil
		}
		q := scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ?", operation, key)
		if o.s.dialect.skipLocked() {
			q = q.Clauses(forUpdate)
		}
		var row idempotencyRow
		if err := q.Take(&row).Error; err != nil {
			return err
		}
		out = IdempotencyKey{EffectID: row.EffectID}
		switch {
		case !bytes.Equal(row.Fingerprint, fingerprint):
			out.State = KeyMismatch
		case row.Status != nil:
			out.State, out.Answer = KeyDone, KeptAnswer{Status: *row.Status, Body: row.Body}
			set(&out.Answer.ContentType, row.ContentType)
		case row.StartedAt > now.Add(-abandonedAfter):
			out.State = KeyRunning
		default:
			out.State = KeyFresh
			return scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ?", operation, key).Update("started_at", now).Error
		}
		return nil
	})
	return out, err
}

// FinishKey keeps the answer to a request that BeginKey let go on.
func (o *Org) FinishKey(ctx context.Context, operation, key string, a KeptAnswer) error {
	return o.s.tx(ctx, func(tx *gorm.DB) error {
		return scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ?", operation, key).
			Model(&idempotencyRow{}). // gorm prints the whole map, the body included, if it knows no model
			Updates(map[string]any{"status": a.Status, "content_type": a.ContentType, "body": a.Body}).Error
	})
}

// ReleaseKey lets a request that ended without an answer be sent again at once. Its EffectID stays, since what it did is unknown.
func (o *Org) ReleaseKey(ctx context.Context, operation, key string) error {
	return o.s.tx(ctx, func(tx *gorm.DB) error {
		return scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ? AND status IS NULL", operation, key).Update("started_at", 0).Error
	})
}
