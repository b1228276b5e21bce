package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
)

func (r testServer) requestTikTokToken(t *testing.T, pairs ...string) answer {
	t.Helper()
	return r.mustSend(t, http.MethodPost, "/tiktok/v2/oauth/token/", encodeQuery(pairs...), "Content-Type", "application/x-www-form-urlencoded")
}

func (r testServer) exchangeToken(t *testing.T, refresh string) answer {
	t.Helper()
	return r.requestTikTokToken(t, "client_key", TikTokClientKey, "client_secret", TikTokClientSecret, "grant_type", "refresh_token", "refresh_token", refresh)
}

// loginAccessToken returns an access token of the account that has logged in to the Display API.
func (r testServer) loginAccessToken(t *testing.T) string {
	t.Helper()
	return r.exchangeToken(t, TikTokRefreshToken).decodeJSON(t)["access_token"].(string)
}

func (r testServer) researchToken(t *testing.T) string {
	t.Helper()
	a := r.requestTikTokToken(t, "client_key", TikTokResearchClientKey, "client_secret", TikTokResearchClientSecret, "grant_type", "client_credentials")
	return a.decodeJSON(t)["access_token"].(string)
}

func (r testServer) postTikTok(t *testing.T, token, path, body string) answer {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	return r.mustSend(t, method, "/tiktok/v2/"+path, body, "Authorization", "Bearer "+token, "Content-Type", "application/json")
}

func TestTikTok_acceptsEachRefreshTokenOnlyOnce(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	first := r.exchangeToken(t, TikTokRefreshToken)
	require.Equal(t, http.StatusOK, first.StatusCode)
	require.Equal(t, json.Number("7200"), first.decodeJSON(t)["expires_in"])
	second := first.decodeJSON(t)["refresh_token"].(string)
	third := r.exchangeToken(t, second).decodeJSON(t)["refresh_token"].(string)
	old := r.exchangeToken(t, second)
	require.Equal(t, http.StatusBadRequest, old.StatusCode)
	require.Equal(t, "invalid_grant", old.decodeJSON(t)["error"], "the error must be a string at the top level")
	require.Equal(t, http.StatusOK, r.exchangeToken(t, third).StatusCode)
	require.Equal(t, http.StatusOK, r.exchangeToken(t, TikTokRefreshToken).StatusCode, "TikTokRefreshToken must be accepted again, because each use starts a new login")

	again := newTestServer(t) // this server simulates a restart of the sandbox
	require.Equal(t, http.StatusOK, again.exchangeToken(t, third).StatusCode)
	require.Equal(t, "invalid_grant", r.exchangeToken(t, strings.Replace(third, "rft.", "act.", 1)).decodeJSON(t)["error"])
	require.Equal(t, "invalid_client", r.requestTikTokToken(t, "client_key", TikTokClientKey, "client_secret", "x", "grant_type", "refresh_token", "refresh_token", third).decodeJSON(t)["error"])
	require.Equal(t, "unsupported_grant_type", r.requestTikTokToken(t, "client_key", TikTokClientKey, "client_secret", TikTokClientSecret, "grant_type", "password").decodeJSON(t)["error"])
	a := r.mustSend(t, http.MethodPost, "/tiktok/v2/oauth/token/", `{}`, "Content-Type", "application/json")
	require.Equal(t, "invalid_request", a.decodeJSON(t)["error"])
}

