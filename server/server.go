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
	"time"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// Options are the settings of a Server. The zero value of an optional field means its default.
type Options struct {
	Store *store.Store
	// Resolver resolves short links.
	Resolver Resolver
	// AppURL is the public URL of the dashboard: an absolute http or https URL.
	AppURL string
	// CursorKey signs page cursors. It has at least 32 random bytes, is secret, and is the same in all servers of an installation
	// (store.Secret).
	CursorKey []byte
	// Now returns the current time.
	Now    func() time.Time
	Logger *slog.Logger
	// RateStore counts requests. The default counts in memory.
	RateStore RateStore
	// TrustedProxies are the networks of proxies whose X-Forwarded-For header is trusted. The default is none.
	TrustedProxies []netip.Prefix
	// Sandbox is true if the data is made up. Every response then has the header ReelTally-Sandbox.
	Sandbox bool
	// RequestTimeout is the time limit of a request. The default is 30 seconds. A request that takes longer is answered with 503.
	RequestTimeout time.Duration
	// PreviewAllowance is how many items of a request are fetched for an organisation without a subscription. The default is 5.
	PreviewAllowance int
}

// Resolver resolves a short link over the network to a link of kind video or account. It must be safe for concurrent use.
type Resolver interface {
	Resolve(ctx context.Context, short link.Link) (link.Link, error)
}

// Server answers the requests of the contract. It is safe for concurrent use.
type Server struct {
	store            *store.Store
	resolver         Resolver
	appURL           string
	secure           bool // the dashboard uses https
	cursorKey        []byte
	now              func() time.Time
	logger           *slog.Logger
	rates            RateStore
	sandbox          bool
	previewAllowance int
	requestTimeout   time.Duration
	maxPage          int64 // bytes

	operations   *operations
	contractJSON []byte
	identities   *identities
	inFlight     *slots // requests in progress
	resolves     *slots // short links that are being resolved
	handler      http.Handler
}

var _ api.StrictServerInterface = (*Server)(nil)

// New returns a Server. It fails if an option is missing or invalid, or if an operation of the contract lacks a required x- member.
func New(o Options) (*Server, error) {
	app, err := url.Parse(o.AppURL)
	switch {
	case o.Store == nil, o.Resolver == nil, o.Now == nil, o.Logger == nil:
		return nil, errors.New("server: Store, Resolver, Now and Logger are required")
	case err != nil, app.Scheme != "http" && app.Scheme != "https", app.Host == "":
		return nil, fmt.Errorf("server: AppURL %q is not an absolute http or https URL", o.AppURL)
	case len(o.CursorKey) < 32:
		return nil, fmt.Errorf("server: the cursor key has %d bytes; it needs at least 32", len(o.CursorKey))
	case o.RequestTimeout < 0:
		return nil, fmt.Errorf("server: the request timeout is %s; it cannot be negative", o.RequestTimeout)
	case o.PreviewAllowance < 0:
		return nil, fmt.Errorf("server: the preview allowance is %d; it cannot be negative", o.PreviewAllowance)
	}
	s := &Server{store: o.Store, resolver: o.Resolver, appURL: strings.TrimRight(o.AppURL, "/"), secure: app.Scheme == "https",
		cursorKey: o.CursorKey, now: o.Now, logger: o.Logger, rates: o.RateStore,
		sandbox: o.Sandbox, previewAllowance: o.PreviewAllowance, requestTimeout: cmp.Or(o.RequestTimeout, DefaultRequestTimeout),
		maxPage: maxPageBytes}
	if s.rates == nil {
		s.rates = NewMemoryRateStore()
	}
	if s.previewAllowance == 0 {
		s.previewAllowance = store.DefaultPreview
	}
	s.resolves = newSlots(maxResolvesPerOrganisation, maxResolves)
	s.inFlight = newSlots(maxRequestsPerOrganisation, 0)
	s.identities = newIdentities(o.Store, s.rates, o.Now, o.Logger)
	if s.operations, err = readOperations(reeltally.OpenAPI); err != nil {
		return nil, err
	}
	if s.contractJSON, err = s.operations.doc.MarshalJSON(); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	if s.handler, err = s.routes(o.TrustedProxies); err != nil {
		return nil, err
	}
	return s, nil
}

// Handler returns the handler of all routes.
func (s *Server) Handler() http.Handler { return s.handler }

// Close waits for background writes, such as the last use of a token. Call it after the last request was answered.
func (s *Server) Close() { s.identities.writes.Wait() }
