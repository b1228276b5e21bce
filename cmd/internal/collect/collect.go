// Package collect runs the collector from its settings: as a program of its own, and as a part of `reeltally up`.
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
	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// Config says which sources there are. Each needs its credential; without one it does not take part.
type Config struct {
	YouTubeAPIKey  boot.Secret `name:"youtube-api-key" setting:"REELTALLY_YOUTUBE_API_KEY" placeholder:"KEY" help:"A key of the YouTube Data API: makes YouTube a source."`
	YouTubeBaseURL string      `name:"youtube-base-url" setting:"REELTALLY_YOUTUBE_BASE_URL" default:"https://youtube.googleapis.com/" placeholder:"URL" help:"Where the YouTube Data API is served."`
	YouTubeUnits   int64       `name:"youtube-units" setting:"REELTALLY_YOUTUBE_UNITS" default:"10000" placeholder:"N" help:"Units a day that the key's project may spend, of all calls but videos.batchGetStats; -1 when there is no limit."`
	YouTubeStats   int64       `name:"youtube-stats-units" setting:"REELTALLY_YOUTUBE_STATS_UNITS" default:"10000" placeholder:"N" help:"Units a day for videos.batchGetStats, which YouTube counts apart; -1 when there is no limit."`

	TikTok `embed:""`

	InstagramToken     boot.Secret `name:"instagram-access-token" setting:"REELTALLY_INSTAGRAM_ACCESS_TOKEN" placeholder:"TOKEN" help:"An access token of the Instagram Graph API: makes Instagram a source."`
	InstagramAppSecret boot.Secret `name:"instagram-app-secret" setting:"REELTALLY_INSTAGRAM_APP_SECRET" placeholder:"SECRET" help:"The secret of the app that the token is of: each call then proves that it comes from the app's own server."`
	InstagramAccountID string      `name:"instagram-account-id" setting:"REELTALLY_INSTAGRAM_ACCOUNT_ID" placeholder:"ID" help:"The Graph API's id of the own professional account that the token is for; others are discovered through it."`
	InstagramBaseURL   string      `name:"instagram-base-url" setting:"REELTALLY_INSTAGRAM_BASE_URL" default:"https://graph.facebook.com/v25.0/" placeholder:"URL" help:"Where the Graph API is served for Instagram, its version at the end."`

	FacebookToken       boot.Secret `name:"facebook-access-token" setting:"REELTALLY_FACEBOOK_ACCESS_TOKEN" placeholder:"TOKEN" help:"An access token of Facebook's Graph API, of a page, or of a person or system user who has a role on the own pages: makes Facebook a source."`
	FacebookAppSecret   boot.Secret `name:"facebook-app-secret" setting:"REELTALLY_FACEBOOK_APP_SECRET" placeholder:"SECRET" help:"The secret of the app that the token is of: each call then proves that it comes from the app's own server."`
	FacebookPageIDs     []string    `name:"facebook-page-id" setting:"REELTALLY_FACEBOOK_PAGE_ID" placeholder:"ID" help:"The ids of the own pages, whose insights the token may read, by itself or by the pages' tokens that it gives; none when all pages are others'."`
	FacebookReelMetric  string      `name:"facebook-reel-metric" setting:"REELTALLY_FACEBOOK_REEL_METRIC" default:"fb_reels_total_plays" placeholder:"NAME" help:"The metric of insights that counts the views of an own reel: Facebook renames such."`
	FacebookVideoMetric string      `name:"facebook-video-metric" setting:"REELTALLY_FACEBOOK_VIDEO_METRIC" default:"total_video_views" placeholder:"NAME" help:"The metric of insights that counts the views of another own video."`
	FacebookBaseURL     string      `name:"facebook-base-url" setting:"REELTALLY_FACEBOOK_BASE_URL" default:"https://graph.facebook.com/v25.0/" placeholder:"URL" help:"Where the Graph API is served for Facebook, its version at the end."`

	Vendor        []string      `setting:"REELTALLY_VENDOR" placeholder:"NAME" help:"Vendors that are bought from, in the order in which they are asked: ${vendors}, or the path of a JSON description."`
	VendorKey     []boot.Secret `setting:"REELTALLY_VENDOR_KEY" placeholder:"KEY" help:"The key of each vendor, in the same order."`
	VendorBaseURL []string      `name:"vendor-base-url" setting:"REELTALLY_VENDOR_BASE_URL" placeholder:"URL" help:"Where each vendor is served, in the same order; without it, where its description says."`
	// VendorServes are the platforms for which vendors are asked; nil means all that they sell. It is no setting.
	VendorServes []link.Platform `kong:"-"`
}

// StoreTimeout bounds each transaction of a collector. A database that does not answer then delays the collector but does not stop it.
const StoreTimeout = time.Minute

