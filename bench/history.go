package main

import (
	"context"
	"fmt"
	"time"
)

// historyColumns are the columns of a history point that the API returns.
const historyColumns = "day, views, likes, comments, shares, bookmarks"

// historyCases returns the cases that request the history of a video or the history of the
// organisation.
func historyCases(b *bench) []benchCase {
	o := b.pg.large
	return []benchCase{
		b.videoHistoryCase(o, readDays, 2.0),
		b.videoHistoryCase(o, 30, 1.5),
		{group: "Histories", name: "history of all videos, 30 days, compared with an SQL query", goal: 2.0, withoutHTTP: true,
			measured: repeatedStep(20, b.newGetStep(o, sameInEachRound(organisationHistoryPath()))),
			limit: repeatedStep(20, b.newSelectStep(30, "SELECT * FROM organisation_days WHERE organisation_id = $1 AND day BETWEEN $2 AND $3", func(int) []any {
				return []any{o.id, daysAgo(29), daysAgo(0)}
			}))},
	}
}

// daysAgo returns the date n days before today, in UTC.
func daysAgo(n int) string { return time.Now().UTC().AddDate(0, 0, -n).Format(time.DateOnly) }

// organisationHistoryPath returns the path of the request for the organisation's history of the last 30 days.
func organisationHistoryPath() string { return "/organisation/history?start_date=" + daysAgo(29) }

// videoHistoryPathAndQuery returns two functions: one returns the API path of a video's history, the other
// returns the SQL query for the same points. Each round uses another video in o.old.
func videoHistoryPathAndQuery(o *organisation, days int) (requestPath, pointsQuery func(round int) string) {
	first := daysAgo(days - 1)
	requestPath = func(round int) string {
		return fmt.Sprintf("/videos/%s/history?start_date=%s", o.old[round%len(o.old)], first)
	}
	pointsQuery = func(round int) string {
		query := fmt.Sprintf("SELECT %s FROM snapshots_daily WHERE organisation_id = '%s' AND video_id = '%s' AND day >= '%s'", historyColumns, o.id, o.old[round%len(o.old)], first)
		// Days that are more than 90 days ago have only weekly points.
		if days > 90 {
			query += fmt.Sprintf(" UNION ALL SELECT %s FROM snapshots_weekly WHERE organisation_id = '%s' AND video_id = '%s' AND day >= '%s'", historyColumns, o.id, o.old[round%len(o.old)], first)
		}
		return query
	}
	return requestPath, pointsQuery
}

// videoHistoryCase compares a request for a video's history with a COPY of the stored points. The
// response also has points for the days between weekly points.
func (b *bench) videoHistoryCase(o *organisation, days int, goal float64) benchCase {
	path, pointsQuery := videoHistoryPathAndQuery(o, days)
	return benchCase{group: "Histories", name: fmt.Sprintf("history of a video, %d days, compared with COPY", days), goal: goal, withoutHTTP: true,
		measured: repeatedStep(20, b.newGetStep(o, path)),
		limit: repeatedStep(20, timedStep(func(ctx context.Context, round int) error {
			return b.copyAll(ctx, pointsQuery(round))
		})),
		prepare: []func(context.Context) error{func(ctx context.Context) error {
			for round := range o.old {
				var points []struct{ Date string }
				if err := b.getJSON(ctx, b.pg, o, path(round), &points); err != nil {
					return err
				}
				// The oldest point may be a weekly point, which is stored on the last day of its week. So the history can begin up to a
				// week late.
				if len(points) > days || len(points) < days-7 {
					return fmt.Errorf("GET %s gave %d points; it must give %d to %d", path(round), len(points), days-7, days)
				}
			}
			return nil
		}}}
}
