// Package serve runs the HTTP API from its settings: as a program of its own, and as a part of `reeltally up`.
package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
)

// Config is what the API needs to know beside the database.
type Config struct {
	Listen           string      `setting:"REELTALLY_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"HOST:PORT of the API; port 0 takes a free one."`
	AppURL           string      `name:"app-url" setting:"REELTALLY_APP_URL" placeholder:"URL" help:"Where people reach the dashboard: it begins every directUrl. Without it, http:// and the address listened at, so http://127.0.0.1:8080 by default."`
	TrustedProxies   []string    `setting:"REELTALLY_TRUSTED_PROXIES" placeholder:"NETWORK" help:"Networks (10.0.0.0/8,::1/128) of proxies whose X-Forwarded-For is believed; nobody's without."`
	PreviewAllowance int         `setting:"REELTALLY_PREVIEW_ALLOWANCE" default:"5" placeholder:"N" help:"How many items of a request, and videos of a tracked account, are fetched for an organisation without a subscription, 1 or more."`
	Sandbox          bool        `setting:"REELTALLY_SANDBOX" help:"The numbers in this database are made up by the sandbox: every answer says so."`
	RedisURL         boot.Secret `name:"redis-url" setting:"REELTALLY_REDIS_URL" placeholder:"URL" help:"A Redis or Valkey in which several servers count rate limits together: redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss:// for TLS, or unix://PATH. Without it, or while it is away, each server counts by itself."`
	RateLimits       string      `setting:"REELTALLY_RATE_LIMITS" default:"on" enum:"on,off" placeholder:"STATE" help:"on, or off for measurements alone: nobody is ever limited."`
	ShortLinkBaseURL string      `name:"shortlink-base-url" setting:"REELTALLY_SHORTLINK_BASE_URL" placeholder:"URL" help:"Where something stands in for the hosts of short links: https://HOST/PATH is asked for at URL/HOST/PATH. Without it the hosts themselves are asked."`

	RequestTimeout time.Duration `setting:"REELTALLY_REQUEST_TIMEOUT" default:"30s" placeholder:"TIME" help:"How long a request may take before it is answered with 503, from 1s to 50s."`
}

// maxRequestTimeout must be less than the time after which boot.Serve closes a connection whose request has not been read.
const maxRequestTimeout = 50 * time.Second

// Check returns the first setting that cannot be used.
func (c Config) Check() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return boot.Bad("listen", "REELTALLY_LISTEN", c.Listen, "HOST:PORT, for example 127.0.0.1:8080")
	}
	if c.AppURL != "" && !webAddress(c.AppURL) {
		return boot.Bad("app-url", "REELTALLY_APP_URL", c.AppURL, "an http or https address, for example https://reeltally.example.com")
	}
	if c.ShortLinkBaseURL != "" && !webAddress(c.ShortLinkBaseURL) {
		return boot.Bad("shortlink-base-url", "REELTALLY_SHORTLINK_BASE_URL", c.ShortLinkBaseURL, "an http or https address")
	}
	if c.PreviewAllowance < 1 {
		return boot.Bad("preview-allowance", "REELTALLY_PREVIEW_ALLOWANCE", c.PreviewAllowance, "1 or more")
	}
	if c.RequestTimeout < time.Second || c.RequestTimeout > maxRequestTimeout {
		return boot.Bad("request-timeout", "REELTALLY_REQUEST_TIMEOUT", c.RequestTimeout, "from 1s to 50s")
	}
	if c.RedisURL != "" {
		if _, err := c.redis(); err != nil {
			return err
		}
	}
	_, err := c.proxies()
	return err
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}

func (c Config) proxies() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range c.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, boot.Bad("trusted-proxies", "REELTALLY_TRUSTED_PROXIES", text, "a network such as 10.0.0.0/8, or an address")
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// redis returns where Redis is. What the library says of a wrong address is kept to ourselves: it quotes passwords.
func (c Config) redis() (*redis.Options, error) {
	o, err := redis.ParseURL(c.RedisURL.Reveal())
	if err != nil {
		return nil, boot.Bad("redis-url", "REELTALLY_REDIS_URL", c.RedisURL,
			"redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss:// for TLS, or unix://PATH, with reserved characters of the password written as %40")
	}
	return o, nil
}