// Vars are what the help of Config's flags refers to.
func Vars() kong.Vars { return kong.Vars{"vendors": strings.Join(vendor.Shipped(), ", ")} }

func usagef(format string, args ...any) error {
	return boot.UsageError{Err: fmt.Errorf(format, args...)} //nolint:err113 // for the operator, not for programs
}

// HasYouTube says whether YouTube is a source.
func (c Config) HasYouTube() bool { return c.YouTubeAPIKey != "" }

// HasInstagram says whether Instagram's Graph API is a source.
func (c Config) HasInstagram() bool { return c.InstagramToken != "" }

// HasFacebook says whether Facebook's Graph API is a source.
func (c Config) HasFacebook() bool { return c.FacebookToken != "" }

// HasVendor says whether a vendor is a source.
func (c Config) HasVendor() bool { return len(c.Vendor) > 0 }

// Check returns the first setting that cannot be used.
func (c Config) Check() error {
	switch {
	case c.YouTubeUnits < -1 || c.YouTubeUnits == 0:
		return boot.Bad("youtube-units", "REELTALLY_YOUTUBE_UNITS", c.YouTubeUnits, "1 or more, or -1 when there is no limit")
	case c.YouTubeStats < -1 || c.YouTubeStats == 0:
		return boot.Bad("youtube-stats-units", "REELTALLY_YOUTUBE_STATS_UNITS", c.YouTubeStats, "1 or more, or -1 when there is no limit")
	case c.HasInstagram() != (c.InstagramAccountID != ""):
		return usagef("REELTALLY_INSTAGRAM_ACCESS_TOKEN and REELTALLY_INSTAGRAM_ACCOUNT_ID go together: set both, the id of the own professional account that the token is for, or none")
	case !c.HasInstagram() && c.InstagramAppSecret != "":
		return usagef("REELTALLY_INSTAGRAM_APP_SECRET is set but REELTALLY_INSTAGRAM_ACCESS_TOKEN is not: set the token of the app whose secret it is")
	case !c.HasFacebook() && c.FacebookAppSecret != "":
		return usagef("REELTALLY_FACEBOOK_APP_SECRET is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not: set the token of the app whose secret it is")
	case !c.HasFacebook() && len(c.FacebookPageIDs) > 0:
		return usagef("REELTALLY_FACEBOOK_PAGE_ID is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not: set the token that may read these pages")
	case len(c.Vendor) == 0 && len(c.VendorKey) > 0:
		return usagef("REELTALLY_VENDOR_KEY is set but REELTALLY_VENDOR is not: name the vendor whose key it is, one of %s, or the path of a JSON description",
			strings.Join(vendor.Shipped(), ", "))
	case len(c.Vendor) == 0 && len(c.VendorBaseURL) > 0:
		return usagef("REELTALLY_VENDOR_BASE_URL is set but REELTALLY_VENDOR is not: name the vendor that is served there, one of %s, or the path of a JSON description",
			strings.Join(vendor.Shipped(), ", "))
	case len(c.Vendor) != len(c.VendorKey):
		return usagef("REELTALLY_VENDOR names %d (%s) but REELTALLY_VENDOR_KEY has %d: each vendor needs its own key, in the same order",
			len(c.Vendor), strings.Join(c.Vendor, ", "), len(c.VendorKey))
	case len(c.VendorBaseURL) > 0 && len(c.VendorBaseURL) != len(c.Vendor):
		return usagef("REELTALLY_VENDOR names %d (%s) but REELTALLY_VENDOR_BASE_URL has %d: give one for each, in the same order, or none",
			len(c.Vendor), strings.Join(c.Vendor, ", "), len(c.VendorBaseURL))
	}
	return c.TikTok.check()
}

// Sources makes the sources, as Configured does. None configured is an error that says how to configure one.
func (c Config) Sources(st *store.Store, logger *slog.Logger) ([]collector.Source, error) {
	sources, err := c.Configured(st, logger)
	if err == nil && len(sources) == 0 {
		return nil, usagef("no source is configured, so that nothing could be collected: set REELTALLY_YOUTUBE_API_KEY, REELTALLY_INSTAGRAM_ACCESS_TOKEN, REELTALLY_FACEBOOK_ACCESS_TOKEN, REELTALLY_TIKTOK_CLIENT_KEY with its secret and a refresh token, or REELTALLY_VENDOR (%s, or the path of a JSON description) with REELTALLY_VENDOR_KEY; or set what `reeltally sandbox` prints, to try it with made-up numbers",
			strings.Join(vendor.Shipped(), ", "))
	}
	return sources, err
}

