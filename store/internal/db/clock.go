package db

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Rows are deleted by their age, so a clock that is years ahead would delete everything. Two checks prevent that. On PostgreSQL the clock
// of the database must agree with ours. On every engine the database remembers when it last saw our clock. After a jump, nothing is
// deleted until the clock has run for a week without another jump, so that operators can notice and correct it.

const (
	// clockDrift is how far our clock may differ from that of the database, and how far it may go back.
	clockDrift = Day
	// clockJump is how far the clock may move ahead between two sightings. A larger step is a jump, or no collector has run for a long time.
	clockJump = 31 * Day
	// clockSteadyFor is how long the clock must run without a jump before rows are deleted.
	clockSteadyFor = 7 * Day
	// clockSeenEvery is how often the time of the last sighting is written to the database.
	clockSeenEvery = time.Hour
)

// ClockError reports that the clock may be wrong, so that nothing is deleted.
type ClockError struct{ Detail string }

func (e *ClockError) Error() string { return e.Detail }

// clockState is the row of clock_state.
type clockState struct {
	Name        string `gorm:"primaryKey"`
	SteadySince Instant
	SeenAt      Instant
}

// TableName returns the name of the table for GORM.
func (clockState) TableName() string { return "clock_state" }

const retentionClock = "retention"

// CheckClock returns a *ClockError if the store's clock may be wrong, so that rows must not be deleted by it. It always returns nil for a
// store whose clock is not meant to be real (see Options.RealTime).
func (d *DB) CheckClock(ctx context.Context) error {
	_, err := d.judgeClock(ctx)
	return err
}

// SeeClock does the same as CheckClock and writes the sighting to the database.
func (d *DB) SeeClock(ctx context.Context) error {
	state, err := d.judgeClock(ctx)
	if now := d.Now(); state.Name != "" && now.Sub(state.SeenAt).Abs() >= clockSeenEvery {
		state.SeenAt = now
		noted := d.Tx(ctx, func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{Columns: Columns([]string{"name"}), DoUpdates: clause.AssignmentColumns([]string{"steady_since", "seen_at"})}).
				Create(&state).Error
		})
		if noted != nil {
			return noted
		}
	}
	return err
}

// judgeClock returns the current state of the clock. SeenAt is still the time of the last sighting. If the state must not be written to
// the database, its Name is empty.
func (d *DB) judgeClock(ctx context.Context) (clockState, error) {
	if !d.realTime {
		return clockState{}, nil
	}
	engine, err := d.Engine(ctx)
	if err != nil {
		return clockState{}, err
	}
	now := d.Now()
	if engine.Now != nil && now.Sub(InstantOf(*engine.Now)).Abs() > clockDrift {
		return clockState{}, &ClockError{fmt.Sprintf("the clock of this machine says %s, that of the database %s: nothing is rolled up or dropped by a clock that may be wrong; set both by NTP",
			instantText(now), instantText(InstantOf(*engine.Now)))}
	}
	var known []clockState
	if err := d.read.WithContext(ctx).Where("name = ?", retentionClock).Limit(1).Find(&known).Error; err != nil {
		return clockState{}, Translate(err)
	}
	var state clockState
	switch {
	case len(known) == 0:
		state = clockState{Name: retentionClock, SteadySince: now}
		fresh, err := d.isFresh(ctx, now)
		if err != nil {
			return clockState{}, err
		}
		if fresh {
			state.SteadySince = now.Add(-clockSteadyFor)
		}
	default:
		state = known[0]
		if ahead := now.Sub(state.SeenAt); ahead > clockJump || ahead < -clockDrift {
			state.SteadySince = now
		}
	}
	if until := state.SteadySince.Add(clockSteadyFor); now < until {
		return state, &ClockError{fmt.Sprintf("the clock of this machine says %s and has run without a jump only since %s: nothing is rolled up or dropped before %s; if it is wrong, set it by NTP",
			instantText(now), instantText(state.SteadySince), instantText(until))}
	}
	return state, nil
}

// isFresh returns true if every organisation was created within the last clockSteadyFor. Then no older data exists.
func (d *DB) isFresh(ctx context.Context, now Instant) (bool, error) {
	var older []uuid.UUID
	err := d.read.WithContext(ctx).Raw("SELECT id FROM organisations WHERE created_at < ? LIMIT 1", now.Add(-clockSteadyFor)).Scan(&older).Error
	return len(older) == 0, Translate(err)
}

func instantText(i Instant) string { return i.Time().Format(time.RFC3339) }
