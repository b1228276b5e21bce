package server

import "github.com/labstack/echo/v4"

// maxRequestsPerOrganisation is how many requests of one organisation this server handles at once. It is half of the smallest pool of
// database connections, so that one organisation cannot use up all connections.
const maxRequestsPerOrganisation = 4

// limitInFlight makes a request wait while maxRequestsPerOrganisation other requests of its organisation are in progress.
func (s *Server) limitInFlight(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.operations.match(c) == nil {
			return next(c)
		}
		ctx := c.Request().Context()
		release, err := s.inFlight.acquire(ctx, CallerFrom(ctx).Organisation.ID)
		if err != nil {
			return err
		}
		defer release()
		return next(c)
	}
}
