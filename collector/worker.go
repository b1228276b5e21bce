package collector

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/verify"
	"github.com/reeltally/reeltally/internal/tracing"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	// claimTimeout is the time limit for all database queries that one claim needs.
	claimTimeout = 30 * time.Second
	// leaseMargin is how much longer a lease lasts than the timeout of its fetch. In this time, the answers are stored.
	leaseMargin = time.Minute
	// accountTimeout is the timeout of the fetch of one account. It is long because some sources return thousands of videos in pages of
	// ten.
	accountTimeout = time.Hour
	// minCandidates is the smallest value of workerGroup.candidates.
	minCandidates = 10
)

// worker claims and fetches targets of one source, one call at a time.
type worker struct {
	*Collector
	source source.Source
	group  *workerGroup
}

// workerGroup is the state that all workers of one source share. The last free worker claims only targets for which an organisation waits,
// and skips organisations that already have a claimed target. So one organisation cannot occupy all workers of a slow source.
type workerGroup struct {
	workers  int
	claiming sync.Mutex    // locked while a worker claims targets or waits for the next poll, so that only one idle worker polls
	busy     atomic.Int32  // number of workers with a claimed batch
	accounts atomic.Int32  // number of workers with a claimed account
	free     chan struct{} // receives a value when a worker becomes free, so that the waiting worker looks for due targets again
	// candidates is the number of due targets from which the targets of one call are chosen. It is at least twice the largest batch, because
	// some due targets may not fit into the same call.
	candidates int
}

// newWorkers returns new workers for a source. Their number is Options.Concurrency or, if that is 0, the result of Source.Concurrency.
func (c *Collector) newWorkers(s source.Source) []*worker {
	g := &workerGroup{workers: max(1, s.Concurrency()), candidates: minCandidates, free: make(chan struct{}, 1)}
	if c.Concurrency > 0 {
		g.workers = c.Concurrency
	}
	for _, p := range link.Platforms {
		for _, k := range []source.Kind{source.KindVideo, source.KindAccount} {
			size, _ := s.Serves(source.Target{Platform: p, Kind: k})
			g.candidates = max(g.candidates, 2*size)
		}
	}
	workers := make([]*worker, g.workers)
	for i := range workers {
		workers[i] = &worker{Collector: c, source: s, group: g}
	}
	return workers
}

// run calls claimAndFetch again and again until ctx ends. It calls stop if real numbers and the numbers of a sandbox would be mixed in the
// database.
func (w *worker) run(ctx context.Context, stop context.CancelCauseFunc) {
	for ctx.Err() == nil {
		err := w.runSafely(ctx, func() error { _, err := w.claimAndFetch(ctx, true); return err }, "source", w.source.Name())
		if kind, ok := errors.AsType[*store.DataKindError](err); ok {
			stop(kind)
		}
		if err != nil && ctx.Err() == nil {
			w.Logger.ErrorContext(ctx, "cannot collect a batch of targets", "source", w.source.Name(), "error", err)
			sleep(ctx, schedule.Jitter(w.Poll), nil)
		}
	}
}

// claimAndFetch claims the targets of one call, fetches them and stores the answers. If no target is due, it returns false. If waitIfIdle
// is also true, it waits for the poll interval before it returns.
func (w *worker) claimAndFetch(ctx context.Context, waitIfIdle bool) (busy bool, err error) {
	ctx, claim, err := w.claim(ctx, waitIfIdle)
	defer func() { endCollectSpan(ctx, claim, err) }()
	if err != nil || len(claim.Targets) == 0 {
		return false, err
	}
	defer w.group.releaseWorker(claim)
	now := w.Now()
	var due []source.Target
	var early []ingest.Outcome
	var earlyAccounts []ingest.AccountOutcome
	for _, t := range claim.Targets {
		if next, ok := w.schedulePlan(t).Due(t, now); !ok && !parseAttempt(t).Running {
			o := unchangedOutcome(t)
			o.NextAt, o.Fetch = store.InstantOf(next), &queue.FetchChange{}
			if t.Kind == source.KindAccount {
				earlyAccounts = append(earlyAccounts, ingest.AccountOutcome{Outcome: o})
			} else {
				early = append(early, o)
			}
			continue
		}
		due = append(due, w.prepareTarget(t, now))
	}
	writing := context.WithoutCancel(ctx) // answers are stored even if the collector is stopping
	err = errors.Join(w.writer.Acknowledge(writing, claim, claim.At, early), w.writer.AcknowledgeAccounts(writing, claim, claim.At, earlyAccounts))
	if err != nil || len(due) == 0 {
		return true, err
	}
	return true, w.fetch(ctx, claim, due, searchesByID{})
}

