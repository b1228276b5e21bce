package sandbox

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// These are the names of the faults that a control call can set. README.md describes each fault.
const (
	faultRateLimited = "rate_limited" // the source's answer for a rate limit, with Retry-After only if retry_after is set
	faultQuotaSpent  = "quota_spent"  // the source's answer for a spent quota
	faultServerError = "server_error" // the source's answer for a server error (5xx)
	faultTruncated   = "truncated"    // status 200 and half of the correct body
	faultHostile     = "hostile"      // status 200 and a wrong or harmful body from hostileVariants
	faultSlow        = "slow"         // the correct answer after a delay of retry_after seconds
	faultZeros       = "zeros"        // the correct answer, but with each count replaced by 0
	faultRefused     = "refused"      // each call that contains one of the rule's ids gets the rule's status and body
)

var faultNames = []string{
	faultRateLimited, faultQuotaSpent, faultServerError, faultTruncated, faultHostile, faultSlow, faultZeros, faultRefused,
}

// everySource is the source name of a fault that applies to calls to all sources.
const everySource = "*"

// faultSources are the names of the sources. Faults and the call log use these names.
var faultSources = []string{
	sourceYouTube, sourceTikTokDisplay, sourceTikTokResearch, sourceVendor, string(link.TikTok), string(link.Instagram), string(link.Facebook), sourceShortLinks,
}

// rule is an active fault: which wrong or delayed answer the calls to a source get, and how many calls get this answer.
type rule struct {
	Source     string `json:"source"`
	Fault      string `json:"fault"`
	Count      int    `json:"count"` // number of calls that get the fault; 0 means all calls until the fault is deleted
	RetryAfter *int   `json:"retry_after"`
	Used       int    `json:"used"` // number of calls that have got the fault
	// IDs, Status and Body are set only for the fault "refused". A call with at least one of the IDs
	// gets the answer with Status and Body.
	IDs    []string        `json:"ids,omitempty"` // ids, handles or links
	Status int             `json:"status,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// appliesTo returns true if the rule applies to a call that contains the given ids. Only a rule with the fault "refused" depends on the
// ids.
func (r rule) appliesTo(ids []string) bool {
	return r.Fault != faultRefused || slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(r.IDs, id) })
}

// faults are the active rules, at most one for each source.
type faults struct {
	mu    sync.Mutex
	rules map[string]*rule
}

// setRule activates a rule. It replaces an earlier rule of the same source.
func (f *faults) setRule(r rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules[r.Source] = &r
}

// clearRules removes the rule of the given source, or every rule if the source is "".
func (f *faults) clearRules(sourceName string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sourceName == "" {
		clear(f.rules)
		return
	}
	delete(f.rules, sourceName)
}

// listRules returns a copy of all active rules, in alphabetical order of their sources.
func (f *faults) listRules() []rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []rule{}
	for _, source := range slices.Sorted(maps.Keys(f.rules)) {
		list = append(list, *f.rules[source])
	}
	return list
}

// takeRule returns the rule for a call. ok is false if no rule applies. earlierCalls is the number
// of earlier calls that got the fault of this rule. takeRule counts the call, and deletes the rule after the rule's last call.
func (f *faults) takeRule(source, platform string, ids []string) (r rule, earlierCalls int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range []string{platform, source, everySource} {
		found := f.rules[name]
		if found == nil || !found.appliesTo(ids) {
			continue
		}
		found.Used++
		if found.Count > 0 && found.Used >= found.Count {
			delete(f.rules, name)
		}
		return *found, found.Used - 1, true
	}
	return rule{}, 0, false
}

const slowDefault = 30 // delay of the fault "slow" in seconds, if retry_after is not set

// sleep returns true after the given number of seconds, or after slowDefault seconds if the number is nil. It returns false as soon as ctx
// is cancelled.
func sleep(ctx context.Context, seconds *int) bool {
	limit := slowDefault
	if seconds != nil {
		limit = *seconds
	}
	timer := time.NewTimer(time.Duration(limit) * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// countKeys are the names of JSON members that contain a count, in all formats that the sandbox returns.
var countKeys = map[string]bool{
	"viewCount": true, "likeCount": true, "commentCount": true, "favoriteCount": true, "subscriberCount": true, "videoCount": true,
	"viewCountInt": true, "likeCountInt": true, "commentCountInt": true, "viewCountText": true,
	"play_count": true, "digg_count": true, "comment_count": true, "share_count": true, "collect_count": true,
	"download_count": true, "forward_count": true, "whatsapp_share_count": true, "repost_count": true,
	"playCount": true, "diggCount": true, "shareCount": true, "collectCount": true, "repostCount": true,
	"followerCount": true, "followingCount": true, "heartCount": true, "heart": true, "fans": true, "following": true, "video": true,
	"follower_count": true, "following_count": true, "total_favorited": true, "aweme_count": true, "media_count": true,
	"video_view_count": true, "video_play_count": true, "view_count": true, "like_count": true, "reaction_count": true,
	"comments_count": true, "followers_count": true, "follows_count": true, "total_count": true, "views": true, "value": true, "fan_count": true,
	"ig_play_count": true, "fb_play_count": true, "favorites_count": true, "likes_count": true, "video_count": true, "likesCount": true, "commentsCount": true, "videoPlayCount": true, "videoViewCount": true,
}

// withZeroCounts returns a copy of a correct answer in which every count is 0. A count that was a string becomes "0". A missing count stays
// missing.
func withZeroCounts(good reply) reply {
	if good.body == nil || good.status >= 300 {
		return good
	}
	good.body = rewriteJSON(decodeJSON(good.encodeBody()), func(key string, value any) any {
		if edge, ok := value.(object); ok && strings.HasPrefix(key, "edge_") {
			if _, ok := edge["count"]; ok {
				edge["count"] = 0
			}
			return edge
		}
		if !countKeys[key] {
			return value
		}
		switch value.(type) {
		case json.Number:
			return 0
		case string:
			return "0"
		}
		return value
	})
	return good
}

// decodeJSON returns the decoded value of a JSON text that the sandbox has encoded. Numbers become json.Number, so that they are not rounded.
func decodeJSON(raw []byte) any {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	_ = decoder.Decode(&value)
	return value
}

// removedValue is the value that a callback of rewriteJSON returns to remove a member or a list element from the copy.
type removedValue struct{}

// rewriteJSON returns a copy of a decoded JSON value. It replaces each value by the result of the function
// "replacement", inner values first. The elements of a list have the same key as the list.
func rewriteJSON(value any, replacement func(key string, value any) any) any {
	var walk func(key string, value any) any
	walk = func(key string, value any) any {
		switch v := value.(type) {
		case object:
			out := make(object, len(v))
			for _, name := range slices.Sorted(maps.Keys(v)) { // the keys are sorted, so that the function is always called in the same order
				if changed := walk(name, v[name]); changed != (removedValue{}) {
					out[name] = changed
				}
			}
			value = out
		case []any:
			out := make([]any, 0, len(v))
			for _, element := range v {
				if changed := walk(key, element); changed != (removedValue{}) {
					out = append(out, changed)
				}
			}
			value = out
		}
		return replacement(key, value)
	}
	return walk("", value)
}
