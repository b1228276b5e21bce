package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// This file connects the server with package web, which builds the dashboard pages. The pages
// request their data from the API with the session's token.

// signInLimit limits the failed sign-in attempts from one IP address per minute. An attempt uses a
// token, a login link or a setup link.
var signInLimit = addressLimit{"sign_in", 10, "sign-in attempts"}

// maxPageReads limits how many GET requests the dashboard pages of one organisation send to one
// operation in a minute. Requests from programs are counted separately.
const maxPageReads = 600

type pageCallerKey struct{}

// pageCaller returns the token and organisation of an API request that a page of this server sent.
// ok is false for all other requests.
func pageCaller(ctx context.Context) (id store.Identity, ok bool) {
	id, ok = ctx.Value(pageCallerKey{}).(store.Identity)
	return id, ok
}

// isFromPage returns true if a page of this server sent the API request with the context ctx. Lists for pages have no labels, because pages show
// only the labels of single videos and accounts. A list can have 1,000 labels in each row.
func isFromPage(ctx context.Context) bool {
	_, ok := pageCaller(ctx)
	return ok
}

// rateLimitOf returns the name of the rate limit that a request counts towards, and the limit. GET requests from pages have limits of their own.
func rateLimitOf(ctx context.Context, caller Caller, op *operation) (name string, limit int64) {
	switch {
	case !isFromPage(ctx) || op.method != http.MethodGet:
		return op.id, caller.facts.limits[op.group]
	case caller.Token.ID == uuid.Nil: // requests of share pages have no token
		return "share_" + op.id, maxShareReads
	}
	return "pages_" + op.id, maxPageReads
}

// routePages adds the routes of the dashboard to e.
func (s *Server) routePages(e *echo.Echo) error {
	pages, err := web.New(web.Options{Backend: pageBackend{s}, AppURL: s.appURL, Secure: s.secure, Now: s.now, Logger: s.logger})
	if err != nil {
		return err
	}
	s.pages = pages
	handler := func(c echo.Context) error {
		pages.ServeHTTP(c.Response(), requestForPages(c))
		return nil
	}
	getAndHeadRouter{e}.GET("/errors", handler) // the page about error codes needs no session
	for _, path := range web.Paths {
		e.Match([]string{http.MethodGet, http.MethodHead, http.MethodPost}, path, handler)
	}
	return nil
}

// requestForPages returns the request of a browser for a page. It adds the request id and the client's network, which pageBackend needs.
func requestForPages(c echo.Context) *http.Request {
	r := c.Request()
	r.Header.Set(echo.HeaderXRequestID, requestID(c)) // the requests that the page sends to the API get the request id of the page
	return r.WithContext(context.WithValue(r.Context(), addressKey{}, networkOf(c.RealIP())))
}

// showErrorPage shows an error page and returns true if a browser requested an address that does
// not exist. Otherwise, it writes nothing and returns false.
func (s *Server) showErrorPage(c echo.Context, e *Error) bool {
	r := c.Request()
	accept := r.Header.Get(echo.HeaderAccept)
	// A request is from a browser if it accepts text/html but no JSON, and has no token.
	if e.Code != CodeNotFound || s.contract.requestedOperation(c) != nil || r.Method != http.MethodGet && r.Method != http.MethodHead ||
		r.Header.Get(echo.HeaderAuthorization) != "" || !strings.Contains(accept, "text/html") || strings.Contains(accept, "json") {
		return false
	}
	c.Response().Header().Set(echo.HeaderVary, "Accept, Authorization")
	s.pages.ServeUnknownAddress(c.Response(), requestForPages(c))
	return true
}

type addressKey struct{}

// ErrorCodes returns all error codes of the API.
func (pageBackend) ErrorCodes() []web.ErrorCode {
	out := make([]web.ErrorCode, len(codes))
	for n, c := range codes {
		out[n] = web.ErrorCode{Code: string(c.Code), Status: c.Status, Title: c.Title, Meaning: c.Meaning}
	}
	return out
}

// pageBackend implements web.Backend: the functions of the server that the pages call.
type pageBackend struct{ s *Server }

