package collector

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/reeltally/reeltally/store"
)

// While the clock of a collector is ahead, the collector stores due times and times of fetches. After the clock was corrected, these times are in the
// future. Without a repair, the targets would not be fetched before these times. On PostgreSQL, a collector whose clock differs from the clock of the
// database claims nothing. On PostgreSQL and on SQLite, repairTimes corrects times in the future.

const (
	// clockStep is how far the clock must go back to count as corrected.
	clockStep = 5 * time.Minute
	// clockSteadyFor is how long the clock must run without going back before times are repaired. A machine without a battery starts with a clock
	// that is far behind, and all times would seem to lie in the future.
	clockSteadyFor = 10 * time.Minute
	// repairEvery is the interval of the repairs if the clock does not go back. These repairs correct the times that other collectors stored before
	// they stopped.
	repairEvery = 24 * time.Hour
	// longestPause is the longest pause of a source: until midnight in the time zone of the source, on a day of 25 hours.
	longestPause = 25 * time.Hour
	// longestUsualPause is the longest pause that a repair leaves after the clock went back. The repair shortens all longer pauses to this time. If a
	// source still needs its pause, the next call of the source fails, and the pause begins again.
	longestUsualPause = time.Hour
	// clockWarnEvery is the shortest time between two warnings about a wrong clock.
	clockWarnEvery = 10 * time.Minute
)

// clockGuard remembers what the clock of the collector has shown. Its methods can be called concurrently.
type clockGuard struct {
	mu       sync.Mutex
	latest   time.Time // the latest recorded time since the clock last went back; zero before the first call of note
	repairAt time.Time // when the next repair is due
	wentBack bool      // the clock went back since the last repair
	warnedAt time.Time // the time of the last warning; zero if there was no warning since the clock last went back
}

// note records the present time. It schedules a repair, which is due after clockSteadyFor, in two cases: at the first call, and if the clock went back
// by more than clockStep since an earlier call.
func (g *clockGuard) note(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.latest.IsZero():
		g.latest, g.repairAt = now, now.Add(clockSteadyFor)
	case g.latest.Sub(now) > clockStep:
		g.latest, g.repairAt, g.wentBack, g.warnedAt = now, now.Add(clockSteadyFor), true, time.Time{}
	case now.After(g.latest):
		g.latest = now
	}
}

// clockRepair is a repair of the times that a wrong clock has written.
type clockRepair struct {
	at      time.Time     // when the repair was due
	longest time.Duration // the longest pause of a source that the repair leaves
}

// repairDue returns the repair that must run now, or nil if no repair is due.
func (g *clockGuard) repairDue(now time.Time) *clockRepair {
	g.note(now)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case now.Before(g.repairAt):
		return nil
	case g.wentBack:
		return &clockRepair{g.repairAt, longestUsualPause}
	}
	return &clockRepair{g.repairAt, longestPause}
}

// repaired records a successful repair, which began at the time now. It schedules the next repair, unless the clock went back during the repair: then
// note has already scheduled another repair.
func (g *clockGuard) repaired(r *clockRepair, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.at.Equal(g.repairAt) {
		g.repairAt, g.wentBack = now.Add(repairEvery), false
	}
}

// shouldWarn returns true if the collector must log now that its clock is wrong.
func (g *clockGuard) shouldWarn(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.warnedAt.IsZero() && now.Sub(g.warnedAt).Abs() < clockWarnEvery {
		return false
	}
	g.warnedAt = now
	return true
}

// clockIsRight returns false if the clock differs from the clock of the database. The collector must then claim and repair nothing.
func (c *Collector) clockIsRight(ctx context.Context) (bool, error) {
	err := c.Store.CompareClocks(ctx)
	wrong, ok := errors.AsType[*store.ClockError](err)
	if ok {
		if c.clock.shouldWarn(c.Now()) {
			c.Logger.ErrorContext(ctx, "nothing is fetched now: the clock is wrong", "error", wrong)
		}
		return false, nil
	}
	return err == nil, err
}

// repairTimes corrects times in the future that a wrong clock has written. It runs after the clock went back, after the start and once a day.
func (c *Collector) repairTimes(ctx context.Context) error {
	now := c.Now()
	repair := c.clock.repairDue(now)
	if repair == nil {
		return nil
	}
	if right, err := c.clockIsRight(ctx); err != nil || !right {
		return err
	}
	repaired, err := c.writer.RepairFutureTimes(ctx, repair.longest)
	for table, n := range repaired {
		if n > 0 {
			c.Logger.WarnContext(ctx, "repaired times of a wrong clock", "table", table, "rows", n)
		}
	}
	if err == nil {
		c.clock.repaired(repair, now)
	}
	return err
}
