package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/reeltally/reeltally/outbound"
)

type healthcheckCommand struct {
	URL string `arg:"" optional:"" default:"http://127.0.0.1:8080/readyz" help:"Address to read, by default /readyz of a server on this machine."`
}

// healthTimeout is the time limit of a health check. It is longer than two seconds, the maximum time that the server needs for /readyz.
const healthTimeout = 4 * time.Second

// Run checks that the URL responds with status 200. The health checks of containers use this
// command, because the image has no other HTTP client.
func (c healthcheckCommand) Run(ctx context.Context) error {
	reach, err := outbound.AllowOneServer(c.URL)
	if err != nil {
		return err
	}
	transport := outbound.NewTransport(&outbound.Guard{Reach: reach})
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: healthTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // the body need not be read, because only the status matters
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered with status %d", c.URL, response.StatusCode)
	}
	return nil
}
