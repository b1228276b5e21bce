package sandbox

import (
	"sync"
	"time"
	_ "time/tzdata" // a day of quota is a Pacific day, also on a machine without time zones
)

// dailyQuota is Google's default, of each bucket.
const dailyQuota = 10_000

// researchQuota is how many requests a day an approved researcher has.
const researchQuota = 1_000

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

// charge takes one unit of YouTube's, false when none is left of the day.
func (q *quota) charge(bucket string, now time.Time) bool {
	return q.take(bucket, now.In(q.pacific), dailyQuota)
}

// chargeResearch takes one request of TikTok's Research API, whose day is a UTC day.
func (q *quota) chargeResearch(now time.Time) bool {
	return q.take(sourceTikTokResearch, now.UTC(), researchQuota)
}

func (q *quota) take(bucket string, day time.Time, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := day.Format(time.DateOnly) + " " + bucket
	if q.spent[key] >= limit {
		return false
	}
	q.spent[key]++
	return true
}
