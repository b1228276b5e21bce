package collector

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/verify"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	// claimTimeout bounds the database work of a claim.
	claimTimeout = 30 * time.Second
	// leaseMargin is the part of a lease in which the answers are stored.
	leaseMargin = time.Minute
	// accountTimeout bounds the fetch of an account: it may have thousands of videos, which some sources list ten at a time.
	accountTimeout = time.Hour
	// minCandidates is the least number of due targets that a batch is chosen from, because some may need a call of their own.
	minCandidates = 10
)

// worker claims and fetches targets of one source, one call at a time.
type worker struct {
	*Collector
	source source.Source
	shared *sharedClaiming
	// candidates is how many due targets a batch is chosen from.
	candidates int
	// reserved is true for the one worker that serves only waiting organisations without a claimed target. A slow source is then never
	// busy with one organisation only.
	reserved bool
}

// sharedClaiming is what the workers of a source share.
type sharedClaiming struct {
	claiming sync.Mutex    // only one worker claims at a time, so that an idle source causes few queries
	accounts chan struct{} // holds a value for each worker that may fetch accounts now
}

// workers returns the workers of a source.
func (c *Collector) workers(s source.Source) []*worker {
	n := max(1, s.Concurrency())
	if c.concurrency > 0 {
		n = c.concurrency
	}
	candidates := minCandidates
	for _, p := range link.Platforms {
		for _, k := range []source.Kind{source.KindVideo, source.KindAccount} {
			size, _ := s.Serves(source.Target{Platform: p, Kind: k})
			candidates = max(candidates, 2*size)
		}
	}
	shared := &sharedClaiming{accounts: make(chan struct{}, max(1, n/2))}
	for range cap(shared.accounts) {
		shared.accounts <- struct{}{}
	}
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = &worker{Collector: c, source: s, candidates: candidates, shared: shared}
	}
	if n > 1 {
		workers[0].shared, workers[0].reserved = &sharedClaiming{accounts: shared.accounts}, true
	}
	return workers
}

// run claims and fetches until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.safely(ctx, func() error { _, err := w.round(ctx, true); return err }, "source", w.source.Name())
		if err != nil && ctx.Err() == nil {
			w.log.ErrorContext(ctx, "round failed", "source", w.source.Name(), "error", err)
			wait(ctx, schedule.Jitter(w.poll))
		}
	}
}

// round claims one batch, fetches it and stores the answers. If nothing is due, it waits for the poll interval if poll is true, and
// returns false.
func (w *worker) round(ctx context.Context, poll bool) (busy bool, err error) {
	claim, done, err := w.claim(ctx, poll)
	if err != nil || len(claim.Targets) == 0 {
		return false, err
	}
	defer done()
	now := w.now()
	var due []source.Target
	var early []ingest.Outcome
	for _, t := range claim.Targets {
		if next, ok := w.throttle(t).Due(t, now); !ok && !attemptOf(t).Running {
			o := unchanged(t)
			o.NextAt = store.InstantOf(next)
			early = append(early, o)
			continue
		}
		due = append(due, w.request(t, now))
	}
	writing := context.WithoutCancel(ctx) // when the collector stops, answers are still stored
	if err := w.writer.Acknowledge(writing, claim, claim.At, early); err != nil || len(due) == 0 {
		return true, err
	}
	return true, w.fetch(ctx, claim, due, searches{})
}

