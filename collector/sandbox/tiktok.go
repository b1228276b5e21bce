package sandbox

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// The sandbox accepts these credentials of TikTok's own APIs. Names with Research belong to the
// Research API, and all others to the Display API.
const (
	TikTokClientKey            = "sandbox-tiktok-key"
	TikTokClientSecret         = "sandbox-tiktok-secret"    //nolint:gosec // valid only in the sandbox
	TikTokRefreshToken         = "rft.sandbox-tiktok-login" //nolint:gosec // valid only in the sandbox
	TikTokResearchClientKey    = "sandbox-tiktok-research-key"
	TikTokResearchClientSecret = "sandbox-tiktok-research-secret" //nolint:gosec // valid only in the sandbox
)

const (
	tiktokAccessTTL  = 2 * 60 * 60        // lifetime of an access token in seconds
	tiktokRefreshTTL = 180 * 24 * 60 * 60 // lifetime of a refresh token in seconds
	tiktokScopes     = "user.info.basic,user.info.profile,user.info.stats,video.list"
)

// tiktokLogins issues and checks TikTok's tokens. A process accepts each refresh token only once,
// except TikTokRefreshToken.
type tiktokLogins struct {
	seed    uint64
	started string // start time of the process; it is part of every login name, so that names stay unique after a restart

	mu     sync.Mutex
	made   int            // number of logins that this process has started
	newest map[string]int // maps the name of a login to the generation number of its newest refresh token
}

func newTikTokLogins(seed uint64, processStart time.Time) *tiktokLogins {
	return &tiktokLogins{seed: seed, started: strconv.FormatInt(processStart.UnixNano(), 36), newest: map[string]int{}}
}

// signToken returns a token with a signature. The kind is "act" (access token), "rft" (refresh
// token) or "clt" (client token).
func (l *tiktokLogins) signToken(kind, content string) string {
	// The signature depends only on the seed and the text, so tokens stay valid after a restart.
	return fmt.Sprintf("%s.%s.%016x", kind, content, hashTexts(l.seed, "tiktok", kind, content))
}

// parseToken returns the kind of a token and the parts of its content, which are separated by dots. It returns false if the signature is
// wrong.
func (l *tiktokLogins) parseToken(token string) (kind string, parts []string, ok bool) {
	parts = strings.Split(token, ".")
	if len(parts) < 3 {
		return "", nil, false
	}
	kind, parts = parts[0], parts[1:len(parts)-1]
	return kind, parts, token == l.signToken(kind, strings.Join(parts, "."))
}

// exchangeToken returns the answer to a request with a refresh token: a new access token and a new refresh token. It returns false if the
// refresh token is not valid.
func (l *tiktokLogins) exchangeToken(refresh string, now time.Time) (object, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var login string
	var generation int
	if refresh == TikTokRefreshToken {
		// TikTokRefreshToken can be used many times: each use starts a new login.
		l.made++
		login = l.started + "-" + strconv.Itoa(l.made)
	} else {
		kind, parts, ok := l.parseToken(refresh)
		if !ok || kind != "rft" || len(parts) != 2 {
			return nil, false
		}
		login, generation = parts[0], parseNumber(parts[1])
		if generation < l.newest[login] {
			return nil, false
		}
	}
	l.newest[login] = generation + 1
	next := login + "." + strconv.Itoa(generation+1)
	return object{
		"open_id": tiktokOpenID, "scope": tiktokScopes, "token_type": "Bearer",
		"access_token": l.newAccessToken("act", next, now), "expires_in": tiktokAccessTTL,
		"refresh_token": l.signToken("rft", next), "refresh_expires_in": tiktokRefreshTTL,
	}, true
}

// tiktokOpenID is TikTok's id of the account that has logged in to the Display API.
const tiktokOpenID = "723f24d7-e717-40f8-a2b6-cb8464cd23b4"

// newAccessToken returns a new access token of the given kind for a login. It is valid for tiktokAccessTTL seconds from now on.
func (l *tiktokLogins) newAccessToken(kind, login string, now time.Time) string {
	return l.signToken(kind, login+"."+strconv.FormatInt(now.Unix(), 10))
}

// isAuthorized returns true if a request has an access token of the given kind that is valid at the given time. The kind is "act" (user) or
// "clt" (client).
func (l *tiktokLogins) isAuthorized(r *http.Request, requiredKind string, now time.Time) bool {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	kind, parts, ok := l.parseToken(token)
	if !found || !ok || kind != requiredKind {
		return false
	}
	age := now.Unix() - int64(parseNumber(parts[len(parts)-1]))
	return age >= 0 && age < tiktokAccessTTL
}

