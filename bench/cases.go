package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// benchCase compares a request with its limit. Both are timed from the caller's side.
type benchCase struct {
	name     string
	goal     float64                     // highest allowed ratio of measured to limit
	limit    func(context.Context) error // the fastest known way to get the same data from the database
	measured func(context.Context) error
}

// videoColumns are the columns of a video that the API answers with, in the order of the table.
const videoColumns = `organisation_id, id, platform, link, username, linked_account_id, created_at, removed, uploaded_at, song_name, song_link,
 video_length, title, not_safe, private, hidden_stats, ad_info_shop, ad_is_ad, ad_product_id_shop, latest_views, latest_likes, latest_comments,
 latest_bookmarks, latest_shares, latest_engagement, latest_updated_at, outlier_multiplier, increase_1d, increase_7d, increase_14d, increase_30d,
 views_gained_7d, fetch_status, fetch_reason, last_attempt_at, next_fetch_at`

// cases returns the cases that the benchmark measures.
func cases(b *bench) []benchCase {
	var out []benchCase
	list := func(rows int, order string, goal float64) {
		out = append(out, benchCase{name: fmt.Sprintf("list of %d by %s / COPY", rows, order), goal: goal,
			limit:    b.copies(order, rows),
			measured: b.gets(fmt.Sprintf("/videos?limit=%d&order_by=%s", rows, order))})
	}
	list(5000, "created_at", 1.0)
	list(5000, "latest_views", 1.1)
	list(100, "created_at", 1.1)
	for _, order := range indexedOrders[1:] {
		list(100, order, 1.5)
	}
	out = append(out, benchCase{name: "last page of 100 / first page of 100", goal: 1.5,
		limit:    b.gets("/videos?limit=100"),
		measured: b.gets(fmt.Sprintf("/videos?limit=100&page=%d", b.videos/100))})
	return out
}

// indexedOrders are the columns by which lists of videos are measured.
var indexedOrders = []string{"created_at", "latest_views", "uploaded_at", "latest_updated_at", "latest_likes", "latest_comments", "latest_bookmarks",
	"latest_shares", "latest_engagement"}

// createLimitTable copies the videos of all organisations to a table with an index for each order, from which the limits are read.
func (b *bench) createLimitTable(ctx context.Context) error {
	statements := []string{"CREATE TABLE bench_videos AS SELECT * FROM videos ORDER BY created_at, id"}
	for _, order := range indexedOrders {
		statements = append(statements, fmt.Sprintf("CREATE INDEX ON bench_videos (organisation_id, %s DESC NULLS LAST, id DESC)", order))
	}
	for _, statement := range append(statements, "VACUUM ANALYZE bench_videos", "SET jit = off") {
		if _, err := b.db.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// copies returns a function that copies the first rows of the organisation's videos in an order out of a table with an index for this order.
func (b *bench) copies(order string, rows int) func(context.Context) error {
	query := fmt.Sprintf("COPY (SELECT %s FROM bench_videos WHERE organisation_id = '%s' AND NOT removed ORDER BY %s DESC NULLS LAST, id DESC LIMIT %d) TO STDOUT",
		videoColumns, b.org, order, rows)
	return func(ctx context.Context) error {
		done, err := b.db.PgConn().CopyTo(ctx, io.Discard, query)
		if err == nil && done.RowsAffected() != int64(rows) {
			err = fmt.Errorf("COPY gave %d rows instead of %d", done.RowsAffected(), rows)
		}
		return err
	}
}

// gets returns a function that sends a GET request and reads the whole answer.
func (b *bench) gets(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.address+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+b.token)
		r.Header.Set("Accept-Encoding", "identity")
		answer, err := b.client.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
			return fmt.Errorf("GET %s: %s: %s", path, answer.Status, body)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
}
