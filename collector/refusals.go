package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/reeltally/reeltally/store"
)

// A failed call may be the trouble of its target alone: an age-restricted video that a vendor answers with 403, a page that a
// token may not read. So a failure pauses its source only in two cases:
//
//   - its answer says that it concerns the credential, the quota or a limit (Failure.OfSource, RateLimited, QuotaSpent);
//   - different targets have met the same refusal, and the source has given no good answer in between. The count is in the
//     database (store.NoteRefusal), so that all collectors share it.
//
// If a call for several targets is refused whole, the collector asks for each half by itself, down to single targets. Each of these
// calls is paid from the budgets as any other. A batch whose handling panics is treated in the same way.

const (
	// toleratedRefusals is from which refused call on a source is paused whose credential may be refused.
	toleratedRefusals = 2
	// toleratedFailures is from which failed call on a source is paused whose failures have other classes.
	toleratedFailures = 3
	// refusedPauseAtMost is the longest pause after refusals that do not name the credential: they may all be the targets' trouble.
	refusedPauseAtMost = 5 * time.Minute
)

// concernsSource says whether a failure concerns the source whatever its target is.
func (f *Failure) concernsSource() bool {
	return f.OfSource || f.Class == RateLimited || f.Class == QuotaSpent
}

// panicked is a panic that was recovered.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// safely runs f, and returns a panic in it as a *panicked error. It logs the panic with its stack and attrs, and counts it.
func (c *Collector) safely(ctx context.Context, f func() error, attrs ...any) (err error) {
	defer func() {
		if value := recover(); value != nil {
			p := &panicked{value, debug.Stack()}
			c.log.ErrorContext(ctx, "panic recovered", append(slices.Clone(attrs), "panic", fmt.Sprint(value), "stack", string(p.stack))...)
			if c.panics != nil {
				c.panics()
			}
			err = p
		}
	}()
	return f()
}

// handle asks a source for a batch and writes the answer. If the batch is refused whole, or its handling panics, it handles the
// halves one after the other, until the targets that are the cause stand alone.
func (c *Collector) handle(ctx, writing context.Context, claim store.Claim, w way, behind ways, batch []store.Target) (answer, error) {
	var a answer
	err := c.safely(writing, func() error {
		var err error
		if a, err = c.call(ctx, w, behind, batch); err != nil {
			return err
		}
		return errors.Join(c.store.Acknowledge(writing, claim, store.InstantOf(a.at), a.done),
			c.store.AcknowledgeAccounts(writing, claim, store.InstantOf(a.at), a.found))
	}, "source", w.source.Name(), "platform", batch[0].Platform, "kind", batch[0].Kind, "targets", idsOf(batch))
	if p, ok := errors.AsType[*panicked](err); ok {
		a, err = c.failed(writing, w, batch, &Failure{Class: Temporary, Detail: p.Error(), Cause: p})
	}
	if err == nil && len(a.unanswered) > 0 {
		batch = a.unanswered
		var rest answer
		rest, err = c.failed(writing, w, batch, a.failure)
		a.add(rest)
		a.divide = rest.divide
	}
	if err != nil || a.divide == nil {
		return a, err
	}
	var errs []error
	for _, half := range [][]store.Target{batch[:len(batch)/2], batch[len(batch)/2:]} {
		if a.paused {
			a.open = append(a.open, half...)
			continue
		}
		part, err := c.handle(ctx, writing, claim, w, behind, half)
		errs = append(errs, err)
		if part.late { // the claim's time has run out: asked for together again, they would be refused together again
			part = answer{failed: c.failures(w, half, a.divide, a.at), late: true}
		}
		a.add(part)
	}
	a.late = false
	return a, errors.Join(errs...)
}

// add adds the answer for other targets.
func (a *answer) add(b answer) {
	a.open, a.refused, a.lacking, a.failed = append(a.open, b.open...), append(a.refused, b.refused...), append(a.lacking, b.lacking...), append(a.failed, b.failed...)
	if a.later == nil {
		a.later = map[string]time.Time{}
	}
	maps.Copy(a.later, b.later)
	a.paused, a.late = a.paused || b.paused, a.late || b.late
}

