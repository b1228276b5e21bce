package server

import (
	"context"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/swagger"
)

// routes returns an echo instance with the middleware, the operations of the contract and all other routes. trusted are the networks of trusted
// proxies.
func (s *Server) routes(trusted []netip.Prefix) (*echo.Echo, error) {
	compress, err := compression()
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	e.IPExtractor = ipExtractor(trusted)
	// The middleware is not in an echo group, because a group would answer 404 instead of 405. authenticate and the functions after it do
	// nothing for routes that are not operations of the contract.
	e.Pre(trimTrailingSlash())
	e.Use( // the first middleware encloses all others
		echo.WrapMiddleware(func(h http.Handler) http.Handler { return compress(h) }), // encloses all functions that write a response

		requestIDs(),        // before all functions that read the request id
		s.limitTime(),       // encloses all functions that can wait, and logRequests, which answers a request that timed out
		s.logRequests,       // encloses recoverPanics, so that it logs the status 500 of a panic
		s.setHeaders,        // before all functions that can answer
		s.allowOrigins,      // before authenticate, because a browser's preflight request has no token
		s.recoverPanics(),   // inside logRequests, and encloses all functions that can panic
		limitBody,           // before all functions that read the body
		s.authenticate,      // before limitOrganisation, whose limit depends on the tier, and before validate, so that a caller without a valid token gets 401
		s.limitOrganisation, // before validate, so that invalid requests are counted too
		s.checkScope,        // after limitOrganisation, so that a response with 403 has the quota headers
		s.limitInFlight,     // after the checks that need little time, and before reading the body and querying the database
		s.validate,          // after the checks that do not need the body, because it reads the body

		s.idempotency,         // after validate, which decodes the body that idempotency hashes
		s.answerConditionally, // encloses only the operation, so that the ETag depends only on the response of the operation
		s.linkNextPage,        // encloses the operation, which adds the Link header
	)
	api.RegisterHandlers(withHead{e}, api.NewStrictHandler(s, nil))
	// The routes below are not operations of the contract.
	public := withHead{e}
	public.GET("/livez", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	public.GET("/readyz", s.ready)
	public.GET("/openapi.yaml", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/yaml", []byte(reeltally.OpenAPI))
	})
	public.GET("/openapi.json", func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, s.contract.json)
	})
	public.GET("/errors", serveErrorCodes)
	e.POST(mcpPath, s.serveMCP(trusted))
	docs := echo.WrapHandler(swagger.Handler("../openapi.json"))
	public.GET("/docs", docs)
	public.GET("/docs/*", docs)
	public.GET("/", func(c echo.Context) error { return c.Redirect(http.StatusTemporaryRedirect, "docs/") })
	return e, nil
}

// withHead is an echo instance whose method GET also registers HEAD. net/http omits the body of the response to HEAD.
type withHead struct{ *echo.Echo }

// GET registers a handler for GET and HEAD.
func (h withHead) GET(path string, handler echo.HandlerFunc, m ...echo.MiddlewareFunc) *echo.Route {
	h.HEAD(path, handler, m...)
	return h.Echo.GET(path, handler, m...)
}

// ipExtractor returns a function that returns the IP address of the caller. Without trusted proxies this is the address of the connection. With
// trusted proxies it is the last address in X-Forwarded-For that does not belong to a trusted proxy.
func ipExtractor(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range trusted {
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// readyTimeout is the time limit of the database check of /readyz, so that /readyz answers within two seconds.
const readyTimeout = 1500 * time.Millisecond

// ready answers /readyz: 200 if the database is available, and otherwise 503.
func (s *Server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ready(ctx); err != nil {
		return unavailable(err)
	}
	return c.String(http.StatusOK, "ok\n")
}

// codesPage is the template of the page /errors. Its data is the result of Codes.
var codesPage = template.Must(template.New("codes").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Error codes of ReelTally</title>
<h1>Error codes</h1>
<table><thead><tr><th>Code<th>Status<th>Title<th>Meaning</thead>
{{range .}}<tr id="{{.Code}}"><td>{{.Code}}<td>{{.Status}}<td>{{.Title}}<td>{{.Meaning}}
{{end}}</table></html>
`))

// serveErrorCodes serves /errors, the page about all error codes. The member type of every problem links to this page.
func serveErrorCodes(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
	return codesPage.Execute(c.Response(), Codes())
}
