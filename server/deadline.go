package server

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"
)

// DefaultRequestTimeout is how long a request may take unless Options.RequestTimeout says otherwise.
const DefaultRequestTimeout = 30 * time.Second

// limitTime cancels the context of a request after the request timeout. Database statements and calls to other services then end, and
// the request is answered with 503.
func (s *Server) limitTime(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), s.requestTimeout)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}
