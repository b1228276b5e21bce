// Command top-videos prints the five videos with the most views. For each video, it also prints the views on the days of the last month.
package main

import (
	"context"
	"fmt"

	"github.com/reeltally/reeltally/gen/client"
)

func main() {
	ctx, c := context.Background(), client.Must(client.New("", "")) // reads REELTALLY_URL and REELTALLY_TOKEN
	top := client.Must(c.ListVideos(ctx, client.ListVideosOptions{OrderBy: client.VideoOrderLatestViews, Limit: 5}))
	for _, video := range top.Data {
		fmt.Println(video.AdLink)
		for _, point := range client.Must(c.GetVideoHistory(ctx, video.AdID.String(), client.GetVideoHistoryOptions{})) {
			if point.Views != nil { // nil is unknown, not zero
				fmt.Println(point.Date, *point.Views)
			}
		}
	}
}
