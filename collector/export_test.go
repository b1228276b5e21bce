package collector

import (
	"context"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// Start prepares the collector like Run, but fetches nothing. Tests then call Round, so that their clock does not move during fetches.
func (c *Collector) Start(ctx context.Context) error { return c.start(ctx) }

// Round claims and fetches due targets once for each source. It returns true if any target was due.
func (c *Collector) Round(ctx context.Context) (busy bool, err error) {
	for _, s := range c.Sources {
		fetched, err := c.workers(s)[0].round(ctx, false)
		if err != nil {
			return busy, err
		}
		busy = busy || fetched
	}
	return busy, nil
}

// RunJobs runs the upkeep jobs that are due.
func (c *Collector) RunJobs(ctx context.Context) error { return c.jobs.RunDue(ctx) }

// Throttle returns how strongly the fetches of a platform's videos are throttled at present.
func (c *Collector) Throttle(p link.Platform) schedule.Throttle {
	return c.throttle(source.Target{Platform: p, Kind: source.KindVideo})
}
