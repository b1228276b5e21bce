package queue

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

// ReserveUnits reserves units of the budget with the given key, which is SOURCE/BUDGET, for one period of time. It returns false if too
// few units are left. If the limit is 0, the units are only counted.
func (s *Queue) ReserveUnits(ctx context.Context, key, window string, units, limit int64) (bool, error) {
	if limit > 0 && units > limit {
		return false, nil
	}
	var used []int64
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		used = nil
		return tx.Raw(`INSERT INTO quota_windows (source, win, used, updated_at) VALUES (?, ?, ?, ?)
ON CONFLICT (source, win) DO UPDATE SET used = quota_windows.used + excluded.used, updated_at = excluded.updated_at
 WHERE ? = 0 OR quota_windows.used + excluded.used <= ? RETURNING used`, key, window, units, s.db.Now(), limit, limit).Scan(&used).Error
	})
	return len(used) == 1, err
}

// ReturnUnits gives back units that were reserved in a window and not spent. It does nothing if DeleteOldWindows has deleted the count of the
// window.
func (s *Queue) ReturnUnits(ctx context.Context, key, window string, units int64) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE quota_windows SET used = CASE WHEN used > ? THEN used - ? ELSE 0 END WHERE source = ? AND win = ?`,
			units, units, key, window).Error
	})
}

// ReservedUnits returns how many units of the budget with the given key are reserved in a window.
func (s *Queue) ReservedUnits(ctx context.Context, key, window string) (int64, error) {
	var used []int64
	err := s.db.Read(ctx).Raw(`SELECT used FROM quota_windows WHERE source = ? AND win = ?`, key, window).Scan(&used).Error
	if err != nil || len(used) == 0 {
		return 0, db.Translate(err)
	}
	return used[0], nil
}

// Pause says until when a source must not be called, or until when one of its budgets must not be used, and why.
type Pause struct {
	Source       string `gorm:"primaryKey"` // name of the source, or of the budget as SOURCE/BUDGET
	Class        string
	Detail       string
	BlockedUntil db.Instant
	// PausesSinceSuccess is the number of pauses since the last successful call. It is 0 for a pause that began because a budget was used up.
	PausesSinceSuccess int `gorm:"column:strikes"`
	// Since is when the first pause since the last successful call began, or when the budget was used up. PauseSource sets it. It is nil if a
	// version of ReelTally without this column stored the pause.
	Since *db.Instant `gorm:"column:paused_since"`
}

// TableName returns the name of the table for GORM.
func (Pause) TableName() string { return "source_pauses" }

// PauseSource stops all calls to the source or budget p.Source until p.BlockedUntil. If it already has a pause that ends later, that pause
// stays unchanged.
func (s *Queue) PauseSource(ctx context.Context, p Pause) error {
	p.Since = new(s.db.Now())
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{
			Columns: db.Columns([]string{"source"}),
			DoUpdates: append(clause.AssignmentColumns([]string{"class", "detail", "blocked_until", "strikes"}), clause.Assignments(map[string]any{
				"paused_since": gorm.Expr("CASE WHEN source_pauses.strikes = 0 OR excluded.strikes = 0 THEN excluded.paused_since ELSE source_pauses.paused_since END")})...),
			Where: clause.Where{Exprs: []clause.Expression{gorm.Expr("source_pauses.blocked_until < excluded.blocked_until")}},
		}).Create(&p).Error
	})
}

// Pauses returns all stored pauses, including those that have ended. The key is the name of the paused source or budget.
func (s *Queue) Pauses(ctx context.Context) (map[string]Pause, error) {
	var rows []Pause
	if err := s.db.Read(ctx).Find(&rows).Error; err != nil {
		return nil, db.Translate(err)
	}
	pauses := make(map[string]Pause, len(rows))
	for _, p := range rows {
		pauses[p.Source] = p
	}
	return pauses, nil
}

// ResumeSource deletes the pause of a source or budget after a successful call, if the pause was over when the
// call began. A later pause may have begun during the call.
func (s *Queue) ResumeSource(ctx context.Context, key string, calledAt db.Instant) (resumed bool, err error) {
	err = s.db.Tx(ctx, func(tx *gorm.DB) error {
		done := tx.Where("source = ? AND blocked_until <= ?", key, calledAt).Delete(&Pause{})
		resumed = done.RowsAffected > 0
		return done.Error
	})
	return resumed, err
}

// EndBudgetPause deletes the pause of a budget if the pause began because the budget was used up. The argument key is SOURCE/BUDGET. The collector calls EndBudgetPause when the budget has units again.
func (s *Queue) EndBudgetPause(ctx context.Context, key string) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error { return tx.Where("source = ? AND strikes = 0", key).Delete(&Pause{}).Error })
}

// DeleteOldWindows deletes the counts of a budget's old windows. A window is old if its name sorts before oldestKept.
func (s *Queue) DeleteOldWindows(ctx context.Context, key, oldestKept string) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`DELETE FROM quota_windows WHERE source = ? AND win < ?`, key, oldestKept).Error
	})
}
