package server

import (
	"context"
	_ "embed"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/swagger"
)

// llms describes the API for language models, in the form of llmstxt.org.
//
//go:embed llms.txt
var llms []byte

const (
	// securityContact is the address for reports of vulnerabilities, as in SECURITY.md.
	securityContact = "https://github.com/reeltally/reeltally/security/advisories/new"
	// securityTextLifetime is the time after which a copy of /.well-known/security.txt (RFC 9116) must not be used any more.
	securityTextLifetime = 30 * 24 * time.Hour
)

// routes returns the router of the server: an echo instance with all middleware, all operations of the OpenAPI contract and all other
// routes. proxyNetworks contains the networks of trusted proxies.
func (s *Server) routes(proxyNetworks []netip.Prefix) (*echo.Echo, error) {
	compress, err := newCompressor()
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	e.IPExtractor = ipExtractor(proxyNetworks)
	// The middleware is not in an echo group, because with a group, a wrong method would get status
	// 404 instead of 405.
	e.Pre(trimTrailingSlash())
	e.Use( // requests pass through the middleware in the order of this list
		echo.WrapMiddleware(func(h http.Handler) http.Handler { return compress(h) }), // compress comes first, because it replaces the response writer for all middleware after it

		requestIDs,           // requestIDs comes before any middleware that reads the request id
		s.traceRequests(),    // traceRequests comes before any middleware that queries the database. It comes after requestIDs, because the span contains the request id.
		s.limitRequestTime(), // limitRequestTime comes before any middleware that can wait, and before logRequests, which sends the error response after a timeout
		s.logRequests,        // logRequests comes before recoverPanics, so that it logs the status 500 after a panic
		s.setHeaders,         // setHeaders comes before any middleware that can answer the request, so that every response has the headers
		s.allowOrigins,       // allowOrigins comes before authenticate, because the preflight request of a browser has no token
		s.recoverPanics(),    // recoverPanics comes after logRequests and before any middleware that can panic
		limitBody,            // limitBody comes before any middleware that reads the body
		s.refuseOtherMethods, // refuseOtherMethods comes after the middleware that sets the headers of all responses, and before any operation
		s.forOperations(
			s.authenticate,        // authenticate comes before limitOrganisation, which needs the tier, and before validate, so that 401 precedes 400
			s.limitOrganisation,   // limitOrganisation comes before validate, so that invalid requests are also counted
			s.checkScope,          // checkScope comes after limitOrganisation, so that a response with status 403 has the RateLimit headers
			s.limitInFlight,       // limitInFlight comes after the quick checks, and before validate, which needs the body
			s.validate,            // validate comes after all checks that do not need the body
			s.chooseFormat,        // chooseFormat comes after limitOrganisation, so that requests with an invalid Accept are counted. It comes before any middleware that changes the JSON.
			s.idempotency,         // idempotency comes after validate, because it hashes the body that validate decodes
			s.answerConditionally, // answerConditionally comes after idempotency, because an ETag must depend only on the operation's response
		),
	)
	api.RegisterHandlers(getAndHeadRouter{e}, api.NewStrictHandler(s, nil))
	// The routes below are not operations of the OpenAPI contract, so forOperations skips its middleware for them.
	public := getAndHeadRouter{e}
	public.GET("/livez", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	public.GET("/readyz", s.answerReadyz)
	public.GET("/openapi.yaml", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/yaml", []byte(reeltally.OpenAPI))
	})
	public.GET("/openapi.json", func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, s.contract.json)
	})
	public.GET("/llms.txt", func(c echo.Context) error { return c.Blob(http.StatusOK, "text/markdown; charset=utf-8", llms) })
	public.GET("/.well-known/security.txt", func(c echo.Context) error {
		return c.String(http.StatusOK, "Contact: "+securityContact+"\nExpires: "+s.now().UTC().Add(securityTextLifetime).Format(time.RFC3339)+"\n")
	})
	e.POST(mcpPath, s.serveMCP(proxyNetworks))
	docs := echo.WrapHandler(swagger.Handler("../openapi.json"))
	public.GET("/docs", docs)
	public.GET("/docs/*", docs)
	if err := s.routePages(e); err != nil {
		return nil, err
	}
	return e, nil
}

// getAndHeadRouter is an echo instance whose method GET registers a handler for GET and HEAD. For HEAD, net/http does not send the response
// body.
type getAndHeadRouter struct{ *echo.Echo }

// GET registers a handler for GET and HEAD requests to path.
func (h getAndHeadRouter) GET(path string, handler echo.HandlerFunc, m ...echo.MiddlewareFunc) *echo.Route {
	h.HEAD(path, handler, m...)
	return h.Echo.GET(path, handler, m...)
}

// refuseOtherMethods is a middleware that answers with status 405 if the OpenAPI contract has the path of a request, but not with the method of the
// request. It is needed for paths that also match another route: without it, GET /videos/bulk would be a request for the video with the id "bulk".
func (s *Server) refuseOtherMethods(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.EscapedPath()
		methods, ok := s.contract.methods[path]
		if !ok || path == c.Path() {
			return next(c)
		}
		allowed := append([]string{http.MethodOptions}, methods...)
		if slices.Contains(methods, http.MethodGet) {
			allowed = append(allowed, http.MethodHead)
		}
		c.Response().Header().Set(echo.HeaderAllow, strings.Join(allowed, ", "))
		return echo.ErrMethodNotAllowed
	}
}

// ipExtractor returns a function that returns the IP address of the caller. The function uses
// X-Forwarded-For only if a trusted proxy sent the request.
func ipExtractor(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range trusted {
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
	}
	// The result is the last address in X-Forwarded-For that does not belong to a trusted proxy.
	return echo.ExtractIPFromXFFHeader(options...)
}

// readyTimeout is the time limit of the database check of GET /readyz. It is short enough that the response always comes within two seconds.
const readyTimeout = 1500 * time.Millisecond

// answerReadyz answers GET /readyz. The status is 503 if the database is not available or the server is about to end, and 200 otherwise.
func (s *Server) answerReadyz(c echo.Context) error {
	if s.draining.Load() {
		return unavailableError(nil) // a shutdown is not an error; if the cause is nil, writeError logs nothing
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ready(ctx); err != nil {
		return unavailableError(err)
	}
	return c.String(http.StatusOK, "ok\n")
}

// operationMiddleware is a middleware for requests that call the operation op of the OpenAPI contract.
type operationMiddleware func(c echo.Context, op *operation, next echo.HandlerFunc) error

// forOperations returns a middleware that calls each operationMiddleware, in the order of the list, for operations of the OpenAPI contract. It does
// nothing for all other routes.
func (s *Server) forOperations(list ...operationMiddleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			op := s.contract.requestedOperation(c)
			if op == nil {
				return next(c)
			}
			handler := next
			for _, m := range slices.Backward(list) {
				after := handler
				handler = func(c echo.Context) error { return m(c, op, after) }
			}
			return handler(c)
		}
	}
}
