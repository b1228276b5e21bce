// Command caller uses the installed Go client. It tracks 10,000 videos, lists some of them, reads all pages of the list, and exports the list to
// the file that its argument names. It prints four numbers of videos: the tracked videos, the videos on the first page, the total
// of the list, and the videos on all pages.
package main

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"os"

	"github.com/reeltally/reeltally/gen/client"
)

const (
	videos  = 10_000
	perCall = 500
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string) error {
	c, err := client.New("", "")
	if err != nil {
		return err
	}
	tracked := 0
	for first := 0; first < videos; first += perCall {
		links := make([]string, perCall)
		for n := range links {
			links[n] = fmt.Sprintf("https://www.tiktok.com/@creator/video/73012345%011d", first+n)
		}
		response, err := c.TrackVideos(ctx, client.TrackVideosOptions{Links: links})
		if err != nil {
			return err
		}
		tracked += int(response.Summary.Succeeded)
	}

	page, err := c.ListVideos(ctx, client.ListVideosOptions{OrderBy: client.VideoOrderCreatedAt, Limit: 5})
	if err != nil {
		return err
	}

	ids := map[string]bool{}
	for video, err := range c.AllVideos(ctx, client.ListVideosOptions{Limit: 200}) {
		if err != nil {
			return err
		}
		if video.LatestViews != nil {
			return fmt.Errorf("the video %s was never fetched and has %d views", video.AdID, *video.LatestViews)
		}
		ids[video.AdID.String()] = true
	}

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := c.Download(ctx, file, "/videos", url.Values{"limit": {"5000"}}, client.CSV); err != nil {
		return err
	}
	fmt.Println(tracked, len(page.Data), page.Pagination.Total, len(ids))
	return file.Close()
}
