// Package serve creates the HTTP API from settings and runs it. The API itself is in package server. Command is the main function of
// cmd/server. `reeltally up` uses Config, New and API.Run to run the API and a collector in one process.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
)

// Config has the settings of the API, except the settings of the database.
type Config struct {
	Listen           string           `setting:"REELTALLY_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"HOST:PORT at which the API listens. Port 0 means any free port."`
	AppURL           string           `name:"app-url" setting:"REELTALLY_APP_URL" placeholder:"URL" help:"Public URL of the dashboard. Every directUrl begins with it. Without it, http:// and the address of --listen, by default http://127.0.0.1:8080."`
	TrustedProxies   []string         `setting:"REELTALLY_TRUSTED_PROXIES" placeholder:"NETWORK" help:"Networks of the proxies whose X-Forwarded-For header is trusted, for example 10.0.0.0/8,::1/128. Without it, the header is ignored."`
	PreviewAllowance int              `setting:"REELTALLY_PREVIEW_ALLOWANCE" default:"5" placeholder:"N" help:"How many items of a request, and videos of a tracked account, are fetched for an organisation without a subscription, 1 or more."`
	Sandbox          bool             `setting:"REELTALLY_SANDBOX" help:"Mark every response as made-up data before the first number is stored. Later, the numbers in the database decide."`
	DatabaseReadURL  boot.Secret      `name:"database-read-url" setting:"REELTALLY_DATABASE_READ_URL" placeholder:"URL" help:"A streaming replica of the PostgreSQL database, from which lists and histories are read: postgres://USER:PASSWORD@HOST/DATABASE. Reads that the replica cannot answer with current data go to the database."`
	RedisURL         boot.Secret      `name:"redis-url" setting:"REELTALLY_REDIS_URL" placeholder:"URL" help:"A Redis or Valkey server that holds the rate limits of several servers: redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss:// for TLS, or unix://PATH. Without it, or while it is unreachable, each server counts on its own."`
	RateLimits       string           `setting:"REELTALLY_RATE_LIMITS" default:"on" enum:"on,off" placeholder:"STATE" help:"on or off. Use off only for load tests: it lifts all rate limits."`
	TierLimits       map[string]int64 `setting:"REELTALLY_TIER_LIMITS" mapsep:"," placeholder:"TIER.GROUP=N" help:"Requests a minute to each operation, where they differ from the defaults, for example basic.read=20,premium.write=200. The tiers are limited, basic and premium; the groups are authenticate, read and write."`
	ShortLinkBaseURL string           `name:"shortlink-base-url" setting:"REELTALLY_SHORTLINK_BASE_URL" placeholder:"URL" help:"URL of a replacement for the hosts of short links: https://HOST/PATH is requested as URL/HOST/PATH. Without it, the hosts themselves are used."`

	ShutdownDelay time.Duration `setting:"REELTALLY_SHUTDOWN_DELAY" default:"0s" placeholder:"TIME" help:"How long the server still answers requests after it was told to end, up to 60s. /readyz answers 503 in this time, so that a proxy sends new requests to other servers."`

	WebhookKey          boot.Secret `name:"webhook-key" setting:"REELTALLY_WEBHOOK_KEY" placeholder:"KEY" help:"Encrypts the secrets of webhooks in the database; at least 32 characters. Without it, a key that the database contains is used. All servers need the same key."`
	WebhookAllowPrivate bool        `name:"webhook-allow-private" setting:"REELTALLY_WEBHOOK_ALLOW_PRIVATE" help:"Allow webhooks with http URLs, and with private and loopback addresses. Use it only if every organisation may reach the network of the server."`

	RequestTimeout time.Duration `setting:"REELTALLY_REQUEST_TIMEOUT" default:"30s" placeholder:"TIME" help:"How long a request may take before the API responds with 503, from 1s to 50s."`
}

// maxRequestTimeout is the largest allowed timeout of a request. After such a timeout, the server must respond before
// boot.Serve closes the connection.
const maxRequestTimeout = 50 * time.Second

// maxShutdownDelay is the largest allowed Config.ShutdownDelay.
const maxShutdownDelay = time.Minute

// minWebhookKey is the smallest allowed length, in characters, of the key that encrypts the secrets of webhooks.
const minWebhookKey = 32

