package server

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/swagger"
	"github.com/reeltally/reeltally/store"
)

// maxBody is the largest body that is read.
const maxBody = 2 << 20

// routes builds echo: the middleware in its order, the operations of the contract, and the few routes beside it.
func (s *Server) routes(trusted []netip.Prefix) (*echo.Echo, error) {
	compress, err := compression()
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	e.IPExtractor = addressOf(trusted)
	// All of it is in e.Use and none in a group: a group would answer 404 where 405 is right. What is not an operation of
	// the contract passes through authenticate to validate untouched.
	e.Pre(forgiveFinalSlash)
	e.Use(
		echo.WrapMiddleware(func(h http.Handler) http.Handler { return compress(h) }), // outside of all that writes

		s.identifyRequest,   // before everything that names the request
		s.limitTime,         // must enclose everything that can wait, and the log, which writes the error of a request that timed out
		s.logRequests,       // outside of recover, so that a panic is logged with its status as well
		s.setHeaders,        // before anything that can answer
		s.allowOrigins,      // before authentication: a browser's preflight bears no token
		s.recoverPanics,     // inside of the log, outside of whatever may panic
		limitBody,           // before anything that can read; refuses only once somebody reads too much
		s.authenticate,      // before the limit, which depends on the tier; before validation, so that strangers learn nothing
		s.limitOrganisation, // before validation: invalid requests count
		s.checkScope,        // after the limit: its answers bear the quota headers
		s.limitInFlight,     // after what refuses cheaply, before what costs: reading the body, the database
		s.validate,          // after all that needs no body: it reads it

		s.repeatSafely,        // after validation: a key belongs to a request that the contract knows
		s.answerConditionally, // outside of all that follows: the tag is of what the operation answers, and of nothing else
		s.linkNextPage,        // must be outside the operations, which add the link
	)
	api.RegisterHandlers(headToo{e}, api.NewStrictHandler(s, nil))
	// The generated binding knows no place for the health checks and the contract itself: they are about the server, not
	// about anybody's data.
	both := headToo{e}
	both.GET("/livez", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	both.GET("/readyz", s.ready)
	both.GET("/openapi.yaml", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/yaml", []byte(reeltally.OpenAPI))
	})
	both.GET("/openapi.json", func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, s.contractJSON)
	})
	both.GET("/errors", explainCodes)
	assistants, err := s.serveMCP(trusted)
	if err != nil {
		return nil, err
	}
	e.POST(mcpPath, assistants)
	docs := echo.WrapHandler(swagger.Handler("../openapi.json"))
	both.GET("/docs", docs)
	both.GET("/docs/*", docs)
	both.GET("/", func(c echo.Context) error { return c.Redirect(http.StatusTemporaryRedirect, "docs/") })
	return e, nil
}

// forgiveFinalSlash lets the paths of refreshes end in a slash: programs send them in both forms.
func forgiveFinalSlash(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if u := c.Request().URL; strings.HasPrefix(u.Path, "/refresh/") && u.RawPath == "" {
			u.Path = strings.TrimSuffix(u.Path, "/")
		}
		return next(c)
	}
}

// headToo registers HEAD with every GET; net/http leaves the body out.
type headToo struct{ *echo.Echo }

func (h headToo) GET(path string, handler echo.HandlerFunc, m ...echo.MiddlewareFunc) *echo.Route {
	h.HEAD(path, handler, m...)
	return h.Echo.GET(path, handler, m...)
}

// addressOf takes a caller's address from the connection, or from X-Forwarded-For as far as trusted proxies wrote it.
func addressOf(trusted []netip.Prefix) echo.IPExtractor {
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

var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// identifyRequest takes X-Request-Id over when it is sane, else makes one.
func (s *Server) identifyRequest(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if !saneRequestID.MatchString(id) {
			id = store.NewID().String()
		}
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		return next(c)
	}
}

func requestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// logRequests writes one line a request. It names the route and not the path, which may hold a link, and never a query or
// a header.
func (s *Server) logRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now() //nolint:forbidigo // a duration, of which the injected clock knows nothing
		if err := next(c); err != nil {
			c.Error(err) // here, so that the line has the status
		}
		r, w := c.Request(), c.Response()
		attrs := []slog.Attr{
			slog.String("request_id", requestID(c)), slog.String("method", r.Method), slog.String("route", c.Path()),
			slog.Int("status", w.Status), slog.Int64("bytes", w.Size), slog.Duration("elapsed", time.Since(began)),
			slog.String("address", c.RealIP()),
		}
		if caller, ok := r.Context().Value(callerKey{}).(Caller); ok {
			attrs = append(attrs, slog.String("organisation_id", caller.Organisation.ID.String()),
				slog.String("token_id", caller.Token.ID.String()))
		}
		s.logger.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
		return nil
	}
}

// setHeaders sets what every answer bears.
func (s *Server) setHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("API-Version", s.operations.version)
		if s.sandbox {
			h.Set("ReelTally-Sandbox", "true")
		}
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if s.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if s.operations.of(c) != nil {
			h.Set("Cache-Control", "private, no-cache")
			h.Set("Vary", "Authorization, Accept-Encoding")
		}
		return next(c)
	}
}

func (s *Server) recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler: // net/http asks for this very value
				panic(p)
			default:
				s.logger.ErrorContext(c.Request().Context(), "panic", "request_id", requestID(c), "panic", p, "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return next(c)
	}
}

func limitBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		r.Body = http.MaxBytesReader(c.Response(), r.Body, maxBody)
		return next(c)
	}
}

// readyWithin bounds the health check, so that it is answered within two seconds.
const readyWithin = 1500 * time.Millisecond

func (s *Server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyWithin)
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

// explainCodes is where the type of every problem points to.
func explainCodes(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
	return codesPage.Execute(c.Response(), Codes())
}
