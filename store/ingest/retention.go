package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// The history of a video has daily points for store.Retention.Daily days. Roll-up replaces older
// daily points by weekly points. After store.Retention.Weekly days, weekly points are deleted.

// retentionBatch is the maximum number of videos or accounts that one transaction processes. The transaction rolls up or deletes their points.
const retentionBatch = 500

// RetentionReport is the result of ApplyRetention.
type RetentionReport struct {
	Weeks   int64    // number of weekly points written
	Days    int64    // number of daily points deleted row by row; the points of dropped months are not counted
	Months  []string // months (YYYY-MM) whose partition was dropped
	Busy    []string // months (YYYY-MM) whose partition could not be dropped yet, because it was in use or has points that no weekly point replaces; the next run tries again
	Expired int64    // number of deleted points that were older than Retention.Weekly: points of videos, accounts and organisations
}

// ApplyRetention replaces old daily points by weekly points, and deletes the oldest points. It can
// be interrupted and run again. It calls keepAlive after each transaction that writes or deletes points, and
// stops if keepAlive fails.
func (s *Writer) ApplyRetention(ctx context.Context, keepAlive func() error) (RetentionReport, error) {
	var done RetentionReport
	// If the clock may be wrong, nothing is deleted. The error is then a *ClockError.
	if err := s.db.CheckAndWriteClock(ctx); err != nil {
		return done, err
	}
	if err := s.createNextPartitions(ctx); err != nil {
		return done, err
	}
	today := s.db.Now().Day()
	orgs, err := s.organisationIDs(ctx)
	if err != nil {
		return done, err
	}
	// Roll up only whole weeks, because the last point of an unfinished week is not known yet.
	keep := s.db.Retention()
	daily := (today - keep.Daily).Week()
	if err := s.rollUpOldPoints(ctx, orgs, daily, &done, keepAlive); err != nil {
		return done, err
	}
	return done, s.deleteOldPoints(ctx, orgs, today-keep.Weekly-db.RetentionMargin, &done, keepAlive)
}

// createNextPartitions creates the partitions of the coming months. It gives up with an error after a minute, because it must return before
// the lease of the caller's scheduled job ends.
func (s *Writer) createNextPartitions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.db.PreparePartitions(ctx)
}

// rollUpOldPoints replaces daily points that are older than firstKept by weekly points. On PostgreSQL, it replaces only the points of whole months
// that end before firstKept.
func (s *Writer) rollUpOldPoints(ctx context.Context, orgs []uuid.UUID, firstKept db.Date, done *RetentionReport, keepAlive func() error) error {
	ranges, err := s.db.DayRanges(ctx, firstKept)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if err := s.rollUpDays(ctx, orgs, r, done, keepAlive); err != nil {
			return err
		}
		if !r.Partition {
			continue
		}
		month := r.From.Time().Format("2006-01")
		err := s.db.DropMonth(ctx, orgs, r.From, func(tx *gorm.DB) error { return requireWeeklyPoints(tx, orgs, r) })
		switch {
		case errors.Is(err, db.ErrMonthGone):
		case errors.Is(err, db.ErrMonthBusy):
			done.Busy = append(done.Busy, month)
		case err != nil:
			return err
		default:
			done.Months = append(done.Months, month)
		}
		if err := keepAlive(); err != nil {
			return err
		}
	}
	return nil
}

// requireWeeklyPoints returns an error if a daily point in the range has no weekly point that
// replaces it.
func requireWeeklyPoints(tx *gorm.DB, orgs []uuid.UUID, r db.DayRange) error {
	for _, org := range orgs {
		var missing int64
		// The weekly point must have each count of the daily point, and must not be older.
		err := tx.Raw(`SELECT COUNT(*) FROM snapshots_daily d WHERE d.organisation_id = ? AND d.day >= ? AND d.day < ? AND NOT EXISTS (
SELECT 1 FROM snapshots_weekly w WHERE w.organisation_id = ? AND w.video_id = d.video_id AND w.week = d.week AND w.day >= d.day
   AND `+db.JoinMetrics("(d.{m} IS NULL OR w.{m} IS NOT NULL)", " AND ")+`)`,
			org, r.From, r.Before, org).Scan(&missing).Error
		if err != nil {
			return err
		}
		if missing > 0 {
			return fmt.Errorf("%d points from %s to %s in organisation %s are not rolled up: %w", missing, r.From, r.Before-1, org, db.ErrMonthBusy)
		}
	}
	return nil
}