func idsOf(batch []store.Target) []string {
	ids := make([]string, len(batch))
	for i, t := range batch {
		ids[i] = t.ExternalID
	}
	return ids
}

// subject names what a target is refused with: its group, where a source finds targets by one, else itself.
func subject(s Source, t Target) string {
	if g, ok := s.(Grouped); ok && t.Kind == KindVideo {
		if group := g.Group(t); group != "" {
			return fmt.Sprintf("%s/group/%s", t.Platform, group)
		}
	}
	return fmt.Sprintf("%s/%s/%s", t.Platform, t.Kind, t.ExternalID)
}

// divisible says whether a batch has more than one subject, so that a half of it may have a good answer.
func (c *Collector) divisible(s Source, batch []store.Target) bool {
	first := subject(s, ask(batch[0], c.now()))
	return slices.ContainsFunc(batch[1:], func(t store.Target) bool { return subject(s, ask(t, c.now())) != first })
}

// failed handles a call without an answer. It pauses the source, or one of its budgets, for all collectors if the failure concerns the
// source. Then the targets go back unharmed, or with one more attempt where the cause may be theirs.
func (c *Collector) failed(ctx context.Context, w way, batch []store.Target, f *Failure) (answer, error) {
	now := c.now()
	a := answer{at: now}
	if errors.Is(f, ErrUnpaid) { // which says nothing of the source
		a.failed = c.failures(w, batch, f, now)
		return a, nil
	}
	until, strikes := now, w.strikes[f.Bucket]
	if f.concernsSource() {
		until, a.open = c.pauseOf(f, strikes), batch
		if f.Class == BadRequest || f.Class == Temporary {
			a.open, a.failed = nil, c.failures(w, batch, f, now)
		}
	} else {
		enough, err := c.refusedEnough(ctx, w, batch, f)
		switch {
		case err != nil:
			return answer{at: now, open: batch}, err
		case enough == undecided:
			a.divide = f
			return a, nil
		case enough == yes && f.Class == AuthFailed:
			until, a.open = now.Add(min(step(probes, strikes), refusedPauseAtMost)), batch
		case enough == yes:
			until, a.failed = now.Add(jitter(step(pauses, strikes))), c.failures(w, batch, f, now)
		case f.Class == Temporary:
			a.failed = c.failures(w, batch, f, now)
		default: // another source may answer
			a.refused = c.failures(w, batch, f, now)
		}
	}
	if errors.Is(f, ErrNoAnswer) {
		c.noteUnanswered(w.source, batch)
	}
	attrs := []any{"source", w.source.Name(), "budget", f.Bucket, "class", f.Class, "detail", f.Detail, "targets", len(batch), "until", until.UTC()}
	if !f.RetryAt.IsZero() {
		attrs = append(attrs, "source_says", f.RetryAt.UTC())
	}
	if a.paused = until.After(now); !a.paused {
		c.log.WarnContext(ctx, "source failed for a target", append(attrs, "id", batch[0].ExternalID)...)
		return a, nil
	}
	c.log.WarnContext(ctx, "source failed", attrs...)
	return a, c.store.PauseSource(ctx, store.Pause{Source: bucketKey(w.source, f.Bucket), Class: string(f.Class), Detail: f.Detail,
		Strikes: strikes + 1, BlockedUntil: store.InstantOf(until)})
}

// failures are the outcomes of a failed call for its targets.
func (c *Collector) failures(w way, batch []store.Target, f *Failure, now time.Time) []store.Outcome {
	outcomes := make([]store.Outcome, len(batch))
	for i, t := range batch {
		outcomes[i] = c.outcome(t, Result{Class: f.Class, Detail: f.Detail}, w.source.Name(), now)
	}
	return outcomes
}

