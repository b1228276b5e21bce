package collector

import (
	"context"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// The simulation runs these by hand, because its clock stands still while a collector works.

// Start is what Run does first.
func (c *Collector) Start(ctx context.Context) error { return c.start(ctx) }

// Round runs one round of each source. It returns true if any target was due.
func (c *Collector) Round(ctx context.Context) (busy bool, err error) {
	for _, s := range c.sources {
		workers := c.workers(s)
		fetched, err := workers[len(workers)-1].round(ctx, false) // the first one may be reserved for waiting organisations
		if err != nil {
			return busy, err
		}
		busy = busy || fetched
	}
	return busy, nil
}

// RunJobs runs the upkeep jobs that are due.
func (c *Collector) RunJobs(ctx context.Context) error { return c.runDueJobs(ctx) }

// Throttle returns the throttle of a platform's videos.
func (c *Collector) Throttle(p link.Platform) schedule.Throttle {
	return c.throttle(source.Target{Platform: p, Kind: source.KindVideo})
}
