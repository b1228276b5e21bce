package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// collectorCases returns the case that compares how fast the collector and the SQL command COPY store the same history points.
func collectorCases(b *bench) []benchCase {
	return []benchCase{{group: "Collector", name: fmt.Sprintf("store a batch of %d videos, compared with COPY", b.batchSize()), goal: 7.0, measured: newBatchStep(b.pg, b.batchSize()),
		limit: b.newWriteStep("bench_points", b.batchSize(), func(int) string {
			return fmt.Sprintf("SELECT * FROM snapshots_daily WHERE organisation_id = '%s' AND day = '%s'", b.pg.changed.id, b.pg.batchTime().Format(time.DateOnly))
		})}}
}

// newBatchStep returns a step that stores made-up answers for videos of the organisation i.changed.
// Each run stores answers for the next day.
func newBatchStep(i *instance, videoCount int) step {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		claim, outcomes, err := i.nextBatch(ctx, videoCount)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		err = ingest.New(i.store).Acknowledge(ctx, claim, claim.At, outcomes)
		return time.Since(start), err
	}
}

// batchTime returns the time of the store's clock. For each batch, nextBatch sets the clock to noon of the next day.
func (i *instance) batchTime() time.Time { return time.UnixMicro(i.clock.Load()).UTC() }

// nextBatch claims videos of the organisation i.changed. It returns the claim, and made-up answers
// with higher counts than before.
func (i *instance) nextBatch(ctx context.Context, videoCount int) (queue.Claim, []ingest.Outcome, error) {
	at := i.batchTime().Truncate(24*time.Hour).AddDate(0, 0, 1).Add(12 * time.Hour)
	i.clock.Store(at.UnixMicro())
	claim := queue.Claim{Token: store.NewID(), At: store.InstantOf(at)}
	list, err := i.store.Org(i.changed.id).ListVideos(ctx, store.VideoQuery{HasMetrics: new(true), WithoutTotal: true, Order: store.Order{Column: "created_at"},
		Window: store.Window{Limit: videoCount}})
	if err != nil {
		return claim, nil, err
	}
	if len(list.Rows) < videoCount {
		return claim, nil, fmt.Errorf("the organisation has only %d videos with counts", len(list.Rows))
	}
	outcomes := make([]ingest.Outcome, videoCount)
	for n := range list.Rows {
		v := &list.Rows[n]
		target := queue.Target{Platform: v.Platform, Kind: queue.KindVideo, ExternalID: v.ExternalID, Handle: v.Username, Link: v.Link}
		claim.Targets = append(claim.Targets, target)
		facts := &ingest.VideoFacts{Title: &v.Title, Username: &v.Username, SongName: v.SongName, SongLink: v.SongLink,
			Views: higherCount(v.Latest.Views), Likes: higherCount(v.Latest.Likes), Comments: higherCount(v.Latest.Comments), Shares: higherCount(v.Latest.Shares), Bookmarks: higherCount(v.Latest.Bookmarks)}
		outcomes[n] = ingest.Outcome{Target: target, Facts: facts, Details: true, Source: store.SandboxSource, State: "active", NextAt: store.InstantOf(at.AddDate(0, 0, 1))}
	}
	return claim, outcomes, i.leaseTargets(ctx, claim)
}

// higherCount returns a count that is about one percent higher. If count is nil (unknown), it returns nil.
func higherCount(count *int64) *int64 {
	if count == nil {
		return nil
	}
	return new(*count + *count/100 + 1)
}

// leaseTargets marks the targets of a claim as leased to this claim, as the queue does with due targets. Here the targets need not be due.
func (i *instance) leaseTargets(ctx context.Context, c queue.Claim) error {
	return i.store.DB().Tx(ctx, func(tx *gorm.DB) error {
		leased := int64(0)
		for _, g := range queue.GroupByKind(c.Targets) {
			done := tx.Exec("UPDATE fetch_targets SET token = ?, claimed_by = ? WHERE ?", c.Token, c.Token, g.Condition())
			if done.Error != nil {
				return done.Error
			}
			leased += done.RowsAffected
		}
		if leased != int64(len(c.Targets)) {
			return errors.New("a video of the batch has no row in the table fetch_targets")
		}
		return nil
	})
}
