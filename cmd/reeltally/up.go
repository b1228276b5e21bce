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
	DataDir string         `setting:"REELTALLY_DATA_DIR" placeholder:"FOLDER" help:"Where the demo organisation's token is kept, readable for you alone; without it, beside the SQLite file, or in data."`
}

// Help says what kong prints below the flags.
func (upCommand) Help() string {
	return "Sources without a key are stood in for by the sandbox, whose numbers are made up; beside a source of TikTok's own that has one, only YouTube is. SIGINT (Ctrl-C) or SIGTERM stops all of it in order."
}

// Run starts everything in one process, says how to use it, and stops in order when ctx ends: first the API once its
// requests are answered, then the collector once nothing is in its hands, then the sandbox.
func (c *upCommand) Run(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.IgnoreShutdown(ctx, err) }()
	if err := errors.Join(c.Check(), c.Sources.Check()); err != nil {
		return err
	}
	c.StoreTimeout = collect.StoreTimeout // of the collector; requests have their own deadline
	u := up{upCommand: c, log: c.Logger(p.Stderr), registry: boot.NewRegistry()}
	if u.store, err = c.Open(ctx, u.log, boot.MigrateAny); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.store.Close()) }()
	parts, err := u.parts(ctx)
	defer func() { err = errors.Join(err, u.closeListeners()) }()
	if err != nil {
		return err
	}
	demo, err := u.demo(ctx)
	if err != nil {
		return err
	}
	if err := u.welcome(p.Stdout, demo); err != nil {
		return err
	}
	if err := boot.RunAll(ctx, parts...); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, "\nStopped.")
	return err
}

// up is one run of the command.
type up struct {
	*upCommand
	log       *slog.Logger
	registry  *prometheus.Registry
	store     *store.Store
	listeners []net.Listener
	api       *serve.API
	box       *sandbox.Sandbox
	standsFor []link.Platform // the platforms whose numbers the sandbox makes up
}

// parts opens every listener and puts the parts together, what others lean on first.
func (u *up) parts(ctx context.Context) ([]boot.Service, error) {
	var parts []boot.Service
	if !u.Sources.HasYouTube() || !u.Sources.HasVendor() {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("no free port for the sandbox: %w", err)
		}
		u.listeners = append(u.listeners, l)
		u.useSandbox(boot.URL(l))
		parts = append(parts, boot.Service{Name: "sandbox", Run: func(ctx context.Context) error {
			return boot.Serve(ctx, l, u.box.Handler(), u.log)
		}})
	}
	seeded, err := u.hasDemo(ctx)
	if err != nil {
		return nil, err
	}
	// Made-up numbers stay in the database also when every source is a real one now.
	u.Sandbox = u.Sandbox || len(u.standsFor) > 0 || seeded
	sources, err := u.Sources.RequireSources(u.store, u.log)
	if err != nil {
		return nil, err
	}
	collector, err := collect.NewService(u.store, sources, u.registry, u.log)
	if err != nil {
		return nil, err
	}
	parts = append(parts, collector)
	metrics, wanted, err := u.Part(ctx, u.registry, collect.NewMonitor(u.store, sources, u.registry, u.log), u.log)
	if err != nil {
		return nil, err
	}
	if wanted {
		parts = append(parts, metrics)
	}
	if u.api, err = serve.New(ctx, u.Config, u.store, u.registry, u.log); err != nil {
		return nil, err
	}
	return append(parts, boot.Service{Name: "api", Run: u.api.Run}), nil
}

// closeListeners gives back what a run that failed before it served had opened. Closing again is no error here.
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

// useSandbox points the sources that have no key at the sandbox, and short links as well unless the platforms that have
// them are real.
func (u *up) useSandbox(address string) {
	u.box = newSandbox(0, u.log)
	settings := map[string]string{}
	for _, s := range u.box.Settings(address) {
		name, value, _ := strings.Cut(s, "=")
		settings[name] = value
	}
	if !u.Sources.HasYouTube() {
		u.Sources.YouTubeAPIKey = boot.Secret(settings["REELTALLY_YOUTUBE_API_KEY"])
		u.Sources.YouTubeBaseURL = settings["REELTALLY_YOUTUBE_BASE_URL"]
		u.standsFor = append(u.standsFor, link.YouTube)
	}
	if u.Sources.HasVendor() {
		return
	}
	u.Sources.Vendor = []string{settings["REELTALLY_VENDOR"]}
	u.Sources.VendorBaseURL = []string{settings["REELTALLY_VENDOR_BASE_URL"]}
	u.Sources.VendorKey = []boot.Secret{boot.Secret(settings["REELTALLY_VENDOR_KEY"])}
	// Where a platform has a real source, made-up numbers must not step in for it.
	var stranger []link.Platform
	if !u.Sources.HasTikTok() {
		stranger = append(stranger, link.TikTok)
	}
	if !u.Sources.HasInstagram() {
		stranger = append(stranger, link.Instagram)
	}
	if !u.Sources.HasFacebook() {
		stranger = append(stranger, link.Facebook)
	}
	u.Sources.VendorServes = stranger
	u.standsFor = append(u.standsFor, stranger...)
	if u.ShortLinkBaseURL == "" && len(stranger) == 3 { // a code that is made up is none that the real platform knows
		u.ShortLinkBaseURL = settings["REELTALLY_SHORTLINK_BASE_URL"]
	}
}

// folder is where the demo's token is kept.
func (u *up) folder() string {
	if u.DataDir != "" {
		return u.DataDir
	}
	if path, ok := strings.CutPrefix(u.DatabaseURL.Reveal(), "sqlite:"); ok {
		return filepath.Dir(path)
	}
	return "data"
}

// place says where the data is, without the password of a PostgreSQL.
func (u *up) place() string {
	path, ok := strings.CutPrefix(u.DatabaseURL.Reveal(), "sqlite:")
	if !ok {
		return "in your PostgreSQL; the token is kept in " + filepath.Join(u.folder(), tokenFile)
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return "in " + filepath.Dir(path) + string(os.PathSeparator) + ": delete that folder to begin anew"
}
