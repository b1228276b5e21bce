package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	bulkLinks    = 500 // number of links in a bulk request
	bulkAccounts = 25  // number of accounts among which the links are divided
)

// A series is a set of links with their own range of video ids. Each benchmark case tracks the links of its own series, so that no other case
// has tracked these links before.
const (
	seriesNew = iota + 1
	seriesComparison
	seriesLarge
	seriesSmall
	seriesExisting
)

// bulkIDs returns the ids of the videos of one bulk request. Each series and each round of the benchmark gets other ids.
func bulkIDs(series, round int) []string {
	ids := make([]string, bulkLinks)
	for n := range ids {
		ids[n] = tiktokID(series*1_000_000 + round*bulkLinks + n)
	}
	return ids
}

// bulkCases compares requests that track many links with COPY of the rows that they created, and with each other.
func bulkCases(b *bench) []benchCase {
	o := b.pg.writes
	return []benchCase{
		{group: "Bulk", name: fmt.Sprintf("track %d new links / COPY of the new rows of videos", bulkLinks), goal: 2.5, measured: b.tracks(o, seriesNew),
			limit: b.copyIn("bench_tracked", bulkLinks, func(round int) string {
				return fmt.Sprintf("SELECT * FROM videos WHERE organisation_id = '%s' AND platform = 'tiktok' AND external_id IN ('%s')",
					o.id, strings.Join(bulkIDs(seriesNew, round), "', '"))
			})},
		{group: "Bulk", name: fmt.Sprintf("track %d existing links / %d new links", bulkLinks, bulkLinks), goal: 1.0,
			measured: timed(func(ctx context.Context, _ int) error { return b.track(ctx, o, seriesExisting, 0) }),
			limit:    b.tracks(o, seriesComparison),
			prepare:  []func(context.Context) error{func(ctx context.Context) error { return b.track(ctx, o, seriesExisting, 0) }}},
	}
}

// tracks returns a step that tracks links of one series of links for the organisation o. Each round of the benchmark tracks other links of
// the series.
func (b *bench) tracks(o *organisation, series int) step {
	return timed(func(ctx context.Context, round int) error { return b.track(ctx, o, series, round) })
}

// track sends the bulk request that tracks the links of one series and one round of the benchmark.
func (b *bench) track(ctx context.Context, o *organisation, series, round int) error {
	var body struct {
		Links []string `json:"links"`
	}
	for n, id := range bulkIDs(series, round) {
		body.Links = append(body.Links, tiktokLink(fmt.Sprint("bench.bulk", n%bulkAccounts), id))
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return b.request(ctx, b.pg, o, http.MethodPost, "/videos/bulk", text, io.Discard)
}
