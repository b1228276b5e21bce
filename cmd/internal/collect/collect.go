// Package collect creates the collector and its sources from settings, and runs the collector. The collector itself is in package collector.
//
// Command is the main function of cmd/collector. `reeltally up` uses Config, CountCalls and NewService to run the collector and the API in
// one process.
package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/thumbnail"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Config has the settings of the sources. A source is used if its credential is set.
type Config struct {
	YouTube        `embed:""`
	TikTok         `embed:""`
	TikTokResearch `embed:""`

	FetchIntervals map[string]time.Duration `setting:"REELTALLY_FETCH_INTERVALS" mapsep:"," placeholder:"TIER=TIME" help:"Time between two fetches, where it differs from a day, for example limited=7d,premium=6h. From 1h to 7d."`

	Instagram `embed:""`
	Facebook  `embed:""`

	Thumbnails       bool   `setting:"REELTALLY_THUMBNAILS" default:"true" negatable:"" help:"Fetch the pictures of videos and store small copies, about 8 KB each."`
	ThumbnailBaseURL string `name:"thumbnail-base-url" setting:"REELTALLY_THUMBNAIL_BASE_URL" placeholder:"URL" help:"URL of a replacement for the hosts of pictures: https://HOST/PATH is requested as URL/HOST/PATH. The sandbox is such a replacement."`

	Vendors `embed:""`
}

// StoreTimeout is the timeout of a collector's database transactions. Without it, a database that does not respond would block the
// collector forever.
const StoreTimeout = time.Minute

// Vars returns the values of the placeholders in the help texts of Config, such as ${vendors}. A program that parses a Config must pass
// Vars to boot.Parse as an option.
func Vars() kong.Vars { return kong.Vars{"vendors": strings.Join(vendor.BuiltInVendorNames(), ", ")} }

// allowedLimits describes, for error messages, the valid values of the settings that limit how often a source is asked.
const allowedLimits = "1 or more, or -1 for no limit"

// usagef returns a boot.UsageError with a formatted message.
func usagef(format string, args ...any) error {
	return boot.UsageError{Err: fmt.Errorf(format, args...)} //nolint:err113 // no caller checks for this error
}

// platform has the settings of one platform or API, from which its sources are created.
type platform interface {
	// enabled returns true if the credential is set.
	enabled() bool
	// hasCustomURL returns true if a base URL is not the default.
	hasCustomURL() bool
	// check returns an error for the first invalid setting.
	check() error
	// sources creates the sources. It is called only if enabled returns true and check returns nil.
	sources(e environment) ([]source.Source, error)
}

// environment has what sources need in addition to their settings.
type environment struct {
	store  *store.Store
	client *fetch.Client
	logger *slog.Logger
}

// platforms returns the settings of all sources, in the order in which the collector asks the sources. TikTok's Research API is the last,
// because its numbers are days old.
func (c Config) platforms() []platform {
	return []platform{c.YouTube, c.TikTok, c.Instagram, c.Facebook, c.Vendors, c.TikTokResearch}
}

// HasSource returns true if any source is configured.
func (c Config) HasSource() bool { return slices.ContainsFunc(c.platforms(), platform.enabled) }

// Check returns an error for the first invalid setting.
func (c Config) Check() error {
	for _, p := range c.platforms() {
		if err := p.check(); err != nil {
			return err
		}
	}
	if _, err := schedule.ParseIntervals(c.FetchIntervals); err != nil {
		return usagef("--fetch-intervals (REELTALLY_FETCH_INTERVALS): %w", err)
	}
	return nil
}

// checkDataKind returns a *store.DataKindError if sources would mix real and made-up numbers in the database. A
// custom URL may belong to a sandbox: only the first response shows the kind of its numbers.
func (c Config) checkDataKind(ctx context.Context, st *store.Store) error {
	have, err := st.DataKind(ctx)
	switch {
	case err != nil:
		return err
	case have == store.RealData && slices.Contains(c.Vendor, store.SandboxSource): // the sandbox makes numbers up
		return &store.DataKindError{Have: have, New: store.MadeUpData}
	case have == store.MadeUpData && c.HasSource() && !c.hasCustomURL(): // sources with their default URLs have real numbers
		return &store.DataKindError{Have: have, New: store.RealData}
	}
	return nil
}

// hasCustomURL returns true if the base URL of at least one source is not the default.
func (c Config) hasCustomURL() bool {
	return slices.ContainsFunc(c.platforms(), platform.hasCustomURL)
}

