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

// The faults.
const (
	faultRateLimited = "rate_limited" // the source's own answer; Retry-After only with retry_after
	faultQuotaSpent  = "quota_spent"  // the source's own answer
	faultServerError = "server_error" // the source's own 5xx
	faultTruncated   = "truncated"    // 200 and half of the correct body
	faultHostile     = "hostile"      // 200 and a hostile body; see hostileVariants
	faultSlow        = "slow"         // the correct answer after retry_after seconds
	faultZeros       = "zeros"        // the correct answer with all counts 0
	faultRefused     = "refused"      // the rule's status and body, for each call with one of its ids
)

var faultNames = []string{
	faultRateLimited, faultQuotaSpent, faultServerError, faultTruncated, faultHostile, faultSlow, faultZeros, faultRefused,
}

const everySource = "*"

// faultSources are the names of sources in faults and in the call log.
var faultSources = []string{
	sourceYouTube, sourceTikTokDisplay, sourceTikTokResearch, sourceVendor, string(link.TikTok), string(link.Instagram), string(link.Facebook), sourceShortLinks,
}

// rule is an active fault.
type rule struct {
	Source     string `json:"source"`
	Fault      string `json:"fault"`
	Count      int    `json:"count"` // the number of calls with the fault; 0 means all calls until the fault is deleted
	RetryAfter *int   `json:"retry_after"`
	Used       int    `json:"used"` // the number of calls that had the fault
	// IDs, Status and Body are for refused: the refused ids, handles or links, and the answer.
	IDs    []string        `json:"ids,omitempty"`
	Status int             `json:"status,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// appliesTo returns true if the rule applies to a call with these ids.
func (r rule) appliesTo(ids []string) bool {
	return r.Fault != faultRefused || slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(r.IDs, id) })
}

// faults has at most one rule for each source.
type faults struct {
	mu    sync.Mutex
	rules map[string]*rule
}

func (f *faults) set(r rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules[r.Source] = &r
}

// clear removes the rule of a source, or every rule.
func (f *faults) clear(source string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if source == "" {
		clear(f.rules)
		return
	}
	delete(f.rules, source)
}

func (f *faults) list() []rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []rule{}
	for _, source := range slices.Sorted(maps.Keys(f.rules)) {
		list = append(list, *f.rules[source])
	}
	return list
}

// take returns the most specific rule for a call and counts the call. A rule for the platform is more specific than a rule for the source, which
// is more specific than a rule for all sources. earlier is the number of earlier calls with the rule.
func (f *faults) take(source, platform string, ids []string) (r rule, earlier int, ok bool) {
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

const slowDefault = 30 // seconds

// wait waits for a number of seconds, or slowDefault if seconds is nil. It returns false if ctx ends first.
func wait(ctx context.Context, seconds *int) bool {
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

// countKeys are the members with a count in all formats.
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
	"ig_play_count": true, "favorites_count": true, "likes_count": true, "video_count": true, "likesCount": true, "commentsCount": true, "videoPlayCount": true, "videoViewCount": true,
}

// zeroed sets every count of a good answer to 0 and keeps its type. It adds no counts.
func zeroed(good reply) reply {
	if good.body == nil || good.status >= 300 {
		return good
	}
	good.body = rewrite(decoded(good.bytes()), func(key string, value any) any {
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

// decoded decodes JSON that the sandbox has encoded. It keeps the text of numbers.
func decoded(raw []byte) any {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	_ = decoder.Decode(&value)
	return value
}

// drop is the value with which change tells rewrite to remove a member.
type drop struct{}

// rewrite applies change to all parts of a decoded JSON value, innermost first. The key of a list's element is the key of the list.
func rewrite(value any, change func(key string, value any) any) any {
	var walk func(key string, value any) any
	walk = func(key string, value any) any {
		switch v := value.(type) {
		case object:
			out := make(object, len(v))
			for _, name := range slices.Sorted(maps.Keys(v)) { // sorted, so that the result is deterministic
				if changed := walk(name, v[name]); changed != (drop{}) {
					out[name] = changed
				}
			}
			value = out
		case []any:
			out := make([]any, 0, len(v))
			for _, element := range v {
				if changed := walk(key, element); changed != (drop{}) {
					out = append(out, changed)
				}
			}
			value = out
		}
		return change(key, value)
	}
	return walk("", value)
}
