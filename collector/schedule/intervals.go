package schedule

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store/queue"
)

// These are the default and the limits of the time between two fetches of a target.
const (
	// DefaultInterval is the time between two fetches of a target whose lane has no entry in Intervals.
	DefaultInterval = 24 * time.Hour
	// MinInterval is the shortest time between two fetches that ParseIntervals accepts.
	MinInterval = time.Hour
	// MaxInterval is the longest time between two fetches that ParseIntervals accepts.
	MaxInterval = longestDays * 24 * time.Hour
)

// Intervals maps a lane to the time between two fetches of a target. Targets whose views change fast
// can be fetched more often (see fetchesPerActiveDay).
type Intervals map[queue.Lane]time.Duration

// intervalOf returns the interval of a lane, or DefaultInterval if the lane has no entry. The interactive lane needs no entry, because a target
// leaves this lane after one fetch.
func (i Intervals) intervalOf(lane queue.Lane) time.Duration {
	if interval, ok := i[lane]; ok {
		return interval
	}
	return DefaultInterval
}

// tierLanes maps the tier names in the setting of the intervals to lanes. The lane of an organisation also depends on its subscription (see
// [queue.LaneOf]), so a name does not mean exactly the tier of this name. "limited" means organisations of any tier without a subscription. "basic"
// means organisations of the tiers limited and basic with a subscription. "premium" means organisations of the tier premium with a subscription.
var tierLanes = map[string]queue.Lane{"limited": queue.LaneFree, "basic": queue.LaneBasic, "premium": queue.LanePremium}

// ParseIntervals converts the intervals of tier names to Intervals (see tierLanes). It returns an error for an unknown name,
// and for an interval that is not from MinInterval to MaxInterval.
func ParseIntervals(ofTiers map[string]time.Duration) (Intervals, error) {
	out := Intervals{}
	for _, tier := range slices.Sorted(maps.Keys(ofTiers)) { // the tiers are sorted, so that the same intervals always give the same error
		lane, ok := tierLanes[tier]
		if !ok {
			return nil, fmt.Errorf("%q is not a tier: write TIER=DURATION, where TIER is limited, basic or premium", tier)
		}
		interval := ofTiers[tier]
		if interval < MinInterval || interval > MaxInterval {
			return nil, fmt.Errorf("%s is %s; it must be from 1h to 7d", tier, words.Duration(interval))
		}
		out[lane] = interval
	}
	return out, nil
}
