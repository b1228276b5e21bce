package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/store"
)

// maxBody is the maximum size of a request body, in bytes. A larger body is refused with status 413.
const maxBody = 2 << 20

// defaultRequestTimeout is the time limit of a request if Options.RequestTimeout is zero.
const defaultRequestTimeout = 30 * time.Second

// trimTrailingSlash returns a middleware that removes a slash at the end of a path below /refresh/, because some clients send this slash.
func trimTrailingSlash() echo.MiddlewareFunc {
	return middleware.RemoveTrailingSlashWithConfig(middleware.TrailingSlashConfig{Skipper: func(c echo.Context) bool {
		u := c.Request().URL
		return !strings.HasPrefix(u.Path, "/refresh/") || u.RawPath != ""
	}})
}

// minCompressedSize is the minimum size, in bytes, of a response that is compressed. Compressing a smaller response saves too few bytes for
// the CPU time that it takes.
const minCompressedSize = 1024

// newCompressor returns a middleware that compresses responses with zstd or gzip, if Accept-Encoding
// allows it. Responses that already have a Content-Encoding stay unchanged.
func newCompressor() (func(http.Handler) http.HandlerFunc, error) {
	// The ETag suffix names the encoding, because different bytes need different ETags (RFC 9110,
	// section 8.8.1).
	return gzhttp.NewWrapper(gzhttp.MinSize(minCompressedSize), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.PreferZstd(true),
		gzhttp.SuffixETag("-gzip"), gzhttp.SetContentType(false))
}

// validRequestID matches the values of X-Request-Id that the server accepts from a caller.
var validRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// requestIDs is a middleware that copies X-Request-Id from the request to the response. If the request has no valid X-Request-Id, the
// middleware generates a new id.
func requestIDs(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if id == "" || !validRequestID.MatchString(id) {
			id = store.NewID().String()
		}
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		return next(c)
	}
}

// requestID returns the request id, which the middleware requestIDs has stored in the X-Request-Id header of the response.
func requestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// limitRequestTime returns a middleware that cancels a request's context after
// Server.requestTimeout. This ends the request's database statements and its requests to other
// servers.
func (s *Server) limitRequestTime() echo.MiddlewareFunc {
	return middleware.ContextTimeoutWithConfig(middleware.ContextTimeoutConfig{
		Timeout:      s.requestTimeout,
		ErrorHandler: func(err error, _ echo.Context) error { return err }, // the error is returned unchanged, so that writeError answers with status 503
	})
}

// logRequests is a middleware that writes one log line for each request. The line contains
// neither the path nor the query.
func (s *Server) logRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now() //nolint:forbidigo // the real time, because a test can stop the clock s.now
		if err := next(c); err != nil {
			c.Error(err) // this call sends the error response now, so that the log line contains its status
		}
		r, w := c.Request(), c.Response()
		// The route is logged instead of the path, because a path can contain a link.
		attrs := []slog.Attr{
			slog.String("request_id", requestID(c)), slog.String("method", r.Method), slog.String("route", c.Path()),
			slog.Int("status", w.Status), slog.Int64("bytes", w.Size), slog.Duration("elapsed", time.Since(start)),
			slog.String("address", c.RealIP()),
		}
		if state := stateFrom(r.Context()); state != nil {
			attrs = append(attrs, slog.String("organisation_id", state.Organisation.ID.String()),
				slog.String("token_id", state.Token.ID.String()))
		}
		s.logger.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
		return nil
	}
}

// setHeaders is a middleware that sets the headers of every response, for example API-Version.
func (s *Server) setHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("API-Version", s.contract.version)
		// This function runs immediately before the headers are sent, because the database can get its first numbers while the handler runs. The
		// header ReelTally-Sandbox says whether these numbers are made up.
		c.Response().Before(func() {
			if s.dataIsMadeUp(c) {
				h.Set(reeltally.SandboxHeader, "true")
			}
			if s.draining.Load() {
				h.Set("Connection", "close")
			}
		})
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if s.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if s.contract.requestedOperation(c) != nil {
			h.Set("Cache-Control", "private, no-cache")
			h.Set("Vary", "Authorization, Accept, Accept-Encoding")
		}
		return next(c)
	}
}

// dataIsMadeUp returns true if the sandbox made up the numbers in the database. The server calls this method before it sends each response. Only the
// response to a successful operation causes a read of the database.
func (s *Server) dataIsMadeUp(c echo.Context) bool {
	ctx := c.Request().Context()
	state := stateFrom(ctx)
	if state == nil || c.Response().Status >= http.StatusBadRequest {
		return s.dataKind.last()
	}
	if state.operation.group == groupAuthenticate {
		return s.dataKind.readRarely(ctx)
	}
	return s.dataKind.read(ctx)
}

// The values of the CORS headers. Every origin is allowed, because only the token identifies a
// caller, and browsers never add the token by themselves.
const (
	corsRequestHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Mcp-Method, Mcp-Name, " +
		"Mcp-Protocol-Version, Mcp-Session-Id, X-Request-Id"
	corsResponseHeaders = "API-Version, ETag, Exported-Until, Idempotent-Replayed, Link, RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, " +
		"RateLimit-Reset, ReelTally-Sandbox, Retry-After, WWW-Authenticate, X-Request-Id"
	corsMaxAge = "86400" // number of seconds for which a browser caches the response to a preflight request
)

// allowOrigins is a middleware that sets the CORS headers in the responses of all API operations and of /mcp.
func (s *Server) allowOrigins(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		methods := s.contract.methods[c.Path()]
		if c.Path() == mcpPath {
			methods = []string{http.MethodPost}
		}
		if methods == nil {
			return next(c)
		}
		h := c.Response().Header()
		h.Set(echo.HeaderAccessControlAllowOrigin, "*")
		if c.Request().Method == http.MethodOptions {
			h.Set(echo.HeaderAccessControlAllowMethods, strings.Join(methods, ", "))
			h.Set(echo.HeaderAccessControlAllowHeaders, corsRequestHeaders)
			h.Set(echo.HeaderAccessControlMaxAge, corsMaxAge)
		} else {
			h.Set(echo.HeaderAccessControlExposeHeaders, corsResponseHeaders)
		}
		return next(c)
	}
}

// recoverPanics returns a middleware that logs a panic with its stack and returns an error. The
// response then has status 500.
func (s *Server) recoverPanics() echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{
		StackSize:           64 << 10,
		DisableStackAll:     true,
		DisableErrorHandler: true, // this middleware must not call the error handler, because logRequests calls it
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			s.logger.ErrorContext(c.Request().Context(), "panic", "request_id", requestID(c), "panic", err, "stack", string(stack))
			return fmt.Errorf("panic: %v", err) //nolint:errorlint // not %w, because writeError could then answer with a status other than 500
		},
	})
}

// limitBody is a middleware that limits a request body to maxBody bytes: reading more bytes fails. If the operation does not read the body,
// a larger body is accepted.
func limitBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		r.Body = http.MaxBytesReader(c.Response(), r.Body, maxBody)
		return next(c)
	}
}
