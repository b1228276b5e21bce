package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
)

type statusCommand struct {
	operator
	Sources collect.Config `embed:""`
	JSON    bool           `name:"json" help:"Answer with JSON, as /status of a collector does."`
}

// Run tells how collecting goes.
func (c *statusCommand) Run(ctx context.Context, p boot.Process) error {
	return c.with(ctx, p, func(st *store.Store) error {
		sources, err := c.Sources.ConfiguredSources(st, boot.Logging{LogLevel: "warn"}.Logger(p.Stderr))
		if err != nil {
			return err
		}
		s, err := collect.ReadStatus(ctx, st, sources)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(p.Stdout, s)
		}
		return writeStatus(p.Stdout, s, sources)
	})
}

func writeStatus(w io.Writer, s collect.Status, sources []source.Source) error {
	if _, err := fmt.Fprintf(w, "Collectors at work: %d\n\n", s.Collectors); err != nil {
		return err
	}
	queue := [][]any{{"PLATFORM", "KIND", "LANE", "ACTIVE", "GONE", "PARKED", "FAILING", "DUE", "WAITING FOR"}}
	for _, q := range s.Queue {
		queue = append(queue, []any{q.Platform, q.Kind, q.Lane, q.Targets["active"], q.Targets["gone"], q.Targets["parked"], q.Failing, q.Due, ago(q.OldestDueSeconds)})
	}
	fresh := [][]any{{"PLATFORM", "KIND", "TARGETS", "NEVER FETCHED", "HALF WITHIN", "95 % WITHIN", "99 % WITHIN"}}
	for _, f := range s.Freshness {
		fresh = append(fresh, []any{f.Platform, f.Kind, f.Targets, f.NeverFetched, within(f, f.P50), within(f, f.P95), within(f, f.P99)})
	}
	budgets := [][]any{{"SOURCE", "BUDGET", "USED", "LEFT", "RETURNS", "PAUSED UNTIL"}}
	for _, source := range s.Sources {
		budgets = append(budgets, []any{source.Source, "", "", "", "", paused(source.Pause)})
		for _, b := range source.Budgets {
			left := "no limit known"
			if b.Left != nil {
				left = strconv.FormatInt(*b.Left, 10)
			}
			budgets = append(budgets, []any{source.Source, b.Budget, b.Used, left, instant(b.ResetsAt), paused(b.Pause)})
		}
	}
	if len(sources) == 0 {
		budgets = append(budgets, []any{"no source is configured here: give this command the collector's settings to see budgets"})
	}
	for i, table := range [][][]any{queue, fresh, budgets} {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := writeTable(w, table); err != nil {
			return err
		}
	}
	return nil
}

func ago(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return (time.Duration(*seconds) * time.Second).String()
}

// within writes a percentile; one that lies beyond the oldest age that is counted is not to pass for none.
func within(f collect.Freshness, percentile *float64) string {
	if percentile == nil && f.Targets > f.NeverFetched {
		return "> " + ago(new(store.FreshWithin[len(store.FreshWithin)-1].Seconds()))
	}
	return ago(percentile)
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime) + " UTC"
}

func paused(p *collect.PauseStatus) string {
	if p == nil {
		return "-"
	}
	return instant(p.Until) + " (" + p.Class + ": " + p.Detail + ")"
}