// claim leases the targets of one call. The claim is empty if nothing is due; if poll is true, it then waits for the poll interval. done must be
// called when the targets are stored.
func (w *worker) claim(ctx context.Context, poll bool) (claim queue.Claim, done func(), err error) {
	w.shared.claiming.Lock()
	defer w.shared.claiming.Unlock()
	kinds, accounts := []source.Kind{source.KindVideo}, false
	select {
	case <-w.shared.accounts:
		kinds, accounts = append(kinds, source.KindAccount), true
	default:
	}
	done = func() {
		if accounts {
			w.shared.accounts <- struct{}{}
		}
	}
	defer func() {
		if len(claim.Targets) == 0 || claim.Targets[0].Kind != source.KindAccount {
			done()
			done = func() {}
		}
		if err == nil && len(claim.Targets) == 0 && poll {
			wait(ctx, schedule.Jitter(w.poll))
		}
	}()
	reading, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	lanes, err := w.queue.DueLanes(reading, w.source.Name())
	if w.reserved {
		lanes = slices.DeleteFunc(lanes, func(l queue.Lane) bool { return l != queue.LaneInteractive })
	}
	if err != nil || len(lanes) == 0 {
		return claim, done, err
	}
	if err := w.updateThrottles(reading); err != nil {
		return claim, done, err
	}
	claim, err = w.queue.Claim(reading, queue.ClaimRequest{Collector: w.id, Route: w.source.Name(), Kinds: kinds, Lanes: draw(lanes), Idle: w.reserved,
		Candidates: w.candidates, Ahead: schedule.Early, Pick: w.pick})
	return claim, done, err
}

// call is what targets must have in common to be asked for in one call.
type call struct {
	platform link.Platform
	kind     source.Kind
	size     int // how many targets fit; 0 if the source does not serve them
	group    string
}

func (w *worker) callFor(t source.Target) call {
	size, served := w.source.Serves(t)
	if !served {
		return call{platform: t.Platform, kind: t.Kind}
	}
	return call{t.Platform, t.Kind, max(1, size), w.source.Group(t)}
}

// pick chooses the targets of one call: the first due target and those that fit into its call. Each failed attempt halves the batch of a
// target, so that a target that makes calls fail is alone in the end.
func (w *worker) pick(due []queue.Target) (batch []queue.Target, lease time.Duration) {
	now := w.now()
	first := w.request(due[0], now)
	wanted, most := w.callFor(first), len(due)
	for _, t := range due {
		this := w.callFor(w.request(t, now))
		if this != wanted {
			continue
		}
		limit := most
		if this.size > 0 {
			limit = min(most, max(1, this.size>>min(t.Attempts, 30)))
		}
		if len(batch) < limit {
			batch, most = append(batch, t), limit
		}
	}
	return batch, w.lease(first)
}

// lease returns how long a claim of a target is held for one call.
func (w *worker) lease(t source.Target) time.Duration { return w.timeout(t) + leaseMargin }

// timeout returns the longest time of one fetch of a target. A fetch of videos may make two calls.
func (w *worker) timeout(t source.Target) time.Duration {
	if t.Kind == source.KindAccount {
		return accountTimeout
	}
	return 2 * w.source.Timeout()
}