// Identify returns the token and the organisation of the session with this secret.
func (b pageBackend) Identify(ctx context.Context, secret string) (store.Identity, error) {
	id, err := b.s.sessions.findToken(ctx, secret, clientAddress(ctx))
	return id, b.problem(ctx, err)
}

// SignIn creates a session for a token and returns the session's secret.
func (b pageBackend) SignIn(ctx context.Context, token string) (string, error) {
	if err := b.countSignInAttempt(ctx); err != nil {
		return "", err
	}
	if !strings.HasPrefix(token, "rt_") {
		return "", b.problem(ctx, problem(CodeTokenMalformed, "This is not a token of ReelTally: a token starts with rt_."))
	}
	if !store.WellFormedToken(token) {
		return "", b.problem(ctx, problem(CodeTokenMistyped, "The token's checksum does not fit, so it was mistyped or cut off."))
	}
	id, err := b.s.tokens.findToken(ctx, token, clientAddress(ctx))
	if err != nil {
		return "", b.problem(ctx, err)
	}
	session, err := b.s.store.CreateSession(ctx, id.Token.ID)
	if err == nil {
		b.s.tokens.addressLimits.uncountRequest(ctx, signInLimit, clientAddress(ctx)) // a successful attempt does not count towards the limit
	}
	return session, b.problem(ctx, err)
}

// FindLoginLink returns the token and the organisation of a login link. The link can still be used afterwards.
func (b pageBackend) FindLoginLink(ctx context.Context, link string) (store.Identity, error) {
	if err := b.countSignInAttempt(ctx); err != nil {
		return store.Identity{}, err
	}
	id, err := b.s.store.LoginLink(ctx, link)
	if err == nil {
		b.s.tokens.addressLimits.uncountRequest(ctx, signInLimit, clientAddress(ctx))
	}
	return id, b.problem(ctx, err)
}

// UseLoginLink creates a session for a login link and returns the session's secret. The link cannot be used again.
func (b pageBackend) UseLoginLink(ctx context.Context, link string) (string, error) {
	if err := b.countSignInAttempt(ctx); err != nil {
		return "", err
	}
	session, err := b.s.store.UseLoginLink(ctx, link)
	if err == nil {
		b.s.tokens.addressLimits.uncountRequest(ctx, signInLimit, clientAddress(ctx))
	}
	return session, b.problem(ctx, err)
}

// CheckSetupLink returns an error if the setup link cannot be used. With a setup link, the operator creates the first organisation.
func (b pageBackend) CheckSetupLink(ctx context.Context, link string) error {
	if err := b.countSignInAttempt(ctx); err != nil {
		return err
	}
	return b.finishSetupAttempt(ctx, b.s.store.CheckSetupLink(ctx, link))
}

// SetUp creates the first organisation with a setup link. The link cannot be used again.
func (b pageBackend) SetUp(ctx context.Context, link, name string) (store.Setup, error) {
	if err := b.countSignInAttempt(ctx); err != nil {
		return store.Setup{}, err
	}
	if err := store.CheckName("organisation", name); err != nil {
		return store.Setup{}, &web.Problem{Status: http.StatusBadRequest, Title: "Invalid name", Detail: "The name cannot be used: " + withFullStop(err.Error())}
	}
	done, err := b.s.store.SetUp(ctx, link, name)
	return done, b.finishSetupAttempt(ctx, err)
}

// HasNoSource returns true if no collector is running, or if the running collectors have no source.
func (b pageBackend) HasNoSource(ctx context.Context) (bool, error) {
	fetchable, err := b.s.fetchable.readFetchable(ctx)
	return err == nil && !fetchable.IsKnown(), err
}

