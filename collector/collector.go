// Package collector fills in the numbers: it claims due targets from the queue, asks a source for them, and stores the answers.
//
// Each source has its own queue and its own workers. A worker runs one loop (worker.go): it claims the batch of one call, calls the source
// (package quota), decides what each answer means (outcome.go, package verify) and when the target is due next (package schedule), and stores
// the results and the next fetch in one transaction. If a source cannot answer for a target, the target moves to the queue of the next source
// (attempt.go). If a collector dies, its leases end, or other collectors free them once its heartbeat stops. Storing an answer twice changes
// nothing.
//
// The main type is [Collector]. Start reading at worker.round. docs/architecture.md draws the path of one answer.
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

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// Options are the parts and settings of a collector.
type Options struct {
	Store *store.Store
	// Sources are asked in this order for each target.
	Sources []source.Source
	// Now is the collector's clock.
	Now    func() time.Time
	Logger *slog.Logger
	// Concurrency, if it is not 0, replaces the number of calls at the same time of every source.
	Concurrency int
	// Poll is how long a worker waits if nothing is due; 0 means DefaultPoll.
	Poll time.Duration
	// Heartbeat is the time between two heartbeats; 0 means two seconds. A collector without a heartbeat for deadAfter counts as dead.
	Heartbeat time.Duration
	// Panicked is called after each recovered panic. If it is nil, panics are only logged.
	Panicked func()
}

// DefaultPoll is how long a worker waits if nothing is due.
const DefaultPoll = 500 * time.Millisecond

const deadAfter = 10 * time.Second

// laneWeights are how often a lane is served first if targets are due in all lanes. A lane without a due target does not delay the others.
var laneWeights = map[store.Lane]int{store.LaneInteractive: 50, store.LanePremium: 30, store.LaneBasic: 15, store.LaneFree: 5}

// Collector is the collecting of one process. Several may work on one database.
type Collector struct {
	id          uuid.UUID
	store       *store.Store
	sources     []source.Source
	quota       *quota.Quota
	throttles   throttles
	now         func() time.Time
	log         *slog.Logger
	concurrency int
	poll        time.Duration
	heartbeats  time.Duration
	panicked    func()
}

// New returns a collector; Run makes it work.
func New(o Options) (*Collector, error) {
	switch {
	case o.Store == nil || o.Now == nil || o.Logger == nil:
		return nil, errors.New("collector: Store, Now and Logger are required")
	case len(o.Sources) == 0:
		return nil, errors.New("collector: no source is configured, so nothing could be collected")
	}
	c := &Collector{id: store.NewID(), store: o.Store, sources: o.Sources, quota: quota.New(o.Store, o.Now, o.Logger), now: o.Now, log: o.Logger,
		concurrency: o.Concurrency, poll: o.Poll, heartbeats: o.Heartbeat, panicked: o.Panicked}
	if c.poll <= 0 {
		c.poll = DefaultPoll
	}
	if c.heartbeats <= 0 {
		c.heartbeats = 2 * time.Second
	}
	return c, nil
}

// Run collects until ctx ends. It returns when all claimed targets are stored or given back.
func (c *Collector) Run(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	c.log.InfoContext(ctx, "collecting", "collector", c.id, "sources", c.names())
	var wg sync.WaitGroup
	wg.Go(func() { c.beat(ctx) })
	wg.Go(func() { c.upkeep(ctx) })
	for _, s := range c.sources {
		for _, w := range c.workers(s) {
			wg.Go(func() { w.run(ctx) })
		}
	}
	wg.Wait()
	// ctx has ended; claimed targets that are left are given back at once.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.store.Retire(closing, c.id); err != nil {
		return err
	}
	c.log.InfoContext(closing, "stopped collecting", "collector", c.id)
	return nil
}

// start prepares the database for this collector and its sources.
func (c *Collector) start(ctx context.Context) error {
	if err := c.quota.Restart(ctx, c.sources); err != nil {
		return err
	}
	if err := c.publishRoutes(ctx); err != nil {
		return err
	}
	_, err := c.store.Heartbeat(ctx, c.id, deadAfter)
	return err
}

// publishRoutes stores which source is asked first for each platform and kind.
func (c *Collector) publishRoutes(ctx context.Context) error {
	var routes []store.Route
	for _, p := range link.Platforms {
		for _, k := range []source.Kind{source.KindVideo, source.KindAccount} {
			if s := c.nextSource(store.Target{Platform: p, Kind: k}, attempt{}); s != nil {
				routes = append(routes, store.Route{Platform: p, Kind: k, Route: s.Name()})
			}
		}
	}
	return c.store.PublishRoutes(ctx, routes, c.names())
}

func (c *Collector) names() []string {
	names := make([]string, len(c.sources))
	for i, s := range c.sources {
		names[i] = s.Name()
	}
	return names
}

// beat writes heartbeats and frees the targets of dead collectors.
func (c *Collector) beat(ctx context.Context) {
	for wait(ctx, c.heartbeats) {
		var freed int64
		err := c.safely(ctx, func() (err error) {
			freed, err = c.heartbeat(ctx)
			return err
		}, "task", "heartbeat")
		if err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "heartbeat failed", "error", err)
		}
		if freed > 0 {
			c.log.WarnContext(ctx, "freed the targets of a dead collector", "targets", freed)
		}
	}
}

// heartbeat writes one heartbeat, and routes targets that were tracked while the routes were published. It gives up after deadAfter, because other collectors then regard this one as dead anyway.
func (c *Collector) heartbeat(ctx context.Context) (freed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, deadAfter)
	defer cancel()
	if err := c.store.AssignRoutes(ctx); err != nil {
		return 0, err
	}
	return c.store.Heartbeat(ctx, c.id, deadAfter)
}

// draw returns lanes in a random order in which lanes with a greater weight tend to come first.
func draw(lanes []store.Lane) []store.Lane {
	left, order := slices.Clone(lanes), make([]store.Lane, 0, len(lanes))
	for len(left) > 0 {
		sum := 0
		for _, l := range left {
			sum += laneWeights[l]
		}
		n := rand.IntN(sum) //nolint:gosec // chance, not secrecy
		at := slices.IndexFunc(left, func(l store.Lane) bool { n -= laneWeights[l]; return n < 0 })
		order, left = append(order, left[at]), slices.Delete(left, at, at+1)
	}
	return order
}

// wait waits for d. It returns false if ctx ended first.
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
