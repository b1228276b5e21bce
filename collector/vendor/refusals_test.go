package vendor_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store/link"
)

// invalid is how the framework behind EnsembleData refuses a parameter.
func invalid(parameter, kind string) string {
	return `{"detail":[{"loc":["query","` + parameter + `"],"msg":"no","type":"` + kind + `"}]}`
}

func TestVendors_tellABadLinkFromABadRequest(t *testing.T) {
	t.Parallel()
	mira := account(t, "https://www.tiktok.com/@mira.cooks", 0)
	link, code := tiktok(pancakes, "mira.cooks"), instagram(reel)
	link.NeedDetails = true
	for name, tt := range map[string]struct {
		vendor string
		status int
		body   string
		target collector.Target
		class  collector.Class
	}{
		"ensembledata, a bad link":           {"ensembledata", 462, `{"detail":"Invalid post url"}`, link, collector.Unsupported},
		"ensembledata, a bad name":           {"ensembledata", 463, `{"detail":"no"}`, mira, collector.Unsupported},
		"ensembledata, a bad code":           {"ensembledata", 465, `{"detail":"no"}`, code, collector.Unsupported},
		"ensembledata, a bad id":             {"ensembledata", 466, `{"detail":"no"}`, code, collector.Unsupported},
		"ensembledata, the target's value":   {"ensembledata", 422, invalid("url", "value_error.url.scheme"), link, collector.Unsupported},
		"ensembledata, the account's name":   {"ensembledata", 422, invalid("username", "value_error.any_str.max_length"), mira, collector.Unsupported},
		"ensembledata, a missing parameter":  {"ensembledata", 422, invalid("url", "value_error.missing"), link, collector.BadRequest},
		"ensembledata, a missing one, newer": {"ensembledata", 422, invalid("url", "missing"), link, collector.BadRequest},
		"ensembledata, a value of our own":   {"ensembledata", 422, invalid("depth", "type_error.integer"), mira, collector.BadRequest},
		"ensembledata, no word on it":        {"ensembledata", 422, `{"detail":"Unprocessable"}`, link, collector.BadRequest},
		"the sandbox, a bad link":            {"sandbox", 462, `{"detail":"Invalid post url"}`, link, collector.Unsupported},
		"scrapecreators, a bad link":         {"scrapecreators", 400, `{"success":false,"message":"Invalid url"}`, link, collector.Unsupported},
		"scrapecreators, a bad link, error":  {"scrapecreators", 400, `{"success":false,"error":"Not a TikTok link"}`, link, collector.Unsupported},
		"scrapecreators, a bad handle":       {"scrapecreators", 400, `{"success":false,"message":"Invalid handle"}`, mira, collector.Unsupported},
		"scrapecreators, nothing sent":       {"scrapecreators", 400, `{"success":false,"error":"url is required"}`, link, collector.BadRequest},
		"scrapecreators, another complaint":  {"scrapecreators", 400, `{"success":false,"message":"Malformed query"}`, link, collector.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.class, fetchOne(t, tt.vendor, tt.status, tt.body, tt.target).Class)
		})
	}
}

func TestSandbox_aBadLinkIsNoFailureOfTheVendor(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ensembledata", "scrapecreators"} {
		s, _, _ := play(t, name)
		bad := tiktok(pancakes, "mira.cooks")
		bad.Link, bad.NeedDetails = "https://www.tiktok.com/music/x-42", true
		results, err := s.Fetch(t.Context(), []collector.Target{bad}, nil)
		require.NoError(t, err, name)
		require.Equal(t, collector.Unsupported, results[0].Class, results[0].Detail)
	}
}

func TestScrapeCreators_readsTheMessageOfWhatIsNoSuccess(t *testing.T) {
	t.Parallel()
	mira := account(t, "https://www.tiktok.com/@mira.cooks", 0)
	facebook := collector.Target{Platform: link.Facebook, Kind: collector.KindVideo, ExternalID: "845589071817523", Link: "https://www.facebook.com/reel/845589071817523"}
	for body, class := range map[string]collector.Class{
		`{"success":false,"message":"This account is private"}`:      collector.Private,
		`{"success":false,"message":"This video is age restricted"}`: collector.Restricted,
		`{"success":false,"message":"Account not found"}`:            collector.Gone,
		`{"success":false,"message":"not_found"}`:                    collector.Gone,
		`{"success":false,"message":"try again"}`:                    collector.Temporary,
		`{"success":false}`: collector.Temporary,
		`{"success":false,"error":"x","message":"THE USER IS PRIVATE"}`: collector.Private,
	} {
		for _, target := range []collector.Target{mira, facebook} {
			require.Equal(t, class, fetchOne(t, "scrapecreators", http.StatusOK, body, target).Class, body)
		}
	}
	r := fetchOne(t, "scrapecreators", http.StatusOK, `{"success":true,"message":"my private kitchen, not found elsewhere","view_count":7}`, facebook)
	require.Equal(t, collector.OK, r.Class, "the words of a success are somebody's own")

	s, world, _ := play(t, "scrapecreators")
	truth, ok := world.Account(link.TikTok, world.FindAccount(link.TikTok, sandbox.AccountPrivate), sourcetest.Now)
	require.True(t, ok)
	results, err := s.Fetch(t.Context(), []collector.Target{account(t, truth.Link, 30)}, nil)
	require.NoError(t, err)
	require.True(t, *results[0].Account.Private)
}
