package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/internal/words"
)

type videosList struct {
	apiCommand
	Platform       client.Platform    `placeholder:"NAME" help:"Only videos of this platform: tiktok, instagram, youtube or facebook."`
	Username       string             `placeholder:"HANDLE" help:"Only videos of the account with this handle."`
	Collection     []string           `sep:"none" placeholder:"NAME|ID" help:"Only videos of this collection. Repeat it for several collections."`
	Hashtag        string             `placeholder:"TAG" help:"Only videos whose caption contains this hashtag."`
	Search         string             `short:"q" api:"q" placeholder:"TEXT" help:"Only videos whose caption contains each word of this text, also inside a longer word."`
	FetchStatus    client.FetchStatus `placeholder:"STATUS" help:"Only videos with this state of fetching, for example ok."`
	IncludeRemoved bool               `help:"Also stopped videos."`
	OrderBy        client.VideoOrder  `placeholder:"MEMBER" help:"Member to sort by, for example latest_views, uploaded_at or views_gained_7d. Without it, latest_updated_at."`
	Ascending      bool               `help:"Smallest or oldest first."`
	Limit          int                `short:"n" default:"50" placeholder:"N" help:"How many videos; 0 means all."`
	JSON           bool               `name:"json" help:"Print one JSON object a video, as the API returns it."`
}

// Help returns the text that --help shows below the summary of the command.
func (videosList) Help() string {
	return "Examples: reeltally list --order-by latest_views --limit 10\nor: reeltally list --platform tiktok --limit 0 --json"
}

// Run prints the videos that match the flags as a table, or as one JSON object a line. It warns on standard error if the tier hides the counts.
func (c *videosList) Run(ctx context.Context, p boot.Process) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	if c.Limit < 0 {
		return boot.UsageError{Err: fmt.Errorf("--limit is %d; it must be 0 or more", c.Limit)}
	}
	if err := checkCollections(ctx, api, c.Collection); err != nil {
		return err
	}
	options := client.ListVideosOptions{Platform: c.Platform, Username: c.Username, Collections: c.Collection, Hashtag: c.Hashtag, Q: c.Search,
		FetchStatus: c.FetchStatus, IncludeRemoved: c.IncludeRemoved, OrderBy: c.OrderBy, OrderDirection: orderDirection(c.Ascending), Limit: pageSize(c.Limit)}
	videos := warnIfMasked(p.Stderr, api.AllVideos(ctx, options), func(v client.Video) *bool { return v.MetricsMasked })
	return printEntries(p.Stdout, firstEntries(videos, c.Limit), c.JSON, videoColumns, videoRow)
}

var videoColumns = []column{{title: "PLATFORM"}, {title: "ACCOUNT"}, {title: "TITLE", wide: true}, {title: "VIEWS", right: true}, {title: "LIKES", right: true},
	{title: "COMMENTS", right: true, extra: true}, {title: "SHARES", right: true, extra: true}, {title: "UPLOADED", extra: true}, {title: "ID", extra: true}}

// videoRow returns the cells of a video for the table with videoColumns.
func videoRow(v client.Video) []string {
	uploaded := "-"
	if v.UploadedAt != nil {
		uploaded = v.UploadedAt.String()
	}
	return []string{string(v.Platform), plainText(v.Username), plainText(v.Title), formatCount(v.LatestViews), formatCount(v.LatestLikes), formatCount(v.LatestComments), formatCount(v.LatestShares),
		uploaded, v.AdID.String()}
}

type videosShow struct {
	apiCommand
	Video string `arg:"" help:"Id or link of the video."`
	JSON  bool   `name:"json" help:"Print the JSON object of the API."`
}

// Run prints the latest counts and the details of one video, or its JSON.
func (c *videosShow) Run(ctx context.Context, p boot.Process) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	v, err := api.GetVideo(ctx, c.Video)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(p.Stdout, v)
	}
	fetched, uploaded := "not yet", "-"
	if v.LatestUpdatedAt != nil {
		fetched = v.LatestUpdatedAt.UTC().Format(time.DateTime) + " UTC"
	}
	if v.UploadedAt != nil {
		uploaded = v.UploadedAt.String()
	}
	for _, line := range [][2]string{{"Title", v.Title}, {"Account", v.Username}, {"Link", v.AdLink}, {"Id", v.AdID.String()}, {"Uploaded", uploaded},
		{"Collections", strings.Join(v.LabelNames, ", ")}, {"Views", formatCount(v.LatestViews)}, {"Likes", formatCount(v.LatestLikes)}, {"Comments", formatCount(v.LatestComments)},
		{"Shares", formatCount(v.LatestShares)}, {"Bookmarks", formatCount(v.LatestBookmarks)}, {"Fetched", fetched}, {"State", string(v.FetchStatus)}} {
		if _, err := fmt.Fprintf(p.Stdout, "%-12s %s\n", line[0], plainText(line[1])); err != nil {
			return err
		}
	}
	return nil
}

type videosWatch struct {
	apiCommand
	Video      string        `arg:"" optional:"" help:"Id or link of the video."`
	Collection string        `placeholder:"NAME|ID" help:"Watch all videos of this collection instead of one video."`
	Every      time.Duration `default:"1m" placeholder:"TIME" help:"How often the server is asked, 1s or longer."`
	JSON       bool          `name:"json" help:"Print the JSON object of each changed video."`
}

