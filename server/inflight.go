package server

import "github.com/labstack/echo/v4"

// maxRequestsPerOrganisation limits the concurrent requests of one organisation on this server. The
// smallest allowed database connection pool is twice as large, so one organisation cannot use all
// connections.
const maxRequestsPerOrganisation = 4

// limitInFlight is a middleware that limits the concurrent requests of an organisation. While the server handles maxRequestsPerOrganisation
// requests of the organisation, further requests of the organisation wait.
func (s *Server) limitInFlight(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.contract.requestedOperation(c) == nil {
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
