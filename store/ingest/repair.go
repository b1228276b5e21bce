package ingest

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// RepairFutureTimes corrects times in the future that a wrong clock has written. It corrects the times of the queue (see queue.RepairFutureTimes),
// and the times of the last fetches of videos and accounts, which would block newer answers. Points of future days stay, because they are measured
// counts. Only their times of fetch are corrected, so that a fetch on that day replaces them. The result is the number of corrected rows by table.
func (s *Writer) RepairFutureTimes(ctx context.Context, longestPause time.Duration) (map[string]int64, error) {
	repaired := map[string]int64{}
	orgs, err := s.organisationIDs(ctx)
	if err != nil {
		return repaired, err
	}
	for _, org := range orgs {
		if err := s.repairOrganisation(ctx, org, repaired); err != nil && !errors.Is(err, db.ErrOrganisationDeleted) {
			return repaired, err
		}
	}
	queued, err := s.store.Queue.RepairFutureTimes(ctx, longestPause)
	maps.Copy(repaired, queued)
	return repaired, err
}

// repairOrganisation corrects the times of the organisation's videos and accounts. It returns ErrOrganisationDeleted if the deletion of the
// organisation has begun.
func (s *Writer) repairOrganisation(ctx context.Context, org uuid.UUID, repaired map[string]int64) error {
	for {
		last, err := s.repairVideos(ctx, org, repaired)
		if err != nil {
			return err
		}
		if last {
			return s.repairAccounts(ctx, org, repaired)
		}
	}
}

// repairVideos corrects the times of a batch of the organisation's videos. It returns true if no further video can need a correction.
func (s *Writer) repairVideos(ctx context.Context, org uuid.UUID, repaired map[string]int64) (last bool, err error) {
	now := s.db.Now()
	future := now.Add(db.FutureTolerance)
	var ids []uuid.UUID
	// This reads one range of the index videos_updated.
	err = db.Scoped(s.db.Read(ctx), "videos", org).Where("latest_updated_at > ?", future).Limit(db.DeleteBatch).Pluck("id", &ids).Error
	if err != nil || len(ids) == 0 {
		return true, db.Translate(err)
	}
	var videos, points int64
	err = s.db.Change(ctx, org, func(tx *gorm.DB) error {
		done := tx.Exec(`UPDATE snapshots_daily SET fetched_at = ? WHERE organisation_id = ? AND video_id IN ? AND day >= ? AND fetched_at > ?`,
			now, org, ids, now.Day(), future)
		if points = done.RowsAffected; done.Error != nil {
			return done.Error
		}
		done = tx.Exec(`UPDATE videos SET latest_updated_at = ? WHERE organisation_id = ? AND id IN ? AND latest_updated_at > ?`, now, org, ids, future)
		videos = done.RowsAffected
		return done.Error
	})
	if err != nil {
		return true, err
	}
	repaired["videos"] += videos
	repaired["snapshots_daily"] += points
	return len(ids) < db.DeleteBatch, nil
}

// repairAccounts corrects the times of the organisation's accounts.
func (s *Writer) repairAccounts(ctx context.Context, org uuid.UUID, repaired map[string]int64) error {
	now := s.db.Now()
	future := now.Add(db.FutureTolerance)
	var found []uuid.UUID
	err := db.Scoped(s.db.Read(ctx), "accounts", org).Where("checked_at > ? OR discovered_at > ?", future, future).Limit(1).Pluck("id", &found).Error
	if err != nil || len(found) == 0 {
		return db.Translate(err)
	}
	var n int64
	err = s.db.Change(ctx, org, func(tx *gorm.DB) error {
		done := tx.Exec(`UPDATE accounts SET checked_at = CASE WHEN checked_at > ? THEN ? ELSE checked_at END,
  discovered_at = CASE WHEN discovered_at > ? THEN ? ELSE discovered_at END WHERE organisation_id = ? AND (checked_at > ? OR discovered_at > ?)`,
			future, now, future, now, org, future, future)
		n = done.RowsAffected
		return done.Error
	})
	repaired["accounts"] += n
	return err
}
