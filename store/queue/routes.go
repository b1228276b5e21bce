package queue

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Route is the first source for the targets of a platform and kind.
type Route struct {
	Platform link.Platform `gorm:"column:source;primaryKey"`
	Kind     Kind          `gorm:"primaryKey"`
	Route    string
}

// TableName returns the name of the table for GORM.
func (Route) TableName() string { return "fetch_routes" }

// PublishRoutes stores the first source for each platform and kind. New targets start with it. A target whose route is not among sources
// starts again with the first source.
func (s *Queue) PublishRoutes(ctx context.Context, routes []Route, sources []string) error {
	for _, r := range routes {
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{
				Columns: db.Columns([]string{"source", "kind"}), DoUpdates: clause.AssignmentColumns([]string{"route"}),
			}).Create(&r).Error
		})
		for more := true; more && err == nil; {
			err = s.db.Tx(ctx, func(tx *gorm.DB) error {
				done := tx.Exec(`UPDATE fetch_targets SET route = ?, answers = NULL FROM (
  SELECT external_id FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND route NOT IN ? LIMIT ?) stray
 WHERE fetch_targets.bucket = ? AND fetch_targets.source = ? AND fetch_targets.kind = ? AND fetch_targets.external_id = stray.external_id`,
					r.Route, Bucket, r.Platform, r.Kind, sources, reroutedAtOnce, Bucket, r.Platform, r.Kind)
				more = done.RowsAffected == reroutedAtOnce
				return done.Error
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AssignRoutes sets the first source of targets that have no route yet. A target has no route if it was tracked while the first collector
// published its routes.
func (s *Queue) AssignRoutes(ctx context.Context) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE fetch_targets SET route = r.route FROM fetch_routes r
 WHERE fetch_targets.bucket = ? AND fetch_targets.route = '' AND r.source = fetch_targets.source AND r.kind = fetch_targets.kind`, Bucket).Error
	})
}

// reroutedAtOnce is the maximum number of rows that one transaction of PublishRoutes locks.
const reroutedAtOnce = 5000
