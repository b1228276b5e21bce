package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

type importCommand struct {
	boot.Logging `set:"log_level=warn"`
	databaseCommand
	Org              string            `required:"" placeholder:"NAME|ID" help:"Id of the organisation, or its name if no other organisation has the same name."`
	File             string            `arg:"" help:"File to import: CSV, JSON Lines or a JSON list, in UTF-8; - means standard input."`
	Map              map[string]string `placeholder:"THEIRS=OURS" mapsep:"none" help:"Meaning of a column with an unknown name, for example --map 'Watch count=views'. An empty meaning ignores the column. The file must have the column. Can be repeated."`
	IgnoreUnknown    bool              `help:"Ignore columns with unknown names instead of refusing the file."`
	SkipBad          string            `placeholder:"FILE" help:"Skip invalid rows and write their line numbers and reasons to this file, one JSON object a line. A dry run does not write the file. Without it, an invalid row refuses the whole file."`
	NumberFormat     string            `default:"auto" enum:"auto,decimal-point,decimal-comma" help:"How counts are written: decimal-point (1,234.5), decimal-comma (1.234,5), or auto, which finds the format of each column. If the values of a column do not show the format, auto refuses the file."`
	DateFormat       string            `default:"auto" enum:"auto,day-first,month-first" help:"How dates like 03/04/2026 are written: day-first, month-first, or auto, which finds the format of each column. If the values of a column do not show the format, auto refuses the file."`
	DryRun           bool              `help:"Show what the import would do and how it reads each column, without changing the database."`
	ShortLinkBaseURL string            `name:"shortlink-base-url" setting:"REELTALLY_SHORTLINK_BASE_URL" placeholder:"URL" help:"URL of a replacement for the hosts of short links: https://HOST/PATH is requested as URL/HOST/PATH."`
	JSON             bool              `name:"json" help:"Print JSON: one object of counts. A dry run adds the formats of the columns, and prints only them if it fails."`
}

// Help returns the text that --help shows below the summary of the command.
func (importCommand) Help() string {
	return "A row has the link of a video and its counts (views, likes, comments, shares, bookmarks) on a UTC day (date or time). " +
		"Existing points are never changed. To resume an interrupted import, run it again: importing a file twice changes nothing. " +
		"See docs/import.md for details."
}

// Run imports the points of a file into an organisation. With --dry-run, it only reports what an import would change.
func (c *importCommand) Run(ctx context.Context, p boot.Process) (err error) {
	columns := transfer.Columns{Map: c.Map, IgnoreUnknown: c.IgnoreUnknown}
	if err := columns.Check(); err != nil {
		return boot.UsageError{Err: err}
	}
	in, size, err := c.openFile(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	bad, err := c.openBadRowsFile(p, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bad.close()) }()
	logger := c.Logger(p.Stderr)
	return c.withStore(ctx, p, func(st *store.Store) (err error) {
		org, err := findOrganisation(ctx, st, c.Org)
		if err != nil {
			return err
		}
		shorts, err := newShortLinks(st, c.ShortLinkBaseURL, logger)
		if err != nil {
			return err
		}
		run := transfer.Import{Org: st.Org(org.ID), In: in, Columns: columns, Resolve: shorts.resolve, Now: time.Now(), DryRun: c.DryRun,
			Numbers: transfer.NumberFormat(c.NumberFormat), Dates: transfer.DateFormat(c.DateFormat)}
		var columnFormats []transfer.ColumnFormat
		if c.DryRun {
			run.Formats = func(f []transfer.ColumnFormat) { columnFormats = f }
		}
		if c.SkipBad != "" {
			run.Bad = bad.writeRow
		}
		bars := stageProgress{w: p.Stderr, log: logger}
		run.Progress = func(s transfer.Stage, done, total int64) {
			unit := "videos"
			if s == transfer.Guessing || s == transfer.Reading {
				unit, total = "bytes", size
			}
			bars.showStage(ctx, string(s), unit, done, total)
		}
		summary, err := run.Run(ctx)
		bars.finish(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return errors.New("interrupted: run the same command again to continue")
		}
		if err == nil {
			err = bad.open() // if there are no invalid rows, the file must be empty
		}
		if err != nil {
			return errors.Join(err, c.printColumnFormats(p, columnFormats))
		}
		return c.printSummary(p, org, st.Retention(), summary, columnFormats)
	})
}

