package server

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// Limits on how many short links are resolved at once.
const (
	resolvesOfOrganisation = 16 // over all requests of one organisation
	resolvesInAll          = 64
)

// resolveSlots limits how many short links are resolved at once, per organisation and in total.
type resolveSlots struct {
	all chan struct{}

	mu            sync.Mutex
	organisations map[uuid.UUID]*organisationSlots // organisations with links that are being resolved or are waiting
}

type organisationSlots struct {
	slots chan struct{}
	users int // holders and waiters
}

func newResolveSlots() *resolveSlots {
	return &resolveSlots{all: make(chan struct{}, resolvesInAll), organisations: map[uuid.UUID]*organisationSlots{}}
}

// acquire waits for a slot of the organisation, then for one of the total. release returns both slots. The error is that of ctx.
func (r *resolveSlots) acquire(ctx context.Context, organisation uuid.UUID) (release func(), err error) {
	own := r.enter(organisation)
	select {
	case own.slots <- struct{}{}:
	case <-ctx.Done():
		r.leave(organisation)
		return nil, ctx.Err()
	}
	select {
	case r.all <- struct{}{}:
	case <-ctx.Done():
		<-own.slots
		r.leave(organisation)
		return nil, ctx.Err()
	}
	return func() {
		<-r.all
		<-own.slots
		r.leave(organisation)
	}, nil
}

func (r *resolveSlots) enter(organisation uuid.UUID) *organisationSlots {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.organisations[organisation]
	if own == nil {
		own = &organisationSlots{slots: make(chan struct{}, resolvesOfOrganisation)}
		r.organisations[organisation] = own
	}
	own.users++
	return own
}

// leave removes the organisation when its last user has left.
func (r *resolveSlots) leave(organisation uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.organisations[organisation]
	if own.users--; own.users == 0 {
		delete(r.organisations, organisation)
	}
}
