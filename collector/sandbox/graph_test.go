package sandbox

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
)

func (r testServer) getInstagram(t *testing.T, path string, pairs ...string) answer {
	t.Helper()
	return r.mustSend(t, http.MethodGet, "/instagram/v25.0/"+path+"?"+encodeQuery(append(pairs, "access_token", InstagramToken)...), "")
}

func (r testServer) getFacebook(t *testing.T, path string, pairs ...string) answer {
	t.Helper()
	return r.mustSend(t, http.MethodGet, "/facebook/v25.0/"+path+"?"+encodeQuery(append(pairs, "access_token", FacebookToken)...), "")
}

func (r testServer) tokenAccountID() string {
	return instagramUserID(r.World().accountOfInstagramToken().number)
}

// requireGraphError requires an error of the Graph API with the given status, code, subcode and
// text. If the subcode is 0, any subcode is accepted.
func requireGraphError(t *testing.T, a answer, status, code, subcode int, errorText string) {
	t.Helper()
	require.Equal(t, status, a.StatusCode, a.text)
	e := valueAt(t, a.decodeJSON(t), "error").(object)
	require.EqualValues(t, decimalText(int64(code)), e["code"])
	if subcode != 0 {
		require.EqualValues(t, decimalText(int64(subcode)), e["error_subcode"])
	}
	require.Contains(t, e["message"], errorText)
	require.NotEmpty(t, e["type"])
	require.NotEmpty(t, e["fbtrace_id"])
}

func TestGraph_checksAppSecretProof(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	// proof is the hex HMAC-SHA256 of InstagramToken with the key MetaAppSecret. It was computed with another program.
	const proof = "f3154c0c15582f0bc40d1f38667a47e2405bce14bdf8fa6750051e030f49b2e1"
	request := func(pairs ...string) answer {
		return r.getInstagram(t, r.tokenAccountID(), append(pairs, "fields", "id")...)
	}
	requireRefused := func(a answer, message string) {
		t.Helper()
		requireGraphError(t, a, 400, 100, 0, message)
		require.Equal(t, "GraphMethodException", valueAt(t, a.decodeJSON(t), "error").(object)["type"])
	}
	require.Equal(t, http.StatusOK, request().StatusCode, "a request without appsecret_proof must be accepted")
	require.Equal(t, http.StatusOK, request("appsecret_proof", proof).StatusCode)
	requireRefused(request("appsecret_proof", strings.ToUpper(proof)), "Invalid appsecret_proof provided in the API argument")
	requireRefused(request("appsecret_proof", ""), "Invalid appsecret_proof provided in the API argument")
	require.Equal(t, http.StatusOK, r.mustSend(t, http.MethodPut, "/_control/meta", `{"require_app_secret":true}`).StatusCode)
	requireRefused(request(), "API calls from the server require an appsecret_proof argument")
	require.Equal(t, http.StatusOK, request("appsecret_proof", proof).StatusCode)
	require.Equal(t, http.StatusOK, r.mustSend(t, http.MethodPut, "/_control/meta", `{"require_app_secret":false}`).StatusCode)
	require.Equal(t, http.StatusOK, request().StatusCode)
	require.Equal(t, http.StatusBadRequest, r.mustSend(t, http.MethodPut, "/_control/meta", `{"secret":1}`).StatusCode)
}

