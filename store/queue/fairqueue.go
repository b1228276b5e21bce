package queue

import (
	"cmp"
	"database/sql"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

// The interactive lane serves waiting organisations alternately: a single link must not wait for
// another organisation's 500 links. The method is start-time fair queueing with equal weights.

// orgTurn is a row of the table org_turns. A turn is a number that orders the targets of one source
// in the interactive lane.
type orgTurn struct {
	Route          string    `gorm:"primaryKey"`
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	Turn           int64     // highest turn that a target of the organisation has got so far
}

// TurnKey identifies one sequence of turns: see orgTurn. Each organisation has one sequence of
// turns for each source.
type TurnKey struct {
	Route        string    // name of the source
	Organisation uuid.UUID // the organisation that requested the target; for the zero UUID, TakeTurns returns 0
}

// TakeTurns returns a new turn for each key, in the order of the keys. The type orgTurn explains
// what a turn is.
func TakeTurns(tx *gorm.DB, keys []TurnKey, now db.Instant) ([]int64, error) {
	last, turns := map[TurnKey]int64{}, make([]int64, len(keys))
	for i, k := range keys {
		if k.Organisation == uuid.Nil {
			continue
		}
		if _, known := last[k]; !known {
			var err error
			if last[k], err = lastTurn(tx, k, now); err != nil {
				return nil, err
			}
		}
		last[k]++
		turns[i] = last[k]
	}
	rows := make([]orgTurn, 0, len(last))
	for k, turn := range last {
		rows = append(rows, orgTurn{k.Route, k.Organisation, turn})
	}
	if len(rows) == 0 {
		return turns, nil
	}
	// Write the rows in a fixed order, so that two concurrent transactions cannot deadlock.
	slices.SortFunc(rows, func(a, b orgTurn) int {
		return cmp.Or(cmp.Compare(a.Route, b.Route), slices.Compare(a.OrganisationID[:], b.OrganisationID[:]))
	})
	return turns, tx.Clauses(clause.OnConflict{
		Columns: db.Columns([]string{"route", "organisation_id"}), DoUpdates: clause.AssignmentColumns([]string{"turn"}),
	}).Create(&rows).Error
}

// LockAskedBy locks the given targets and returns, for each of them, the organisation that waits for it. Targets for which no organisation waits
// are left out. The deletion of an organisation waits for the lock, so a transaction can take a turn for a returned organisation.
func LockAskedBy(tx *gorm.DB, targets []Target) (map[Key]uuid.UUID, error) {
	askedBy := map[Key]uuid.UUID{}
	if len(targets) == 0 {
		return askedBy, nil
	}
	list, args := withTargets(tx, targets)
	var found []Target
	err := tx.Raw(list+`SELECT t.source, t.kind, t.external_id, t.asked_by FROM wanted CROSS JOIN fetch_targets t
 WHERE t.bucket = ? AND t.source = wanted.source AND t.kind = wanted.kind AND t.external_id = wanted.external_id AND t.asked_by IS NOT NULL
 ORDER BY t.source, t.kind, t.external_id`+db.ForUpdateClause(tx, "t"), append(args, Bucket)...).Find(&found).Error
	for _, t := range found {
		askedBy[t.Key()] = *t.AskedBy
	}
	return askedBy, err
}

// routeEntries sets the fields "route" and "turn" of each entry. Outside the interactive lane, the
// turn is 0.
func routeEntries(tx *gorm.DB, org uuid.UUID, entries []Entry, now db.Instant) error {
	var routes []Route
	if err := tx.Find(&routes).Error; err != nil {
		return err
	}
	keys := make([]TurnKey, len(entries))
	for i := range entries {
		e := &entries[i]
		if at := slices.IndexFunc(routes, func(r Route) bool { return r.Platform == e.Platform && r.Kind == e.Kind }); at >= 0 {
			e.route = routes[at].Route
		}
		if e.Lane == LaneInteractive {
			keys[i] = TurnKey{Route: e.route, Organisation: org}
		}
	}
	turns, err := TakeTurns(tx, keys, now)
	for i, turn := range turns {
		entries[i].turn = turn
	}
	return err
}

// lastTurn returns the turn after which the next turns of the organisation k.Organisation begin. An
// organisation that starts to wait gets about the lowest turn, so that it is served next.
func lastTurn(tx *gorm.DB, k TurnKey, now db.Instant) (int64, error) {
	var lowest, given sql.NullInt64
	err := tx.Raw(`SELECT (SELECT MIN(t.turn) FROM fetch_targets t WHERE t.bucket = ? AND t.route = ? AND t.lane = 0 AND t.next_at <= ? AND t.claimed_by IS NULL),
 (SELECT turn FROM org_turns WHERE organisation_id = ? AND route = ?)`,
		Bucket, k.Route, now, k.Organisation, k.Route).Row().Scan(&lowest, &given)
	switch {
	case err != nil:
		return 0, err
	case !lowest.Valid:
		return int64(now), nil // no target waits in the interactive lane
	case !given.Valid:
		return lowest.Int64 - 1, nil
	}
	// Begin with the lowest turn among all waiting targets, but after the turn that k.Organisation got last.
	return max(lowest.Int64-1, given.Int64), nil
}
