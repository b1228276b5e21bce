package sandbox

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// youtubeMethod describes a method of the YouTube Data API v3: which requests are valid, and the function that answers them.
type youtubeMethod struct {
	name   string
	bucket string   // the bucket of YouTube's daily quota from which calls of the method are paid
	params []string // allowed parameters besides part, id and systemParams; a parameter must not occur twice
	parts  []string // parts that every caller may request
	owner  []string // parts that only the owner of the video or channel may request
	answer func(*Sandbox, *call, youtubeRequest) reply
}

// youtubeMethods maps the last part of each path to a method of the YouTube Data API v3.
var youtubeMethods = map[string]youtubeMethod{
	"videos": {
		name: "videos.list", bucket: bucketCommon,
		params: []string{
			"chart", "hl", "locale", "maxHeight", "maxResults", "maxWidth", "myRating", "onBehalfOfContentOwner", "pageToken", "regionCode", "videoCategoryId",
		},
		parts: []string{
			"contentDetails", "id", "liveStreamingDetails", "localizations", "paidProductPlacementDetails", "player", "recordingDetails", "snippet",
			"statistics", "status", "topicDetails",
		},
		owner:  []string{"fileDetails", "processingDetails", "suggestions"},
		answer: (*Sandbox).serveYouTubeVideos,
	},
	"videos:batchGetStats": {
		name: "videos.batchGetStats", bucket: bucketStats,
		params: []string{"onBehalfOfContentOwner"},
		parts:  []string{"contentDetails", "id", "snippet", "statistics"},
		answer: (*Sandbox).serveYouTubeStats,
	},
	"channels": {
		name: "channels.list", bucket: bucketCommon,
		params: []string{
			"categoryId", "forHandle", "forUsername", "hl", "managedByMe", "maxResults", "mine", "mySubscribers", "onBehalfOfContentOwner", "pageToken",
		},
		parts: []string{
			"brandingSettings", "contentDetails", "id", "localizations", "snippet", "statistics", "status", "topicDetails",
		},
		owner:  []string{"auditDetails", "contentOwnerDetails"},
		answer: (*Sandbox).serveYouTubeChannels,
	},
	"playlistItems": {
		name: "playlistItems.list", bucket: bucketCommon,
		params: []string{"maxResults", "onBehalfOfContentOwner", "pageToken", "playlistId", "videoId"},
		parts:  []string{"contentDetails", "id", "snippet", "status"},
		answer: (*Sandbox).serveYouTubePlaylistItems,
	},
}

// systemParams are the parameters that every method of every Google API accepts.
var systemParams = []string{
	"$.xgafv", "access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "uploadType", "upload_protocol",
}

// maxYouTubeIDs is the largest number of ids in a call.
const maxYouTubeIDs = 50

// youtubeRequest is a request to YouTube's API that has passed the checks of youtubeMethod.checkRequest.
type youtubeRequest struct {
	parts  []string
	ids    []string // the requested ids in the order of the request, without repeated ids
	values url.Values
}

func (q youtubeRequest) wantsPart(part string) bool { return slices.Contains(q.parts, part) }

// serveYouTube answers /youtube/youtube/v3/METHOD, which Google's client libraries request if their endpoint is the sandbox's /youtube/. It also accepts
// the path without the second "youtube/" or without "v3/".
func (s *Sandbox) serveYouTube(w http.ResponseWriter, r *http.Request, path string) {
	name, _ := strings.CutPrefix(strings.TrimPrefix(path, "youtube/"), "v3/")
	c := &call{r: r, now: s.clock(), source: sourceYouTube, method: path}
	s.serveCall(w, c, errorRepliesForYouTube(), func(c *call) reply {
		rep := s.serveYouTubeMethod(c, name)
		rep.pretty = c.r.URL.Query().Get("prettyPrint") != "false"
		return rep
	})
}