func TestGraph_returnsPageTokensToSystemUser(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	as := func(token, path string, pairs ...string) answer {
		return r.mustSend(t, http.MethodGet, "/facebook/v25.0/"+path+"?"+encodeQuery(append(pairs, "access_token", token)...), "")
	}
	pages := r.World().FacebookPages()
	first := as(FacebookUserToken, "me/accounts", "fields", "id,name,access_token", "limit", "2").decodeJSON(t)
	require.Len(t, valueAt(t, first, "data"), 2)
	require.NotContains(t, valueAt(t, first, "paging", "next"), FacebookUserToken)
	rest := as(FacebookUserToken, "me/accounts", "fields", "id,name,access_token", "limit", "2", "after", valueAt(t, first, "paging", "cursors", "after").(string)).decodeJSON(t)
	require.Len(t, valueAt(t, rest, "data"), 1)
	require.Equal(t, pages[2], valueAt(t, rest, "data", 0, "id"))
	token := valueAt(t, rest, "data", 0, "access_token").(string)
	requireGraphError(t, as(token, "me/accounts"), 400, 100, 0, "Tried accessing nonexisting field (accounts) on node type (Page)")
	requireGraphError(t, as(FacebookToken, "me/accounts"), 400, 100, 0, "Tried accessing nonexisting field (accounts) on node type (Page)")

	video := r.World().Uploads(link.Facebook, pages[2], testNow)[0]
	insights := func(token string) answer {
		return as(token, video+"/video_insights", "metric", "post_video_social_actions")
	}
	require.Equal(t, http.StatusOK, insights(token).StatusCode)
	requireGraphError(t, insights(FacebookUserToken), 400, 190, 0, "(#190) This method must be called with a Page Access Token")
	requireGraphError(t, insights(FacebookToken), 400, 10, 0, "(#10) This endpoint requires the page's own access token")
	for _, path := range []string{video, pages[2] + "/videos"} {
		requireGraphError(t, as(FacebookUserToken, path, "fields", "id,description"), 400, 210, 0, "(#210) A page access token is required")
		require.Equal(t, http.StatusOK, as(token, path, "fields", "id,description").StatusCode)
	}
	require.Equal(t, http.StatusOK, r.mustSend(t, http.MethodPut, "/_control/meta", `{"expire_page_tokens":true}`).StatusCode)
	requireGraphError(t, insights(token), 400, 190, 0, "Invalid OAuth access token")
}

func TestGraph_refusesInvalidRequests(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	own := r.tokenAccountID()
	for fields, message := range map[string]string{
		"id,": "Syntax error", "id{": "Syntax error", "id}": "Syntax error", "media.limit(1": "Syntax error", "media.limit": "Syntax error", "media{id}}": "Syntax error",
		"media.limit(1){}": "Syntax error", "Id": "Syntax error", "id username": "Syntax error",
	} {
		requireGraphError(t, r.getInstagram(t, own, "fields", fields), 400, 2500, 0, message)
	}
	for fields, message := range map[string]string{
		"id,plays": "Tried accessing nonexisting field (plays)", "media{view_count}": "Tried accessing nonexisting field (view_count)", "username.limit(1)": "Tried accessing nonexisting field (username)",
		"business_discovery{id}": "The parameter username is required", "business_discovery.username(natgeo)": "The parameter username is required",
		"business_discovery.username(natgeo){plays}": "Tried accessing nonexisting field (plays) on node type (ShadowIGUser)",
		"media.limit(x){id}":                         "Param limit must be a non-negative integer", "media.after(x){id}": "Invalid parameter: after is not a cursor of this list", "media.sort(x){id}": "Unknown modifier sort",
	} {
		requireGraphError(t, r.getInstagram(t, own, "fields", fields), 400, 100, 0, message)
	}
	requireGraphError(t, r.getInstagram(t, own+"/media", "fields", "id,view_count"), 400, 100, 0, "Tried accessing nonexisting field (view_count)")
	requireGraphError(t, r.getInstagram(t, "17841400009999999"), 400, 100, 33, "Unsupported get request")
	requireGraphError(t, r.getInstagram(t, r.World().instagramMediaID(r.World().Find(link.Instagram, Normal))+"/insights", "metric", "views"), 400, 100, 33, "Unsupported get request")
	path := "/instagram/v25.0/" + own
	requireGraphError(t, r.mustSend(t, http.MethodGet, path, ""), 400, 104, 0, "An access token is required to request this resource.")
	requireGraphError(t, r.mustSend(t, http.MethodGet, path+"?access_token=x", ""), 400, 190, 0, "Invalid OAuth access token")
	requireGraphError(t, r.mustSend(t, http.MethodGet, path+"?access_token="+FacebookToken, ""), 400, 190, 0, "Invalid OAuth access token")
	requireGraphError(t, r.mustSend(t, http.MethodPost, path+"?access_token="+InstagramToken, ""), 400, 100, 0, "Unsupported request")
	for _, version := range []string{"", "v3.1/", "v99.0/", "v25/"} {
		requireGraphError(t, r.mustSend(t, http.MethodGet, "/instagram/"+version+own+"?access_token="+InstagramToken, ""), 400, 2500, 0, "Unknown path components")
	}

	id := r.World().Find(link.Facebook, Normal)
	requireGraphError(t, r.getFacebook(t, id, "fields", "id,plays"), 400, 100, 0, "Tried accessing nonexisting field (plays) on node type (Video)")
	requireGraphError(t, r.getFacebook(t, id+"/video_insights", "metric", "total_video_views"), 400, 10, 0, "(#10) This endpoint requires the page's own access token")
	requireGraphError(t, r.getFacebook(t, id+"/comments"), 400, 2500, 0, "Unknown path components")
	requireGraphError(t, r.getFacebook(t, r.World().FindAccount(link.Facebook, AccountGone), "fields", "id,username"), 404, 803, 0, "Some of the aliases you requested do not exist")
	requireGraphError(t, r.getFacebook(t, r.World().FindAccount(link.Facebook, AccountPrivate), "fields", "id,username"), 400, 100, 33, "Unsupported get request")
	mine := r.World().listedVideos(r.World().pageOfFacebookToken(), testNow)[0]
	requireGraphError(t, r.getFacebook(t, mine+"/video_insights", "metric", "video_views"), 400, 100, 0, "The value must be a valid insights metric")
}

