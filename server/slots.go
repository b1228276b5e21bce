package server

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// slots limits how much is done at once, for each organisation and in total.
type slots struct {
	each int           // slots of an organisation
	all  chan struct{} // one entry for each slot in use; nil if there is no limit in total

	mu            sync.Mutex
	organisations map[uuid.UUID]*organisationSlots // those that hold a slot or wait for one
}

type organisationSlots struct {
	slots chan struct{}
	users int // holders and waiters
}

// newSlots returns slots with a limit for each organisation, and one in total unless that is 0.
func newSlots(each, all int) *slots {
	s := &slots{each: each, organisations: map[uuid.UUID]*organisationSlots{}}
	if all > 0 {
		s.all = make(chan struct{}, all)
	}
	return s
}

// acquire waits for a slot of the organisation, then for one of the total. release returns both. The error is that of ctx.
func (s *slots) acquire(ctx context.Context, organisation uuid.UUID) (release func(), err error) {
	own := s.enter(organisation)
	select {
	case own.slots <- struct{}{}:
	case <-ctx.Done():
		s.leave(organisation)
		return nil, ctx.Err()
	}
	if s.all != nil {
		select {
		case s.all <- struct{}{}:
		case <-ctx.Done():
			<-own.slots
			s.leave(organisation)
			return nil, ctx.Err()
		}
	}
	return func() {
		if s.all != nil {
			<-s.all
		}
		<-own.slots
		s.leave(organisation)
	}, nil
}

func (s *slots) enter(organisation uuid.UUID) *organisationSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.organisations[organisation]
	if own == nil {
		own = &organisationSlots{slots: make(chan struct{}, s.each)}
		s.organisations[organisation] = own
	}
	own.users++
	return own
}

// leave removes the organisation when its last user has left.
func (s *slots) leave(organisation uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.organisations[organisation]
	if own.users--; own.users == 0 {
		delete(s.organisations, organisation)
	}
}
