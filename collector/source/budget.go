package source

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Budget is the number of units that may be spent on calls in one window of time. What a unit is depends on the source.
type Budget struct {
	Name  string // name of the budget, unique within the source, such as "videos.list"
	Limit int64  // units in one window; 0 means that the limit is not known
	// Window returns the id of the window that contains now, and the end of that window. Windows follow the source's time zone. If Window is
	// nil, the spent units are not counted.
	Window func(now time.Time) (id string, ends time.Time)
}

// Call is a number of units of one budget that a request or a group of requests costs.
type Call struct {
	Bucket string // the Name of the Budget that pays for the call
	Units  int64
}

// ErrNoUnits is the cause of a failure whose request was not sent because the call budget has no unit left.
var ErrNoUnits = errors.New("no unit of the call budget is left")

// CallBudget has the units that one Fetch may spend, as reserved by the collector. All reserved units count as spent, unless the source
// meters its requests or calls SetSpent. A nil *CallBudget allows any number of free requests.
type CallBudget struct {
	calls    []Call
	meter    atomic.Int32 // metering mode: unmetered, limited or counted
	spent    atomic.Int64 // number of metered requests
	smallest int64        // smallest number of units among calls; the limit of metered requests, because each request takes one unit of every call
	setSpent []Call       // the units that were set by SetSpent
}

const (
	unmetered int32 = iota
	limited         // metered; requests beyond the reservation are refused
	counted         // metered; requests beyond the reservation are allowed
)

// NewCallBudget returns a budget with the units of the reserved calls.
func NewCallBudget(calls []Call) *CallBudget {
	b := &CallBudget{calls: slices.Clone(calls), smallest: math.MaxInt64}
	for _, call := range calls {
		b.smallest = min(b.smallest, call.Units)
	}
	return b
}

// Calls returns the reserved calls.
func (b *CallBudget) Calls() []Call { return slices.Clone(b.calls) }

// Meter makes every request cost one unit of each call. When no unit is left, Spend returns false.
func (b *CallBudget) Meter() { b.meter.Store(limited) }

// MeterWithoutLimit makes every request cost one unit of each call, like Meter, but Spend allows requests beyond the reservation. Sources
// use it if they cannot know their costs before the call.
func (b *CallBudget) MeterWithoutLimit() { b.meter.Store(counted) }

// SetSpent sets how many units of the budget named bucket were spent.
func (b *CallBudget) SetSpent(bucket string, units int64) {
	b.setSpent = append(b.setSpent, Call{bucket, units})
}

// Spend takes the units of one request, before the request is sent. It returns false if no unit is left. The request must then not be sent.
func (b *CallBudget) Spend() bool {
	if b == nil || b.meter.Load() == unmetered {
		return true
	}
	if n := b.spent.Add(1); n > b.smallest && b.meter.Load() == limited {
		b.spent.Add(-1)
		return false
	}
	return true
}

// Exhausted returns true if Spend would return false for the next request.
func (b *CallBudget) Exhausted() bool {
	return b != nil && b.meter.Load() == limited && b.spent.Load() >= b.smallest
}

// Spent returns the calls with the number of units that were spent, at most the reserved units.
func (b *CallBudget) Spent() []Call {
	spent := b.Calls()
	for i := range spent {
		if b.meter.Load() != unmetered {
			spent[i].Units = min(spent[i].Units, b.spent.Load())
		}
		for _, s := range b.setSpent {
			if s.Bucket == spent[i].Bucket {
				spent[i].Units = max(0, min(spent[i].Units, s.Units))
			}
		}
	}
	return spent
}
