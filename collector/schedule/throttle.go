package schedule

import (
	"maps"
	"math"
	"slices"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Throttle is how much rarer targets are fetched than they should be, because the budgets are too small: 0 for not at all, up to
// MaxThrottle. Lanes are throttled one after the other, the free lane first. Within a lane, first the slow targets are fetched down to
// once a week, then the fast targets down to once a day, and then all targets down to once a week.
type Throttle float64

// throttledLanes are the lanes in the order in which they are throttled.
var throttledLanes = []queue.Lane{queue.LaneFree, queue.LaneBasic, queue.LanePremium}

// The stages of a lane, in this order.
const (
	stageSlow = iota
	stageFast
	stageAll
	stages
)

// MaxThrottle is the strongest throttle.
var MaxThrottle = Throttle(stages * len(throttledLanes))

// stage returns how far a stage of a lane has advanced, from 0 to 1.
func (s Throttle) stage(stage int, lane queue.Lane) float64 {
	at := slices.Index(throttledLanes, lane)
	if at < 0 {
		at = len(throttledLanes) - 1 // the interactive lane
	}
	return min(1, max(0, float64(s)-float64(at*stages+stage)))
}

// days returns the mean number of days between two days with a fetch, from 1 to longestDays.
func (s Throttle) days(lane queue.Lane, pace queue.Pace) float64 {
	stage := stageAll
	if pace == queue.PaceSlow {
		stage = stageSlow
	}
	return 1 + (longestDays-1)*s.stage(stage, lane)
}

// fetches returns the mean number of fetches on such a day.
func (s Throttle) fetches(lane queue.Lane, pace queue.Pace) float64 {
	if pace != queue.PaceFast {
		return 1
	}
	return fastFetches - (fastFetches-1)*s.stage(stageFast, lane)
}

// PerDay returns how often a day a target is fetched.
func (s Throttle) PerDay(lane queue.Lane, pace queue.Pace) float64 {
	return s.fetches(lane, pace) / s.days(lane, pace)
}

// Group is the targets that are throttled together.
type Group struct {
	Platform link.Platform
	Kind     queue.Kind
}

// Need is what the targets of a group cost.
type Need struct {
	Group   Group
	Targets []queue.Demand
	// Counts and Details are the costs of fetching one target, without and with details, for each source in the order in which they
	// are asked: units by budget. Details are fetched once in detailsDays.
	Counts, Details []map[string]float64
}

// Fit returns the smallest throttle of each group with which the needs fit into the supply, which is units a day by budget. Groups that
// may spend from the same budget have the same throttle, so that lanes are throttled in their order across platforms.
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

// splitConnected returns the needs that share a budget with the first one, directly or through others, and the rest.
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

// sharesBudget returns true if both needs may spend from the same limited budget.
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

// fits returns true if the supply pays for a day's needs at a throttle.
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

// pay subtracts the cost of a number of fetches from the units that are left. It uses the costs in their order and returns false if the
// units are not enough.
func pay(fetches float64, costs []map[string]float64, left map[string]float64) bool {
	const nothing = 1e-6
	if len(costs) == 0 {
		return true // no source can be asked at all
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
