// Command export writes all videos as CSV to standard output.
package main

import (
	"context"
	"log"
	"net/url"
	"os"

	"github.com/reeltally/reeltally/gen/client"
)

func main() {
	c, err := client.New("", "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Download(context.Background(), os.Stdout, "/videos", url.Values{"limit": {"5000"}}, client.CSV); err != nil {
		log.Fatal(err)
	}
}
