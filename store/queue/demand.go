package queue

import (
	"context"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Demand is the number of scheduled targets that have the same platform, kind, lane (priority) and pace (how fast their counts change).
type Demand struct {
	Platform link.Platform
	Kind     Kind
	Lane     Lane
	Pace     Pace
	Targets  int64
	// Sample is an example of a target with this platform and kind. It shows which calls such targets need. Its fields Lane and Pace are not set.
	Sample Target
}

// Demand returns the number of scheduled targets for each combination of platform, kind, lane and pace, in this order. It leaves out targets
// in the states StateGone and StateParked. It reads the whole queue.
func (s *Queue) Demand(ctx context.Context) ([]Demand, error) {
	var rows []struct {
		Platform link.Platform `gorm:"column:source"`
		Kind     Kind
		BaseLane Lane
		Pace     Pace
		Targets  int64
		Sample   string
	}
	err := s.db.Read(ctx).Raw(`SELECT source, kind, base_lane, pace, COUNT(*) AS targets, MIN(external_id) AS sample FROM fetch_targets
 WHERE bucket = ? AND state = ? GROUP BY source, kind, base_lane, pace ORDER BY source, kind, base_lane, pace`, Bucket, StateActive).Scan(&rows).Error
	if err != nil {
		return nil, db.Translate(err)
	}
	demand := make([]Demand, len(rows))
	for i, r := range rows {
		demand[i] = Demand{Platform: r.Platform, Kind: r.Kind, Lane: r.BaseLane, Pace: r.Pace, Targets: r.Targets}
		if i > 0 && demand[i-1].Platform == r.Platform && demand[i-1].Kind == r.Kind {
			demand[i].Sample = demand[i-1].Sample
			continue
		}
		err := s.db.Read(ctx).Raw(`SELECT source, kind, external_id, handle, link, native_id, source_id, depth FROM fetch_targets
 WHERE bucket = ? AND source = ? AND kind = ? AND external_id = ?`, Bucket, r.Platform, r.Kind, r.Sample).Scan(&demand[i].Sample).Error
		if err != nil {
			return nil, db.Translate(err)
		}
	}
	return demand, nil
}
