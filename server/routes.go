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

// routes returns echo with the middleware, the operations of the contract and the other routes.
func (s *Server) routes(trusted []netip.Prefix) (*echo.Echo, error) {
	compress, err := compression()
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	e.IPExtractor = ipExtractor(trusted)
	// The middleware is not in an echo group, because a group answers 404 where 405 is right. authenticate and the functions after it do
	// nothing for routes that are not operations of the contract.
	e.Pre(trimTrailingSlash())
	e.Use( // the first is the outermost
		echo.WrapMiddleware(func(h http.Handler) http.Handler { return compress(h) }), // encloses everything that writes a response

		requestIDs(),        // before everything that reads the request id
		s.limitTime(),       // encloses everything that can wait, and the log, which writes the error of a request that timed out
		s.logRequests,       // encloses recoverPanics, so that the log has the status of a panic
		s.setHeaders,        // before everything that can answer
		s.allowOrigins,      // before authenticate: a browser's preflight request has no token
		s.recoverPanics(),   // inside logRequests, and encloses everything that may panic
		limitBody,           // before everything that reads the body
		s.authenticate,      // before the rate limit, which depends on the tier; before validate, so that only valid tokens get its answers
		s.limitOrganisation, // before validate: invalid requests count as well
		s.checkScope,        // after the rate limit, so that a 403 has the quota headers
		s.limitInFlight,     // after the cheap refusals, before the work: reading the body and querying the database
		s.validate,          // after everything that does not need the body, because it reads the body

		s.idempotency,         // after validate, which decodes the body that the key belongs to
		s.answerConditionally, // encloses the operation alone, so that the ETag depends only on the operation's response
		s.linkNextPage,        // encloses the operation, which sets the link
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
		return c.JSONBlob(http.StatusOK, s.contractJSON)
	})
	public.GET("/errors", serveErrorCodes)
	mcpHandler, err := s.serveMCP(trusted)
	if err != nil {
		return nil, err
	}
	e.POST(mcpPath, mcpHandler)
	docs := echo.WrapHandler(swagger.Handler("../openapi.json"))
	public.GET("/docs", docs)
	public.GET("/docs/*", docs)
	public.GET("/", func(c echo.Context) error { return c.Redirect(http.StatusTemporaryRedirect, "docs/") })
	return e, nil
}

// withHead registers HEAD together with every GET. net/http omits the body.
type withHead struct{ *echo.Echo }

func (h withHead) GET(path string, handler echo.HandlerFunc, m ...echo.MiddlewareFunc) *echo.Route {
	h.HEAD(path, handler, m...)
	return h.Echo.GET(path, handler, m...)
}

// ipExtractor returns the client's address: that of the connection, or the last one in X-Forwarded-For that no trusted proxy has.
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

// ready answers 503 if the database is not available.
func (s *Server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ready(ctx); err != nil {
		return unavailable(err)
	}
	return c.String(http.StatusOK, "ok\n")
}

var codesPage = template.Must(template.New("codes").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Error codes of ReelTally</title>
<h1>Error codes</h1>
<table><thead><tr><th>Code<th>Status<th>Title<th>Meaning</thead>
{{range .}}<tr id="{{.Code}}"><td>{{.Code}}<td>{{.Status}}<td>{{.Title}}<td>{{.Meaning}}
{{end}}</table></html>
`))

// serveErrorCodes serves the page that the member type of every problem refers to.
func serveErrorCodes(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
	return codesPage.Execute(c.Response(), Codes())
}
