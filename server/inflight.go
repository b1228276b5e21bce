package server

import "github.com/labstack/echo/v4"

// requestsOfOrganisation is how many requests of one organisation this server works on at once. It is half of the smallest pool of
// database connections, so that an organisation at its full rate leaves the other half to everybody else.
const requestsOfOrganisation = 4

// limitInFlight makes a request wait while requestsOfOrganisation others of its organisation are worked on.
func (s *Server) limitInFlight(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.operations.of(c) == nil {
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
