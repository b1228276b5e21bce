package sandbox

import (
	"sync"
	"time"
	_ "time/tzdata" // a day of quota is a Pacific day, also on a machine without time zones
)

// dailyQuota is Google's default, of each bucket.
const dailyQuota = 10_000

// The buckets of YouTube's quota.
const (
	bucketCommon = "common"
	bucketStats  = "videos.batchGetStats"
)

// quota counts units by bucket and Pacific day. It outlives faults and the call log, as the real one would.
type quota struct {
	mu      sync.Mutex
	pacific *time.Location
	spent   map[string]int
}

func newQuota() *quota {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil { // not with the zones built in
		pacific = time.FixedZone("PST", -8*60*60)
	}
	return &quota{pacific: pacific, spent: map[string]int{}}
}

// charge takes one unit, false when none is left of the day.
func (q *quota) charge(bucket string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := now.In(q.pacific).Format(time.DateOnly) + " " + bucket
	if q.spent[key] >= dailyQuota {
		return false
	}
	q.spent[key]++
	return true
}
