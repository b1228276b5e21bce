package queue

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// SourceToken is a credential of a platform that must be exchanged for a new one from time to time. After an exchange, the old token may be
// invalid. Sealed is the token in encrypted form. The source encrypts and decrypts it, the store does not.
type SourceToken struct {
	Source  string `gorm:"primaryKey"`
	Account string `gorm:"primaryKey"` // name of the account to which the token belongs
	Sealed  []byte
	// Version rises each time the token is exchanged for a new one. A process that still has the old version cannot change the new token.
	Version   int64
	HeldUntil db.Instant
	UpdatedAt db.Instant `gorm:"autoUpdateTime:false"`
}

// KeepSourceToken returns the stored token of a source's account. If no token is stored yet, it stores sealedToken, which is encrypted, and returns
// it. Concurrent calls all return the token of the call that stored first.
func (s *Queue) KeepSourceToken(ctx context.Context, source, account string, sealedToken []byte) (SourceToken, error) {
	var kept SourceToken
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		first := SourceToken{Source: source, Account: account, Sealed: sealedToken, Version: 1, UpdatedAt: s.db.Now()}
		if err := tx.Clauses(db.OnConflictDoNothing("source", "account")).Create(&first).Error; err != nil {
			return err
		}
		return tx.Where("source = ? AND account = ?", source, account).Take(&kept).Error
	})
	return kept, err
}

// HoldSourceToken locks the token t for the given time. In this time, no other process can exchange t for a new token. HoldSourceToken returns t with
// HeldUntil set. It returns false if another process has locked t or has already exchanged t for a new token.
func (s *Queue) HoldSourceToken(ctx context.Context, t SourceToken, d time.Duration) (SourceToken, bool, error) {
	now := s.db.Now()
	t.HeldUntil = now.Add(d)
	held, err := s.changeSourceToken(ctx, t, "held_until <= ?", now, map[string]any{"held_until": t.HeldUntil})
	return t, held, err
}

// ReplaceSourceToken replaces the token t by a new token. The parameter "sealed" is the new token in encrypted form.
// ReplaceSourceToken also ends the lock of HoldSourceToken. If another process has already replaced t, ReplaceSourceToken changes nothing and
// returns false.
func (s *Queue) ReplaceSourceToken(ctx context.Context, t SourceToken, sealed []byte) (bool, error) {
	return s.changeSourceToken(ctx, t, "version = ?", t.Version,
		map[string]any{"sealed": sealed, "version": t.Version + 1, "held_until": db.Instant(0), "updated_at": s.db.Now()})
}

// ReleaseSourceToken ends the lock of HoldSourceToken. It is called if t could not be exchanged for a new token.
func (s *Queue) ReleaseSourceToken(ctx context.Context, t SourceToken) error {
	_, err := s.changeSourceToken(ctx, t, "held_until = ?", t.HeldUntil, map[string]any{"held_until": db.Instant(0)})
	return err
}

// changeSourceToken updates the row of the token t. The map newValues has the new values of columns. The row is updated only if it still has the
// version t.Version and fulfils the SQL condition. This condition has one placeholder, for conditionArg. changeSourceToken returns true if it updated
// the row.
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
