// Command export writes all videos as CSV to standard output.
package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/reeltally/reeltally/gen/client"
)

func main() {
	c, err := client.New("", "")
	if err != nil {
		log.Fatal(err)
	}
	asCSV := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "text/csv")
		return nil
	}
	response, err := c.Raw.ListVideos(context.Background(), nil, asCSV)
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		log.Fatal(response.Status)
	}
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		log.Fatal(err)
	}
}