// serveYouTubeMethod checks the key of a request, charges one quota unit, checks the parameters, and answers the request.
func (s *Sandbox) serveYouTubeMethod(c *call, methodName string) reply {
	m, ok := youtubeMethods[methodName]
	if !ok || c.r.Method != http.MethodGet {
		rep := googleError(http.StatusNotFound, "Method not found.", "notFound", "global", "", "", "NOT_FOUND")
		rep.refused = true
		return rep
	}
	c.method = m.name
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if rep, ok := checkYouTubeKey(c.r, values); !ok {
		return rep
	}
	for _, list := range values["id"] {
		c.ids = append(c.ids, splitList(list)...)
	}
	// Every request for a known method with a valid key costs one unit, even if the request fails.
	if !s.quota.chargeYouTube(m.bucket, c.now) {
		return errorRepliesForYouTube().quotaSpent()
	}
	if err != nil {
		return googleError(http.StatusBadRequest, "Request contains an invalid argument.", "badRequest", "global", "", "", "INVALID_ARGUMENT")
	}
	req, rep, ok := m.checkRequest(values, c.ids)
	if !ok {
		return rep
	}
	return finishYouTubeReply(c.r, values, m.answer(s, c, req))
}

// checkYouTubeKey returns true if a request has the valid API key. If it has not, checkYouTubeKey returns false and Google's error.
func checkYouTubeKey(r *http.Request, values url.Values) (reply, bool) {
	key := values.Get("key")
	if key == "" {
		key = r.Header.Get("X-Goog-Api-Key")
	}
	if key == YouTubeAPIKey {
		return reply{}, true
	}
	if key == "" {
		rep := googleError(http.StatusForbidden, "Method doesn't allow unregistered callers (callers without established identity). "+
			"Please use API Key or other form of API consumer identity to call this API.", "forbidden", "global", "", "", "PERMISSION_DENIED")
		rep.refused = true
		return rep, false
	}
	const message = "API key not valid. Please pass a valid API key."
	rep := googleError(http.StatusBadRequest, message, "badRequest", "global", "", "", "INVALID_ARGUMENT")
	rep.body.(object)["error"].(object)["details"] = []object{
		{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
			"metadata": object{"service": "youtube.googleapis.com"},
		},
		{"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US", "message": message},
	}
	rep.refused = true
	return rep, false
}

// checkRequest returns the parsed parameters of a valid request and true, or YouTube's error and
// false.
func (m youtubeMethod) checkRequest(values url.Values, ids []string) (youtubeRequest, reply, bool) {
	req := youtubeRequest{values: values}
	fail := func(rep reply) (youtubeRequest, reply, bool) { return req, rep, false }
	for _, name := range sortedKeys(values) {
		known := slices.Contains(m.params, name) || slices.Contains(systemParams, name)
		if name != "part" && name != "id" && (!known || len(values[name]) > 1) {
			return fail(youtubeInvalidRequest("unexpectedParameter", "The request specifies an unexpected parameter.", name, "parameter"))
		}
	}
	if alt := values.Get("alt"); alt != "" && alt != "json" {
		return fail(googleError(http.StatusBadRequest, fmt.Sprintf("Invalid value %q for alt.", alt), "invalid", "global", "alt", "parameter", "INVALID_ARGUMENT"))
	}
	if given := values.Get("maxResults"); given != "" {
		least := 0
		if m.name == "videos.list" {
			least = 1
		}
		if n, err := strconv.Atoi(given); err != nil || n < least || n > 50 {
			return fail(googleError(http.StatusBadRequest, fmt.Sprintf("Invalid value '%s'. Values must be within the range: [%d, 50]", given, least),
				"invalidParameter", "global", "maxResults", "parameter", ""))
		}
	}
	for _, list := range values["part"] {
		req.parts = append(req.parts, splitList(list)...)
	}
	if len(req.parts) == 0 {
		return fail(youtubeInvalidRequest("missingRequiredParameter", "Required parameter: part", "part", "parameter"))
	}
	for _, part := range req.parts {
		if slices.Contains(m.owner, part) {
			return fail(googleError(http.StatusForbidden, "The request cannot access the requested part: it belongs to the owner.", "forbidden", "youtube.part", "part", "parameter", ""))
		}
		if !slices.Contains(m.parts, part) {
			return fail(googleError(http.StatusBadRequest, part, "unknownPart", "youtube.part", "part", "parameter", ""))
		}
	}
	for _, id := range ids {
		if !slices.Contains(req.ids, id) {
			req.ids = append(req.ids, id)
		}
	}
	if len(ids) > maxYouTubeIDs {
		return fail(youtubeInvalidRequest("invalidFilters", "The request specifies an invalid filter parameter.", "parameters.", "other"))
	}
	return req, reply{}, true
}

