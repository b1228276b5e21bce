package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// exportCommands are the commands that save all entries of a list. All of them call the API, except `export database`. `export database` reads
// the database, so it needs no token.
type exportCommands struct {
	Videos      exportVideos      `cmd:"" group:"Commands that call the API of a server" help:"Save all tracked videos with their latest counts as CSV or NDJSON."`
	Accounts    exportAccounts    `cmd:"" group:"Commands that call the API of a server" help:"Save all tracked accounts as CSV or NDJSON."`
	Collections exportCollections `cmd:"" group:"Commands that call the API of a server" help:"Save all collections as CSV or NDJSON."`
	Histories   exportHistories   `cmd:"" group:"Commands that call the API of a server" help:"Save the stored points of all videos, also of stopped ones, as CSV or NDJSON."`
	Database    exportDatabase    `cmd:"" default:"withargs" help:"Write an organisation's videos and their histories to a file."`
}

// exportCommand is the common part of the commands that export over the API.
type exportCommand struct {
	apiCommand
	Format string `default:"csv" enum:"csv,csv-semicolon,ndjson" placeholder:"FORMAT" help:"csv, csv-semicolon for spreadsheets with a decimal comma, or ndjson for one JSON object a line."`
	Out    string `short:"o" placeholder:"FILE" help:"File to write. It appears when it is complete. Without it, or with -, standard output."`
}

// formats is a map from the values of the flag --format to the media types of the API.
var formats = map[string]string{"csv": client.CSV, "csv-semicolon": client.CSVSemicolon, "ndjson": client.NDJSON}

// isCSV returns true if the file has one of the two CSV formats.
func (c *exportCommand) isCSV() bool { return c.Format != "ndjson" }

// separator returns the text between two columns of a CSV file.
func (c *exportCommand) separator() string {
	if c.Format == "csv-semicolon" {
		return ";"
	}
	return ","
}

// saveEntries writes entries to the file or to standard output. The progress bar shows entryNoun, a
// plural such as "videos", and the total from countEntries, which can be nil.
func (c *exportCommand) saveEntries(ctx context.Context, p boot.Process, entryNoun string, countEntries func(*client.ReelTally) (int64, error), writeEntries func(*client.ReelTally, io.Writer) error) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	out, err := openOutput(p, c.Out)
	if err != nil {
		return err
	}
	if err := warnIfNotPremium(ctx, p.Stderr, api); err != nil {
		return errors.Join(err, out.close())
	}
	var total int64
	if countEntries != nil {
		if total, err = countEntries(api); err != nil {
			return errors.Join(err, out.close())
		}
	}
	bar := newProgress(p.Stderr, boot.Logging{LogLevel: "info"}.Logger(p.Stderr), "export", entryNoun, total)
	if out.isStandardOutput() && boot.IsTerminal(p.Stdout) { // the rows are printed on the terminal, so draw no progress bar
		bar = newProgress(io.Discard, boot.Logging{LogLevel: "warn"}.Logger(p.Stderr), "export", entryNoun, 0)
	}
	defer bar.finish(ctx)
	writeTo := func(output io.Writer) error {
		w := bufio.NewWriter(&rowCounter{Writer: output, isCSV: c.isCSV(), show: func(rows int64) {
			if c.isCSV() {
				rows-- // do not count the line with the column names
			}
			bar.showDone(ctx, rows, 0)
		}})
		return errors.Join(writeEntries(api, w), w.Flush())
	}
	if out.stream != nil {
		return errors.Join(writeTo(out.stream), out.stream.Close())
	}
	file, err := os.CreateTemp(filepath.Dir(out.path), filepath.Base(out.path)+".part-*")
	if err != nil {
		return err
	}
	if err := errors.Join(writeTo(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), out.path)
}

// warnIfNotPremium writes a warning if the organisation does not have the tier premium. The export is then incomplete, because the API returns only the
// first entry of each list.
func warnIfNotPremium(ctx context.Context, w io.Writer, api *client.ReelTally) error {
	found, err := api.Authenticate(ctx)
	if err != nil || found.Organisation.Tier == client.OrganisationTierPremium {
		return err
	}
	_, err = fmt.Fprintln(w, tierWarning)
	return err
}

