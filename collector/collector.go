// Package collector fetches the numbers of videos and accounts. It claims due targets from the queue, asks a source for their numbers,
// and stores the answers.
//
// Each source has its own queue and its own workers. A worker (worker.go) leases a batch of due targets and calls the source (package quota). The
// worker decides what each answer means (outcome.go, package verify) and when the target is due next (package schedule). One transaction stores the
// answers and the due times.
//
// If a source cannot answer for a target, the target moves to the queue of the next source (attempt.go). If a collector dies, other
// collectors take over its targets when its heartbeat is missing or its leases expire. If the same answer is stored a second time,
// nothing changes.
//
// The main type is [Collector]. Start reading at worker.claimAndFetch. docs/architecture.md describes the path of one fetch.
package collector

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/thumbnail"
	"github.com/reeltally/reeltally/collector/upkeep"
	"github.com/reeltally/reeltally/collector/verify"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Options are the dependencies and the settings of a collector.
type Options struct {
	Store *store.Store
	// Sources are the configured sources. To fetch a target, the collector asks them in this order, until one source gives the target's
	// numbers.
	Sources []source.Source
	// Now returns the current time. Tests set it to a simulated clock.
	Now    func() time.Time
	Logger *slog.Logger
	// Poll is how long an idle worker waits before it looks again for due targets; 0 means DefaultPoll.
	Poll time.Duration
	// Intervals maps a lane (the priority of a target in the queue) to the time between two fetches of a target. A lane without an interval has
	// schedule.DefaultInterval.
	Intervals schedule.Intervals
	// Heartbeat is the time between two heartbeats of the collector; 0 means two seconds.
	Heartbeat time.Duration
	// Thumbnails fetches the pictures of videos. If it is nil, no pictures are fetched.
	Thumbnails *thumbnail.Fetcher
	// Traces records a span each time a worker claims due targets, fetches them and stores the answers. If Traces is nil, no spans are recorded.
	Traces trace.TracerProvider
	// Panicked is called after each recovered panic. If it is nil, panics are only logged.
	Panicked func()
}

// DefaultPoll is the default of Options.Poll.
const DefaultPoll = 500 * time.Millisecond

// deadAfter is the time without a heartbeat after which other collectors free a collector's targets.
const deadAfter = queue.RunningFor

// maxMissedHeartbeats is the number of consecutive heartbeats that can fail before the collector claims no more targets. This number of heartbeats
// takes at most five minutes. An export of histories waits only for a limited time for the answers of a collector without heartbeats: see
// queue.Queue.OldestFetch.
const maxMissedHeartbeats = 20

// laneWeights has a weight for each lane (the priority in the queue). The larger the weight, the
// more often a claim searches this lane first.
var laneWeights = map[queue.Lane]float64{queue.LaneInteractive: 50, queue.LanePremium: 30, queue.LaneBasic: 15, queue.LaneFree: 5}

// Collector fetches due targets in one process. Several collectors, in the same or in other processes, can use one database at the same
// time.
type Collector struct {
	Options
	id         uuid.UUID
	queue      *queue.Queue
	writer     *ingest.Writer
	quota      *quota.Quota
	throttles  throttles
	clock      clockGuard
	jobs       upkeep.Jobs
	thumbnails thumbnail.Copier
	unfinished unfinishedClaims

	disappearances   verify.Disappearances
	missedHeartbeats atomic.Int32 // number of failed heartbeats since the last successful one
}

// New returns a collector that does nothing until Run is called. It returns an error if a required option is missing.
func New(o Options) (*Collector, error) {
	switch {
	case o.Store == nil || o.Now == nil || o.Logger == nil:
		return nil, errors.New("collector: the options \"Store\", \"Now\" and \"Logger\" are required")
	case len(o.Sources) == 0:
		return nil, errors.New("collector: no source is configured, so nothing could be collected")
	}
	o.Poll, o.Heartbeat = cmp.Or(o.Poll, DefaultPoll), cmp.Or(o.Heartbeat, 2*time.Second)
	writer := ingest.New(o.Store)
	return &Collector{Options: o, id: store.NewID(), queue: o.Store.Queue, writer: writer, quota: quota.New(o.Store.Queue, o.Now, o.Logger),
		jobs:       upkeep.Jobs{Store: o.Store, Writer: writer, Now: o.Now, Logger: o.Logger},
		thumbnails: thumbnail.Copier{Fetcher: o.Thumbnails, Store: o.Store, Logger: o.Logger}}, nil
}

