package collector

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Slots are the calls that a source takes at once, shared fairly between those who wait for answers. A slot that becomes free
// goes to whoever has the fewest, and the last one is kept for who has none: a call may take long, and who comes new cannot wait
// for it. All methods may be called concurrently.
type Slots struct {
	mu      sync.Mutex
	free    int
	keep    int // 1, unless there is one slot alone
	held    map[uuid.UUID]int
	waiting []*ticket // in the order in which they came
}

type ticket struct {
	who     uuid.UUID
	granted chan struct{}
}

// NewSlots returns n slots, at least one.
func NewSlots(n int) *Slots {
	return &Slots{free: max(1, n), keep: min(1, max(0, n-1)), held: map[uuid.UUID]int{}}
}

// Take waits for a slot in which a call that may take so long has its time, and returns what gives it back. The error is that of
// ctx, or ErrNoTime.
func (s *Slots) Take(ctx context.Context, call time.Duration) (give func(), err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-call), ErrNoTime)
		defer cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	who, _ := ctx.Value(askingKey{}).(uuid.UUID)
	t := &ticket{who, make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, t)
	s.grant()
	s.mu.Unlock()
	select {
	case <-t.granted:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if at := slices.Index(s.waiting, t); at >= 0 {
			s.waiting = slices.Delete(s.waiting, at, at+1)
		} else {
			s.giveBack(who)
		}
		return nil, context.Cause(ctx)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.giveBack(who)
	}, nil
}

func (s *Slots) giveBack(who uuid.UUID) {
	s.free++
	if s.held[who]--; s.held[who] == 0 {
		delete(s.held, who)
	}
	s.grant()
}

// grant gives free slots to those who wait.
func (s *Slots) grant() {
	for s.free > 0 && len(s.waiting) > 0 {
		next := slices.MinFunc(s.waiting, func(a, b *ticket) int { return s.held[a.who] - s.held[b.who] })
		if s.free <= s.keep && s.held[next.who] > 0 {
			return
		}
		s.waiting = slices.DeleteFunc(s.waiting, func(t *ticket) bool { return t == next })
		s.free--
		s.held[next.who]++
		close(next.granted)
	}
}
