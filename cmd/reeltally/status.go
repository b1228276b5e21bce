package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

type statusCommand struct {
	databaseCommand
	Sources collect.Config `embed:""`
	JSON    bool           `name:"json" help:"Print JSON, like /status of a collector."`
	List    string         `enum:",pending,ok,delayed,failing,private,restricted,gone,unsupported" default:"" placeholder:"STATUS" help:"Print the links with this fetch status instead of the counts, for example failing, with the last error: pending, ok, delayed, failing, private, restricted, gone or unsupported."`
	Limit   int            `default:"100" placeholder:"N" help:"Number of links that --list prints at most."`
}

// Run prints the state of the queue, of the sources and of the collectors. With the flag --list, it instead prints the links that have the given
// fetch status.
func (c *statusCommand) Run(ctx context.Context, p boot.Process) error {
	return c.withStore(ctx, p, func(st *store.Store) error {
		if c.List != "" {
			return c.printLinks(ctx, p, st)
		}
		sources, err := c.Sources.ConfiguredSources(st, boot.Logging{LogLevel: "warn"}.Logger(p.Stderr))
		if err != nil {
			return err
		}
		s, err := monitor.ReadStatus(ctx, st, collect.Describe(sources))
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(p.Stdout, s)
		}
		return writeStatus(p.Stdout, s)
	})
}

// listedTarget is one video or account in the JSON that the flag --list prints.
type listedTarget struct {
	Platform  string   `json:"platform"`
	Kind      string   `json:"kind"`
	Link      string   `json:"link"`
	Status    string   `json:"status"`
	Attempts  int      `json:"attempts"`   // number of consecutive failed attempts
	FetchedAt *apiTime `json:"fetched_at"` // null before the first successful fetch
	NextAt    apiTime  `json:"next_at"`
	LastError string   `json:"last_error"`
}

// printLinks prints the links that have the fetch status given with the flag --list.
func (c *statusCommand) printLinks(ctx context.Context, p boot.Process, st *store.Store) error {
	found, err := st.Queue.TargetsWithStatus(ctx, store.FetchStatus(c.List), c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		out := make([]listedTarget, len(found))
		for i, t := range found {
			out[i] = listedTarget{Platform: string(t.Platform), Kind: string(t.Kind), Link: t.Link, Status: string(t.Status), Attempts: t.Attempts, FetchedAt: toAPITime(t.FetchedAt),
				NextAt: apiTime{t.NextAt.Time()}, LastError: t.Detail}
		}
		return writeJSON(p.Stdout, out)
	}
	table := [][]any{{"PLATFORM", "KIND", "LINK", "STATUS", "ATTEMPTS", "FETCHED AT", "NEXT AT", "LAST ERROR"}}
	for _, t := range found {
		fetched := "-"
		if t.FetchedAt != nil {
			fetched = formatTime(t.FetchedAt.Time())
		}
		table = append(table, []any{t.Platform, t.Kind, t.Link, t.Status, t.Attempts, fetched, formatTime(t.NextAt.Time()), cmp.Or(t.Detail, "-")})
	}
	return writeTable(p.Stdout, table)
}

