// Package collector fills in the numbers: it claims what is due from the store's queue, asks a source for it, and
// writes what came back.
//
// A fetch has seven steps: pick a lane in which something is due; claim as many targets as one call holds; reserve the
// call's cost from the budget that all collectors share; call; weigh the answer; write points, latest counts and all
// that derives from them; acknowledge. The last two are one transaction. A collector that dies in between leaves a
// lease that runs out, or that another collector frees once the dead one has been silent for a while: nothing is lost,
// and as writing the same answer twice changes nothing, nothing is doubled.
//
// To add a source: a folder that implements Source, passes the suite of sourcetest, and is named in the configuration.
package collector

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Options say what a collector works with.
type Options struct {
	Store *store.Store
	// Sources are tried in this order for each target.
	Sources []Source
	// Now is the collector's clock.
	Now    func() time.Time
	Logger *slog.Logger
	// Workers is how many claims of one platform are worked on at once; 0 means 2.
	Workers int
	// Poll is how long an idle collector waits before it looks again; 0 means DefaultPoll.
	Poll time.Duration
	// Heartbeat is how often it says that it lives; 0 means every two seconds. One that has not said so for deadAfter is
	// taken for dead.
	Heartbeat time.Duration
	// Panicked is called after each recovered panic. If it is nil, panics are only logged.
	Panicked func()
}

// DefaultPoll is how long an idle collector waits before it looks again.
const DefaultPoll = 500 * time.Millisecond

const (
	// leaseMargin is the time for writing what came of a claim's calls. These have the time of two of the most patient source's.
	leaseMargin = time.Minute
	// handleLife is for how long after an account was seen its handle is believed to be its own where no id tells.
	handleLife = 3 * 24 * time.Hour
	// An account may have thousands of videos, which a slow source lists ten at a time.
	accountCallTime = time.Hour
	// callsAtOnce bounds the calls of one claim where a source takes few targets a call.
	callsAtOnce = 8
	// A claim takes mostClaimed targets at the most, or as many as one call. Where these take longer than claimTime it
	// takes fewer, but enough to keep calls going: who comes meanwhile waits until they are done.
	mostClaimed = 16
	claimTime   = 2 * time.Second
	// fillAhead is how much too early a target may be asked for where a call has room.
	fillAhead = 15 * time.Minute
	deadAfter = 10 * time.Second
)

// laneWeights say how often a lane is served first when all have something due. An empty lane gives way, so that nobody
// waits for nothing, and nobody starves.
var laneWeights = map[queue.Lane]int{queue.LaneInteractive: 50, queue.LanePremium: 30, queue.LaneBasic: 15, queue.LaneFree: 5}

// Collector is one process's collecting. Several may work on one database.
type Collector struct {
	id      uuid.UUID
	store   *store.Store
	writer  *ingest.Writer
	sources []Source
	windows sync.Map // the window of each budget that was last spent from
	large   sync.Map // and the one in which it was last said that a call is too large
	// refusals has a key, by bucketKey, for each source and budget with refusals on record (refusals.go).
	refusals sync.Map
	// unanswered has the next batch size for each target whose last batch got no answer, by unansweredKey.
	unanswered sync.Map
	panics     func()
	now        func() time.Time
	log        *slog.Logger
	workers    int
	poll       time.Duration
	beats      time.Duration
	plan       plan
	// patience is the longest Patience of all sources.
	patience time.Duration
}

// New returns a collector; Run makes it work.
func New(o Options) (*Collector, error) {
	switch {
	case o.Store == nil || o.Now == nil || o.Logger == nil:
		return nil, errors.New("collector: Store, Now and Logger are required")
	case len(o.Sources) == 0:
		return nil, errors.New("collector: no source is configured, so that nothing could be collected")
	}
	c := &Collector{id: store.NewID(), store: o.Store, writer: ingest.New(o.Store), sources: o.Sources, now: o.Now, log: o.Logger, workers: o.Workers, poll: o.Poll,
		beats: o.Heartbeat, panics: o.Panicked}
	for _, s := range o.Sources {
		c.patience = max(c.patience, s.Patience())
	}
	if c.workers <= 0 {
		c.workers = 2
	}
	if c.poll <= 0 {
		c.poll = DefaultPoll
	}
	if c.beats <= 0 {
		c.beats = 2 * time.Second
	}
	return c, nil
}