// claim returns a batch of due targets, which it has leased to this collector. One call to the source can request the whole batch. If no
// target can be claimed, the returned claim is empty. If waitIfIdle is true, claim waits for the poll interval before it returns an empty
// claim.
//
// If a target is due, the returned context contains a new span. After a claim with targets, the worker counts as busy until
// workerGroup.releaseWorker is called.
func (w *worker) claim(ctx context.Context, waitIfIdle bool) (withSpan context.Context, claim queue.Claim, err error) {
	w.group.claiming.Lock()
	defer w.group.claiming.Unlock()
	reading, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	lanes, err := w.queue.DueLanes(reading, w.source.Name())
	lastFree := w.group.workers > 1 && int(w.group.busy.Load()) == w.group.workers-1
	if lastFree {
		lanes = slices.DeleteFunc(lanes, func(l queue.Lane) bool { return l != queue.LaneInteractive })
	}
	if err == nil && len(lanes) > 0 {
		ctx = w.startCollectSpan(ctx)
		claim, err = w.claimFromLanes(trace.ContextWithSpan(reading, trace.SpanFromContext(ctx)), lanes, lastFree)
	}
	switch {
	case err != nil:
		return ctx, queue.Claim{}, err
	case len(claim.Targets) > 0:
		w.group.updateBusyCount(claim, 1)
	case waitIfIdle:
		sleep(ctx, schedule.Jitter(w.Poll), w.group.free)
	}
	return ctx, claim, nil
}

// claimFromLanes leases a batch of due targets from the given lanes. If onlyIdleOrganisations is true, it leases only targets of
// organisations that have no claimed target.
func (w *worker) claimFromLanes(ctx context.Context, lanes []queue.Lane, onlyIdleOrganisations bool) (claim queue.Claim, err error) {
	ctx, span := tracing.Start(ctx, "claim")
	defer func() { tracing.End(span, err) }()
	if err := w.updateThrottles(ctx); err != nil {
		return claim, err
	}
	return w.queue.Claim(ctx, queue.ClaimRequest{Collector: w.id, Route: w.source.Name(), Kinds: w.group.claimableKinds(), Lanes: weightedOrder(lanes),
		Idle: onlyIdleOrganisations, Candidates: w.group.candidates, Ahead: schedule.Early, Pick: w.chooseBatch})
}

// claimableKinds returns the kinds of targets that a worker may claim now. At most half of the workers (but at least one) may fetch
// accounts at the same time, because fetching an account can take long.
func (g *workerGroup) claimableKinds() []source.Kind {
	if int(g.accounts.Load()) < max(1, g.workers/2) {
		return []source.Kind{source.KindVideo, source.KindAccount}
	}
	return []source.Kind{source.KindVideo}
}

// updateBusyCount adds the change, which is 1 or -1, to the number of busy workers. If the claimed target is an account, it also adds the change
// to the number of workers that fetch accounts.
func (g *workerGroup) updateBusyCount(c queue.Claim, change int32) {
	g.busy.Add(change)
	if c.Targets[0].Kind == source.KindAccount {
		g.accounts.Add(change)
	}
}

// releaseWorker marks the worker of a claim as free. It also wakes the worker that waits for the next poll, so that this worker looks for
// due targets immediately.
func (g *workerGroup) releaseWorker(c queue.Claim) {
	g.updateBusyCount(c, -1)
	select {
	case g.free <- struct{}{}:
	default: // the channel still has a value, which will wake the waiting worker
	}
}

// call describes a request to a source. Targets with equal call values can be requested together.
type call struct {
	platform link.Platform
	kind     source.Kind
	size     int    // number of targets that fit into one call; 0 if the source does not serve these targets
	group    string // the result of Source.Group for these targets
}

// describeCall returns the call with which the worker asks its source for a target.
func (w *worker) describeCall(t source.Target) call {
	size, served := w.source.Serves(t)
	if !served {
		return call{platform: t.Platform, kind: t.Kind}
	}
	return call{t.Platform, t.Kind, max(1, size), w.source.Group(t)}
}

