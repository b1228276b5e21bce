package collector

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// How far turns have to be spaced out for a day's calls to fit the budgets: what the targets in the queue would cost is
// laid against what the sources may spend.

const (
	// planLife is for how long a plan holds: reading the whole queue costs more than it changes.
	planLife = 15 * time.Minute
	// headroom is the share of a budget that is left for retries, refreshes and calls that are not full. Twice the root of
	// the budget is left besides: by chance one day has more turns than another, which a small budget feels.
	headroom = 0.1
	// planRetry is when a plan that could not be made is tried again.
	planRetry = time.Minute
)

// group is what competes for the same calls.
type group struct {
	platform link.Platform
	kind     Kind
}

// plan holds the stretch of each group.
type plan struct {
	mu      sync.RWMutex
	until   time.Time
	stretch map[group]stretch
}

func (p *plan) of(platform link.Platform, kind Kind) stretch {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.stretch[group{platform, kind}]
}

// stale says whether the plan has to be made anew, to one caller alone.
func (p *plan) stale(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) {
		return false
	}
	p.until = now.Add(planRetry)
	return true
}

func (p *plan) set(stretches map[group]stretch, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stretch, p.until = stretches, until
}

// replan brings the plan up to date when it is old.
func (c *Collector) replan(ctx context.Context) error {
	now := c.now()
	if !c.plan.stale(now) {
		return nil
	}
	supply := c.supply(now)
	var stretches map[group]stretch
	if len(supply) > 0 { // else nothing is limited
		demand, err := c.store.Queue.Demand(ctx)
		if err != nil {
			return err
		}
		stretches = fit(c.needs(demand, now), supply)
		for g, s := range stretches {
			if s != c.plan.of(g.platform, g.kind) {
				c.log.InfoContext(ctx, "the budgets space out turns", "platform", g.platform, "kind", g.kind, "stretch", float64(s), "most", float64(stretchMost))
			}
		}
	}
	c.plan.set(stretches, now.Add(planLife))
	return nil
}

// supply is what may be spent a day, in units by budget, of those that are limited.
func (c *Collector) supply(now time.Time) map[string]float64 {
	supply := map[string]float64{}
	for _, s := range c.sources {
		for _, b := range s.Budgets() {
			if b.Window == nil || b.Limit <= 0 {
				continue
			}
			_, ends := b.Window(now)
			_, next := b.Window(ends)
			units := float64(b.Limit)*(1-headroom) - 2*math.Sqrt(float64(b.Limit))
			supply[bucketKey(s, b.Name)] = max(0, units) * (24 * time.Hour).Seconds() / next.Sub(ends).Seconds()
		}
	}
	return supply
}

// need is what a group asks for.
type need struct {
	group   group
	targets []queue.Demand
	// counts and details are the ways to ask for one target, in the order in which they are tried: units by budget.
	// Details are asked for once in detailsDays.
	counts, details []map[string]float64
}

func (c *Collector) needs(demand []queue.Demand, now time.Time) []need {
	var needs []need
	for _, d := range demand {
		g := group{d.Platform, Kind(d.Kind)}
		at := slices.IndexFunc(needs, func(n need) bool { return n.group == g })
		if at < 0 {
			sample := ask(d.Sample, now)
			at = len(needs)
			needs = append(needs, need{group: g, counts: c.costs(sample, false), details: c.costs(sample, true)})
		}
		needs[at].targets = append(needs[at].targets, d)
	}
	return needs
}

// costs are the ways to ask for a target like the sample.
func (c *Collector) costs(sample Target, details bool) []map[string]float64 {
	sample.NeedDetails, sample.Depth = details, 0
	var ways []map[string]float64
	for _, s := range c.sources {
		batch, ok := s.Serves(sample)
		if !ok {
			continue
		}
		for _, calls := range s.Plan([]Target{sample}) {
			cost := map[string]float64{}
			for _, call := range calls {
				cost[bucketKey(s, call.Bucket)] += float64(call.Units) / float64(max(1, batch))
			}
			ways = append(ways, cost)
		}
	}
	return ways
}

// fit returns the least stretch of each group at which the needs fit the supply. Groups that may spend from the same
// budget are stretched together, since each lane's turn comes whatever its platform.
func fit(needs []need, supply map[string]float64) map[group]stretch {
	stretches := make(map[group]stretch, len(needs))
	for len(needs) > 0 {
		pool, rest := connected(needs, supply)
		low, high := 0.0, float64(stretchMost)
		if fits(pool, supply, 0) {
			high = 0
		}
		for high-low > 1.0/256 {
			if middle := (low + high) / 2; fits(pool, supply, stretch(middle)) {
				high = middle
			} else {
				low = middle
			}
		}
		for _, n := range pool {
			stretches[n.group] = stretch(high)
		}
		needs = rest
	}
	return stretches
}

// connected parts those off that share a budget with the first, directly or by way of others.
func connected(needs []need, supply map[string]float64) (pool, rest []need) {
	pool, rest = needs[:1:1], needs[1:]
	for at := 0; at < len(pool); at++ {
		var others []need
		for _, n := range rest {
			if pool[at].shares(n, supply) {
				pool = append(pool, n)
			} else {
				others = append(others, n)
			}
		}
		rest = others
	}
	return pool, rest
}

func (n need) shares(other need, supply map[string]float64) bool {
	for bucket := range supply {
		spends := func(of need) bool {
			return slices.ContainsFunc(slices.Concat(of.counts, of.details), func(cost map[string]float64) bool { return cost[bucket] > 0 })
		}
		if spends(n) && spends(other) {
			return true
		}
	}
	return false
}

// fits says whether a day's needs at a stretch can be paid for.
func fits(pool []need, supply map[string]float64, s stretch) bool {
	left := make(map[string]float64, len(supply))
	maps.Copy(left, supply)
	for _, n := range pool {
		var counts, details float64
		for _, d := range n.targets {
			fetches := float64(d.Targets) * s.perDay(d.Lane, d.Pace)
			detailed := min(fetches, float64(d.Targets)/detailsDays)
			counts, details = counts+fetches-detailed, details+detailed
		}
		if !pay(details, n.details, left) || !pay(counts, n.counts, left) {
			return false
		}
	}
	return true
}

// pay takes the cost of so many fetches from what is left, by the ways in their order, and says whether it was enough.
func pay(fetches float64, ways []map[string]float64, left map[string]float64) bool {
	const nothing = 1e-6
	if len(ways) == 0 {
		return true // nobody can be asked at all
	}
	for _, cost := range ways {
		most := math.Inf(1)
		for bucket, units := range cost {
			if have, limited := left[bucket]; limited && units > 0 {
				most = min(most, have/units)
			}
		}
		paid := min(fetches, most)
		for bucket, units := range cost {
			if _, limited := left[bucket]; limited {
				left[bucket] -= paid * units
			}
		}
		if fetches -= paid; fetches <= nothing {
			return true
		}
	}
	return false
}
