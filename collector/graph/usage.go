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

// The client reacts to the used percentage of Meta's limits.
const (
	// From delayFrom percent, calls are delayed. The delay grows with the percentage, up to maxDelay.
	delayFrom = 75
	maxDelay  = time.Minute
	// From stopFrom percent, no calls are made for some time.
	stopFrom = 95
	// defaultPause is the pause if Meta does not report when the limit is available again. Meta counts a rolling hour, and refused calls
	// count as well.
	defaultPause = 15 * time.Minute
)

// usageReport is the usage in the headers of one answer.
type usageReport struct {
	percent float64       // the highest used percentage of all limits
	regain  time.Duration // the time until calls are allowed again; 0 if they are allowed
}

// limitUsage is the used percentage of one limit.
type limitUsage struct {
	Calls  float64 `json:"call_count"`
	CPU    float64 `json:"total_cputime"`
	Time   float64 `json:"total_time"`
	Regain float64 `json:"estimated_time_to_regain_access"` // minutes
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

// pause returns how long no calls are made if the limit is used up.
func (r usageReport) pause() time.Duration {
	if r.regain > 0 {
		return r.regain
	}
	return defaultPause
}

// usage is the state of Meta's limits.
type usage struct {
	mu          sync.Mutex
	delayed     time.Time // the next call is delayed until then
	stopped     time.Time // no calls are made until then, because the limit is used up
	stopPercent float64   // the used percentage that stopped the calls
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

// isDelayed returns true if the next call must wait.
func (u *usage) isDelayed(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.delayed)
}

// exhausted returns the failure for a call that must not be made, or nil if calls are allowed.
func (u *usage) exhausted(now time.Time) *source.Failure {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !now.Before(u.stopped) {
		return nil
	}
	return &source.Failure{Class: source.RateLimited, RetryAt: u.stopped,
		Detail: fmt.Sprintf("%.0f %% of Meta's limit is used: no calls are made until %s", u.stopPercent, u.stopped.UTC().Format(time.RFC3339))}
}