// badRows writes the line numbers and reasons of invalid rows to the file of --skip-bad. It creates or empties the file when it
// writes the first row. If an import finds no invalid row, the file is created or emptied after the import has succeeded.
type badRows struct {
	output // if path is "" and stream is nil, badRows writes nothing
	opened bool
}

// openBadRowsFile returns a writer for the file of --skip-bad. Without the flag, and in a dry run,
// the writer writes nothing.
func (c *importCommand) openBadRowsFile(p boot.Process, in io.Reader) (*badRows, error) {
	if c.SkipBad == "" {
		return &badRows{}, nil
	}
	// Refuse the file to import, because the import would overwrite its own input.
	if info, err := os.Stat(c.SkipBad); err == nil && info.Mode().IsRegular() && (isSameFile(in, info) || c.File == standardStream && isSameFile(p.Stdin, info)) {
		return nil, boot.UsageError{Err: fmt.Errorf("--skip-bad must name another file than the file to import, but names %s", c.SkipBad)}
	}
	if c.DryRun {
		return &badRows{}, nil
	}
	out, err := openOutput(p, c.SkipBad)
	return &badRows{output: out}, err
}

// open creates the file, or empties it if it exists. Further calls do nothing.
func (b *badRows) open() error {
	if b.path == "" || b.opened {
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	b.stream, b.opened = f, true
	return nil
}

// writeRow writes the line number and the reason of an invalid row.
func (b *badRows) writeRow(r transfer.BadRow) error {
	if err := b.open(); err != nil || b.stream == nil {
		return err
	}
	return json.NewEncoder(b.stream).Encode(r)
}

// openFile opens the file to import, which can be standard input, and returns its size in bytes. For standard input it returns the size 0,
// because the size is unknown.
func (c *importCommand) openFile(p boot.Process) (io.ReadCloser, int64, error) {
	if c.File == standardStream {
		return io.NopCloser(p.Stdin), 0, nil
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// printSummary prints the summary of an import: with --json as one JSON object, and otherwise as text without counts that are 0. If columnFormats is not
// empty, as in a dry run, it also says how the import reads the columns of numbers and dates.
func (c *importCommand) printSummary(p boot.Process, org store.Organisation, keep store.Retention, s transfer.Summary, columnFormats []transfer.ColumnFormat) error {
	if c.JSON {
		return writeJSON(p.Stdout, struct {
			transfer.Summary
			Columns []transfer.ColumnFormat `json:"columns,omitempty"`
		}{s, columnFormats})
	}
	verb := "Imported into"
	if c.DryRun {
		verb = "Dry run, nothing is written. The import would go into"
	}
	var b strings.Builder
	line := func(n int64, noun, format string, args ...any) {
		if n > 0 {
			fmt.Fprintf(&b, "  "+format+"\n", append([]any{numberWithNoun(n, noun)}, args...)...)
		}
	}
	fmt.Fprintf(&b, "%s %s (%s), from %s:\n", verb, plainText(org.Name), org.ID, numberWithNoun(s.Rows, "row"))
	line(s.Videos, "video", "%s")
	line(s.New, "new video", "%s")
	line(s.Stopped, "video", "%s not tracked: the tracking was stopped")
	line(s.Added, "point", "%s added")
	line(s.RolledUp, "point", "%s left out: after %d days, only the last point of a week is kept", keep.Daily)
	line(s.Existing, "point", "%s skipped: already there")
	line(s.Conflicts, "point", "%s left out: an existing point of the same day or week has other counts and is kept")
	line(s.TooOld, "point", "%s left out: older than %d days", keep.Weekly)
	line(s.WithoutCounts, "row", "%s with a date but no counts: only the video is taken from it")
	line(s.InvalidUsernames, "row", "%s with an invalid username: only the other columns are taken from it")
	line(s.Interpolated, "row", "%s left out: interpolated, not measured")
	reasons := "see the reason for each row in the file"
	if c.DryRun {
		reasons = "without --dry-run, the reason for each of these rows is written to the file"
	}
	line(s.Bad, "row", "%s left out: %s %s", reasons, c.SkipBad)
	writeColumnFormats(&b, columnFormats)
	_, err := io.WriteString(p.Stdout, b.String())
	return err
}

// printColumnFormats prints how a dry run that failed reads the columns. It prints nothing if columnFormats is empty.
func (c *importCommand) printColumnFormats(p boot.Process, columnFormats []transfer.ColumnFormat) error {
	if len(columnFormats) == 0 {
		return nil
	}
	if c.JSON {
		return writeJSON(p.Stdout, struct {
			Columns []transfer.ColumnFormat `json:"columns"`
		}{columnFormats})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Dry run of %s:\n", plainText(c.File))
	writeColumnFormats(&b, columnFormats)
	_, err := io.WriteString(p.Stdout, b.String())
	return err
}

// writeColumnFormats writes a line for each column of numbers or dates.
func writeColumnFormats(b *strings.Builder, columnFormats []transfer.ColumnFormat) {
	for _, f := range columnFormats {
		fmt.Fprintf(b, "  column %s has the format %s: %q is read as %s\n", f.Column, f.Format, f.Example, f.ReadAs)
	}
}

// findOrganisation returns the organisation whose id or name is idOrName. It returns an error if several organisations have the name, or if the
// organisation is being deleted.
func findOrganisation(ctx context.Context, st *store.Store, idOrName string) (store.Organisation, error) {
	org, err := findAnyOrganisation(ctx, st, idOrName)
	if err == nil && org.DeletingSince != nil {
		err = fmt.Errorf("the organisation %s (%s) is being deleted; to finish its deletion, run: reeltally org delete %s", plainText(org.Name), org.ID, org.ID)
	}
	return org, err
}

// findAnyOrganisation does the same as findOrganisation. It also finds organisations that are being deleted.
func findAnyOrganisation(ctx context.Context, st *store.Store, idOrName string) (store.Organisation, error) {
	if id, err := uuid.Parse(idOrName); err == nil {
		return st.Organisation(ctx, id)
	}
	all, err := st.Organisations(ctx)
	if err != nil {
		return store.Organisation{}, err
	}
	var found []store.Organisation
	for _, o := range all {
		if o.Name == idOrName {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return store.Organisation{}, &store.NotFoundError{Kind: "organisation", Names: []string{idOrName}}
	case 1:
		return found[0], nil
	}
	return store.Organisation{}, fmt.Errorf("%d organisations are named %q: use the id of one, for example %s", len(found), idOrName, found[0].ID)
}

// shortLinks finds the links to which short links redirect: in its cache, in the database, or with
// a network request, in this order.
type shortLinks struct {
	st       *store.Store
	resolver *shortlink.Resolver
	cache    map[string]shortLinkTarget // the key is the canonical short link
}

// shortLinkTarget is the link to which a short link redirects, or the error of resolving the short link.
type shortLinkTarget struct {
	link link.Link
	err  error
}

// maxCachedShortLinks is the maximum number of entries in shortLinks.cache. A full cache is
// emptied. The database still has the resolved links.
const maxCachedShortLinks = 10_000

// newShortLinks returns a shortLinks. If baseURL is not "", short links are requested from this URL instead of their own hosts.
func newShortLinks(st *store.Store, baseURL string, logger *slog.Logger) (*shortLinks, error) {
	r, err := shortlink.New(shortlink.Options{BaseURL: baseURL, Logger: logger, Now: time.Now})
	return &shortLinks{st: st, resolver: r, cache: map[string]shortLinkTarget{}}, err
}

// resolve returns the link to which the short link l redirects. It caches the result, including errors. So until the cache is full and
// is emptied, each short link is requested at most once.
func (s *shortLinks) resolve(ctx context.Context, l link.Link) (link.Link, error) {
	if t, ok := s.cache[l.Canonical]; ok {
		return t.link, t.err
	}
	saved, err := s.st.ShortLinks(ctx, []link.Link{l})
	if err != nil {
		return link.Link{}, err
	}
	t := shortLinkTarget{link: saved[l.Canonical]}
	if _, ok := saved[l.Canonical]; !ok {
		if t.link, t.err = s.resolver.Resolve(ctx, l); t.err == nil {
			if err := s.st.SaveShortLinks(ctx, map[string]link.Link{l.Canonical: t.link}); err != nil {
				return link.Link{}, err
			}
		}
	}
	if len(s.cache) >= maxCachedShortLinks {
		clear(s.cache)
	}
	s.cache[l.Canonical] = t
	return t.link, t.err
}
