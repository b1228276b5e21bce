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

// longestDefer is the longest time that a call waits if it needs more units than are left: other calls may return units.
const longestDefer = 15 * time.Minute

// reservation is the units that were taken from the budgets for a call.
type reservation []reserved

// reserved is the units that were taken from one budget.
type reserved struct {
	call    source.Call
	key     string // of the budget; "" if it is not counted
	window  string
	limited bool
}

func (r reservation) calls() []source.Call {
	calls := make([]source.Call, len(r))
	for i, p := range r {
		calls[i] = p.call
	}
	return calls
}

// reserve takes the units of the first plan that is possible. If none is, until is when the source may be asked.
func (q *Quota) reserve(ctx context.Context, s source.Source, st state, batch []source.Target) (taken reservation, until time.Time, err error) {
	now := q.now()
	if until = st.pausedUntil("", now); !until.IsZero() {
		return nil, until, nil
	}
	for _, plan := range s.Plan(batch) {
		var wait time.Time
		for _, call := range plan {
			if end := st.pausedUntil(call.Bucket, now); end.After(wait) {
				wait = end
			}
		}
		if wait.IsZero() {
			if taken, wait, err = q.take(ctx, s, plan); err != nil || wait.IsZero() {
				return taken, time.Time{}, err
			}
		}
		if until.IsZero() || wait.Before(until) {
			until = wait
		}
	}
	if until.IsZero() { // the source has no plan: it spreads its calls
		until = now.Add(schedule.Jitter(time.Second))
	}
	return nil, until, nil
}

// take reserves all calls of a plan, or none. In the second case it returns when to try again, and pauses a budget that has no unit
// left.
func (q *Quota) take(ctx context.Context, s source.Source, plan []source.Call) (taken reservation, wait time.Time, err error) {
	now := q.now()
	for _, call := range plan {
		b := budgetOf(s, call.Bucket)
		if b.Window == nil {
			taken = append(taken, reserved{call: call})
			continue
		}
		key := Key(s, b.Name)
		window, ends := b.Window(now)
		units, left, err := q.takeUnits(ctx, key, window, call.Units, b.Limit)
		if err == nil && left == 0 {
			taken = append(taken, reserved{source.Call{Bucket: call.Bucket, Units: units}, key, window, b.Limit > 0})
			if units < call.Units && q.firstWarning(key, window) {
				q.log.WarnContext(ctx, "a call needs more units than its budget has and may end early", "budget", key, "units", call.Units, "reserved", units, "limit", b.Limit)
			}
			err = q.forgetWindows(ctx, key, window)
		}
		if err == nil && left == 0 {
			continue
		}
		if err := errors.Join(err, q.giveBack(ctx, taken)); err != nil {
			return nil, time.Time{}, err
		}
		if left > 0 {
			if q.firstWarning(key, window) {
				q.log.WarnContext(ctx, "a call waits because it needs more units than its budget has left", "budget", key, "units", call.Units, "left", left, "ends", ends)
			}
			if later := now.Add(schedule.Jitter(longestDefer)); later.Before(ends) {
				return nil, later, nil
			}
			return nil, ends, nil
		}
		q.log.WarnContext(ctx, "budget spent", "source", s.Name(), "budget", b.Name, "limit", b.Limit, "window", window, "until", ends)
		return nil, ends, q.pauseSpent(ctx, key, window, b.Limit, ends)
	}
	return taken, time.Time{}, nil
}

// nothingLeft is what takeUnits returns as left if the budget is spent.
const nothingLeft = -1

// takeUnits reserves units of a budget. left is 0 if it reserved any; otherwise it is the number of units that are left, which are too
// few, or nothingLeft. A call that needs more than the limit gets what is left if that is at least half of the limit: otherwise it could
// never be made.
func (q *Quota) takeUnits(ctx context.Context, key, window string, units, limit int64) (taken, left int64, err error) {
	least := units
	if limit > 0 && units > limit {
		units, least = limit, (limit+1)/2
	}
	for range 3 { // other collectors reserve and return units at the same time
		if ok, err := q.queue.ReserveQuota(ctx, key, window, units, limit); ok || err != nil {
			return units, 0, err
		}
		used, err := q.queue.QuotaUsed(ctx, key, window)
		if err != nil {
			return 0, 0, err
		}
		if left = max(0, limit-used); left < least {
			break
		}
		units = min(units, left)
	}
	if left == 0 {
		left = nothingLeft
	}
	return 0, left, nil
}

// firstWarning returns true once in each window of a budget.
func (q *Quota) firstWarning(key, window string) bool {
	last, known := q.warned.Swap(key, window)
	return !known || last != window
}

// pauseSpent pauses a spent budget until its window ends, unless units were returned in the meantime.
func (q *Quota) pauseSpent(ctx context.Context, key, window string, limit int64, ends time.Time) error {
	err := q.queue.PauseSource(ctx, queue.Pause{Source: key, Class: string(source.QuotaSpent),
		Detail: "our own count has reached the limit", BlockedUntil: store.InstantOf(ends)})
	if err != nil {
		return err
	}
	// giveBack returns units first and then lifts the pause, so one of the two sees the other.
	if used, err := q.queue.QuotaUsed(ctx, key, window); err != nil || used >= limit {
		return err
	}
	return q.queue.LiftPause(ctx, key)
}

// refund returns the reserved units that were not spent. An error is logged only, because the answer must not be lost.
func (q *Quota) refund(ctx context.Context, s source.Source, taken reservation, spent []source.Call) {
	rest := make(reservation, len(taken))
	for i, p := range taken {
		rest[i] = p
		rest[i].call.Units = p.call.Units - spent[i].Units
	}
	if err := q.giveBack(ctx, rest); err != nil {
		q.log.ErrorContext(ctx, "units of a budget were not returned", "source", s.Name(), "error", err)
	}
}

// giveBack returns units to the windows from which they were taken.
func (q *Quota) giveBack(ctx context.Context, r reservation) error {
	var errs []error
	for _, p := range r {
		if p.key == "" || p.call.Units <= 0 {
			continue
		}
		err := q.queue.ReturnQuota(ctx, p.key, p.window, p.call.Units)
		if err == nil && p.limited {
			err = q.queue.LiftPause(ctx, p.key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// forgetWindows deletes the counts of windows before the last one, once a new one has begun. The last one stays for collectors whose
// clock is late.
func (q *Quota) forgetWindows(ctx context.Context, key, window string) error {
	last, _ := q.windows.Swap(key, window)
	if before, known := last.(string); known && before < window {
		return q.queue.ForgetQuota(ctx, key, before)
	}
	return nil
}

func budgetOf(s source.Source, name string) source.Budget {
	for _, b := range s.Budgets() {
		if b.Name == name {
			return b
		}
	}
	return source.Budget{}
}
