package collector

import (
	"context"
	"errors"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Upkeep is work that one collector does for all, claimed as a job. Once a day it rolls points up into weeks and drops old points.
// Once an hour it deletes everything else that has expired. Servers do not run it: without a collector no points are written, and
// the idempotency keys that servers write have their own limit.

const (
	upkeepJob   = "upkeep"
	expiryJob   = "expiry"
	upkeepEvery = time.Minute // how often a collector checks whether a job is due
	// upkeepLease is how long a job stays claimed if its collector dies. The lease is extended after each transaction.
	upkeepLease = 15 * time.Minute
	upkeepRetry = time.Hour // after a failure, or if a month was in use
	// upkeepAt is the time of the UTC day at which upkeep is due.
	upkeepAt    = 3 * time.Hour
	expiryEvery = time.Hour
)

// upkeep creates the partitions of the coming days, and then runs due jobs until ctx ends.
func (c *Collector) upkeep(ctx context.Context) {
	if err := c.store.PrepareDays(ctx); err != nil && ctx.Err() == nil {
		c.log.ErrorContext(ctx, "cannot create the partitions of the coming days", "error", err)
	}
	for {
		again := upkeepEvery
		err := c.safely(ctx, func() error { return c.keepUp(ctx) }, "task", "upkeep")
		if _, wrong := errors.AsType[*store.ClockError](err); wrong {
			c.log.WarnContext(ctx, "nothing is deleted because the clock may be wrong", "error", err)
			again = upkeepRetry
		} else if err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "upkeep failed", "error", err)
		}
		if !wait(ctx, again) {
			return
		}
	}
}

// keepUp runs each job that is due and that no other collector is running.
func (c *Collector) keepUp(ctx context.Context) error {
	return errors.Join(c.doJob(ctx, expiryJob, c.deleteExpired), c.doJob(ctx, upkeepJob, c.applyRetention))
}

// doJob runs a job if it is due. The job returns when it will be due next.
func (c *Collector) doJob(ctx context.Context, name string, job func(ctx context.Context, alive func() error) (next time.Time, err error)) error {
	lease, ok, err := c.store.Queue.ClaimJob(ctx, name, upkeepLease)
	if err != nil || !ok {
		return err
	}
	next, err := job(ctx, func() error { return lease.Extend(ctx) })
	if err != nil {
		next = c.now().Add(upkeepRetry)
	}
	if errors.Is(err, queue.ErrLeaseLost) {
		return err
	}
	// A collector that is stopping gives the job back all the same.
	return errors.Join(err, lease.Finish(context.WithoutCancel(ctx), next))
}

func (c *Collector) applyRetention(ctx context.Context, alive func() error) (time.Time, error) {
	next := store.DateOf(c.now()).Time().Add(24*time.Hour + upkeepAt)
	done, err := c.writer.ApplyRetention(ctx, alive)
	if len(done.Busy) > 0 {
		next = c.now().Add(upkeepRetry)
	}
	c.log.InfoContext(ctx, "upkeep", "weeks_written", done.Weeks, "days_dropped", done.Days, "months_dropped", done.Months,
		"months_in_use", done.Busy, "expired", done.Expired)
	if err != nil {
		return next, err
	}
	orphans, err := c.store.Queue.DeleteOrphans(ctx, alive)
	c.logDeleted(ctx, orphans)
	return next, err
}

func (c *Collector) deleteExpired(ctx context.Context, alive func() error) (time.Time, error) {
	deleted, err := c.writer.DeleteExpired(ctx, alive)
	c.logDeleted(ctx, deleted)
	return c.now().Add(expiryEvery), err
}

func (c *Collector) logDeleted(ctx context.Context, rows map[string]int64) {
	for table, n := range rows {
		if n > 0 {
			c.log.InfoContext(ctx, "expired rows deleted", "table", table, "rows", n)
		}
	}
}
