package queue

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// SourceToken is a source's credential that changes with its use: whoever exchanges it gets a new one, and the old one
// may be worth nothing from then on. The store keeps it sealed, as the source hands it in, and never reads it.
type SourceToken struct {
	Source  string `gorm:"primaryKey"`
	Account string `gorm:"primaryKey"` // whose it is, in the source's own words
	Sealed  []byte
	// Version grows with every exchange: what was done with an older one is no longer of interest.
	Version   int64
	HeldUntil db.Instant
	UpdatedAt db.Instant `gorm:"autoUpdateTime:false"`
}

// KeepSourceToken returns the token of a source's account; where there is none yet, it keeps the given one. Of several
// processes at once, all get the same.
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

// HoldSourceToken lets the caller alone exchange a token for the time given. False means that another holds it, or has
// exchanged it already. A holder that dies holds it no longer than that time.
func (s *Queue) HoldSourceToken(ctx context.Context, t SourceToken, d time.Duration) (SourceToken, bool, error) {
	now := s.db.Now()
	t.HeldUntil = now.Add(d)
	held, err := s.changeSourceToken(ctx, t, "held_until <= ?", now, map[string]any{"held_until": t.HeldUntil})
	return t, held, err
}

// ReplaceSourceToken puts what a held token was exchanged for in its place and ends the hold. False means that it was
// exchanged by another in the meantime, whose token stays.
func (s *Queue) ReplaceSourceToken(ctx context.Context, t SourceToken, sealed []byte) (bool, error) {
	return s.changeSourceToken(ctx, t, "version = ?", t.Version,
		map[string]any{"sealed": sealed, "version": t.Version + 1, "held_until": db.Instant(0), "updated_at": s.db.Now()})
}

// ReleaseSourceToken ends a hold without an exchange.
func (s *Queue) ReleaseSourceToken(ctx context.Context, t SourceToken) error {
	_, err := s.changeSourceToken(ctx, t, "held_until = ?", t.HeldUntil, map[string]any{"held_until": db.Instant(0)})
	return err
}

// changeSourceToken changes the row if nobody has exchanged it since and the condition holds.
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
