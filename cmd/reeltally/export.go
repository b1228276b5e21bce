package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
)

type exportCommand struct {
	boot.Logging `set:"log_level=warn"`
	operator
	Org            string `required:"" placeholder:"NAME|ID" help:"The organisation, by its id or its name where only one bears it."`
	Format         string `default:"csv" enum:"csv,jsonl" placeholder:"FORMAT" help:"csv, or jsonl for one JSON object a line."`
	From           day    `placeholder:"DATE" help:"The first day, for example 2026-01-31; without it, the first that there is."`
	To             day    `placeholder:"DATE" help:"The last day; without it, the last that there is."`
	Interpolated   bool   `help:"Also write the days between two points, which nobody measured; they are marked."`
	IncludeRemoved bool   `help:"Also write videos whose tracking was stopped. An import elsewhere would track them again."`
	Out            string `placeholder:"FILE" help:"Where to; it is called FILE.part until it is whole. Without it, standard output."`
	Resume         bool   `help:"Go on with a FILE.part that was broken off."`
}

// day is a UTC day among the arguments.
type day struct {
	store.Date
	set bool
}

// UnmarshalText reads a day; the error quotes what was given.
func (d *day) UnmarshalText(text []byte) (err error) {
	d.set = true
	d.Date, err = store.ParseDate(string(text))
	return err
}

// Run writes the histories.
func (c *exportCommand) Run(ctx context.Context, p boot.Process) error {
	q := store.ExportQuery{To: math.MaxInt32, Interpolated: c.Interpolated, IncludeRemoved: c.IncludeRemoved}
	if c.From.set {
		q.From = c.From.Date
	}
	if c.To.set {
		q.To = c.To.Date
	}
	if q.From > q.To {
		return boot.UsageError{Err: fmt.Errorf("--from is %s, after --to, which is %s", q.From, q.To)}
	}
	if c.Resume && c.Out == "" {
		return boot.UsageError{Err: errors.New("--resume wants --out, which names the file that was broken off")}
	}
	logger := c.Logger(p.Stderr)
	return c.with(ctx, p, func(st *store.Store) error {
		found, err := organisation(ctx, st, c.Org)
		if err != nil {
			return err
		}
		org := st.Org(found.ID)
		statistics, err := org.VideoStatistics(ctx)
		if err != nil {
			return err
		}
		total := statistics.Total
		if c.IncludeRemoved {
			total += statistics.Removed
		}
		show := newProgress(p.Stderr, logger, "export", "videos", total)
		e := transfer.Export{Org: org, Format: transfer.Format(c.Format), Query: q, Progress: func(videos int64) { show.set(ctx, videos, 0) }}
		if c.Out == "" {
			w := bufio.NewWriter(p.Stdout)
			_, err = e.To(ctx, w)
			show.end(ctx)
			return errors.Join(err, w.Flush())
		}
		done, err := e.ToFile(ctx, c.Out, c.Resume, func(err error) {
			logger.WarnContext(ctx, "how far the export is cannot be noted: broken off, it would begin anew", "error", err)
		})
		show.end(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return fmt.Errorf("stopped: --resume goes on with %s.part", c.Out)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "%s has %d rows of %d videos of %s (%s).\n", c.Out, done.Rows, done.Videos, found.Name, found.ID)
		return err
	})
}
