package store

import (
	"context"

	"github.com/reeltally/reeltally/store/link"
)

// Demand is how many targets of a platform and kind are fetched by the schedule in a lane and at a pace.
type Demand struct {
	Platform link.Platform
	Kind     Kind
	Lane     Lane
	Pace     Pace
	Targets  int64
	// Sample is one of them, whatever its lane and pace: what it costs to ask for such a target.
	Sample Target
}

// Demand counts the targets that are fetched by the schedule, in the order of platform, kind, lane and pace. Those that are
// gone or parked do not count. It reads the whole queue.
func (s *Store) Demand(ctx context.Context) ([]Demand, error) {
	var rows []struct {
		Source   link.Platform
		Kind     Kind
		BaseLane Lane
		Pace     Pace
		Targets  int64
		Sample   string
	}
	err := s.read.WithContext(ctx).Raw(`SELECT source, kind, base_lane, pace, COUNT(*) AS targets, MIN(external_id) AS sample FROM fetch_targets
 WHERE bucket = ? AND state = ? GROUP BY source, kind, base_lane, pace ORDER BY source, kind, base_lane, pace`, bucket, StateActive).Scan(&rows).Error
	if err != nil {
		return nil, translate(err)
	}
	demand := make([]Demand, len(rows))
	for i, r := range rows {
		demand[i] = Demand{Platform: r.Source, Kind: r.Kind, Lane: r.BaseLane, Pace: r.Pace, Targets: r.Targets}
		if i > 0 && demand[i-1].Platform == r.Source && demand[i-1].Kind == r.Kind {
			demand[i].Sample = demand[i-1].Sample
			continue
		}
		err := s.read.WithContext(ctx).Raw(`SELECT source, kind, external_id, handle, link, native_id, source_id, depth FROM fetch_targets
 WHERE bucket = ? AND source = ? AND kind = ? AND external_id = ?`, bucket, r.Source, r.Kind, r.Sample).Scan(&demand[i].Sample).Error
		if err != nil {
			return nil, translate(err)
		}
	}
	return demand, nil
}
