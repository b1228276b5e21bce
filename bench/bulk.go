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
	bulkAccounts = 25  // number of accounts to which the videos of a bulk request belong
)

// A series is a set of links. Each step has its own series, so that no two steps track the same
// links.
const (
	seriesNew = iota + 1
	seriesIndexed
	seriesComparison
	seriesLarge
	seriesSmall
	seriesExisting
	seriesProfile
)

// bulkIDs returns the video ids of one bulk request. Requests of different series of links, or of different rounds of the benchmark, have
// no common ids.
func bulkIDs(series, round int) []string {
	ids := make([]string, bulkLinks)
	for index := range ids {
		ids[index] = tiktokID(series*1_000_000 + round*bulkLinks + index)
	}
	return ids
}

// bulkCases returns the cases for bulk requests. Two cases track new links, and the third case tracks
// existing links.
func bulkCases(b *bench) []benchCase {
	o := b.pg.changed
	tracked := func(series int) func(round int) string { // the query for the rows that a bulk request has added
		return func(round int) string {
			return fmt.Sprintf("SELECT * FROM videos WHERE organisation_id = '%s' AND platform = 'tiktok' AND external_id IN ('%s')",
				o.id, strings.Join(bulkIDs(series, round), "', '"))
		}
	}
	return []benchCase{
		{group: "Bulk", name: fmt.Sprintf("track %d new links, compared with COPY (only the unique keys)", bulkLinks), goal: 2.5, withoutHTTP: true,
			measured: b.newTrackStep(o, seriesNew), limit: b.newWriteStep("bench_tracked", bulkLinks, tracked(seriesNew))},
		{group: "Bulk", name: fmt.Sprintf("track %d new links, compared with COPY (all indexes)", bulkLinks), goal: 2.5, withoutHTTP: true,
			measured: b.newTrackStep(o, seriesIndexed), limit: b.newWriteStep("bench_tracked_indexed", bulkLinks, tracked(seriesIndexed))},
		{group: "Bulk", name: fmt.Sprintf("track %d existing links, compared with %d new links", bulkLinks, bulkLinks), goal: 1.0,
			measured: timedStep(func(ctx context.Context, _ int) error { return b.trackBulk(ctx, o, seriesExisting, 0) }),
			limit:    b.newTrackStep(o, seriesComparison),
			prepare:  []func(context.Context) error{func(ctx context.Context) error { return b.trackBulk(ctx, o, seriesExisting, 0) }}},
	}
}

// newTrackStep returns a step that sends one bulk request for an organisation. The links of the request depend on
// the series and the round: see bulkIDs.
func (b *bench) newTrackStep(o *organisation, series int) step {
	return timedStep(func(ctx context.Context, round int) error { return b.trackBulk(ctx, o, series, round) })
}

// trackBulk sends one bulk request. The request has one link for each video id that bulkIDs returns.
func (b *bench) trackBulk(ctx context.Context, o *organisation, series, round int) error {
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
	return b.sendAs(ctx, b.pg, o, http.MethodPost, "/videos/bulk", text, io.Discard)
}
