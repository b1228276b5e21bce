package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// Options are the settings of a Server. Store, Resolver, AppURL, CursorKey, Now and Logger are required. The other fields can be zero, and
// then have a default.
type Options struct {
	// Store is the database.
	Store *store.Store
	// Resolver resolves short links.
	Resolver Resolver
	// AppURL is the public URL of the dashboard: an absolute http or https URL.
	AppURL string
	// CursorKey is the secret key for signatures. It must have at least 32 random bytes. All
	// servers with the same database must use the same key (see store.Secret).
	CursorKey []byte
	// Now returns the current time.
	Now func() time.Time
	// Logger receives one line for each request, and the causes of internal errors, which callers do not see.
	Logger *slog.Logger
	// RateStore counts requests for the rate limits. By default, requests are counted in memory.
	RateStore RateStore
	// TierLimits are the rate limits that replace the defaults of the tiers.
	TierLimits TierLimits
	// TrustedProxies are the networks of proxies whose X-Forwarded-For header is trusted. By default, no proxy is trusted.
	TrustedProxies []netip.Prefix
	// Sandbox is true if the sandbox will fill the database with made-up data. Responses
	// then have the header ReelTally-Sandbox. Sandbox has no effect after the server has found numbers in the database.
	Sandbox bool
	// RequestTimeout is the time limit of a request. A request that takes longer gets status 503. The default is 30 seconds.
	RequestTimeout time.Duration
	// Status answers with JSON about the queue, the sources and their call budgets. If Status is
	// nil, the page Operations of the dashboard shows only an error.
	Status http.Handler
	// Version is the version of the program, for the page Operations of the dashboard.
	Version string
	// Traces starts a span for each request and for each batch of events that is sent to a webhook. If Traces is nil, no spans are recorded.
	Traces trace.TracerProvider
	// Webhooks are the settings for sending events to webhooks.
	Webhooks WebhookOptions
	// PreviewAllowance is how many videos or accounts of each tracking request are fetched if the organisation has no subscription. The
	// default is 5.
	PreviewAllowance int
}

// Resolver resolves short links, such as vm.tiktok.com/…. A Resolver must be safe for concurrent use.
type Resolver interface {
	// Resolve returns the link of the video or account to which a short link redirects.
	Resolve(ctx context.Context, short link.Link) (link.Link, error)
}

// Server answers the requests to the API. It is safe for concurrent use.
type Server struct {
	tiers            tierTable
	store            *store.Store
	resolver         Resolver
	appURL           string
	secure           bool // true if Options.AppURL is an https URL
	cursorKey        []byte
	now              func() time.Time
	logger           *slog.Logger
	background       *backgroundWrites
	rates            RateStore
	dataKind         *dataKind
	pages            *web.Pages           // the dashboard
	draining         atomic.Bool          // true after Drain was called
	traces           trace.TracerProvider // records spans, see Options.Traces; can be nil
	status           http.Handler         // handler of /status; can be nil, see Options.Status
	version          string               // version of the program, see Options.Version
	previewAllowance int
	requestTimeout   time.Duration
	maxPage          int64 // maximum size of a list page as JSON, in bytes
	webhooks         *webhookSender

	contract *contract
	tokens   *authenticator // cache and look-up of the tokens of API requests
	sessions *authenticator // cache and look-up of the sessions of browsers
	inFlight requestLimits  // limits the number of concurrent requests of each organisation, without requests of share pages
	// inFlightShares limits the number of concurrent requests of each organisation's share pages.
	inFlightShares requestLimits
	resolves       *slots // limits the number of short links that are resolved concurrently
	fetchable      *fetchableReader
	handler        http.Handler
}

var _ api.StrictServerInterface = (*Server)(nil)

// New returns a Server. It fails if an option is missing or invalid, or if an operation of the OpenAPI contract lacks a required x- member.
func New(o Options) (*Server, error) {
	app, err := url.Parse(o.AppURL)
	switch {
	case o.Store == nil, o.Resolver == nil, o.Now == nil, o.Logger == nil:
		return nil, errors.New("server: Store, Resolver, Now and Logger are required")
	case err != nil, app.Scheme != "http" && app.Scheme != "https", app.Host == "":
		return nil, fmt.Errorf("server: AppURL %q is not an absolute http or https URL", o.AppURL)
	case len(o.CursorKey) < 32:
		return nil, fmt.Errorf("server: the cursor key has %d bytes; it must have at least 32", len(o.CursorKey))
	case o.RequestTimeout < 0:
		return nil, fmt.Errorf("server: the request timeout is %s; it cannot be negative", o.RequestTimeout)
	case o.PreviewAllowance < 0:
		return nil, fmt.Errorf("server: the preview allowance is %d; it cannot be negative", o.PreviewAllowance)
	}
	s := &Server{store: o.Store, resolver: o.Resolver, appURL: strings.TrimRight(o.AppURL, "/"), secure: app.Scheme == "https",
		cursorKey: o.CursorKey, now: o.Now, logger: o.Logger, rates: o.RateStore,
		previewAllowance: o.PreviewAllowance, requestTimeout: cmp.Or(o.RequestTimeout, defaultRequestTimeout),
		maxPage: maxPageBytes, traces: o.Traces, status: o.Status, version: o.Version}
	if s.tiers, err = o.TierLimits.mergeWithDefaults(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.webhooks, err = newWebhookSender(o, s.tiers); err != nil {
		return nil, err
	}
	s.dataKind = &dataKind{store: o.Store, now: o.Now}
	s.dataKind.madeUp.Store(o.Sandbox)
	if s.rates == nil {
		s.rates = NewMemoryRateStore()
	}
	if s.previewAllowance == 0 {
		s.previewAllowance = store.DefaultPreview
	}
	s.resolves = newSlots(maxResolvesPerOrganisation, maxResolves)
	s.inFlight, s.inFlightShares = newRequestLimits(maxRequestsPerOrganisation), newRequestLimits(maxShareRequestsPerOrganisation)
	s.fetchable = &fetchableReader{queue: o.Store.Queue, now: o.Now}
	limits := newAddressLimits(s.rates, o.Now, o.Logger)
	s.background = &backgroundWrites{log: o.Logger}
	s.tokens = newAuthenticator(o.Store, o.Store.Authenticate, limits, o.Now, s.background)
	s.sessions = newAuthenticator(o.Store, o.Store.AuthenticateSession, limits, o.Now, s.background)
	if s.contract, err = embeddedContract(); err != nil {
		return nil, err
	}
	if s.handler, err = s.routes(o.TrustedProxies); err != nil {
		return nil, err
	}
	return s, nil
}

// Handler returns the HTTP handler of all routes.
func (s *Server) Handler() http.Handler { return s.handler }

// Drain prepares the server for shutdown. GET /readyz then answers with status 503. All other
// requests are still answered, and each response closes its connection.
func (s *Server) Drain() { s.draining.Store(true) }

// SendWebhooks sends the events of all organisations until ctx ends. It then waits for the running attempts. Several servers can run it on one
// database.
func (s *Server) SendWebhooks(ctx context.Context) { s.webhooks.sendWebhooks(ctx) }

// Close waits until all background writes to the database have finished, for example the write of a token's last use. Call Close after the
// last request was answered.
func (s *Server) Close() {
	s.background.running.Wait()
}
