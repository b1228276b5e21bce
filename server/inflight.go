package server

import (
	"sync"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// maxRequestsPerOrganisation limits how many requests of one organisation this server works on at the same time. Requests of its share pages have
// their own limit, maxShareRequestsPerOrganisation. One organisation cannot use all connections to the database, because the pool for reads has more
// connections than both limits together. By default, the pool has at least 16 connections on SQLite and 8 on PostgreSQL.
const maxRequestsPerOrganisation = 4

// maxShareRequestsPerOrganisation limits how many requests of the share pages of one organisation this server works on at the same time. Share pages
// have their own limit, so that their visitors cannot delay the programs of the organisation.
const maxShareRequestsPerOrganisation = 2

// openRequestsFactor is the limit of an organisation's open requests, as a multiple of the limit of requests on which this server works. An open request
// can also be one whose body still arrives, or whose response is still being sent. The limit of open requests limits the memory for their bodies and
// responses.
const openRequestsFactor = 3

// requestLimits limits the concurrent requests of each organisation.
type requestLimits struct {
	open *slots // requests from their start to the last byte of their response
	work *slots // requests between the last byte of their body and the first byte of their response
}

func newRequestLimits(maxPerOrganisation int) requestLimits {
	return requestLimits{open: newSlots(openRequestsFactor*maxPerOrganisation, 0), work: newSlots(maxPerOrganisation, 0)}
}

// limitInFlight is a middleware that limits the concurrent requests of an organisation. If the organisation has reached a limit, further requests
// of the organisation wait. A caller who slowly sends a body or slowly reads a response delays no other requests, unless there are many such callers.
func (s *Server) limitInFlight(c echo.Context, op *operation, next echo.HandlerFunc) error {
	ctx := c.Request().Context()
	state := stateFrom(ctx)
	limits := s.inFlight
	if state.Token.ID == uuid.Nil { // only requests of share pages have no token
		limits = s.inFlightShares
	}
	end, err := limits.open.acquire(ctx, state.Organisation.ID)
	if err != nil {
		return err
	}
	defer end()
	if op.hasBody {
		if state.body, err = readAll(c.Request().Body); err != nil {
			return err
		}
	}
	release, err := limits.work.acquire(ctx, state.Organisation.ID)
	if err != nil {
		return err
	}
	release = sync.OnceFunc(release)
	defer release()
	c.Response().Before(release) // the database is read before the first byte of a response is sent
	return next(c)
}
