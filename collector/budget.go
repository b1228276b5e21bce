package collector

import (
	"context"
	"slices"

	"github.com/reeltally/reeltally/store"
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
	pauses, err := c.store.Pauses(ctx)
	if err != nil {
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

// reserve takes the cost of the first plan that the budgets allow, before anything is spent.
func (c *Collector) reserve(ctx context.Context, w way, batch []Target) (plan []Call, ok bool, err error) {
	for _, plan := range w.source.Plan(batch) {
		if !w.allows(plan) {
			continue
		}
		if ok, err := c.take(ctx, w, plan); ok || err != nil {
			return plan, ok, err
		}
	}
	return nil, false, nil
}

// take reserves all calls of a plan, or none.
func (c *Collector) take(ctx context.Context, w way, plan []Call) (bool, error) {
	now := c.now()
	for i, call := range plan {
		b := w.budget(call.Bucket)
		if b.Window == nil {
			continue
		}
		window, ends := b.Window(now)
		ok, err := c.store.ReserveQuota(ctx, bucketKey(w.source, b.Name), window, call.Units, b.Limit)
		if ok && err == nil {
			err = c.forget(ctx, bucketKey(w.source, b.Name), window)
		}
		if ok && err == nil {
			continue
		}
		for _, taken := range plan[:i] {
			if b := w.budget(taken.Bucket); b.Window != nil {
				window, _ := b.Window(now)
				if _, back := c.store.ReserveQuota(ctx, bucketKey(w.source, b.Name), window, -taken.Units, 0); back != nil {
					return false, back
				}
			}
		}
		if err != nil {
			return false, err
		}
		c.log.WarnContext(ctx, "budget spent", "source", w.source.Name(), "budget", b.Name, "limit", b.Limit, "window", window, "until", ends)
		return false, c.store.PauseSource(ctx, store.Pause{Source: bucketKey(w.source, b.Name), Class: string(QuotaSpent),
			Detail: "our own count has reached the limit", BlockedUntil: store.InstantOf(ends)})
	}
	return true, nil
}

// forget deletes the counts of windows before the last one, once a new one has begun: those of a minute would pile up. The last
// one stays for collectors whose clock is behind.
func (c *Collector) forget(ctx context.Context, budget, window string) error {
	last, _ := c.windows.Swap(budget, window)
	if before, known := last.(string); known && before < window {
		return c.store.ForgetQuota(ctx, budget, before)
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

// toleratedFailures is how many calls in a row may fail before the source as a whole is left alone for a while: one
// video that breaks its call must not stop the others.
const toleratedFailures = 3

// failed handles a call without an answer: the source, or one of its budgets, is paused for all collectors, and the
// targets go back unharmed, or with one more attempt where the fault may be theirs.
func (c *Collector) failed(ctx context.Context, w way, batch []store.Target, f *Failure) (answer, error) {
	now := c.now()
	a := answer{at: now}
	strikes := w.strikes[f.Bucket]
	until := now
	switch f.Class {
	case RateLimited:
		if until = f.RetryAt; !until.After(now) {
			until = now.Add(jitter(step(pauses, strikes)))
		}
		a.open = batch
	case QuotaSpent:
		// The source says when the budget returns; until then it is tried now and then, since operators buy more.
		if until = now.Add(step(probes, strikes)); f.RetryAt.After(now) && f.RetryAt.Before(until) {
			until = f.RetryAt
		}
		a.open = batch
	case AuthFailed:
		until = now.Add(step(probes, strikes))
		a.open = batch
	default:
		for _, t := range batch {
			a.failed = append(a.failed, c.outcome(t, Result{Class: f.Class, Detail: f.Detail}, w.source.Name(), now))
		}
		if strikes+1 >= toleratedFailures {
			until = now.Add(jitter(step(pauses, strikes+1-toleratedFailures)))
		}
	}
	attrs := []any{"source", w.source.Name(), "budget", f.Bucket, "class", f.Class, "detail", f.Detail, "targets", len(batch), "until", until.UTC()}
	if !f.RetryAt.IsZero() {
		attrs = append(attrs, "source_says", f.RetryAt.UTC())
	}
	c.log.WarnContext(ctx, "source failed", attrs...)
	return a, c.store.PauseSource(ctx, store.Pause{Source: bucketKey(w.source, f.Bucket), Class: string(f.Class), Detail: f.Detail,
		Strikes: strikes + 1, BlockedUntil: store.InstantOf(until)})
}

// answered notes that a source, and the buckets that a call was paid from, work again.
func (c *Collector) answered(ctx context.Context, w way, plan []Call) error {
	for bucket := range w.strikes {
		if bucket != "" && !slices.ContainsFunc(plan, func(call Call) bool { return call.Bucket == bucket }) {
			continue
		}
		c.log.InfoContext(ctx, "source answers again", "source", w.source.Name(), "budget", bucket)
		if err := c.store.ResumeSource(ctx, bucketKey(w.source, bucket)); err != nil {
			return err
		}
	}
	return nil
}

// resume forgets that credentials were refused: a collector that starts may have been given others.
func (c *Collector) resume(ctx context.Context) error {
	pauses, err := c.store.Pauses(ctx)
	if err != nil {
		return err
	}
	for _, s := range c.sources {
		if p, known := pauses[s.Name()]; known && p.Class == string(AuthFailed) {
			if err := c.store.ResumeSource(ctx, s.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