// chooseBatch chooses the targets of one call: the first due target, and others that can be requested together with it. Each failed
// attempt of a target halves the size of the batches in which the target may be requested. Therefore a target that causes failures is
// soon requested alone.
//
// leaseTime is how long the batch must be leased.
func (w *worker) chooseBatch(due []queue.Target) (batch []queue.Target, leaseTime time.Duration) {
	now := w.Now()
	first := w.prepareTarget(due[0], now)
	wanted, most := w.describeCall(first), len(due)
	for _, t := range due {
		this := w.describeCall(w.prepareTarget(t, now))
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
	return batch, w.fetchTimeout(first) + leaseMargin
}

// fetchTimeout returns the time limit for fetching a target, or a batch of targets of the same kind. For videos, the limit allows two
// calls, because some sources need a second call.
func (w *worker) fetchTimeout(t source.Target) time.Duration {
	if t.Kind == source.KindAccount {
		return accountTimeout
	}
	return 2 * w.source.Timeout()
}

// fetch asks the source for a batch of targets and stores the answers. If the source refuses the whole batch, or a panic occurs, fetch asks
// again for each half. If a video is not found under one handle, fetch asks again with the next handle.
func (w *worker) fetch(ctx context.Context, claim queue.Claim, batch []source.Target, triedHandles searchesByID) error {
	writing := context.WithoutCancel(ctx)
	var again [][]source.Target
	storeReplies := func(call func(ctx context.Context) ([]quota.Reply, error)) error {
		again = nil
		return w.runSafely(ctx, func() error {
			calling, cancel := context.WithTimeout(ctx, w.fetchTimeout(batch[0]))
			defer cancel()
			replies, err := call(calling)
			for _, reply := range replies {
				next, stored := w.storeReply(ctx, claim, reply, triedHandles)
				again, err = append(again, next...), errors.Join(err, stored)
			}
			return err
		}, "source", w.source.Name(), "platform", batch[0].Platform, "kind", batch[0].Kind, "targets", len(batch), "id", batch[0].ExternalID)
	}
	err := storeReplies(func(ctx context.Context) ([]quota.Reply, error) { return w.callSource(ctx, batch) })
	if p, ok := errors.AsType[*panicError](err); ok {
		err = storeReplies(func(context.Context) ([]quota.Reply, error) {
			return w.quota.Fail(writing, w.source, batch, &source.Failure{Class: source.Temporary, Detail: p.Error(), Cause: p})
		})
	}
	errs := []error{err}
	for _, next := range again {
		err := w.queue.Extend(writing, claim, next, w.fetchTimeout(next[0])+leaseMargin)
		if errors.Is(err, queue.ErrLeaseLost) {
			continue // another collector fetches the targets of this batch
		}
		if err == nil {
			err = w.fetch(ctx, claim, next, triedHandles)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// storeReply stores the results of a call. It returns the batches that must be fetched again immediately: the halves of a batch that the
// source refused as a whole, or videos that must be requested with another handle.
func (w *worker) storeReply(ctx context.Context, claim queue.Claim, reply quota.Reply, tried searchesByID) (again [][]source.Target, err error) {
	ctx, span := tracing.Start(ctx, "store", attribute.Int("reeltally.targets", len(reply.Targets)))
	defer func() { tracing.End(span, err) }()
	writing := context.WithoutCancel(ctx) // answers are stored even if the collector is stopping
	switch {
	case reply.Divided:
		half := len(reply.Targets) / 2
		return [][]source.Target{reply.Targets[:half], reply.Targets[half:]}, nil
	case reply.Stopped:
		return nil, w.queue.Release(writing, queue.Claim{Token: claim.Token, Targets: reply.Targets}, w.Now())
	}
	mixedUp := verify.FindMixedUpResults(reply.Targets, reply.Results)
	var outcomes []ingest.Outcome
	var accounts []ingest.AccountOutcome
	for i, t := range reply.Targets {
		search := tried.searchFor(t)
		r, next := search.continueSearch(w.source, t, verify.CheckIdentity(t, reply.Results[i], reply.At))
		if next != nil {
			again = w.addToBatch(again, *next)
			continue
		}
		o := w.outcome(t, r, mixedUp[i], reply.At)
		o.TriedHandles = search.tried
		if r.Failed == nil && (o.Facts == nil && r.Account == nil || o.Detail != "") {
			w.Logger.InfoContext(ctx, "no numbers stored for the target", "source", w.source.Name(), "platform", t.Platform, "kind", t.Kind, "id", t.ExternalID,
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
	err = errors.Join(w.writer.Acknowledge(writing, claim, at, outcomes), w.writer.AcknowledgeAccounts(writing, claim, at, accounts))
	if err == nil {
		err = w.thumbnails.SaveAddresses(writing, outcomes)
	}
	return again, err
}

// addToBatch adds a target to the first batch that is not full and whose targets can be requested together with it. If there is no such
// batch, it adds a new batch.
func (w *worker) addToBatch(batches [][]source.Target, t source.Target) [][]source.Target {
	wanted := w.describeCall(t)
	for i, b := range batches {
		if w.describeCall(b[0]) == wanted && len(b) < wanted.size {
			batches[i] = append(b, t)
			return batches
		}
	}
	return append(batches, []source.Target{t})
}

// panicError is the error for a recovered panic.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// runSafely runs a function and returns its error. If the function panics, runSafely logs the panic with its stack and the given log
// attributes, and returns the panic as a *panicError.
func (c *Collector) runSafely(ctx context.Context, f func() error, attrs ...any) (err error) {
	defer func() {
		if value := recover(); value != nil {
			c.Logger.ErrorContext(ctx, "panic recovered", append(slices.Clone(attrs), "panic", fmt.Sprint(value), "stack", string(debug.Stack()))...)
			if c.Panicked != nil {
				c.Panicked()
			}
			err = &panicError{value}
		}
	}()
	return f()
}
