package vendor_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// invalidParameterBody returns the JSON body of an answer in which EnsembleData refuses a parameter. errorType is the type of the error in
// this body.
func invalidParameterBody(parameter, errorType string) string {
	return `{"detail":[{"loc":["query","` + parameter + `"],"msg":"no","type":"` + errorType + `"}]}`
}

func TestSource_distinguishesInvalidTargetFromInvalidRequest(t *testing.T) {
	t.Parallel()
	mira := accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0)
	link, code := tiktokTarget(pancakes, "mira.cooks"), instagramTarget(reel)
	link.NeedDetails = true
	for name, tt := range map[string]struct {
		vendor string
		status int
		body   string
		target queue.Target
		class  source.Class
	}{
		"ensembledata, status 462, an invalid link":                               {"ensembledata", 462, `{"detail":"Invalid post url"}`, link, source.Unsupported},
		"ensembledata, status 463, an invalid username":                           {"ensembledata", 463, `{"detail":"no"}`, mira, source.Unsupported},
		"ensembledata, status 465, an invalid shortcode":                          {"ensembledata", 465, `{"detail":"no"}`, code, source.Unsupported},
		"ensembledata, status 466, an invalid id":                                 {"ensembledata", 466, `{"detail":"no"}`, code, source.Unsupported},
		"ensembledata, status 422, an invalid link":                               {"ensembledata", 422, invalidParameterBody("url", "value_error.url.scheme"), link, source.Unsupported},
		"ensembledata, status 422, a username that is too long":                   {"ensembledata", 422, invalidParameterBody("username", "value_error.any_str.max_length"), mira, source.Unsupported},
		"ensembledata, status 422, a missing parameter":                           {"ensembledata", 422, invalidParameterBody("url", "value_error.missing"), link, source.BadRequest},
		"ensembledata, status 422, a missing parameter in the newer error format": {"ensembledata", 422, invalidParameterBody("url", "missing"), link, source.BadRequest},
		"ensembledata, status 422, an invalid depth":                              {"ensembledata", 422, invalidParameterBody("depth", "type_error.integer"), mira, source.BadRequest},
		"ensembledata, status 422, an error without a reason":                     {"ensembledata", 422, `{"detail":"Unprocessable"}`, link, source.BadRequest},
		"ensembledata, status 404, a missing video":                               {"ensembledata", 404, `{"detail":"Post not found"}`, link, source.Gone},
		"vendor sandbox, an invalid link":                                         {"sandbox", 462, `{"detail":"Invalid post url"}`, link, source.Unsupported},
		"scrapecreators, an invalid link reported in the member `message`":        {"scrapecreators", 400, `{"success":false,"message":"Invalid url"}`, link, source.Unsupported},
		"scrapecreators, an invalid link reported in the member `error`":          {"scrapecreators", 400, `{"success":false,"error":"Not a TikTok link"}`, link, source.Unsupported},
		"scrapecreators, an invalid handle":                                       {"scrapecreators", 400, `{"success":false,"message":"Invalid handle"}`, mira, source.Unsupported},
		"scrapecreators, a request without a link":                                {"scrapecreators", 400, `{"success":false,"error":"url is required"}`, link, source.BadRequest},
		"scrapecreators, another error":                                           {"scrapecreators", 400, `{"success":false,"message":"Malformed query"}`, link, source.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.class, fetchTarget(t, tt.vendor, tt.status, tt.body, tt.target).Class)
		})
	}
}

func TestSource_returnsUnsupportedIfSandboxRefusesLink(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ensembledata", "scrapecreators"} {
		s, _, _ := startSandbox(t, name)
		bad := tiktokTarget(pancakes, "mira.cooks")
		bad.Link, bad.NeedDetails = "https://www.tiktok.com/music/x-42", true
		results, err := s.Fetch(t.Context(), []queue.Target{bad}, source.NewCallBudget(nil))
		require.NoError(t, err, name)
		require.Equal(t, source.Unsupported, results[0].Class, results[0].Detail)
	}
}

func TestEnsembleData_restrictedVideoIsAgeLimitedOnlyIfTheMessageSaysSo(t *testing.T) {
	t.Parallel()
	for detail, class := range map[string]source.Class{
		"Post is age restricted": source.AgeLimited, "Sensitive content": source.AgeLimited, "User is restricted": source.Restricted, "Not available in your region": source.Restricted,
	} {
		require.Equal(t, class, fetchTarget(t, "ensembledata", 471, `{"detail":"`+detail+`"}`, tiktokTarget(pancakes, "mira.cooks")).Class, detail)
	}
}