// tierWarning is the warning for an organisation that has the tier "limited" or "basic".
const tierWarning = "In the tier of this organisation, a list returns only the first result, without metrics. In the tier premium, a list returns all results."

// pageLimit is maxPage as text, for the query parameter "limit".
var pageLimit = strconv.Itoa(maxPage)

// includeRemoved is the flag of the commands that export videos or accounts.
type includeRemoved struct {
	IncludeRemoved bool `help:"Also save those whose tracking was stopped."`
}

// query returns the query parameters of the pages of the list.
func (i includeRemoved) query() url.Values {
	return url.Values{"limit": {pageLimit}, "include_removed": {strconv.FormatBool(i.IncludeRemoved)}}
}

type exportVideos struct {
	exportCommand
	includeRemoved
}

// Help returns the text that --help shows below the summary of the command.
func (exportVideos) Help() string { return "Example: reeltally export videos -o videos.csv" }

// Run writes all tracked videos to the file or to standard output, and with --include-removed also the stopped videos. If a sandbox made up the numbers,
// each written video names the sandbox as its source. So an import does not store the numbers as real numbers.
func (c *exportVideos) Run(ctx context.Context, p boot.Process) error {
	count := func(api *client.ReelTally) (int64, error) {
		page, err := api.ListVideos(ctx, client.ListVideosOptions{Limit: 1, IncludeRemoved: c.IncludeRemoved})
		return page.Pagination.Total, err
	}
	return c.saveEntries(ctx, p, "videos", count, func(api *client.ReelTally, w io.Writer) error {
		detector := &sandboxDetector{HttpRequestDoer: api.Raw.Client}
		api.Raw.Client = detector
		if c.isCSV() {
			_, err := api.Download(ctx, &sourceWriter{Writer: w, separator: c.separator(), detector: detector}, "/videos", c.query(), formats[c.Format])
			return err
		}
		for video, err := range api.AllJSON(ctx, "/videos", c.query()) {
			if err != nil {
				return err
			}
			if detector.madeUp {
				video = append([]byte(`{"source":"`+store.SandboxSource+`",`), video[1:]...)
			}
			if err := writeJSON(w, video); err != nil {
				return err
			}
		}
		return nil
	})
}

// sandboxDetector sends requests. It finds out from the responses whether the server has numbers of the sandbox.
type sandboxDetector struct {
	client.HttpRequestDoer
	madeUp bool // true if at least one response had numbers of the sandbox
}

// Do sends a request, and sets madeUp if the response has the header of the sandbox.
func (d *sandboxDetector) Do(r *http.Request) (*http.Response, error) {
	response, err := d.HttpRequestDoer.Do(r)
	if err == nil && response.Header.Get(reeltally.SandboxHeader) == "true" {
		d.madeUp = true
	}
	return response, err
}

// sourceWriter marks made-up numbers in a CSV file with the column "source". So `reeltally import`
// does not store them as real numbers.
type sourceWriter struct {
	io.Writer
	separator string // text between two columns
	detector  *sandboxDetector
	begun     bool // whether Write was called
	madeUp    bool // true if the sandbox made up the numbers on the first page
	quoted    bool // whether the next character is within quotes
	rows      int  // number of rows so far
}

func (s *sourceWriter) Write(part []byte) (int, error) {
	if !s.begun { // the first page decides for all rows whether there is a column "source"
		s.begun, s.madeUp = true, s.detector.madeUp
	}
	if !s.madeUp {
		return s.Writer.Write(part)
	}
	extended := make([]byte, 0, len(part))
	for _, char := range part {
		switch {
		case char == '"':
			s.quoted = !s.quoted
		case char == '\n' && !s.quoted:
			cell := store.SandboxSource
			if s.rows++; s.rows == 1 {
				cell = "source"
			}
			extended = append(extended, s.separator+cell...)
		}
		extended = append(extended, char)
	}
	if _, err := s.Writer.Write(extended); err != nil {
		return 0, err
	}
	return len(part), nil
}

