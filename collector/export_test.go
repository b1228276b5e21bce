package collector

import (
	"context"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Start prepares the collector in the same way as Run, but fetches nothing. Tests then call ClaimAndFetch, so that they can advance their
// clock between the fetches.
func (c *Collector) Start(ctx context.Context) error { return c.prepareRun(ctx) }

// ClaimAndFetch claims and fetches due targets once for each source. It returns true if a target was due at any source.
func (c *Collector) ClaimAndFetch(ctx context.Context) (busy bool, err error) {
	for _, s := range c.Sources {
		fetched, err := c.newWorkers(s)[0].claimAndFetch(ctx, false)
		if err != nil {
			return busy, err
		}
		busy = busy || fetched
	}
	return busy, nil
}

// WriteHeartbeat writes a heartbeat.
func (c *Collector) WriteHeartbeat(ctx context.Context) error { return c.writeHeartbeat(ctx) }

// MaxMissedHeartbeats is the number of failed heartbeats after which a collector claims nothing.
const MaxMissedHeartbeats = maxMissedHeartbeats

// RunJobs runs the upkeep jobs that are due.
func (c *Collector) RunJobs(ctx context.Context) error { return c.jobs.RunDueJobs(ctx) }

// RepairTimes corrects times in the future that a wrong clock has written, if a repair is due.
func (c *Collector) RepairTimes(ctx context.Context) error { return c.repairTimes(ctx) }

// Throttle returns the current throttle of a platform's videos, from 0 (not throttled) to schedule.MaxThrottle.
func (c *Collector) Throttle(p link.Platform) schedule.Throttle {
	return c.currentThrottle(queue.Target{Platform: p, Kind: queue.KindVideo})
}
