package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/disk"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
)

type doctorCommand struct {
	boot.Database
	Sources collect.Config `embed:""`
	JSON    bool           `name:"json" help:"Print JSON: a list of {\"check\",\"state\",\"found\",\"advice\"}."`
}

// Help returns the text that --help shows below the summary of the command.
func (doctorCommand) Help() string {
	return "Run this command with the settings of server and collector. It makes one call to each source, which may cost a unit of the source's budget. The exit status is 1 if something is broken, and 0 if there are only warnings."
}

// These constants are the possible values of finding.State. The JSON output contains them unchanged.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateBroken  = "broken"
)

// finding is the result of one check of `reeltally doctor`, such as the check of the disk.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what the operator should do; "" if State is stateOK
}

// Run runs the checks one after the other and prints each finding as soon as it is known.
func (c *doctorCommand) Run(ctx context.Context, p boot.Process) error {
	logger := boot.Logging{LogLevel: "error"}.Logger(p.Stderr)
	var all []finding
	report := func(findings ...finding) error {
		all = append(all, findings...)
		if c.JSON {
			return nil
		}
		for _, f := range findings {
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
	c.MustExist = true
	st, err := c.Open(ctx, logger, boot.SkipSchemaCheck)
	if usage := (boot.UsageError{}); errors.As(err, &usage) {
		return err
	}
	if err != nil {
		findings := []finding{{"database", stateBroken, err.Error(), "Correct REELTALLY_DATABASE_URL, or start the database."}}
		for _, f := range c.checkDisk() { // the disk may be the reason
			if f.State == stateBroken {
				findings = append(findings, f)
			}
		}
		err = report(findings...)
	} else {
		err = errors.Join(c.checkInstallation(ctx, st, logger, report), st.Close())
	}
	if c.JSON {
		err = errors.Join(err, writeJSON(p.Stdout, all))
	}
	if err != nil {
		return err
	}
	failed := 0
	for _, f := range all {
		if f.State == stateBroken {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(all)) //nolint:err113 // no caller checks for this error
	}
	return nil
}

// checkInstallation checks the database and the disk. If the database works, it also checks clocks, retention, sources, collectors and organisations.
func (c *doctorCommand) checkInstallation(ctx context.Context, st *store.Store, logger *slog.Logger, report func(...finding) error) error {
	database := checkDatabase(ctx, st)
	if err := report(append(database, c.checkDisk()...)...); err != nil {
		return err
	}
	for _, f := range database {
		if f.State == stateBroken {
			return nil
		}
	}
	sources, sourcesErr := c.Sources.ConfiguredSources(st, logger)
	for _, check := range []func() []finding{
		func() []finding { return append(checkClocks(ctx, st, sources), checkRetention(ctx, st)...) },
		func() []finding {
			if sourcesErr != nil {
				return []finding{{"sources", stateBroken, sourcesErr.Error(), "Correct the setting; docs/sources.md describes each."}}
			}
			return checkSources(ctx, st, sources)
		},
		func() []finding { return checkCollectors(ctx, st, sources) },
		func() []finding { return append(checkOrganisations(ctx, st), checkBackup(ctx, st)) },
	} {
		if err := report(check()...); err != nil {
			return err
		}
	}
	return nil
}

// checkDatabase checks whether the database responds, keeps acknowledged writes after a crash, and has a schema that this program can use.
func checkDatabase(ctx context.Context, st *store.Store) []finding {
	engine, err := st.Engine(ctx)
	if err != nil {
		return []finding{{"database", stateBroken, err.Error(), "Start the database, or correct REELTALLY_DATABASE_URL."}}
	}
	out := []finding{{"database", stateOK, engine.Name + " " + engine.Version, ""}}
	if engine.UnsafeSettings != "" {
		out = append(out, finding{"durability", stateWarning, "off in PostgreSQL: " + engine.UnsafeSettings,
			"Set them to on, for the server and for the user of the URL. Otherwise a crash of PostgreSQL loses acknowledged writes."})
	}
	var schema *store.SchemaError
	switch err := st.CheckSchema(ctx); {
	case errors.As(err, &schema) && schema.Have > schema.Want:
		out = append(out, finding{"schema", stateBroken, err.Error(), "Use the version of this program that migrated the database, or a newer one."})
	case err != nil:
		out = append(out, finding{"schema", stateBroken, err.Error(), "Run reeltally migrate."})
	default:
		detail := "up to date"
		if have, want, err := st.Schema(ctx); err == nil && have > want {
			detail = fmt.Sprintf("version %d, which is newer than this program's version %d; this program can use it", have, want)
		}
		out = append(out, finding{"schema", stateOK, detail, ""})
	}
	return out
}

// minFreeDisk is the free disk space in bytes below which checkDisk warns.
const minFreeDisk = 1 << 30

// checkDisk checks the free disk space and the file permissions of a SQLite database. For PostgreSQL it returns nil, because the database
// can be on another machine.
func (c *doctorCommand) checkDisk() []finding {
	path, ok := strings.CutPrefix(c.DatabaseURL.Reveal(), "sqlite:")
	if !ok {
		return nil
	}
	folder := filepath.Dir(path)
	usage, err := disk.Usage(folder)
	if err != nil {
		return []finding{{"disk", stateBroken, folder + ": " + err.Error(), "Create the folder."}}
	}
	return append(append(checkFileModes(path), checkWritable(path)...), diskFinding(folder, usage.Free, writeTestFile(folder)))
}

// diskFinding returns the finding for a folder with a SQLite database. The parameter free is the free disk space in bytes. The parameter writeErr is
// the result of writeTestFile.
func diskFinding(folder string, free uint64, writeErr error) finding {
	found := fmt.Sprintf("%d MiB free in %s", free>>20, folder)
	switch {
	case errors.Is(writeErr, os.ErrPermission) || errors.Is(writeErr, syscall.EROFS):
		return finding{"disk", stateBroken, fmt.Sprintf("the folder %s is not writable", folder),
			"Let the user that runs ReelTally write to this folder: SQLite creates additional files beside the database."}
	case errors.Is(writeErr, syscall.ENOSPC):
		return finding{"disk", stateBroken, fmt.Sprintf("%s, and writing failed: %v", found, writeErr), "Free some disk space: SQLite cannot write to a full disk."}
	case writeErr != nil:
		return finding{"disk", stateBroken, fmt.Sprintf("writing to the folder %s failed: %v", folder, writeErr), "Check the folder and its disk."}
	case free < minFreeDisk:
		return finding{"disk", stateWarning, found, "Free some disk space: SQLite cannot write to a full disk."}
	}
	return finding{"disk", stateOK, found, ""}
}

// testFileSize is the number of bytes that writeTestFile writes.
const testFileSize = 1 << 20

// writeTestFile writes a temporary file to the folder and deletes the file. An error means that
// SQLite cannot write to the folder either.
func writeTestFile(folder string) error {
	file, err := os.CreateTemp(folder, ".reeltally-doctor-*")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, testFileSize))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
}

