package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// listing describes one page of a list of videos, both as a request to the API and as an SQL query.
type listing struct {
	name  string // description of the list, such as "videos of a username" or "videos by latest_views"
	query string // query string of the request, without the query parameter "limit"
	table string // table that the SQL query reads; createLimitTables creates it
	where string // SQL condition of the list, in addition to the condition on the organisation
	order string // column by which the list is ordered, from the highest value to the lowest
	rows  int    // number of videos on the page
}

// path returns the path and query string of the request, without the base URL of the server.
func (l listing) path() string { return fmt.Sprintf("/videos?limit=%d&%s", l.rows, l.query) }

// repetitions returns how often a step requests the page in each round. A single request for a short
// page could not be measured precisely.
func (l listing) repetitions() int {
	if l.rows <= 100 {
		return 50
	}
	return 1
}

// newListStep returns a step that requests the page l from the server on PostgreSQL, for the organisation
// b.pg.large.
func (b *bench) newListStep(l listing) step {
	return againStep(l.repetitions(), b.newGetStep(b.pg.large, sameInEachRound(l.path())))
}

// selectQuery returns the SQL query that reads the page from the videos of an organisation. The result has the given columns.
func (l listing) selectQuery(columns string, o *organisation) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE organisation_id = '%s' AND NOT removed%s ORDER BY %s DESC NULLS LAST, id DESC LIMIT %d",
		columns, l.table, o.id, l.where, l.order, l.rows)
}

// orderedListing describes the first page of the list of all videos, in descending order of a column. The page has the given number of
// rows.
func orderedListing(orderColumn string, rows int) listing {
	return listing{name: "videos by " + orderColumn, query: "order_by=" + orderColumn, table: "bench_videos", order: orderColumn, rows: rows}
}

// filteredListings describes the first pages of three lists, which have filters for the username,
// the upload date and the collection.
func filteredListings(rows int) []listing {
	day := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	const newest, oldest = 2, 3 * 365 // days since the upload
	return []listing{
		{name: "videos of a username", query: "order_by=created_at&username=" + manyHandle, table: "bench_videos", where: " AND username = '" + manyHandle + "'", order: "created_at", rows: rows},
		{name: "videos of a date range", query: "order_by=uploaded_at&uploaded_at_start=" + day(oldest) + "&uploaded_at_end=" + day(newest), table: "bench_videos",
			where: " AND uploaded_at BETWEEN '" + day(oldest) + "' AND '" + day(newest) + "'", order: "uploaded_at", rows: rows},
		{name: "videos of a collection", query: "order_by=created_at&collections=" + url.QueryEscape(manyCollection), table: "bench_collected",
			where: " AND collection = '" + manyCollection + "'", order: "created_at", rows: rows},
	}
}

// orderByValues are the values of the request parameter order_by, except created_at. The benchmark compares each of them with order_by=created_at.
var orderByValues = []string{"uploaded_at", "latest_updated_at", "latest_views", "latest_likes", "latest_comments", "latest_bookmarks", "latest_shares", "latest_engagement",
	"outlier_multiplier", "increase_1d", "increase_7d", "increase_14d", "increase_30d", "views_gained_7d"}