// Run prints the counts of the videos, and prints them again whenever they change, until ctx ends.
func (c *videosWatch) Run(ctx context.Context, p boot.Process) error {
	if (c.Video == "") == (c.Collection == "") {
		return boot.UsageError{Err: errors.New("pass either the id or link of a video, or the flag --collection")}
	}
	if c.Every < time.Second {
		return boot.UsageError{Err: fmt.Errorf("--every is %s; it must be 1s or longer", words.Duration(c.Every))}
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	if c.Collection != "" { // check that the collection exists, because for an unknown collection the list would be empty without an error
		id, err := findCollection(ctx, api, c.Collection)
		if err != nil {
			return err
		}
		c.Collection = id.String()
	}
	seen := map[uuid.UUID]videoCounts{}
	ticker := time.NewTicker(c.Every)
	defer ticker.Stop()
	for {
		videos, err := c.readVideos(ctx, api)
		var refused *client.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.StatusCode < http.StatusInternalServerError && refused.StatusCode != http.StatusTooManyRequests:
			return err
		case err != nil:
			_, _ = fmt.Fprintf(p.Stderr, "%s: %v; the next attempt is in %s\n", p.Name, err, c.Every)
		}
		for _, v := range videos {
			counts := countsOf(v)
			before, known := seen[v.AdID]
			if known && maps.Equal(before, counts) {
				continue
			}
			seen[v.AdID] = counts
			if err := c.printCounts(p.Stdout, v, before, counts); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// readVideos requests the watched videos: the video c.Video, or all videos of the collection.
func (c *videosWatch) readVideos(ctx context.Context, api *client.ReelTally) (videos []client.Video, _ error) {
	if c.Video != "" {
		v, err := api.GetVideo(ctx, c.Video)
		if err != nil {
			return nil, err
		}
		return []client.Video{v}, nil
	}
	for v, err := range api.AllVideos(ctx, client.ListVideosOptions{Collections: []string{c.Collection}, Limit: pageSize(0)}) {
		if err != nil {
			return nil, err
		}
		videos = append(videos, v)
	}
	return videos, nil
}

// videoCounts has the known counts of a video. The key is the name of the metric, such as "views".
type videoCounts map[string]int64

// watchedMetrics are the metrics that `reeltally watch` prints, in this order.
var watchedMetrics = []string{"views", "likes", "comments", "shares", "bookmarks"}

// countsOf returns a map from metrics to the latest counts of a video. It leaves out unknown counts.
func countsOf(v client.Video) videoCounts {
	counts := videoCounts{}
	for i, n := range []*int64{v.LatestViews, v.LatestLikes, v.LatestComments, v.LatestShares, v.LatestBookmarks} {
		if n != nil {
			counts[watchedMetrics[i]] = *n
		}
	}
	return counts
}

// printCounts writes one line with the counts of a video. If a count has changed since the video's
// previous line, the difference follows the count.
func (c *videosWatch) printCounts(w io.Writer, v client.Video, lastPrinted, counts videoCounts) error {
	if c.JSON {
		return writeJSON(w, v)
	}
	line := []string{time.Now().UTC().Format(time.DateTime) + " UTC", plainText(v.AdLink)}
	for _, metric := range watchedMetrics {
		n, known := counts[metric]
		if !known {
			line = append(line, metric+" -")
			continue
		}
		change := ""
		if old, known := lastPrinted[metric]; known && old != n {
			change = " (" + formatWithSign(n-old) + ")"
		}
		line = append(line, metric+" "+formatCount(&n)+change)
	}
	_, err := fmt.Fprintln(w, strings.Join(line, "  "))
	return err
}

// formatWithSign formats a number with its sign, for example +1,200.
func formatWithSign(n int64) string {
	if n > 0 {
		return "+" + formatCount(&n)
	}
	return formatCount(&n)
}

type videosRefresh struct {
	apiCommand
	Links []string `arg:"" optional:"" name:"video" help:"Ids or links of videos. Without any, they are read from standard input, one a line."`
	JSON  bool     `name:"json" help:"Print one JSON object a video: {\"video\", \"scheduled\", \"refresh_after\"}."`
}

// Run asks the server to fetch each video now, and prints the result for each.
func (c *videosRefresh) Run(ctx context.Context, p boot.Process) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	videos, err := argumentsOrLines(c.Links, p.Stdin, "videos")
	if err != nil {
		return err
	}
	for _, video := range videos {
		notDue, err := api.RefreshVideo(ctx, client.RefreshVideoOptions{Link: video})
		if err != nil {
			return fmt.Errorf("%s: %w", video, err)
		}
		var after *apiTime
		text := "a fetch is scheduled"
		if notDue.Message != "" {
			after, text = &apiTime{notDue.RefreshAfter}, notDue.Message
		}
		if c.JSON {
			err = writeJSON(p.Stdout, struct {
				Video        string   `json:"video"`
				Scheduled    bool     `json:"scheduled"`
				RefreshAfter *apiTime `json:"refresh_after"`
			}{video, after == nil, after})
		} else {
			_, err = fmt.Fprintf(p.Stdout, "%s: %s\n", plainText(video), plainText(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
