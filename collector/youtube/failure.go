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

var errFormat = errors.New("the JSON of the answer does not have YouTube's format")

// apiError is the JSON body of an error of YouTube.
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

// reasons returns the reasons that the error contains, the most precise one first.
func (e apiError) reasons() []string {
	var out []string
	for _, d := range e.Error.Details {
		// YouTube's newer quota system returns the reason RATE_LIMIT_EXCEEDED even if the daily quota is spent. Only the name of the limit
		// shows that the daily quota is spent.
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

// classOf returns the class for an error reason of YouTube, such as "quotaExceeded". It returns false for an unknown reason; the HTTP
// status then gives the class.
func classOf(reason string) (class source.Class, ok bool) {
	switch reason {
	case "quotaExceeded", "dailyLimitExceeded":
		return source.QuotaSpent, true
	case "rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED":
		return source.RateLimited, true
	case "API_KEY_INVALID", "keyInvalid", "keyExpired", "accessNotConfigured", "SERVICE_DISABLED", "ipRefererBlocked",
		"API_KEY_IP_ADDRESS_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED", "API_KEY_SERVICE_BLOCKED",
		"API_KEY_ANDROID_APP_BLOCKED", "API_KEY_IOS_APP_BLOCKED", "CONSUMER_SUSPENDED", "authError":
		return source.AuthFailed, true
	case "backendError", "processingFailure", "internalError":
		return source.Temporary, true
	default:
		return "", false
	}
}

// parseFailure returns the failure for an unsuccessful answer. jsonErr is the error of
// fetch.CheckJSON, or nil. budgetName names the budget of the call.
func (s *Source) parseFailure(res *fetch.Response, jsonErr error, budgetName string) *source.Failure {
	now := s.now()
	f := fetch.NewFailure(res, jsonErr, now)
	reason, known := "", false
	if jsonErr == nil {
		var body apiError
		_ = json.Unmarshal(res.Body, &body) // if the answer has an unknown format, the decoded error stays empty, and the HTTP status gives the class
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
	switch {
	case budgetName == BudgetStats && !known && isStatsDisabled(res.Status, jsonErr == nil):
		// Pause only the budget of batchGetStats, so that the collector uses the plan that calls videos.list.
		until := now.Add(statsPause)
		s.statsRefusedUntil.Store(until.Unix())
		f.Class, f.Budget, f.RetryAt = source.QuotaSpent, budgetName, until
		f.Detail = "batchGetStats is not available, so videos.list is used: " + f.Detail
	case f.Class == source.QuotaSpent:
		_, midnight := s.pacificDay(now)
		f.Budget, f.RetryAt = budgetName, midnight
	}
	return f
}

// isStatsDisabled returns true if Google has not enabled batchGetStats for the operator's project.
// The caller must first exclude errors about quotas or keys.
func isStatsDisabled(status int, isJSON bool) bool {
	// Errors about quotas or keys can also have the status 403.
	return status == http.StatusNotFound || (status == http.StatusForbidden && isJSON)
}

// targetError is an error of YouTube that concerns only the requested channel or its list of uploads, such as "channelSuspended".
type targetError struct {
	class          source.Class
	reason, detail string
	sandbox        bool
}

func (e *targetError) Error() string { return e.detail }

// asResult returns the error as the result for the requested channel.
func (e *targetError) asResult() source.Result {
	return source.Result{Class: e.class, Detail: e.detail, Sandbox: e.sandbox}
}

// targetErrorOf returns the error in an answer if it concerns only the requested channel or its list of uploads. Otherwise it returns nil.
func targetErrorOf(res *fetch.Response) *targetError {
	var body apiError
	_ = json.Unmarshal(res.Body, &body) // if the answer has an unknown format, the decoded error stays empty and has no reasons
	classes := map[string]source.Class{
		"channelNotFound": source.Gone, "playlistNotFound": source.Gone, "channelClosed": source.Gone, "channelSuspended": source.Gone,
		"channelForbidden": source.Private, "playlistItemsNotAccessible": source.Private,
		"invalidPageToken": source.Temporary, // the page token has expired; the next attempt starts at the first page
	}
	for _, reason := range body.reasons() {
		if class, ok := classes[reason]; ok && (res.Status == http.StatusNotFound || res.Status == http.StatusForbidden || res.Status == http.StatusBadRequest) {
			return &targetError{class: class, reason: reason, detail: fmt.Sprintf("HTTP %d %s", res.Status, reason), sandbox: res.Sandbox}
		}
	}
	return nil
}
