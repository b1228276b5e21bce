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

// longestDefer is the longest time for which a call is deferred because its budget has too few units left. Other calls can return unused
// units in the meantime.
const longestDefer = 15 * time.Minute

// reservation is a list of the units that were taken from budgets for one call.
type reservation []reserved

// reserved describes the units that were taken from one budget for one call.
type reserved struct {
	call    source.Call
	key     string // the key of the budget; "" if the budget is not counted
	window  string
	limited bool
}

// calls returns the calls of a reservation, with the reserved units.
func (r reservation) calls() []source.Call {
	calls := make([]source.Call, len(r))
	for i, p := range r {
		calls[i] = p.call
	}
	return calls
}

// reserve takes the units of the first plan that the budgets allow. If they allow no plan, until is the time at which the source may be
// asked again.
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
	if until.IsZero() { // no plan was returned: the source delays its calls to spread them over the window
		until = now.Add(schedule.Jitter(time.Second))
	}
	return nil, until, nil
}

// take reserves all calls of a plan, or none. If it reserves none, it returns how long to wait before the next try. It pauses each budget
// that has no unit left.
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
			err = q.deleteOldWindows(ctx, key, window)
		}
		if err == nil && left == 0 {
			continue
		}
		if err := errors.Join(err, q.returnUnits(ctx, taken)); err != nil {
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

// nothingLeft is the value of left with which takeUnits says that a budget has no unit left.
const nothingLeft = -1

// takeUnits reserves units of a budget. left is 0 if it reserved units. Otherwise left is the number of available units, which is too
// small, or nothingLeft. A call that needs more units than the limit of the whole window gets the available units, if these are at least
// half of the limit. Otherwise such a call could never be made.
func (q *Quota) takeUnits(ctx context.Context, key, window string, units, limit int64) (taken, left int64, err error) {
	least := units
	if limit > 0 && units > limit {
		units, least = limit, (limit+1)/2
	}
	for range 3 { // retried because other collectors reserve and return units at the same time
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
		Detail: "all units of the budget are spent, by the count of the collectors", BlockedUntil: store.InstantOf(ends)})
	if err != nil {
		return err
	}
	// Another collector may have returned units just before the pause was set. So the used units are read again after the pause was set, and
	// the pause is lifted if units are left.
	if used, err := q.queue.QuotaUsed(ctx, key, window); err != nil || used >= limit {
		return err
	}
	return q.queue.LiftPause(ctx, key)
}

// refund returns the reserved units that were not spent to their budgets. It only logs an error, so that the caller can still store the
// answer.
func (q *Quota) refund(ctx context.Context, s source.Source, taken reservation, spent []source.Call) {
	rest := make(reservation, len(taken))
	for i, p := range taken {
		rest[i] = p
		rest[i].call.Units = p.call.Units - spent[i].Units
	}
	if err := q.returnUnits(ctx, rest); err != nil {
		q.log.ErrorContext(ctx, "cannot return unused units to a budget", "source", s.Name(), "error", err)
	}
}

// returnUnits returns the units of a reservation to the windows from which they were taken.
func (q *Quota) returnUnits(ctx context.Context, r reservation) error {
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

// deleteOldWindows deletes the counts of old windows when a new window has begun. It does not delete the previous window, because another
// collector's clock can be late.
func (q *Quota) deleteOldWindows(ctx context.Context, key, window string) error {
	last, _ := q.windows.Swap(key, window)
	if before, known := last.(string); known && before < window {
		return q.queue.ForgetQuota(ctx, key, before)
	}
	return nil
}

// budgetOf returns the budget of a source by its name. It returns an empty budget, which has no window, if the source has no such budget.
func budgetOf(s source.Source, name string) source.Budget {
	for _, b := range s.Budgets() {
		if b.Name == name {
			return b
		}
	}
	return source.Budget{}
}
