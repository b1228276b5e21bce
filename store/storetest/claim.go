package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// ClaimRequest returns a request for up to limit due targets of one platform and kind. It claims from the queue of the targets that have no
// source yet, where all targets are as long as no collector has published its sources.
func ClaimRequest(collector uuid.UUID, p link.Platform, kind store.Kind, limit int, lease time.Duration, lanes ...store.Lane) store.ClaimRequest {
	return store.ClaimRequest{Collector: collector, Kinds: []store.Kind{kind}, Lanes: lanes, Candidates: 1000,
		Pick: func(due []store.Target) ([]store.Target, time.Duration) {
			var batch []store.Target
			for _, t := range due {
				if t.Platform == p && len(batch) < limit {
					batch = append(batch, t)
				}
			}
			return batch, lease
		}}
}