// Configured makes the sources, in the order in which they are asked: the platforms' own before vendors, and last the one whose
// numbers lag behind. The store keeps the tokens of sources whose tokens change with their use.
func (c Config) Configured(st *store.Store, logger *slog.Logger) ([]collector.Source, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	client := fetch.New(fetch.Options{Logger: logger})
	var sources []collector.Source
	if c.HasYouTube() {
		s, err := youtube.New(youtube.Options{BaseURL: c.YouTubeBaseURL, APIKey: c.YouTubeAPIKey.Reveal(), Client: client,
			CommonLimit: c.YouTubeUnits, StatsLimit: c.YouTubeStats, Now: time.Now})
		if err != nil {
			return nil, usagef("REELTALLY_YOUTUBE_BASE_URL: %w", err)
		}
		sources = append(sources, s)
	}
	display, research, err := c.TikTok.sources(st, client, logger)
	if err != nil {
		return nil, err
	}
	sources = append(sources, display...)
	if c.HasInstagram() {
		s, err := instagram.New(instagram.Options{BaseURL: c.InstagramBaseURL, Token: c.InstagramToken.Reveal(), AppSecret: c.InstagramAppSecret.Reveal(), AccountID: c.InstagramAccountID,
			Client: client, Now: time.Now})
		if err != nil {
			return nil, usagef("REELTALLY_INSTAGRAM_BASE_URL, REELTALLY_INSTAGRAM_ACCOUNT_ID: %w", err)
		}
		sources = append(sources, s)
	}
	if c.HasFacebook() {
		s, err := facebook.New(facebook.Options{BaseURL: c.FacebookBaseURL, Token: c.FacebookToken.Reveal(), AppSecret: c.FacebookAppSecret.Reveal(), PageIDs: c.FacebookPageIDs,
			ReelMetric: c.FacebookReelMetric, VideoMetric: c.FacebookVideoMetric, Client: client, Now: time.Now, Logger: logger})
		if err != nil {
			return nil, usagef("REELTALLY_FACEBOOK_BASE_URL, REELTALLY_FACEBOOK_PAGE_ID, REELTALLY_FACEBOOK_REEL_METRIC, REELTALLY_FACEBOOK_VIDEO_METRIC: %w", err)
		}
		sources = append(sources, s)
	}
	for i, name := range c.Vendor {
		description, err := vendor.Load(name)
		if err != nil {
			return nil, usagef("REELTALLY_VENDOR: %w", err)
		}
		if c.VendorServes != nil {
			description.Calls = slices.DeleteFunc(description.Calls, func(call vendor.Call) bool { return !slices.Contains(c.VendorServes, call.Platform) })
		}
		o := vendor.Options{Key: c.VendorKey[i].Reveal(), Client: client, Now: time.Now}
		if len(c.VendorBaseURL) > 0 {
			o.BaseURL = c.VendorBaseURL[i]
		}
		s, err := vendor.New(description, o)
		if err != nil {
			return nil, usagef("REELTALLY_VENDOR_BASE_URL, REELTALLY_VENDOR_KEY: %w", err)
		}
		sources = append(sources, s)
	}
	sources = append(sources, research...)
	return sources, nil
}

// Part makes the collector a part of a program: it stops when all in its hands is written or given back.
func Part(st *store.Store, sources []collector.Source, registry *prometheus.Registry, logger *slog.Logger) (boot.Part, error) {
	panics := prometheus.NewCounter(prometheus.CounterOpts{Name: panicsName, Help: "Panics that were recovered while collecting. Each is logged with its stack."})
	registry.MustRegister(panics)
	c, err := collector.New(collector.Options{Store: st, Sources: Measured(registry, sources), Now: time.Now, Logger: logger, Panicked: panics.Inc})
	if err != nil {
		return boot.Part{}, err
	}
	return boot.Part{Name: "collector", Run: c.Run}, nil
}

// Command is the program cmd/collector.
func Command(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.UntilStopped(ctx, err) }()
	var settings struct {
		boot.Logging
		boot.Database
		boot.Metrics
		Config
	}
	if _, err := boot.Parse(p, &settings, Vars(), boot.Describe("ReelTally's collector: it asks the sources for the numbers of what is tracked. Several may share one PostgreSQL.")); err != nil {
		return err
	}
	logger := settings.Logger(p.Stderr)
	if err := settings.Check(); err != nil {
		return err
	}
	settings.StoreTimeout = StoreTimeout
	st, err := settings.Open(ctx, logger, boot.MigrateOlder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	sources, err := settings.Sources(st, logger)
	if err != nil {
		return err
	}
	registry := boot.NewRegistry()
	var parts []boot.Part
	metrics, wanted, err := settings.Part(ctx, registry, NewMonitor(st, sources, registry, logger), logger)
	if err != nil {
		return err
	}
	if wanted {
		parts = append(parts, metrics)
	}
	collecting, err := Part(st, sources, registry, logger)
	if err != nil {
		return err
	}
	return boot.Together(ctx, append(parts, collecting)...)
}
