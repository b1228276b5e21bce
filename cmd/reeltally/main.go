// Command reeltally is the command line tool of ReelTally.
//
// Operators use it with the database. It runs ReelTally in one process, manages organisations and tokens, and migrates the schema. It imports and
// exports histories, shows how well numbers are collected, and fills databases with made-up data. Callers of the API use it with a token: it tracks
// and lists videos, accounts and collections.
//
// The type commands has one field for each command or group of commands. The type of a command has a method Run, which does the work. Most
// files are named after the command or group that they implement. The command `reeltally up` is in up.go and demo.go. The commands that track or stop
// videos and accounts are in track.go. The common parts of commands are in api.go, for those that call the API, in print.go and in progress.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func main() { os.Exit(boot.Main("reeltally", run)) }

// commands defines the commands and flags of the command line for kong. Each field is a command or a group of commands.
type commands struct {
	Up          upCommand          `cmd:"" help:"Run API, collector and sandbox in one process, with a demo organisation."`
	Org         orgCommands        `cmd:"" help:"Manage organisations."`
	Token       tokenCommands      `cmd:"" help:"Manage API tokens."`
	LoginLink   loginLinkCommand   `cmd:"" name:"login-link" help:"Print a link that signs in to an organisation's dashboard once, within 30 minutes."`
	Migrate     migrateCommand     `cmd:"" help:"Update the schema of the database."`
	Seed        seedCommand        `cmd:"" help:"Fill organisations with made-up videos and histories, for load tests."`
	Import      importCommand      `cmd:"" help:"Import histories from another tracker, from a CSV or JSON file."`
	MigrateFrom migrateFromCommand `cmd:"" name:"migrate-from" help:"Copy an organisation from a hosted service or another ReelTally server."`
	Export      exportCommands     `cmd:"" help:"Write data to files: over the API, or from the database."`
	Backup      backupCommand      `cmd:"" help:"Write all data of the database to a file, while it is in use."`
	Restore     restoreCommand     `cmd:"" help:"Read a backup into an empty database of either engine, or check a backup."`
	Status      statusCommand      `cmd:"" help:"Show queue, freshness, budgets and paused sources."`
	Doctor      doctorCommand      `cmd:"" help:"Check database, clocks, sources and collectors, and advise what to fix."`
	Sandbox     sandboxCommand     `cmd:"" help:"Run the sandbox, which imitates the platforms, and print the settings to use it."`
	Links       linksCommand       `cmd:"" help:"Read links from standard input, one a line, and write what each refers to as JSON, one object a line, in order."`
	Healthcheck healthcheckCommand `cmd:"" help:"Read the address of a program, and fail unless its status is 200."`
	Version     versionCommand     `cmd:"" help:"Print the version."`

	Login       loginCommand        `cmd:"" group:"Commands that call the API of a server" help:"Check and store the address of a server and a token."`
	Logout      logoutCommand       `cmd:"" group:"Commands that call the API of a server" help:"Delete the stored address and token."`
	Track       videosTrack         `cmd:"" group:"Commands that call the API of a server" help:"Track videos by their links."`
	List        videosList          `cmd:"" group:"Commands that call the API of a server" help:"List videos with their latest counts."`
	Show        videosShow          `cmd:"" group:"Commands that call the API of a server" help:"Show one video."`
	History     videosHistory       `cmd:"" group:"Commands that call the API of a server" help:"Show the daily counts of a video as a chart."`
	Watch       videosWatch         `cmd:"" group:"Commands that call the API of a server" help:"Print a line whenever the counts of a video, or of the videos of a collection, change."`
	Refresh     videosRefresh       `cmd:"" group:"Commands that call the API of a server" help:"Request new counts of videos before their next scheduled fetch."`
	Stop        videosStop          `cmd:"" group:"Commands that call the API of a server" help:"Stop tracking videos. Their histories stay."`
	Accounts    accountsCommands    `cmd:"" group:"Commands that call the API of a server" help:"Track, list and stop accounts, and show their histories."`
	Collections collectionsCommands `cmd:"" group:"Commands that call the API of a server" help:"Create and list collections, and change their members."`
}

