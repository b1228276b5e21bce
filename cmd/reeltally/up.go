package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/cmd/internal/serve"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
)

type upCommand struct {
	boot.Logging  `set:"log_level=warn"`
	boot.Database `set:"database_url="`
	boot.Metrics
	serve.Config
	Sources collect.Config `embed:""`
	DataDir string         `setting:"REELTALLY_DATA_DIR" placeholder:"FOLDER" help:"Folder for the file with the token, which only you can read. Without it, the folder of the SQLite file, or data with PostgreSQL."`
}

// Help returns the text that --help shows below the summary of the command.
func (upCommand) Help() string {
	return "Without a source, the sandbox takes the place of all platforms, and all numbers are made up. " +
		"With a source, all numbers are real, and platforms without a source have no numbers. " +
		fmt.Sprintf("Without REELTALLY_DATABASE_URL, made-up numbers are stored in the SQLite file %s, and real numbers in %s. ", demoFile, realFile) +
		"SIGINT (Ctrl-C) or SIGTERM stops the program: first the API, then the collector, then the sandbox."
}

// These are the default SQLite files for made-up and for real numbers. A database never has both.
const (
	demoFile = "data/demo.db"
	realFile = "data/reeltally.db"
)

// Run runs the API and a collector in one process, and prints how to use them. Without a configured
// source, Run also runs the sandbox.
func (c *upCommand) Run(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.IgnoreShutdown(ctx, err) }()
	if err := errors.Join(c.Check(), c.CheckAddress(c.Listen), c.Sources.Check()); err != nil {
		return err
	}
	if c.DatabaseURL == "" {
		c.DatabaseURL = "sqlite:" + demoFile
		if c.Sources.HasSource() && !c.Sandbox {
			c.DatabaseURL = "sqlite:" + realFile
		}
	}
	c.ReadURL = c.DatabaseReadURL
	c.StoreTimeout = collect.StoreTimeout // timeout of the collector's database transactions; requests to the API have their own deadline
	traces, logger, err := boot.StartTraces(ctx, p, c.Logger(p.Stderr))
	if err != nil {
		return err
	}
	defer traces.Stop(ctx)
	c.Traced = traces.Enabled()
	u := up{upCommand: c, log: logger, registry: boot.NewRegistry(), traces: traces}
	defer func() { err = errors.Join(err, u.closeListeners()) }()
	listener, err := c.OpenListener(ctx) // before the database is created, because the port can be in use
	if err != nil {
		return err
	}
	u.listeners = append(u.listeners, listener)
	if u.store, err = c.Open(ctx, u.log, boot.MigrateAny); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.store.Close()) }()
	services, err := u.openServices(ctx, listener)
	if err != nil {
		return err
	}
	first, err := u.prepareOrganisation(ctx)
	if err != nil {
		return err
	}
	if err := u.printWelcome(p.Stdout, first); err != nil {
		return err
	}
	// When ctx ends, the services stop in reverse order: the API first, and the sandbox last.
	if err := boot.RunAll(ctx, services...); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, "\nStopped.")
	return err
}

// up is the state of one run of `reeltally up`.
type up struct {
	*upCommand
	log           *slog.Logger
	registry      *prometheus.Registry
	traces        *boot.Traces
	store         *store.Store
	listeners     []net.Listener
	api           *serve.API
	sandboxServer *sandbox.Sandbox // nil if a source is configured, because then no sandbox runs
}

// openServices opens the other listeners and returns the services to run: sandbox, collector, metrics and API. Each service comes after the
// services that it uses. The API uses the given listener.
func (u *up) openServices(ctx context.Context, apiListener net.Listener) ([]boot.Service, error) {
	var services []boot.Service
	if !u.Sources.HasSource() {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot open a port for the sandbox: %w", err)
		}
		u.listeners = append(u.listeners, l)
		u.useSandbox(boot.URL(l))
		services = append(services, func(ctx context.Context) error {
			return boot.Serve(ctx, l, u.sandboxServer.Handler(), u.log)
		})
	}
	sources, err := u.Sources.RequireSources(ctx, u.store, u.log)
	if err != nil {
		return nil, err
	}
	sources, results := collect.CountCalls(u.registry, sources)
	collector, err := u.Sources.NewService(u.store, sources, u.registry, u.traces, u.log)
	if err != nil {
		return nil, err
	}
	services = append(services, collector)
	status := monitor.New(u.store, collect.Describe(sources), results, u.registry, u.log)
	metrics, err := u.Services(ctx, u.registry, status, u.log)
	if err != nil {
		return nil, err
	}
	services = append(services, metrics...)
	u.api, err = serve.New(ctx, serve.Options{Config: u.Config, Listener: apiListener, Store: u.store, Status: status,
		Registry: u.registry, Traces: u.traces, Logger: u.log})
	if err != nil {
		return nil, err
	}
	return append(services, u.api.Run), nil
}

// closeListeners closes all listeners that are still open. There are such listeners if Run fails before it serves requests.
func (u *up) closeListeners() error {
	var errs []error
	for _, l := range u.listeners {
		errs = append(errs, l.Close())
	}
	if u.api != nil {
		errs = append(errs, u.api.Close())
	}
	for i, err := range errs {
		if errors.Is(err, net.ErrClosed) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// useSandbox makes the sandbox the source of all platforms.
func (u *up) useSandbox(address string) {
	u.sandboxServer = newSandbox(0, u.log)
	u.Sandbox = true
	settings := u.sandboxServer.Settings(address)
	u.Sources.YouTubeAPIKey = boot.Secret(settings["REELTALLY_YOUTUBE_API_KEY"])
	u.Sources.YouTubeBaseURL = settings["REELTALLY_YOUTUBE_BASE_URL"]
	u.Sources.Vendor = []string{settings["REELTALLY_VENDOR"]}
	u.Sources.VendorBaseURL = []string{settings["REELTALLY_VENDOR_BASE_URL"]}
	u.Sources.VendorKey = []boot.Secret{boot.Secret(settings["REELTALLY_VENDOR_KEY"])}
	u.Sources.ThumbnailBaseURL = settings["REELTALLY_THUMBNAIL_BASE_URL"]
	if u.ShortLinkBaseURL == "" {
		u.ShortLinkBaseURL = settings["REELTALLY_SHORTLINK_BASE_URL"]
	}
}

// dataDir returns the folder for the file with the token: the value of the flag --data-dir, else the folder of the SQLite file, else "data".
func (u *up) dataDir() string {
	if u.DataDir != "" {
		return u.DataDir
	}
	if path, ok := strings.CutPrefix(u.DatabaseURL.Reveal(), "sqlite:"); ok {
		return filepath.Dir(path)
	}
	return "data"
}

// dataLocation describes where the data and the token are. It does not show the URL of a PostgreSQL database, because the URL contains a password.
func (u *up) dataLocation() string {
	path, ok := strings.CutPrefix(u.DatabaseURL.Reveal(), "sqlite:")
	if !ok {
		return fmt.Sprintf("in your PostgreSQL database, and the token is in %s", u.tokenPath())
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return fmt.Sprintf("in %s, and the token is in %s", path, u.tokenPath())
}
