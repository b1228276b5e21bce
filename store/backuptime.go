package store

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

// LastBackupSetting is the name of the row of the table "settings" that contains the time at which the last backup ended. Backups do not contain this row.
const LastBackupSetting = "last_backup"

// RecordBackup stores the present time as the end of the last backup.
func (s *Store) RecordBackup(ctx context.Context) error {
	value := []byte(s.db.Now().Time().UTC().Format(time.RFC3339))
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Table("settings").Clauses(clause.OnConflict{Columns: db.Columns([]string{"name"}), DoUpdates: clause.AssignmentColumns([]string{"value"})}).
			Create(map[string]any{"name": LastBackupSetting, "value": value}).Error
	})
}

// LastBackup returns the end of the last backup that `reeltally backup` wrote. It returns nil if no backup is known.
func (s *Store) LastBackup(ctx context.Context) (*time.Time, error) {
	var found []struct{ Value []byte }
	err := s.db.Read(ctx).Table("settings").Select("value").Where("name = ?", LastBackupSetting).Limit(1).Find(&found).Error
	if err != nil || len(found) == 0 {
		return nil, db.Translate(err)
	}
	at, err := time.Parse(time.RFC3339, string(found[0].Value))
	return &at, err
}
