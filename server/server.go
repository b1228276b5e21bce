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

// Options are what a Server needs. Where a default is named, the zero value asks for it.
type Options struct {
	Store *store.Store
	// Resolver follows short links.
	Resolver Resolver
	// AppURL is where the dashboard is, as people reach it: an absolute http or https URL.
	AppURL string
	// CursorKey signs page cursors: at least 32 random bytes, the same in every server of an installation and secret
	// (store.Secret).
	CursorKey []byte
	// Now is the clock.
	Now    func() time.Time
	Logger *slog.Logger
	// RateStore counts calls; by default in memory.
	RateStore RateStore
	// TrustedProxies are the networks whose X-Forwarded-For is believed; by default nobody's.
	TrustedProxies []netip.Prefix
	// Sandbox says that the numbers are made up, and makes every answer say so.
	Sandbox bool
	// RequestTimeout is how long a request may take; the default is 30 seconds. A request that takes longer is answered with 503.
	RequestTimeout time.Duration
	// PreviewAllowance is how many items of a request are fetched for an organisation without a subscription; 5 by
	// default.
	PreviewAllowance int
}

// Resolver finds out over the network what a short link leads to: a link of kind video or account. It may be called concurrently.
type Resolver interface {
	Resolve(ctx context.Context, short link.Link) (link.Link, error)
}

// Server answers requests.
type Server struct {
	store            *store.Store
	resolver         Resolver
	appURL           string
	secure           bool // the application is reached over https
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
	inFlight     *slots // requests that are worked on
	resolves     *slots // short links that are followed
	handler      http.Handler
}

var _ api.StrictServerInterface = (*Server)(nil)

// New returns a Server, or an error when an option is missing or wrong or when the contract does not state the facts of an operation.
func New(o Options) (*Server, error) {
	app, err := url.Parse(o.AppURL)
	switch {
	case o.Store == nil, o.Resolver == nil, o.Now == nil, o.Logger == nil:
		return nil, errors.New("server: Store, Resolver, Now and Logger are required")
	case err != nil, app.Scheme != "http" && app.Scheme != "https", app.Host == "":
		return nil, fmt.Errorf("server: the application's URL %q is not an absolute http or https URL", o.AppURL)
	case len(o.CursorKey) < 32:
		return nil, fmt.Errorf("server: the cursor key has %d bytes; it needs 32", len(o.CursorKey))
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
	s.resolves = newSlots(resolvesOfOrganisation, resolvesInAll)
	s.inFlight = newSlots(requestsOfOrganisation, 0)
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

// Handler answers the requests of the contract, the health checks and the contract itself.
func (s *Server) Handler() http.Handler { return s.handler }

// Close waits for what is still being written beside the requests. Call it after the last request has been answered.
func (s *Server) Close() { s.identities.writes.Wait() }
