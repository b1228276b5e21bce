package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/disk"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
)

type doctorCommand struct {
	boot.Database
	Sources collect.Config `embed:""`
	JSON    bool           `name:"json" help:"Answer with JSON: a list of {\"check\",\"state\",\"found\",\"advice\"}."`
}

// Help says what kong prints below the flags.
func (doctorCommand) Help() string {
	return "Give it the settings of server and collector. Each source is asked once, which may cost a unit of its budget. It ends with status 1 when something is broken, with 0 when there are warnings at most."
}

// The states of a finding.
const (
	healthy = "ok"
	odd     = "warning"
	broken  = "broken"
)

// finding is what one check found.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do; empty when there is nothing to do
}

// Run checks one thing after the other and tells of each as soon as it is known.
func (c *doctorCommand) Run(ctx context.Context, p boot.Process) error {
	logger := boot.Logging{LogLevel: "error"}.Logger(p.Stderr)
	var all []finding
	told := func(found ...finding) error {
		all = append(all, found...)
		if c.JSON {
			return nil
		}
		for _, f := range found {
			line := fmt.Sprintf("%-8s %-22s %s\n", f.State, f.Check, f.Found)
			if f.Advice != "" {
				line += fmt.Sprintf("%-8s %-22s → %s\n", "", "", f.Advice)
			}
			if _, err := fmt.Fprint(p.Stdout, line); err != nil {
				return err
			}
		}
		return nil
	}
	st, err := c.Open(ctx, logger, boot.SkipSchemaCheck)
	if err != nil {
		err = told(finding{"database", broken, err.Error(), "Set REELTALLY_DATABASE_URL, or start the database that it names."})
	} else {
		err = errors.Join(c.examine(ctx, st, logger, told), st.Close())
	}
	if c.JSON {
		err = errors.Join(err, writeJSON(p.Stdout, all))
	}
	if err != nil {
		return err
	}
	bad := 0
	for _, f := range all {
		if f.State == broken {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d checks found something broken", bad, len(all)) //nolint:err113 // for the operator
	}
	return nil
}

// examine looks at the database, and at everything that needs it where it is as it should be.
func (c *doctorCommand) examine(ctx context.Context, st *store.Store, logger *slog.Logger, told func(...finding) error) error {
	database := examineDatabase(ctx, st)
	if err := told(append(database, c.examineDisk()...)...); err != nil {
		return err
	}
	for _, f := range database {
		if f.State == broken {
			return nil
		}
	}
	sources, misconfigured := c.Sources.ConfiguredSources(st, logger)
	for _, look := range []func() []finding{
		func() []finding { return append(examineClocks(ctx, st, sources), examineRetention(ctx, st)...) },
		func() []finding {
			if misconfigured != nil {
				return []finding{{"sources", broken, misconfigured.Error(), "Correct the setting; docs/sources.md has each."}}
			}
			return examineSources(ctx, st, sources)
		},
		func() []finding { return examineCollecting(ctx, st, sources) },
		func() []finding { return examineAccess(ctx, st) },
	} {
		if err := told(look()...); err != nil {
			return err
		}
	}
	return nil
}

func examineDatabase(ctx context.Context, st *store.Store) []finding {
	engine, err := st.Engine(ctx)
	if err != nil {
		return []finding{{"database", broken, err.Error(), "Start the database, or correct REELTALLY_DATABASE_URL."}}
	}
	out := []finding{{"database", healthy, engine.Name + " " + engine.Version, ""}}
	var schema *store.SchemaError
	switch err := st.CheckSchema(ctx); {
	case errors.As(err, &schema) && schema.Have > schema.Want:
		out = append(out, finding{"schema", broken, err.Error(), "Use the program of the version that migrated it, or a newer one."})
	case err != nil:
		out = append(out, finding{"schema", broken, err.Error(), "Run reeltally migrate."})
	default:
		out = append(out, finding{"schema", healthy, "is this program's", ""})
	}
	return out
}

// roomWanted is the free disk below which a database is soon in trouble.
const roomWanted = 1 << 30

// examineDisk looks at the disk of a SQLite file; that of a PostgreSQL is elsewhere.
func (c *doctorCommand) examineDisk() []finding {
	path, ok := strings.CutPrefix(c.DatabaseURL.Reveal(), "sqlite:")
	if !ok {
		return nil
	}
	folder := filepath.Dir(path)
	usage, err := disk.Usage(folder)
	if err != nil {
		return []finding{{"disk", broken, fmt.Sprintf("%s: %v", folder, err), "Make the folder."}}
	}
	probe, err := os.CreateTemp(folder, ".reeltally-doctor-*")
	if err != nil {
		return []finding{{"disk", broken, fmt.Sprintf("%s cannot be written to", folder), "Give the user that runs ReelTally the right to write there."}}
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	found := fmt.Sprintf("%d MiB free in %s", usage.Free>>20, folder)
	if usage.Free < roomWanted {
		return append(examineModes(path), finding{"disk", odd, found, "Make room: SQLite stops writing when the disk is full."})
	}
	return append(examineModes(path), finding{"disk", healthy, found, ""})
}

// examineModes reports whether other users may read a SQLite file or the two files that SQLite keeps beside it.
func examineModes(path string) []finding {
	var open []string
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			open = append(open, fmt.Sprintf("%s has mode %04o", name, info.Mode().Perm()))
		}
	}
	if len(open) == 0 {
		return []finding{{"file mode", healthy, "only the owner may read " + path, ""}}
	}
	return []finding{{"file mode", odd, strings.Join(open, ", "), "Others on this machine may read or write the database: chmod 600 these files."}}
}