// rateStore returns where calls are counted, nil for the memory of this process, and what closes it.
func (c Config) rateStore(ctx context.Context, logger *slog.Logger) (rates server.RateStore, closeRates func() error, err error) {
	nothing := func() error { return nil }
	switch {
	case c.RateLimits == "off":
		logger.WarnContext(ctx, "rate limits are off")
		return server.Unlimited{}, nothing, nil
	case c.RedisURL == "":
		return nil, nothing, nil
	}
	o, err := c.redis()
	if err != nil {
		return nil, nil, err
	}
	shared := server.NewRedisRateStore(ctx, o, time.Now, logger)
	return shared, shared.Close, nil
}

// API is the API, listening but not answering yet.
type API struct {
	// Address is where people reach it.
	Address    string
	listener   net.Listener
	server     *server.Server
	closeRates func() error
	registry   *prometheus.Registry
	logger     *slog.Logger
}

// New opens the listener and builds the server on a store with this program's schema. Close what is not Run.
func New(ctx context.Context, c Config, st *store.Store, registry *prometheus.Registry, logger *slog.Logger) (*API, error) {
	proxies, err := c.proxies()
	if err != nil {
		return nil, err
	}
	resolver, err := shortlink.New(shortlink.Options{BaseURL: c.ShortLinkBaseURL, Logger: logger, Now: time.Now})
	if err != nil {
		return nil, err
	}
	cursorKey, err := st.Secret(ctx, "cursor")
	if err != nil {
		return nil, err
	}
	listener, err := boot.Listen(ctx, "listen", "REELTALLY_LISTEN", c.Listen)
	if err != nil {
		return nil, err
	}
	a := &API{Address: boot.URL(listener), listener: listener, registry: registry, logger: logger}
	if c.AppURL == "" {
		c.AppURL = a.Address
	}
	rates, closeRates, err := c.rateStore(ctx, logger)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	a.closeRates = closeRates
	a.server, err = server.New(server.Options{
		RateStore: rates, Store: st, Resolver: resolver, AppURL: c.AppURL, CursorKey: cursorKey, Now: time.Now, Logger: logger,
		TrustedProxies: proxies, Sandbox: c.Sandbox, PreviewAllowance: c.PreviewAllowance,
		RequestTimeout: c.RequestTimeout,
	})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Close gives the listener and the connections to Redis back.
func (a *API) Close() error { return errors.Join(a.listener.Close(), a.closeRates()) }

// Run answers requests until ctx ends and all of them are answered.
func (a *API) Run(ctx context.Context) error {
	a.logger.InfoContext(ctx, "serving", "address", a.Address)
	err := boot.Serve(ctx, a.listener, boot.Measured(a.registry, a.server.Handler()), a.logger)
	a.server.Close()
	a.logger.InfoContext(ctx, "stopped serving")
	return errors.Join(err, a.closeRates())
}

// Command is the program cmd/server.
func Command(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.UntilStopped(ctx, err) }()
	var settings struct {
		boot.Logging
		boot.Database
		boot.Metrics
		Config
	}
	if _, err := boot.Parse(p, &settings, boot.Describe("ReelTally's API. It answers from the database alone; a collector fills in the numbers.")); err != nil {
		return err
	}
	if err := settings.Check(); err != nil {
		return err
	}
	logger := settings.Logger(p.Stderr)
	settings.StoreTimeout = settings.RequestTimeout
	st, err := settings.Open(ctx, logger, boot.MigrateOlder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	registry := boot.NewRegistry()
	api, err := New(ctx, settings.Config, st, registry, logger)
	if err != nil {
		return err
	}
	parts := []boot.Part{}
	metrics, wanted, err := settings.Part(ctx, registry, collect.NewMonitor(st, nil, registry, logger), logger)
	switch {
	case err != nil:
		return errors.Join(err, api.Close())
	case wanted:
		parts = append(parts, metrics)
	}
	return boot.Together(ctx, append(parts, boot.Part{Name: "api", Run: api.Run})...)
}
