package store

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// KeyLease is how long an idempotency key is reserved for its request. While the request runs,
	// its server renews the lease with RenewKey.
	KeyLease = 15 * time.Second
	// shortWait is RetryAfter for a repetition of a request that began less than shortWait ago. Most requests end within this time, so the repetition
	// need not wait for the end of the lease.
	shortWait = time.Second
	// IdempotencyLimit is the maximum size of all idempotency keys and responses of an organisation, in bytes. It
	// is checked when a key is added. It allows 120 small responses a minute for a day.
	IdempotencyLimit = 128 << 20
	// idempotencyRowBytes is the estimated size, in bytes, of one row in the table idempotency_keys and the index entries of this row. The
	// key's text and the response are not included.
	idempotencyRowBytes = 400
	// IdempotencyBatch is the highest number of expired keys that one transaction deletes.
	IdempotencyBatch = 100
)

// IdempotencyState says how a request with an idempotency key must be handled.
type IdempotencyState int

// The states that ReserveKey returns.
const (
	// KeyFresh means that the key is new, or that an earlier request with the key got no response before its lease ended. The caller executes
	// the new request, then calls FinishKey or ReleaseKey.
	KeyFresh IdempotencyState = iota
	// KeyDone means that the request has a response already. The caller returns the stored response.
	KeyDone
	// KeyRunning means that another request with the same key is running, or its server crashed within the last KeyLease.
	KeyRunning
	// KeyMismatch means that the key was used before for a request with other content.
	KeyMismatch
	// KeyStoreFull means that the key was not stored, because all keys of the organisation together would take more than
	// IdempotencyLimit bytes.
	KeyStoreFull
)

// KeptResponse is the HTTP response that is stored for a request with an idempotency key.
type KeptResponse struct {
	Status      int // HTTP status code
	ContentType string
	Body        []byte
}

// IdempotencyKey is the result of ReserveKey: the state of a key, and the values that belong to the state.
type IdempotencyKey struct {
	State IdempotencyState
	// EffectID is the id of the object that the request creates. A repeated request gets the same
	// id, so it creates no second object.
	EffectID uuid.UUID
	Response KeptResponse // the stored response; set only if State is KeyDone
	// RetryAfter is the time to wait before the request is sent again. It is set only if State is
	// KeyRunning or KeyStoreFull.
	RetryAfter time.Duration
}

