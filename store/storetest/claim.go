package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// ClaimRequest returns a request for up to limit due targets of one platform and kind. It claims only targets that have no source yet. No
// target has a source until a collector publishes its sources.
func ClaimRequest(collector uuid.UUID, p link.Platform, kind queue.Kind, limit int, lease time.Duration, lanes ...queue.Lane) queue.ClaimRequest {
	return queue.ClaimRequest{Collector: collector, Kinds: []queue.Kind{kind}, Lanes: lanes, Candidates: 1000,
		Pick: func(due []queue.Target) ([]queue.Target, time.Duration) {
			var batch []queue.Target
			for _, t := range due {
				if t.Platform == p && len(batch) < limit {
					batch = append(batch, t)
				}
			}
			return batch, lease
		}}
}