// writeStatus prints the number of collectors, and four tables: fetch statuses, queue, freshness, and sources with their budgets. Webhooks, the last
// backup, parts that could not be read, late fetches, and sources whose answers are held back follow.
func writeStatus(w io.Writer, s monitor.Status) error {
	if _, err := fmt.Fprintf(w, "Running collectors: %d\n\n", s.Collectors); err != nil {
		return err
	}
	statuses := [][]any{{"PLATFORM", "KIND", "STATUS", "NUMBER"}}
	for _, n := range s.Statuses {
		statuses = append(statuses, []any{cmp.Or(n.Platform, "all"), n.Kind, n.Status, n.Targets})
	}
	queue := [][]any{{"PLATFORM", "KIND", "LANE", "ACTIVE", "GONE", "PARKED", "FAILING", "DUE", "LONGEST WAIT"}}
	for _, q := range s.Queue {
		queue = append(queue, []any{q.Platform, q.Kind, q.Lane, q.Targets["active"], q.Targets["gone"], q.Targets["parked"], q.Failing, q.Due, formatSeconds(q.OldestDueSeconds)})
	}
	freshness := [][]any{{"PLATFORM", "KIND", "TARGETS", "NEVER FETCHED", "50 % WITHIN", "95 % WITHIN", "99 % WITHIN"}}
	for _, f := range s.Freshness {
		freshness = append(freshness, []any{f.Platform, f.Kind, f.Targets, f.NeverFetched, formatPercentile(f, f.P50), formatPercentile(f, f.P95), formatPercentile(f, f.P99)})
	}
	budgets := [][]any{{"SOURCE", "BUDGET", "USED", "LEFT", "RESETS AT", "PAUSED UNTIL"}}
	for _, source := range s.Sources {
		budgets = append(budgets, []any{source.Source, "", "", "", "", formatPause(source.Pause)})
		for _, b := range source.Budgets {
			left := "no limit known"
			if b.Left != nil {
				left = strconv.FormatInt(*b.Left, 10)
			}
			budgets = append(budgets, []any{source.Source, b.Budget, b.Used, left, formatTime(b.ResetsAt), formatPause(b.Pause)})
		}
	}
	if len(s.Sources) == 0 {
		budgets = append(budgets, []any{"no source is known: run a collector, or run this command with the collector's settings"})
	}
	for i, table := range [][][]any{statuses, queue, freshness, budgets} {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := writeTable(w, table); err != nil {
			return err
		}
	}
	lines := []string{""}
	if h := s.Webhooks; h != nil {
		lines = append(lines, fmt.Sprintf("Enabled webhooks: %d (organisations: %d), without a response: %d (organisations: %d), longest delay by servers: %s",
			h.Enabled, h.Organisations, h.Unreachable, h.UnreachableOrganisations, formatSeconds(&h.DelaySeconds)))
	}
	isUnknown := func(part string) bool {
		return slices.ContainsFunc(s.Unknown, func(u monitor.UnknownPart) bool { return u.Part == part })
	}
	switch {
	case s.LastBackup != nil:
		lines = append(lines, "Last backup: "+formatTime(*s.LastBackup))
	case !isUnknown("last_backup"):
		lines = append(lines, "Last backup: none is known")
	}
	for _, u := range s.Unknown {
		lines = append(lines, "Unknown: "+u.Part+", because it could not be read: "+u.Reason)
	}
	for _, p := range s.Platforms {
		if p.Backlog != "" {
			lines = append(lines, "", p.Platform+": "+p.Backlog)
		}
	}
	for _, source := range s.Sources {
		if source.HeldBack != "" {
			lines = append(lines, "", source.Source+": "+source.HeldBack)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// formatSeconds formats a number of seconds as a duration, such as "1m30s". It returns "-" for nil.
func formatSeconds(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return (time.Duration(*seconds) * time.Second).String()
}

// formatPercentile formats an upper bound for the time since a target's last fetch. It returns "> 168h0m0s" if the bound is above the last age in
// queue.FreshWithin, and "-" if no target was fetched yet.
func formatPercentile(f monitor.Freshness, percentile *float64) string {
	if percentile == nil && f.Targets > f.NeverFetched {
		return "> " + formatSeconds(new(queue.FreshWithin[len(queue.FreshWithin)-1].Seconds()))
	}
	return formatSeconds(percentile)
}

// formatTime formats the time t in UTC. For the zero time it returns "-".
func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime) + " UTC"
}

// formatPause formats the pause of a source or budget: when it ends, why it began and, if calls have failed, since when. For nil (no pause), it
// returns "-".
func formatPause(p *monitor.PauseStatus) string {
	if p == nil {
		return "-"
	}
	failing := ""
	if p.InARow > 0 && p.Since != nil {
		failing = "failing since " + formatTime(*p.Since) + ", "
	}
	return formatTime(p.Until) + " (" + failing + p.Class + ": " + p.Detail + ")"
}