// Run fetches due targets until ctx ends, and stores or releases all claimed targets before it
// returns. It returns a *store.DataKindError if real and made-up numbers would mix.
func (c *Collector) Run(ctx context.Context) error {
	if err := c.prepareRun(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // ctx was cancelled before any target was claimed
		}
		return err
	}
	c.Logger.InfoContext(ctx, "the collector has started", "collector", c.id, "sources", source.Names(c.Sources))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The heartbeats go on until all workers have ended, so that other collectors do not claim the targets of fetches that are still ending.
	beating, stopHeartbeats := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHeartbeats()
	var heartbeats, wg sync.WaitGroup
	heartbeats.Go(func() { c.repeatTask(beating, c.Heartbeat, "heartbeat", c.writeHeartbeat) })
	wg.Go(func() {
		c.jobs.PrepareDays(ctx)
		c.repeatTask(ctx, upkeep.Every, "upkeep", c.jobs.RunDueJobsIfClockIsPlausible)
	})
	wg.Go(func() { c.repeatTask(ctx, upkeep.Every, "repair of times", c.repairTimes) })
	if c.Thumbnails != nil {
		wg.Go(func() { c.repeatTask(ctx, c.Poll, "thumbnails", c.thumbnails.CopyDuePictures) })
	}
	for _, s := range c.Sources {
		for _, w := range c.newWorkers(s) {
			wg.Go(func() { w.run(ctx, stop) })
		}
	}
	wg.Wait()
	stopHeartbeats()
	heartbeats.Wait()
	// RemoveCollector releases the targets that are still claimed. It gets a new context, because ctx has ended.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := c.queue.RemoveCollector(closing, c.id)
	if err == nil {
		c.Logger.InfoContext(closing, "stopped collecting", "collector", c.id)
	}
	if kind, ok := errors.AsType[*store.DataKindError](context.Cause(ctx)); ok {
		return errors.Join(kind, err)
	}
	return err
}

// prepareRun ends each pause whose cause was a refused credential. It then publishes the routes and writes the first heartbeat, which lists
// what the sources can fetch.
func (c *Collector) prepareRun(ctx context.Context) error {
	if err := c.quota.ResetRefusals(ctx, c.Sources); err != nil {
		return err
	}
	if err := c.publishRoutes(ctx); err != nil {
		return err
	}
	return c.writeHeartbeat(ctx)
}

// publishRoutes stores two sources for each platform: the one that is asked first for videos, and the one that is asked first for accounts.
func (c *Collector) publishRoutes(ctx context.Context) error {
	var routes []queue.Route
	for _, p := range link.Platforms {
		for _, k := range []queue.Kind{queue.KindVideo, queue.KindAccount} {
			if s := c.nextSource(queue.Target{Platform: p, Kind: k}, attempt{}); s != nil {
				routes = append(routes, queue.Route{Platform: p, Kind: k, Route: s.Name()})
			}
		}
	}
	return c.queue.PublishRoutes(ctx, routes, source.Names(c.Sources))
}

// repeatTask runs a task again and again until ctx ends, and pauses for the given interval after each run. It logs the errors and the
// panics of the task.
func (c *Collector) repeatTask(ctx context.Context, interval time.Duration, task string, run func(ctx context.Context) error) {
	for {
		err := c.runSafely(ctx, func() error { return run(ctx) }, "task", task)
		if err != nil && ctx.Err() == nil {
			c.Logger.ErrorContext(ctx, "task failed", "task", task, "error", err)
		}
		if !sleep(ctx, interval, nil) {
			return
		}
	}
}

// writeHeartbeat stores a heartbeat and frees the targets of dead collectors. It then releases the targets whose fetches ended because the database was
// unavailable, and assigns a source to each target that has none.
func (c *Collector) writeHeartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadAfter)
	defer cancel()
	freed, err := c.queue.Heartbeat(ctx, c.id, deadAfter, c.describeSources(), source.FormsOfFetchableTargets(c.Sources)...)
	if err != nil {
		c.missedHeartbeats.Add(1)
		return err
	}
	c.missedHeartbeats.Store(0)
	if freed > 0 {
		c.Logger.WarnContext(ctx, "freed the targets of a dead collector", "targets", freed)
	}
	if err := c.releaseUnfinished(ctx); err != nil {
		return err
	}
	// Targets that were tracked while publishRoutes was running have no source yet.
	return c.queue.AssignRoutes(ctx)
}

// describeSources returns the description of each source for the heartbeat. Each description says whether answers of its source are held back.
func (c *Collector) describeSources() []queue.Source {
	now := c.Now()
	described := source.Describe(c.Sources, now)
	for i := range described {
		described[i].HeldBack = c.disappearances.Cause(described[i].Name, now)
	}
	return described
}

// weightedOrder returns the lanes in a random order. The probability that a lane comes first is
// proportional to its weight in laneWeights.
func weightedOrder(lanes []queue.Lane) []queue.Lane {
	drawn := map[queue.Lane]float64{}
	for _, l := range lanes {
		// The smallest number comes first. The numbers are exponentially distributed, with the mean 1/weight.
		drawn[l] = rand.ExpFloat64() / laneWeights[l] //nolint:gosec // randomness for fairness, not for security
	}
	return slices.SortedFunc(slices.Values(lanes), func(a, b queue.Lane) int { return cmp.Compare(drawn[a], drawn[b]) })
}

// sleep waits for the given duration, or until the channel delivers a value. The channel may be
// nil. If ctx ends first, sleep returns false.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
		return true
	case <-t.C:
		return true
	}
}
