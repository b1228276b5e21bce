package source

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Budget is the number of units that may be spent on calls in one window of time. A source counts in its own units.
type Budget struct {
	Name  string // unique within the source, e.g. "videos.list"
	Limit int64  // units a window; 0 means no known limit
	// Window returns the id of the window that contains now, and when it ends, in the source's own time zone. If Window is nil, the
	// budget is not counted.
	Window func(now time.Time) (id string, ends time.Time)
}

// Call is the cost of calls that are paid from one budget.
type Call struct {
	Bucket string // the Name of a Budget
	Units  int64
}

// ErrNoUnits is the cause of a failure whose request was not sent because the call budget has no unit left.
var ErrNoUnits = errors.New("no unit of the call budget is left")

// CallBudget is what one Fetch may spend: the calls that the collector has reserved. Unless the source meters its requests or
// calls SetSpent, all reserved units count as spent. A nil *CallBudget pays for any number of requests that cost nothing.
type CallBudget struct {
	calls []Call
	meter atomic.Int32 // one of the modes below
	spent atomic.Int64 // metered requests
	most  int64        // the least units of calls: each request takes one of each
	set   []Call       // by SetSpent
}

const (
	unmetered int32 = iota
	limited         // requests beyond the reservation are refused
	counted         // requests beyond the reservation are allowed
)

// NewCallBudget returns a budget of the reserved calls.
func NewCallBudget(calls []Call) *CallBudget {
	b := &CallBudget{calls: slices.Clone(calls), most: math.MaxInt64}
	for _, call := range calls {
		b.most = min(b.most, call.Units)
	}
	return b
}

// Calls returns the reserved calls.
func (b *CallBudget) Calls() []Call { return slices.Clone(b.calls) }

// Meter makes every request cost one unit of each call. When no unit is left, Spend refuses further requests.
func (b *CallBudget) Meter() { b.meter.Store(limited) }

// MeterWithoutLimit is Meter for a source whose costs are not known beforehand: requests beyond the reservation are allowed.
func (b *CallBudget) MeterWithoutLimit() { b.meter.Store(counted) }

// SetSpent sets the units that were spent of a budget's calls.
func (b *CallBudget) SetSpent(bucket string, units int64) {
	b.set = append(b.set, Call{bucket, units})
}

// Spend pays for one request that is about to be sent. It returns false if no unit is left: the request must not be sent.
func (b *CallBudget) Spend() bool {
	if b == nil || b.meter.Load() == unmetered {
		return true
	}
	if n := b.spent.Add(1); n > b.most && b.meter.Load() == limited {
		b.spent.Add(-1)
		return false
	}
	return true
}

// Exhausted returns true if Spend would refuse the next request.
func (b *CallBudget) Exhausted() bool {
	return b != nil && b.meter.Load() == limited && b.spent.Load() >= b.most
}

// Spent returns the calls with the units that were spent, never more than reserved.
func (b *CallBudget) Spent() []Call {
	spent := b.Calls()
	for i := range spent {
		if b.meter.Load() != unmetered {
			spent[i].Units = min(spent[i].Units, b.spent.Load())
		}
		for _, s := range b.set {
			if s.Bucket == spent[i].Bucket {
				spent[i].Units = max(0, min(spent[i].Units, s.Units))
			}
		}
	}
	return spent
}
