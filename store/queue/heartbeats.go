package queue

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// observedHeartbeats remembers the last heartbeat of each collector, and when this process first saw it.
type observedHeartbeats struct {
	mu   sync.Mutex
	last map[uuid.UUID]observedHeartbeat
}

// observedHeartbeat has two times of different clocks: sent is the time of the collector's clock, and seen is the time of this process's clock.
type observedHeartbeat struct{ sent, seen db.Instant }

// findDead records the last heartbeats of all collectors at the time now. It returns the collectors whose last heartbeat this process first saw more
// than deadAfter ago.
func (o *observedHeartbeats) findDead(heartbeats map[uuid.UUID]db.Instant, now db.Instant, deadAfter time.Duration) (dead []uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.last
	o.last = make(map[uuid.UUID]observedHeartbeat, len(heartbeats))
	for _, id := range slices.SortedFunc(maps.Keys(heartbeats), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
		h, ok := known[id]
		// If the clock of this process went back, the time begins again.
		if !ok || h.sent != heartbeats[id] || h.seen > now {
			h = observedHeartbeat{sent: heartbeats[id], seen: now}
		}
		if h.seen < now.Add(-deadAfter) {
			dead = append(dead, id)
		}
		o.last[id] = h
	}
	return dead
}
