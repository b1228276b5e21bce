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
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// A failed call may be caused by its target only: a vendor answers 403 for an age-restricted video, or a token may not read one page.
// So a failure pauses its source in only two cases:
//
//   - its answer says that it concerns the credential, the quota or a limit (Failure.OfSource, RateLimited, QuotaSpent);
//   - several different targets got the same refusal, with no good answer of the source in between. The count is in the
//     database (store.NoteRefusal), so that all collectors share it.
//
// If a call for several targets is refused whole, the collector asks for each half separately, down to single targets. Each of these
// calls is paid from the budgets like any other. A batch whose handling panics is treated in the same way.

const (
	// toleratedRefusals is the number of AuthFailed calls in a row at which a source is paused.
	toleratedRefusals = 2
	// toleratedFailures is the number of failed calls of another class in a row at which a source is paused.
	toleratedFailures = 3
	// refusedPauseAtMost is the longest pause after refusals that do not name the credential. All of them may be caused by their targets.
	refusedPauseAtMost = 5 * time.Minute
)

// concernsSource returns true if the failure concerns the source, whatever its target is.
func (f *Failure) concernsSource() bool {
	return f.OfSource || f.Class == RateLimited || f.Class == QuotaSpent
}

// panicked is a panic that was recovered.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// safely runs f and returns a panic in it as a *panicked error. It counts the panic and logs it with its stack and attrs.
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

