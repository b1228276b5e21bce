package graph

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// Limits of the client's requests, by the used percentage that Meta reports.
const (
	// delayFrom is a percentage of Meta's rate limit. If Meta reports that at least this part is used, calls are delayed. The delay grows with
	// the used percentage, up to maxDelay.
	delayFrom = 75
	maxDelay  = time.Minute
	// stopFrom is a percentage of Meta's rate limit. If Meta reports that at least this part is used, no calls are made for some time.
	stopFrom = 95
	// defaultPause is the pause if Meta does not report when calls are allowed again. Meta counts the last 60 minutes, and counts refused
	// calls too.
	defaultPause = 15 * time.Minute
)

// usageReport is the usage of Meta's limits, as reported in the headers of one answer.
type usageReport struct {
	percent float64       // the highest used percentage of all reported limits
	regain  time.Duration // the time until calls are allowed again; 0 if they are allowed
}

// limitUsage is the used percentage of one limit.
type limitUsage struct {
	Calls  float64 `json:"call_count"`
	CPU    float64 `json:"total_cputime"`
	Time   float64 `json:"total_time"`
	Regain float64 `json:"estimated_time_to_regain_access"` // time in minutes
}

func (r *usageReport) add(l limitUsage) {
	r.percent = max(r.percent, l.Calls, l.CPU, l.Time)
	if l.Regain > 0 {
		r.regain = max(r.regain, min(time.Duration(min(l.Regain, fetch.MaxRetryAfter.Minutes())*float64(time.Minute)), fetch.MaxRetryAfter))
	}
}

// usageOf reads the usage from the headers of an answer. It ignores malformed headers.
func usageOf(h http.Header, now time.Time) usageReport {
	var r usageReport
	var app limitUsage
	if json.Unmarshal([]byte(h.Get("X-App-Usage")), &app) == nil {
		r.add(app)
	}
	var business map[string][]limitUsage
	if json.Unmarshal([]byte(h.Get("X-Business-Use-Case-Usage")), &business) == nil {
		for _, limits := range business {
			for _, l := range limits {
				r.add(l)
			}
		}
	}
	if at := fetch.RetryAfter(h, now); r.percent >= stopFrom && !at.IsZero() {
		r.regain = max(at.Sub(now), time.Second)
	}
	return r
}

// pause returns how long no calls are made. It returns 0 if the limit is not used up.
func (r usageReport) pause() time.Duration {
	if r.regain > 0 {
		return r.regain
	}
	return defaultPause
}

// usage is the current usage of Meta's limits.
type usage struct {
	mu          sync.Mutex
	delayed     time.Time // until then, the next call is delayed
	stopped     time.Time // until then, no calls are made, because the limit is used up
	stopPercent float64   // the reported percentage because of which no calls are made
}

// record updates the state with the usage of an answer.
func (u *usage) record(r usageReport, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case r.regain > 0 || r.percent >= stopFrom:
		u.stopped, u.stopPercent = now.Add(r.pause()), r.percent
	case r.percent >= delayFrom:
		u.delayed = now.Add(time.Duration((r.percent - delayFrom) / (stopFrom - delayFrom) * float64(maxDelay)))
	}
}

// isDelayed returns true if the next call must still be delayed.
func (u *usage) isDelayed(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.delayed)
}

// exhausted returns a failure if no calls may be made now because the limit is used up, and nil otherwise.
func (u *usage) exhausted(now time.Time) *source.Failure {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !now.Before(u.stopped) {
		return nil
	}
	return &source.Failure{Class: source.RateLimited, RetryAt: u.stopped,
		Detail: fmt.Sprintf("%.0f %% of Meta's limit is used: no calls are made until %s", u.stopPercent, u.stopped.UTC().Format(time.RFC3339))}
}
