package queue

import (
	"context"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Refusals says how many calls a source or budget has refused with errors of one class since its last successful answer. The start of a collector
// resets the count of a source, but not of a budget. A class is, for example, a refused credential.
type Refusals struct {
	Source string // name of the source, or of the budget as SOURCE/BUDGET
	Class  string
	// Targets is 1 if all refused calls were for the same target, and 2 if they were for two or more targets.
	Targets int
	Calls   int
}

// RecordRefusal adds a refused call for the target with the key targetKey to the Refusals of the source or budget and the
// error class. It returns the new Refusals.
func (s *Queue) RecordRefusal(ctx context.Context, key, class, targetKey string) (Refusals, error) {
	var r Refusals
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Raw(`INSERT INTO source_refusals (source, class, target, targets, calls) VALUES (?, ?, ?, 1, 1)
ON CONFLICT (source, class) DO UPDATE SET calls = source_refusals.calls + 1,
  targets = CASE WHEN source_refusals.target = excluded.target THEN source_refusals.targets ELSE 2 END
RETURNING source, class, targets, calls`, key, class, targetKey).Scan(&r).Error
	})
	return r, err
}

// Refusals returns the counts of refused calls of all sources and budgets.
func (s *Queue) Refusals(ctx context.Context) ([]Refusals, error) {
	var rows []Refusals
	err := s.db.Read(ctx).Raw(`SELECT source, class, targets, calls FROM source_refusals`).Scan(&rows).Error
	return rows, db.Translate(err)
}

// DeleteRefusals deletes the counts of refused calls of a source or budget. It is called after a successful answer of the source. For sources, it
// is also called when a collector starts.
func (s *Queue) DeleteRefusals(ctx context.Context, key string) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`DELETE FROM source_refusals WHERE source = ?`, key).Error
	})
}
