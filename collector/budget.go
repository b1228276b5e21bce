package collector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// way is a source that may be asked now.
type way struct {
	source Source
	closed map[string]bool // its buckets that may not be spent from now
	// strikes are the pauses in a row of the source ("") and of its buckets; an entry says that a pause is on
	// record, though it may be over.
	strikes map[string]int
}

type ways []way

// bucketKey names a budget of a source in the database; "" is the source as a whole.
func bucketKey(s Source, bucket string) string {
	if bucket == "" {
		return s.Name()
	}
	return s.Name() + "/" + bucket
}

// open returns the sources that may be asked now, in order.
func (c *Collector) open(ctx context.Context) (ways, error) {
	pauses, err := c.store.Queue.Pauses(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.learnRefusals(ctx); err != nil {
		return nil, err
	}
	now := store.InstantOf(c.now())
	var open ways
	for _, s := range c.sources {
		w := way{source: s, closed: map[string]bool{}, strikes: map[string]int{}}
		for _, bucket := range append([]string{""}, budgetNames(s)...) {
			if p, known := pauses[bucketKey(s, bucket)]; known {
				w.strikes[bucket], w.closed[bucket] = p.Strikes, p.BlockedUntil > now
			}
		}
		if !w.closed[""] {
			open = append(open, w)
		}
	}
	return open, nil
}

func budgetNames(s Source) []string {
	names := make([]string, 0, 2)
	for _, b := range s.Budgets() {
		names = append(names, b.Name)
	}
	return names
}

// batch returns how many targets like t one call takes; 0 when no source could be asked for any. The source with the
// largest calls decides, since those before it may leave all to it.
func (ws ways) batch(t Target) int {
	size := 0
	for _, w := range ws {
		if batch, ok := w.source.Serves(t); ok && slices.ContainsFunc(w.source.Plan([]Target{t}), w.allows) {
			size = max(size, batch, 1)
		}
	}
	return size
}

// allows says whether none of a plan's buckets is closed.
func (w way) allows(plan []Call) bool {
	return !slices.ContainsFunc(plan, func(c Call) bool { return w.closed[c.Bucket] })
}

// putOffFor is how long a call waits at the most that is larger than what is left of a budget: others' reservations may return.
const putOffFor = 15 * time.Minute

// reservation is what was taken from the budgets for a call.
type reservation struct {
	parts []part
	// later is set where nothing was taken: a budget has units left, but not enough for this call before that time.
	later time.Time
}

// part is what was taken from one budget.
type part struct {
	call    Call
	key     string // of the budget; "" when it is not counted
	window  string
	limited bool
}

// plan is what the source may spend. It is the source's to change.
func (r reservation) plan() []Call {
	plan := make([]Call, len(r.parts))
	for i, p := range r.parts {
		plan[i] = p.call
	}
	return plan
}

// reserve takes the cost of the first plan that the budgets allow, before anything is spent.
func (c *Collector) reserve(ctx context.Context, w way, batch []Target) (r reservation, ok bool, err error) {
	var later time.Time
	for _, plan := range w.source.Plan(batch) {
		if !w.allows(plan) {
			continue
		}
		if r, ok, err = c.take(ctx, w, plan); ok || err != nil {
			return r, ok, err
		}
		if later.IsZero() || !r.later.IsZero() && r.later.Before(later) {
			later = r.later
		}
	}
	return reservation{later: later}, false, nil
}

// take reserves all calls of a plan, or none. A budget without a unit left is paused; one that has too few for this plan is
// left to smaller ones.
func (c *Collector) take(ctx context.Context, w way, plan []Call) (r reservation, ok bool, err error) {
	now := c.now()
	for _, call := range plan {
		b := w.budget(call.Bucket)
		if b.Window == nil {
			r.parts = append(r.parts, part{call: call})
			continue
		}
		key := bucketKey(w.source, b.Name)
		window, ends := b.Window(now)
		units, left, err := c.takeUnits(ctx, key, window, call.Units, b.Limit)
		if err != nil {
			return reservation{}, false, errors.Join(err, c.giveBack(ctx, r))
		}
		if left == enough {
			r.parts = append(r.parts, part{Call{call.Bucket, units}, key, window, b.Limit > 0})
			if units < call.Units && c.saysOnce(key, window) {
				c.log.WarnContext(ctx, "a call is larger than its budget, and may end early", "budget", key, "units", call.Units, "taken", units, "limit", b.Limit)
			}
			if err := c.forget(ctx, key, window); err != nil {
				return reservation{}, false, errors.Join(err, c.giveBack(ctx, r))
			}
			continue
		}
		if err := c.giveBack(ctx, r); err != nil {
			return reservation{}, false, err
		}
		if left > 0 {
			return reservation{later: c.tooLarge(ctx, key, window, ends, call.Units, left)}, false, nil
		}
		c.log.WarnContext(ctx, "budget spent", "source", w.source.Name(), "budget", b.Name, "limit", b.Limit, "window", window, "until", ends)
		return reservation{}, false, c.pauseSpent(ctx, key, window, b.Limit, ends)
	}
	return r, true, nil
}

// enough is what takeUnits has left when it has taken units.
const enough = -1

// takeUnits reserves units, or says how many are left when these are too few. More than the limit can never be had: who wants that
// much takes what is left, if that is half of the limit, since the first of a window would always be another.
func (c *Collector) takeUnits(ctx context.Context, key, window string, units, limit int64) (taken, left int64, err error) {
	least := units
	if limit > 0 && units > limit {
		units, least = limit, (limit+1)/2
	}
	for range 3 { // others take and give back meanwhile
		if ok, err := c.store.Queue.ReserveQuota(ctx, key, window, units, limit); ok || err != nil {
			return units, enough, err
		}
		used, err := c.store.Queue.QuotaUsed(ctx, key, window)
		if err != nil {
			return 0, 0, err
		}
		if left = max(0, limit-used); left < least {
			break
		}
		units = min(units, left)
	}
	return 0, left, nil
}

// saysOnce is true once in each window of a budget.
func (c *Collector) saysOnce(key, window string) bool {
	last, said := c.large.Swap(key, window)
	return !said || last != window
}

// tooLarge says, once a window, that a call wants more than is left, and returns until when it waits.
func (c *Collector) tooLarge(ctx context.Context, key, window string, ends time.Time, units, left int64) time.Time {
	if c.saysOnce(key, window) {
		c.log.WarnContext(ctx, "a call is larger than what is left of its budget, and waits", "budget", key, "units", units, "left", left, "window", window, "ends", ends)
	}
	if later := c.now().Add(jitter(putOffFor)); later.Before(ends) {
		return later
	}
	return ends
}

// putOff has what could not be asked for wait until then; the zero time is none.
func (a *answer) putOff(later time.Time) {
	if a.later = map[string]time.Time{}; later.IsZero() {
		return
	}
	for _, t := range a.open {
		a.later[t.ExternalID] = later
	}
}

// pauseSpent pauses a budget of which nothing is left until its window ends, unless units came back meanwhile.
func (c *Collector) pauseSpent(ctx context.Context, key, window string, limit int64, ends time.Time) error {
	err := c.store.Queue.PauseSource(ctx, queue.Pause{Source: key, Class: string(QuotaSpent),
		Detail: "our own count has reached the limit", BlockedUntil: store.InstantOf(ends)})
	if err != nil {
		return err
	}
	// Who gives back first returns the units and then lifts the pause, so that one of the two sees the other.
	if used, err := c.store.Queue.QuotaUsed(ctx, key, window); err != nil || used >= limit {
		return err
	}
	return c.store.Queue.LiftPause(ctx, key)
}

// spend has a source asked, and gives back what it did not spend of its reservation, also when it failed.
func (c *Collector) spend(ctx context.Context, w way, batch []Target, r reservation) ([]Result, error) {
	plan := r.plan()
	results, err := w.source.Fetch(ctx, batch, plan)
	rest := reservation{parts: slices.Clone(r.parts)}
	for i := range rest.parts {
		reserved := r.parts[i].call.Units
		rest.parts[i].call.Units = reserved - min(max(plan[i].Units, 0), reserved)
	}
	writing := context.WithoutCancel(ctx)
	if lost := c.giveBack(writing, rest); lost != nil { // which is no reason to lose the answer
		c.log.ErrorContext(writing, "units of a budget not given back", "source", w.source.Name(), "error", lost)
	}
	return results, err
}

// giveBack returns units to the windows that they came from.
func (c *Collector) giveBack(ctx context.Context, r reservation) error {
	var errs []error
	for _, p := range r.parts {
		if p.key == "" || p.call.Units <= 0 {
			continue
		}
		err := c.store.Queue.ReturnQuota(ctx, p.key, p.window, p.call.Units)
		if err == nil && p.limited {
			err = c.store.Queue.LiftPause(ctx, p.key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// forget deletes the counts of windows before the last one, once a new one has begun: those of a minute would pile up. The last
// one stays for collectors whose clock is behind.
func (c *Collector) forget(ctx context.Context, budget, window string) error {
	last, _ := c.windows.Swap(budget, window)
	if before, known := last.(string); known && before < window {
		return c.store.Queue.ForgetQuota(ctx, budget, before)
	}
	return nil
}

func (w way) budget(name string) Budget {
	for _, b := range w.source.Budgets() {
		if b.Name == name {
			return b
		}
	}
	return Budget{}
}

// answered notes that a source, and the buckets that a call was paid from, work again: a call that began at that time was answered.
func (c *Collector) answered(ctx context.Context, w way, r reservation, began time.Time) error {
	errs := []error{c.forgetRefusals(ctx, w.source.Name())}
	for _, p := range r.parts {
		errs = append(errs, c.forgetRefusals(ctx, bucketKey(w.source, p.call.Bucket)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for bucket := range w.strikes {
		if bucket != "" && !slices.ContainsFunc(r.parts, func(p part) bool { return p.call.Bucket == bucket }) {
			continue
		}
		resumed, err := c.store.Queue.ResumeSource(ctx, bucketKey(w.source, bucket), store.InstantOf(began))
		if err != nil {
			return err
		}
		if resumed {
			c.log.InfoContext(ctx, "source answers again", "source", w.source.Name(), "budget", bucket)
		}
	}
	return nil
}

// resume forgets that credentials were refused: a collector that starts may have been given others.
func (c *Collector) resume(ctx context.Context) error {
	pauses, err := c.store.Queue.Pauses(ctx)
	if err != nil {
		return err
	}
	for _, s := range c.sources {
		if err := c.store.Queue.ForgetRefusals(ctx, s.Name()); err != nil {
			return err
		}
		if p, known := pauses[s.Name()]; known && p.Class == string(AuthFailed) {
			if _, err := c.store.Queue.ResumeSource(ctx, s.Name(), p.BlockedUntil); err != nil {
				return err
			}
		}
	}
	return nil
}