// Check returns an error for the first invalid setting.
func (c Config) Check() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return boot.InvalidSetting("REELTALLY_LISTEN", c.Listen, "HOST:PORT, for example 127.0.0.1:8080")
	}
	if c.AppURL != "" {
		if err := boot.CheckBaseURL("REELTALLY_APP_URL", c.AppURL); err != nil {
			return err
		}
	}
	if c.ShortLinkBaseURL != "" {
		if err := boot.CheckBaseURL("REELTALLY_SHORTLINK_BASE_URL", c.ShortLinkBaseURL); err != nil {
			return err
		}
	}
	if c.PreviewAllowance < 1 {
		return boot.InvalidSetting("REELTALLY_PREVIEW_ALLOWANCE", c.PreviewAllowance, "1 or more")
	}
	if c.WebhookKey != "" && len(c.WebhookKey) < minWebhookKey {
		return boot.InvalidSetting("REELTALLY_WEBHOOK_KEY", c.WebhookKey, "at least 32 characters")
	}
	if c.RequestTimeout < time.Second || c.RequestTimeout > maxRequestTimeout {
		return boot.InvalidSetting("REELTALLY_REQUEST_TIMEOUT", words.Duration(c.RequestTimeout), "from 1s to 50s")
	}
	if c.ShutdownDelay < 0 || c.ShutdownDelay > maxShutdownDelay {
		return boot.InvalidSetting("REELTALLY_SHUTDOWN_DELAY", words.Duration(c.ShutdownDelay), "from 0s to 60s")
	}
	if err := server.TierLimits(c.TierLimits).Check(); err != nil {
		return boot.UsageError{Err: fmt.Errorf("--tier-limits (REELTALLY_TIER_LIMITS): %w", err)}
	}
	if c.RedisURL != "" {
		if _, err := c.redisOptions(); err != nil {
			return err
		}
	}
	_, err := c.trustedProxies()
	return err
}

// trustedProxies parses the setting TrustedProxies. A single IP address counts as a network with one address.
func (c Config) trustedProxies() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range c.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, boot.InvalidSetting("REELTALLY_TRUSTED_PROXIES", text, "a network such as 10.0.0.0/8, or an IP address")
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// redisOptions parses the setting RedisURL. If the URL is invalid, the error does not wrap the error of the Redis library, because that
// error contains the password.
func (c Config) redisOptions() (*redis.Options, error) {
	o, err := redis.ParseURL(c.RedisURL.Reveal())
	if err != nil {
		return nil, boot.InvalidSetting("REELTALLY_REDIS_URL", c.RedisURL,
			"redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss:// for TLS, or unix://PATH, with reserved characters of the password percent-encoded, for example @ as %40")
	}
	return o, nil
}

// newRateStore returns the store that counts requests for the rate limits, and a function that closes this store. The store is nil if Redis is not
// configured: the server then counts in its own memory. If rate limits are off, the store is server.Unlimited.
func (c Config) newRateStore(ctx context.Context, logger *slog.Logger) (rates server.RateStore, closeRates func() error, err error) {
	noClose := func() error { return nil }
	switch {
	case c.RateLimits == "off":
		logger.WarnContext(ctx, "rate limits are off")
		return server.Unlimited{}, noClose, nil
	case c.RedisURL == "":
		return nil, noClose, nil
	}
	o, err := c.redisOptions()
	if err != nil {
		return nil, nil, err
	}
	shared := server.NewRedisRateStore(ctx, o, time.Now, logger)
	return shared, shared.Close, nil
}

// API is an API server that already listens. Its method Run serves requests.
type API struct {
	Address    string // the http URL of the listener
	AppURL     string // the public URL of the dashboard, without a slash at the end
	listener   net.Listener
	server     *server.Server
	closeRates func() error
	delay      time.Duration // Config.ShutdownDelay
	registry   *prometheus.Registry
	logger     *slog.Logger
}

// OpenListener returns the listener of the API. If systemd has opened a socket for this process (socket activation), OpenListener returns this
// socket. Otherwise it listens on Config.Listen.
func (c Config) OpenListener(ctx context.Context) (net.Listener, error) {
	sockets, err := activation.Listeners()
	switch {
	case err != nil:
		return nil, fmt.Errorf("the socket of systemd cannot be used: %w", err)
	case len(sockets) > 1:
		return nil, fmt.Errorf("systemd has opened %d sockets, but the server uses one: remove all but one ListenStream= from the unit", len(sockets))
	case len(sockets) == 1 && sockets[0] != nil:
		return sockets[0], nil
	}
	return boot.Listen(ctx, "REELTALLY_LISTEN", c.Listen)
}

// Options are the settings of an API, and what it shares with the other services of the process. All fields are required.
type Options struct {
	Config   Config
	Listener net.Listener // from Config.OpenListener
	Store    *store.Store // must have the current schema
	Status   http.Handler // answers requests for /status
	Registry *prometheus.Registry
	Traces   *boot.Traces
	Logger   *slog.Logger
}