// Run collects until ctx is cancelled, and returns when all claimed targets are finished or given back.
func (c *Collector) Run(ctx context.Context) error {
	if err := c.resume(ctx); err != nil {
		return err
	}
	if _, err := c.store.Queue.Heartbeat(ctx, c.id, deadAfter); err != nil {
		return err
	}
	c.log.InfoContext(ctx, "collecting", "collector", c.id, "sources", c.names())
	var wg sync.WaitGroup
	wg.Go(func() { c.beat(ctx) })
	wg.Go(func() { c.upkeep(ctx) })
	for _, p := range link.Platforms {
		for _, k := range []Kind{KindVideo, KindAccount} {
			if !c.serves(p, k) {
				continue
			}
			h := newHands(c.workers)
			for range c.workers {
				wg.Go(func() { c.work(ctx, p, k, h) })
			}
			wg.Go(func() { c.welcome(ctx, p, k, h) })
		}
	}
	wg.Wait()
	// The work is over, and so is ctx; what is still held goes back at once.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.store.Queue.Retire(closing, c.id); err != nil {
		return err
	}
	c.log.InfoContext(closing, "stopped collecting", "collector", c.id)
	return nil
}

func (c *Collector) names() []string {
	names := make([]string, len(c.sources))
	for i, s := range c.sources {
		names[i] = s.Name()
	}
	return names
}

func (c *Collector) serves(p link.Platform, k Kind) bool {
	return slices.ContainsFunc(c.sources, func(s Source) bool {
		_, ok := s.Serves(Target{Platform: p, Kind: k})
		return ok
	})
}

// beat says that this collector lives and takes over what dead ones held.
func (c *Collector) beat(ctx context.Context) {
	for wait(ctx, c.beats) {
		var freed int64
		err := c.safely(ctx, func() (err error) {
			freed, err = c.heartbeat(ctx)
			return err
		}, "task", "heartbeat")
		if err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "heartbeat failed", "error", err)
		}
		if freed > 0 {
			c.log.WarnContext(ctx, "took over from a collector that died", "targets", freed)
		}
	}
}

// heartbeat writes one sign of life. It gives up after deadAfter, because other collectors then regard this one as dead anyway.
func (c *Collector) heartbeat(ctx context.Context) (freed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, deadAfter)
	defer cancel()
	return c.store.Queue.Heartbeat(ctx, c.id, deadAfter)
}

// work claims and fetches targets of one platform and kind until ctx ends.
func (c *Collector) work(ctx context.Context, p link.Platform, k Kind, h *hands) {
	most := callsAtOnce / 2
	for ctx.Err() == nil {
		began := c.now()
		var busy bool
		err := c.safely(ctx, func() (err error) {
			busy, err = c.round(ctx, p, k, h, most)
			return err
		}, "task", "round", "platform", p, "kind", k)
		if busy {
			most = claimable(most, c.now().Sub(began))
		}
		if err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "round failed", "platform", p, "kind", k, "error", err)
		}
		if !busy || err != nil {
			wait(ctx, jitter(c.poll))
		}
	}
}

// claimable returns how many targets to claim next, given that the last claim had last targets and took took.
func claimable(last int, took time.Duration) int {
	if took <= claimTime/2 {
		return min(mostClaimed, 2*last)
	}
	return min(mostClaimed, max(callsAtOnce/2, int(float64(last)*float64(claimTime)/float64(took))))
}

// claimTimeout bounds the database work of a round before its first fetch.
const claimTimeout = 30 * time.Second

// round claims up to most targets, or one batch if that is more, and fetches them. It returns false if there was nothing to do.
func (c *Collector) round(ctx context.Context, p link.Platform, k Kind, h *hands, most int) (busy bool, err error) {
	claim, ways, within, err := c.claimRound(ctx, p, k, most)
	if err != nil || len(claim.Targets) == 0 {
		return false, err
	}
	defer h.take(claim.Targets, true)()
	return true, c.collect(ctx, claim, ways, within)
}

// claimRound claims the targets of a round. The claim is empty if nothing is due or if all sources are paused. claimRound also returns
// the sources to ask and how long their calls may take.
func (c *Collector) claimRound(ctx context.Context, p link.Platform, k Kind, most int) (claim queue.Claim, sources ways, within time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	lanes, err := c.store.Queue.DueLanes(ctx, p, string(k))
	if err != nil || len(lanes) == 0 {
		return claim, nil, 0, err
	}
	sources, batch, err := c.ready(ctx, p, k)
	if err != nil || batch == 0 {
		return claim, nil, 0, err
	}
	held, within := c.times(k)
	request := queue.ClaimRequest{Collector: c.id, Platform: p, Kind: string(k), Lanes: draw(lanes), Limit: max(batch, most/batch*batch), Lease: held}
	if batch > 1 {
		request.Ahead = fillAhead
	}
	claim, err = c.store.Queue.Claim(ctx, request)
	return claim, sources, within, err
}

