package quota

import (
	"context"
	"errors"
	"time"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// longestDefer is the longest delay of a call if its budget has some units left, but too few. Other
// calls may return units before the budget's window ends.
const longestDefer = 15 * time.Minute

// reservation has the units that were taken from budgets for one fetch, with one element for each call.
type reservation []reserved

// reserved has the units that were taken for one call, and the budget from which they were taken.
type reserved struct {
	call    source.Call
	key     string // the key of the budget; "" if the budget is not counted
	window  string // the id of the window of time in which the units were taken
	limited bool   // true if the budget has a known limit
}

// reservedCalls returns the calls of a reservation. Call.Units is the number of reserved units, which can be smaller than the planned number.
func (r reservation) reservedCalls() []source.Call {
	calls := make([]source.Call, len(r))
	for i, p := range r {
		calls[i] = p.call
	}
	return calls
}

// reserveUnits reserves the units of the first plan (Source.Plan) that the budgets allow. If the source is paused or no plan
// is possible, the returned pause says when to try again.
func (q *Quota) reserveUnits(ctx context.Context, s source.Source, st state, batch []queue.Target) (taken reservation, pause *source.Failure, err error) {
	now := q.now()
	if pause = st.currentPause(s.Name(), now); pause != nil {
		return nil, pause, nil
	}
	for _, plan := range s.Plan(batch) {
		var longest *source.Failure // the longest pause among the budgets of this plan; nil if none of them is paused
		for _, call := range plan {
			if p := st.currentPause(BudgetKey(s, call.Budget), now); p != nil && (longest == nil || p.RetryAt.After(longest.RetryAt)) {
				longest = p
			}
		}
		if longest == nil {
			if taken, longest, err = q.reservePlan(ctx, s, plan); err != nil || longest == nil {
				return taken, nil, err
			}
		}
		if pause == nil || longest.RetryAt.Before(pause.RetryAt) {
			pause = longest
		}
	}
	if pause == nil { // Plan returned no plan, so the source must not be asked now
		pause = spentBudgetFailure(now.Add(schedule.Jitter(time.Second)))
	}
	return nil, pause, nil
}

// spentBudgetFailure returns the failure for a call that is not made, because its budget has too few units until the given time.
func spentBudgetFailure(t time.Time) *source.Failure {
	return &source.Failure{Class: source.QuotaSpent, Detail: "the budget, or the limit of the platform, has too little left for a call", RetryAt: t}
}

// reservePlan reserves the units of all calls of a plan, or nothing if a budget has too few units.
// The returned pause then says when to try again.
func (q *Quota) reservePlan(ctx context.Context, s source.Source, plan []source.Call) (taken reservation, pause *source.Failure, err error) {
	for _, call := range plan {
		r := reserved{call: call}
		if b := budgetOf(s, call.Budget); b.Window != nil {
			r, pause, err = q.takeUnits(ctx, BudgetKey(s, b.Name), b, call)
		}
		if err != nil || pause != nil {
			return nil, pause, errors.Join(err, q.returnUnits(ctx, taken, make([]source.Call, len(taken))))
		}
		taken = append(taken, r)
	}
	return taken, nil, nil
}

// takeUnits reserves the units of a call in the current window of a budget. If too few units are
// left, the returned pause says when to try again.
func (q *Quota) takeUnits(ctx context.Context, key string, b source.Budget, call source.Call) (r reserved, pause *source.Failure, err error) {
	now := q.now()
	window, ends := b.Window(now)
	if err := q.deleteOldWindows(ctx, key, window); err != nil {
		return r, nil, err
	}
	units, least, left := call.Units, call.Units, int64(0)
	// A call can need more units than the limit of its budget. Such a call may begin if half of the limit is
	// left.
	if b.Limit > 0 && units > b.Limit {
		units, least = b.Limit, (b.Limit+1)/2
	}
	for range 3 { // three attempts, because other collectors reserve and return units at the same time
		if ok, err := q.queue.ReserveUnits(ctx, key, window, units, b.Limit); err != nil {
			return r, nil, err
		} else if ok {
			if units < call.Units && q.isFirstWarning(key, window) {
				q.log.WarnContext(ctx, "a call can stop before it is complete, because it needs more units than the limit of its budget", "budget", key, "units", call.Units, "reserved", units, "limit", b.Limit)
			}
			return reserved{source.Call{Budget: call.Budget, Units: units}, key, window, b.Limit > 0}, nil, nil
		}
		used, err := q.queue.ReservedUnits(ctx, key, window)
		if err != nil {
			return r, nil, err
		}
		if left = max(0, b.Limit-used); left < least {
			break
		}
		units = min(units, left)
	}
	if left == 0 {
		q.log.WarnContext(ctx, "budget spent", "budget", key, "limit", b.Limit, "window", window, "until", ends)
		return r, spentBudgetFailure(ends), q.pauseSpentBudget(ctx, key, window, b.Limit, ends)
	}
	if q.isFirstWarning(key, window) {
		q.log.WarnContext(ctx, "a call waits because it needs more units than its budget has left", "budget", key, "units", call.Units, "left", left, "ends", ends)
	}
	if later := now.Add(schedule.Jitter(longestDefer)); later.Before(ends) {
		ends = later
	}
	return r, spentBudgetFailure(ends), nil
}

// isFirstWarning returns true at its first call for a window of a budget, and false at each later call for the same window. The key identifies
// the budget.
func (q *Quota) isFirstWarning(key, window string) bool {
	last, known := q.warned.Swap(key, window)
	return !known || last != window
}

// pauseSpentBudget pauses a spent budget until its window ends, unless units were returned in the meantime.
func (q *Quota) pauseSpentBudget(ctx context.Context, key, window string, limit int64, ends time.Time) error {
	f := spentBudgetFailure(ends)
	err := q.queue.PauseSource(ctx, queue.Pause{Source: key, Class: string(f.Class), Detail: f.Detail, BlockedUntil: store.InstantOf(ends)})
	if err != nil {
		return err
	}
	// Another collector may have returned units to the budget just before the pause was set. So end the pause
	// immediately if the budget has units again.
	if used, err := q.queue.ReservedUnits(ctx, key, window); err != nil || used >= limit {
		return err
	}
	return q.queue.EndBudgetPause(ctx, key)
}

// returnUnits gives the unspent units of a reservation back to their windows. spentCalls has the
// spent units of each call, in the order of the reservation.
func (q *Quota) returnUnits(ctx context.Context, r reservation, spentCalls []source.Call) error {
	var errs []error
	for i, p := range r {
		units := p.call.Units - spentCalls[i].Units
		if p.key == "" || units <= 0 {
			continue
		}
		err := q.queue.ReturnUnits(ctx, p.key, p.window, units)
		if err == nil && p.limited {
			err = q.queue.EndBudgetPause(ctx, p.key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteOldWindows deletes the counts of a budget's old windows when a new window begins. It keeps the previous window, because the clock of
// another collector can be slow.
func (q *Quota) deleteOldWindows(ctx context.Context, key, window string) error {
	last, _ := q.windows.Swap(key, window)
	if before, known := last.(string); known && before < window {
		return q.queue.DeleteOldWindows(ctx, key, before)
	}
	return nil
}

// budgetOf returns the source's budget with the given name. If the source has no such budget, budgetOf returns an empty budget, which has
// no window.
func budgetOf(s source.Source, name string) source.Budget {
	for _, b := range s.Budgets() {
		if b.Name == name {
			return b
		}
	}
	return source.Budget{}
}
