package store

import (
	"database/sql"
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Turns keep the interactive lane fair: 500 links of one organisation must not stand before another's single one. Each
// organisation's links have consecutive turns, counted from the turn that is being served, and the lowest turn is claimed
// first; so organisations that wait together are served by turns, and who comes new comes next. (Start-time fair queueing,
// with all links of the same length.)

type orgTurn struct {
	Route          string    `gorm:"primaryKey"`
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	Turn           int64
}

// takeTurns gives the entries their first route, and those of the interactive lane their turns there. The entries are sorted by platform
// and kind.
func takeTurns(tx *gorm.DB, org uuid.UUID, entries []queueEntry, now Instant) error {
	var routes []Route
	if err := tx.Find(&routes).Error; err != nil {
		return err
	}
	turns := map[string]*orgTurn{}
	for i := range entries {
		e := &entries[i]
		if at := slices.IndexFunc(routes, func(r Route) bool { return r.Platform == e.Source && r.Kind == e.Kind }); at >= 0 {
			e.route = routes[at].Route
		}
		if e.Lane != LaneInteractive {
			continue
		}
		turn, err := nextTurn(tx, turns, e.route, org, now)
		if err != nil {
			return err
		}
		e.turn = turn
	}
	return saveTurns(tx, turns)
}

// nextTurn returns the next turn of an organisation in a source's queue. turns holds the last turns until saveTurns writes them.
func nextTurn(tx *gorm.DB, turns map[string]*orgTurn, route string, org uuid.UUID, now Instant) (int64, error) {
	key := route + "/" + org.String()
	if turns[key] == nil {
		last, err := lastTurn(tx, org, route, now)
		if err != nil {
			return 0, err
		}
		turns[key] = &orgTurn{route, org, last}
	}
	turns[key].Turn++
	return turns[key].Turn, nil
}

// saveTurns writes the last turns, always in the same order so that two transactions cannot wait for each other.
func saveTurns(tx *gorm.DB, turns map[string]*orgTurn) error {
	for _, key := range slices.Sorted(maps.Keys(turns)) {
		err := tx.Clauses(clause.OnConflict{
			Columns: columns([]string{"route", "organisation_id"}), DoUpdates: clause.AssignmentColumns([]string{"turn"}),
		}).Create(turns[key]).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// lastTurn returns the turn after which the organisation's next target comes. The turns that it was given before count only while some of
// these targets may still wait.
func lastTurn(tx *gorm.DB, org uuid.UUID, route string, now Instant) (int64, error) {
	var serving sql.NullInt64
	err := tx.Raw(`SELECT MIN(turn) FROM fetch_targets WHERE bucket = ? AND route = ? AND lane = 0 AND next_at <= ? AND claimed_by IS NULL`,
		bucket, route, now).Row().Scan(&serving)
	if err != nil {
		return 0, err
	}
	if !serving.Valid {
		return int64(now), nil // no target waits
	}
	var given []int64
	err = tx.Raw(`SELECT turn FROM org_turns WHERE route = ? AND organisation_id = ?`, route, org).Scan(&given).Error
	if err != nil || len(given) == 0 {
		return serving.Int64 - 1, err
	}
	return max(serving.Int64-1, given[0]), nil
}
