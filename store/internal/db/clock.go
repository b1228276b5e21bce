package db

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Rows are deleted by their age, so a clock that is years ahead would delete all rows. The checks
// in clockCondition prevent that.

const (
	// clockDrift limits the difference between the store's clock and the database's clock. If the difference is larger, no rows are deleted by
	// their age. The store's clock also counts as having jumped if it goes back by more than clockDrift.
	clockDrift = Day
	// maxFetchDrift limits the same difference for fetching. If the difference is larger, nothing is fetched. An export of histories ends two minutes before
	// the present while no collector runs: see Queue.OldestFetch. A collector whose clock is behind by more than two minutes would store points before the
	// end of this export. The clock of the server that answered the export can be ahead, so the limit is half of the two minutes.
	maxFetchDrift = time.Minute
	// FutureTolerance is how far a stored time of a fetch may be ahead of the store's clock. It is longer than twice maxFetchDrift, because the clocks of
	// two collectors can differ by that.
	FutureTolerance = 15 * time.Minute
	// clockJump is how far the store's clock may be ahead of clockState.SeenAt. A larger difference
	// counts as a jump, even after a long stop of all collectors.
	clockJump = 31 * Day
	// clockSteadyFor is how long the store's clock must run without a jump before rows are deleted.
	clockSteadyFor = 7 * Day
	// clockWriteInterval is how often the store's time is written to the database.
	clockWriteInterval = time.Hour
)

// ClockError reports that the store's clock may be wrong. In that case, no rows are deleted by their age.
type ClockError struct{ Detail string }

func (e *ClockError) Error() string { return e.Detail }

// clockState is the only row of the table clock_state. It describes the store's clock.
type clockState struct {
	Name        string  `gorm:"primaryKey"` // always the value of the constant retentionClock
	SteadySince Instant // the clock has run without a jump since this time
	SeenAt      Instant // what the store's clock showed when this row was last written
}

// TableName returns the name of the table for GORM.
func (clockState) TableName() string { return "clock_state" }

// retentionClock is the name of the only row of clock_state.
const retentionClock = "retention"

// CheckClock returns a *ClockError if the store's clock may be wrong. The caller must then not delete rows by their age. CheckClock always
// returns nil if Options.RealTime is false.
func (d *DB) CheckClock(ctx context.Context) error {
	_, err := d.clockCondition(ctx)
	return err
}

// CompareClocks returns a *ClockError if the store's clock differs from the database's clock by more than maxFetchDrift. The caller must then not fetch.
// CompareClocks always returns nil on SQLite, and if Options.RealTime is false.
func (d *DB) CompareClocks(ctx context.Context) error {
	if !d.realTime || !d.SharedByProcesses() {
		return nil
	}
	return d.compareClocks(ctx, maxFetchDrift, "nothing is fetched")
}

// compareClocks returns a *ClockError if the store's clock differs from the database's clock by more than maxDrift. The error says the given consequence.
func (d *DB) compareClocks(ctx context.Context, maxDrift time.Duration, consequence string) error {
	engine, err := d.Engine(ctx)
	if err != nil {
		return err
	}
	now := d.Now()
	if engine.Now != nil && now.Sub(InstantOf(*engine.Now)).Abs() > maxDrift {
		return &ClockError{fmt.Sprintf("the clock of this machine says %s, and the clock of the database says %s: %s by a clock that may be wrong; set both clocks by NTP",
			formatInstant(now), formatInstant(InstantOf(*engine.Now)), consequence)}
	}
	return nil
}

// CheckAndWriteClock does the same as CheckClock. It also writes the store's time to the database, about once an hour.
func (d *DB) CheckAndWriteClock(ctx context.Context) error {
	state, err := d.clockCondition(ctx)
	if now := d.Now(); state.Name != "" && now.Sub(state.SeenAt).Abs() >= clockWriteInterval {
		state.SeenAt = now
		saveErr := d.Tx(ctx, func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{Columns: Columns([]string{"name"}), DoUpdates: clause.AssignmentColumns([]string{"steady_since", "seen_at"})}).
				Create(&state).Error
		})
		if saveErr != nil {
			return saveErr
		}
	}
	return err
}

// clockCondition returns the row for clock_state, and a *ClockError if the clock may be wrong. If
// the row's Name is "", there is nothing to write.
func (d *DB) clockCondition(ctx context.Context) (clockState, error) {
	if !d.realTime {
		return clockState{}, nil
	}
	if err := d.compareClocks(ctx, clockDrift, "nothing is rolled up or dropped"); err != nil {
		return clockState{}, err
	}
	now := d.Now()
	var known []clockState
	if err := d.read.WithContext(ctx).Where("name = ?", retentionClock).Limit(1).Find(&known).Error; err != nil {
		return clockState{}, Translate(err)
	}
	// The caller sets SeenAt before it writes this row.
	var state clockState
	switch {
	case len(known) == 0:
		state = clockState{Name: retentionClock, SteadySince: now}
		fresh, err := d.isNewInstallation(ctx, now)
		if err != nil {
			return clockState{}, err
		}
		if fresh {
			state.SteadySince = now.Add(-clockSteadyFor)
		}
	default:
		state = known[0]
		// After a jump, operators have the time clockSteadyFor to correct the clock.
		if ahead := now.Sub(state.SeenAt); ahead > clockJump || ahead < -clockDrift {
			state.SteadySince = now
		}
	}
	if until := state.SteadySince.Add(clockSteadyFor); now < until {
		return state, &ClockError{fmt.Sprintf("the clock of this machine says %s and may have jumped at %s: nothing is rolled up or dropped before %s; if the clock is wrong, set it by NTP",
			formatInstant(now), formatInstant(state.SteadySince), formatInstant(until))}
	}
	return state, nil
}

// isNewInstallation returns true if no organisation is older than clockSteadyFor. Such a database has no old data to delete.
func (d *DB) isNewInstallation(ctx context.Context, now Instant) (bool, error) {
	var older []uuid.UUID
	err := d.read.WithContext(ctx).Raw("SELECT id FROM organisations WHERE created_at < ? LIMIT 1", now.Add(-clockSteadyFor)).Scan(&older).Error
	return len(older) == 0, Translate(err)
}

// formatInstant returns an instant in RFC 3339 form, for error messages.
func formatInstant(i Instant) string { return i.Time().Format(time.RFC3339) }