func TestTikTok_refusesAccessTokenAfterTwoHours(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	user, client := r.loginAccessToken(t), r.researchToken(t)
	request := func(token string) int { return r.postTikTok(t, token, "user/info/?fields=open_id", "").StatusCode }
	require.Equal(t, http.StatusOK, request(user))
	require.Equal(t, http.StatusUnauthorized, request(client), "a token of the Research API must be refused by the Display API")
	require.Equal(t, http.StatusUnauthorized, request(user+"0"))
	later := testNow.Add(2 * time.Hour).Format(time.RFC3339)
	require.Equal(t, http.StatusOK, r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"`+later+`"}`).StatusCode)
	a := r.postTikTok(t, user, "user/info/?fields=open_id", "")
	require.Equal(t, http.StatusUnauthorized, a.StatusCode)
	require.Equal(t, "access_token_invalid", valueAt(t, a.decodeJSON(t), "error", "code"))
	require.Equal(t, http.StatusOK, request(r.loginAccessToken(t)))
}

func TestTikTok_refusesInvalidRequests(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	user, client := r.loginAccessToken(t), r.researchToken(t)
	const research = `{"query":{"and":[{"operation":"IN","field_name":"video_id","field_values":["7588213403351190801"]}]},"start_date":"20251201","end_date":%q,"max_count":%d}`
	ids := strings.TrimSuffix(strings.Repeat(`"7588213403351190801",`, 21), ",")
	for name, c := range map[string]struct{ token, path, body, says string }{
		"no fields":                              {user, "video/query/", `{"filters":{"video_ids":["1"]}}`, "fields"},
		"an unknown field":                       {user, "video/query/?fields=id,plays", `{"filters":{"video_ids":["1"]}}`, "plays"},
		"too many ids":                           {user, "video/query/?fields=id", `{"filters":{"video_ids":[` + ids + `]}}`, "21"},
		"no ids":                                 {user, "video/query/?fields=id", `{"filters":{}}`, "0 ids"},
		"an unknown member":                      {user, "video/query/?fields=id", `{"filters":{"video_ids":["1"]},"x":1}`, "malformed"},
		"ids as numbers":                         {user, "video/query/?fields=id", `{"filters":{"video_ids":[1]}}`, "malformed"},
		"a page size above 20":                   {user, "video/list/?fields=id", `{"max_count":21}`, "20"},
		"a field that only the Research API has": {user, "user/info/?fields=favorites_count", "", "favorites_count"},
		"a date range that is too long":          {client, "research/video/query/?fields=id", fmt.Sprintf(research, "20260101", 100), "30 days"},
		"a date in a wrong format":               {client, "research/video/query/?fields=id", fmt.Sprintf(research, "2025-12-30", 100), "end_date"},
		"a page size above 100":                  {client, "research/video/query/?fields=id", fmt.Sprintf(research, "20251231", 101), "100"},
		"no query":                               {client, "research/video/query/?fields=id", `{"start_date":"20251201","end_date":"20251202"}`, "query"},
		"an unknown condition":                   {client, "research/video/query/?fields=id", strings.Replace(fmt.Sprintf(research, "20251231", 100), "video_id", "views", 1), "views"},
		"an unknown account":                     {client, "research/user/info/?fields=display_name", `{"username":"no body"}`, "username"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := r.postTikTok(t, c.token, c.path, c.body)
			require.Equal(t, http.StatusBadRequest, a.StatusCode, a.text)
			require.Equal(t, "invalid_params", valueAt(t, a.decodeJSON(t), "error", "code"))
			require.Contains(t, valueAt(t, a.decodeJSON(t), "error", "message"), c.says)
		})
	}
	a := r.mustSend(t, http.MethodPost, "/tiktok/v2/video/query/?fields=id", `{"filters":{"video_ids":["1"]}}`, "Authorization", "Bearer "+user, "Content-Type", "text/plain")
	require.Equal(t, "invalid_params", valueAt(t, a.decodeJSON(t), "error", "code"))
	require.Equal(t, http.StatusNotFound, r.postTikTok(t, user, "user/info?fields=open_id", "").StatusCode, "a path without the final slash must not be found")
	require.Equal(t, http.StatusNotFound, r.postTikTok(t, user, "video/query/?fields=id", "").StatusCode, "GET")
}

func TestTikTokDisplay_returnsOnlyVideosOfLoggedInAccount(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	own, other := r.World().Uploads(link.TikTok, r.TikTokAccount(), testNow)[0], r.World().Find(link.TikTok, Normal)
	a := r.postTikTok(t, r.loginAccessToken(t), "video/query/?fields=id,view_count", `{"filters":{"video_ids":["`+other+`","`+own+`"]}}`).decodeJSON(t)
	require.Equal(t, "ok", valueAt(t, a, "error", "code"))
	videos := valueAt(t, a, "data", "videos").([]any)
	require.Len(t, videos, 1)
	truth, _ := r.World().Video(link.TikTok, own, testNow)
	require.Equal(t, object{"id": own, "view_count": json.Number(fmt.Sprint(truth.Views))}, videos[0], "no other fields than the requested ones may be returned")
}

func TestTikTok_limitsResearchRequestsPerDay(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	token := r.researchToken(t)
	request := func() answer {
		return r.postTikTok(t, token, "research/user/info/?fields="+url.QueryEscape("display_name"), `{"username":"`+r.World().Handle(link.TikTok, 7)+`"}`)
	}
	for range researchQuota {
		require.Equal(t, http.StatusOK, request().StatusCode)
	}
	a := request()
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
	require.Equal(t, "daily_quota_limit_exceeded", valueAt(t, a.decodeJSON(t), "error", "code"))
	r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"`+testNow.Add(24*time.Hour).Format(time.RFC3339)+`"}`)
	token = r.researchToken(t)
	require.Equal(t, http.StatusOK, request().StatusCode)
}