// RequireSources returns the configured sources, or an error if there are none. The error is a
// *store.DataKindError if their numbers are real and the stored numbers are made up, or vice versa.
func (c Config) RequireSources(ctx context.Context, st *store.Store, logger *slog.Logger) ([]source.Source, error) {
	if err := c.checkDataKind(ctx, st); err != nil {
		return nil, err
	}
	sources, err := c.ConfiguredSources(st, logger)
	if err == nil && len(sources) == 0 {
		return nil, usagef("no source is configured: set REELTALLY_YOUTUBE_API_KEY, REELTALLY_INSTAGRAM_ACCESS_TOKEN, REELTALLY_FACEBOOK_ACCESS_TOKEN, REELTALLY_TIKTOK_CLIENT_KEY with its client secret and a refresh token, or REELTALLY_VENDOR (%s, or the path of a JSON description) with REELTALLY_VENDOR_KEY; or, to try ReelTally with made-up numbers, the settings that `reeltally sandbox` prints",
			strings.Join(vendor.BuiltInVendorNames(), ", "))
	}
	return sources, err
}

// ConfiguredSources returns a source for each configured credential, in the order in which the
// collector asks them.
func (c Config) ConfiguredSources(st *store.Store, logger *slog.Logger) ([]source.Source, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	e := environment{store: st, client: fetch.New(fetch.Options{Logger: logger}), logger: logger}
	var sources []source.Source
	for _, p := range c.platforms() {
		if !p.enabled() {
			continue
		}
		more, err := p.sources(e)
		if err != nil {
			return nil, err
		}
		sources = append(sources, more...)
	}
	return sources, nil
}

// Describe returns a function that describes the sources at a time, for package monitor.
func Describe(sources []source.Source) func(time.Time) []queue.Source {
	return func(at time.Time) []queue.Source { return source.Describe(sources, at) }
}

// NewService returns the collector as a service. When the service stops, it first stores the results of its last fetches, and returns its
// claimed targets to the queue.
func (c Config) NewService(st *store.Store, sources []source.Source, registry *prometheus.Registry, traces *boot.Traces, logger *slog.Logger) (boot.Service, error) {
	intervals, err := schedule.ParseIntervals(c.FetchIntervals)
	if err != nil {
		return nil, err
	}
	panics := prometheus.NewCounter(prometheus.CounterOpts{Name: "reeltally_collector_panics_total", Help: "Panics that were recovered while collecting. Each is logged with its stack."})
	registry.MustRegister(panics)
	options := collector.Options{Store: st, Sources: sources, Now: time.Now, Logger: logger, Traces: traces.Provider, Panicked: panics.Inc, Intervals: intervals}
	if c.Thumbnails {
		if options.Thumbnails, err = thumbnail.New(thumbnail.Options{BaseURL: c.ThumbnailBaseURL}); err != nil {
			return nil, boot.InvalidSetting("REELTALLY_THUMBNAIL_BASE_URL", c.ThumbnailBaseURL, "an http or https URL")
		}
	}
	service, err := collector.New(options)
	if err != nil {
		return nil, err
	}
	return service.Run, nil
}

// Command is the main function of cmd/collector. It runs a collector until ctx ends.
func Command(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.IgnoreShutdown(ctx, err) }()
	var settings struct {
		boot.Logging
		boot.Database
		boot.Metrics
		Config
	}
	if _, err := boot.Parse(p, &settings, Vars(), boot.Description("ReelTally's collector. It fetches the numbers of the tracked videos and accounts from the sources. Several collectors can share one PostgreSQL database.")); err != nil {
		return err
	}
	if err := errors.Join(settings.Check(), settings.CheckAddress("")); err != nil {
		return err
	}
	traces, logger, err := boot.StartTraces(ctx, p, settings.Logger(p.Stderr))
	if err != nil {
		return err
	}
	defer traces.Stop(ctx)
	settings.StoreTimeout, settings.Traced = StoreTimeout, traces.Enabled()
	st, err := settings.Open(ctx, logger, boot.MigrateSQLite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	sources, err := settings.RequireSources(ctx, st, logger)
	if err != nil {
		return err
	}
	registry := boot.NewRegistry()
	sources, results := CountCalls(registry, sources)
	services, err := settings.Services(ctx, registry, monitor.New(st, Describe(sources), results, registry, logger), logger)
	if err != nil {
		return err
	}
	collecting, err := settings.NewService(st, sources, registry, traces, logger)
	if err != nil {
		return err
	}
	return boot.RunAll(ctx, append(services, collecting)...)
}
