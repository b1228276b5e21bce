package server

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// slots limits how many tasks run at once, for each organisation and in total. It is safe for concurrent use.
type slots struct {
	perOrganisation int           // number of slots of each organisation
	total           chan struct{} // one entry for each slot in use; nil if the total is not limited

	mu            sync.Mutex
	organisations map[uuid.UUID]*organisationSlots // organisations with a task that has a slot or waits for one
}

// organisationSlots are the slots of one organisation.
type organisationSlots struct {
	slots chan struct{} // one entry for each slot in use
	users int           // number of tasks that have a slot or wait for one
}

// newSlots returns slots for at most perOrganisation tasks of each organisation and at most total tasks of all organisations. If total is 0,
// there is no limit for all organisations.
func newSlots(perOrganisation, total int) *slots {
	s := &slots{perOrganisation: perOrganisation, organisations: map[uuid.UUID]*organisationSlots{}}
	if total > 0 {
		s.total = make(chan struct{}, total)
	}
	return s
}

// acquire waits until the organisation and all organisations together have fewer running tasks than allowed. The caller must call release when
// its task ends. If ctx ends first, acquire returns ctx.Err().
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

// addUser counts a task of the organisation and returns the slots of the organisation.
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

// removeUser undoes addUser. It deletes the slots of an organisation that has no more tasks.
func (s *slots) removeUser(organisation uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.organisations[organisation]
	if own.users--; own.users == 0 {
		delete(s.organisations, organisation)
	}
}