// idempotencyRow is a row of the table idempotency_keys.
type idempotencyRow struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	Operation      string    `gorm:"primaryKey"`
	Key            string    `gorm:"primaryKey"`
	Fingerprint    []byte    // hash of the request's content
	EffectID       uuid.UUID
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`
	StartedAt      db.Instant // when the lease began or was last renewed; 0 if the request released the key
	Status         *int       // HTTP status code of the response; nil until the request is answered
	ContentType    *string
	Body           []byte
	Bytes          int64
	Encoding       string
}

func (idempotencyRow) TableName() string { return "idempotency_keys" }

// encodingZstd is the encoding of a compressed body. Bodies that older versions stored are not compressed and have the encoding "".
const encodingZstd = "zstd"

// bodyCoder compresses and decompresses the bodies of stored responses. Both fields can be used concurrently.
type bodyCoder struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// sharedBodyCoder returns the bodyCoder of this process. The first call creates it.
var sharedBodyCoder = sync.OnceValues(func() (c bodyCoder, err error) {
	if c.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)); err != nil {
		return c, err
	}
	c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	return c, err
})

// ReserveKey stores a new idempotency key, or returns the state of a stored key. Of concurrent
// requests with the same key, only one gets KeyFresh.
func (o *Org) ReserveKey(ctx context.Context, operation, key string, fingerprint []byte) (IdempotencyKey, error) {
	var out IdempotencyKey
	err := db.RetryOnDuplicate(func() (err error) {
		out, err = o.reserveKey(ctx, operation, key, fingerprint)
		return err
	})
	return out, deletedOrganisationError(err)
}

// reserveKey does the same as ReserveKey in one transaction. It returns ErrDuplicate if a concurrent request inserted the same key after reserveKey had
// looked the key up.
func (o *Org) reserveKey(ctx context.Context, operation, key string, fingerprint []byte) (IdempotencyKey, error) {
	var out IdempotencyKey
	err := o.s.db.Tx(ctx, func(tx *gorm.DB) error {
		now := o.s.db.Now()
		if _, err := DeleteExpiredKeys(tx, o.id, now, IdempotencyBatch); err != nil {
			return err
		}
		// Transactions that raise the organisation's version take turns, but this one does not raise it. So it
		// must lock the row: otherwise two requests with the same key could both get KeyFresh after the lease
		// of the key has ended.
		q := db.ForUpdate(db.Scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ?", operation, key))
		var found []idempotencyRow
		if err := q.Limit(1).Find(&found).Error; err != nil {
			return err
		}
		if len(found) == 1 && found[0].CreatedAt >= now.Add(-db.IdempotencyLife) {
			var err error
			out, err = o.stateOfKey(tx, &found[0], fingerprint, now)
			return err
		}
		if len(found) == 1 { // the key has expired but still exists, because one call of DeleteExpiredKeys deletes only a limited number of keys, the oldest first
			if err := deleteKeys(tx, o.id, found[0].Bytes, "operation = ? AND key = ?", operation, key); err != nil {
				return err
			}
		}
		fresh := idempotencyRow{OrganisationID: o.id, Operation: operation, Key: key, Fingerprint: fingerprint, EffectID: db.NewID(),
			CreatedAt: now, StartedAt: now, Bytes: idempotencyRowBytes + 2*int64(len(key))}
		reserved, err := reserveBytesForKey(tx, o.id, fresh.Bytes)
		if err != nil {
			return err
		}
		if !reserved {
			out = IdempotencyKey{State: KeyStoreFull}
			out.RetryAfter, err = timeUntilSpaceForKey(tx, o.id, fresh.Bytes, now)
			return err
		}
		inserted := tx.Clauses(db.OnConflictDoNothing("organisation_id", "operation", "key")).Create(&fresh)
		if inserted.Error == nil && inserted.RowsAffected == 0 {
			return db.ErrDuplicate
		}
		out = IdempotencyKey{State: KeyFresh, EffectID: fresh.EffectID}
		return inserted.Error
	})
	return out, err
}

// stateOfKey returns the result of ReserveKey for a stored key. If the key's lease ended without a
// response, the new request takes over the key.
func (o *Org) stateOfKey(tx *gorm.DB, row *idempotencyRow, fingerprint []byte, now db.Instant) (IdempotencyKey, error) {
	out := IdempotencyKey{EffectID: row.EffectID}
	switch {
	case !bytes.Equal(row.Fingerprint, fingerprint):
		out.State = KeyMismatch
	case row.Status != nil:
		out.State, out.Response = KeyDone, KeptResponse{Status: *row.Status}
		db.Assign(&out.Response.ContentType, row.ContentType)
		var err error
		out.Response.Body, err = row.decompressBody()
		return out, err
	case row.StartedAt > now.Add(-KeyLease):
		out.State, out.RetryAfter = KeyRunning, min(row.StartedAt.Add(KeyLease).Sub(now), KeyLease) // if the clocks of two servers differ, the calculated time can be longer than KeyLease
		if now.Sub(row.CreatedAt).Abs() < shortWait {
			out.RetryAfter = shortWait
		}
	default:
		out.State = KeyFresh
		return out, db.Scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ?", row.Operation, row.Key).Update("started_at", now).Error
	}
	return out, nil
}

// decompressBody returns the stored body of the response, decompressed.
func (r *idempotencyRow) decompressBody() ([]byte, error) {
	if r.Encoding != encodingZstd {
		return r.Body, nil
	}
	c, err := sharedBodyCoder()
	if err != nil {
		return nil, err
	}
	return c.decoder.DecodeAll(r.Body, nil)
}

// RenewKey begins the lease of a key again, for a request that got KeyFresh and still runs. If the key has a response, RenewKey changes nothing.
func (o *Org) RenewKey(ctx context.Context, operation, key string) error {
	return o.startLease(ctx, operation, key, o.s.db.Now())
}

// startLease sets the time at which the lease of a key began. It changes nothing if the key already has a response.
func (o *Org) startLease(ctx context.Context, operation, key string, at db.Instant) error {
	return o.s.db.Tx(ctx, func(tx *gorm.DB) error {
		return db.Scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ? AND status IS NULL", operation, key).Update("started_at", at).Error
	})
}

// FinishKey stores the response to a request that got KeyFresh. If the key already has a stored response, FinishKey changes nothing.
func (o *Org) FinishKey(ctx context.Context, operation, key string, a KeptResponse) error {
	c, err := sharedBodyCoder()
	if err != nil {
		return err
	}
	body := c.encoder.EncodeAll(a.Body, nil)
	return o.s.db.Tx(ctx, func(tx *gorm.DB) error {
		kept := db.Scoped(tx, "idempotency_keys", o.id).Where("operation = ? AND key = ? AND status IS NULL", operation, key).
			Model(&idempotencyRow{}). // without Model, GORM would write the whole map, with the body of the response, to the log
			Updates(map[string]any{"status": a.Status, "content_type": a.ContentType, "body": body, "encoding": encodingZstd,
				"bytes": gorm.Expr("bytes + ?", len(body))})
		if kept.Error != nil || kept.RowsAffected == 0 {
			return kept.Error
		}
		// The limit is checked only when a key is reserved, so that a response is always stored. The total can thus exceed IdempotencyLimit.
		return addKeyBytes(tx, o.id, int64(len(body)))
	})
}

// ReleaseKey ends the lease of a request that got no response. If the same request is sent again, it gets KeyFresh immediately, without waiting for the
// end of the lease. The key keeps its EffectID.
func (o *Org) ReleaseKey(ctx context.Context, operation, key string) error {
	return o.startLease(ctx, operation, key, 0)
}

// reserveBytesForKey adds n bytes to the total size of the organisation's keys. It changes nothing
// and returns false if the total would exceed IdempotencyLimit.
func reserveBytesForKey(tx *gorm.DB, org uuid.UUID, n int64) (bool, error) {
	var sum []int64
	err := tx.Raw(`INSERT INTO idempotency_usage (organisation_id, bytes) VALUES (?, ?)
