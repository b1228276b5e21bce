package collector

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// A claim's targets go from source to source until one has answered. Before each, they part (strands): nobody waits for another
// organisation's calls, but for a call that they share.

// errand is a target on this way, and what the sources that were asked have said.
type errand struct {
	target  queue.Target
	open    bool            // the next source is to be asked
	lacking *lacking        // a source has answered, and the next ones may complete it; it is not open
	failed  *ingest.Outcome // the last call for it failed
	refused *ingest.Outcome // the last source that answered can never answer for it
	later   time.Time       // a source waits until then for units of its budget; the zero time when none does
}

// refuse records that a source can never answer for the target. It keeps the handles that all sources have tried so far.
func (e *errand) refuse(o *ingest.Outcome) {
	if e.refused != nil {
		o.TriedHandles = append(o.TriedHandles, e.refused.TriedHandles...)
	}
	o.Target = e.target // with all handles, so that the next source can try them
	e.refused = o
}

// errands returns an open errand for each target.
func errands(targets []queue.Target) []errand {
	out := make([]errand, len(targets))
	for i, t := range targets {
		out[i] = errand{target: t, open: true}
	}
	return out
}

// strands splits errands into groups that are fetched together. Each waiting organisation has its own group. One more group has all other
// targets, and those that the next available source takes many at a time. Targets of urgent lanes and of small requests come first.
func (c *Collector) strands(ways ways, all []errand) [][]errand {
	count := map[uuid.UUID]int{}
	for _, e := range all {
		count[waits(e.target)]++
	}
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b errand) int {
		return cmp.Or(cmp.Compare(a.target.Lane, b.target.Lane), cmp.Compare(count[waits(a.target)], count[waits(b.target)]))
	})
	var order []uuid.UUID
	parts := map[uuid.UUID][]errand{}
	for _, e := range sorted {
		key := uuid.Nil
		if c.alone(ways, e.target) {
			key = waits(e.target)
		}
		if parts[key] == nil {
			order = append(order, key)
		}
		parts[key] = append(parts[key], e)
	}
	out := make([][]errand, len(order))
	for i, key := range order {
		out[i] = parts[key]
	}
	return out
}

// alone says whether the first source that can be asked for a target takes no others in the same call.
func (c *Collector) alone(ways ways, t queue.Target) bool {
	for _, w := range ways {
		if size, ok := w.source.Serves(ask(t, c.now())); ok {
			_, grouped := w.source.(Grouped)
			return grouped || size <= 1
		}
	}
	return true
}

// pursue has the sources asked in their order, and acknowledges each answer as it comes.
func (c *Collector) pursue(calls, writing context.Context, claim queue.Claim, ways ways, all []errand) error {
	if len(ways) == 0 {
		return c.settle(writing, claim, all)
	}
	strands := c.strands(ways, all)
	failures := make([]error, len(strands))
	var under sync.WaitGroup
	for i, strand := range strands {
		under.Go(func() {
			failures[i] = c.safely(writing, func() error {
				left, err := c.consult(calls, writing, claim, ways[0], ways[1:], strand)
				return errors.Join(err, c.pursue(calls, writing, claim, ways[1:], left))
			}, "task", "sources", "source", ways[0].source.Name())
		})
	}
	under.Wait()
	return errors.Join(failures...)
}

// consult asks one source, and returns the errands that are not done.
func (c *Collector) consult(calls, writing context.Context, claim queue.Claim, w way, behind ways, strand []errand) ([]errand, error) {
	var left []errand
	var wanted []queue.Target
	var unfinished []lacking
	asked := map[string]errand{}
	for _, e := range strand {
		_, serves := w.source.Serves(ask(e.target, c.now()))
		switch {
		case !serves || !e.open && e.lacking == nil:
			left = append(left, e)
		case e.open:
			wanted, asked[e.target.ExternalID] = append(wanted, e.target), e
		default:
			unfinished = append(unfinished, *e.lacking)
		}
	}
	var completing sync.WaitGroup
	var incomplete error
	completing.Go(func() {
		incomplete = c.safely(writing, func() error { return c.complete(calls, writing, claim, w, unfinished) }, "task", "details", "source", w.source.Name())
	})
	a, err := c.fetch(calls, writing, claim, w, behind, wanted)
	completing.Wait()

	for _, t := range a.open {
		e := asked[t.ExternalID]
		if later := a.later[t.ExternalID]; e.later.IsZero() || later.Before(e.later) && !later.IsZero() {
			e.later = later
		}
		left = append(left, e)
	}
	for _, l := range a.lacking {
		left = append(left, errand{target: l.outcome.Target, lacking: &l})
	}
	for _, o := range a.refused {
		e := asked[o.Target.ExternalID]
		o.HandleLost = o.HandleLost || e.refused != nil && e.refused.HandleLost
		e.refuse(&o)
		e.open = behind.batch(ask(e.target, c.now())) > 0
		left = append(left, e)
	}
	for _, o := range a.failed {
		e := asked[o.Target.ExternalID]
		if e.refused != nil {
			o.TriedHandles = append(o.TriedHandles, e.refused.TriedHandles...)
		}
		e.failed, e.open = &o, o.Target.Lane == queue.LaneInteractive // who waits is told what the next source knows
		left = append(left, e)
	}
	return left, errors.Join(err, incomplete)
}

