package sandbox

import (
	"sync"
	"time"
	_ "time/tzdata" // quotas are per Pacific day; works without installed zone files
)

// dailyQuota is Google's default for each bucket.
const dailyQuota = 10_000

// researchQuota is the number of requests per day to TikTok's Research API.
const researchQuota = 1_000

// The buckets of YouTube's quota.
const (
	bucketCommon = "common"
	bucketStats  = "videos.batchGetStats"
)

// quota counts the spent units by bucket and day. Deleting faults or the call log does not reset it.
type quota struct {
	mu      sync.Mutex
	pacific *time.Location
	spent   map[string]int
}

func newQuota() *quota {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil { // impossible, because the zones are built in
		pacific = time.FixedZone("PST", -8*60*60)
	}
	return &quota{pacific: pacific, spent: map[string]int{}}
}

// charge spends a unit of a YouTube bucket. It returns false if no unit is left for this Pacific day.
func (q *quota) charge(bucket string, now time.Time) bool {
	return q.take(bucket, now.In(q.pacific), dailyQuota)
}

// chargeResearch spends a request of TikTok's Research API. It returns false if no request is left for this UTC day.
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
