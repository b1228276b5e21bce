package queue

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// longestWait is more than the longest wait of a target until its next fetch. A target that waits longer got its due time from a wrong clock.
	longestWait = 8 * db.Day
	// longestJobWait is more than the longest time between two runs of a job.
	longestJobWait = 2 * db.Day
)

// RepairFutureTimes corrects times in the future that a wrong clock has written, so that fetching continues. Targets whose last fetch seems to be in
// the future become due now, and so do targets and jobs whose due time is too late. Pauses of sources that would last longer than longestPause from now are
// deleted. The result is the number of corrected rows by table. The caller must be sure that the clock is right now.
func (s *Queue) RepairFutureTimes(ctx context.Context, longestPause time.Duration) (map[string]int64, error) {
	repaired := map[string]int64{}
	if err := s.repairTargets(ctx, repaired); err != nil {
		return repaired, err
	}
	now := s.db.Now()
	future := now.Add(db.FutureTolerance)
	for _, r := range []struct {
		table, statement string
		args             []any
	}{
		{"source_pauses", "DELETE FROM source_pauses WHERE blocked_until > ?", []any{now.Add(longestPause)}},
		{"jobs", "UPDATE jobs SET next_at = ?, token = NULL WHERE next_at > ?", []any{now, now.Add(longestJobWait)}},
		// A turn is close to a time in microseconds since 1970, so a turn in the future comes from a clock that was wrong.
		{"org_turns", "UPDATE org_turns SET turn = ? WHERE turn > ?", []any{now, future}},
	} {
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			done := tx.Exec(r.statement, r.args...)
			repaired[r.table] = done.RowsAffected
			return done.Error
		})
		if err != nil {
			return repaired, err
		}
	}
	return repaired, nil
}

// repairTargets makes targets due now whose times are too far in the future. It adds their number to repaired["fetch_targets"].
func (s *Queue) repairTargets(ctx context.Context, repaired map[string]int64) error {
	// The loop reads the table only once, in the order of its key, although each round changes only a part of the targets.
	const wrong = "(fetched_at > ? OR next_at > ?)"
	var last Target // the last target that was found
	for {
		now := s.db.Now()
		future, latest := now.Add(db.FutureTolerance), now.Add(longestWait)
		var found []Target // only with the columns of the key
		err := s.db.Read(ctx).Raw(`SELECT source, kind, external_id FROM fetch_targets WHERE bucket = ? AND (source, kind, external_id) > (?, ?, ?) AND `+wrong+`
 ORDER BY source, kind, external_id LIMIT ?`, Bucket, last.Platform, last.Kind, last.ExternalID, future, latest, db.DeleteBatch).Scan(&found).Error
		if err != nil || len(found) == 0 {
			return db.Translate(err)
		}
		last = found[len(found)-1]
		n, err := s.changeTargets(ctx, found, func(tx *gorm.DB, g KindGroup) *gorm.DB {
			// End the lease, so that the end of a fetch that began while the clock was wrong does not change these times again.
			return tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL,
  fetched_at = CASE WHEN fetched_at > ? THEN ? ELSE fetched_at END, details_at = CASE WHEN details_at > ? THEN ? ELSE details_at END,
  requested_at = CASE WHEN requested_at > ? THEN ? ELSE requested_at END, turn = CASE WHEN turn > ? THEN ? ELSE turn END
 WHERE ? AND `+wrong, now, future, now, future, now, future, now, future, now, g.Condition(), future, latest)
		})
		if err != nil {
			return err
		}
		repaired["fetch_targets"] += n
	}
}
