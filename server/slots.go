package server

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// slots limits how many tasks run at once, for each organisation and in total.
type slots struct {
	perOrganisation int           // slots of each organisation
	total           chan struct{} // one entry for each slot in use; nil if the total is not limited

	mu            sync.Mutex
	organisations map[uuid.UUID]*organisationSlots // those that have a slot or wait for one
}

type organisationSlots struct {
	slots chan struct{}
	users int // tasks that have a slot or wait for one
}

// newSlots returns slots with a limit for each organisation and a limit in total. A total of 0 means no limit.
func newSlots(perOrganisation, total int) *slots {
	s := &slots{perOrganisation: perOrganisation, organisations: map[uuid.UUID]*organisationSlots{}}
	if total > 0 {
		s.total = make(chan struct{}, total)
	}
	return s
}

// acquire waits for a slot of the organisation and then for a slot of the total. release returns both. If ctx ends first, acquire returns
// ctx.Err().
func (s *slots) acquire(ctx context.Context, organisation uuid.UUID) (release func(), err error) {
	own := s.addUser(organisation)
	select {
	case own.slots <- struct{}{}:
	case <-ctx.Done():
		s.removeUser(organisation)
		return nil, ctx.Err()
	}
	if s.total != nil {
		select {
		case s.total <- struct{}{}:
		case <-ctx.Done():
			<-own.slots
			s.removeUser(organisation)
			return nil, ctx.Err()
		}
	}
	return func() {
		if s.total != nil {
			<-s.total
		}
		<-own.slots
		s.removeUser(organisation)
	}, nil
}

// addUser returns the slots of an organisation, which it creates if they do not exist.
func (s *slots) addUser(organisation uuid.UUID) *organisationSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.organisations[organisation]
	if own == nil {
		own = &organisationSlots{slots: make(chan struct{}, s.perOrganisation)}
		s.organisations[organisation] = own
	}
	own.users++
	return own
}

// removeUser deletes the slots of an organisation if they have no user any more.
func (s *slots) removeUser(organisation uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.organisations[organisation]
	if own.users--; own.users == 0 {
		delete(s.organisations, organisation)
	}
}
