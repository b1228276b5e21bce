package queue

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// SourceToken is a credential of a platform that must sometimes be exchanged for a new one. After
// an exchange, the old token may be invalid.
type SourceToken struct {
	Source  string `gorm:"primaryKey"`
	Account string `gorm:"primaryKey"` // name of the account to which the token belongs
	Sealed  []byte // encrypted token; the source encrypts and decrypts it, the store does not
	// Version rises each time the token is exchanged for a new one. A process that still has the old version cannot change the new token.
	Version     int64
	LockedUntil db.Instant `gorm:"column:held_until"`
	UpdatedAt   db.Instant `gorm:"autoUpdateTime:false"`
}

// LoadOrStoreSourceToken returns the stored token of a source's account. If no token is stored yet,
// it stores and returns sealedToken, which is encrypted.
func (s *Queue) LoadOrStoreSourceToken(ctx context.Context, source, account string, sealedToken []byte) (SourceToken, error) {
	var stored SourceToken
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		first := SourceToken{Source: source, Account: account, Sealed: sealedToken, Version: 1, UpdatedAt: s.db.Now()}
		// Of concurrent calls, only the first stores its token. All calls return this token.
		if err := tx.Clauses(db.OnConflictDoNothing("source", "account")).Create(&first).Error; err != nil {
			return err
		}
		return tx.Where("source = ? AND account = ?", source, account).Take(&stored).Error
	})
	return stored, err
}

// LockSourceToken locks the token t for the duration d against exchanges by other processes. The
// returned token has LockedUntil set. If t is already locked or exchanged, LockSourceToken returns
// false.
func (s *Queue) LockSourceToken(ctx context.Context, t SourceToken, d time.Duration) (SourceToken, bool, error) {
	now := s.db.Now()
	t.LockedUntil = now.Add(d)
	locked, err := s.changeSourceToken(ctx, t, "held_until <= ?", now, map[string]any{"held_until": t.LockedUntil})
	return t, locked, err
}

// ReplaceSourceToken replaces the token t by "sealed", a new encrypted token, and ends the lock of
// LockSourceToken. If t was already replaced, it changes nothing and returns false.
func (s *Queue) ReplaceSourceToken(ctx context.Context, t SourceToken, sealed []byte) (bool, error) {
	return s.changeSourceToken(ctx, t, "version = ?", t.Version,
		map[string]any{"sealed": sealed, "version": t.Version + 1, "held_until": db.Instant(0), "updated_at": s.db.Now()})
}

// UnlockSourceToken ends the lock of LockSourceToken. It is called if t could not be exchanged for a new token.
func (s *Queue) UnlockSourceToken(ctx context.Context, t SourceToken) error {
	_, err := s.changeSourceToken(ctx, t, "held_until = ?", t.LockedUntil, map[string]any{"held_until": db.Instant(0)})
	return err
}

// changeSourceToken updates columns of the token t and returns true. If t.Version is outdated or
// the SQL condition is not met, it changes nothing and returns false.
func (s *Queue) changeSourceToken(ctx context.Context, t SourceToken, condition string, conditionArg any, newValues map[string]any) (bool, error) {
	var changed int64
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		done := tx.Model(&SourceToken{}).Where("source = ? AND account = ? AND version = ?", t.Source, t.Account, t.Version).
			Where(condition, conditionArg).Updates(newValues)
		changed = done.RowsAffected
		return done.Error
	})
	return changed == 1, err
}
