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
	// Window returns the id and the end of the current window. If Window is nil, the spent units are
	// not counted.
	Window func(now time.Time) (id string, ends time.Time)
}

// LimitOf returns the Limit of a Budget for a configured limit. If the configured limit is 0, LimitOf returns defaultLimit. If the configured limit is
// negative, LimitOf returns 0, which means that the limit is not known.
func LimitOf(configured, defaultLimit int64) int64 {
	switch {
	case configured == 0:
		return defaultLimit
	case configured < 0:
		return 0
	}
	return configured
}

// Call says how many units are taken from one budget. The units can be for several requests.
type Call struct {
	Budget string // name of the budget from which the units are taken
	Units  int64  // in a result of Source.Plan: the largest number of units that Fetch would spend
}

// ErrNoUnits is the cause of a Failure if a request was not sent because no unit of the CallBudget was left.
var ErrNoUnits = errors.New("no unit of the call budget is left")

// CallBudget has the units that are reserved for one call of Source.Fetch. A nil *CallBudget allows any
// number of requests and counts none.
type CallBudget struct {
	calls    []Call
	mode     atomic.Int32 // limited, unlimited or spentFully
	spent    atomic.Int64 // number of requests
	smallest int64        // maximum number of requests: each request takes one unit of every budget, so the budget with the fewest units decides
}

const (
	limited    int32 = iota // each request takes a unit; Spend returns false after the reserved units are spent
	unlimited               // each request takes a unit; Spend always returns true
	spentFully              // all reserved units count as spent; Spend always returns true
)

// NewCallBudget returns a CallBudget with the units that were reserved for the given calls.
func NewCallBudget(calls []Call) *CallBudget {
	b := &CallBudget{calls: slices.Clone(calls), smallest: math.MaxInt64}
	for _, call := range calls {
		b.smallest = min(b.smallest, call.Units)
	}
	return b
}

// Calls returns a copy of the calls whose units are reserved.
func (b *CallBudget) Calls() []Call { return slices.Clone(b.calls) }

// AllowMoreRequests makes Spend always return true. It is for sources that do not know in advance how many requests they will send.
func (b *CallBudget) AllowMoreRequests() { b.mode.Store(unlimited) }

// SpendAll makes all reserved units count as spent, and Spend always return true. It is for sources whose units are not requests.
func (b *CallBudget) SpendAll() { b.mode.Store(spentFully) }

// Spend must be called before each request. It takes one reserved unit from each budget. If it returns false, a budget has no unit left and the
// request must not be sent.
func (b *CallBudget) Spend() bool {
	if b == nil {
		return true
	}
	if n := b.spent.Add(1); n > b.smallest && b.mode.Load() == limited {
		b.spent.Add(-1)
		return false
	}
	return true
}

// Exhausted returns true if Spend would return false for the next request.
func (b *CallBudget) Exhausted() bool {
	return b != nil && b.mode.Load() == limited && b.spent.Load() >= b.smallest
}

// EndedEarly returns true if the call has spent all its units, and a later call can get more units. It returns false if the full limit of one
// of the source's budgets was reserved, because no call can get more.
func (b *CallBudget) EndedEarly(budgets []Budget) bool {
	return b.Exhausted() && !slices.ContainsFunc(budgets, func(l Budget) bool {
		return l.Limit == b.smallest && slices.Contains(b.calls, Call{l.Name, l.Limit})
	})
}

// Spent returns a copy of the calls with the spent units instead of the reserved units. A call never has more spent units than reserved
// units.
func (b *CallBudget) Spent() []Call {
	spent := b.Calls()
	if b.mode.Load() == spentFully {
		return spent
	}
	for i := range spent {
		spent[i].Units = min(spent[i].Units, b.spent.Load())
	}
	return spent
}