// ready returns the sources that may be asked now, and how many targets one call takes. The number is 0 if all sources are paused: due
// targets then stay due.
func (c *Collector) ready(ctx context.Context, p link.Platform, k Kind) (ways, int, error) {
	if err := c.replan(ctx); err != nil {
		return nil, 0, err
	}
	ways, err := c.open(ctx)
	return ways, ways.batch(Target{Platform: p, Kind: k}), err
}

// times returns how long the lease of a claim is, and how long its calls may take. A dead collector is noticed much earlier.
func (c *Collector) times(k Kind) (held, within time.Duration) {
	within = accountCallTime
	if k == KindVideo {
		within = 2 * c.patience
	}
	return within + leaseMargin, within
}

// draw returns lanes in a random order in which lanes with a greater weight tend to come first.
func draw(lanes []queue.Lane) []queue.Lane {
	left, order := slices.Clone(lanes), make([]queue.Lane, 0, len(lanes))
	for len(left) > 0 {
		sum := 0
		for _, l := range left {
			sum += laneWeights[l]
		}
		n := rand.IntN(sum) //nolint:gosec // chance, not secrecy
		at := slices.IndexFunc(left, func(l queue.Lane) bool { n -= laneWeights[l]; return n < 0 })
		order, left = append(order, left[at]), slices.Delete(left, at, at+1)
	}
	return order
}

// collect fetches all targets of a claim. It stops its calls after within.
func (c *Collector) collect(ctx context.Context, claim queue.Claim, ways ways, within time.Duration) error {
	// Cancelling stops calls, but what was answered is still written.
	calls, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	writing := context.WithoutCancel(ctx)

	attrs := []any{"platform", claim.Targets[0].Platform, "kind", claim.Targets[0].Kind, "targets", idsOf(claim.Targets)}
	err := c.safely(writing, func() error {
		due, err := c.putOff(writing, claim)
		if err != nil {
			return err
		}
		return c.pursue(calls, writing, claim, ways, errands(due))
	}, attrs...)
	if p, ok := errors.AsType[*panicked](err); ok {
		err = errors.Join(err, c.safely(writing, func() error { return c.abandon(writing, claim, p) }, attrs...))
	}
	return err
}

// putOff gives those of a claim's targets back whose turn has not come, and returns the others.
func (c *Collector) putOff(ctx context.Context, claim queue.Claim) ([]queue.Target, error) {
	var early []ingest.Outcome
	due := slices.DeleteFunc(slices.Clone(claim.Targets), func(t queue.Target) bool {
		next, due := c.plan.of(t.Platform, Kind(t.Kind)).due(t, c.now())
		if !due {
			early = append(early, ingest.Outcome{Target: t, NextAt: store.InstantOf(next), Pace: t.Pace, State: t.State})
		}
		return !due
	})
	return due, c.writer.Acknowledge(ctx, claim, claim.At, early)
}

// outcome is outcome with the stretch that is in force.
func (c *Collector) outcome(t queue.Target, r Result, source string, now time.Time) ingest.Outcome {
	return outcome(t, r, source, c.plan.of(t.Platform, Kind(t.Kind)), now)
}

// answer is what became of a batch.
type answer struct {
	at      time.Time               // when the source was asked
	done    []ingest.Outcome        // to be written
	lacking []lacking               // to be written once another source has said what this one does not know
	found   []ingest.AccountOutcome // of accounts, to be written
	open    []queue.Target          // not answered, since the source could not be asked: to go back
	later   map[string]time.Time    // until when those of them wait, by external id, for which a budget has too few units left
	refused []ingest.Outcome        // this source cannot answer: to be written unless another can
	failed  []ingest.Outcome        // the call failed, maybe by their fault: the same
	next    []queue.Target          // not found under one handle; to be asked for under the next
	// unanswered are the targets of a later call that failed with failure.
	unanswered []queue.Target
	failure    *Failure
	divide     *Failure // the call was refused and must be repeated for each half of the batch; no other field is set
	paused     bool     // this failure has paused the source
	late       bool     // the claim's time was up before the call was made: all targets are open
}

