package queue

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// SourceToken is a credential of a source that changes with its use. Exchanging it returns a new token, and the old one may become
// invalid. The source encrypts the token, and the store never reads it.
type SourceToken struct {
	Source  string `gorm:"primaryKey"`
	Account string `gorm:"primaryKey"` // the account that the token belongs to, as the source names it
	Sealed  []byte
	// Version rises with every exchange. Changes to an older version are ignored.
	Version   int64
	HeldUntil db.Instant
	UpdatedAt db.Instant `gorm:"autoUpdateTime:false"`
}

// KeepSourceToken returns the token of a source's account. If there is none, it stores the given one. Concurrent calls all return the same
// token.
func (s *Queue) KeepSourceToken(ctx context.Context, source, account string, sealed []byte) (SourceToken, error) {
	var kept SourceToken
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		first := SourceToken{Source: source, Account: account, Sealed: sealed, Version: 1, UpdatedAt: s.db.Now()}
		if err := tx.Clauses(db.DoNothing("source", "account")).Create(&first).Error; err != nil {
			return err
		}
		return tx.Where("source = ? AND account = ?", source, account).Take(&kept).Error
	})
	return kept, err
}

// HoldSourceToken reserves the exchange of a token for the caller for the duration d. It returns false if another process holds the token
// or has exchanged it.
func (s *Queue) HoldSourceToken(ctx context.Context, t SourceToken, d time.Duration) (SourceToken, bool, error) {
	now := s.db.Now()
	t.HeldUntil = now.Add(d)
	held, err := s.changeSourceToken(ctx, t, "held_until <= ?", now, map[string]any{"held_until": t.HeldUntil})
	return t, held, err
}

// ReplaceSourceToken stores the new token after an exchange and ends the hold. It returns false if another process has exchanged the token
// meanwhile, and keeps that process's token.
func (s *Queue) ReplaceSourceToken(ctx context.Context, t SourceToken, sealed []byte) (bool, error) {
	return s.changeSourceToken(ctx, t, "version = ?", t.Version,
		map[string]any{"sealed": sealed, "version": t.Version + 1, "held_until": db.Instant(0), "updated_at": s.db.Now()})
}

// ReleaseSourceToken ends a hold without an exchange.
func (s *Queue) ReleaseSourceToken(ctx context.Context, t SourceToken) error {
	_, err := s.changeSourceToken(ctx, t, "held_until = ?", t.HeldUntil, map[string]any{"held_until": db.Instant(0)})
	return err
}

// changeSourceToken changes the row if its version is still t.Version and the condition holds. It returns true if it changed the row.
func (s *Queue) changeSourceToken(ctx context.Context, t SourceToken, condition string, argument any, to map[string]any) (bool, error) {
	var changed int64
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		done := tx.Model(&SourceToken{}).Where("source = ? AND account = ? AND version = ?", t.Source, t.Account, t.Version).
			Where(condition, argument).Updates(to)
		changed = done.RowsAffected
		return done.Error
	})
	return changed == 1, err
}