// New creates the server. The caller must call Run or Close. If New returns an error, the caller must close the listener.
func New(ctx context.Context, o Options) (*API, error) {
	c := o.Config
	proxies, err := c.trustedProxies()
	if err != nil {
		return nil, err
	}
	kind, err := o.Store.DataKind(ctx)
	if err != nil {
		return nil, err
	}
	resolver, err := shortlink.New(shortlink.Options{BaseURL: c.ShortLinkBaseURL, Logger: o.Logger, Now: time.Now})
	if err != nil {
		return nil, err
	}
	cursorKey, err := o.Store.Secret(ctx, "cursor")
	if err != nil {
		return nil, err
	}
	a := &API{Address: boot.URL(o.Listener), listener: o.Listener, delay: c.ShutdownDelay, registry: o.Registry, logger: o.Logger}
	if c.AppURL == "" {
		c.AppURL = a.Address
	}
	a.AppURL = strings.TrimRight(c.AppURL, "/")
	rates, closeRates, err := c.newRateStore(ctx, o.Logger)
	if err != nil {
		return nil, err
	}
	a.closeRates = closeRates
	webhooks := server.WebhookOptions{AllowPrivate: c.WebhookAllowPrivate}
	if c.WebhookKey != "" {
		webhooks.Key = []byte(c.WebhookKey.Reveal())
	}
	a.server, err = server.New(server.Options{
		RateStore: rates, TierLimits: c.TierLimits, Store: o.Store, Resolver: resolver, AppURL: c.AppURL, CursorKey: cursorKey, Now: time.Now, Logger: o.Logger,
		TrustedProxies: proxies, Sandbox: kind == store.MadeUpData || c.Sandbox && kind == store.NoData, PreviewAllowance: c.PreviewAllowance,
		RequestTimeout: c.RequestTimeout, Status: o.Status, Version: boot.Version(), Webhooks: webhooks, Traces: o.Traces.Provider,
	})
	if err != nil {
		return nil, errors.Join(err, a.closeRates())
	}
	return a, nil
}

// printSetupLink prints a link to a page on which the first organisation can be created. If an organisation exists already, printSetupLink
// prints nothing.
func (a *API) printSetupLink(ctx context.Context, st *store.Store, w io.Writer) error {
	secret, err := st.CreateSetupLink(ctx)
	if errors.Is(err, store.ErrSetUp) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "There is no organisation yet. To create the first organisation, open this address. It works once, within 30 minutes:\n  %s/setup/%s\n", a.AppURL, secret)
	return err
}

// Close closes the listener and the connections to Redis. Call Close only if Run was not called, because Run closes both.
func (a *API) Close() error { return errors.Join(a.listener.Close(), a.closeRates()) }

// Run sends events to webhooks until ctx ends. It serves requests until the time Config.ShutdownDelay has
// passed after the end of ctx.
func (a *API) Run(ctx context.Context) error {
	a.logger.InfoContext(ctx, "serving", "address", a.Address)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		a.server.Drain()
		time.AfterFunc(a.delay, stop)
	})
	sending, stopSending := context.WithCancel(ctx)
	var senders sync.WaitGroup
	senders.Go(func() { a.server.SendWebhooks(sending) })
	err := boot.Serve(serving, a.server.Listener(a.listener), boot.CountRequests(a.registry, a.server.Handler()), a.logger)
	stopSending()
	senders.Wait()
	a.server.Close()
	a.logger.InfoContext(ctx, "stopped serving")
	return errors.Join(err, a.closeRates())
}

// Command is the main function of cmd/server.
func Command(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.IgnoreShutdown(ctx, err) }()
	var settings struct {
		boot.Logging
		boot.Database
		boot.Metrics
		Config
	}
	if _, err := boot.Parse(p, &settings, boot.Description("ReelTally's HTTP API. It takes all numbers from the database; collectors fetch them.")); err != nil {
		return err
	}
	if err := errors.Join(settings.Check(), settings.CheckAddress(settings.Listen)); err != nil {
		return err
	}
	logger, stopLogger := settings.BufferedLogger(p.Stderr)
	defer stopLogger()
	traces, logger, err := boot.StartTraces(ctx, p, logger)
	if err != nil {
		return err
	}
	defer traces.Stop(ctx)
	settings.StoreTimeout, settings.ReadURL, settings.Traced = settings.RequestTimeout, settings.DatabaseReadURL, traces.Enabled()
	st, err := settings.Open(ctx, logger, boot.MigrateSQLite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	registry := boot.NewRegistry()
	status := monitor.New(st, nil, nil, registry, logger)
	listener, err := settings.OpenListener(ctx)
	if err != nil {
		return err
	}
	api, err := New(ctx, Options{Config: settings.Config, Listener: listener, Store: st, Status: status, Registry: registry, Traces: traces, Logger: logger})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := api.printSetupLink(ctx, st, p.Stdout); err != nil {
		return errors.Join(err, api.Close())
	}
	services, err := settings.Services(ctx, registry, status, logger)
	if err != nil {
		return errors.Join(err, api.Close())
	}
	return boot.RunAll(ctx, append(services, api.Run)...)
}