// run parses the command line and runs the command that it names.
func run(ctx context.Context, p boot.Process) error {
	var c commands
	parsed, err := boot.Parse(p, &c, collect.Vars(), boot.Description("ReelTally tracks short videos and the accounts that post them."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		return err
	}
	return addLoginAdvice(addFlagNames(parsed.Run(), parsed.Flags()))
}

// addFlagNames returns a UsageError that names the flags with invalid values, if the server refused
// these values. It returns other errors unchanged.
func addFlagNames(err error, flags []*kong.Flag) error {
	// Only the server checks these values, because a newer server can accept values unknown to this version.
	var refused *client.Error
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusBadRequest || len(refused.Errors) == 0 {
		return err
	}
	texts := make([]string, len(refused.Errors))
	for i, fault := range refused.Errors {
		member := ""
		switch {
		case fault.Name != nil:
			member = *fault.Name
		case fault.Pointer != nil:
			member = strings.TrimPrefix(*fault.Pointer, "/")
		}
		flagIndex := slices.IndexFunc(flags, func(f *kong.Flag) bool { return apiNameOf(f) == member })
		if flagIndex < 0 { // the invalid value is not from a flag; for example, it is a link
			return err
		}
		texts[i] = "--" + flags[flagIndex].Name + strings.TrimPrefix(fault.Detail, member)
	}
	return boot.UsageError{Err: errors.New(strings.Join(texts, "; "))}
}

// apiNameOf returns the API's name for a flag: the tag "api" or, without this tag, the flag's own
// name with "_" instead of "-".
func apiNameOf(f *kong.Flag) string {
	if name := f.Tag.Get("api"); name != "" {
		return name
	}
	return strings.ReplaceAll(f.Name, "-", "_")
}

// databaseCommand has the settings of the database. It is embedded in the commands that use the database.
type databaseCommand struct{ boot.Database }

// withStore opens the store, passes it to the given function and closes it. If the SQLite file does not exist, withStore does not create it but
// returns an error.
func (c databaseCommand) withStore(ctx context.Context, p boot.Process, use func(*store.Store) error) error {
	c.MustExist = true
	return c.withMigration(ctx, p, boot.CheckOnly, use)
}

// withNewStore does the same as withStore. If the SQLite file does not exist, withNewStore creates it.
func (c databaseCommand) withNewStore(ctx context.Context, p boot.Process, use func(*store.Store) error) error {
	return c.withMigration(ctx, p, boot.CreateSQLite, use)
}

// withMigration does the same as withStore, but it first migrates the schema if the given Migration allows that. If it creates a SQLite file, it
// names the file on standard error: without the settings of the servers, a command creates a file that no server uses.
func (c databaseCommand) withMigration(ctx context.Context, p boot.Process, m boot.Migration, use func(*store.Store) error) error {
	missing := c.missingSQLiteFile()
	st, err := c.Open(ctx, boot.Logging{LogLevel: "warn"}.Logger(p.Stderr), m)
	if missing != "" && c.missingSQLiteFile() == "" {
		_, _ = fmt.Fprintf(p.Stderr, "The SQLite file %s did not exist and was created.\n", missing)
	}
	if err != nil {
		return err
	}
	return errors.Join(use(st), st.Close())
}

// missingSQLiteFile returns the absolute path of the SQLite file if the file does not exist. Otherwise, it returns "".
func (c databaseCommand) missingSQLiteFile() string {
	path, ok := strings.CutPrefix(c.DatabaseURL.Reveal(), "sqlite:")
	if _, err := os.Stat(path); !ok || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}

type migrateCommand struct {
	databaseCommand
	Citus bool `help:"Also divide the tables between the nodes of a Citus cluster. Servers and collectors must not run during the first time. See docs/scale.md."`
}

// Run updates the schema to the version that this program needs.
func (c *migrateCommand) Run(ctx context.Context, p boot.Process) error {
	return c.withMigration(ctx, p, boot.SkipSchemaCheck, func(st *store.Store) error {
		have, want, err := st.Schema(ctx)
		if err != nil {
			return err
		}
		var schema *store.SchemaError
		if err := st.CheckSchema(ctx); errors.As(err, &schema) && have > want {
			return err
		}
		applied, err := st.Migrate(ctx)
		if err != nil {
			return err
		}
		switch {
		case have > want:
			_, err = fmt.Fprintf(p.Stdout, "The schema has version %d, which is newer than this program's version %d. This program can use it; nothing to do.\n", have, want)
		case len(applied) == 0:
			_, err = fmt.Fprintln(p.Stdout, "The schema was already up to date; nothing to do.")
		default:
			_, err = fmt.Fprintf(p.Stdout, "The schema is now up to date; %s applied, up to number %d.\n", numberWithNoun(len(applied), "migration"), applied[len(applied)-1])
		}
		if err != nil || !c.Citus {
			return err
		}
		return c.distributeTables(ctx, p, st)
	})
}

// distributeTables divides the tables between the nodes of a Citus cluster.
func (c *migrateCommand) distributeTables(ctx context.Context, p boot.Process, st *store.Store) error {
	distributed, err := st.Distribute(ctx)
	switch {
	case err != nil:
		return err
	case len(distributed) == 0:
		_, err = fmt.Fprintln(p.Stdout, "All tables were already distributed by Citus.")
	default:
		_, err = fmt.Fprintf(p.Stdout, "Citus now distributes %s: %s.\n", numberWithNoun(len(distributed), "table"), strings.Join(distributed, ", "))
	}
	return err
}

type versionCommand struct{}

// Run prints the name of the program and its version on one line.
func (versionCommand) Run(p boot.Process) error {
	_, err := fmt.Fprintln(p.Stdout, "reeltally "+boot.Version())
	return err
}