// upsertWeeks is the SQL statement that writes the weekly points for a range of days. A weekly
// point is a copy of the last daily point of its week. It also has the first day with a point, and the views of this day.
var upsertWeeks = func() string {
	var columns, last, set, changed strings.Builder
	for _, c := range db.MetricNames("") {
		columns.WriteString(", " + c)
		// If the last daily point of the week lacks a count, the weekly point gets it from the last daily point
		// of the week that has it.
		fmt.Fprintf(&last, ", FIRST_VALUE(d.%[1]s) OVER (PARTITION BY d.video_id, d.week ORDER BY d.%[1]s IS NULL, d.day DESC) AS %[1]s", c)
		// A week that spans two months is rolled up in two runs, one for each month, in any order. Its weekly
		// point keeps the later counts.
		fmt.Fprintf(&set, "%[1]s = CASE WHEN snapshots_weekly.day > excluded.day THEN COALESCE(snapshots_weekly.%[1]s, excluded.%[1]s) ELSE COALESCE(excluded.%[1]s, snapshots_weekly.%[1]s) END, ", c)
		// A weekly point that already has the right counts is not updated.
		fmt.Fprintf(&changed, " OR (snapshots_weekly.%[1]s IS NULL AND excluded.%[1]s IS NOT NULL) OR (snapshots_weekly.day = excluded.day AND snapshots_weekly.%[1]s <> excluded.%[1]s)", c)
	}
	for _, c := range []string{"fetched_at", "source", "day"} {
		fmt.Fprintf(&set, "%[1]s = CASE WHEN snapshots_weekly.day > excluded.day THEN snapshots_weekly.%[1]s ELSE excluded.%[1]s END, ", c)
	}
	return `INSERT INTO snapshots_weekly (organisation_id, video_id, week, first_day, first_day_views, day` + columns.String() + `, fetched_at, source)
SELECT r.organisation_id, r.video_id, r.week, r.first_day, r.first_day_views, r.day` + strings.ReplaceAll(columns.String(), ", ", ", r.") + `, r.fetched_at, r.source FROM (
  SELECT d.organisation_id, d.video_id, d.week, d.day, d.fetched_at, d.source` + last.String() + `,
    MIN(d.day) OVER (PARTITION BY d.video_id, d.week) AS first_day,
    FIRST_VALUE(d.views) OVER (PARTITION BY d.video_id, d.week ORDER BY d.day) AS first_day_views,
    ROW_NUMBER() OVER (PARTITION BY d.video_id, d.week ORDER BY d.day DESC) AS place
    FROM snapshots_daily d WHERE d.organisation_id = ? AND d.video_id > ? AND d.video_id <= ? AND d.day >= ? AND d.day < ?) AS r
 WHERE r.place = 1
ON CONFLICT (organisation_id, video_id, week) DO UPDATE SET ` + set.String() + `
  first_day_views = CASE WHEN excluded.first_day < snapshots_weekly.first_day THEN excluded.first_day_views ELSE snapshots_weekly.first_day_views END,
  first_day = CASE WHEN excluded.first_day < snapshots_weekly.first_day THEN excluded.first_day ELSE snapshots_weekly.first_day END
 WHERE snapshots_weekly.day < excluded.day OR excluded.first_day < snapshots_weekly.first_day` + changed.String()
}()

