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

type exportDatabase struct {
	boot.Logging `set:"log_level=warn"`
	databaseCommand
	Org            string `required:"" placeholder:"NAME|ID" help:"Id of the organisation, or its name if no other organisation has the same name."`
	Format         string `default:"csv" enum:"csv,jsonl" placeholder:"FORMAT" help:"csv, or jsonl for one JSON object a line."`
	From           day    `placeholder:"DATE" help:"First day to export, for example 2026-01-31. Without it, the export starts with the oldest point."`
	To             day    `placeholder:"DATE" help:"Last day to export. Without it, the export ends with the newest point."`
	Interpolated   bool   `help:"Also write interpolated points for the days between two measured points. They are marked."`
	IncludeRemoved bool   `help:"Also write videos whose tracking was stopped. An import of the file keeps them stopped."`
	Out            string `placeholder:"FILE" help:"File to write. It is named FILE.part until it is complete. Without it, or with -, the export goes to standard output."`
	Resume         bool   `help:"Resume an interrupted export from FILE.part."`
}

// day is a command-line argument with a UTC day, such as 2026-01-31. isGiven says whether the user gave the argument.
type day struct {
	store.Date
	isGiven bool
}

// UnmarshalText parses a day of the form YYYY-MM-DD. The error contains the invalid text.
func (d *day) UnmarshalText(text []byte) (err error) {
	d.isGiven = true
	d.Date, err = store.ParseDate(string(text))
	return err
}

// Help returns the text that --help shows below the summary of the command.
func (exportDatabase) Help() string {
	return "\"reeltally export --org NAME\" is the same command: \"database\" can be left out.\n\n" +
		"Example: reeltally export --org 'Northwind Studio' --out videos.csv"
}

// Run writes the export to the file or to standard output.
func (c *exportDatabase) Run(ctx context.Context, p boot.Process) error {
	q := store.ExportQuery{To: math.MaxInt32, Interpolated: c.Interpolated, IncludeRemoved: c.IncludeRemoved}
	if c.From.isGiven {
		q.From = c.From.Date
	}
	if c.To.isGiven {
		q.To = c.To.Date
	}
	if q.From > q.To {
		return boot.UsageError{Err: fmt.Errorf("--from (%s) is after --to (%s)", q.From, q.To)}
	}
	out, err := openOutput(p, c.Out)
	if err != nil {
		return err
	}
	if c.Resume && out.stream != nil {
		return errors.Join(boot.UsageError{Err: errors.New("--resume needs --out with the name of the interrupted export's file")}, out.stream.Close())
	}
	logger := c.Logger(p.Stderr)
	return c.withStore(ctx, p, func(st *store.Store) error {
		found, err := findOrganisation(ctx, st, c.Org)
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
		bar := newProgress(p.Stderr, logger, "export", "videos", total)
		e := transfer.Export{Org: org, Format: transfer.Format(c.Format), Query: q, Progress: func(videos int64) { bar.showDone(ctx, videos, 0) }}
		if out.stream != nil {
			w := bufio.NewWriter(out.stream)
			_, err = e.Write(ctx, w)
			bar.finish(ctx)
			return errors.Join(err, w.Flush(), out.stream.Close())
		}
		done, err := e.WriteFile(ctx, out.path, c.Resume, func(err error) {
			logger.WarnContext(ctx, "cannot save the state of the export; if the export is interrupted, it cannot be resumed", "error", err)
		})
		bar.finish(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return fmt.Errorf("interrupted: run the same command with --resume to continue %s.part", out.path)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "Exported the organisation %s (%s) to the file %s: %s, %s.\n", plainText(found.Name), found.ID, c.Out, numberWithNoun(done.Rows, "row"), numberWithNoun(done.Videos, "video"))
		return err
	})
}