// fetch asks one source for targets, in as many calls as needed, and writes each answer at once. A video that is not found under one
// handle is asked for under the next. The fields done and next of the returned answer are empty. The sources in behind may fill in
// fields that this source does not know.
func (c *Collector) fetch(ctx, writing context.Context, claim queue.Claim, w way, behind ways, targets []queue.Target) (answer, error) {
	var mu sync.Mutex
	var errs []error
	all := answer{later: map[string]time.Time{}}
	searches := newSearches(targets)
	for next := targets; len(next) > 0; {
		round := next
		next = nil
		errs = append(errs, c.atOnce(writing, c.batches(w.source, round), func(batch []queue.Target) error {
			a, err := c.handle(ctx, writing, claim, w, behind, batch, searches)
			mu.Lock()
			defer mu.Unlock()
			next = append(next, a.next...)
			all.add(a)
			return err
		}))
	}
	return c.endSearches(all, searches, w), errors.Join(errs...)
}

// endSearches refuses the targets whose search ended early: at least one handle was tried, and then the source could not be asked.
// The next fetch continues with the other handles.
func (c *Collector) endSearches(a answer, all searches, w way) answer {
	now := c.now()
	a.open = slices.DeleteFunc(a.open, func(t queue.Target) bool {
		r, ok := all[t.ExternalID].stopped(ask(t, now))
		if ok {
			delete(a.later, t.ExternalID)
			a.refused = append(a.refused, all[t.ExternalID].noted(c.outcome(t, r, w.source.Name(), now)))
		}
		return ok
	})
	for i, o := range a.failed {
		a.failed[i] = all[o.Target.ExternalID].noted(o)
	}
	return a
}

// call makes one call for one batch.
func (c *Collector) call(ctx context.Context, w way, behind ways, batch []queue.Target, searches searches) (answer, error) {
	a := answer{at: c.now()}
	asked := make([]Target, len(batch))
	for i, t := range batch {
		asked[i] = ask(t, a.at)
	}
	taken, ok, err := c.reserve(ctx, w, asked)
	if err != nil || !ok {
		a.open = batch
		a.putOff(taken.later)
		return a, err
	}
	results, err := c.spend(askingFor(ctx, batch), w, asked, taken)
	if err != nil && (ctx.Err() != nil || errors.Is(err, ErrNoTime)) {
		a.open, a.late = batch, !errors.Is(ctx.Err(), context.Canceled) // shutdown, or the claim's time is up: not the source's fault
		return a, nil                                                   //nolint:nilerr // the targets go back
	}
	if failure := (*Failure)(nil); errors.As(err, &failure) {
		return c.failed(context.WithoutCancel(ctx), w, batch, failure)
	}
	if err != nil {
		a.open = batch
		return a, err
	}
	if err := c.answered(context.WithoutCancel(ctx), w, taken, a.at); err != nil {
		return a, err
	}
	compare(batch, results)
	for i, r := range results {
		if r.Failed != nil {
			a.unanswered, a.failure = append(a.unanswered, batch[i]), r.Failed
			continue
		}
		r = whose(batch[i], asked[i], r, a.at)
		search := searches[batch[i].ExternalID]
		r, next := search.under(w.source, batch[i], asked[i], r)
		if next != nil {
			a.next = append(a.next, *next)
			continue
		}
		o := search.noted(c.outcome(batch[i], r, w.source.Name(), a.at))
		if r.Class != OK || o.Suspect != nil || o.Detail != "" {
			c.log.InfoContext(ctx, "no number written", "source", w.source.Name(), "platform", batch[i].Platform, "kind", batch[i].Kind, "id", batch[i].ExternalID,
				"class", r.Class, "detail", o.Detail, "next_at", o.NextAt.Time())
		}
		switch {
		case r.Class == Unsupported, r.Class == Missing, r.Class == Taken, r.Class == Unconfirmed:
			a.refused = append(a.refused, o)
		case batch[i].Kind == string(KindAccount):
			if o.Suspect != nil {
				r.Account = nil
			}
			a.found = append(a.found, ingest.AccountOutcome{Outcome: o, Account: r.Account})
		case o.Facts != nil && asked[i].NeedDetails && lacks(o.Facts) && behind.batch(asked[i]) > 0:
			a.lacking = append(a.lacking, lacking{o, a.at})
		default:
			a.done = append(a.done, o)
		}
	}
	c.log.DebugContext(ctx, "fetched", "source", w.source.Name(), "targets", len(batch), "elapsed", c.now().Sub(a.at))
	return a, nil
}

// wait waits, and returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
