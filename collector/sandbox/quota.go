package sandbox

import (
	"sync"
	"time"
	_ "time/tzdata" // this import embeds the time zones, because YouTube's quotas end at midnight Pacific time
)

// dailyQuota is Google's default limit of quota units a day. It holds for each bucket of YouTube's quota.
const dailyQuota = 10_000

// researchQuota is the number of requests a day that TikTok's Research API allows.
const researchQuota = 1_000

// These are the buckets of YouTube's quota. videos.batchGetStats has a separate bucket. All other methods share bucketCommon.
const (
	bucketCommon = "common"
	bucketStats  = "videos.batchGetStats"
)

// quota counts the spent quota units of YouTube and of TikTok's Research API, separately for each day and bucket. No control call resets these
// counts.
type quota struct {
	mu      sync.Mutex
	pacific *time.Location
	spent   map[string]int // maps "YYYY-MM-DD BUCKET" to the number of spent units
}

func newQuota() *quota {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil { // LoadLocation cannot fail: the time zones are embedded
		pacific = time.FixedZone("PST", -8*60*60)
	}
	return &quota{pacific: pacific, spent: map[string]int{}}
}

// chargeYouTube spends one unit from a bucket of YouTube's daily quota. It returns false if no unit is left today. A day begins at midnight
// Pacific time.
func (q *quota) chargeYouTube(bucket string, now time.Time) bool {
	return q.spendUnit(bucket, now.In(q.pacific), dailyQuota)
}

// chargeResearch counts one request against the daily quota of TikTok's Research API. It returns false if the quota is used up. A day
// begins at midnight UTC.
func (q *quota) chargeResearch(now time.Time) bool {
	return q.spendUnit(sourceTikTokResearch, now.UTC(), researchQuota)
}

// spendUnit spends one unit of a bucket on t's date, in t's time zone. It returns false if the
// daily limit is reached.
func (q *quota) spendUnit(bucket string, t time.Time, dailyLimit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := t.Format(time.DateOnly) + " " + bucket
	if q.spent[key] >= dailyLimit {
		return false
	}
	q.spent[key]++
	return true
}
