package server

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// What a page of another origin may send and read. Any origin may call: a caller is known by the token alone, which no
// browser adds by itself, so that there is nothing to be tricked out of it.
const (
	corsRequestHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Mcp-Method, Mcp-Name, " +
		"Mcp-Protocol-Version, Mcp-Session-Id, X-Request-Id"
	corsAnswerHeaders = "API-Version, ETag, Idempotent-Replayed, Link, RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, " +
		"RateLimit-Reset, ReelTally-Sandbox, Retry-After, X-Request-Id"
	corsMaxAge = "86400" // seconds that a browser remembers what OPTIONS answered
)

// allowOrigins answers pages of other origins, on the paths of the contract and to assistants alone.
func (s *Server) allowOrigins(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		methods := s.operations.methods[c.Path()]
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
			h.Set(echo.HeaderAccessControlExposeHeaders, corsAnswerHeaders)
		}
		return next(c)
	}
}
