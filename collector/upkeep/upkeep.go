// Package upkeep deletes old data and rolls daily history points up into weekly points. [Jobs] has two jobs. A collector claims a due job
// in the database and runs it for all collectors. The daily job rolls daily points up into weekly points. It deletes old points, and targets
// and subscriptions that are no longer needed. The hourly job deletes other expired records. A process that is only a server runs no jobs.
// Start reading at Jobs.RunDueJobs.
package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	// Every is the interval at which a collector checks whether a job is due.
	Every = time.Minute

	retentionJob = "upkeep" // the name of the daily job in the database
	expiryJob    = "expiry" // the name of the hourly job in the database
	// leaseTime is how long a job stays claimed if its collector stops without releasing it. The lease is extended after each transaction.
	leaseTime = 15 * time.Minute
	// retryDelay is the time after which a failed or incomplete job runs again.
	retryDelay = time.Hour
	// retentionAt says how long after midnight UTC the daily job is due.
	retentionAt = 3 * time.Hour
	expiryEvery = time.Hour
)

// Jobs runs the daily job and the hourly job of this package.
type Jobs struct {
	Store  *store.Store
	Writer *ingest.Writer
	Now    func() time.Time
	Logger *slog.Logger
}

// PrepareDays creates the partitions for the history points of the coming days. An error is only logged and not
// returned, because the daily job also creates partitions.
func (j Jobs) PrepareDays(ctx context.Context) {
	if err := j.Store.PreparePartitions(ctx); err != nil && ctx.Err() == nil {
		j.Logger.ErrorContext(ctx, "cannot create the partitions of the coming days", "error", err)
	}
}

// RunDueJobsIfClockIsPlausible runs the due jobs. If the clock may be wrong, it starts no job, logs
// a warning, waits for retryDelay and returns nil.
func (j Jobs) RunDueJobsIfClockIsPlausible(ctx context.Context) error {
	err := j.RunDueJobs(ctx)
	if _, wrong := errors.AsType[*store.ClockError](err); !wrong {
		return err
	}
	j.Logger.WarnContext(ctx, "no data is deleted now: the clock may be wrong", "error", err)
	select {
	case <-ctx.Done():
	case <-time.After(retryDelay):
	}
	return nil
}

// RunDueJobs runs each job that is due and that no other collector is running.
func (j Jobs) RunDueJobs(ctx context.Context) error {
	return errors.Join(j.runIfDue(ctx, expiryJob, j.deleteExpired), j.runIfDue(ctx, retentionJob, j.applyRetention))
}

// runIfDue calls runJob if the job is due and no other collector is running it. To keep the lease of the job,
// runJob must call extendLease after each transaction.
func (j Jobs) runIfDue(ctx context.Context, jobName string, runJob func(ctx context.Context, extendLease func() error) (next time.Time, err error)) error {
	lease, ok, err := j.Store.Queue.ClaimJob(ctx, jobName, leaseTime)
	if err != nil || !ok {
		return err
	}
	next, err := runJob(ctx, func() error { return lease.Extend(ctx) })
	if err != nil {
		next = j.Now().Add(retryDelay)
	}
	if errors.Is(err, queue.ErrLeaseLost) {
		return err
	}
	// The job is released even if the collector is stopping.
	return errors.Join(err, lease.Finish(context.WithoutCancel(ctx), next))
}

// applyRetention rolls daily points up into weekly points and deletes old points. It then deletes the subscriptions of organisations that
// no longer exist, and old targets without a subscription. It returns the time at which applyRetention must run again.
func (j Jobs) applyRetention(ctx context.Context, extendLease func() error) (time.Time, error) {
	next := store.DateOf(j.Now()).Time().Add(24*time.Hour + retentionAt)
	done, err := j.Writer.ApplyRetention(ctx, extendLease)
	// The job could not drop some months yet: see RetentionReport.Busy.
	if len(done.Busy) > 0 {
		next = j.Now().Add(retryDelay)
	}
	j.Logger.InfoContext(ctx, "upkeep", "weeks_written", done.Weeks, "days_dropped", done.Days, "months_dropped", done.Months,
		"months_in_use", done.Busy, "expired", done.Expired)
	if err != nil {
		return next, err
	}
	orphans, err := j.Store.Queue.DeleteOrphans(ctx, extendLease)
	j.logDeleted(ctx, orphans)
	return next, err
}

// deleteExpired deletes expired records, such as idempotency keys, but no history points. It returns the time of the next run.
func (j Jobs) deleteExpired(ctx context.Context, extendLease func() error) (time.Time, error) {
	deleted, err := j.Writer.DeleteExpired(ctx, extendLease)
	j.logDeleted(ctx, deleted)
	return j.Now().Add(expiryEvery), err
}

// logDeleted logs the number of deleted rows of each table. Tables without deleted rows are not logged.
func (j Jobs) logDeleted(ctx context.Context, rowsByTable map[string]int64) {
	for table, n := range rowsByTable {
		if n > 0 {
			j.Logger.InfoContext(ctx, "expired rows deleted", "table", table, "rows", n)
		}
	}
}
