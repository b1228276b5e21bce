package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// This file connects the server with package web, which builds the dashboard pages. The pages
// request their data from the API with the session's token.

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
// only the labels of single videos and accounts. A list can have 1,000 labels in each row. Bulk requests of pages get no warnings about many links and
// repeated links, because the page has its own messages about them.
func isFromPage(ctx context.Context) bool {
	_, ok := pageCaller(ctx)
	return ok
}

// routePages adds the routes of the dashboard to e.
func (s *Server) routePages(e *echo.Echo) error {
	pages, err := web.New(web.Options{Backend: pageBackend{s}, AppURL: s.appURL, Secure: s.secure, Now: s.now, Logger: s.logger})
	if err != nil {
		return err
	}
	s.pages = pages
	handler := func(c echo.Context) error {
		h := c.Request().Header
		if strings.HasPrefix(h.Get(echo.HeaderAuthorization), "Bearer ") && h.Get(echo.HeaderCookie) == "" { // a program has probably mistaken the path
			return problem(CodeNotFound, "%s is a page for browsers. The API has no such path; GET /openapi.yaml returns its paths.", c.Request().URL.Path)
		}
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

type addressKey struct{}

// clientAddress returns the IP address from which a page was requested. For an IPv6 address, it returns the /64 network. Attempts to
// sign in, and visits of share pages, are counted by this value.
func clientAddress(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
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

// pageBackend implements web.Backend: the functions of the server that the pages call.
type pageBackend struct{ s *Server }

// ErrorCodes returns all error codes of the API.
func (pageBackend) ErrorCodes() []web.ErrorCode {
	out := make([]web.ErrorCode, len(codes))
	for n, c := range codes {
		out[n] = web.ErrorCode{Code: string(c.Code), Status: c.Status, Title: c.Title, Meaning: c.Meaning}
	}
	return out
}

// FaultCodes returns the codes that only occur in the member "errors" of error responses.
func (pageBackend) FaultCodes() []web.ErrorCode {
	return convertAll(faultCodes[:], func(c FaultCode) web.ErrorCode { return web.ErrorCode{Code: c.Code, Meaning: c.Meaning} })
}

// HasNoSource returns true if no collector is running, or if the running collectors have no source.
func (b pageBackend) HasNoSource(ctx context.Context) (bool, error) {
	fetchable, err := b.s.fetchable.readFetchable(ctx)
	return err == nil && !fetchable.IsKnown(), err
}

// HistoryDays returns the maximum age, in days, of the history points that a tier shows.
func (b pageBackend) HistoryDays(tier store.Tier) int { return b.s.tiers[tier].historyDays }

// HidesNumbers returns true if a tier hides numbers.
func (b pageBackend) HidesNumbers(tier store.Tier) bool { return b.s.tiers[tier].masked }

// IsDataMadeUp returns true if the numbers of the database are made up by the sandbox.
func (b pageBackend) IsDataMadeUp() bool { return b.s.dataKind.last() }

// Do sends a request from a page to the API, through all middleware of the server. It copies only the headers of visitorRequest that
// identify its sender and the request.
func (b pageBackend) Do(identity store.Identity, visitorRequest *http.Request, request web.APIRequest) (web.Response, error) {
	ctx := context.WithValue(visitorRequest.Context(), pageCallerKey{}, identity)
	r, err := http.NewRequestWithContext(ctx, request.Method, request.Target, bytes.NewReader(request.Body)) // the body is never nil, because handlers read it
	if err != nil {
		return web.Response{}, err
	}
	for _, name := range []string{"X-Forwarded-For", "X-Request-Id", "User-Agent"} {
		if values := visitorRequest.Header.Values(name); len(values) > 0 {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if request.Body != nil {
		r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	}
	for name, value := range map[string]string{"If-Match": request.IfMatch, idempotencyKeyHeader: request.IdempotencyKey} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	r.Host, r.RemoteAddr, r.RequestURI = visitorRequest.Host, visitorRequest.RemoteAddr, request.Target
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
	var sums map[uuid.UUID]store.CollectionSum
	err := b.readNumbers(ctx, identity, func(o *store.Org) (err error) {
		sums, err = o.CollectionSums(ctx)
		return err
	})
	return sums, err
}

// AccountGains returns the tracked videos of an account that gained the most views in a period. If the tier hides numbers, there are none, because
// their order would reveal which videos gained more. If the account has too many videos, tooMany is true.
func (b pageBackend) AccountGains(ctx context.Context, identity store.Identity, account uuid.UUID, from, to store.Date) (gains []store.CollectionVideo, tooMany bool, err error) {
	err = b.readNumbers(ctx, identity, func(o *store.Org) (err error) {
		gains, err = o.AccountGains(ctx, account, from, to, maxRankedVideos)
		if _, tooMany = errors.AsType[*store.LimitError](err); tooMany {
			return nil
		}
		return err
	})
	return gains, tooMany, err
}

// CollectionAccounts returns the sums over the videos of each account in a collection, as a report has them, and the numbers of the previous period. If
// the tier hides numbers, both results are nil.
func (b pageBackend) CollectionAccounts(ctx context.Context, identity store.Identity, query store.CollectionTotalsQuery) (accounts []client.ReportAccount, previous *store.PreviousPeriod, err error) {
	err = b.readNumbers(ctx, identity, func(o *store.Org) error {
		totals, err := o.DetailedCollectionTotals(ctx, query)
		previous = totals.Previous
		for _, sum := range sumByAccount(totals.Videos) {
			accounts = append(accounts, client.ReportAccount{AccountID: sum.AccountID, Platform: client.Platform(sum.Platform), Username: sum.Username, Videos: sum.Videos,
				ViewsGained: sum.ViewsGained, UnknownGains: sum.UnknownGains, ViewsAtEnd: sum.ViewsAtEnd, UnknownViews: sum.UnknownViews})
		}
		return err
	})
	return accounts, previous, err
}

// TimesOfAdding returns when each of the videos or accounts with the given ids was added to a collection. The keys of the map are the ids. kind is
// "video" or "account".
func (b pageBackend) TimesOfAdding(ctx context.Context, identity store.Identity, collection uuid.UUID, kind string, ids []uuid.UUID) (map[uuid.UUID]store.Instant, error) {
	var times map[uuid.UUID]store.Instant
	err := b.readInSlot(ctx, identity, func(o *store.Org) (err error) {
		times, err = o.TimesOfAdding(ctx, collection, kind, ids)
		return err
	})
	return times, err
}

// Reports returns the reports of all collections of the organisation, the newest first.
func (b pageBackend) Reports(ctx context.Context, identity store.Identity) ([]store.Report, error) {
	var reports []store.Report
	err := b.readInSlot(ctx, identity, func(o *store.Org) error {
		list, err := o.ListReports(ctx, store.ReportQuery{AllCollections: true, Order: store.Order{Column: "number", Descending: true}, Window: store.Window{Limit: store.MaxReports}})
		if err == nil {
			reports = list.Rows
		}
		return err
	})
	return reports, err
}

// Report returns a report without its document.
func (b pageBackend) Report(ctx context.Context, identity store.Identity, id uuid.UUID) (store.Report, error) {
	var report store.Report
	err := b.readInSlot(ctx, identity, func(o *store.Org) (err error) {
		report, err = o.Report(ctx, id)
		return err
	})
	return report, err
}

// readNumbers calls read as readInSlot does, except that it does nothing if the tier of the organisation hides numbers.
func (b pageBackend) readNumbers(ctx context.Context, identity store.Identity, read func(o *store.Org) error) error {
	if b.HidesNumbers(identity.Organisation.Tier) {
		return nil
	}
	return b.readInSlot(ctx, identity, read)
}

// readInSlot calls read with the organisation. Meanwhile, it holds one of the organisation's slots for concurrent requests, as each API request does.
// A page that holds a slot must not call Do. The API request needs a slot too, and pages that hold all slots would wait for each other.
func (b pageBackend) readInSlot(ctx context.Context, identity store.Identity, read func(o *store.Org) error) error {
	release, err := b.s.inFlight.work.acquire(ctx, identity.Organisation.ID)
	if err != nil {
		return b.problem(ctx, err)
	}
	defer release()
	return b.problem(ctx, read(b.s.store.Org(identity.Organisation.ID)))
}

// FetchableLinks says which videos and accounts the running collectors can fetch, by platform and form of link. The result can be outdated: see
// fetchableReader.readFetchable.
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

// The method problem converts an error to a *web.Problem, unless it is one already. It returns nil for nil. It logs errors that the server has caused.
func (b pageBackend) problem(ctx context.Context, err error) error {
	var e *Error
	exceeded, tooMany := errors.AsType[*limitExceeded](err)
	shown, isProblem := errors.AsType[*web.Problem](err)
	switch {
	case err == nil:
		return nil
	case isProblem:
		return shown
	case errors.Is(err, store.ErrSetUp):
		return &web.Problem{Status: http.StatusGone, Title: "This server is already set up", Detail: "The server already has an organisation. Sign in with a token, or ask the operator for a link: reeltally login-link --org NAME"}
	case errors.Is(err, store.ErrSetupLink):
		return &web.Problem{Status: http.StatusGone, Title: "This setup link does not work", Detail: "The link is incomplete, older than 30 minutes, or replaced by a newer setup link. " +
			"Each start of the server makes a new setup link. To get one now, run: reeltally login-link"}
	case tooMany:
		e = exceeded.problem()
	case errors.Is(err, store.ErrLoginLink):
		e = problem(CodeTokenUnknown, "This link does not work: it was already used, is older than 30 minutes, is incomplete, or its token is no longer valid. Ask for a new one: reeltally login-link --org NAME.")
	default:
		e = tokenError(err)
	}
	info := e.Code.info()
	if info.Status >= http.StatusInternalServerError {
		b.s.logger.ErrorContext(ctx, "a request for a page failed", "error", err)
	}
	return &web.Problem{Status: info.Status, Code: string(e.Code), Title: info.Title, Detail: e.Detail,
		RetryAfter: e.RetryAfter}
}
