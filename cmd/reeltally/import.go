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
	operator
	Org              string            `required:"" placeholder:"NAME|ID" help:"The organisation, by its id or its name where only one bears it."`
	File             string            `arg:"" help:"The file: CSV, JSON Lines or a JSON list, in UTF-8; - reads standard input."`
	Map              map[string]string `placeholder:"THEIRS=OURS" mapsep:"none" help:"What a column means that is not known by its name, for example --map 'Watch count=views'; empty leaves it out. The file has to have such a column. May be repeated."`
	IgnoreUnknown    bool              `help:"Leave columns out that mean nothing here, instead of refusing the file."`
	SkipBad          string            `placeholder:"FILE" help:"Leave rows out that cannot be imported, and write their lines and reasons into this file, one JSON object a line. Without it, one such row refuses the whole file."`
	DryRun           bool              `help:"Say what would happen, and write nothing."`
	ShortLinkBaseURL string            `name:"shortlink-base-url" setting:"REELTALLY_SHORTLINK_BASE_URL" placeholder:"URL" help:"Where something stands in for the hosts of short links."`
	JSON             bool              `name:"json" help:"Answer with JSON: one object of counts."`
}

// Help says what kong prints below the flags.
func (importCommand) Help() string {
	return "A row is a video (link) and what was counted of it (views, likes, comments, shares, bookmarks) on a UTC day (date or time). " +
		"Points that are there stay as they are. The same import again changes nothing, so that one that was broken off is simply started again. " +
		"docs/operating.md tells more."
}

// Run imports the file.
func (c *importCommand) Run(ctx context.Context, p boot.Process) (err error) {
	columns := transfer.Columns{Map: c.Map, IgnoreUnknown: c.IgnoreUnknown}
	if err := columns.Check(); err != nil {
		return boot.UsageError{Err: fmt.Errorf("--map: %w", err)}
	}
	in, size, err := c.open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	logger := c.Logger(p.Stderr)
	return c.with(ctx, p, func(st *store.Store) (err error) {
		org, err := organisation(ctx, st, c.Org)
		if err != nil {
			return err
		}
		shorts, err := newShortLinks(st, c.ShortLinkBaseURL, logger)
		if err != nil {
			return err
		}
		run := transfer.Import{Org: st.Org(org.ID), In: in, Columns: columns, Resolve: shorts.resolve, Now: time.Now(), DryRun: c.DryRun}
		if c.SkipBad != "" {
			f, err := os.OpenFile(c.SkipBad, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			e := json.NewEncoder(f)
			run.Bad = func(r transfer.BadRow) error { return e.Encode(r) }
		}
		show := stages{w: p.Stderr, log: logger, size: size}
		run.Progress = func(s transfer.Stage, done, total int64) { show.set(ctx, s, done, total) }
		sum, err := run.Run(ctx)
		show.end(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return errors.New("stopped: the same command goes on where it was")
		}
		if err != nil {
			return err
		}
		return c.print(p, org, sum)
	})
}

func (c *importCommand) open(p boot.Process) (io.ReadCloser, int64, error) {
	if c.File == "-" {
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

func (c *importCommand) print(p boot.Process, org store.Organisation, s transfer.Summary) error {
	if c.JSON {
		return writeJSON(p.Stdout, s)
	}
	verb := "Imported into"
	if c.DryRun {
		verb = "A dry run, nothing is written. It would import into"
	}
	var b strings.Builder
	line := func(n int64, format string, args ...any) {
		if n > 0 {
			fmt.Fprintf(&b, "  "+format+"\n", append([]any{n}, args...)...)
		}
	}
	fmt.Fprintf(&b, "%s %s (%s), from %d rows:\n", verb, org.Name, org.ID, s.Rows)
	line(s.Videos, "%d videos")
	line(s.New, "%d of them new: they are tracked from now on")
	line(s.Stopped, "%d of them stopped: they stay so")
	line(s.Added, "%d points added")
	line(s.Folded, "%d points older than %d days that a later one of their week stands for", store.DailyDays)
	line(s.There, "%d points that were there already")
	line(s.Kept, "%d points left out: the day, or the week, has a point of other counts, which stays")
	line(s.TooOld, "%d points left out: older than %d days", store.WeeklyDays)
	line(s.Uncounted, "%d rows of a day without any count: no points, they only name their videos")
	line(s.Unnamed, "%d rows whose username can be none on its platform: taken without it")
	line(s.Interpolated, "%d rows left out: interpolated, nobody measured them")
	line(s.Bad, "%d rows left out, for the reasons in %s", c.SkipBad)
	_, err := io.WriteString(p.Stdout, b.String())
	return err
}

// organisation finds an organisation by its id or its name.
func organisation(ctx context.Context, st *store.Store, named string) (store.Organisation, error) {
	if id, err := uuid.Parse(named); err == nil {
		return st.Organisation(ctx, id)
	}
	all, err := st.Organisations(ctx)
	if err != nil {
		return store.Organisation{}, err
	}
	var found []store.Organisation
	for _, o := range all {
		if o.Name == named {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return store.Organisation{}, &store.NotFoundError{Kind: "organisation", Names: []string{named}}
	case 1:
		return found[0], nil
	}
	return store.Organisation{}, fmt.Errorf("%d organisations are called %q: name one by its id, for example %s", len(found), named, found[0].ID)
}

// stages shows the progress of one stage after the other.
type stages struct {
	w    io.Writer
	log  *slog.Logger
	size int64 // of the file; 0 while it is not known
	at   transfer.Stage
	show *progress
}

func (s *stages) set(ctx context.Context, stage transfer.Stage, done, total int64) {
	if s.at != stage {
		s.end(ctx)
		unit := "videos"
		if stage == transfer.Reading {
			unit, total = "bytes", s.size
		}
		s.at, s.show = stage, newProgress(s.w, s.log, string(stage), unit, total)
	}
	s.show.set(ctx, done, 0)
}

func (s *stages) end(ctx context.Context) {
	if s.show != nil {
		s.show.end(ctx)
	}
	s.show = nil
}

// shortLinks says what short links lead to: those that were resolved before at once, the others over the network.
type shortLinks struct {
	st       *store.Store
	resolver *shortlink.Resolver
	known    map[string]shortLinkTarget
}

type shortLinkTarget struct {
	link link.Link
	err  error
}

// mostShortLinks bounds those that are remembered within a run; the database remembers all.
const mostShortLinks = 10_000

func newShortLinks(st *store.Store, base string, logger *slog.Logger) (*shortLinks, error) {
	r, err := shortlink.New(shortlink.Options{BaseURL: base, Logger: logger, Now: time.Now})
	return &shortLinks{st: st, resolver: r, known: map[string]shortLinkTarget{}}, err
}

func (s *shortLinks) resolve(ctx context.Context, l link.Link) (link.Link, error) {
	if t, ok := s.known[l.Canonical]; ok {
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
	if len(s.known) >= mostShortLinks {
		clear(s.known)
	}
	s.known[l.Canonical] = t
	return t.link, t.err
}