// pauseOf is the end of the pause that a failure of the source asks for, after so many pauses in a row.
func (c *Collector) pauseOf(f *Failure, strikes int) time.Time {
	now := c.now()
	switch f.Class {
	case RateLimited:
		if f.RetryAt.After(now) {
			return f.RetryAt
		}
		return now.Add(jitter(step(pauses, strikes)))
	case QuotaSpent:
		// The source says when the budget returns; until then it is tried now and then, since operators buy more.
		until := now.Add(step(probes, strikes))
		if f.RetryAt.After(now) && f.RetryAt.Before(until) {
			return f.RetryAt
		}
		return until
	default:
		return now.Add(step(probes, strikes))
	}
}

// verdict is what the refusals so far say of a source.
type verdict int

const (
	no        verdict = iota // the refusal may be the target's trouble
	yes                      // the refusals concern the source
	undecided                // the batch has to be asked for in halves
)

// refusedEnough counts a refusal that may be the target's trouble, and says whether the refusals in a row concern the source.
// It does not count the refusal of a batch that can be divided: it does not say which target is the cause.
func (c *Collector) refusedEnough(ctx context.Context, w way, batch []store.Target, f *Failure) (verdict, error) {
	key := bucketKey(w.source, f.Bucket)
	enough := func(r store.Refusals) bool {
		if f.Class == AuthFailed {
			return r.Targets > 1 && r.Calls >= toleratedRefusals
		}
		return r.Targets > 1 && r.Calls >= toleratedFailures
	}
	if !errors.Is(f, ErrNoAnswer) && c.divisible(w.source, batch) {
		known, err := c.store.Refusals(ctx)
		if err != nil {
			return no, err
		}
		if slices.ContainsFunc(known, func(r store.Refusals) bool { return r.Source == key && r.Class == string(f.Class) && enough(r) }) {
			return yes, nil
		}
		return undecided, nil
	}
	r, err := c.store.NoteRefusal(ctx, key, string(f.Class), subject(w.source, ask(batch[0], c.now())))
	if err != nil {
		return no, err
	}
	c.refusals.Store(key, true)
	if enough(r) {
		return yes, nil
	}
	return no, nil
}

// learnRefusals takes note of which sources have refusals on record, so that their next good answer ends the count.
func (c *Collector) learnRefusals(ctx context.Context) error {
	known, err := c.store.Refusals(ctx)
	for _, r := range known {
		c.refusals.Store(r.Source, true)
	}
	return err
}

// forgetRefusals ends the count of refusals of a source or a budget, since it has answered.
func (c *Collector) forgetRefusals(ctx context.Context, key string) error {
	if _, known := c.refusals.LoadAndDelete(key); !known {
		return nil
	}
	return c.store.ForgetRefusals(ctx, key)
}

// abandon counts a failure for each target of a claim that is not acknowledged: its work ended by a panic outside of a batch.
func (c *Collector) abandon(ctx context.Context, claim store.Claim, p *panicked) error {
	outcomes := make([]store.Outcome, len(claim.Targets))
	for i, t := range claim.Targets {
		outcomes[i] = c.outcome(t, Result{Class: Temporary, Detail: p.Error()}, "", c.now())
	}
	return c.acknowledge(ctx, claim, outcomes)
}

// A batch that has no answer in time leaves no time to ask for its halves in the same claim. Its targets are asked for in batches of half
// the size the next time, so that one target which a source cannot answer in time is found.

// noteUnanswered remembers the size of a batch that had no answer.
func (c *Collector) noteUnanswered(s Source, batch []store.Target) {
	for _, t := range batch {
		if len(batch) > 1 {
			c.unanswered.Store(unansweredKey(s, t), len(batch)/2)
		}
	}
}

// batchSize is how many targets are asked for together with t, of which the source takes size at once.
func (c *Collector) batchSize(s Source, t store.Target, size int) int {
	if most, ok := c.unanswered.LoadAndDelete(unansweredKey(s, t)); ok {
		return max(1, min(size, most.(int)))
	}
	return max(1, size)
}

func unansweredKey(s Source, t store.Target) string {
	return fmt.Sprintf("%s/%s/%s/%s", s.Name(), t.Platform, t.Kind, t.ExternalID)
}
