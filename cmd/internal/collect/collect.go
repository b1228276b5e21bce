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
	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/thumbnail"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Config has the settings of the sources. A source is used if its credential is set.
type Config struct {
	YouTubeAPIKey  boot.Secret `name:"youtube-api-key" setting:"REELTALLY_YOUTUBE_API_KEY" placeholder:"KEY" help:"Key of the YouTube Data API. Enables YouTube as a source."`
	YouTubeBaseURL string      `name:"youtube-base-url" setting:"REELTALLY_YOUTUBE_BASE_URL" default:"https://youtube.googleapis.com/" placeholder:"URL" help:"Base URL of the YouTube Data API."`
	YouTubeUnits   int64       `name:"youtube-units" setting:"REELTALLY_YOUTUBE_UNITS" default:"10000" placeholder:"N" help:"Daily budget, in units of the key's project, for all calls except videos.batchGetStats; -1 means no limit."`
	YouTubeStats   int64       `name:"youtube-stats-units" setting:"REELTALLY_YOUTUBE_STATS_UNITS" default:"10000" placeholder:"N" help:"Daily budget, in units, for videos.batchGetStats, which YouTube counts separately; -1 means no limit."`

	TikTok `embed:""`

	FetchIntervals map[string]time.Duration `setting:"REELTALLY_FETCH_INTERVALS" mapsep:"," placeholder:"TIER=TIME" help:"Time between two fetches, where it differs from a day, for example limited=7d,premium=6h. From 1h to 7d."`

	InstagramToken     boot.Secret `name:"instagram-access-token" setting:"REELTALLY_INSTAGRAM_ACCESS_TOKEN" placeholder:"TOKEN" help:"Access token of the Instagram Graph API. Enables Instagram as a source."`
	InstagramAppSecret boot.Secret `name:"instagram-app-secret" setting:"REELTALLY_INSTAGRAM_APP_SECRET" placeholder:"SECRET" help:"Secret of the app that issued the token. With it, each call carries a proof that it comes from the app's server."`
	InstagramAccountID string      `name:"instagram-account-id" setting:"REELTALLY_INSTAGRAM_ACCOUNT_ID" placeholder:"ID" help:"Graph API id of your professional account that the token belongs to. Other accounts are looked up through it."`
	InstagramBaseURL   string      `name:"instagram-base-url" setting:"REELTALLY_INSTAGRAM_BASE_URL" default:"https://graph.facebook.com/v25.0/" placeholder:"URL" help:"Base URL of the Graph API for Instagram, ending with the API version."`

	FacebookToken       boot.Secret `name:"facebook-access-token" setting:"REELTALLY_FACEBOOK_ACCESS_TOKEN" placeholder:"TOKEN" help:"Access token of the Facebook Graph API: a page token, or the token of a person or system user with a role on your pages. Enables Facebook as a source."`
	FacebookAppSecret   boot.Secret `name:"facebook-app-secret" setting:"REELTALLY_FACEBOOK_APP_SECRET" placeholder:"SECRET" help:"Secret of the app that issued the token. With it, each call carries a proof that it comes from the app's server."`
	FacebookPageIDs     []string    `name:"facebook-page-id" setting:"REELTALLY_FACEBOOK_PAGE_ID" placeholder:"ID" help:"Ids of your own pages, whose insights the token can read, directly or through page tokens. Leave it empty if you own none of the tracked pages."`
	FacebookReelMetric  string      `name:"facebook-reel-metric" setting:"REELTALLY_FACEBOOK_REEL_METRIC" default:"fb_reels_total_plays" placeholder:"NAME" help:"Facebook Insights metric with the views of reels on your own pages. It is a setting because Facebook renames metrics."`
	FacebookVideoMetric string      `name:"facebook-video-metric" setting:"REELTALLY_FACEBOOK_VIDEO_METRIC" default:"total_video_views" placeholder:"NAME" help:"Facebook Insights metric with the views of videos other than reels on your own pages."`
	FacebookBaseURL     string      `name:"facebook-base-url" setting:"REELTALLY_FACEBOOK_BASE_URL" default:"https://graph.facebook.com/v25.0/" placeholder:"URL" help:"Base URL of the Graph API for Facebook, ending with the API version."`

	Thumbnails       bool   `setting:"REELTALLY_THUMBNAILS" default:"true" negatable:"" help:"Fetch the pictures of videos and store small copies, about 8 KB each."`
	ThumbnailBaseURL string `name:"thumbnail-base-url" setting:"REELTALLY_THUMBNAIL_BASE_URL" placeholder:"URL" help:"URL of a replacement for the hosts of pictures: https://HOST/PATH is requested as URL/HOST/PATH. The sandbox is such a replacement."`

	Vendor        []string      `setting:"REELTALLY_VENDOR" placeholder:"NAME" help:"Vendors to buy metrics from, separated by commas, in the order in which they are asked. A vendor is ${vendors}, or the path of a JSON file that describes it."`
	VendorKey     []boot.Secret `setting:"REELTALLY_VENDOR_KEY" placeholder:"KEY" help:"API key of each vendor, in the order of the vendors."`
	VendorBaseURL []string      `name:"vendor-base-url" setting:"REELTALLY_VENDOR_BASE_URL" placeholder:"URL" help:"Base URL of each vendor, in the order of the vendors. Without it, the URLs of the descriptions are used."`
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

// HasSource returns true if any source is configured.
func (c Config) HasSource() bool {
	return c.HasYouTube() || c.HasDisplayOrResearchAPI() || c.HasInstagram() || c.HasFacebook() || c.HasVendor()
}

// HasYouTube returns true if YouTube is configured.
func (c Config) HasYouTube() bool { return c.YouTubeAPIKey != "" }

// HasInstagram returns true if the Instagram Graph API is configured.
func (c Config) HasInstagram() bool { return c.InstagramToken != "" }

// HasFacebook returns true if the Facebook Graph API is configured.
func (c Config) HasFacebook() bool { return c.FacebookToken != "" }

// HasVendor returns true if a vendor is configured.
func (c Config) HasVendor() bool { return len(c.Vendor) > 0 }

// Check returns an error for the first invalid setting.
func (c Config) Check() error {
	switch {
	case c.YouTubeUnits < -1 || c.YouTubeUnits == 0:
		return boot.InvalidSetting("REELTALLY_YOUTUBE_UNITS", c.YouTubeUnits, allowedLimits)
	case c.YouTubeStats < -1 || c.YouTubeStats == 0:
		return boot.InvalidSetting("REELTALLY_YOUTUBE_STATS_UNITS", c.YouTubeStats, allowedLimits)
	case c.HasInstagram() != (c.InstagramAccountID != ""):
		return usagef("REELTALLY_INSTAGRAM_ACCESS_TOKEN and REELTALLY_INSTAGRAM_ACCOUNT_ID go together: set both or neither. The account id is the id of your professional account, to which the token belongs")
	case !c.HasInstagram() && c.InstagramAppSecret != "":
		return usagef("REELTALLY_INSTAGRAM_APP_SECRET is set but REELTALLY_INSTAGRAM_ACCESS_TOKEN is not: also set an access token that this app issued")
	case !c.HasFacebook() && c.FacebookAppSecret != "":
		return usagef("REELTALLY_FACEBOOK_APP_SECRET is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not: also set an access token that this app issued")
	case !c.HasFacebook() && len(c.FacebookPageIDs) > 0:
		return usagef("REELTALLY_FACEBOOK_PAGE_ID is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not: also set an access token that can read these pages")
	case len(c.Vendor) == 0 && len(c.VendorKey) > 0:
		return usagef("REELTALLY_VENDOR_KEY is set but REELTALLY_VENDOR is not: also set REELTALLY_VENDOR to one of the vendors %s, or to the path of a JSON file that describes the vendor", strings.Join(vendor.BuiltInVendorNames(), ", "))
	case len(c.Vendor) == 0 && len(c.VendorBaseURL) > 0:
		return usagef("REELTALLY_VENDOR_BASE_URL is set but REELTALLY_VENDOR is not: also set REELTALLY_VENDOR to one of the vendors %s, or to the path of a JSON file that describes the vendor", strings.Join(vendor.BuiltInVendorNames(), ", "))
	case len(c.Vendor) != len(c.VendorKey):
		return usagef("the number of vendors in REELTALLY_VENDOR is %d (%s), but the number of keys in REELTALLY_VENDOR_KEY is %d: each vendor needs its own key, in the same order",
			len(c.Vendor), strings.Join(c.Vendor, ", "), len(c.VendorKey))
	case len(c.VendorBaseURL) > 0 && len(c.VendorBaseURL) != len(c.Vendor):
		return usagef("the number of vendors in REELTALLY_VENDOR is %d (%s), but the number of URLs in REELTALLY_VENDOR_BASE_URL is %d: set a URL for each vendor, in the same order, or no URL",
			len(c.Vendor), strings.Join(c.Vendor, ", "), len(c.VendorBaseURL))
	}
	if _, err := schedule.ParseIntervals(c.FetchIntervals); err != nil {
		return usagef("--fetch-intervals (REELTALLY_FETCH_INTERVALS): %w", err)
	}
	return c.TikTok.check()
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
	return len(c.VendorBaseURL) > 0 || c.YouTubeBaseURL != youtube.DefaultBaseURL ||
		c.TikTok.BaseURL != tiktok.DefaultBaseURL || c.TikTok.ResearchBaseURL != tiktok.DefaultBaseURL ||
		c.InstagramBaseURL != graph.DefaultBaseURL || c.FacebookBaseURL != graph.DefaultBaseURL
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
	client := fetch.New(fetch.Options{Logger: logger})
	var sources []source.Source
	if c.HasYouTube() {
		s, err := youtube.New(youtube.Options{BaseURL: c.YouTubeBaseURL, APIKey: c.YouTubeAPIKey.Reveal(), Client: client,
			CommonLimit: c.YouTubeUnits, StatsLimit: c.YouTubeStats, Now: time.Now})
		if err != nil {
			return nil, usagef("REELTALLY_YOUTUBE_BASE_URL is invalid: %w", err)
		}
		sources = append(sources, s)
	}
	// TikTok replaces a refresh token at each use, so the TikTok sources save new tokens in the store.
	display, research, err := c.TikTok.sources(st, client, logger)
	if err != nil {
		return nil, err
	}
	sources = append(sources, display...)
	if c.HasInstagram() {
		s, err := instagram.New(instagram.Options{BaseURL: c.InstagramBaseURL, Token: c.InstagramToken.Reveal(), AppSecret: c.InstagramAppSecret.Reveal(), AccountID: c.InstagramAccountID,
			Client: client, Now: time.Now})
		if err != nil {
			return nil, usagef("REELTALLY_INSTAGRAM_BASE_URL or REELTALLY_INSTAGRAM_ACCOUNT_ID is invalid: %w", err)
		}
		sources = append(sources, s)
	}
	if c.HasFacebook() {
		s, err := facebook.New(facebook.Options{BaseURL: c.FacebookBaseURL, Token: c.FacebookToken.Reveal(), AppSecret: c.FacebookAppSecret.Reveal(), PageIDs: c.FacebookPageIDs,
			ReelMetric: c.FacebookReelMetric, VideoMetric: c.FacebookVideoMetric, Client: client, Now: time.Now, Logger: logger})
		if err != nil {
			return nil, usagef("REELTALLY_FACEBOOK_BASE_URL, REELTALLY_FACEBOOK_PAGE_ID, REELTALLY_FACEBOOK_REEL_METRIC or REELTALLY_FACEBOOK_VIDEO_METRIC is invalid: %w", err)
		}
		sources = append(sources, s)
	}
	for i, name := range c.Vendor {
		description, err := vendor.Load(name)
		if err != nil {
			return nil, usagef("REELTALLY_VENDOR is invalid: %w", err)
		}
		o := vendor.Options{Key: c.VendorKey[i].Reveal(), Client: client, Now: time.Now}
		if len(c.VendorBaseURL) > 0 {
			o.BaseURL = c.VendorBaseURL[i]
		}
		s, err := vendor.New(description, o)
		if err != nil {
			return nil, usagef("REELTALLY_VENDOR_BASE_URL or REELTALLY_VENDOR_KEY is invalid: %w", err)
		}
		sources = append(sources, s)
	}
	sources = append(sources, research...) // last, because the numbers of the Research API are days old
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
		return boot.Service{}, err
	}
	panics := prometheus.NewCounter(prometheus.CounterOpts{Name: "reeltally_collector_panics_total", Help: "Panics that were recovered while collecting. Each is logged with its stack."})
	registry.MustRegister(panics)
	options := collector.Options{Store: st, Sources: sources, Now: time.Now, Logger: logger, Traces: traces.Provider, Panicked: panics.Inc, Intervals: intervals}
	if c.Thumbnails {
		if options.Thumbnails, err = thumbnail.New(thumbnail.Options{BaseURL: c.ThumbnailBaseURL}); err != nil {
			return boot.Service{}, boot.InvalidSetting("REELTALLY_THUMBNAIL_BASE_URL", c.ThumbnailBaseURL, "an http or https URL")
		}
	}
	service, err := collector.New(options)
	if err != nil {
		return boot.Service{}, err
	}
	return boot.Service{Name: "collector", Run: service.Run}, nil
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
