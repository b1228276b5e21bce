package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backup"
)

type backupCommand struct {
	boot.Logging `set:"log_level=warn"`
	databaseCommand
	Out  string `placeholder:"FILE" help:"File to write, which must not exist. It is named FILE.part until it is complete. Without it, or with -, the backup goes to standard output."`
	JSON bool   `name:"json" help:"Print the summary as JSON. It needs --out."`
}

// Help returns the text that --help shows below the summary of the command.
func (backupCommand) Help() string {
	return "The backup contains all data of the database at the moment when the command started. Servers and collectors can continue to work. " +
		"`reeltally restore` can restore a backup of SQLite or PostgreSQL into either of them. " +
		"The backup contains hashes of tokens and the keys that sign sessions, so keep it as secret as the database."
}

// Run writes the backup to the file or to standard output.
func (c *backupCommand) Run(ctx context.Context, p boot.Process) error {
	out, err := openOutput(p, c.Out)
	if err != nil {
		return err
	}
	if c.JSON && out.isStandardOutput() {
		return boot.UsageError{Err: errors.New("--json needs --out, because without it the backup itself goes to standard output")}
	}
	logger := c.Logger(p.Stderr)
	c.MustExist = true
	// The check is skipped, because the schema can be older than the program: a new program can back up the database before it migrates it.
	return c.withMigration(ctx, p, boot.SkipSchemaCheck, func(st *store.Store) error {
		bar := newProgress(p.Stderr, logger, "backup", "rows", 0)
		write := func(w io.Writer) (backup.Summary, error) {
			return backup.Write(ctx, st, boot.Version(), w, func(done, of int64) { bar.showDoneAndTotal(ctx, done, of) })
		}
		var summary backup.Summary
		if out.stream != nil {
			summary, err = write(out.stream)
			err = errors.Join(err, out.stream.Close())
		} else {
			summary, err = writeNewFile(out.path, write)
		}
		bar.finish(ctx)
		if err != nil {
			return err
		}
		// The backup is complete, also if its time cannot be stored, for example because the connection is read-only.
		if err := st.RecordBackup(ctx); err != nil {
			logger.WarnContext(ctx, "time of the backup could not be stored, so doctor and status do not show it", "error", err)
		}
		if out.isStandardOutput() {
			return nil
		}
		return printBackupSummary(p, c.JSON, c.Out, "was written", summary)
	})
}

// writeNewFile creates a file that only its owner can read. An incomplete file has the suffix
// ".part" and is deleted if writing fails.
func writeNewFile(path string, writeContent func(io.Writer) (backup.Summary, error)) (summary backup.Summary, err error) {
	if _, err := os.Lstat(path); err == nil {
		return summary, fmt.Errorf("%s exists already: choose another name, or delete the file", path)
	}
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the operator names the file
	if errors.Is(err, os.ErrExist) {
		return summary, fmt.Errorf("%s exists: if no other backup writes it now, it was left by an interrupted backup; delete it", part)
	}
	if err != nil {
		return summary, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	summary, err = writeContent(file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return summary, err
	}
	return summary, os.Rename(part, path)
}

type restoreCommand struct {
	boot.Logging `set:"log_level=warn"`
	databaseCommand
	File  string `arg:"" help:"The backup, or - for standard input."`
	Check bool   `help:"Only read the backup and compare its checksum. The database is not used."`
	JSON  bool   `name:"json" help:"Print the summary as JSON."`
}

// Help returns the text that --help shows below the summary of the command.
func (restoreCommand) Help() string {
	return "The database must be empty: a PostgreSQL database without tables, or a SQLite file that does not exist. " +
		"All rows are committed together after the checksum was compared, so an interrupted restore leaves an empty database. " +
		"Start servers and collectors after the restore."
}

// Run restores the backup, or only checks it.
func (c *restoreCommand) Run(ctx context.Context, p boot.Process) (err error) {
	from, name := p.Stdin, "from standard input"
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // ignore the error: the file was only read, so no data can be lost
		from, name = file, c.File
	}
	bar := newProgress(p.Stderr, c.Logger(p.Stderr), "restore", "rows", 0)
	progress := func(done, of int64) { bar.showDoneAndTotal(ctx, done, of) }
	var summary backup.Summary
	if c.Check {
		summary, err = backup.Check(from, progress)
		if bar.finish(ctx); err != nil {
			return err
		}
		return printBackupSummary(p, c.JSON, name, "is complete", summary)
	}
	return c.withMigration(ctx, p, boot.SkipSchemaCheck, func(st *store.Store) error {
		summary, err = backup.Restore(ctx, st, from, progress)
		if bar.finish(ctx); err != nil {
			return err
		}
		return printBackupSummary(p, c.JSON, name, "was restored", summary)
	})
}

// backupSummary is the JSON form of backup.Summary.
type backupSummary struct {
	Program string  `json:"program"`
	Engine  string  `json:"engine"`
	Schema  int64   `json:"schema"`
	TakenAt apiTime `json:"taken_at"`
	Tables  int     `json:"tables"`
	Rows    int64   `json:"rows"`
	SHA256  string  `json:"sha256"`
}

// printBackupSummary prints the summary of a backup, as JSON or as sentences. The verb, such as "was written", says what the command did with the backup.
func printBackupSummary(p boot.Process, asJSON bool, name, verb string, s backup.Summary) error {
	if asJSON {
		return writeJSON(p.Stdout, backupSummary{s.Program, s.Engine, s.Schema, apiTime{s.TakenAt}, s.Tables, s.Rows, s.SHA256})
	}
	_, err := fmt.Fprintf(p.Stdout, "The backup %s %s.\nContent: %s in %s\nTime of the backup: %s\nDatabase of the backup: %s, schema version %d\nsha256 of the content: %s\n", name, verb, numberWithNoun(s.Rows, "row"),
		numberWithNoun(s.Tables, "table"), s.TakenAt.Format(time.RFC3339), s.Engine, s.Schema, s.SHA256)
	return err
}
