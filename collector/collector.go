// Package collector fetches the numbers of videos and accounts. It claims due targets from the queue, asks a source for their numbers, and
// stores the answers.
//
// Each source has its own queue and its own workers. A worker runs one loop (worker.go). It claims a batch of targets for one call and
// calls the source (package quota). It decides what each answer means (outcome.go, package verify) and when the target is due next (package
// schedule). It stores the results and the time of the next fetch in one transaction.
//
// If a source cannot answer for a target, the target moves to the queue of the next source (attempt.go). If a collector dies, its leases
// expire, or other collectors free them after its heartbeat stops. An answer that is stored twice changes nothing.
//
// The main type is [Collector]. Start reading at worker.round. docs/architecture.md draws the path of one answer.
package collector

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/thumbnail"
	"github.com/reeltally/reeltally/collector/upkeep"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Options are the dependencies and the settings of a collector.
type Options struct {
	Store *store.Store
	// Sources are the configured sources. They are asked for a target in this order, until one source gives the target's numbers.
	Sources []source.Source
	// Now is the collector's clock.
	Now    func() time.Time
	Logger *slog.Logger
	// Concurrency is the number of calls that each source gets at the same time. If it is 0, the Concurrency method of each source decides.
	Concurrency int
	// Poll is how long a worker waits if nothing is due; 0 means DefaultPoll.
	Poll time.Duration
	// Intervals are the times between two fetches of a target, by lane. A lane without an interval has schedule.DefaultInterval.
	Intervals schedule.Intervals
	// Heartbeat is the time between two heartbeats; 0 means two seconds. A collector that wrote no heartbeat for deadAfter counts as dead.
	Heartbeat time.Duration
	// Thumbnails fetches the pictures of videos. If it is nil, no pictures are fetched.
	Thumbnails *thumbnail.Fetcher
	// Panicked is called after each recovered panic. If it is nil, panics are only logged.
	Panicked func()
}

// DefaultPoll is how long a worker waits if nothing is due.
const DefaultPoll = 500 * time.Millisecond

const deadAfter = 10 * time.Second

// laneWeights are the relative probabilities with which a claim serves each lane first. If that lane is empty, another lane is served.
var laneWeights = map[queue.Lane]float64{queue.LaneInteractive: 50, queue.LanePremium: 30, queue.LaneBasic: 15, queue.LaneFree: 5}

// Collector fetches due targets in this process. Several collectors can use one database at the same time.
type Collector struct {
	Options
	id         uuid.UUID
	queue      *queue.Queue
	writer     *ingest.Writer
	quota      *quota.Quota
	throttles  throttles
	jobs       upkeep.Jobs
	thumbnails thumbnail.Copier
}

// New returns a collector that does nothing until Run is called. It returns an error if a required option is missing.
func New(o Options) (*Collector, error) {
	switch {
	case o.Store == nil || o.Now == nil || o.Logger == nil:
		return nil, errors.New("collector: Store, Now and Logger are required")
	case len(o.Sources) == 0:
		return nil, errors.New("collector: no source is configured, so nothing could be collected")
	}
	o.Poll, o.Heartbeat = cmp.Or(o.Poll, DefaultPoll), cmp.Or(o.Heartbeat, 2*time.Second)
	writer := ingest.New(o.Store)
	return &Collector{Options: o, id: store.NewID(), queue: o.Store.Queue, writer: writer, quota: quota.New(o.Store.Queue, o.Now, o.Logger),
		jobs:       upkeep.Jobs{Store: o.Store, Writer: writer, Now: o.Now, Logger: o.Logger},
		thumbnails: thumbnail.Copier{Fetcher: o.Thumbnails, Store: o.Store, Logger: o.Logger}}, nil
}

// Run fetches due targets until ctx ends. Before it returns, it stores or releases all claimed targets. Run stops early and returns a
// *store.DataKindError if a source gives made-up numbers and the database has real ones, or the other way round.
func (c *Collector) Run(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the collector was stopped before it claimed a target
		}
		return err
	}
	c.Logger.InfoContext(ctx, "collecting", "collector", c.id, "sources", c.sourceNames())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	wg.Go(func() { c.repeat(ctx, c.Heartbeat, "heartbeat", c.heartbeat) })
	wg.Go(func() {
		c.jobs.PrepareDays(ctx)
		c.repeat(ctx, upkeep.Every, "upkeep", c.jobs.Check)
	})
	if c.Thumbnails != nil {
		wg.Go(func() { c.repeat(ctx, c.Poll, "thumbnails", c.thumbnails.CopyDue) })
	}
	for _, s := range c.Sources {
		for _, w := range c.workers(s) {
			wg.Go(func() { w.run(ctx, stop) })
		}
	}
	wg.Wait()
	// ctx has ended, so the last database queries need a context that is not cancelled. They release targets that are still claimed.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.queue.Retire(closing, c.id); err != nil {
		return err
	}
	c.Logger.InfoContext(closing, "stopped collecting", "collector", c.id)
	if kind, ok := errors.AsType[*store.DataKindError](context.Cause(ctx)); ok {
		return kind
	}
	return nil
}

// start prepares Run. It ends the pauses that refused credentials have caused, publishes the routes, and writes the first heartbeat. The
// heartbeat lists what the sources can fetch.
func (c *Collector) start(ctx context.Context) error {
	if err := c.quota.Restart(ctx, c.Sources); err != nil {
		return err
	}
	if err := c.publishRoutes(ctx); err != nil {
		return err
	}
	return c.heartbeat(ctx)
}

