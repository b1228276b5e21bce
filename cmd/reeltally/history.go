package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

// historyCommand has the options of all commands that print a history.
type historyCommand struct {
	apiCommand
	Days int  `default:"30" placeholder:"N" help:"How many days, up to 90, or up to 730 for the tier premium."`
	JSON bool `name:"json" help:"Print one JSON object a day, as the API returns it, the newest first."`
}

type videosHistory struct {
	historyCommand
	Video  string `arg:"" help:"Id or link of the video."`
	Metric string `default:"views" enum:"views,likes,comments,shares,bookmarks,engagements" placeholder:"METRIC" help:"Metric of the chart: views, likes, comments, shares, bookmarks or engagements."`
}

// Help returns the text that --help shows below the summary of the command.
func (videosHistory) Help() string {
	return "Interpolated days have light bars. A day whose count is unknown has no bar, and a line says how many days have no point.\n\n" +
		"Example: reeltally history https://youtu.be/dQw4w9WgXcQ --metric likes --days 60"
}

// Run prints one metric of a video as a bar for each day, or the points as JSON.
func (c *videosHistory) Run(ctx context.Context, p boot.Process) error {
	request := func(api *client.ReelTally, start openapi_types.Date) ([]client.VideoHistoryPoint, error) {
		return api.GetVideoHistory(ctx, c.Video, client.GetVideoHistoryOptions{StartDate: start})
	}
	return printHistory(p.Stdout, c.historyCommand, c.Metric, request, func(point client.VideoHistoryPoint) chartPoint {
		counts := map[string]*int64{"views": point.Views, "likes": point.Likes, "comments": point.Comments, "shares": point.Shares, "bookmarks": point.Bookmarks,
			"engagements": point.Engagements}
		return chartPoint{point.Date.Time, counts[c.Metric], point.Interpolated != nil && *point.Interpolated}
	})
}

type accountsHistory struct {
	historyCommand
	Account string `arg:"" help:"Id or link of the account."`
	Metric  string `default:"followers" enum:"followers,following,views,likes,comments,shares,bookmarks,engagements,videos" placeholder:"METRIC" help:"Metric of the chart: followers, following, views, likes, comments, shares, bookmarks, engagements or videos."`
}

// Run prints one metric of an account as a bar for each day, or the points as JSON.
func (c *accountsHistory) Run(ctx context.Context, p boot.Process) error {
	request := func(api *client.ReelTally, start openapi_types.Date) ([]client.AccountHistoryPoint, error) {
		return api.GetAccountHistory(ctx, c.Account, client.GetAccountHistoryOptions{StartDate: start})
	}
	return printHistory(p.Stdout, c.historyCommand, c.Metric, request, func(point client.AccountHistoryPoint) chartPoint {
		counts := map[string]*int64{"followers": point.Followers, "following": point.Following, "views": point.Views, "likes": point.Likes, "comments": point.Comments,
			"shares": point.Shares, "bookmarks": point.Bookmarks, "engagements": point.Engagements, "videos": point.Videos}
		return chartPoint{point.Date.Time, counts[c.Metric], point.Quality != nil && *point.Quality == client.HistoryQualityInterpolated}
	})
}

// printHistory prints a history as a chart, or as JSON with --json. It calls the function `request`, which must
// return all points of the history since a given day.
func printHistory[T any](w io.Writer, c historyCommand, metric string, request func(*client.ReelTally, openapi_types.Date) ([]T, error), toChartPoint func(T) chartPoint) error {
	start, err := firstDay(c.Days)
	if err != nil {
		return err
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	points, err := request(api, start)
	if err != nil {
		return err
	}
	if c.JSON {
		for _, point := range points {
			if err := writeJSON(w, point); err != nil {
				return err
			}
		}
		return nil
	}
	if len(points) == 0 {
		_, err := fmt.Fprintf(w, "There are no history points in the last %s.\n", numberWithNoun(c.Days, "day"))
		return err
	}
	var chart []chartPoint
	for _, point := range slices.Backward(points) { // the API returns the newest day first, and the chart begins with the oldest
		chart = append(chart, toChartPoint(point))
	}
	return writeColumns(w, []column{{title: "DATE"}, {title: strings.ToUpper(metric), right: true}, {title: "GAIN", right: true}, {title: ""}}, chartRows(chart))
}

// firstDay returns the first day of a period that has the given number of days and ends today, in UTC.
func firstDay(days int) (openapi_types.Date, error) {
	if days < 1 {
		return openapi_types.Date{}, boot.UsageError{Err: fmt.Errorf("--days is %d; it must be 1 or more", days)}
	}
	return openapi_types.Date{Time: time.Now().UTC().AddDate(0, 0, 1-days)}, nil
}

// chartPoint is one day in the chart of a history.
type chartPoint struct {
	day          time.Time
	count        *int64 // nil if unknown
	interpolated bool
}

// maxBar is the width of the longest bar in characters.
const maxBar = 40

// chartRows returns the date, count, gain and bar of each point. Between two points, a single row
// stands for all days without a point. The point after such days has no gain, because its gain would cover several days.
func chartRows(oldestFirst []chartPoint) [][]string {
	largest := int64(1)
	for _, p := range oldestFirst {
		if p.count != nil {
			largest = max(largest, *p.count)
		}
	}
	var rows [][]string
	var before *int64
	var day time.Time
	for _, p := range oldestFirst {
		if missing := int(p.day.Sub(day).Hours()/24) - 1; !day.IsZero() && missing > 0 {
			rows = append(rows, []string{"…", "", "", numberWithNoun(missing, "day") + " without a history point"})
			before = nil
		}
		day = p.day
		n, gain, bar := p.count, "", ""
		if n != nil {
			symbol := "█"
			if p.interpolated {
				symbol = "░"
			}
			bar = strings.Repeat(symbol, int(float64(max(*n, 0))/float64(largest)*maxBar+0.5))
			if p.interpolated {
				bar += " interpolated"
			}
			if before != nil {
				gain = formatWithSign(*n - *before)
			}
		}
		before = n
		rows = append(rows, []string{day.Format(time.DateOnly), formatCount(n), gain, bar})
	}
	return rows
}