// checkWritable returns a finding if this program cannot write to the files of a SQLite database. Otherwise, it returns nil.
func checkWritable(path string) []finding {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		file, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // the operator names the database
		switch {
		case err == nil:
			_ = file.Close() // ignore the error: nothing was written
		case !errors.Is(err, os.ErrNotExist):
			return []finding{{"file access", stateBroken, fmt.Sprintf("%s is not writable: %v", name, err), "Let the user that runs ReelTally read and write this file."}}
		}
	}
	return nil
}

// checkFileModes checks whether other users of the machine can read or write a SQLite database: the file at path and its -wal and -shm
// files.
func checkFileModes(path string) []finding {
	var open []string
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			open = append(open, fmt.Sprintf("%s has mode %04o", name, info.Mode().Perm()))
		}
	}
	if len(open) == 0 {
		return []finding{{"file mode", stateOK, fmt.Sprintf("only the owner can read %s", path), ""}}
	}
	return []finding{{"file mode", stateWarning, strings.Join(open, ", "), "Other users of this machine can read or write the database: run chmod 600 on these files."}}
}

// checkRetention checks whether old rows are deleted as the settings say. The store deletes nothing while the clock of this machine seems
// to be wrong.
func checkRetention(ctx context.Context, st *store.Store) []finding {
	err := st.CheckClock(ctx)
	if wrong, ok := errors.AsType[*store.ClockError](err); ok {
		return []finding{{"retention", stateWarning, wrong.Detail, "Check this machine's clock. If the clock is right, do nothing: ReelTally will resume the deletion of old rows when it trusts the clock."}}
	}
	if err != nil {
		return []finding{{"retention", stateBroken, err.Error(), "Check the log of the database."}}
	}
	return []finding{{"retention", stateOK, "ReelTally trusts the clock of this machine and deletes old rows", ""}}
}

// maxClockDrift is the largest accepted difference between two clocks. If the difference is larger, the machines may disagree about the day and
// about the end of quotas and leases.
const maxClockDrift = 5 * time.Second

// checkClocks compares this machine's clock with the clocks of the database and the sources. It
// also reports which of the sources can be reached.
func checkClocks(ctx context.Context, st *store.Store, sources []source.Source) []finding {
	var out []finding
	compare := func(check string, other, own time.Time, resolution time.Duration) {
		drift := other.Sub(own).Abs()
		if drift > maxClockDrift+resolution {
			out = append(out, finding{check, stateBroken, fmt.Sprintf("the %s and the clock of this machine differ by %s", check, drift.Round(time.Second)), "Synchronise the clocks with NTP."})
			return
		}
		out = append(out, finding{check, stateOK, fmt.Sprintf("the %s and the clock of this machine differ by at most %s", check, maxClockDrift+resolution), ""})
	}
	switch engine, err := st.Engine(ctx); {
	case err != nil:
		out = append(out, finding{"clock of the database", stateBroken, err.Error(), "Check the log of the database."})
	case engine.Now != nil:
		compare("clock of the database", *engine.Now, time.Now(), 0)
	}
	for _, s := range sources {
		name, address := s.Name(), s.Address()
		clock, err := s.Clock(ctx)
		switch {
		case err != nil:
			out = append(out, finding{"reach " + name, stateBroken, "no connection to " + address + ": " + err.Error(),
				"Allow this machine to connect to the address over HTTPS: check firewall and DNS."})
		case clock.IsZero():
			out = append(out, finding{"reach " + name, stateOK, address + " responds", ""})
		default:
			out = append(out, finding{"reach " + name, stateOK, address + " responds", ""})
			compare("clock of the source "+name, clock, time.Now(), time.Second) // the time of the source comes from its Date header, which has whole seconds
		}
	}
	return out
}

