package collector

import (
	"context"
	"errors"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Upkeep is a set of jobs that one collector runs for all collectors, claimed in the database. Once a day, daily points are rolled up into
// weekly points and old points are deleted. Once an hour, all other expired records are deleted. Servers do not run upkeep: without a
// collector no points are written, and the idempotency keys that servers write have their own limit.

const (
	upkeepJob   = "upkeep"
	expiryJob   = "expiry"
	upkeepEvery = time.Minute // interval at which a collector checks whether a job is due
	// upkeepLease is how long a job stays claimed after its collector has died. The lease is extended after each transaction.
	upkeepLease = 15 * time.Minute
	upkeepRetry = time.Hour // delay after a failed job, or after a job that could not drop the partition of a month because it was in use
	// upkeepAt is the time after midnight UTC at which the daily job is due.
	upkeepAt    = 3 * time.Hour
	expiryEvery = time.Hour
)

// upkeep creates the partitions of the coming days, and then runs due jobs until ctx ends.
func (c *Collector) upkeep(ctx context.Context) {
	if err := c.Store.PrepareDays(ctx); err != nil && ctx.Err() == nil {
		c.Logger.ErrorContext(ctx, "cannot create the partitions of the coming days", "error", err)
	}
	c.repeat(ctx, upkeepEvery, "upkeep", func(ctx context.Context) error {
		err := c.runDueJobs(ctx)
		if _, wrong := errors.AsType[*store.ClockError](err); wrong {
			c.Logger.WarnContext(ctx, "nothing is deleted because the clock may be wrong", "error", err)
			wait(ctx, upkeepRetry, nil)
			return nil
		}
		return err
	})
}

// runDueJobs runs each job that is due and that no other collector is running.
func (c *Collector) runDueJobs(ctx context.Context) error {
	return errors.Join(c.runJob(ctx, expiryJob, c.deleteExpired), c.runJob(ctx, upkeepJob, c.applyRetention))
}

// runJob runs a job if it is due. The job returns the time at which it is due next.
func (c *Collector) runJob(ctx context.Context, name string, job func(ctx context.Context, alive func() error) (next time.Time, err error)) error {
	lease, ok, err := c.queue.ClaimJob(ctx, name, upkeepLease)
	if err != nil || !ok {
		return err
	}
	next, err := job(ctx, func() error { return lease.Extend(ctx) })
	if err != nil {
		next = c.Now().Add(upkeepRetry)
	}
	if errors.Is(err, queue.ErrLeaseLost) {
		return err
	}
	// The job is released even if the collector is stopping.
	return errors.Join(err, lease.Finish(context.WithoutCancel(ctx), next))
}

// applyRetention rolls daily points up into weekly points and deletes old points. It returns the time of the next run.
func (c *Collector) applyRetention(ctx context.Context, extendLease func() error) (time.Time, error) {
	next := store.DateOf(c.Now()).Time().Add(24*time.Hour + upkeepAt)
	done, err := c.writer.ApplyRetention(ctx, extendLease)
	if len(done.Busy) > 0 {
		next = c.Now().Add(upkeepRetry)
	}
	c.Logger.InfoContext(ctx, "upkeep", "weeks_written", done.Weeks, "days_dropped", done.Days, "months_dropped", done.Months,
		"months_in_use", done.Busy, "expired", done.Expired)
	if err != nil {
		return next, err
	}
	orphans, err := c.queue.DeleteOrphans(ctx, extendLease)
	c.logDeleted(ctx, orphans)
	return next, err
}

// deleteExpired deletes all other expired records, such as idempotency keys. It returns the time of the next run.
func (c *Collector) deleteExpired(ctx context.Context, extendLease func() error) (time.Time, error) {
	deleted, err := c.writer.DeleteExpired(ctx, extendLease)
	c.logDeleted(ctx, deleted)
	return c.Now().Add(expiryEvery), err
}

// logDeleted logs how many rows of each table were deleted, if any.
func (c *Collector) logDeleted(ctx context.Context, rows map[string]int64) {
	for table, n := range rows {
		if n > 0 {
			c.Logger.InfoContext(ctx, "expired rows deleted", "table", table, "rows", n)
		}
	}
}
