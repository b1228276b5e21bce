package server

import (
	"context"

	"github.com/google/uuid"
)

// SetMaxPageBytes sets the maximum size of a page of a list to n bytes. A page that would be larger has fewer rows than requested.
func (s *Server) SetMaxPageBytes(n int64) { s.maxPage = n }

// AcquireShareSlot takes one of the slots for concurrent requests of the organisation's share pages. It waits for a free slot until ctx ends.
func (s *Server) AcquireShareSlot(ctx context.Context, organisation uuid.UUID) (release func(), err error) {
	return s.inFlightShares.acquire(ctx, organisation)
}
