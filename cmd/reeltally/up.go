package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/cmd/internal/serve"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

type upCommand struct {
	boot.Logging `set:"log_level=warn"`
	boot.Database
	boot.Metrics
	serve.Config
	Sources collect.Config `embed:""`
	DataDir string         `setting:"REELTALLY_DATA_DIR" placeholder:"FOLDER" help:"Folder for the file with the demo organisation's token, which only you can read. Without it, the folder of the SQLite file, or data with PostgreSQL."`
}

// Help returns the text that kong prints below the flags.
func (upCommand) Help() string {
	return "The sandbox replaces each platform for which no source is configured. Its numbers are made up. SIGINT (Ctrl-C) or SIGTERM stops the program: first the API, then the collector, then the sandbox."
}

// Run starts sandbox, collector and API in one process and prints how to use them. When ctx ends, Run lets the API finish its running
// requests and stops it, then lets the collector finish its claims and stops it, then stops the sandbox.
func (c *upCommand) Run(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.IgnoreShutdown(ctx, err) }()
	if err := errors.Join(c.Check(), c.Sources.Check()); err != nil {
		return err
	}
	c.StoreTimeout = collect.StoreTimeout // for the collector; API requests have their own deadline
	u := up{upCommand: c, log: c.Logger(p.Stderr), registry: boot.NewRegistry()}
	if u.store, err = c.Open(ctx, u.log, boot.MigrateAny); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.store.Close()) }()
	services, err := u.services(ctx)
	defer func() { err = errors.Join(err, u.closeListeners()) }()
	if err != nil {
		return err
	}
	demo, err := u.prepareDemo(ctx)
	if err != nil {
		return err
	}
	if err := u.printWelcome(p.Stdout, demo); err != nil {
		return err
	}
	if err := boot.RunAll(ctx, services...); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, "\nStopped.")
	return err
}

// up is one run of `reeltally up`.
type up struct {
	*upCommand
	log              *slog.Logger
	registry         *prometheus.Registry
	store            *store.Store
	listeners        []net.Listener
	api              *serve.API
	sandboxServer    *sandbox.Sandbox
	sandboxPlatforms []link.Platform // the platforms that the sandbox imitates
}

// services opens the listeners and returns the services: sandbox, collector, metrics, API. A service comes after the services that it uses.
func (u *up) services(ctx context.Context) ([]boot.Service, error) {
	var services []boot.Service
	if !u.Sources.HasYouTube() || !u.Sources.HasVendor() {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot open a port for the sandbox: %w", err)
		}
		u.listeners = append(u.listeners, l)
		u.useSandbox(boot.URL(l))
		services = append(services, boot.Service{Name: "sandbox", Run: func(ctx context.Context) error {
			return boot.Serve(ctx, l, u.sandboxServer.Handler(), u.log)
		}})
	}
	seeded, err := u.hasDemoVideos(ctx)
	if err != nil {
		return nil, err
	}
	// A seeded database has made-up numbers even if every platform has a real source now.
	u.Sandbox = u.Sandbox || len(u.sandboxPlatforms) > 0 || seeded
	sources, err := u.Sources.RequireSources(u.store, u.log)
	if err != nil {
		return nil, err
	}
	collector, err := collect.NewService(u.store, sources, u.registry, u.log)
	if err != nil {
		return nil, err
	}
	services = append(services, collector)
	metrics, enabled, err := u.Service(ctx, u.registry, collect.NewMonitor(u.store, sources, u.registry, u.log), u.log)
	if err != nil {
		return nil, err
	}
	if enabled {
		services = append(services, metrics)
	}
	if u.api, err = serve.New(ctx, u.Config, u.store, u.registry, u.log); err != nil {
		return nil, err
	}
	return append(services, boot.Service{Name: "api", Run: u.api.Run}), nil
}

// closeListeners closes the listeners that were opened, in case Run fails before it serves. Listeners that are closed already are ignored.
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

// useSandbox configures the sandbox as the source of each platform that has no configured source. The sandbox resolves short links only
// if it imitates all platforms with short links.
func (u *up) useSandbox(address string) {
	u.sandboxServer = newSandbox(0, u.log)
	settings := map[string]string{}
	for _, s := range u.sandboxServer.Settings(address) {
		name, value, _ := strings.Cut(s, "=")
		settings[name] = value
	}
	if !u.Sources.HasYouTube() {
		u.Sources.YouTubeAPIKey = boot.Secret(settings["REELTALLY_YOUTUBE_API_KEY"])
		u.Sources.YouTubeBaseURL = settings["REELTALLY_YOUTUBE_BASE_URL"]
		u.sandboxPlatforms = append(u.sandboxPlatforms, link.YouTube)
	}
	if u.Sources.HasVendor() {
		return
	}
	u.Sources.Vendor = []string{settings["REELTALLY_VENDOR"]}
	u.Sources.VendorBaseURL = []string{settings["REELTALLY_VENDOR_BASE_URL"]}
	u.Sources.VendorKey = []boot.Secret{boot.Secret(settings["REELTALLY_VENDOR_KEY"])}
	// The sandbox serves only platforms without a real source. If a real source fails, made-up numbers must not replace its numbers.
	var unconfigured []link.Platform
	if !u.Sources.HasTikTok() {
		unconfigured = append(unconfigured, link.TikTok)
	}
	if !u.Sources.HasInstagram() {
		unconfigured = append(unconfigured, link.Instagram)
	}
	if !u.Sources.HasFacebook() {
		unconfigured = append(unconfigured, link.Facebook)
	}
	u.Sources.VendorPlatforms = unconfigured
	u.sandboxPlatforms = append(u.sandboxPlatforms, unconfigured...)
	if u.ShortLinkBaseURL == "" && len(unconfigured) == 3 { // if one of these platforms has a real source, the platform must resolve its short links
		u.ShortLinkBaseURL = settings["REELTALLY_SHORTLINK_BASE_URL"]
	}
}

// dataDir returns the folder of the demo token's file.
func (u *up) dataDir() string {
	if u.DataDir != "" {
		return u.DataDir
	}
	if path, ok := strings.CutPrefix(u.DatabaseURL.Reveal(), "sqlite:"); ok {
		return filepath.Dir(path)
	}
	return "data"
}

// dataLocation describes where the data is. It does not show the URL of a PostgreSQL database, which has a password.
func (u *up) dataLocation() string {
	path, ok := strings.CutPrefix(u.DatabaseURL.Reveal(), "sqlite:")
	if !ok {
		return "in your PostgreSQL database; the token is in " + filepath.Join(u.dataDir(), tokenFile)
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return "in " + filepath.Dir(path) + string(os.PathSeparator) + "; delete that folder to start again"
}
