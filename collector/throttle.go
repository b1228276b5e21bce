package collector

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	// throttleLife is how long the throttles are used before they are computed again from the whole queue.
	throttleLife = 15 * time.Minute
	// throttleRetry is the delay before throttles are computed again after an error.
	throttleRetry = time.Minute
	// headroom is the fraction of a budget that the throttles reserve for retries, refreshes and partly
	// filled batches.
	headroom = 0.1
)

// throttles contains the current throttle of each group of targets. Only the worker that has locked
// updateLock replaces the throttles.
type throttles struct {
	byGroup    atomic.Pointer[map[schedule.Group]schedule.Throttle] // nil before the first update
	updateLock sync.Mutex
	until      time.Time // the time at which the throttles are computed again; protected by updateLock
}

// schedulePlan returns the intervals and the throttle that decide how often a target is fetched.
func (c *Collector) schedulePlan(t queue.Target) schedule.Plan {
	return schedule.Plan{Intervals: c.Intervals, Throttle: c.currentThrottle(t)}
}

// currentThrottle returns the throttle of the target's group. Before the first update, it returns 0, which means no throttling.
func (c *Collector) currentThrottle(t queue.Target) schedule.Throttle {
	if of := c.throttles.byGroup.Load(); of != nil {
		return (*of)[schedule.Group{Platform: t.Platform, Kind: t.Kind}]
	}
	return 0
}

// updateThrottles replaces outdated throttles by new ones, which it computes from the queue and the
// budgets. It also calls publishRoutes.
func (c *Collector) updateThrottles(ctx context.Context) error {
	now := c.Now()
	if !c.throttles.updateLock.TryLock() {
		return nil // another worker is updating the throttles
	}
	defer c.throttles.updateLock.Unlock()
	if now.Before(c.throttles.until) {
		return nil
	}
	c.throttles.until = now.Add(throttleRetry)
	// Each target whose source is no longer configured gets another source.
	if err := c.publishRoutes(ctx); err != nil {
		return err
	}
	supply := c.availableUnits(now)
	var of map[schedule.Group]schedule.Throttle
	if len(supply) > 0 { // without a limited budget, nothing is throttled
		demand, err := c.queue.Demand(ctx)
		if err != nil {
			return err
		}
		of = schedule.FindSmallestThrottles(c.computeNeeds(demand, now), supply, c.Intervals)
		for g, s := range of {
			if s != c.currentThrottle(queue.Target{Platform: g.Platform, Kind: g.Kind}) {
				c.Logger.InfoContext(ctx, "throttle changed", "platform", g.Platform, "kind", g.Kind, "throttle", float64(s), "max", float64(schedule.MaxThrottle))
			}
		}
	}
	c.throttles.byGroup.Store(&of)
	c.throttles.until = now.Add(throttleLife)
	return nil
}

// availableUnits returns how many units of each limited budget are available per day, after the headroom is subtracted. The keys of the map are
// results of quota.BudgetKey.
func (c *Collector) availableUnits(now time.Time) map[string]float64 {
	supply := map[string]float64{}
	for _, s := range c.Sources {
		for _, b := range s.Budgets() {
			if b.Window == nil || b.Limit <= 0 {
				continue
			}
			_, ends := b.Window(now)
			_, next := b.Window(ends)
			// The number of due targets varies from day to day. Its standard deviation is approximately the square root of
			// the limit, so two standard deviations are also kept in reserve.
			units := float64(b.Limit)*(1-headroom) - 2*math.Sqrt(float64(b.Limit))
			supply[quota.BudgetKey(s, b.Name)] = max(0, units) * (24 * time.Hour).Seconds() / next.Sub(ends).Seconds()
		}
	}
	return supply
}

// computeNeeds returns one Need for each group of targets (all videos or all accounts of one platform).
func (c *Collector) computeNeeds(targetCounts []queue.Demand, now time.Time) []schedule.Need {
	var needs []schedule.Need
	for _, d := range targetCounts {
		g := schedule.Group{Platform: d.Platform, Kind: d.Kind}
		at := slices.IndexFunc(needs, func(n schedule.Need) bool { return n.Group == g })
		if at < 0 {
			sample := c.prepareTarget(d.Sample, now)
			at = len(needs)
			needs = append(needs, schedule.Need{Group: g, Counts: c.costsOfFetch(sample, false), Details: c.costsOfFetch(sample, true)})
		}
		needs[at].Targets = append(needs[at].Targets, d)
	}
	return needs
}

// costsOfFetch returns the possible costs of fetching the sample, one for each plan of each source (see
// Source.Plan). A cost maps budget keys to units.
func (c *Collector) costsOfFetch(sample queue.Target, details bool) []map[string]float64 {
	sample.NeedDetails, sample.Depth = details, 0
	var costs []map[string]float64
	for _, s := range c.Sources {
		batch, ok := s.Serves(sample)
		if !ok {
			continue
		}
		for _, calls := range s.Plan([]queue.Target{sample}) {
			cost := map[string]float64{}
			for _, call := range calls {
				// The units of a call are shared by all targets of a full batch.
				cost[quota.BudgetKey(s, call.Budget)] += float64(call.Units) / float64(max(1, batch))
			}
			costs = append(costs, cost)
		}
	}
	return costs
}
