package collector

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// This file handles outages of the database. Claimed targets must not wait for the end of their leases, which can take an hour, and a paid answer
// must not be lost.

// isTooOld returns true if the results of a call are older than the lease of the call. Such results are not stored, because an export of histories does
// not wait for them.
func (w *worker) isTooOld(reply quota.Reply) bool {
	// Round removes the monotonic time, which can stop while the machine is paused.
	age := w.Now().Round(0).Sub(reply.At.Round(0))
	return age > w.fetchTimeout(reply.Targets[0])+leaseMargin
}

// acknowledge stores the outcomes of a reply. While the database is unavailable, acknowledge tries again, until the results are too old to be stored, ctx
// ends or the collector is stopping. The channel `stopping` is closed when the collector is stopping.
func (w *worker) acknowledge(ctx context.Context, stopping <-chan struct{}, claim queue.Claim, reply quota.Reply, outcomes []ingest.Outcome) error {
	for tries := 1; ; tries++ {
		err := w.writer.Acknowledge(ctx, claim, store.InstantOf(reply.At), outcomes)
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		if tries == 1 {
			w.Logger.WarnContext(ctx, "cannot store answers while the database is unavailable; trying again", "source", w.source.Name(), "targets", len(outcomes), "error", err)
		}
		select {
		case <-stopping:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(schedule.Jitter(w.Poll)):
		}
		if w.isTooOld(reply) {
			return err
		}
	}
}

// unfinishedClaims are the claims whose fetches ended because the database was unavailable. Their targets are still leased.
type unfinishedClaims struct {
	mu     sync.Mutex
	claims []queue.Claim
}

// releaseLater makes the next heartbeat release a claim if its fetch ended with err because the database was unavailable. After any other error, the
// targets stay leased: a fetch that always fails is then not repeated at once, and its source not paid again and again.
func (c *Collector) releaseLater(claim queue.Claim, err error) {
	if len(claim.Targets) == 0 || !errors.Is(err, store.ErrUnavailable) {
		return
	}
	c.unfinished.mu.Lock()
	defer c.unfinished.mu.Unlock()
	c.unfinished.claims = append(c.unfinished.claims, claim)
}

// releaseUnfinished makes the targets of the unfinished claims due now. Targets whose answers were stored, and targets that another collector has
// claimed since, do not change. A claim that cannot be released is kept for the next call.
func (c *Collector) releaseUnfinished(ctx context.Context) error {
	c.unfinished.mu.Lock()
	defer c.unfinished.mu.Unlock()
	for len(c.unfinished.claims) > 0 {
		claim := c.unfinished.claims[0]
		if err := c.queue.Release(ctx, claim.Token, claim.Targets, c.Now()); err != nil {
			return err
		}
		c.unfinished.claims = c.unfinished.claims[1:]
	}
	return nil
}
