package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
)

// hostileVariant is one way to change a correct answer into a wrong or harmful answer.
type hostileVariant struct {
	name  string
	apply func(good reply) reply
}

// HostileVariants is the number of different answers that the fault "hostile" can cause.
var HostileVariants = len(hostileVariants())

// hostileVariants returns all variants of the fault "hostile". Each call with the fault gets the next variant. After the last variant,
// the first one follows again.
func hostileVariants() []hostileVariant {
	return []hostileVariant{
		{"wrong types", changeMembers(wrongType)},
		{"numbers as strings and strings as numbers", changeMembers(swapNumbersAndStrings)},
		{"ids beyond 2^53, as numbers", changeMembers(numericID)},
		{"views swapped with likes, and ids swapped with texts", changeMembers(swapFields)},
		{"deep nesting", func(r reply) reply { return r.withBody(deeplyNestedJSON()) }},
		{"a body of ten megabytes", withHugeText},
		{"NUL, lone surrogates and invalid UTF-8 in texts", withInvalidText},
		{"HTML instead of JSON", func(r reply) reply {
			r.kind = "text/html; charset=utf-8"
			return r.withBody([]byte("<!DOCTYPE html><html><head><title>Verify you are human</title></head><body>captcha</body></html>"))
		}},
		{"no ids", changeMembers(func(key string, value any) any {
			if idKeys[key] {
				return removedValue{}
			}
			return value
		})},
		{"impossible numbers", withImpossibleCounts},
		{"null instead of every value", changeMembers(func(_ string, value any) any {
			switch value.(type) {
			case object, []any:
				return value
			}
			return nil
		})},
		{"an empty body", func(r reply) reply { return r.withBody([]byte{}) }},
		{"a string instead of an object", func(r reply) reply { return r.withBody([]byte(`"ok"`)) }},
	}
}

// hostileJSON returns the wrong or harmful answer for the fault "hostile": a changed copy of the
// correct answer. earlierCalls selects the kind of change.
func hostileJSON(earlierCalls int, correct reply) reply {
	variants := hostileVariants()
	return variants[earlierCalls%len(variants)].apply(correct)
}

// withBody returns a copy of the reply with another body.
func (r reply) withBody(raw []byte) reply {
	r.raw = raw
	return r
}

// changeMembers returns a function that applies rewriteJSON to the body of a reply and returns the changed reply.
func changeMembers(replacement func(key string, value any) any) func(reply) reply {
	return func(good reply) reply {
		good.body = rewriteJSON(decodeJSON(good.encodeBody()), replacement)
		return good
	}
}

// idKeys are the names of members that contain an id.
var idKeys = map[string]bool{
	"id": true, "videoId": true, "channelId": true, "aweme_id": true, "shortcode": true, "code": true, "pk": true,
	"video_id": true, "post_id": true, "uid": true, "sec_uid": true, "uploads": true,
}

// textKeys are the names of members that contain a text of a user.
var textKeys = map[string]bool{
	"title": true, "desc": true, "caption": true, "text": true, "description": true, "nickname": true, "full_name": true, "name": true, "channelTitle": true,
}

// plainNumber matches integers in JSON format, without leading zeros.
var plainNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// wrongType returns a JSON value with another type: a list for a number, an object for a string, and a string for a boolean.
func wrongType(_ string, value any) any {
	switch v := value.(type) {
	case json.Number:
		return []any{v}
	case string:
		return object{"value": v}
	case bool:
		return "maybe"
	}
	return value
}

// swapNumbersAndStrings returns a number as a string, and a string of digits as a number.
func swapNumbersAndStrings(_ string, value any) any {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case string:
		if plainNumber.MatchString(v) {
			return json.Number(v)
		}
	}
	return value
}

// numericID returns an id as a JSON number. If the id has other characters than digits, numericID returns a number beyond 2^53. A parser that uses
// float64 can change such numbers.
// numericID returns every other value unchanged.
func numericID(memberName string, value any) any {
	id, ok := value.(string)
	if !idKeys[memberName] || !ok {
		return value
	}
	if plainNumber.MatchString(id) {
		return json.Number(id)
	}
	return json.Number("9007199254740993123456789")
}

// swapFields swaps members of a JSON object: the views with the likes, and ids with texts. If the value is not an object, swapFields returns
// the value unchanged.
func swapFields(_ string, value any) any {
	o, ok := value.(object)
	if !ok {
		return value
	}
	for _, pair := range [][2]string{
		{"viewCount", "likeCount"}, {"play_count", "digg_count"}, {"playCount", "diggCount"}, {"view_count", "like_count"},
		{"video_play_count", "edge_media_preview_like"}, {"title", "description"}, {"aweme_id", "desc"}, {"uid", "nickname"}, {"shortcode", "__typename"},
	} {
		first, okFirst := o[pair[0]]
		second, okSecond := o[pair[1]]
		if okFirst && okSecond {
			o[pair[0]], o[pair[1]] = second, first
		}
	}
	return o
}

// deeplyNestedJSON returns a JSON object whose members are lists, nested 100,000 levels deep.
func deeplyNestedJSON() []byte {
	const depth = 100_000
	nest := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	return []byte(`{"items":` + nest + `,"data":` + nest + `,"aweme_detail":` + nest + `}`)
}

// withHugeText returns a copy of the reply in which one text is ten megabytes longer.
func withHugeText(good reply) reply {
	done := false
	return changeMembers(func(key string, value any) any {
		text, ok := value.(string)
		if done || !ok || !textKeys[key] {
			return value
		}
		done = true
		return text + strings.Repeat("A", 10<<20)
	})(good)
}

// withInvalidText returns a copy of the reply in which every text of a user (see textKeys) is replaced by a text with NUL, a lone
// surrogate and invalid UTF-8.
func withInvalidText(good reply) reply {
	const mark = "reeltally-bad-text"
	marked := changeMembers(func(key string, value any) any {
		if _, ok := value.(string); ok && textKeys[key] {
			return "bad" + mark + "text"
		}
		return value
	})(good)
	return good.withBody(bytes.ReplaceAll(marked.encodeBody(), []byte(mark), []byte("\\u0000\\ud800\xff\xfe\xc0\x80")))
}

// withImpossibleCounts returns a copy of the reply in which the counts are replaced by negative numbers, fractions, and numbers beyond
// int64 or float64.
func withImpossibleCounts(good reply) reply {
	values, at := []json.Number{"-1", "1.5", "9223372036854775808", "1e400"}, 0
	return changeMembers(func(key string, value any) any {
		if !countKeys[key] {
			return value
		}
		switch value.(type) {
		case json.Number:
			at++
			return values[at%len(values)]
		case string:
			at++
			return values[at%len(values)].String()
		}
		return value
	})(good)
}

// hostileRedirect changes a redirect: the new answer leads to a URL that a resolver must not request. Any other
// correct answer is returned unchanged.
func hostileRedirect(earlierCalls int, correct reply) reply {
	targets := []string{
		"http://127.0.0.1:22/", "http://169.254.169.254/latest/meta-data/", "https://www.tiktok.com.evil.example/@a/video/7106594312292453675",
		"https://www.tiktok.com@evil.example/@a/video/7106594312292453675", "javascript:alert(1)", "file:///etc/passwd",
		"//evil.example/", "https://[::ffff:10.0.0.1]/", "https://www.tiktok.com:8443/@a/video/7106594312292453675", "%zz://",
		strings.Repeat("https://www.tiktok.com/", 5000), "",
	}
	if !correct.isRedirect() {
		return correct
	}
	correct.status = http.StatusFound
	return correct.withHeader("Location", targets[earlierCalls%len(targets)])
}
