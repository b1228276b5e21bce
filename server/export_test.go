package server

import (
	"context"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
)

// SetMaxPageBytes sets the maximum size of a page of a list to n bytes. A page that would be larger has fewer rows than requested.
func (s *Server) SetMaxPageBytes(n int64) { s.maxPage = n }

// MaxConcurrentRequests is the maximum number of concurrent requests of an organisation, including the requests of its share pages.
const MaxConcurrentRequests = maxRequestsPerOrganisation + maxShareRequestsPerOrganisation

// Store returns the database of the server.
func (s *Server) Store() *store.Store { return s.store }

// AcquireSlot takes one of the slots for concurrent requests of the organisation. It waits for a free slot until ctx ends. The organisation's share pages
// have other slots.
func (s *Server) AcquireSlot(ctx context.Context, organisation uuid.UUID) (release func(), err error) {
	return s.inFlight.work.acquire(ctx, organisation)
}

// UsedSlots returns the number of slots that requests of the organisation hold. It does not count the slots of the share pages.
func (s *Server) UsedSlots(organisation uuid.UUID) int {
	s.inFlight.work.mu.Lock()
	defer s.inFlight.work.mu.Unlock()
	if own := s.inFlight.work.organisations[organisation]; own != nil {
		return len(own.slots)
	}
	return 0
}

// AcquireShareSlot takes one of the slots for concurrent requests of the organisation's share pages. It waits for a free slot until ctx ends.
func (s *Server) AcquireShareSlot(ctx context.Context, organisation uuid.UUID) (release func(), err error) {
	return s.inFlightShares.work.acquire(ctx, organisation)
}

// SendDueWebhooks sends all due events, and returns after the last attempt.
func (s *Server) SendDueWebhooks(ctx context.Context) error {
	defer s.webhooks.transport.CloseIdleConnections()
	sending := newSendingWebhooks()
	for {
		started, err := s.webhooks.startSenders(ctx, sending)
		sending.wait.Wait()
		if err != nil || started == 0 {
			return err
		}
	}
}