// settle ends errands that no source is left for: what was said is written. What no source could be asked for now goes back.
func (c *Collector) settle(ctx context.Context, claim queue.Claim, all []errand) error {
	var unfinished []lacking
	var failed []ingest.Outcome
	var back []queue.Target
	later := map[time.Time][]queue.Target{}
	refused := map[string]ingest.Outcome{} // by external id
	for _, e := range all {
		switch id := e.target.ExternalID; {
		case e.lacking != nil:
			unfinished = append(unfinished, *e.lacking)
		case e.failed != nil:
			failed = append(failed, *e.failed)
		case !e.later.IsZero(): // one that waits for its budget may know what another refused
			later[e.later] = append(later[e.later], e.target)
		case e.open && c.served(e.target):
			back = append(back, e.target)
		case e.refused != nil:
			refused[id] = *e.refused
		default: // given back, it would be claimed again and again
			refused[id] = c.outcome(e.target, Result{Class: Unsupported, Detail: "no configured source can ask for it"}, "", c.now())
		}
	}
	errs := []error{c.write(ctx, claim, unfinished), c.awaitPaused(ctx, refused)}
	for _, o := range refused {
		failed = append(failed, o)
	}
	errs = append(errs, c.acknowledge(ctx, claim, failed))
	return errors.Join(append(errs, c.release(ctx, claim.Token, back, later))...)
}

// release ends the claim of targets that no source could be asked for: of some, until when they wait for a budget. The others are due
// again at once where a source may be asked for them now, else when the first pause ends: claimed again and again meanwhile, they would
// keep the database busy with nothing.
func (c *Collector) release(ctx context.Context, token uuid.UUID, targets []queue.Target, later map[time.Time][]queue.Target) error {
	if len(targets) > 0 {
		pauses, err := c.store.Queue.Pauses(ctx)
		if err != nil {
			return err
		}
		now := c.now()
		soon := now.Add(jitter(c.poll))
		for _, t := range targets {
			at := soon
			if until := c.askable(ask(t, now), pauses, store.InstantOf(now)); until.Time().After(soon) {
				at = until.Time()
			}
			later[at] = append(later[at], t)
		}
	}
	var errs []error
	for at, together := range later {
		errs = append(errs, c.store.Queue.Release(ctx, queue.Claim{Token: token, Targets: together}, at))
	}
	return errors.Join(errs...)
}

// pausedAtMost is for how long a pause is believed without another look: operators end some early.
const pausedAtMost = 5 * time.Minute

// askable is when a source may be asked for a target, at most pausedAtMost from now; now when one may be already.
func (c *Collector) askable(t Target, pauses map[string]queue.Pause, now store.Instant) store.Instant {
	soonest := now.Add(pausedAtMost)
	for _, s := range c.sources {
		if _, ok := s.Serves(t); !ok {
			continue
		}
		source := max(now, pauses[s.Name()].BlockedUntil)
		for _, plan := range s.Plan([]Target{t}) {
			until := source
			for _, call := range plan {
				until = max(until, pauses[bucketKey(s, call.Bucket)].BlockedUntil)
			}
			soonest = min(soonest, until)
		}
	}
	return soonest
}

// served says whether any source, paused or not, can ask for a target.
func (c *Collector) served(t queue.Target) bool {
	return slices.ContainsFunc(c.sources, func(s Source) bool {
		_, ok := s.Serves(ask(t, c.now()))
		return ok
	})
}

// awaitPaused lets what was refused, but could still be answered by a source that is paused, wait for that one.
func (c *Collector) awaitPaused(ctx context.Context, refused map[string]ingest.Outcome) error {
	if len(refused) == 0 {
		return nil
	}
	pauses, err := c.store.Queue.Pauses(ctx)
	if err != nil {
		return err
	}
	now := store.InstantOf(c.now())
	for id, o := range refused {
		for _, s := range c.sources {
			if _, ok := s.Serves(ask(o.Target, c.now())); !ok {
				continue
			}
			for _, bucket := range append([]string{""}, budgetNames(s)...) {
				if p, known := pauses[bucketKey(s, bucket)]; known && p.BlockedUntil > now {
					o.State, o.Attempts, o.NextAt = active, o.Target.Attempts, p.BlockedUntil
					o.RefusedAs, o.Refusals = o.Target.RefusedAs, o.Target.Refusals // it may be the other that knows
					o.Detail += "; " + s.Name() + " could be asked, but is paused"
					refused[id] = o
				}
			}
		}
	}
	return nil
}
