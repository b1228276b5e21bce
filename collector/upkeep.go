package collector

import (
	"context"
	"errors"
	"time"

	"github.com/reeltally/reeltally/store"
)

// Upkeep is what one collector does a day for all: points roll up into weeks, and what is too old is dropped.

const (
	upkeepJob   = "upkeep"
	upkeepEvery = time.Minute // how often a collector looks whether it is due
	// upkeepLease is after how long another takes over from a collector that died at it. It is extended after each transaction.
	upkeepLease = 15 * time.Minute
	upkeepRetry = time.Hour // when something was in use, or failed
	// upkeepAt is when of the UTC day the upkeep is due.
	upkeepAt = 3 * time.Hour
	// quotaMemory is for how long the counts of budgets are kept.
	quotaMemory = 100 * 24 * time.Hour
)

// upkeep looks for work until ctx ends.
func (c *Collector) upkeep(ctx context.Context) {
	for {
		err := c.safely(ctx, func() error { return c.keepUp(ctx) }, "task", "upkeep")
		if err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "upkeep failed", "error", err)
		}
		if !wait(ctx, upkeepEvery) {
			return
		}
	}
}

// keepUp does the upkeep when it is due and nobody else does it.
func (c *Collector) keepUp(ctx context.Context) error {
	lease, ok, err := c.store.ClaimJob(ctx, upkeepJob, upkeepLease)
	if err != nil || !ok {
		return err
	}
	next := store.DateOf(c.now()).Time().Add(24*time.Hour + upkeepAt)
	done, err := c.store.ApplyRetention(ctx, func() error { return lease.Extend(ctx) })
	if err != nil || len(done.Busy) > 0 {
		next = c.now().Add(upkeepRetry)
	}
	c.log.InfoContext(ctx, "upkeep", "weeks_written", done.Weeks, "days_dropped", done.Days, "months_dropped", done.Months,
		"months_in_use", done.Busy, "expired", done.Expired)
	if errors.Is(err, store.ErrLeaseLost) {
		return err
	}
	// A collector that is stopping gives the job back all the same.
	return errors.Join(err, c.forgetQuotas(ctx), lease.Finish(context.WithoutCancel(ctx), next))
}

func (c *Collector) forgetQuotas(ctx context.Context) error {
	for _, s := range c.sources {
		for _, b := range s.Budgets() {
			if b.Window == nil {
				continue
			}
			window, _ := b.Window(c.now().Add(-quotaMemory))
			if err := c.store.ForgetQuota(ctx, bucketKey(s, b.Name), window); err != nil {
				return err
			}
		}
	}
	return nil
}