// videoListCases returns the cases that measure requests for a page of videos. Each request is compared with
// the SQL command COPY, which reads the same rows, or with another request.
func videoListCases(b *bench) []benchCase {
	o := b.pg.large
	var out []benchCase
	copied := func(l listing, goal float64) {
		out = append(out, benchCase{group: "Lists", name: fmt.Sprintf("request for %d %s, compared with COPY", l.rows, l.name), goal: goal, withoutHTTP: true, prepare: []func(context.Context) error{b.checkPage(l)},
			measured: b.newListStep(l), limit: repeatedStep(l.repetitions(), b.newReadStep(l.rows, sameInEachRound(l.selectQuery(videoColumns, o))))})
	}
	page, filteredPage := min(5000, o.videos), min(5000, o.many)
	copied(orderedListing("created_at", page), 1.0)
	copied(orderedListing("latest_views", page), 1.1)
	copied(orderedListing("created_at", 100), 1.1)
	for _, rows := range []int{filteredPage, 100} {
		for _, l := range filteredListings(rows) {
			copied(l, 2.0)
		}
	}
	for _, rows := range []int{page, 100} {
		for _, order := range orderByValues {
			out = append(out, benchCase{group: "Orders", name: fmt.Sprintf("%d videos by %s, compared with created_at", rows, order), goal: 1.5,
				measured: b.newListStep(orderedListing(order, rows)), limit: b.newListStep(orderedListing("created_at", rows))})
		}
	}
	hundred := orderedListing("created_at", 100)
	first := b.newListStep(hundred)
	at := func(page int) string { return fmt.Sprintf("%s&page=%d", hundred.path(), page) }
	middle, last := o.videos/200, o.videos/100
	firstGet := func(change string, page int) step { return b.newFirstGetStep(o, change, at(page)) }
	afterStop := func(page int) step { return repeatedStep(hundred.repetitions(), firstGet(stoppedVideo, page)) }
	var cursor string
	return append(out,
		benchCase{group: "Pages", name: "middle page after a stop, compared with the first page after a stop", goal: 10, measured: afterStop(middle), limit: afterStop(1)},
		benchCase{group: "Pages", name: "middle page after new numbers, compared with the first page", goal: 1.5, limit: first,
			measured: againStep(hundred.repetitions(), firstGet(newNumbers, middle))},
		benchCase{group: "Pages", name: "middle page again, compared with the first page", goal: 1.5, limit: first,
			measured: againStep(hundred.repetitions(), b.newGetStep(o, sameInEachRound(at(middle))))},
		benchCase{group: "Pages", name: "last page after a stop, compared with the first page after a stop", goal: 1.5, measured: afterStop(last), limit: afterStop(1)},
		benchCase{group: "Pages", name: "page after a cursor, compared with the first page", goal: 1.5, limit: first,
			measured: repeatedStep(hundred.repetitions(), b.newGetStep(o, func(int) string { return hundred.path() + "&cursor=" + url.QueryEscape(cursor) })),
			prepare: []func(context.Context) error{func(ctx context.Context) error {
				var answer videoPage
				err := b.getJSON(ctx, b.pg, o, fmt.Sprintf("%s&page=%d", hundred.path(), middle), &answer)
				cursor = answer.Pagination.NextCursor
				return err
			}}})
}

// videoPage is the part of the response to GET /videos that the benchmark reads.
type videoPage struct {
	Data []struct {
		ID string `json:"ad_id"`
	} `json:"data"`
	Pagination struct {
		Total      int    `json:"total"`
		NextCursor string `json:"next_cursor"`
	} `json:"pagination"`
}

// checkPage returns a function that requests a page of videos and checks the response. The function
// fails if the response differs from the database.
func (b *bench) checkPage(l listing) func(context.Context) error {
	return func(ctx context.Context) error {
		var answer videoPage
		if err := b.getJSON(ctx, b.pg, b.pg.large, l.path(), &answer); err != nil {
			return err
		}
		rows, err := b.db.Query(ctx, l.selectQuery("id::text", b.pg.large))
		if err != nil {
			return err
		}
		defer rows.Close()
		var want, got []string
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			want = append(want, id)
		}
		for _, v := range answer.Data {
			got = append(got, v.ID)
		}
		if rows.Err() != nil || !slices.Equal(got, want) || len(got) != l.rows {
			return fmt.Errorf("GET %s returned %d videos; they must be the %d videos of the query %s: %w", l.path(), len(got), len(want), l.selectQuery("id", b.pg.large), rows.Err())
		}
		l.rows = 1_000_000_000
		var total int
		if err := b.db.QueryRow(ctx, "SELECT COUNT(*) FROM ("+l.selectQuery("id", b.pg.large)+") matching").Scan(&total); err != nil {
			return err
		}
		if answer.Pagination.Total != total {
			return fmt.Errorf("GET %s says that there are %d videos; there are %d", l.path(), answer.Pagination.Total, total)
		}
		return nil
	}
}
