package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// sqliteCases returns the cases that compare ReelTally on SQLite with ReelTally on PostgreSQL.
func sqliteCases(b *bench) []benchCase {
	list := orderedListing("created_at", min(5000, b.pg.large.videos))
	prepare := []func(context.Context) error{b.startSQLite}
	return []benchCase{
		{group: "SQLite", name: fmt.Sprintf("%d videos by created_at in SQLite, compared with PostgreSQL", list.rows), goal: 2.5, prepare: prepare, limit: b.newListStep(list),
			measured: timedStep(func(ctx context.Context, _ int) error {
				return b.sendAs(ctx, b.lite, b.lite.large, http.MethodGet, list.path(), nil, io.Discard)
			})},
		{group: "SQLite", name: fmt.Sprintf("store a batch of %d videos in SQLite, compared with PostgreSQL", b.batchSize()), goal: 2.5, prepare: prepare, limit: newBatchStep(b.pg, b.batchSize()),
			measured: func(ctx context.Context, round int) (time.Duration, error) {
				return newBatchStep(b.lite, b.batchSize())(ctx, round)
			}},
	}
}

// startSQLite creates a SQLite database with two organisations and starts a server on it. If the
// server is already running, startSQLite does nothing.
func (b *bench) startSQLite(ctx context.Context) error {
	if b.lite.server != nil {
		return nil
	}
	folder, err := os.MkdirTemp("", "reeltally-bench-")
	if err != nil {
		return err
	}
	b.stop = append(b.stop, func() { _ = os.RemoveAll(folder) }, b.lite.close)
	b.lite.url = "sqlite:" + filepath.Join(folder, "bench.db")
	if err := b.lite.openStore(ctx); err != nil {
		return err
	}
	large, err := b.lite.seedOrganisations(ctx, 1, b.videosInLargeOrg(), readDays)
	if err != nil {
		return err
	}
	changed, err := b.lite.seedOrganisations(ctx, 1, b.videosInChangedOrg(), writeDays)
	if err != nil {
		return err
	}
	b.lite.large, b.lite.changed = large[0], changed[0]
	if err := b.lite.addManyVideos(ctx, b.lite.large); err != nil {
		return err
	}
	return b.lite.startServer(ctx)
}
