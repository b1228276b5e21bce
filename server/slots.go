package server

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// slots limits how many tasks run at the same time, for each organisation and in total. It is safe
// for concurrent use.
type slots struct {
	perOrganisation int           // maximum number of running tasks of each organisation
	total           chan struct{} // has one entry for each running task of all organisations together; nil if their number is not limited

	mu            sync.Mutex
	organisations map[uuid.UUID]*organisationSlots // organisations that have a running or waiting task
}

// organisationSlots limits and counts the tasks of one organisation.
type organisationSlots struct {
	slots chan struct{} // contains one entry for each running task of the organisation
	tasks int           // number of running and waiting tasks of the organisation
}

// newSlots returns a slots value with the given limits on running tasks. If maxTotal is 0, the
// total is not limited.
func newSlots(maxPerOrganisation, maxTotal int) *slots {
	s := &slots{perOrganisation: maxPerOrganisation, organisations: map[uuid.UUID]*organisationSlots{}}
	if maxTotal > 0 {
		s.total = make(chan struct{}, maxTotal)
	}
	return s
}

// acquire waits until a task of the organisation can run, or until ctx ends. The caller must call
// release when the task ends.
func (s *slots) acquire(ctx context.Context, organisation uuid.UUID) (release func(), err error) {
	own := s.addTask(organisation)
	select {
	case own.slots <- struct{}{}:
	case <-ctx.Done():
		s.removeTask(organisation)
		return nil, ctx.Err()
	}
	if s.total != nil {
		select {
		case s.total <- struct{}{}:
		case <-ctx.Done():
			<-own.slots
			s.removeTask(organisation)
			return nil, ctx.Err()
		}
	}
	return func() {
		if s.total != nil {
			<-s.total
		}
		<-own.slots
		s.removeTask(organisation)
	}, nil
}

// addTask adds one to the organisation's number of running and waiting tasks, and returns the slots of the organisation.
func (s *slots) addTask(organisation uuid.UUID) *organisationSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.organisations[organisation]
	if own == nil {
		own = &organisationSlots{slots: make(chan struct{}, s.perOrganisation)}
		s.organisations[organisation] = own
	}
	own.tasks++
	return own
}

// removeTask subtracts one from the organisation's number of running and waiting tasks. It deletes the slots of the organisation if no such
// task is left.
func (s *slots) removeTask(organisation uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.organisations[organisation]
	if own.tasks--; own.tasks == 0 {
		delete(s.organisations, organisation)
	}
}