// handle asks a source for a batch and writes the answer. If the batch is refused whole, or if its handling panics, handle processes
// each half separately. In the end, each target that is the cause is alone in its call.
func (c *Collector) handle(ctx, writing context.Context, claim queue.Claim, w way, behind ways, batch []queue.Target, searches searches) (answer, error) {
	var a answer
	err := c.safely(writing, func() error {
		var err error
		if a, err = c.call(ctx, w, behind, batch, searches); err != nil {
			return err
		}
		return errors.Join(c.writer.Acknowledge(writing, claim, store.InstantOf(a.at), a.done),
			c.writer.AcknowledgeAccounts(writing, claim, store.InstantOf(a.at), a.found))
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
	for _, half := range [][]queue.Target{batch[:len(batch)/2], batch[len(batch)/2:]} {
		if a.paused {
			a.open = append(a.open, half...)
			continue
		}
		part, err := c.handle(ctx, writing, claim, w, behind, half, searches)
		errs = append(errs, err)
		if part.late { // do not ask for this half together again: the call would be refused again
			part = answer{failed: c.failures(w, half, a.divide, a.at), late: true}
		}
		a.add(part)
	}
	a.late = false
	return a, errors.Join(errs...)
}

// add appends the answer b, which is for other targets.
func (a *answer) add(b answer) {
	a.open, a.refused, a.lacking, a.failed = append(a.open, b.open...), append(a.refused, b.refused...), append(a.lacking, b.lacking...), append(a.failed, b.failed...)
	if a.later == nil {
		a.later = map[string]time.Time{}
	}
	maps.Copy(a.later, b.later)
	a.paused, a.late = a.paused || b.paused, a.late || b.late
}

func idsOf(batch []queue.Target) []string {
	ids := make([]string, len(batch))
	for i, t := range batch {
		ids[i] = t.ExternalID
	}
	return ids
}

// subject returns the name under which refusals of a target are counted: its group if the source finds targets by group, else itself.
func subject(s Source, t Target) string {
	if g, ok := s.(Grouped); ok && t.Kind == KindVideo {
		if group := g.Group(t); group != "" {
			return fmt.Sprintf("%s/group/%s", t.Platform, group)
		}
	}
	return fmt.Sprintf("%s/%s/%s", t.Platform, t.Kind, t.ExternalID)
}

// divisible returns true if a batch has more than one subject. Then one half of it may get a good answer.
func (c *Collector) divisible(s Source, batch []queue.Target) bool {
	first := subject(s, ask(batch[0], c.now()))
	return slices.ContainsFunc(batch[1:], func(t queue.Target) bool { return subject(s, ask(t, c.now())) != first })
}

// failed handles a call without an answer. If the failure concerns the source, it pauses the source, or one of its budgets, for all
// collectors. The targets go back unchanged, or with one more attempt if they may be the cause.
func (c *Collector) failed(ctx context.Context, w way, batch []queue.Target, f *Failure) (answer, error) {
	now := c.now()
	a := answer{at: now}
	if errors.Is(f, ErrUnpaid) { // no call was made, so this says nothing about the source
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
		default: // another source may be able to answer
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
	return a, c.store.Queue.PauseSource(ctx, queue.Pause{Source: bucketKey(w.source, f.Bucket), Class: string(f.Class), Detail: f.Detail,
		Strikes: strikes + 1, BlockedUntil: store.InstantOf(until)})
}

// failures returns the outcomes of a failed call for its targets.
func (c *Collector) failures(w way, batch []queue.Target, f *Failure, now time.Time) []ingest.Outcome {
	outcomes := make([]ingest.Outcome, len(batch))
	for i, t := range batch {
		outcomes[i] = c.outcome(t, Result{Class: f.Class, Detail: f.Detail}, w.source.Name(), now)
	}
	return outcomes
}

// pauseOf returns the end of the pause after a failure of the source. strikes is the number of pauses in a row before it.
func (c *Collector) pauseOf(f *Failure, strikes int) time.Time {
	now := c.now()
	switch f.Class {
	case RateLimited:
		if f.RetryAt.After(now) {
			return f.RetryAt
		}
		return now.Add(jitter(step(pauses, strikes)))
	case QuotaSpent:
		// The source says when the budget is available again. It is tried a few times before then, since operators may buy more.
		until := now.Add(step(probes, strikes))
		if f.RetryAt.After(now) && f.RetryAt.Before(until) {
			return f.RetryAt
		}
		return until
	default:
		return now.Add(step(probes, strikes))
	}
}

// verdict is what the refusals so far mean for a source.
type verdict int

const (
	no        verdict = iota // the target may be the cause
	yes                      // the refusals concern the source
	undecided                // the batch must be asked for in halves
)

// refusedEnough counts a refusal whose target may be the cause, and returns whether the refusals in a row concern the source. It does
// not count the refusal of a divisible batch, because it is unknown which target is the cause.
func (c *Collector) refusedEnough(ctx context.Context, w way, batch []queue.Target, f *Failure) (verdict, error) {
	key := bucketKey(w.source, f.Bucket)
	enough := func(r queue.Refusals) bool {
		if f.Class == AuthFailed {
			return r.Targets > 1 && r.Calls >= toleratedRefusals
		}
		return r.Targets > 1 && r.Calls >= toleratedFailures
	}
	if !errors.Is(f, ErrNoAnswer) && c.divisible(w.source, batch) {
		known, err := c.store.Queue.Refusals(ctx)
		if err != nil {
			return no, err
		}
		if slices.ContainsFunc(known, func(r queue.Refusals) bool { return r.Source == key && r.Class == string(f.Class) && enough(r) }) {
			return yes, nil
		}
		return undecided, nil
	}
	r, err := c.store.Queue.NoteRefusal(ctx, key, string(f.Class), subject(w.source, ask(batch[0], c.now())))
	if err != nil {
		return no, err
	}
	c.refusals.Store(key, true)
	if enough(r) {
		return yes, nil
	}
	return no, nil
}

// learnRefusals reads which sources have refusals on record, so that their next good answer resets the count.
func (c *Collector) learnRefusals(ctx context.Context) error {
	known, err := c.store.Queue.Refusals(ctx)
	for _, r := range known {
		c.refusals.Store(r.Source, true)
	}
	return err
}

// forgetRefusals resets the count of refusals of a source or a budget after a good answer.
func (c *Collector) forgetRefusals(ctx context.Context, key string) error {
	if _, known := c.refusals.LoadAndDelete(key); !known {
		return nil
	}
	return c.store.Queue.ForgetRefusals(ctx, key)
}

// abandon counts a failure for each target of a claim whose work ended in a panic outside of a batch.
func (c *Collector) abandon(ctx context.Context, claim queue.Claim, p *panicked) error {
	outcomes := make([]ingest.Outcome, len(claim.Targets))
	for i, t := range claim.Targets {
		outcomes[i] = c.outcome(t, Result{Class: Temporary, Detail: p.Error()}, "", c.now())
	}
	return c.acknowledge(ctx, claim, outcomes)
}

// If a batch gets no answer in time, no time is left to ask for its halves in the same claim. So its targets are asked for in batches
// of half the size next time. This finds the one target that a source cannot answer in time.

// noteUnanswered remembers the size of a batch that got no answer.
func (c *Collector) noteUnanswered(s Source, batch []queue.Target) {
	for _, t := range batch {
		if len(batch) > 1 {
			c.unanswered.Store(unansweredKey(s, t), len(batch)/2)
		}
	}
}

// batchSize returns how many targets may be asked for together with t. size is how many the source takes in one call.
func (c *Collector) batchSize(s Source, t queue.Target, size int) int {
	if most, ok := c.unanswered.LoadAndDelete(unansweredKey(s, t)); ok {
		return max(1, min(size, most.(int)))
	}
	return max(1, size)
}

func unansweredKey(s Source, t queue.Target) string {
	return fmt.Sprintf("%s/%s/%s/%s", s.Name(), t.Platform, t.Kind, t.ExternalID)
}