// rollUpDays writes the weekly points for the days in r. It also deletes the daily points, unless r
// is a whole partition.
func (s *Writer) rollUpDays(ctx context.Context, orgs []uuid.UUID, r db.DayRange, done *RetentionReport, keepAlive func() error) error {
	return s.runInBatches(ctx, "videos", orgs, done, keepAlive, func(tx *gorm.DB, org, after, last uuid.UUID, batch *RetentionReport) error {
		// Weekly points are written before daily points are deleted, so an interrupted run loses no point.
		weeks := tx.Exec(upsertWeeks, org, after, last, r.From, r.Before)
		if weeks.Error != nil {
			return weeks.Error
		}
		batch.Weeks = weeks.RowsAffected
		if r.Partition {
			// The caller drops the partition.
			return nil
		}
		days := tx.Exec(`DELETE FROM snapshots_daily WHERE organisation_id = ? AND video_id > ? AND video_id <= ? AND day >= ? AND day < ?`,
			org, after, last, r.From, r.Before)
		batch.Days = days.RowsAffected
		return days.Error
	})
}

// runInBatches calls processBatch in one transaction for each batch of rows of a table. A batch has
// the ids after afterID, up to and including lastID.
func (s *Writer) runInBatches(ctx context.Context, table string, orgs []uuid.UUID, report *RetentionReport, keepAlive func() error,
	processBatch func(tx *gorm.DB, org, afterID, lastID uuid.UUID, batch *RetentionReport) error) error {
	for _, org := range orgs {
		after := uuid.Nil
		for {
			var ids []uuid.UUID
			err := db.Scoped(s.db.Read(ctx), table, org).Where(table+".id > ?", after).Order(table+".id").Limit(retentionBatch).Pluck("id", &ids).Error
			if err != nil {
				return db.Translate(err)
			}
			if len(ids) == 0 {
				break
			}
			last := ids[len(ids)-1]
			var batch RetentionReport // the numbers of points that processBatch wrote and deleted
			err = s.db.Change(ctx, org, func(tx *gorm.DB) error {
				batch = RetentionReport{} // Change can run this function again after a failed attempt
				return processBatch(tx, org, after, last, &batch)
			})
			if errors.Is(err, db.ErrOrganisationDeleted) {
				break // the deletion of the organisation has begun since its id was read
			}
			if err != nil {
				return err
			}
			report.Weeks, report.Days, report.Expired = report.Weeks+batch.Weeks, report.Days+batch.Days, report.Expired+batch.Expired
			if err := keepAlive(); err != nil {
				return err
			}
			after = last
		}
	}
	return nil
}

// deleteOldPoints deletes all points before the day firstKept: the weekly points of videos, and the daily points of accounts and organisations.
func (s *Writer) deleteOldPoints(ctx context.Context, orgs []uuid.UUID, firstKept db.Date, done *RetentionReport, keepAlive func() error) error {
	for table, statement := range map[string]string{
		"videos":   `DELETE FROM snapshots_weekly WHERE organisation_id = ? AND video_id > ? AND video_id <= ? AND day < ?`,
		"accounts": `DELETE FROM account_days WHERE organisation_id = ? AND account_id > ? AND account_id <= ? AND day < ?`,
	} {
		err := s.runInBatches(ctx, table, orgs, done, keepAlive, func(tx *gorm.DB, org, after, last uuid.UUID, batch *RetentionReport) error {
			deleted := tx.Exec(statement, org, after, last, firstKept)
			batch.Expired = deleted.RowsAffected
			return deleted.Error
		})
		if err != nil {
			return err
		}
	}
	for _, org := range orgs {
		var expired int64
		err := s.db.Change(ctx, org, func(tx *gorm.DB) error {
			deleted := tx.Exec(`DELETE FROM organisation_days WHERE organisation_id = ? AND day < ?`, org, firstKept)
			expired = deleted.RowsAffected
			return deleted.Error
		})
		if errors.Is(err, db.ErrOrganisationDeleted) {
			continue // the deletion of the organisation has begun since its id was read
		}
		if err != nil {
			return err
		}
		done.Expired += expired
		if err := keepAlive(); err != nil {
			return err
		}
	}
	return nil
}
