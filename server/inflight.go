package server

import (
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// maxRequestsPerOrganisation limits the concurrent requests of one organisation on this server. Requests of its share pages have their own
// limit, maxShareRequestsPerOrganisation. One organisation cannot use all connections to the database, because the pool for reads has more
// connections than both limits together: by default at least 16 on SQLite and 8 on PostgreSQL.
const maxRequestsPerOrganisation = 4

// maxShareRequestsPerOrganisation limits the concurrent requests of the share pages of one organisation on this server. Share pages have
// their own limit, so that their visitors cannot delay the programs of the organisation.
const maxShareRequestsPerOrganisation = 2

// limitInFlight is a middleware that limits the concurrent requests of an organisation. If the organisation has reached the limit, further
// requests of the organisation wait.
func (s *Server) limitInFlight(c echo.Context, _ *operation, next echo.HandlerFunc) error {
	ctx := c.Request().Context()
	caller := CallerFrom(ctx)
	limit := s.inFlight
	if caller.Token.ID == uuid.Nil { // only requests of share pages have no token
		limit = s.inFlightShares
	}
	release, err := limit.acquire(ctx, caller.Organisation.ID)
	if err != nil {
		return err
	}
	defer release()
	return next(c)
}