// TikTokAccount returns the handle of the account that has logged in to the Display API.
func (s *Sandbox) TikTokAccount() string { return s.tiktokAccount().handle }

// tiktokAccount returns the account that has logged in to the Display API. Find and FindAccount never return this account.
func (s *Sandbox) tiktokAccount() identity {
	for n := uint32(findLimit); ; n++ {
		if s.world.accountCategory(link.TikTok, n) == AccountNormal {
			return s.world.accountByNumber(link.TikTok, n)
		}
	}
}

// tiktokMethod describes a method of TikTok's APIs: which requests are valid, and the function that answers them.
type tiktokMethod struct {
	source, name string
	token        string   // the required kind of token: "act" (access token of an account) or "clt" (client token)
	get          bool     // true if the HTTP method is GET; false if it is POST
	fields       []string // valid values of the query parameter "fields"
	// answer returns the reply to a valid request. It can ask isWanted whether a field is requested.
	answer func(s *Sandbox, c *call, isWanted func(field string) bool) reply
}

// tiktokMethods maps paths to the methods of TikTok's APIs.
var tiktokMethods = map[string]tiktokMethod{
	"v2/user/info/": {
		source: sourceTikTokDisplay, name: "user.info", token: "act", get: true, answer: (*Sandbox).serveDisplayUserInfo,
		fields: []string{
			"open_id", "union_id", "avatar_url", "avatar_url_100", "avatar_large_url", "display_name", "bio_description", "profile_deep_link", "is_verified", "username",
			"follower_count", "following_count", "likes_count", "video_count",
		},
	},
	"v2/video/query/": {source: sourceTikTokDisplay, name: "video.query", token: "act", fields: tiktokVideoFields, answer: (*Sandbox).serveDisplayVideoQuery},
	"v2/video/list/":  {source: sourceTikTokDisplay, name: "video.list", token: "act", fields: tiktokVideoFields, answer: (*Sandbox).serveDisplayVideoList},
	"v2/research/video/query/": {
		source: sourceTikTokResearch, name: "research.video.query", token: "clt", answer: (*Sandbox).serveResearchVideoQuery,
		fields: []string{
			"id", "video_description", "create_time", "region_code", "share_count", "view_count", "like_count", "comment_count", "music_id", "hashtag_names", "username",
			"effect_ids", "playlist_id", "voice_to_text", "is_stem_verified", "favorites_count", "video_duration",
		},
	},
	"v2/research/user/info/": {
		source: sourceTikTokResearch, name: "research.user.info", token: "clt", answer: (*Sandbox).serveResearchUserInfo,
		fields: []string{
			"display_name", "bio_description", "avatar_url", "is_verified", "follower_count", "following_count", "likes_count", "video_count", "bio_url",
		},
	},
}

// serveTikTok answers requests below /tiktok/ as TikTok's API server, open.tiktokapis.com, does. The given path is the part after /tiktok/.
func (s *Sandbox) serveTikTok(w http.ResponseWriter, r *http.Request, path string) {
	if path == "v2/oauth/token/" {
		s.serveTikTokToken(w, r)
		return
	}
	m, ok := tiktokMethods[path]
	if !ok { // TikTok treats a path without the final slash as unknown
		writeReply(w, r, tiktokError(http.StatusNotFound, "unsupported_path", "Unsupported path(Janus)"))
		return
	}
	c := &call{r: r, now: s.clock(), source: m.source, method: m.name}
	s.serveCall(w, c, errorRepliesForTikTok(), func(c *call) reply { return s.serveTikTokMethod(c, m) })
}

// serveTikTokMethod checks the token, the quota and the fields of a request, and then answers it with m.answer.
func (s *Sandbox) serveTikTokMethod(c *call, m tiktokMethod) reply {
	if method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[m.get]; c.r.Method != method {
		rep := tiktokError(http.StatusNotFound, "unsupported_path", "Unsupported path(Janus)")
		rep.refused = true
		return rep
	}
	if !s.logins.isAuthorized(c.r, m.token, c.now) {
		rep := tiktokError(http.StatusUnauthorized, "access_token_invalid", "The access token is invalid or not found in the request.")
		rep.refused = true
		return rep
	}
	if m.source == sourceTikTokResearch && !s.quota.chargeResearch(c.now) {
		return errorRepliesForTikTok().quotaSpent()
	}
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); !m.get && (err != nil || kind != "application/json") {
		return tiktokInvalidRequest("Content-Type must be application/json")
	}
	fields := splitList(c.r.URL.Query().Get("fields"))
	if len(fields) == 0 {
		return tiktokInvalidRequest("fields is required")
	}
	for _, f := range fields {
		if !slices.Contains(m.fields, f) {
			return tiktokInvalidRequest("invalid fields: " + f)
		}
	}
	return m.answer(s, c, func(field string) bool { return slices.Contains(fields, field) })
}

