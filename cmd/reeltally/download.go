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
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

type downloadCommand struct {
	apiCommand
	What         string    `arg:"" enum:"videos,accounts,collections,histories" help:"What to download: videos, accounts, collections or histories. Histories are the stored points of all videos."`
	Format       string    `default:"csv" enum:"csv,csv-semicolon,ndjson" placeholder:"FORMAT" help:"csv, csv-semicolon for spreadsheets with a decimal comma, or ndjson for one JSON object a line."`
	Output       string    `short:"o" placeholder:"FILE" help:"File to write. It appears when it is complete. Without it, standard output."`
	UpdatedSince time.Time `placeholder:"TIME" help:"Only points of histories that were fetched since then, for example 2026-02-01T00:00:00Z."`
}

// Help returns the text below the first line of the help.
func (downloadCommand) Help() string {
	return "A download of histories ends with a line on standard error that names the time for --updated-since of the next download.\n\n" +
		"Examples: reeltally download videos -o videos.csv\nor: reeltally download histories --format ndjson --updated-since 2026-02-01T00:00:00Z"
}

// Run writes the download to the file or to standard output.
func (c *downloadCommand) Run(ctx context.Context, p boot.Process) (err error) {
	if !c.UpdatedSince.IsZero() && c.What != "histories" {
		return boot.UsageError{Err: errors.New("--updated-since is only for histories")}
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	out := p.Stdout
	if c.Output != "" {
		file, err := os.CreateTemp(filepath.Dir(c.Output), filepath.Base(c.Output)+".part-*")
		if err != nil {
			return err
		}
		if err := errors.Join(c.write(ctx, p, api, file), file.Close()); err != nil {
			return errors.Join(err, os.Remove(file.Name()))
		}
		return os.Rename(file.Name(), c.Output)
	}
	return c.write(ctx, p, api, out)
}

// isCSV reports whether the format of the download is one of the two CSV formats.
func (c *downloadCommand) isCSV() bool { return c.Format != "ndjson" }

// acceptOf has the value of the header Accept for each format of a download.
var acceptOf = map[string]string{"csv": "text/csv", "csv-semicolon": "text/csv; delimiter=semicolon", "ndjson": "application/x-ndjson"}

// newProgress starts to show the progress on standard error. If the rows themselves appear on a terminal, it shows nothing. The total is
// unknown (0) for collections and histories.
func (c *downloadCommand) newProgress(ctx context.Context, p boot.Process, api *client.ReelTally) (*progress, error) {
	if c.Output == "" && boot.IsTerminal(p.Stdout) {
		return newProgress(io.Discard, boot.Logging{LogLevel: "warn"}.Logger(p.Stderr), "download", c.What, 0), nil
	}
	var total int64
	switch c.What {
	case "videos":
		page, err := api.ListVideos(ctx, client.ListVideosOptions{Limit: 1})
		if err != nil {
			return nil, err
		}
		total = page.Pagination.Total
	case "accounts":
		page, err := api.ListAccounts(ctx, client.ListAccountsOptions{Limit: 1})
		if err != nil {
			return nil, err
		}
		total = page.Pagination.Total
	}
	return newProgress(p.Stderr, boot.Logging{LogLevel: "info"}.Logger(p.Stderr), "download", c.What, total), nil
}

// write requests the data from the server and writes it to output.
func (c *downloadCommand) write(ctx context.Context, p boot.Process, api *client.ReelTally, output io.Writer) error {
	bar, err := c.newProgress(ctx, p, api)
	if err != nil {
		return err
	}
	defer bar.finish(ctx)
	w := bufio.NewWriter(&rowCounter{Writer: output, quotes: c.isCSV(), show: func(rows int64) {
		if c.isCSV() {
			rows-- // do not count the line with the column names
		}
		bar.set(ctx, rows, 0)
	}})
	limit := pageSize(0)
	switch {
	case c.What == "videos" && c.isCSV():
		_, err = c.copyPages(w, func(edit client.RequestEditorFn) (*http.Response, error) {
			return api.Raw.ListVideos(ctx, &client.ListVideosParams{Limit: &limit}, edit)
		})
	case c.What == "accounts" && c.isCSV():
		_, err = c.copyPages(w, func(edit client.RequestEditorFn) (*http.Response, error) {
			return api.Raw.ListAccounts(ctx, &client.ListAccountsParams{Paginated: new(true), Limit: &limit}, edit)
		})
	case c.What == "collections" && c.isCSV():
		_, err = c.copyPages(w, func(edit client.RequestEditorFn) (*http.Response, error) {
			return api.Raw.ListCollections(ctx, &client.ListCollectionsParams{IncludeChildren: new(true), Paginated: new(true), Limit: &limit}, edit)
		})
	case c.What == "videos":
		err = writeLines(w, api.AllVideos(ctx, client.ListVideosOptions{Limit: limit}))
	case c.What == "accounts":
		err = writeLines(w, api.AllAccounts(ctx, client.ListAccountsOptions{Limit: limit}))
	case c.What == "collections":
		err = writeLines(w, api.AllCollections(ctx, client.ListCollectionsOptions{IncludeChildren: true, Limit: limit}))
	default:
		var since *time.Time
		if !c.UpdatedSince.IsZero() {
			since = &c.UpdatedSince
		}
		var until string
		until, err = c.copyPages(w, func(edit client.RequestEditorFn) (*http.Response, error) {
			return api.Raw.ExportHistory(ctx, &client.ExportHistoryParams{UpdatedSince: since}, edit)
		})
		if err == nil {
			_, err = fmt.Fprintf(p.Stderr, "The next download can begin with --updated-since %s\n", until)
		}
	}
	return errors.Join(err, w.Flush())
}

// rowCounter is a writer that counts the rows of the file that it writes. A row is a line. In CSV (quotes is true), a line break within
// quotes does not end the row.
type rowCounter struct {
	io.Writer
	quotes bool
	quoted bool // whether the next character is within quotes
	rows   int64
	show   func(rows int64) // called after each write, with the number of rows so far
}

func (c *rowCounter) Write(part []byte) (int, error) {
	for _, char := range part {
		switch {
		case char == '"' && c.quotes:
			c.quoted = !c.quoted
		case char == '\n' && !c.quoted:
			c.rows++
		}
	}
	c.show(c.rows)
	return c.Writer.Write(part)
}

// writeLines writes entries as JSON, one object a line.
func writeLines[T any](w io.Writer, entries iter.Seq2[T, error]) error {
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

// nextPage matches the address of the next page in the header Link.
var nextPage = regexp.MustCompile(`<([^>]*)>;\s*rel="?next"?`)

// copyPages requests all pages of a list and writes their bodies to w. The function get sends the request for a page, after the editor has
// changed it: from the second page on, the editor sets the query of that page. In CSV, copyPages writes the line with the column names only
// once. It returns the header Exported-Until of the last page.
func (c *downloadCommand) copyPages(w io.Writer, get func(client.RequestEditorFn) (*http.Response, error)) (exportedUntil string, _ error) {
	var query, columns string
	for first := true; ; first = false {
		r, err := get(func(_ context.Context, r *http.Request) error {
			if query != "" {
				r.URL.RawQuery = query // use only the query of the next address: its host could be another one, which must not get the token
			}
			r.Header.Set("Accept", acceptOf[c.Format])
			return nil
		})
		if err != nil {
			return "", err
		}
		err = c.copyPage(w, r, first, &columns)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return "", err
		}
		next := nextPage.FindStringSubmatch(r.Header.Get("Link"))
		if next == nil {
			return r.Header.Get("Exported-Until"), nil
		}
		address, err := r.Request.URL.Parse(next[1])
		if err != nil {
			return "", err
		}
		query = address.RawQuery
	}
}

// copyPage writes the body of one page to w. In CSV, each page begins with a line of column names. copyPage writes this line for the first
// page only and stores it in columns. If the line of a later page is different, copyPage returns an error.
func (c *downloadCommand) copyPage(w io.Writer, r *http.Response, first bool, columns *string) error {
	if r.StatusCode != http.StatusOK {
		failed := &client.Error{StatusCode: r.StatusCode}
		_ = json.NewDecoder(r.Body).Decode(&failed.Problem) // a proxy may have answered in another format; the error then has only the status
		return failed
	}
	body := bufio.NewReader(r.Body)
	if c.isCSV() {
		line, err := body.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		switch {
		case first:
			*columns = line
			if _, err := io.WriteString(w, line); err != nil {
				return err
			}
		case line != *columns:
			return errors.New("the columns changed during the download; start it again")
		}
	}
	_, err := io.Copy(w, body)
	return err
}
