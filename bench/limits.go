package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"
)

// videoColumns are the columns of a video that the API returns, in the order of the table videos.
const videoColumns = `organisation_id, id, platform, link, username, linked_account_id, created_at, removed, uploaded_at, song_name, song_link,
 video_length, title, not_safe, private, hidden_stats, ad_info_shop, ad_is_ad, ad_product_id_shop, latest_views, latest_likes, latest_comments,
 latest_bookmarks, latest_shares, latest_engagement, latest_updated_at, outlier_multiplier, increase_1d, increase_7d, increase_14d, increase_30d,
 views_gained_7d, fetch_status, fetch_reason, last_attempt_at, next_fetch_at`

// createLimitTables creates copies of tables, for the SQL statements that the benchmark compares with ReelTally. A copy has only the indexes that
// its statements need, so that the statements are fast. Only bench_tracked_indexed has all indexes of the table videos.
func (b *bench) createLimitTables(ctx context.Context) error {
	for _, statement := range []string{
		"VACUUM ANALYZE",
		"CREATE TABLE bench_videos AS SELECT * FROM videos ORDER BY created_at, id",
		// Each list that is compared with COPY has its own index.
		"CREATE INDEX ON bench_videos (organisation_id, created_at DESC NULLS LAST, id DESC)",
		"CREATE INDEX ON bench_videos (organisation_id, latest_views DESC NULLS LAST, id DESC)",
		"CREATE INDEX ON bench_videos (organisation_id, uploaded_at DESC NULLS LAST, id DESC)",
		"CREATE INDEX ON bench_videos (organisation_id, username, created_at DESC NULLS LAST, id DESC)",
		fmt.Sprintf(`CREATE TABLE bench_collected AS SELECT v.*, c.name AS collection FROM collection_videos m JOIN videos v ON v.organisation_id = m.organisation_id AND v.id = m.video_id
 JOIN collections c ON c.organisation_id = m.organisation_id AND c.id = m.collection_id WHERE m.organisation_id = '%s' ORDER BY v.created_at, v.id`, b.pg.large.id),
		"CREATE INDEX ON bench_collected (organisation_id, collection, created_at DESC NULLS LAST, id DESC)",
		fmt.Sprintf("CREATE TABLE bench_tracked AS SELECT * FROM videos WHERE organisation_id = '%s'", b.pg.changed.id),
		// The unique keys are the same as those of the table videos.
		"ALTER TABLE bench_tracked ADD PRIMARY KEY (organisation_id, id), ADD UNIQUE (organisation_id, platform, external_id)",
		// This table has all indexes of videos, and so shows the least that new videos cost with these indexes.
		"CREATE TABLE bench_tracked_indexed (LIKE videos INCLUDING INDEXES)",
		fmt.Sprintf("INSERT INTO bench_tracked_indexed SELECT * FROM videos WHERE organisation_id = '%s'", b.pg.changed.id),
		fmt.Sprintf("CREATE TABLE bench_points AS SELECT * FROM snapshots_daily WHERE organisation_id = '%s'", b.pg.changed.id),
		// The unique key is the same as that of the table snapshots_daily.
		"ALTER TABLE bench_points ADD PRIMARY KEY (organisation_id, video_id, day)",
		"VACUUM ANALYZE bench_videos, bench_collected, bench_tracked, bench_tracked_indexed, bench_points",
		"SET jit = off",
	} {
		if _, err := b.db.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%w: %s", err, statement)
		}
	}
	return nil
}

// newReadStep returns a step that reads the rows of a query with COPY. The step fails if the number
// of rows is not `expected`.
func (b *bench) newReadStep(expected int, query func(round int) string) step {
	return timedStep(func(ctx context.Context, round int) error {
		done, err := b.db.PgConn().CopyTo(ctx, io.Discard, "COPY ("+query(round)+") TO STDOUT")
		if err == nil && done.RowsAffected() != int64(expected) {
			err = fmt.Errorf("COPY gave %d rows instead of %d", done.RowsAffected(), expected)
		}
		return err
	})
}

// copyAll reads all rows of a query with COPY and discards them. It accepts any number of rows.
func (b *bench) copyAll(ctx context.Context, query string) error {
	_, err := b.db.PgConn().CopyTo(ctx, io.Discard, "COPY ("+query+") TO STDOUT")
	return err
}

// newWriteStep returns a step that writes the rows of a query into a table with COPY. The step
// measures only the writing, not the query.
func (b *bench) newWriteStep(table string, expected int, query func(round int) string) step {
	return func(ctx context.Context, round int) (time.Duration, error) {
		var text bytes.Buffer
		if _, err := b.db.PgConn().CopyTo(ctx, &text, "COPY ("+query(round)+") TO STDOUT"); err != nil {
			return 0, err
		}
		start := time.Now()
		done, err := b.db.PgConn().CopyFrom(ctx, &text, "COPY "+table+" FROM STDIN")
		took := time.Since(start)
		if err == nil && done.RowsAffected() != int64(expected) {
			err = fmt.Errorf("COPY wrote %d rows instead of %d", done.RowsAffected(), expected)
		}
		return took, err
	}
}

// newSelectStep returns a step that runs a prepared query and reads its rows. The step fails if the
// number of rows is not `expected`.
func (b *bench) newSelectStep(expected int, query string, arguments func(round int) []any) step {
	return timedStep(func(ctx context.Context, round int) error {
		found, err := b.db.Query(ctx, query, arguments(round)...) // pgx prepares a query when it is first used, and keeps the prepared query for later rounds
		if err != nil {
			return err
		}
		defer found.Close()
		n := 0
		for found.Next() {
			_ = found.RawValues()
			n++
		}
		if found.Err() == nil && n != expected {
			return fmt.Errorf("the query returned %d rows instead of %d: %s", n, expected, query)
		}
		return found.Err()
	})
}