func TestScrapeCreators_classifiesErrorMessages(t *testing.T) {
	t.Parallel()
	mira := accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0)
	facebook := queue.Target{Platform: link.Facebook, Kind: queue.KindVideo, ExternalID: "845589071817523", Link: "https://www.facebook.com/reel/845589071817523"}
	for body, class := range map[string]source.Class{
		`{"success":false,"message":"This account is private"}`:      source.Private,
		`{"success":false,"message":"This video is age restricted"}`: source.AgeLimited,
		`{"success":false,"message":"Account not found"}`:            source.Gone,
		`{"success":false,"message":"not_found"}`:                    source.Gone,
		`{"success":false,"message":"try again"}`:                    source.Temporary,
		`{"success":false}`: source.Temporary,
		`{"success":false,"error":"x","message":"THE USER IS PRIVATE"}`: source.Private,
	} {
		for _, target := range []queue.Target{mira, facebook} {
			require.Equal(t, class, fetchTarget(t, "scrapecreators", http.StatusOK, body, target).Class, body)
		}
	}
	for _, tt := range []struct {
		status int
		body   string
		class  source.Class
	}{
		{403, `{"error":"This account is private"}`, source.Private},
		{403, `{"success":false,"error":"forbidden","message":"Private video"}`, source.Private},
		{403, `{"error":"This video is restricted in your country"}`, source.Restricted},
		{200, `{"success":false,"message":"Video unavailable. This video is not available in your country"}`, source.Restricted},
		{200, `{"success":false,"message":"The uploader has not made this video available in your country"}`, source.Restricted},
		{403, `{"error":"This content is not available in your region"}`, source.Restricted},
		{400, `{"error":"This video is unavailable in your location"}`, source.Restricted},
		{400, `{"error":"Video not found"}`, source.Gone},
		{400, `{"message":"The post you requested could not be found"}`, source.Gone},
		{200, `{"success":false,"message":"This video has been removed"}`, source.Gone},
		{200, `{"success":false,"message":"Video unavailable"}`, source.Gone},
		{200, `{"success":false,"message":"Post does not exist"}`, source.Gone},
		{200, `{"success":false,"error":"Video not found or deleted"}`, source.Gone},
		{200, `{"success":false,"message":"You are out of credits"}`, source.QuotaSpent},
		{403, `{"success":false,"error":"Not enough credits"}`, source.QuotaSpent},
		{200, `{"success":false,"message":"Rate limit exceeded"}`, source.RateLimited},
		{200, `{"success":false,"message":"Invalid API key"}`, source.AuthFailed},
		// These answers are about the vendor, not about the video.
		{400, `{"success":false,"message":"TikTok is temporarily unavailable, please retry"}`, source.Temporary},
		{400, `{"success":false,"message":"Video service is unavailable"}`, source.Temporary},
		{200, `{"success":false,"error":"TikTok is unavailable"}`, source.Temporary},
		{400, `{"success":false,"message":"This endpoint has been removed, use /v3/tiktok/video"}`, source.BadRequest},
		{200, `{"success":false,"message":"This endpoint has been removed, use /v3/tiktok/video"}`, source.BadRequest},
		{404, `{"error":"Not Found","message":"Route GET:/v2/tiktok/video not found","statusCode":404}`, source.BadRequest},
		{404, `{"statusCode":404,"message":"Cannot GET /v2/tiktok/video","error":"Not Found"}`, source.BadRequest},
		{403, `{"success":false,"message":"Your plan does not include access to private endpoints"}`, source.AuthFailed},
		{403, `{"success":false,"error":"Upgrade to fetch private accounts"}`, source.AuthFailed},
		{403, `{"success":false,"message":"Your account has been restricted. Contact support."}`, source.AuthFailed},
	} {
		for _, target := range []queue.Target{mira, facebook} {
			r := fetchTarget(t, "scrapecreators", tt.status, tt.body, target)
			require.Equal(t, tt.class, r.Class, "status %d: %s: %s", tt.status, tt.body, r.Detail)
		}
	}
	r := fetchTarget(t, "scrapecreators", http.StatusOK, `{"success":true,"message":"my private kitchen, not found elsewhere","post_id":"7","view_count":7}`, facebook)
	require.Equal(t, source.OK, r.Class, "the text in the member `message` of a successful answer must not decide the class, because this text may be the caption of the video")

	s, world, _ := startSandbox(t, "scrapecreators")
	truth, ok := world.Account(link.TikTok, world.FindAccount(link.TikTok, sandbox.AccountPrivate), sourcetest.Now)
	require.True(t, ok)
	results, err := s.Fetch(t.Context(), []queue.Target{accountTarget(t, truth.Link, 30)}, source.NewCallBudget(nil))
	require.NoError(t, err)
	require.True(t, *results[0].Account.Private)
}