// publishRoutes stores which source is asked first for the videos and for the accounts of each platform.
func (c *Collector) publishRoutes(ctx context.Context) error {
	var routes []queue.Route
	for _, p := range link.Platforms {
		for _, k := range []source.Kind{source.KindVideo, source.KindAccount} {
			if s := c.nextSource(queue.Target{Platform: p, Kind: k}, attempt{}); s != nil {
				routes = append(routes, queue.Route{Platform: p, Kind: k, Route: s.Name()})
			}
		}
	}
	return c.queue.PublishRoutes(ctx, routes, c.sourceNames())
}

// serves returns the forms of targets that at least one of the configured sources can fetch.
func (c *Collector) serves() []queue.Form {
	var forms []queue.Form
	for _, p := range link.Platforms {
		for _, k := range []source.Kind{source.KindVideo, source.KindAccount} {
			for _, byHandle := range []bool{true, false} {
				if f := (queue.Form{Platform: p, Kind: k, ByHandle: byHandle}); slices.ContainsFunc(c.Sources, func(s source.Source) bool { return servesForm(s, f) }) {
					forms = append(forms, f)
				}
			}
		}
	}
	return forms
}

// exampleIDs are possible ids of a video and an account of each platform. A source is asked whether it serves them.
var exampleIDs = map[link.Platform]map[source.Kind]string{
	link.TikTok:    {source.KindVideo: "7338812345678901234", source.KindAccount: "6748451240264420610"},
	link.Instagram: {source.KindVideo: "C3xYz12AbCd", source.KindAccount: "17841400000000000"},
	link.YouTube:   {source.KindVideo: "dQw4w9WgXcQ", source.KindAccount: "UCuAXFkgsw1L7xaCfnd5JJOw"},
	link.Facebook:  {source.KindVideo: "1234567890123456", source.KindAccount: "100044000000000"},
}

// servesForm returns true if a source can fetch targets of the form f.
func servesForm(s source.Source, f queue.Form) bool {
	t := source.Target{Platform: f.Platform, Kind: f.Kind, ExternalID: exampleIDs[f.Platform][f.Kind]}
	switch {
	case f.ByHandle:
		t.Handle = "example"
		if f.Kind == source.KindAccount {
			t.ExternalID = "@example"
		}
	case f.Kind == source.KindAccount:
		t.AccountID = t.ExternalID
	}
	_, ok := s.Serves(t)
	return ok && (f.ByHandle || f.Kind == source.KindAccount || !s.AsksByHandle(t))
}

// Published describes sources and their budgets at the time now. A heartbeat stores the result, so that other processes can show the status
// of collecting.
func Published(sources []source.Source, now time.Time) []queue.Source {
	out := make([]queue.Source, len(sources))
	for i, s := range sources {
		out[i] = queue.Source{Name: s.Name(), Budgets: []queue.Budget{}}
		for _, b := range s.Budgets() {
			budget := queue.Budget{Name: b.Name, Limit: b.Limit}
			if b.Window != nil {
				budget.Window, budget.Ends = b.Window(now)
				budget.Ends = budget.Ends.UTC()
			}
			out[i].Budgets = append(out[i].Budgets, budget)
		}
	}
	return out
}

// sourceNames returns the names of the configured sources, in their order.
func (c *Collector) sourceNames() []string {
	names := make([]string, len(c.Sources))
	for i, s := range c.Sources {
		names[i] = s.Name()
	}
	return names
}

// repeat runs a task again and again until ctx ends, and waits for the duration every after each run. It logs the errors and the panics of
// the task.
func (c *Collector) repeat(ctx context.Context, every time.Duration, task string, run func(ctx context.Context) error) {
	for {
		err := c.safely(ctx, func() error { return run(ctx) }, "task", task)
		if err != nil && ctx.Err() == nil {
			c.Logger.ErrorContext(ctx, "task failed", "task", task, "error", err)
		}
		if !wait(ctx, every, nil) {
			return
		}
	}
}

// heartbeat writes one heartbeat and frees the targets of dead collectors. It also assigns a source to targets that have none, because they
// were tracked while the routes were being published. It returns an error after deadAfter, because other collectors then treat this
// collector as dead.
func (c *Collector) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadAfter)
	defer cancel()
	if err := c.queue.AssignRoutes(ctx); err != nil {
		return err
	}
	freed, err := c.queue.Heartbeat(ctx, c.id, deadAfter, Published(c.Sources, c.Now()), c.serves()...)
	if freed > 0 {
		c.Logger.WarnContext(ctx, "freed the targets of a dead collector", "targets", freed)
	}
	return err
}

// weightedOrder returns the lanes in a random order. The probability that a lane comes before others is proportional to its weight: each lane
// gets a random arrival time, with a mean that is inversely proportional to the weight.
func weightedOrder(lanes []queue.Lane) []queue.Lane {
	arrival := map[queue.Lane]float64{}
	for _, l := range lanes {
		arrival[l] = rand.ExpFloat64() / laneWeights[l] //nolint:gosec // randomness for fairness, not for security
	}
	return slices.SortedFunc(slices.Values(lanes), func(a, b queue.Lane) int { return cmp.Compare(arrival[a], arrival[b]) })
}

// wait blocks for the duration d, or until a value arrives on wake, which may be nil. It returns false if ctx ended first.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
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
