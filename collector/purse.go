package collector

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
)

// ErrUnpaid is the cause of a failure whose call was not made: Paying has no unit left for it.
var ErrUnpaid = errors.New("no unit is left of the plan")

// purse counts the calls of one Fetch. What makes the calls pays from it, so that no source can forget one.
type purse struct {
	spent atomic.Int64
	most  int64
}

type purseKey struct{}

// Paying has every call that is made with the context it returns paid from plan, each one unit of every budget: once these are used
// up, no call is made. settle lowers plan to what was spent.
func Paying(ctx context.Context, plan []Call) (paying context.Context, settle func()) {
	most := int64(math.MaxInt64)
	for _, call := range plan {
		most = min(most, call.Units)
	}
	return withPurse(ctx, plan, most)
}

// Counting is Paying for a source whose limits nobody knows beforehand: calls beyond the plan are made.
func Counting(ctx context.Context, plan []Call) (counting context.Context, settle func()) {
	return withPurse(ctx, plan, math.MaxInt64)
}

// Unpaid is for calls that cost nothing, such as for a token.
func Unpaid(ctx context.Context) context.Context {
	return context.WithValue(ctx, purseKey{}, (*purse)(nil))
}

func withPurse(ctx context.Context, plan []Call, most int64) (context.Context, func()) {
	p := &purse{most: most}
	return context.WithValue(ctx, purseKey{}, p), func() {
		for i := range plan {
			plan[i].Units = min(plan[i].Units, p.spent.Load())
		}
	}
}

func purseOf(ctx context.Context) *purse {
	p, _ := ctx.Value(purseKey{}).(*purse)
	return p
}

// Pay pays for a call that is about to be made, and says whether it may be.
func Pay(ctx context.Context) bool {
	p := purseOf(ctx)
	if p == nil {
		return true
	}
	if p.spent.Add(1) > p.most {
		p.spent.Add(-1)
		return false
	}
	return true
}

// SpentUp says whether no further call would be paid for: a list ends there.
func SpentUp(ctx context.Context) bool {
	p := purseOf(ctx)
	return p != nil && p.spent.Load() >= p.most
}