// checkSources sends a test request to each source that serves videos, to check whether the source accepts the configured credential.
func checkSources(ctx context.Context, st *store.Store, sources []source.Source) []finding {
	if len(sources) == 0 {
		switch kind, err := st.DataKind(ctx); {
		case err != nil:
			return []finding{{"sources", stateBroken, err.Error(), "Check the log of the database."}}
		case kind == store.MadeUpData:
			return []finding{{"sources", stateOK, "the numbers are made up by the sandbox, which needs no credential", ""}}
		}
		return []finding{{"sources", stateWarning, "no source is configured", "Run this command with the settings of the collector, so that the command can check the credentials. If these settings have no source, configure one: see docs/sources.md."}}
	}
	q := quota.New(st.Queue, time.Now, slog.New(slog.DiscardHandler))
	var out []finding
	for _, s := range sources {
		check := "source " + s.Name()
		p, err := q.Probe(ctx, s)
		if err != nil {
			return append(out, finding{check, stateBroken, err.Error(), "Check the log of the database."})
		}
		out = append(out, findingFromProbe(p))
	}
	return out
}

// maxDueTime is how long a due target may wait for its fetch before checkCollectors warns.
const maxDueTime = time.Hour

// checkCollectors checks whether collectors run, whether due targets are fetched in time, and how old the numbers are.
func checkCollectors(ctx context.Context, st *store.Store, sources []source.Source) []finding {
	s, err := monitor.ReadStatus(ctx, st, collect.Describe(sources))
	if err != nil {
		return []finding{{"collectors", stateBroken, err.Error(), "Check the log of the database."}}
	}
	var out []finding
	if s.Collectors == 0 {
		out = append(out, finding{"collectors", stateWarning, "no collector is running", "Start a collector. Without one, no numbers are fetched."})
	} else {
		out = append(out, finding{"collectors", stateOK, fmt.Sprintf("%d running", s.Collectors), ""})
	}
	due, oldest := int64(0), 0.0
	for _, q := range s.Queue {
		if due += q.Due; q.OldestDueSeconds != nil {
			oldest = max(oldest, *q.OldestDueSeconds)
		}
	}
	dueFor := time.Duration(oldest * float64(time.Second)).Round(time.Second)
	found := []string{fmt.Sprintf("due targets: %d, longest wait: %s", due, dueFor)}
	switch {
	case due == 0:
		out = append(out, finding{"queue", stateOK, "nothing is due", ""})
	case dueFor > maxDueTime:
		for _, p := range s.Platforms {
			if p.Backlog != "" {
				found = append(found, p.Platform+": "+p.Backlog)
			}
		}
		out = append(out, finding{"queue", stateWarning, strings.Join(found, "; "), "Run reeltally status: a budget may be spent, or more collectors may be needed."})
	default:
		out = append(out, finding{"queue", stateOK, found[0], ""})
	}
	for _, u := range s.Unknown {
		out = append(out, finding{"status", stateWarning, u.Part + " could not be read: " + u.Reason, "Check the log of the database. On Citus, check that all workers answer."})
	}
	return append(out, checkNumbers(ctx, st, s.Platforms)...)
}

// checkOrganisations checks whether the database has at least one organisation.
func checkOrganisations(ctx context.Context, st *store.Store) []finding {
	orgs, err := st.Organisations(ctx)
	switch {
	case err != nil:
		return []finding{{"organisations", stateBroken, err.Error(), "Check the log of the database."}}
	case len(orgs) == 0:
		return []finding{{"organisations", stateWarning, "no organisation exists", "Create one: reeltally org create --name NAME"}}
	}
	return []finding{{"organisations", stateOK, fmt.Sprintf("%d", len(orgs)), ""}}
}

// checkBackup returns the age of the last backup. A missing or old backup is no warning, because other programs can back up the database.
func checkBackup(ctx context.Context, st *store.Store) finding {
	switch at, err := st.LastBackup(ctx); {
	case err != nil:
		return finding{"backup", stateBroken, err.Error(), "Check the log of the database."}
	case at == nil:
		return finding{"backup", stateOK, "no backup with reeltally backup is known", ""}
	default:
		return finding{"backup", stateOK, fmt.Sprintf("the last backup ended %s, %s ago", formatTime(*at), time.Since(*at).Round(time.Minute)), ""}
	}
}