type exportAccounts struct {
	exportCommand
	includeRemoved
}

// Run writes all tracked accounts to the file or to standard output, with their latest counts, and with --include-removed also the stopped accounts.
func (c *exportAccounts) Run(ctx context.Context, p boot.Process) error {
	count := func(api *client.ReelTally) (int64, error) {
		page, err := api.ListAccounts(ctx, client.ListAccountsOptions{Limit: 1, IncludeRemoved: c.IncludeRemoved})
		return page.Pagination.Total, err
	}
	return c.saveEntries(ctx, p, "accounts", count, func(api *client.ReelTally, w io.Writer) error {
		query := c.query()
		query.Set("paginated", "true")
		if c.isCSV() {
			_, err := api.Download(ctx, w, "/accounts", query, formats[c.Format])
			return err
		}
		return writeLines(w, api.AllJSON(ctx, "/accounts", query))
	})
}

type exportCollections struct{ exportCommand }

// Run writes all collections, including subcollections, to the file or to standard output. The order is that of the API.
func (c *exportCollections) Run(ctx context.Context, p boot.Process) error {
	return c.saveEntries(ctx, p, "collections", nil, func(api *client.ReelTally, w io.Writer) error {
		query := url.Values{"limit": {pageLimit}, "paginated": {"true"}, "include_children": {"true"}}
		if c.isCSV() {
			_, err := api.Download(ctx, w, "/collections", query, formats[c.Format])
			return err
		}
		return writeLines(w, api.AllJSON(ctx, "/collections", query))
	})
}

type exportHistories struct {
	exportCommand
	UpdatedSince time.Time `placeholder:"TIME" help:"Only points that were fetched since then, for example 2026-02-01T00:00:00Z."`
}

// Help returns the text that --help shows below the summary of the command.
func (exportHistories) Help() string {
	return "The export ends with a line on standard error that names the time for --updated-since of the next export.\n\n" +
		"Example: reeltally export histories --format ndjson --updated-since 2026-02-01T00:00:00Z"
}

// Run writes the stored points of all videos to the file or to standard output. With --updated-since, it leaves out points that were fetched earlier.
func (c *exportHistories) Run(ctx context.Context, p boot.Process) error {
	query := url.Values{}
	if !c.UpdatedSince.IsZero() {
		query.Set("updated_since", c.UpdatedSince.Format(time.RFC3339Nano))
	}
	return c.saveEntries(ctx, p, "histories", nil, func(api *client.ReelTally, w io.Writer) error {
		headers, err := api.Download(ctx, w, "/history/export", query, formats[c.Format])
		if err == nil {
			_, err = fmt.Fprintf(p.Stderr, "The next export can begin with --updated-since %s\n", headers.Get("Exported-Until"))
		}
		return err
	})
}

// rowCounter counts the rows of the file that it writes. In a CSV file, a line break within quotes
// does not end the row.
type rowCounter struct {
	io.Writer
	isCSV  bool // whether the file has a CSV format
	quoted bool // whether the next character is within quotes
	rows   int64
	show   func(rows int64) // function that is called after each write with the number of rows so far
}

func (c *rowCounter) Write(part []byte) (int, error) {
	for _, char := range part {
		switch {
		case char == '"' && c.isCSV:
			c.quoted = !c.quoted
		case char == '\n' && !c.quoted:
			c.rows++
		}
	}
	c.show(c.rows)
	return c.Writer.Write(part)
}

// writeLines writes entries as NDJSON, one object a line, until the first error.
func writeLines(w io.Writer, entries iter.Seq2[json.RawMessage, error]) error {
	for entry, err := range entries {
		if err != nil {
			return err
		}
		if err := writeJSON(w, entry); err != nil {
			return err
		}
	}
	return nil
}
