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

// These constants decide what the client does when a large part of Meta's rate limit is used.
const (
	// delayFrom is a percentage. If at least this part of Meta's rate limit is used, calls are delayed. The delay grows with the used part,
	// up to maxDelay.
	delayFrom = 75
	maxDelay  = time.Minute
	// stopFrom is a percentage. If at least this part of Meta's rate limit is used, no calls are made for some time.
	stopFrom = 95
	// defaultPause is the length of a pause if Meta does not report when calls are allowed again. Meta counts all calls of the last 60
	// minutes, including refused calls.
	defaultPause = 15 * time.Minute
)

// usageReport says how much of Meta's rate limits is used, according to the headers of one answer.
type usageReport struct {
	percent float64       // the highest usage of any limit, in percent
	regain  time.Duration // time until calls are allowed again; 0 if Meta reported no such time
}

// limitUsage says how much of a single rate limit of Meta is used, in the format of Meta's headers. The first three fields are percentages.
type limitUsage struct {
	Calls  float64 `json:"call_count"`
	CPU    float64 `json:"total_cputime"`
	Time   float64 `json:"total_time"`
	Regain float64 `json:"estimated_time_to_regain_access"` // minutes until calls are allowed again
}

// addLimit merges the usage of one limit into the report. The report keeps the used percentage of the most used limit, and the longest time
// until calls are allowed again.
func (r *usageReport) addLimit(l limitUsage) {
	r.percent = max(r.percent, l.Calls, l.CPU, l.Time)
	if l.Regain > 0 {
		r.regain = max(r.regain, min(time.Duration(min(l.Regain, fetch.MaxRetryAfter.Minutes())*float64(time.Minute)), fetch.MaxRetryAfter))
	}
}

// parseUsage returns how much of Meta's rate limits is used, from the headers of an answer. It ignores malformed headers.
func parseUsage(h http.Header, now time.Time) usageReport {
	var r usageReport
	var app limitUsage
	if json.Unmarshal([]byte(h.Get("X-App-Usage")), &app) == nil {
		r.addLimit(app)
	}
	var business map[string][]limitUsage
	if json.Unmarshal([]byte(h.Get("X-Business-Use-Case-Usage")), &business) == nil {
		for _, limits := range business {
			for _, l := range limits {
				r.addLimit(l)
			}
		}
	}
	if at := fetch.RetryAfter(h, now); r.percent >= stopFrom && !at.IsZero() {
		r.regain = max(at.Sub(now), time.Second)
	}
	return r
}

// pauseLength returns how long calls stop after the limit is used up. It is the time that Meta reported, or defaultPause if Meta reported no
// time.
func (r usageReport) pauseLength() time.Duration {
	if r.regain > 0 {
		return r.regain
	}
	return defaultPause
}

// usage has the times until which calls are delayed or stopped because of Meta's limits.
type usage struct {
	mu          sync.Mutex
	delayed     time.Time // calls are delayed until this time
	stopped     time.Time // calls are stopped until this time, because the limit is used up
	stopPercent float64   // the reported percentage that caused the stop
}

// recordReport stops the next calls if Meta reports a pause or the usage has reached stopFrom. It
// delays the calls if the usage has reached delayFrom.
func (u *usage) recordReport(r usageReport, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case r.regain > 0 || r.percent >= stopFrom:
		u.stopped, u.stopPercent = now.Add(r.pauseLength()), r.percent
	case r.percent >= delayFrom:
		u.delayed = now.Add(time.Duration((r.percent - delayFrom) / (stopFrom - delayFrom) * float64(maxDelay)))
	}
}

// mustDelayCalls returns true if no calls should be made at the given time, because much of the limit is used.
func (u *usage) mustDelayCalls(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.delayed)
}

// failureIfUsedUp returns a failure if no calls may be made at the given time because the limit is used up, and nil otherwise.
func (u *usage) failureIfUsedUp(now time.Time) *source.Failure {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !now.Before(u.stopped) {
		return nil
	}
	return &source.Failure{Class: source.RateLimited, RetryAt: u.stopped,
		Detail: fmt.Sprintf("no calls are made until %s, because %.0f %% of Meta's limit is used", u.stopped.UTC().Format(time.RFC3339), u.stopPercent)}
}