// fetch asks the source for a batch and stores the answers. A batch that is refused as a whole, or whose handling panics, is fetched again
// in halves; a video that is not found under one handle is fetched again under the next.
func (w *worker) fetch(ctx context.Context, claim queue.Claim, batch []source.Target, tried searches) error {
	writing := context.WithoutCancel(ctx)
	attrs := []any{"source", w.source.Name(), "platform", batch[0].Platform, "kind", batch[0].Kind, "targets", idsOf(batch)}
	var again [][]source.Target
	err := w.safely(writing, func() error {
		call, cancel := context.WithTimeout(ctx, w.timeout(batch[0]))
		defer cancel()
		replies, err := w.quota.Call(call, w.source, batch)
		for _, reply := range replies {
			next, stored := w.conclude(ctx, claim, reply, tried)
			again, err = append(again, next...), errors.Join(err, stored)
		}
		return err
	}, attrs...)
	if p, ok := errors.AsType[*panicError](err); ok {
		again = nil
		err = w.safely(writing, func() error {
			reply, err := w.quota.Fail(writing, w.source, batch, &source.Failure{Class: source.Temporary, Detail: p.Error(), Cause: p})
			if err != nil {
				return err
			}
			again, err = w.conclude(ctx, claim, reply, tried)
			return err
		}, attrs...)
	}
	errs := []error{err}
	for _, next := range again {
		err := w.queue.Extend(writing, claim, next, w.lease(next[0]))
		if errors.Is(err, queue.ErrLeaseLost) {
			continue // another collector fetches them
		}
		if err == nil {
			err = w.fetch(ctx, claim, next, tried)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// conclude stores what a reply says about its targets. It returns the batches that must be asked for again at once.
func (w *worker) conclude(ctx context.Context, claim queue.Claim, reply quota.Reply, tried searches) (again [][]source.Target, err error) {
	writing := context.WithoutCancel(ctx)
	if reply.Outcome == quota.Divided {
		half := len(reply.Targets) / 2
		return [][]source.Target{reply.Targets[:half], reply.Targets[half:]}, nil
	}
	if reply.Outcome == quota.Stopped {
		return nil, w.queue.Release(writing, queue.Claim{Token: claim.Token, Targets: reply.Targets}, w.now())
	}
	mixedUp := map[int]bool{}
	if reply.Outcome == quota.Answered {
		mixedUp = verify.MixedUp(reply.Targets, reply.Results)
	}
	var outcomes []ingest.Outcome
	var accounts []ingest.AccountOutcome
	for i, t := range reply.Targets {
		var r source.Result
		var o ingest.Outcome
		search := tried.of(t)
		stopped, searched := search.stopped(t)
		switch {
		case reply.Outcome == quota.Answered:
			var next *source.Target
			if r, next = search.next(w.source, t, verify.Account(t, reply.Results[i], reply.At)); next != nil {
				again = w.addTo(again, *next)
				continue
			}
			o = w.outcome(t, r, mixedUp[i], reply.At)
		case searched && reply.Outcome == quota.Unavailable:
			o = w.outcome(t, stopped, false, reply.At)
		case reply.Outcome == quota.Unavailable:
			o = w.unavailableOutcome(t, reply.Until, w.now())
		default:
			o = w.failedOutcome(t, reply, reply.At)
		}
		o.TriedHandles = search.tried
		if reply.Outcome == quota.Answered && (o.Facts == nil && r.Account == nil || o.Detail != "") {
			w.log.InfoContext(ctx, "no number written", "source", w.source.Name(), "platform", t.Platform, "kind", t.Kind, "id", t.ExternalID,
				"class", r.Class, "detail", o.Detail, "next_at", o.NextAt.Time(), "route", o.Route)
		}
		if t.Kind == source.KindVideo {
			outcomes = append(outcomes, o)
			continue
		}
		if o.Suspect != nil {
			r.Account = nil
		}
		accounts = append(accounts, ingest.AccountOutcome{Outcome: o, Account: r.Account})
	}
	at := store.InstantOf(reply.At)
	return again, errors.Join(w.writer.Acknowledge(writing, claim, at, outcomes), w.writer.AcknowledgeAccounts(writing, claim, at, accounts))
}

// addTo adds a target to a batch for the same call, or to a new batch.
func (w *worker) addTo(batches [][]source.Target, t source.Target) [][]source.Target {
	wanted := w.callFor(t)
	for i, b := range batches {
		if w.callFor(b[0]) == wanted && len(b) < wanted.size {
			batches[i] = append(b, t)
			return batches
		}
	}
	return append(batches, []source.Target{t})
}

// panicError is a panic that was recovered.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// safely runs f and returns a panic in it as a *panicError. It logs the panic with its stack and attrs.
func (c *Collector) safely(ctx context.Context, f func() error, attrs ...any) (err error) {
	defer func() {
		if value := recover(); value != nil {
			c.log.ErrorContext(ctx, "panic recovered", append(slices.Clone(attrs), "panic", fmt.Sprint(value), "stack", string(debug.Stack()))...)
			if c.panicked != nil {
				c.panicked()
			}
			err = &panicError{value}
		}
	}()
	return f()
}

func idsOf(batch []source.Target) []string {
	ids := make([]string, len(batch))
	for i, t := range batch {
		ids[i] = t.ExternalID
	}
	return ids
}
