// Command reeltally is the operator's tool: a first look in one process, organisations and tokens, the schema, data to
// measure with, histories in and out, the sandbox.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/store"
)

func main() { os.Exit(boot.Main("reeltally", run)) }

type commands struct {
	Up      upCommand      `cmd:"" help:"Run API, collector and sandbox in one process, with a demo organisation: a first look."`
	Org     orgCommands    `cmd:"" help:"Organisations."`
	Token   tokenCommands  `cmd:"" help:"API tokens."`
	Migrate migrateCommand `cmd:"" help:"Bring the database's schema up to date."`
	Seed    seedCommand    `cmd:"" help:"Fill organisations with made-up data and its past, for measurements."`
	Import  importCommand  `cmd:"" help:"Bring the histories of another tracker in, from a CSV or JSON file."`
	Export  exportCommand  `cmd:"" help:"Write an organisation's videos with their histories into a file."`
	Status  statusCommand  `cmd:"" help:"Tell how collecting goes: the queue, how fresh the numbers are, budgets and pauses."`
	Doctor  doctorCommand  `cmd:"" help:"Check database, clock, sources and collectors, and say what to do."`
	Sandbox sandboxCommand `cmd:"" help:"Run the sandbox, which stands in for the platforms, and print the settings that point at it."`
	Links   linksCommand   `cmd:"" help:"Read one link a line on standard input, write what each means as one JSON object a line, in order."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

func run(ctx context.Context, p boot.Process) error {
	var c commands
	parsed, err := boot.Parse(p, &c, collect.Vars(), boot.Description("ReelTally tracks short videos and the accounts that post them."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		return err
	}
	return parsed.Run()
}

// operator is what the commands share that only touch the database.
type operator struct{ boot.Database }

// with opens the database for the time of do. A new SQLite file is given its schema.
func (o operator) with(ctx context.Context, p boot.Process, do func(*store.Store) error) (err error) {
	return o.opened(ctx, p, boot.CreateSQLite, do)
}

func (o operator) opened(ctx context.Context, p boot.Process, m boot.Migration, do func(*store.Store) error) error {
	st, err := o.Open(ctx, boot.Logging{LogLevel: "warn"}.Logger(p.Stderr), m)
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

type migrateCommand struct{ operator }

// Run brings the schema up to date.
func (c *migrateCommand) Run(ctx context.Context, p boot.Process) error {
	return c.opened(ctx, p, boot.SkipSchemaCheck, func(st *store.Store) error {
		var schema *store.SchemaError
		if err := st.CheckSchema(ctx); errors.As(err, &schema) && schema.Have > schema.Want {
			return err
		}
		applied, err := st.Migrate(ctx)
		if err != nil {
			return err
		}
		if len(applied) == 0 {
			_, err = fmt.Fprintln(p.Stdout, "The schema is up to date; there was nothing to do.")
		} else {
			_, err = fmt.Fprintf(p.Stdout, "The schema is up to date; migrations applied: %v.\n", applied)
		}
		return err
	})
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(p boot.Process) error {
	_, err := fmt.Fprintln(p.Stdout, "reeltally "+boot.Version())
	return err
}
