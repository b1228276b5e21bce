package queue

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// ErrLeaseLost reports that the caller does not have the lease of a job or target any more. For example, the lease has ended and another process has
// leased the job or target since then.
var ErrLeaseLost = errors.New("lease lost")

// JobLease is the right of one process to run a job. If the process ends without returning the lease, the lease expires and another process
// can claim the job.
type JobLease struct {
	s     *Queue
	name  string
	token uuid.UUID
	lease time.Duration
}

// ClaimJob leases a job that is due or has never run. Otherwise, it returns false. If the clock may
// be wrong, it returns a *ClockError.
func (s *Queue) ClaimJob(ctx context.Context, name string, leaseTime time.Duration) (held JobLease, ok bool, err error) {
	// A clock that is ahead could block the job for a long time.
	if err := s.db.CheckAndWriteClock(ctx); err != nil {
		return held, false, err
	}
	held = JobLease{s: s, name: name, token: db.NewID(), lease: leaseTime}
	now := s.db.Now()
	var taken []string
	err = s.db.Tx(ctx, func(tx *gorm.DB) error {
		taken = nil
		return tx.Raw(`INSERT INTO jobs (name, next_at, token) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET next_at = excluded.next_at, token = excluded.token WHERE jobs.next_at <= ? RETURNING name`,
			name, now.Add(leaseTime), held.token, now).Scan(&taken).Error
	})
	return held, len(taken) == 1, err
}

// Extend starts the lease again for its full duration from now on. It returns ErrLeaseLost if
// another process has leased the job.
func (l JobLease) Extend(ctx context.Context) error {
	return l.saveDueTime(ctx, l.s.db.Now().Add(l.lease), &l.token)
}

// Finish ends the lease. The job is due again at nextDue. Finish returns ErrLeaseLost if another process has leased the job.
func (l JobLease) Finish(ctx context.Context, nextDue time.Time) error {
	return l.saveDueTime(ctx, db.InstantOf(nextDue), nil)
}

// saveDueTime stores the time at which the job is due next, and the token of its lease. A nil token
// ends the lease.
func (l JobLease) saveDueTime(ctx context.Context, next db.Instant, token *uuid.UUID) error {
	return l.s.db.Tx(ctx, func(tx *gorm.DB) error {
		r := tx.Exec(`UPDATE jobs SET next_at = ?, token = ? WHERE name = ? AND token = ?`, next, token, l.name, l.token)
		if r.Error == nil && r.RowsAffected == 0 {
			return ErrLeaseLost
		}
		return r.Error
	})
}
