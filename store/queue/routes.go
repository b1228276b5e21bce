package queue

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Route says which source is asked first for all targets of one platform and kind.
type Route struct {
	Platform link.Platform `gorm:"column:source;primaryKey"`
	Kind     Kind          `gorm:"primaryKey"`
	Route    string        // name of the source
}

// TableName returns the name of the table for GORM.
func (Route) TableName() string { return "fetch_routes" }

// PublishRoutes stores the first source for each platform and kind. A target whose next source is
// not in the list "sources" starts again with the first source.
func (s *Queue) PublishRoutes(ctx context.Context, routes []Route, sources []string) error {
	for _, r := range routes {
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{
				Columns: db.Columns([]string{"source", "kind"}), DoUpdates: clause.AssignmentColumns([]string{"route"}),
			}).Create(&r).Error
		})
		if err == nil {
			err = s.resetRoutes(ctx, r, sources)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resetRoutes sets the route of those targets of r.Platform and r.Kind to r.Route whose route is not in
// "sources". It deletes their stored answers.
func (s *Queue) resetRoutes(ctx context.Context, r Route, sources []string) error {
	for after := ""; ; {
		var end []string // the last id of this transaction; empty if the transaction changes all remaining targets
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			end = nil
			err := tx.Raw(`SELECT external_id FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND external_id > ? ORDER BY external_id LIMIT 1 OFFSET ?`,
				Bucket, r.Platform, r.Kind, after, maxRowsPerReset-1).Scan(&end).Error
			if err != nil {
				return err
			}
			update, args := `UPDATE fetch_targets SET route = ?, answers = NULL WHERE bucket = ? AND source = ? AND kind = ? AND route NOT IN ? AND external_id > ?`,
				[]any{r.Route, Bucket, r.Platform, r.Kind, sources, after}
			if len(end) > 0 {
				update, args = update+" AND external_id <= ?", append(args, end[0])
			}
			return tx.Exec(update, args...).Error
		})
		if err != nil || len(end) == 0 {
			return err
		}
		after = end[0]
	}
}

// AssignRoutes gives each target without a route the first source for its platform and kind. A target has no
// route if fetch_routes had no source for its platform and kind when the target was added.
func (s *Queue) AssignRoutes(ctx context.Context) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE fetch_targets SET route = r.route FROM fetch_routes r
 WHERE fetch_targets.bucket = ? AND fetch_targets.route = '' AND r.source = fetch_targets.source AND r.kind = fetch_targets.kind`, Bucket).Error
	})
}

// maxRowsPerReset is the maximum number of rows that resetRoutes changes in one transaction.
const maxRowsPerReset = 5000