// finishSetupAttempt removes the attempt from the count of signInLimit if err is nil. Otherwise it converts err, an error of CheckSetupLink or SetUp, to a
// *web.Problem.
func (b pageBackend) finishSetupAttempt(ctx context.Context, err error) error {
	switch {
	case err == nil:
		b.s.tokens.addressLimits.uncountRequest(ctx, signInLimit, clientAddress(ctx))
		return nil
	case errors.Is(err, store.ErrSetUp):
		return &web.Problem{Status: http.StatusGone, Title: "This server is already set up", Detail: "The server already has an organisation. Sign in with a token, or ask the operator for a link: reeltally login-link --org NAME"}
	case errors.Is(err, store.ErrSetupLink):
		return &web.Problem{Status: http.StatusGone, Title: "This setup link does not work", Detail: "The link is incomplete, older than 30 minutes, or replaced by a newer setup link. " +
			"Each start of the server makes a new setup link. To get one now, run: reeltally login-link"}
	}
	return b.problem(ctx, err)
}

// SignOut ends the session with this secret.
func (b pageBackend) SignOut(ctx context.Context, secret string) error {
	err := b.s.store.EndSession(ctx, secret)
	b.s.sessions.forgetToken(secret)
	return b.problem(ctx, err)
}

// HistoryDays returns the maximum age, in days, of the history points that a tier shows.
func (b pageBackend) HistoryDays(tier store.Tier) int { return b.s.tiers[tier].historyDays }

// HidesNumbers returns true if a tier hides numbers.
func (b pageBackend) HidesNumbers(tier store.Tier) bool { return b.s.tiers[tier].masked }

// IsDataMadeUp returns true if the numbers of the database are made up by the sandbox.
func (b pageBackend) IsDataMadeUp() bool { return b.s.dataKind.last() }

