package schedule

import (
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Throttle is how strongly the number of fetches is reduced because the budgets are too small. It
// ranges from 0 (no reduction) to MaxThrottle.
type Throttle float64

// throttledLanes are the lanes in the order in which they are throttled, one after the other.
var throttledLanes = []queue.Lane{queue.LaneFree, queue.LaneBasic, queue.LanePremium}

// These are the stages in which a lane is throttled, in this order.
const (
	stageSlow = iota // fewer active days for targets with the pace "slow", down to one a week
	stageFast        // fewer fetches for targets with several fetches a day, down to one a day
	stageAll         // fewer fetches for all targets, down to one a week
	stages
)

// MaxThrottle is the largest Throttle. All targets are then fetched once a week.
var MaxThrottle = Throttle(stages * len(throttledLanes))

// throttleStep is the precision of FindSmallestThrottles: the throttles that it returns are multiples of throttleStep.
const throttleStep Throttle = 1.0 / 256

// strengthOfStage returns how strongly a stage of throttling reduces the fetches of a lane, from 0 (not at all) to 1 (completely).
func (s Throttle) strengthOfStage(stage int, lane queue.Lane) float64 {
	at := slices.Index(throttledLanes, lane)
	if at < 0 {
		at = len(throttledLanes) - 1 // the interactive lane is not listed and is throttled like the premium lane
	}
	return min(1, max(0, float64(s)-float64(at*stages+stage)))
}

// Plan has the settings that decide how often targets are fetched.
type Plan struct {
	Intervals Intervals // the intervals that apply without a throttle
	Throttle  Throttle
}

// activeDayInterval returns the mean distance between two active days of a target, in days. An active
// day is a day with at least one fetch.
func (p Plan) activeDayInterval(lane queue.Lane, pace queue.Pace) float64 {
	stage := stageAll
	if pace == queue.PaceSlow {
		stage = stageSlow
	}
	usual := max(1, p.Intervals.intervalOf(lane).Hours()/24)
	return usual + (longestDays-usual)*p.Throttle.strengthOfStage(stage, lane)
}

// fetchesPerActiveDay returns the mean number of fetches on an active day, which is a day with at least one fetch of the target.
func (p Plan) fetchesPerActiveDay(lane queue.Lane, pace queue.Pace) float64 {
	interval := p.Intervals.intervalOf(lane)
	usual := max(1, 24/interval.Hours())
	// Fast targets are fetched at least fastFetches times a day if their interval is at most a day.
	if pace == queue.PaceFast && interval <= DefaultInterval {
		usual = max(usual, fastFetches)
	}
	return usual - (usual-1)*p.Throttle.strengthOfStage(stageFast, lane)
}

// FetchesPerDay returns the mean number of fetches per day of a target with the given lane (its priority) and pace (how fast its views change).
func (p Plan) FetchesPerDay(lane queue.Lane, pace queue.Pace) float64 {
	return p.fetchesPerActiveDay(lane, pace) / p.activeDayInterval(lane, pace)
}

// Group identifies a set of targets that have the same throttle: the videos or the accounts of one platform.
type Group struct {
	Platform link.Platform
	Kind     queue.Kind
}

// Need has the number of targets of a group and the cost of fetching one target.
type Need struct {
	Group   Group
	Targets []queue.Demand
	// "Counts" has the possible costs of a fetch without details, and "Details" the costs with details.
	// The preferred cost comes first. A cost maps budget keys to units.
	Counts, Details []map[string]float64
}

// FindSmallestThrottles returns for each group the smallest throttle with which the budgets are enough,
// or MaxThrottle. availableUnits maps budget keys to units per day.
func FindSmallestThrottles(needs []Need, availableUnits map[string]float64, intervals Intervals) map[Group]Throttle {
	throttles := make(map[Group]Throttle, len(needs))
	for len(needs) > 0 {
		// Groups that share budgets get the same throttle. So the free lane is slowed down in all of them
		// before any other lane is.
		pool, rest := separateNeedsByBudget(needs, availableUnits)
		smallest := sort.Search(int(MaxThrottle/throttleStep), func(n int) bool {
			return supplySuffices(pool, availableUnits, Plan{intervals, Throttle(n) * throttleStep})
		})
		for _, n := range pool {
			throttles[n.Group] = Throttle(smallest) * throttleStep
		}
		needs = rest
	}
	return throttles
}

// separateNeedsByBudget divides the needs into two lists. "connected" has needs[0], all needs that share a
// budget with it, all needs that share a budget with these, and so on. "others" has the rest.
func separateNeedsByBudget(needs []Need, supply map[string]float64) (connected, others []Need) {
	connected, others = needs[:1:1], needs[1:]
	for at := 0; at < len(connected); at++ {
		var unconnected []Need
		for _, n := range others {
			if connected[at].sharesBudget(n, supply) {
				connected = append(connected, n)
			} else {
				unconnected = append(unconnected, n)
			}
		}
		others = unconnected
	}
	return connected, others
}

// sharesBudget returns true if the fetches for both needs can spend units of the same limited budget.
func (n Need) sharesBudget(other Need, supply map[string]float64) bool {
	for budget := range supply {
		spends := func(n Need) bool {
			return slices.ContainsFunc(slices.Concat(n.Counts, n.Details), func(cost map[string]float64) bool { return cost[budget] > 0 })
		}
		if spends(n) && spends(other) {
			return true
		}
	}
	return false
}

// supplySuffices returns true if the supply of units is enough for all fetches of one day under the given plan.
func supplySuffices(pool []Need, supply map[string]float64, p Plan) bool {
	left := make(map[string]float64, len(supply))
	maps.Copy(left, supply)
	for _, n := range pool {
		var counts, details float64
		for _, d := range n.Targets {
			fetches := float64(d.Targets) * p.FetchesPerDay(d.Lane, d.Pace)
			detailed := min(fetches, float64(d.Targets)/detailsDays)
			counts, details = counts+fetches-detailed, details+detailed
		}
		if !subtractCost(details, n.Details, left) || !subtractCost(counts, n.Counts, left) {
			return false
		}
	}
	return true
}

// subtractCost subtracts the units for a number of fetches from the available units. It returns false
// if the units are not enough for all fetches.
func subtractCost(fetches float64, costs []map[string]float64, available map[string]float64) bool {
	const nothing = 1e-6
	if len(costs) == 0 {
		return true // no source serves the targets, so their fetches spend no units
	}
	for _, cost := range costs {
		// The costs are those of different sources. As many fetches as possible spend the first cost, and the
		// other fetches spend the next costs.
		most := math.Inf(1)
		for budget, units := range cost {
			if have, limited := available[budget]; limited && units > 0 {
				most = min(most, have/units)
			}
		}
		paid := min(fetches, most)
		for budget, units := range cost {
			if _, limited := available[budget]; limited {
				available[budget] -= paid * units
			}
		}
		if fetches -= paid; fetches <= nothing {
			return true
		}
	}
	return false
}
