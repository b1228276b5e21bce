package queue

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Turns keep the interactive lane fair: 500 links of one organisation must not stand before another's single one. Each
// organisation's links have consecutive turns, counted from the turn that is being served, and the lowest turn is claimed
// first; so organisations that wait together are served by turns, and who comes new comes next. (Start-time fair queueing,
// with all links of the same length.)

type orgTurn struct {
	Source         link.Platform `gorm:"primaryKey"`
	Kind           string        `gorm:"primaryKey"`
	OrganisationID uuid.UUID     `gorm:"primaryKey"`
	Turn           int64
}

// takeTurns gives the entries of the interactive lane their turns. The entries come sorted by source and kind.
func takeTurns(tx *gorm.DB, org uuid.UUID, entries []Entry, now db.Instant) error {
	var of orgTurn
	save := func() error {
		if of.Source == "" {
			return nil
		}
		return tx.Clauses(clause.OnConflict{
			Columns: db.Columns([]string{"source", "kind", "organisation_id"}), DoUpdates: clause.AssignmentColumns([]string{"turn"}),
		}).Create(&of).Error
	}
	for i := range entries {
		e := &entries[i]
		if e.Lane != LaneInteractive {
			continue
		}
		if e.Source != of.Source || e.Kind != of.Kind {
			if err := save(); err != nil {
				return err
			}
			last, err := lastTurn(tx, org, e.Source, e.Kind, now)
			if err != nil {
				return err
			}
			of = orgTurn{e.Source, e.Kind, org, last}
		}
		of.Turn++
		e.turn = of.Turn
	}
	return save()
}

// lastTurn returns the turn after which the organisation's next link comes. What it was given before counts only while
// some of that may still wait: who has been served owes nothing.
func lastTurn(tx *gorm.DB, org uuid.UUID, source link.Platform, kind string, now db.Instant) (int64, error) {
	var serving sql.NullInt64
	err := tx.Raw(`SELECT MIN(turn) FROM fetch_targets
 WHERE bucket = ? AND source = ? AND kind = ? AND lane = ? AND next_at <= ? AND claimed_by IS NULL`,
		Bucket, source, kind, LaneInteractive, now).Row().Scan(&serving)
	if err != nil {
		return 0, err
	}
	if !serving.Valid {
		return int64(now), nil // nobody waits
	}
	var given []int64
	err = tx.Raw(`SELECT turn FROM org_turns WHERE organisation_id = ? AND source = ? AND kind = ?`, org, source, kind).Scan(&given).Error
	if err != nil || len(given) == 0 {
		return serving.Int64 - 1, err
	}
	return max(serving.Int64-1, given[0]), nil
}

// Waiting is a target that is due in the interactive lane, and an organisation that subscribes to it.
type Waiting struct {
	ExternalID   string
	Organisation uuid.UUID
}

// newcomersAmong is how many targets, by turns, newcomers are looked for among: they are in front but for retries.
const newcomersAmong = 1000

// Newcomers returns up to limit due targets of the interactive lane to which others subscribe than the organisations that are being
// served, in the order of their turns. A collector all of whose hands are full has some left for these.
func (s *Queue) Newcomers(ctx context.Context, platform link.Platform, kind string, served []uuid.UUID, limit int) ([]Waiting, error) {
	served = append([]uuid.UUID{uuid.Nil}, served...) // the list is never empty
	var out []Waiting
	err := s.db.Read(ctx).Raw(`SELECT external_id, organisation FROM (
  SELECT t.external_id, t.turn, t.next_at, (SELECT MIN(CAST(n.organisation_id AS text)) FROM fetch_subscriptions n
     WHERE n.bucket = ? AND n.source = ? AND n.kind = ? AND n.external_id = t.external_id AND n.organisation_id NOT IN ?) AS organisation
    FROM (SELECT external_id, turn, next_at FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND lane = ? AND next_at <= ?
           ORDER BY turn, next_at LIMIT ?) t) w
 WHERE organisation IS NOT NULL ORDER BY turn, next_at LIMIT ?`,
		Bucket, platform, kind, served, Bucket, platform, kind, LaneInteractive, s.db.Now(), newcomersAmong, limit).Scan(&out).Error
	return out, db.Translate(err)
}