// serveTikTokToken answers v2/oauth/token/, which issues tokens. Faults do not apply to this path.
func (s *Sandbox) serveTikTokToken(w http.ResponseWriter, r *http.Request) {
	c := &call{r: r, now: s.clock(), source: sourceTikTokDisplay, method: "oauth.token"}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		writeReply(w, r, tiktokTokenError(http.StatusNotFound, "unsupported_path", "Unsupported path(Janus)"))
		return
	case err != nil || kind != "application/x-www-form-urlencoded":
		writeReply(w, r, tiktokTokenError(http.StatusBadRequest, "invalid_request", "Only `application/x-www-form-urlencoded` is supported as Content-Type."))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if r.ParseForm() != nil {
		writeReply(w, r, tiktokTokenError(http.StatusBadRequest, "invalid_request", "The request parameters are malformed."))
		return
	}
	grant := r.PostForm.Get("grant_type")
	key, secret := TikTokClientKey, TikTokClientSecret
	if grant == "client_credentials" {
		c.source, key, secret = sourceTikTokResearch, TikTokResearchClientKey, TikTokResearchClientSecret
	}
	s.calls.recordCall(c)
	if r.PostForm.Get("client_key") != key || r.PostForm.Get("client_secret") != secret {
		writeReply(w, r, tiktokTokenError(http.StatusUnauthorized, "invalid_client", "Client key or secret is incorrect."))
		return
	}
	switch grant {
	case "client_credentials":
		writeReply(w, r, reply{status: http.StatusOK, body: object{
			"access_token": s.logins.newAccessToken("clt", "research", c.now), "expires_in": tiktokAccessTTL, "token_type": "Bearer",
		}})
	case "refresh_token":
		if body, ok := s.logins.exchangeToken(r.PostForm.Get("refresh_token"), c.now); ok {
			writeReply(w, r, reply{status: http.StatusOK, body: body})
			return
		}
		writeReply(w, r, tiktokTokenError(http.StatusBadRequest, "invalid_grant", "Refresh token is invalid or expired."))
	case "authorization_code":
		writeReply(w, r, tiktokTokenError(http.StatusBadRequest, "invalid_grant", "Authorization code is expired."))
	default:
		writeReply(w, r, tiktokTokenError(http.StatusBadRequest, "unsupported_grant_type", "The grant type is not supported."))
	}
}

// tiktokTokenError returns a reply with an error in the format of the token endpoint.
func tiktokTokenError(status int, name, description string) reply {
	return reply{status: status, body: object{"error": name, "error_description": description, "log_id": tiktokLogID}}
}

// tiktokLogID is the log_id in all answers of TikTok's APIs.
const tiktokLogID = "202611211530000102231234560A0B0C0D"

func tiktokSuccess(data object) reply {
	return reply{status: http.StatusOK, body: object{"data": data, "error": object{"code": "ok", "message": "", "log_id": tiktokLogID}}}
}

// tiktokError returns a reply with an error in the format of TikTok's APIs.
func tiktokError(status int, code, message string) reply {
	return reply{status: status, body: object{"data": object{}, "error": object{"code": code, "message": message, "log_id": tiktokLogID}}}
}

// tiktokInvalidRequest returns TikTok's error for a request with invalid parameters.
func tiktokInvalidRequest(message string) reply {
	return tiktokError(http.StatusBadRequest, "invalid_params", message)
}

// errorRepliesForTikTok returns the replies that simulate a failure of TikTok's APIs, such as a spent quota.
func errorRepliesForTikTok() errorReplies {
	return errorReplies{
		rateLimited: func() reply {
			return tiktokError(http.StatusTooManyRequests, "rate_limit_exceeded", "The API rate limit was exceeded. Please try again later.")
		},
		quotaSpent: func() reply {
			return tiktokError(http.StatusTooManyRequests, "daily_quota_limit_exceeded", "Your daily quota limit has been exceeded.")
		},
		serverError: func() reply {
			return tiktokError(http.StatusInternalServerError, "internal_error", "Something is wrong. Please try again later.")
		},
		hostile: hostileJSON,
	}
}

// selectMembers returns a copy of an object with those members that are wanted and are not nil.
func selectMembers(members object, isWanted func(string) bool) object {
	out := object{}
	for name, value := range members {
		if isWanted(name) && value != nil {
			out[name] = value
		}
	}
	return out
}

// untypedCount returns *n, or an untyped nil if n is nil. selectMembers would not recognise a nil pointer in an interface as nil.
func untypedCount(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}
