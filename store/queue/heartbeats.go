package queue

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Heartbeat records that a collector is running, and stores its sources and the forms of the targets that it can fetch (see Form). It also frees the
// targets that dead collectors have claimed: these targets become due immediately. A collector is dead if this process has seen no new heartbeat from it
// for longer than deadAfter. Only the clock of this process measures this time, so the clocks of two collectors may differ. Heartbeat returns the number
// of freed targets.
func (s *Queue) Heartbeat(ctx context.Context, collector uuid.UUID, deadAfter time.Duration, sources []Source, serves ...Form) (int64, error) {
	type collectorRow struct {
		ID      uuid.UUID
		SeenAt  db.Instant
		Serves  string
		Sources string
	}
	published, err := json.Marshal(sources)
	if err != nil {
		return 0, err
	}
	var freed int64
	var dead []uuid.UUID
	err = s.db.Tx(ctx, func(tx *gorm.DB) error {
		now := s.db.Now()
		err := tx.Table("collectors").Clauses(clause.OnConflict{
			Columns: db.Columns([]string{"id"}), DoUpdates: clause.AssignmentColumns([]string{"seen_at", "serves", "sources"}),
		}).Create(&collectorRow{collector, now, joinForms(serves), string(published)}).Error
		if err != nil {
			return err
		}
		collectors, heartbeats, err := readCollectors(tx)
		if err != nil {
			return err
		}
		silences := s.observed.record(heartbeats, now)
		freed, dead = 0, s.observed.findDead(silences, deadAfter)
		if len(dead) > 0 {
			r := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL WHERE claimed_by IN ?`, now, dead)
			if freed = r.RowsAffected; r.Error != nil {
				return r.Error
			}
		}
		// The row of a dead collector stays while the collector may still store an answer: see OldestFetch.
		gone, err := forgotten(collectors, silences)
		if err != nil || len(gone) == 0 {
			return err
		}
		return tx.Exec(`DELETE FROM collectors WHERE id IN ?`, gone).Error
	})
	if err == nil {
		s.observed.markFreed(dead)
	}
	return freed, err
}

// RemoveCollector removes a collector that is about to end. Targets that it has claimed and not acknowledged become due immediately. Before the call, the
// collector must have stored the answers to all its fetches.
func (s *Queue) RemoveCollector(ctx context.Context, collector uuid.UUID) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL WHERE claimed_by = ?`, s.db.Now(), collector).Error; err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM collectors WHERE id = ?`, collector).Error
	})
}

// observedHeartbeats remembers the last heartbeat of each collector, and when this process first saw it.
type observedHeartbeats struct {
	mu   sync.Mutex
	last map[uuid.UUID]observedHeartbeat
}

// observedHeartbeat has two times of different clocks: sent is the time of the collector's clock, and seen is the time of this process's clock.
type observedHeartbeat struct {
	sent, seen db.Instant
	freed      bool // this process has freed the targets of the collector since the heartbeat
}

// record stores the last heartbeat of each collector. For each collector, it returns how long ago this process first saw this heartbeat.
func (o *observedHeartbeats) record(heartbeats map[uuid.UUID]db.Instant, now db.Instant) (silences map[uuid.UUID]time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.last
	o.last, silences = make(map[uuid.UUID]observedHeartbeat, len(heartbeats)), make(map[uuid.UUID]time.Duration, len(heartbeats))
	for id, sent := range heartbeats {
		h, ok := known[id]
		// If the clock of this process went back, the silence starts again.
		if !ok || h.sent != sent || h.seen > now {
			h = observedHeartbeat{sent: sent, seen: now}
		}
		o.last[id], silences[id] = h, now.Sub(h.seen)
	}
	return silences
}

// findDead returns the collectors with a silence longer than deadAfter whose targets this process has not freed yet.
func (o *observedHeartbeats) findDead(silences map[uuid.UUID]time.Duration, deadAfter time.Duration) (dead []uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(silences), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
		if silences[id] > deadAfter && !o.last[id].freed {
			dead = append(dead, id)
		}
	}
	return dead
}

// markFreed records that this process has freed the targets of dead collectors.
func (o *observedHeartbeats) markFreed(dead []uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range dead {
		if h, ok := o.last[id]; ok {
			h.freed = true
			o.last[id] = h
		}
	}
}

const (
	// StoreTime is how long a collector may take to store the answer to a fetch, after the time limit of the fetch.
	StoreTime = time.Minute
	// forgetAfter, plus the longest fetch of a collector, is the silence after which the collector's row is deleted. After such a silence the collector
	// stores no more answers: it stopped claiming targets when its heartbeats began to fail, and its last fetches have ended.
	forgetAfter = 10 * time.Minute
)

// collectorFetches has the last heartbeat of a collector and its sources, as JSON.
type collectorFetches struct {
	ID      uuid.UUID
	SeenAt  db.Instant
	Sources string
}

// longestFetch returns the longest time limit for fetching videos of the collector's sources, or 0 if it is unknown.
func (c collectorFetches) longestFetch() (time.Duration, error) {
	var sources []Source
	if c.Sources == "" { // a collector of an earlier version
		return 0, nil
	}
	err := json.Unmarshal([]byte(c.Sources), &sources)
	var longest time.Duration
	for _, source := range sources {
		longest = max(longest, time.Duration(source.FetchSeconds)*time.Second)
	}
	return longest, err
}

// forgotten returns the collectors that can no longer store an answer. silences is the result of observedHeartbeats.record for the
// heartbeats of the collectors.
func forgotten(collectors []collectorFetches, silences map[uuid.UUID]time.Duration) (ids []uuid.UUID, err error) {
	for _, c := range collectors {
		longest, err := c.longestFetch()
		if err != nil {
			return nil, err
		}
		if silences[c.ID] > longest+forgetAfter {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// readCollectors returns all rows of the table collectors, including those of dead collectors, and the time of the last heartbeat of each.
func readCollectors(q *gorm.DB) (collectors []collectorFetches, heartbeats map[uuid.UUID]db.Instant, err error) {
	err = q.Raw(`SELECT id, seen_at, sources FROM collectors ORDER BY id`).Scan(&collectors).Error
	heartbeats = make(map[uuid.UUID]db.Instant, len(collectors))
	for _, c := range collectors {
		heartbeats[c.ID] = c.SeenAt
	}
	return collectors, heartbeats, err
}

// OldestFetch returns the earliest possible start of an unfinished fetch of videos. Every point with an earlier time is already stored. Like the times
// of points, the result is measured by the clocks of the collectors. A fetch whose time limit is unknown or below shortest is assumed to take up to
// shortest. A silent collector can still store answers, even after another collector has declared it dead. So OldestFetch includes it until this
// process has seen no new heartbeat for the collector's longest fetch plus forgetAfter.
func (s *Queue) OldestFetch(ctx context.Context, shortest time.Duration) (db.Instant, error) {
	// The clock of a collector shows at least the time of its last heartbeat, also if its clock is behind or its later heartbeats are missing. So its
	// unfinished fetches began at most longestFetch and StoreTime before that heartbeat.
	now := s.db.Now()
	oldest := now.Add(-shortest)
	collectors, heartbeats, err := readCollectors(s.db.Read(ctx))
	if err != nil {
		return 0, db.Translate(err)
	}
	silences := s.exported.record(heartbeats, now)
	gone, err := forgotten(collectors, silences)
	if err != nil {
		return 0, err
	}
	for _, c := range collectors {
		if !slices.Contains(gone, c.ID) {
			longest, err := c.longestFetch()
			if err != nil {
				return 0, err
			}
			oldest = min(oldest, c.SeenAt.Add(-max(longest, shortest)))
		}
	}
	return oldest.Add(-StoreTime), nil
}
