package schedule

import (
	"maps"
	"math"
	"slices"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Throttle says how much less often targets are fetched than scheduled, because the budgets are too small. It ranges from 0 (all fetches as
// scheduled) to MaxThrottle. Lanes are throttled one after the other, the free lane first. Within a lane, slow targets are reduced first,
// down to one fetch a week. Then fast targets are reduced down to one fetch a day. Finally all targets are reduced down to one fetch a
// week.
type Throttle float64

// throttledLanes are the lanes in the order in which they are throttled.
var throttledLanes = []queue.Lane{queue.LaneFree, queue.LaneBasic, queue.LanePremium}

// Stages of throttling a lane, in the order in which they are applied.
const (
	stageSlow = iota
	stageFast
	stageAll
	stages
)

// MaxThrottle is the largest Throttle. All targets are then fetched once a week.
var MaxThrottle = Throttle(stages * len(throttledLanes))

// stage returns how far a stage of throttling a lane is applied, from 0 (not at all) to 1 (completely).
func (s Throttle) stage(stage int, lane queue.Lane) float64 {
	at := slices.Index(throttledLanes, lane)
	if at < 0 {
		at = len(throttledLanes) - 1 // not listed: the interactive lane, throttled like the last one
	}
	return min(1, max(0, float64(s)-float64(at*stages+stage)))
}

// days returns the mean interval in days between two days on which a target is fetched, from 1 to longestDays.
func (s Throttle) days(lane queue.Lane, pace queue.Pace) float64 {
	stage := stageAll
	if pace == queue.PaceSlow {
		stage = stageSlow
	}
	return 1 + (longestDays-1)*s.stage(stage, lane)
}

// fetches returns the mean number of fetches on a day on which a target is fetched.
func (s Throttle) fetches(lane queue.Lane, pace queue.Pace) float64 {
	if pace != queue.PaceFast {
		return 1
	}
	return fastFetches - (fastFetches-1)*s.stage(stageFast, lane)
}

// PerDay returns the mean number of fetches of a target in a day.
func (s Throttle) PerDay(lane queue.Lane, pace queue.Pace) float64 {
	return s.fetches(lane, pace) / s.days(lane, pace)
}

// Group identifies the targets that have the same throttle.
type Group struct {
	Platform link.Platform
	Kind     queue.Kind
}

// Need has the number of targets of a group and what their fetches cost.
type Need struct {
	Group   Group
	Targets []queue.Demand
	// Counts and Details are the costs of fetching one target without and with details. Each has one entry for each source, in the order in
	// which the sources are asked. An entry has the units by budget key. Details are fetched once in detailsDays.
	Counts, Details []map[string]float64
}

// Fit returns the smallest throttle of each group at which the supply is enough for the needs. supply has the available units a day by
// budget key. Groups that can spend from the same budget get the same throttle, so that a lane is throttled on all their platforms before
// the next lane.
func Fit(needs []Need, supply map[string]float64) map[Group]Throttle {
	throttles := make(map[Group]Throttle, len(needs))
	for len(needs) > 0 {
		pool, rest := splitConnected(needs, supply)
		low, high := 0.0, float64(MaxThrottle)
		if fits(pool, supply, 0) {
			high = 0
		}
		for high-low > 1.0/256 {
			if middle := (low + high) / 2; fits(pool, supply, Throttle(middle)) {
				high = middle
			} else {
				low = middle
			}
		}
		for _, n := range pool {
			throttles[n.Group] = Throttle(high)
		}
		needs = rest
	}
	return throttles
}

// splitConnected divides needs. pool has the first need and all needs that share a budget with a need in pool. rest has all other needs.
func splitConnected(needs []Need, supply map[string]float64) (pool, rest []Need) {
	pool, rest = needs[:1:1], needs[1:]
	for at := 0; at < len(pool); at++ {
		var others []Need
		for _, n := range rest {
			if pool[at].sharesBudget(n, supply) {
				pool = append(pool, n)
			} else {
				others = append(others, n)
			}
		}
		rest = others
	}
	return pool, rest
}

// sharesBudget returns true if both needs can spend from the same limited budget.
func (n Need) sharesBudget(other Need, supply map[string]float64) bool {
	for bucket := range supply {
		spends := func(n Need) bool {
			return slices.ContainsFunc(slices.Concat(n.Counts, n.Details), func(cost map[string]float64) bool { return cost[bucket] > 0 })
		}
		if spends(n) && spends(other) {
			return true
		}
	}
	return false
}

// fits returns true if the supply is enough for the needs of a day at the throttle s.
func fits(pool []Need, supply map[string]float64, s Throttle) bool {
	left := make(map[string]float64, len(supply))
	maps.Copy(left, supply)
	for _, n := range pool {
		var counts, details float64
		for _, d := range n.Targets {
			fetches := float64(d.Targets) * s.PerDay(d.Lane, d.Pace)
			detailed := min(fetches, float64(d.Targets)/detailsDays)
			counts, details = counts+fetches-detailed, details+detailed
		}
		if !pay(details, n.Details, left) || !pay(counts, n.Counts, left) {
			return false
		}
	}
	return true
}

// pay subtracts the cost of a number of fetches from the units in left. It uses the first cost until a budget is spent, then the next cost.
// It returns false if the units are not enough for all fetches.
func pay(fetches float64, costs []map[string]float64, left map[string]float64) bool {
	const nothing = 1e-6
	if len(costs) == 0 {
		return true // without a source there is no cost
	}
	for _, cost := range costs {
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
