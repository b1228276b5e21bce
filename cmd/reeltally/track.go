package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

// trackCommand is the common part of the commands that track videos or accounts.
type trackCommand struct {
	apiCommand
	Links      []string `arg:"" optional:"" name:"link" help:"Links to track. Without any, the links are read from standard input, one a line."`
	Collection string   `placeholder:"NAME|ID" help:"Also add the tracked videos or accounts to this collection."`
	JSON       bool     `name:"json" help:"Print one JSON object a link, as the API returns it."`
}

// trackedLink is the result of tracking the link of one video or account.
type trackedLink struct {
	json        any // object in the response of the API, for the flag --json
	status, url string
	id          *uuid.UUID // nil if the link was not saved
	failure     *string    // nil if the link was saved
}

// trackLinks tracks the given links and prints a line for each. It returns an error if a link was not saved.
func (c *trackCommand) trackLinks(ctx context.Context, p boot.Process,
	sendRequest func(api *client.ReelTally, links []string, collections []uuid.UUID) (results []trackedLink, warnings []string, err error),
) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	links, err := argumentsOrLines(c.Links, p.Stdin, "links")
	if err != nil {
		return err
	}
	var collections []uuid.UUID
	if c.Collection != "" {
		id, err := findCollection(ctx, api, c.Collection)
		if err != nil {
			return err
		}
		collections = []uuid.UUID{id}
	}
	bar := newProgress(io.Discard, boot.Logging{LogLevel: "warn"}.Logger(p.Stderr), "track", "links", int64(len(links)))
	if len(links) > maxLinks && !boot.IsTerminal(p.Stdout) { // on a terminal, the printed lines show the progress
		bar = newProgress(p.Stderr, boot.Logging{LogLevel: "info"}.Logger(p.Stderr), "track", "links", int64(len(links)))
	}
	defer bar.finish(ctx)
	failed, done := 0, 0
	for batch := range slices.Chunk(links, maxLinks) {
		results, warnings, err := sendRequest(api, batch, collections)
		if err != nil {
			return fmt.Errorf("a request failed after %s had been sent: %w", numberWithNoun(done, "link"), err)
		}
		for _, result := range results {
			if result.failure != nil {
				failed++
			}
			if err := c.printResult(p.Stdout, result); err != nil {
				return err
			}
		}
		for _, warning := range warnings {
			_, _ = fmt.Fprintln(p.Stderr, plainText(warning))
		}
		done += len(batch)
		bar.showDone(ctx, int64(done), 0)
	}
	if failed > 0 {
		return fmt.Errorf("not saved: %s", numberWithNoun(failed, "link"))
	}
	return nil
}

// printResult writes the result of one link as one line: status, link, and the id or the reason of the failure. With --json, the line is the object
// of the API.
func (c *trackCommand) printResult(w io.Writer, result trackedLink) error {
	if c.JSON {
		return writeJSON(w, result.json)
	}
	note := ""
	if result.id != nil {
		note = result.id.String()
	}
	if result.failure != nil {
		note = plainText(*result.failure)
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", result.status, plainText(result.url), note)
	return err
}

type videosTrack struct {
	trackCommand
}

// Help returns the text that --help shows below the summary of the command.
func (videosTrack) Help() string {
	return "The exit status is 1 if any link was not saved.\n\n" +
		"Examples: reeltally track https://youtu.be/dQw4w9WgXcQ\n" +
		"or: reeltally track --collection Spring < links.txt"
}

// Run sends the links to the API, which tracks their videos, and prints one line for each link.
func (c *videosTrack) Run(ctx context.Context, p boot.Process) error {
	return c.trackLinks(ctx, p, func(api *client.ReelTally, links []string, collections []uuid.UUID) (results []trackedLink, warnings []string, _ error) {
		response, err := api.TrackVideos(ctx, client.TrackVideosOptions{Links: links, LabelIds: collections})
		for _, e := range response.Results {
			results = append(results, trackedLink{e, string(e.Status), e.URL, e.VideoID, e.Error})
		}
		return results, response.Warnings, err
	})
}

type accountsTrack struct {
	trackCommand
	Type client.TrackingType `name:"type" api:"tracking_type" placeholder:"TYPE" help:"Which videos of the accounts to track: latest_30, latest_200, new_only or all. Without it, latest_30."`
}

// Help returns the text that --help shows below the summary of the command.
func (accountsTrack) Help() string {
	return "The exit status is 1 if any link was not saved.\n\n" +
		"Example: reeltally accounts track --type new_only https://www.tiktok.com/@northwind.studio"
}

// Run sends the links to the API, which tracks their accounts, and prints one line for each link.
func (c *accountsTrack) Run(ctx context.Context, p boot.Process) error {
	return c.trackLinks(ctx, p, func(api *client.ReelTally, links []string, collections []uuid.UUID) (results []trackedLink, warnings []string, _ error) {
		response, err := api.TrackAccounts(ctx, client.TrackAccountsOptions{Links: links, LabelIds: collections, TrackingType: c.Type})
		for _, e := range response.Results {
			results = append(results, trackedLink{e, string(e.Status), e.URL, e.AccountID, e.Error})
		}
		return results, response.Warnings, err
	})
}

// stopCommand is the common part of the commands that stop tracking videos or accounts.
type stopCommand struct {
	apiCommand
	Stopped []string `arg:"" optional:"" name:"id or link" help:"Ids or links. Without any, they are read from standard input, one a line."`
	JSON    bool     `name:"json" help:"Print one JSON object an id or link, as the API returns it."`
}

// stopTracking stops tracking the given videos or accounts, and prints a line for each. It returns
// an error if one of them could not be stopped.
func (c *stopCommand) stopTracking(p boot.Process, sendRequest func(api *client.ReelTally, ids []string) (client.StopResult, error)) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	all, err := argumentsOrLines(c.Stopped, p.Stdin, "ids or links")
	if err != nil {
		return err
	}
	failed := 0
	for batch := range slices.Chunk(all, maxLinks) {
		result, err := sendRequest(api, batch)
		if err != nil {
			return err
		}
		for _, entry := range result.Results {
			text := "stopped"
			if !entry.Success {
				failed++
				text = "not stopped"
				if entry.Error != nil {
					text += ": " + plainText(*entry.Error)
				}
			}
			if c.JSON {
				err = writeJSON(p.Stdout, entry)
			} else {
				_, err = fmt.Fprintf(p.Stdout, "%s  %s\n", entry.ID, text)
			}
			if err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d videos or accounts could not be stopped: see the reasons in the output", failed, len(all))
	}
	return nil
}

type videosStop struct {
	stopCommand
}

// Run stops the tracking of the videos with the given links or ids. Their stored numbers stay.
func (c *videosStop) Run(ctx context.Context, p boot.Process) error {
	return c.stopTracking(p, func(api *client.ReelTally, ids []string) (client.StopResult, error) {
		return api.StopVideos(ctx, client.StopVideosOptions{Ids: ids})
	})
}

type accountsStop struct {
	stopCommand
}

// Run tells the server to stop tracking the accounts.
func (c *accountsStop) Run(ctx context.Context, p boot.Process) error {
	return c.stopTracking(p, func(api *client.ReelTally, ids []string) (client.StopResult, error) {
		return api.StopAccounts(ctx, client.StopAccountsOptions{Ids: ids})
	})
}