func TestInstagram_returnsOtherAccountsByBusinessDiscovery(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	truth, ok := r.World().Video(link.Instagram, r.World().Find(link.Instagram, HiddenLikes), testNow)
	require.True(t, ok)
	codes := r.World().Uploads(link.Instagram, truth.Account.Handle, testNow)
	var seen []string
	after := ""
	for range codes {
		a := r.getInstagram(t, r.tokenAccountID(), "fields", "business_discovery.username("+truth.Account.Handle+"){username,followers_count,media"+after+".limit(7){shortcode,like_count,comments_count,view_count,timestamp,permalink}}")
		require.Equal(t, http.StatusOK, a.StatusCode, a.text)
		require.JSONEq(t, `{"call_count":1,"total_cputime":1,"total_time":1}`, a.Header.Get("X-App-Usage"))
		found := valueAt(t, a.decodeJSON(t), "business_discovery").(object)
		require.Equal(t, truth.Account.Handle, found["username"])
		require.Regexp(t, `^17841[0-9]{12}$`, found["id"], "the id must have the format of the Graph API, not of Instagram's site")
		for _, item := range valueAt(t, found, "media", "data").([]any) {
			m := item.(object)
			seen = append(seen, m["shortcode"].(string))
			if m["shortcode"] != truth.ID {
				continue
			}
			require.NotContains(t, m, "like_count", "hidden likes must be absent")
			require.EqualValues(t, decimalText(truth.Views), m["view_count"])
			require.Equal(t, truth.UploadedAt.Format("2006-01-02T15:04:05+0000"), m["timestamp"], "the time zone must have no colon")
			require.Equal(t, truth.Link, m["permalink"])
			require.Regexp(t, `^179[0-9]{14}$|^18[0-9]{15}$`, m["id"])
		}
		paging := valueAt(t, found, "media", "paging").(object)
		require.NotContains(t, paging, "next", "a list inside another object must have cursors, but no URL of the next page")
		next, more := valueAt(t, paging, "cursors").(object)["after"]
		if !more {
			break
		}
		after = ".after(" + next.(string) + ")"
	}
	require.Equal(t, codes, seen)
	for _, c := range []AccountCategory{AccountPrivate, AccountGone} {
		a := r.getInstagram(t, r.tokenAccountID(), "fields", "business_discovery.username("+r.World().FindAccount(link.Instagram, c)+"){id}")
		requireGraphError(t, a, 400, 110, 2207013, "Invalid user id")
	}
	empty := r.getInstagram(t, r.tokenAccountID(), "fields", "business_discovery.username("+r.World().FindAccount(link.Instagram, AccountEmpty)+"){id,media{id}}")
	require.NotContains(t, valueAt(t, empty.decodeJSON(t), "business_discovery"), "media")
}