// examineRetention reports whether old rows are deleted, or whether the deletion waits because the clock may be wrong.
func examineRetention(ctx context.Context, st *store.Store) []finding {
	err := st.CheckClock(ctx)
	if wrong, ok := errors.AsType[*store.ClockError](err); ok {
		return []finding{{"retention", odd, wrong.Detail, "Compare the clock with another one. If it is right, there is nothing to do but wait."}}
	}
	if err != nil {
		return []finding{{"retention", broken, err.Error(), "Look at the log of the database."}}
	}
	return []finding{{"retention", healthy, "may delete by this clock", ""}}
}

const (
	// driftTolerated is how far clocks may be apart before days, quotas and leases are no longer the same everywhere.
	driftTolerated = 5 * time.Second
)

// examineClocks compares this machine's clock with the database's and with those of the sources, and thereby learns
// whether they can be reached.
func examineClocks(ctx context.Context, st *store.Store, sources []source.Source) []finding {
	var out []finding
	compare := func(check string, theirs, ours time.Time, precise time.Duration) {
		drift := theirs.Sub(ours).Abs()
		if drift > driftTolerated+precise {
			out = append(out, finding{check, broken, fmt.Sprintf("is %s apart from this machine's clock", drift.Round(time.Second)), "Set the clocks by NTP."})
			return
		}
		out = append(out, finding{check, healthy, "agrees with this machine's", ""})
	}
	switch engine, err := st.Engine(ctx); {
	case err != nil:
		out = append(out, finding{"clock of the database", broken, err.Error(), "Look at the database's log."})
	case engine.Now != nil:
		compare("clock of the database", *engine.Now, time.Now(), 0)
	}
	for _, s := range sources {
		served, ok := s.(source.NetworkSource)
		if !ok {
			continue
		}
		name, address := s.Name(), served.Address()
		at, err := served.Clock(ctx)
		switch {
		case err != nil:
			out = append(out, finding{"reach " + name, broken, "no connection to " + address + ": " + err.Error(),
				"Let this machine connect to it by HTTPS: look at firewall and DNS."})
		case at.IsZero():
			out = append(out, finding{"reach " + name, healthy, address + " answers", ""})
		default:
			out = append(out, finding{"reach " + name, healthy, address + " answers", ""})
			compare("clock of "+name, at, time.Now(), time.Second) // which comes in whole seconds
		}
	}
	return out
}

func examineSources(ctx context.Context, st *store.Store, sources []source.Source) []finding {
	if len(sources) == 0 {
		return []finding{{"sources", odd, "none is configured here", "Give this command the collector's settings: no credential is tried without. Where the collector has none either, no number comes in: docs/sources.md has each source's."}}
	}
	c, err := collector.New(collector.Options{Store: st, Sources: sources, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return []finding{{"sources", broken, err.Error(), "Look at the log of the database."}}
	}
	var out []finding
	for _, s := range sources {
		check := "source " + s.Name()
		p, err := c.Probe(ctx, s)
		if err != nil {
			return append(out, finding{check, broken, err.Error(), "Look at the log of the database."})
		}
		out = append(out, probed(p))
	}
	return out
}

// lateAfter is how long a target may wait for its turn before something is wrong.
const lateAfter = time.Hour

func examineCollecting(ctx context.Context, st *store.Store, sources []source.Source) []finding {
	s, err := collect.ReadStatus(ctx, st, sources)
	if err != nil {
		return []finding{{"collectors", broken, err.Error(), "Look at the log of the database."}}
	}
	var out []finding
	if s.Collectors == 0 {
		out = append(out, finding{"collectors", odd, "none is at work", "Start one: without it no number comes in."})
	} else {
		out = append(out, finding{"collectors", healthy, fmt.Sprintf("%d at work", s.Collectors), ""})
	}
	due, oldest := int64(0), 0.0
	for _, q := range s.Queue {
		if due += q.Due; q.OldestDueSeconds != nil {
			oldest = max(oldest, *q.OldestDueSeconds)
		}
	}
	waits := time.Duration(oldest * float64(time.Second)).Round(time.Second)
	found := fmt.Sprintf("%d due, the first waits for %s", due, waits)
	switch {
	case due == 0:
		out = append(out, finding{"queue", healthy, "nothing is due", ""})
	case waits > lateAfter:
		out = append(out, finding{"queue", odd, found, "Look at reeltally status: a budget may be spent, or more collectors are needed."})
	default:
		out = append(out, finding{"queue", healthy, found, ""})
	}
	return append(out, examineNumbers(ctx, st, s.Platforms)...)
}

func examineAccess(ctx context.Context, st *store.Store) []finding {
	orgs, err := st.Organisations(ctx)
	switch {
	case err != nil:
		return []finding{{"organisations", broken, err.Error(), "Look at the log of the database."}}
	case len(orgs) == 0:
		return []finding{{"organisations", odd, "there is none", "Make one: reeltally org create --name NAME"}}
	}
	return []finding{{"organisations", healthy, fmt.Sprintf("%d", len(orgs)), ""}}
}
