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
	// leaseMargin is how much longer a lease lasts than the timeout of its fetch. In this time, the answers are stored. Afterwards, they are
	// never stored.
	leaseMargin = queue.StoreTime
	// accountTimeout is the timeout of one fetch of a batch of accounts, usually of a single account. It is long because some sources return thousands of videos in pages of
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

// workerGroup is the state that all workers of one source share.
type workerGroup struct {
	workers  int
	claiming sync.Mutex    // locked while a worker claims targets or waits for the next poll, so that only one idle worker polls
	busy     atomic.Int32  // number of workers with a claimed batch
	accounts atomic.Int32  // number of workers with a claimed account
	free     chan struct{} // receives a value when a worker becomes free; the worker that waits for the next poll then looks for due targets immediately
	// candidates is the maximum number of due targets that chooseBatch receives. It is at least twice the
	// largest batch, because some targets cannot share a call.
	candidates int
}

// newWorkers returns the workers of a source. It makes as many as Source.Concurrency returns, but at least one.
func (c *Collector) newWorkers(s source.Source) []*worker {
	g := &workerGroup{workers: max(1, s.Concurrency()), candidates: minCandidates, free: make(chan struct{}, 1)}
	for _, p := range link.Platforms {
		for _, k := range []queue.Kind{queue.KindVideo, queue.KindAccount} {
			size, _ := s.Serves(queue.Target{Platform: p, Kind: k})
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

// claimAndFetch claims the targets of one call, fetches them and stores the answers. It returns false if
// no target was claimed.
func (w *worker) claimAndFetch(ctx context.Context, waitIfIdle bool) (claimed bool, err error) {
	ctx, claim, err := w.claim(ctx, waitIfIdle)
	defer func() {
		w.releaseLater(claim, err)
		endCollectSpan(ctx, claim, err)
	}()
	if err != nil || len(claim.Targets) == 0 {
		return false, err
	}
	defer w.group.releaseWorker(claim)
	var due []queue.Target
	var early []ingest.Outcome
	for _, t := range claim.Targets {
		if next, ok := w.schedulePlan(t).Due(t, w.Now()); !ok && !parseAttempt(t).Running {
			o := unchangedOutcome(t)
			o.NextAt, o.Fetch = store.InstantOf(next), &queue.FetchChange{}
			early = append(early, o)
			continue
		}
		due = append(due, t)
	}
	writing := context.WithoutCancel(ctx) // answers are stored even if the collector is stopping
	err = w.writer.Acknowledge(writing, claim, claim.At, early)
	if err != nil || len(due) == 0 {
		return true, err
	}
	return true, w.fetch(ctx, claim, due)
}

// claim leases due targets that one call can request. If waitIfIdle is true, claim waits for the next poll
// before it returns an empty claim. If claim returns an error, it can have leased the targets of the returned claim.
// withSpan is ctx, with the span of startCollectSpan if a target was due. The caller must end this span with endCollectSpan.
func (w *worker) claim(ctx context.Context, waitIfIdle bool) (withSpan context.Context, claim queue.Claim, err error) {
	w.group.claiming.Lock()
	defer w.group.claiming.Unlock()
	reading, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	w.clock.note(w.Now())
	lanes, err := w.queue.DueLanes(reading, w.source.Name())
	// The last free worker is kept for waiting organisations, so that one organisation cannot occupy all workers.
	lastFree := w.group.workers > 1 && int(w.group.busy.Load()) == w.group.workers-1
	if lastFree {
		lanes = slices.DeleteFunc(lanes, func(l queue.Lane) bool { return l != queue.LaneInteractive })
	}
	mayClaim := err == nil && len(lanes) > 0 && w.missedHeartbeats.Load() < maxMissedHeartbeats
	if mayClaim {
		mayClaim, err = w.clockIsRight(reading)
	}
	if mayClaim {
		ctx = w.startCollectSpan(ctx)
		claim, err = w.leaseBatch(trace.ContextWithSpan(reading, trace.SpanFromContext(ctx)), lanes, lastFree)
	}
	switch {
	case err != nil:
		return ctx, claim, err
	case len(claim.Targets) > 0:
		// The worker counts as busy until releaseWorker is called.
		w.group.updateBusyCount(claim, 1)
	case waitIfIdle:
		sleep(ctx, schedule.Jitter(w.Poll), w.group.free)
	}
	return ctx, claim, nil
}

// leaseBatch leases a batch of due targets from the given lanes. If onlyIdleOrganisations is true, it skips
// organisations for which this source is already fetching a target of the interactive lane.
func (w *worker) leaseBatch(ctx context.Context, lanes []queue.Lane, onlyIdleOrganisations bool) (claim queue.Claim, err error) {
	ctx, span := tracing.Start(ctx, "claim")
	defer func() { tracing.End(span, err) }()
	if err := w.updateThrottles(ctx); err != nil {
		return claim, err
	}
	return w.queue.Claim(ctx, queue.ClaimRequest{Collector: w.id, Route: w.source.Name(), Kinds: w.group.claimableKinds(), Lanes: weightedOrder(lanes),
		OnlyIdleOrganisations: onlyIdleOrganisations, Candidates: w.group.candidates, Ahead: schedule.Early, Pick: w.chooseBatch})
}

// claimableKinds returns the kinds that a worker may claim now. Accounts take long, so only half of the
// workers (at least one) may fetch accounts.
func (g *workerGroup) claimableKinds() []queue.Kind {
	if int(g.accounts.Load()) < max(1, g.workers/2) {
		return []queue.Kind{queue.KindVideo, queue.KindAccount}
	}
	return []queue.Kind{queue.KindVideo}
}

// updateBusyCount changes the number of busy workers by 1 or -1. If the claim has an account, the number
// of workers with accounts changes too.
func (g *workerGroup) updateBusyCount(c queue.Claim, change int32) {
	g.busy.Add(change)
	if c.Targets[0].Kind == queue.KindAccount {
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

// callShape is what the calls to a source for several targets must have in common. Targets with the same callShape can be requested in one call.
type callShape struct {
	platform link.Platform
	kind     queue.Kind
	size     int    // number of targets that fit into one call; 0 if the source does not serve these targets
	group    string // the result of Source.Group for these targets
}

// describeCall returns the shape of the call with which the worker asks its source for a target. The batch size is 0 if the source does not serve the target.
func (w *worker) describeCall(t queue.Target) callShape {
	size, served := w.source.Serves(t)
	if !served {
		return callShape{platform: t.Platform, kind: t.Kind}
	}
	return callShape{t.Platform, t.Kind, max(1, size), w.source.Group(t)}
}

// chooseBatch prepares the due targets, and returns the first of them and others for the same call. leaseTime is how long the batch
// must be leased.
func (w *worker) chooseBatch(due []queue.Target) (batch []queue.Target, leaseTime time.Duration) {
	now := w.Now()
	for i, t := range due {
		due[i] = w.prepareTarget(t, now)
	}
	shape, maxSize := w.describeCall(due[0]), len(due)
	for _, t := range due {
		if w.describeCall(t) != shape {
			continue
		}
		maxSizeWithTarget := maxSize
		// Each failed attempt halves the batch, so that a target that causes failures is soon requested alone.
		if shape.size > 0 {
			maxSizeWithTarget = min(maxSize, max(1, shape.size>>min(t.Attempts, 30)))
		}
		if len(batch) < maxSizeWithTarget {
			batch, maxSize = append(batch, t), maxSizeWithTarget
		}
	}
	return batch, w.fetchTimeout(due[0]) + leaseMargin
}

// fetchTimeout returns the time limit for fetching a target, or a batch of targets of the same kind.
func (w *worker) fetchTimeout(t queue.Target) time.Duration {
	if t.Kind == queue.KindAccount {
		return accountTimeout
	}
	return source.FetchTimeout(w.source)
}

// fetch asks the source for a batch and stores the answers. It then fetches the batches that fetchBatch returns, until no batch is left.
func (w *worker) fetch(ctx context.Context, claim queue.Claim, batch []queue.Target) error {
	writing, tried := context.WithoutCancel(ctx), searchesByID{} // answers are stored even if the collector is stopping
	again, err := w.fetchBatch(ctx, claim, batch, tried)
	errs := []error{err}
	for len(again) > 0 {
		next := again[0]
		again = again[1:]
		err := w.queue.Extend(writing, claim, next, w.fetchTimeout(next[0])+leaseMargin)
		if errors.Is(err, queue.ErrLeaseLost) {
			continue // another collector fetches the targets of this batch
		}
		var more [][]queue.Target
		if err == nil {
			more, err = w.fetchBatch(ctx, claim, next, tried)
		}
		again, errs = append(more, again...), append(errs, err)
	}
	return errors.Join(errs...)
}

// fetchBatch asks the source once and stores the replies. It returns the batches to fetch next. A panic is handled like a temporary failure of
// the batch.
func (w *worker) fetchBatch(ctx context.Context, claim queue.Claim, batch []queue.Target, tried searchesByID) ([][]queue.Target, error) {
	again, err := w.askAndStore(ctx, claim, batch, tried, w.callSource)
	if p, ok := errors.AsType[*panicError](err); ok {
		return w.askAndStore(ctx, claim, batch, tried, func(_ context.Context, batch []queue.Target) ([]quota.Reply, error) {
			return w.quota.Fail(context.WithoutCancel(ctx), w.source, batch, &source.Failure{Class: source.Temporary, Detail: p.Error(), Cause: p})
		})
	}
	return again, err
}

// askAndStore calls `ask` and stores its replies. It returns the batches to fetch next, and a *panicError after a panic.
func (w *worker) askAndStore(ctx context.Context, claim queue.Claim, batch []queue.Target, tried searchesByID,
	ask func(context.Context, []queue.Target) ([]quota.Reply, error)) (again [][]queue.Target, err error) {
	err = w.runSafely(ctx, func() error {
		// Answers are stored even if the collector is stopping.
		storing, stop := context.WithTimeout(context.WithoutCancel(ctx), w.fetchTimeout(batch[0])+leaseMargin)
		defer stop()
		calling, cancel := context.WithTimeout(ctx, w.fetchTimeout(batch[0]))
		defer cancel()
		replies, err := ask(calling, batch)
		for _, reply := range replies {
			next, stored := w.storeReply(storing, ctx.Done(), claim, reply, tried)
			again, err = append(again, next...), errors.Join(err, stored)
		}
		return err
	}, "source", w.source.Name(), "platform", batch[0].Platform, "kind", batch[0].Kind, "targets", len(batch), "id", batch[0].ExternalID)
	return again, err
}

// storeReply stores the results of a call. It returns batches to fetch now: halves of a refused batch,
// or videos to request with another handle. Results that are older than the lease are not stored. The channel `stopping` is closed when the collector is
// stopping.
func (w *worker) storeReply(ctx context.Context, stopping <-chan struct{}, claim queue.Claim, reply quota.Reply, tried searchesByID) (again [][]queue.Target, err error) {
	ctx, span := tracing.Start(ctx, "store", attribute.Int("reeltally.targets", len(reply.Targets)))
	defer func() { tracing.End(span, err) }()
	switch {
	case reply.MustDivide:
		half := len(reply.Targets) / 2
		return [][]queue.Target{reply.Targets[:half], reply.Targets[half:]}, nil
	case reply.Stopped || w.isTooOld(reply):
		return nil, w.queue.Release(ctx, claim.Token, reply.Targets, w.Now())
	}
	mixedUp := verify.FindMixedUpResults(reply.Targets, reply.Results)
	final := make(map[int]source.Result, len(reply.Targets)) // the final results by index; a video that is requested with another handle has none yet
	for i, t := range reply.Targets {
		r, next := tried.searchFor(t).continueSearch(w.source, t, verify.CheckIdentity(t, reply.Results[i], reply.At))
		if next != nil {
			again = w.addToBatch(again, *next)
			continue
		}
		final[i] = r
	}
	w.holdBackDisappearances(ctx, reply, final)
	var outcomes []ingest.Outcome
	for i, t := range reply.Targets {
		r, ok := final[i]
		if !ok {
			continue
		}
		o := w.outcome(t, r, mixedUp[i], reply.At)
		o.TriedHandles = tried.searchFor(t).tried
		if r.Failed == nil && (o.Facts == nil && r.Account == nil || o.Detail != "") {
			w.Logger.InfoContext(ctx, "no numbers stored for the target", "source", w.source.Name(), "platform", t.Platform, "kind", t.Kind, "id", t.ExternalID,
				"class", r.Class, "detail", o.Detail, "next_at", o.NextAt.Time(), "route", o.Route)
		}
		outcomes = append(outcomes, o)
	}
	if err = w.acknowledge(ctx, stopping, claim, reply, outcomes); err == nil {
		err = w.thumbnails.SaveAddresses(ctx, outcomes)
	}
	return again, err
}

// recentIntervals is a number of fetch intervals of a target. An answer that the target does not exist can be held back only if the target's last
// numbers are not older than this number of intervals. An interval below schedule.DefaultInterval counts as schedule.DefaultInterval.
const recentIntervals = 3

// holdBackDisappearances changes the class of final results to Doubted if they say that targets do not exist, and the source says this of most targets.
// A target whose numbers are older than recentIntervals is not held back, so that also a target that really disappeared with many others counts as gone.
func (w *worker) holdBackDisappearances(ctx context.Context, reply quota.Reply, final map[int]source.Result) {
	name := w.source.Name()
	before := w.disappearances.Cause(name, reply.At)
	var disappeared []int
	for i, t := range reply.Targets {
		r, ok := final[i]
		recent := recentIntervals * max(w.schedulePlan(t).Interval(t), schedule.DefaultInterval)
		switch {
		case !ok:
		case r.Class == source.Missing && w.nextSource(t, w.addAnswer(parseAttempt(t), r, reply.At)) != nil: // the next source decides whether the target exists
		case verify.IsDisappearance(t, r, recent, reply.At):
			disappeared = append(disappeared, i)
			w.disappearances.Record(name, t, true, reply.At)
		case r.Class == source.OK:
			w.disappearances.Record(name, t, false, reply.At)
		}
	}
	cause := w.disappearances.Cause(name, reply.At)
	switch {
	case cause != "" && before == "":
		w.Logger.WarnContext(ctx, "answers held back: the source says of most targets that they do not exist", "source", name, "detail", cause)
	case cause == "" && before != "":
		w.Logger.InfoContext(ctx, "answers no longer held back", "source", name)
	}
	if cause == "" {
		return
	}
	for _, i := range disappeared {
		r := final[i]
		r.Class, r.Detail = source.Doubted, "held back: "+r.Detail
		final[i] = r
	}
}

// addToBatch adds a target to the first batch whose call can also request this target. If no batch fits,
// it adds a new batch.
func (w *worker) addToBatch(batches [][]queue.Target, t queue.Target) [][]queue.Target {
	wanted := w.describeCall(t)
	for i, b := range batches {
		if w.describeCall(b[0]) == wanted && len(b) < wanted.size {
			batches[i] = append(b, t)
			return batches
		}
	}
	return append(batches, []queue.Target{t})
}

// panicError is the error for a recovered panic. The field value is the argument of panic.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// runSafely runs a function and returns its error. If the function panics, runSafely logs the panic with
// attrs and returns a *panicError.
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
