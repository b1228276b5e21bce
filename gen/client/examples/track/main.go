// Command track tracks the links in its arguments and prints the result for each.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/reeltally/reeltally/gen/client"
)

func main() {
	c, err := client.New("", "")
	if err != nil {
		log.Fatal(err)
	}
	answer, err := c.TrackVideos(context.Background(), client.TrackVideosOptions{Links: os.Args[1:]})
	if refused, ok := errors.AsType[*client.Error](err); ok {
		log.Fatalf("%s: %s", refused.Code, refused.Detail)
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range answer.Results {
		fmt.Println(result.Status, result.URL)
	}
	for _, warning := range answer.Warnings {
		log.Println(warning)
	}
}
