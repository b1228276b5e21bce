package collector

import (
	"context"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// The tests call these methods directly if their clock does not move while a collector works.

// Start does the preparations of Run.
func (c *Collector) Start(ctx context.Context) error { return c.start(ctx) }

// Round runs one round of each source. It returns true if any target was due.
func (c *Collector) Round(ctx context.Context) (busy bool, err error) {
	for _, s := range c.sources {
		fetched, err := c.workers(s)[0].round(ctx, false)
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
