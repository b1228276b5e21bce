package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

type videosHistory struct {
	apiCommand
	Video  string `arg:"" help:"Id or link of the video."`
	Metric string `default:"views" enum:"views,likes,comments,shares,bookmarks,engagements" placeholder:"METRIC" help:"Metric of the chart: views, likes, comments, shares, bookmarks or engagements."`
	Days   int    `default:"30" placeholder:"N" help:"How many days, up to 90, or up to 730 for the tier premium."`
	JSON   bool   `name:"json" help:"Print one JSON object a day, as the API returns it, the newest first."`
}

// Help returns the text below the first line of the help.
func (videosHistory) Help() string {
	return "Interpolated days have light bars. A day whose count is unknown has no bar, and a line says how many days have no point.\n\n" +
		"Example: reeltally videos history https://youtu.be/dQw4w9WgXcQ --metric likes --days 60"
}

// Run prints the history of a video.
func (c *videosHistory) Run(ctx context.Context, p boot.Process) error {
	if c.Days < 1 {
		return boot.UsageError{Err: fmt.Errorf("--days is %d; it must be 1 or more", c.Days)}
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	start := openapi_types.Date{Time: time.Now().UTC().AddDate(0, 0, 1-c.Days)}
	points, err := api.GetVideoHistory(ctx, c.Video, client.GetVideoHistoryOptions{StartDate: start})
	if err != nil {
		return err
	}
	if c.JSON {
		for _, point := range points {
			if err := writeJSON(p.Stdout, point); err != nil {
				return err
			}
		}
		return nil
	}
	if len(points) == 0 {
		_, err := fmt.Fprintf(p.Stdout, "There are no points in the last %s.\n", counted(c.Days, "day"))
		return err
	}
	slices.Reverse(points) // the oldest first
	return writeColumns(p.Stdout, []column{{title: "DATE"}, {title: strings.ToUpper(c.Metric), right: true}, {title: "GAIN", right: true}, {title: ""}}, chartRows(points, c.Metric))
}

// maxBar is the width of the longest bar in characters.
const maxBar = 40

// chartRows returns the rows of a chart: date, count, gain since the point before, and a bar. points are ordered by date.
func chartRows(points []client.VideoHistoryPoint, metric string) [][]string {
	value := func(p client.VideoHistoryPoint) *int64 {
		return map[string]*int64{"views": p.Views, "likes": p.Likes, "comments": p.Comments, "shares": p.Shares, "bookmarks": p.Bookmarks, "engagements": p.Engagements}[metric]
	}
	largest := int64(1)
	for _, p := range points {
		if n := value(p); n != nil {
			largest = max(largest, *n)
		}
	}
	var rows [][]string
	var before *int64
	var day time.Time
	for _, p := range points {
		if missing := int(p.Date.Sub(day).Hours()/24) - 1; !day.IsZero() && missing > 0 {
			rows = append(rows, []string{"…", "", "", counted(missing, "day") + " without a point"})
		}
		day = p.Date.Time
		n, gain, bar := value(p), "", ""
		if n != nil {
			symbol := "█"
			if p.Interpolated != nil && *p.Interpolated {
				symbol = "░"
			}
			bar = strings.Repeat(symbol, int(float64(max(*n, 0))/float64(largest)*maxBar+0.5))
			if symbol == "░" {
				bar += " interpolated"
			}
			if before != nil {
				gain = withSign(*n - *before)
			}
		}
		before = n
		rows = append(rows, []string{p.Date.String(), count(n), gain, bar})
	}
	return rows
}