// findFilter returns the name of the filter parameter that the request has. If the request has none or several of the given filter
// parameters, findFilter returns an error reply.
func findFilter(values url.Values, filters ...string) (string, *reply) {
	var given []string
	for _, name := range filters {
		if strings.Trim(strings.Join(values[name], ""), ", ") != "" {
			given = append(given, name)
		}
	}
	switch len(given) {
	case 1:
		return given[0], nil
	case 0:
		rep := youtubeInvalidRequest("missingRequiredParameter", "No filter selected. Expected one of: "+strings.Join(filters, ", "), "parameters.", "other")
		return "", &rep
	}
	rep := youtubeInvalidRequest("incompatibleParameters", "Incompatible parameters specified in the request: "+strings.Join(given, ", "), "parameters.", "other")
	return "", &rep
}

// finishYouTubeReply applies the field mask to a successful reply and adds an ETag. If the header
// If-None-Match has this ETag, the result has status 304.
func finishYouTubeReply(r *http.Request, values url.Values, rep reply) reply {
	if rep.status != http.StatusOK {
		return rep
	}
	rep.body.(object)["etag"] = etag(rep.body)
	if values.Has("fields") {
		fields, err := parseFields(values.Get("fields"))
		if err != nil {
			return googleError(http.StatusBadRequest, err.Error(), "invalidParameter", "global", "fields", "parameter", "")
		}
		rep.body = fields.selectFrom(decodeJSON(rep.encodeBody()))
	}
	tag := `"` + etag(rep.body) + `"`
	if r.Header.Get("If-None-Match") == tag {
		return reply{status: http.StatusNotModified}.withHeader("ETag", tag)
	}
	return rep.withHeader("ETag", tag).withHeader("Cache-Control", "private")
}

// etag returns the ETag of a JSON value: a hash of its encoding.
func etag(body any) string {
	raw, _ := json.Marshal(body) // Marshal cannot fail: the value has only types that JSON can encode
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:20])
}

// splitList returns the entries of a list that is separated by commas, without blanks and empty entries.
func splitList(list string) []string {
	var out []string
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}

// sortedKeys returns the names of query parameters in alphabetical order.
func sortedKeys(values url.Values) []string {
	var keys []string
	for name := range values {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// youtubeInvalidRequest returns YouTube's error for a request with invalid parameters.
func youtubeInvalidRequest(reason, message, location, locationType string) reply {
	return googleError(http.StatusBadRequest, message, reason, "youtube.parameter", location, locationType, "")
}

// googleError returns a reply with an error in Google's format. An empty location and an empty
// status are left out.
func googleError(code int, message, reason, domain, location, locationType, status string) reply {
	entry := object{"message": message, "domain": domain, "reason": reason}
	if location != "" {
		entry["location"], entry["locationType"] = location, locationType
	}
	e := object{"code": code, "message": message, "errors": []object{entry}}
	if status != "" {
		e["status"] = status
	}
	return reply{status: code, body: object{"error": e}}
}

// errorRepliesForYouTube returns the replies that simulate a failure of YouTube's API, such as a spent quota.
func errorRepliesForYouTube() errorReplies {
	return errorReplies{
		rateLimited: func() reply {
			return googleError(http.StatusTooManyRequests, "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service 'youtube.googleapis.com'.",
				"rateLimitExceeded", "global", "", "", "RESOURCE_EXHAUSTED")
		},
		quotaSpent: func() reply {
			return googleError(http.StatusForbidden, `The request cannot be completed because you have exceeded your <a href="/youtube/v3/getting-started#quota">quota</a>.`,
				"quotaExceeded", "youtube.quota", "", "", "")
		},
		serverError: func() reply {
			return googleError(http.StatusServiceUnavailable, "The service is currently unavailable.", "backendError", "global", "", "", "UNAVAILABLE")
		},
		hostile: hostileJSON,
	}
}