func TestInstagram_returnsInsightsToOwner(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	page := r.getInstagram(t, r.tokenAccountID()+"/media", "fields", "shortcode,like_count", "limit", "2").decodeJSON(t)
	require.Len(t, page["data"], 2)
	require.Contains(t, valueAt(t, page, "paging", "next"), "/instagram/v25.0/"+r.tokenAccountID()+"/media?")
	id := valueAt(t, page, "data", 0, "id").(string)
	truth, _ := r.World().Video(link.Instagram, valueAt(t, page, "data", 0, "shortcode").(string), testNow)
	got := r.getInstagram(t, id+"/insights", "metric", "views,saved").decodeJSON(t)
	require.EqualValues(t, decimalText(truth.Views), valueAt(t, got, "data", 0, "values", 0, "value"))
	require.Equal(t, "saved", valueAt(t, got, "data", 1, "name"))
	requireGraphError(t, r.getInstagram(t, id+"/insights", "metric", "views,plays"), 400, 100, 0, "metric[0] must be one of the following values")
	r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"`+truth.UploadedAt.Add(time.Minute).Format(time.RFC3339)+`"}`)
	require.Empty(t, r.getInstagram(t, id+"/insights", "metric", "views").decodeJSON(t)["data"], "new posts must have no insights")
}

func TestFacebook_returnsPagesAndVideosInFormatOfGraphAPI(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	truth, ok := r.World().Video(link.Facebook, r.World().Find(link.Facebook, HiddenLikes), testNow)
	require.True(t, ok)
	got := r.getFacebook(t, truth.ID, "fields", "id,title,description,length,created_time,permalink_url,views,likes.summary(true).limit(0),comments.summary(true).limit(0),from").decodeJSON(t)
	require.NotContains(t, got, "likes", "hidden reactions must be absent")
	require.EqualValues(t, decimalText(*truth.Comments), valueAt(t, got, "comments", "summary", "total_count"))
	require.Equal(t, truth.Account.ID, valueAt(t, got, "from", "id"))
	require.NotContains(t, valueAt(t, r.getFacebook(t, truth.ID, "fields", "comments").decodeJSON(t), "comments"), "summary")

	var ids []string
	short := 0
	for _, edge := range []string{"videos", "video_reels"} {
		after := ""
		for {
			list := r.getFacebook(t, truth.Account.ID+"/"+edge, "fields", "id,permalink_url", "limit", "5", "after", after).decodeJSON(t)
			for _, item := range list["data"].([]any) {
				id := item.(object)["id"].(string)
				ids = append(ids, id)
				require.Equal(t, edge == "video_reels", strings.Contains(item.(object)["permalink_url"].(string), "/reel/"))
			}
			paging, _ := list["paging"].(object)
			if paging["next"] == nil {
				break
			}
			if len(list["data"].([]any)) < 5 {
				short++
			}
			after = valueAt(t, paging, "cursors", "after").(string)
		}
	}
	require.Positive(t, short, "some pages of the list must be short although more pages follow")
	require.ElementsMatch(t, r.World().Uploads(link.Facebook, truth.Account.ID, testNow), ids)

	mine := r.World().listedVideos(r.World().pageOfFacebookToken(), testNow)[0]
	truth, _ = r.World().Video(link.Facebook, mine, testNow)
	insights := r.getFacebook(t, mine+"/video_insights", "metric", "fb_reels_total_plays,total_video_views,post_video_social_actions").decodeJSON(t)
	require.Len(t, insights["data"], 2, "both metrics, the views and the actions, must be returned")
	require.EqualValues(t, decimalText(truth.Views), valueAt(t, insights, "data", 0, "values", 0, "value"))
	require.EqualValues(t, decimalText(*truth.Shares), valueAt(t, insights, "data", 1, "values", 0, "value", "SHARE"))
}

func TestGraph_faultsReturnErrorsInFormatOfMeta(t *testing.T) {
	t.Parallel()
	for source, request := range map[string]func(r testServer) answer{
		"instagram": func(r testServer) answer { return r.getInstagram(t, r.tokenAccountID(), "fields", "username") },
		"facebook":  func(r testServer) answer { return r.getFacebook(t, "natgeo", "fields", "username,followers_count") },
	} {
		r := newTestServer(t)
		r.setFault(t, `{"source":"`+source+`","fault":"rate_limited","retry_after":7}`)
		a := request(r)
		requireGraphError(t, a, 400, 4, 0, "Application request limit reached")
		require.Equal(t, "7", a.Header.Get("Retry-After"))
		require.Contains(t, a.Header.Get("X-App-Usage"), `"call_count":100`)
		r.setFault(t, `{"source":"`+source+`","fault":"quota_spent"}`)
		a = request(r)
		requireGraphError(t, a, 400, graphLimits[source].code, 0, "There have been too many calls to this account.")
		require.Contains(t, a.Header.Get("X-Business-Use-Case-Usage"), `"estimated_time_to_regain_access":5`)
		r.setFault(t, `{"source":"`+source+`","fault":"server_error"}`)
		requireGraphError(t, request(r), 500, 2, 0, "An unexpected error has occurred.")
		calls := r.mustSend(t, http.MethodGet, "/_control/calls", "").decodeJSON(t)
		require.EqualValues(t, "3", valueAt(t, calls, source, "calls"))
	}
	r := newTestServer(t)
	r.setFault(t, `{"source":"facebook","fault":"zeros"}`)
	require.EqualValues(t, "0", r.getFacebook(t, "natgeo", "fields", "username,followers_count").decodeJSON(t)["followers_count"])
}