// Do sends a request from a page to the API, through all middleware of the server. It copies some
// headers of visitorRequest.
func (b pageBackend) Do(identity store.Identity, visitorRequest *http.Request, method, target string, body io.Reader) (web.Response, error) {
	r, err := http.NewRequestWithContext(context.WithValue(visitorRequest.Context(), pageCallerKey{}, identity), method, target, body)
	if err != nil {
		return web.Response{}, err
	}
	for _, name := range []string{"X-Forwarded-For", "X-Request-Id", "User-Agent", "Idempotency-Key", "If-Match"} {
		if values := visitorRequest.Header.Values(name); len(values) > 0 {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if body != nil {
		r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	} else {
		r.Body = http.NoBody // handlers read the body, so it must not be nil
	}
	r.Host, r.RemoteAddr, r.RequestURI = visitorRequest.Host, visitorRequest.RemoteAddr, target
	response, complete := b.s.serveInternalRequest(r, 0)
	if !complete {
		return web.Response{}, errors.New("the API aborted its response")
	}
	return web.Response{Status: response.status, Header: response.header, Body: response.body.Bytes()}, nil
}

// Operations implements web.Backend. It returns the JSON of /status, and the versions of the
// program and of the API.
func (b pageBackend) Operations(visitorRequest *http.Request) ([]byte, web.Version, error) {
	version := web.Version{Program: b.s.version, API: b.s.contract.version}
	if b.s.status == nil {
		return nil, version, b.problem(visitorRequest.Context(), problem(CodeNotFound, "This server is not configured to show the state of the queue and the sources. Run `reeltally status` instead."))
	}
	response := bufferHandler(b.s.status, visitorRequest, 0)
	if response.status != http.StatusOK {
		return nil, version, b.problem(visitorRequest.Context(), problem(CodeUnavailable, "The state of the queue and the sources cannot be read now. Try again in a few seconds."))
	}
	return response.body.Bytes(), version, nil
}

// CollectionSums returns the sums over the tracked videos of each collection. If the tier hides numbers, the map is nil.
func (b pageBackend) CollectionSums(ctx context.Context, identity store.Identity) (map[uuid.UUID]store.CollectionSum, error) {
	if b.HidesNumbers(identity.Organisation.Tier) {
		return nil, nil //nolint:nilnil // hidden numbers are not an error
	}
	var sums map[uuid.UUID]store.CollectionSum
	err := b.readInSlot(ctx, identity.Organisation.ID, func(o *store.Org) (err error) {
		sums, err = o.CollectionSums(ctx)
		return err
	})
	return sums, err
}

// AccountGains returns the tracked videos of an account that gained the most views in a period. If the tier hides numbers, there are none, because
// their order would reveal which videos gained more. If the account has too many videos, tooMany is true.
func (b pageBackend) AccountGains(ctx context.Context, identity store.Identity, account uuid.UUID, from, to store.Date) (gains []store.CollectionVideo, tooMany bool, err error) {
	if b.HidesNumbers(identity.Organisation.Tier) {
		return nil, false, nil
	}
	err = b.readInSlot(ctx, identity.Organisation.ID, func(o *store.Org) (err error) {
		gains, err = o.AccountGains(ctx, account, from, to, maxRankedVideos)
		if _, tooMany = errors.AsType[*store.TooManyVideosError](err); tooMany {
			return nil
		}
		return err
	})
	return gains, tooMany, err
}

// Reports returns the reports of all collections of the organisation, the newest first.
func (b pageBackend) Reports(ctx context.Context, identity store.Identity) ([]store.Report, error) {
	var reports []store.Report
	err := b.readInSlot(ctx, identity.Organisation.ID, func(o *store.Org) error {
		list, err := o.ListReports(ctx, store.ReportQuery{AllCollections: true, Order: store.Order{Column: "number", Descending: true}, Window: store.Window{Limit: store.MaxReports}})
		if err == nil {
			reports = list.Rows
		}
		return err
	})
	return reports, err
}

// readInSlot calls read with the organisation. Meanwhile, it holds one of the organisation's slots for concurrent requests, as each API request does.
// A page that holds a slot must not call Do. The API request needs a slot too, and pages that hold all slots would wait for each other.
func (b pageBackend) readInSlot(ctx context.Context, organisation uuid.UUID, read func(o *store.Org) error) error {
	release, err := b.s.inFlight.work.acquire(ctx, organisation)
	if err != nil {
		return b.problem(ctx, err)
	}
	defer release()
	return b.problem(ctx, read(b.s.store.Org(organisation)))
}

// FetchableLinks says which videos and accounts the running collectors can fetch, by platform and form of link. The result can be as old as
// fetchableCacheTime.
func (b pageBackend) FetchableLinks(ctx context.Context) (queue.Fetchable, error) {
	fetchable, err := b.s.fetchable.readFetchable(ctx)
	return fetchable, b.problem(ctx, err)
}

// TargetsWithStatus returns the videos and accounts that have the given fetch status, from all organisations. limit is the maximum number of
// results.
func (b pageBackend) TargetsWithStatus(ctx context.Context, status store.FetchStatus, limit int) ([]queue.TargetStatus, error) {
	targets, err := b.s.store.Queue.TargetsWithStatus(ctx, status, limit)
	return targets, b.problem(ctx, err)
}

// countSignInAttempt counts an attempt to sign in. It returns a *web.Problem if the IP address has made too many attempts in the current minute.
func (b pageBackend) countSignInAttempt(ctx context.Context) error {
	return b.problem(ctx, b.s.tokens.addressLimits.countRequest(ctx, signInLimit, clientAddress(ctx)))
}

// clientAddress returns the IP address from which a page was requested. For an IPv6 address, it returns the /64 network. The attempts to sign
// in are counted by this value.
func clientAddress(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// The method problem converts an error to a *web.Problem. It returns nil for nil. It logs errors that the
// server has caused.
func (b pageBackend) problem(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if exceeded, ok := errors.AsType[*limitExceeded](err); ok {
		e = exceeded.problem()
	} else if errors.Is(err, store.ErrLoginLink) {
		e = problem(CodeTokenUnknown, "This link does not work: it was already used, is older than 30 minutes, is incomplete, or its token is no longer valid. Ask for a new one: reeltally login-link --org NAME.")
	} else {
		e = tokenError(err)
	}
	info := e.Code.info()
	if info.Status >= http.StatusInternalServerError {
		b.s.logger.ErrorContext(ctx, "a request for a page failed", "error", err)
	}
	return &web.Problem{Status: info.Status, Code: string(e.Code), Title: info.Title, Detail: e.Detail,
		RetryAfter: e.RetryAfter}
}
