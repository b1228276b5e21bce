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

// How the client keeps to limits of which the platform tells in percent.
const (
	// From slowFrom percent on calls are spread, the more the nearer the limit is: up to a minute apart.
	slowFrom  = 75
	stopFrom  = 95
	slowestBy = time.Minute
	// restAfterLimit is how long nothing is asked when the platform does not say for how long: its hour is a rolling one, and
	// calls in vain count as well.
	restAfterLimit = 15 * time.Minute
)

// reading is what one answer says of the limits.
type reading struct {
	percent float64       // of the limit that is nearest
	regain  time.Duration // until the platform answers again; 0 while it does
}

// share is one of the limits, in percent.
type share struct {
	Calls  float64 `json:"call_count"`
	CPU    float64 `json:"total_cputime"`
	Time   float64 `json:"total_time"`
	Regain float64 `json:"estimated_time_to_regain_access"` // minutes
}

func (r *reading) add(s share) {
	r.percent = max(r.percent, s.Calls, s.CPU, s.Time)
	if s.Regain > 0 {
		r.regain = max(r.regain, min(time.Duration(min(s.Regain, fetch.MaxRetryAfter.Minutes())*float64(time.Minute)), fetch.MaxRetryAfter))
	}
}

// usageOf reads the headers that tell of the limits. What cannot be understood says nothing.
func usageOf(h http.Header, now time.Time) reading {
	var r reading
	var app share
	if json.Unmarshal([]byte(h.Get("X-App-Usage")), &app) == nil {
		r.add(app)
	}
	var business map[string][]share
	if json.Unmarshal([]byte(h.Get("X-Business-Use-Case-Usage")), &business) == nil {
		for _, shares := range business {
			for _, s := range shares {
				r.add(s)
			}
		}
	}
	if at := fetch.RetryAfter(h, now); r.percent >= stopFrom && !at.IsZero() {
		r.regain = max(at.Sub(now), time.Second)
	}
	return r
}

// rest is for how long nothing is asked once the limit is used up.
func (r reading) rest() time.Duration {
	if r.regain > 0 {
		return r.regain
	}
	return restAfterLimit
}

// usage is what is known of the limits now.
type usage struct {
	mu        sync.Mutex
	next      time.Time // calls are spread: before it there is none
	stopped   time.Time // the limit is used up until then
	exhaustAt float64
}

// note takes in what an answer said at a time.
func (u *usage) note(r reading, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case r.regain > 0 || r.percent >= stopFrom:
		u.stopped, u.exhaustAt = now.Add(r.rest()), r.percent
	case r.percent >= slowFrom:
		u.next = now.Add(time.Duration((r.percent - slowFrom) / (stopFrom - slowFrom) * float64(slowestBy)))
	}
}

func (u *usage) spreads(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.next)
}

// exhausted is the failure of a call that is not made, nil when it may be made.
func (u *usage) exhausted(now time.Time) *source.Failure {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !now.Before(u.stopped) {
		return nil
	}
	return &source.Failure{Class: source.RateLimited, RetryAt: u.stopped,
		Detail: fmt.Sprintf("%.0f %% of the platform's limit are used up; not asked until %s", u.exhaustAt, u.stopped.UTC().Format(time.RFC3339))}
}
