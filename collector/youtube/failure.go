package youtube

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

var errShape = errors.New("the answer is JSON of another shape than YouTube's")

// apiError is the body of an answer that is no success.
type apiError struct {
	Error struct {
		Message string `json:"message"`
		Errors  []struct {
			Reason string `json:"reason"`
		} `json:"errors"`
		Details []struct {
			Reason   string         `json:"reason"`
			Metadata map[string]any `json:"metadata"`
		} `json:"details"`
	} `json:"error"`
}

// reasons lists the error's reasons, the more precise ones first.
func (e apiError) reasons() []string {
	var out []string
	for _, d := range e.Error.Details {
		// The newer quota system says "rate limit exceeded" for the daily quota too, and tells them apart only here.
		if name, _ := d.Metadata["quota_limit"].(string); strings.Contains(name, "PerDay") {
			out = append(out, "dailyLimitExceeded")
		}
		out = append(out, d.Reason)
	}
	for _, r := range e.Error.Errors {
		out = append(out, r.Reason)
	}
	return out
}

// classOf is what a reason means; ok is false for a reason that says no more than the status.
func classOf(reason string) (class source.Class, ok bool) {
	switch reason {
	case "quotaExceeded", "dailyLimitExceeded":
		return source.QuotaSpent, true
	case "rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED":
		return source.RateLimited, true
	case "API_KEY_INVALID", "keyInvalid", "keyExpired", "accessNotConfigured", "SERVICE_DISABLED", "ipRefererBlocked",
		"API_KEY_IP_ADDRESS_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED", "API_KEY_SERVICE_BLOCKED", "authError":
		return source.AuthFailed, true
	case "backendError", "processingFailure", "internalError":
		return source.Temporary, true
	default:
		return "", false
	}
}

// failure says what an answer that is no success means for the source and for the budget that paid for the call.
func (s *Source) failure(res *fetch.Response, broken error, bucket string) *source.Failure {
	now := s.now()
	f := &source.Failure{
		Class:   fetch.ClassOf(res.Status, broken == nil),
		RetryAt: fetch.RetryAfter(res.Header, now),
		Detail:  fmt.Sprintf("HTTP %d", res.Status),
	}
	f.OfSource = fetch.NamesCredential(res.Status)
	reason, known := "", false
	if broken != nil {
		f.Detail += ": " + broken.Error()
	} else {
		var body apiError
		_ = json.Unmarshal(res.Body, &body) // of another shape: the status alone decides
		for _, r := range body.reasons() {
			if class, ok := classOf(r); ok {
				f.Class, f.OfSource, reason, known = class, class == source.AuthFailed, r, true
				break
			}
			if reason == "" {
				reason = r
			}
		}
		f.Detail = fetch.Redact(strings.TrimRight(fmt.Sprintf("%s %s: %s", f.Detail, reason, body.Error.Message), ": "), s.key)
	}
	if res.Status >= 300 && res.Status < 400 {
		f.Detail += ", a redirect, which is not followed"
	}
	switch {
	case bucket == BudgetStats && !known && refusesStats(res.Status, broken == nil):
		// Without this budget the collector plans with videos.list, which is all that is needed.
		until := now.Add(statsPause)
		s.statsRefusedUntil.Store(until.Unix())
		f.Class, f.Bucket, f.RetryAt = source.QuotaSpent, bucket, until
		f.Detail = "batchGetStats is not to be had, videos.list stands in: " + f.Detail
	case f.Class == source.QuotaSpent:
		_, midnight := s.window(now)
		f.Bucket, f.RetryAt = bucket, midnight
	}
	return f
}

// refusesStats is whether an answer to batchGetStats, whose reason says nothing of quotas or keys, means that this
// project does not have the method.
func refusesStats(status int, spoke bool) bool {
	return status == http.StatusNotFound || (status == http.StatusForbidden && spoke)
}

// refusal is an answer that concerns what was asked for and not the source.
type refusal struct {
	class          source.Class
	reason, detail string
	sandbox        bool
}

func (r *refusal) Error() string { return r.detail }

func (r *refusal) result() source.Result {
	return source.Result{Class: r.class, Detail: r.detail, Sandbox: r.sandbox}
}

// refusalOf returns what an answer that is no success says of the channel or the list that was asked for, nil when it is no
// such answer.
func refusalOf(res *fetch.Response) *refusal {
	var body apiError
	_ = json.Unmarshal(res.Body, &body) // of another shape: there are no reasons
	classes := map[string]source.Class{
		"channelNotFound": source.Gone, "playlistNotFound": source.Gone, "channelClosed": source.Gone, "channelSuspended": source.Gone,
		"channelForbidden": source.Private, "playlistItemsNotAccessible": source.Private,
		"invalidPageToken": source.Temporary, // the list begins again
	}
	for _, reason := range body.reasons() {
		if class, ok := classes[reason]; ok && (res.Status == http.StatusNotFound || res.Status == http.StatusForbidden || res.Status == http.StatusBadRequest) {
			return &refusal{class: class, reason: reason, detail: fmt.Sprintf("HTTP %d %s", res.Status, reason), sandbox: res.Sandbox}
		}
	}
	return nil
}