ON CONFLICT (organisation_id) DO UPDATE SET bytes = idempotency_usage.bytes + excluded.bytes
 WHERE idempotency_usage.bytes + excluded.bytes <= ? RETURNING bytes`, org, n, IdempotencyLimit).Scan(&sum).Error
	return len(sum) == 1, err
}

// addKeyBytes adds n bytes to the total size of the organisation's keys. The number n can be negative.
func addKeyBytes(tx *gorm.DB, org uuid.UUID, n int64) error {
	return tx.Exec(`UPDATE idempotency_usage SET bytes = bytes + ? WHERE organisation_id = ?`, n, org).Error
}

// deleteKeys deletes the organisation's keys that match a condition. It also subtracts the given size of these keys from the total size.
func deleteKeys(tx *gorm.DB, org uuid.UUID, size int64, condition string, args ...any) error {
	if err := db.Scoped(tx, "idempotency_keys", org).Where(condition, args...).Delete(&idempotencyRow{}).Error; err != nil {
		return err
	}
	return addKeyBytes(tx, org, -size)
}

// DeleteExpiredKeys deletes expired idempotency keys of an organisation, the oldest first, and returns the number of deleted keys. It deletes at most
// "limit" keys.
func DeleteExpiredKeys(tx *gorm.DB, org uuid.UUID, now db.Instant, limit int) (int64, error) {
	var freed []int64
	err := tx.Raw(`DELETE FROM idempotency_keys WHERE organisation_id = ? AND (operation, key) IN (
  SELECT e.operation, e.key FROM idempotency_keys e WHERE e.organisation_id = ? AND e.created_at < ? ORDER BY e.created_at LIMIT ?) RETURNING bytes`,
		org, org, now.Add(-db.IdempotencyLife), limit).Scan(&freed).Error
	if err != nil || len(freed) == 0 {
		return 0, err
	}
	sum := int64(0)
	for _, n := range freed {
		sum += n
	}
	return int64(len(freed)), addKeyBytes(tx, org, -sum)
}

// keyLookahead is the maximum number of keys that the function timeUntilSpaceForKey reads. They are the oldest keys of an organisation.
const keyLookahead = 1000

// timeUntilSpaceForKey returns the time until enough old keys have expired to store a key of n
// bytes. The result is at least one second.
func timeUntilSpaceForKey(tx *gorm.DB, org uuid.UUID, n int64, now db.Instant) (time.Duration, error) {
	var used int64
	if err := tx.Raw(`SELECT bytes FROM idempotency_usage WHERE organisation_id = ?`, org).Scan(&used).Error; err != nil {
		return 0, err
	}
	var oldest []struct {
		CreatedAt db.Instant
		Bytes     int64
	}
	// If keyLookahead keys are too few, the returned time is too short.
	err := tx.Raw(`SELECT created_at, bytes FROM idempotency_keys WHERE organisation_id = ? ORDER BY created_at LIMIT ?`, org, keyLookahead).Scan(&oldest).Error
	if err != nil {
		return 0, err
	}
	at := now
	for _, k := range oldest {
		if used+n <= IdempotencyLimit {
			break
		}
		used -= k.Bytes
		at = k.CreatedAt.Add(db.IdempotencyLife)
	}
	return max(at.Sub(now), time.Second), nil
}
