package vendor_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	pancakes = "7382991827364555321"
	train    = "7561000000000000001"
	reel     = "DHtWpRvMBiw"
)

func tiktokTarget(id, handle string) queue.Target {
	return queue.Target{
		Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: id, Handle: handle, Link: "https://www.tiktok.com/@" + handle + "/video/" + id,
	}
}

func instagramTarget(code string) queue.Target {
	return queue.Target{Platform: link.Instagram, Kind: queue.KindVideo, ExternalID: code, Link: "https://www.instagram.com/reel/" + code + "/"}
}

func testdataText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file + ".json")
	require.NoError(t, err)
	return string(text)
}

// newSource returns a source for a vendor. nameOrPath is the name of the vendor, or the path of its description.
func newSource(t testing.TB, nameOrPath, base string, client *fetch.Client) *vendor.Source {
	t.Helper()
	config, err := vendor.Load(nameOrPath)
	require.NoError(t, err)
	if client == nil {
		client = fetch.New(fetch.Options{})
		t.Cleanup(client.Close)
	}
	if config.Timeout != 0 && base != "" {
		config.Timeout = 0 // the client's timeout is used: with the vendor's timeout, a test with a slow server would take a minute
	}
	s, err := vendor.New(config, vendor.Options{
		BaseURL: base, Key: sourcetest.Credential, Client: client, Now: func() time.Time { return sourcetest.Now },
	})
	require.NoError(t, err)
	return s
}

func newTestSource(nameOrPath string) func(*testing.T, string, *fetch.Client) source.Source {
	return func(t *testing.T, base string, client *fetch.Client) source.Source {
		return newSource(t, nameOrPath, base, client)
	}
}

// videoAnswers returns the vendor's answers, one for each test case. Four come from files. The map
// "replacements" adds further answers or replaces these four.
func videoAnswers(t *testing.T, folder string, facts []*source.Facts, replacements map[sourcetest.Case]sourcetest.Answer) map[sourcetest.Case]sourcetest.Answer {
	t.Helper()
	all := map[sourcetest.Case]sourcetest.Answer{}
	for c, file := range map[sourcetest.Case]string{
		sourcetest.OK: "ok", sourcetest.Strings: "strings", sourcetest.Duplicates: "duplicates", sourcetest.Foreign: "foreign",
	} {
		classes := slices.Repeat([]source.Class{source.OK}, len(facts))
		if c == sourcetest.Duplicates {
			classes[0] = source.Temporary
		}
		all[c] = sourcetest.Answer{Body: testdataText(t, folder+"/"+file), Classes: classes, Facts: facts}
	}
	maps.Copy(all, replacements)
	return all
}

func ensembleRefusals(all map[sourcetest.Case]sourcetest.Answer) {
	all[sourcetest.RateLimited] = sourcetest.Answer{Status: 429, Body: `{"detail":"Too many requests"}`}
	all[sourcetest.QuotaSpent] = sourcetest.Answer{
		Status: 495, Body: `{"detail":"Maximum daily units reached"}`, RetryAt: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
	}
	all[sourcetest.AuthFailed] = sourcetest.Answer{Status: 491, Body: `{"detail":"Token {{credential}} not found, token={{credential}}"}`}
	all[sourcetest.ServerError] = sourcetest.Answer{Status: 500, Body: `{"detail":"Internal Server Error"}`}
}

func tiktokFacts() (first, second source.Facts) {
	return source.Facts{
			Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Shares: new(int64(877)), Bookmarks: new(int64(4310)),
			Title:    new("pancakes in a tiny kitchen 🥞 #fyp"),
			Username: new("mira.cooks"), AccountID: new("6801234567890123456"), AccountName: new("Mira"),
			UploadedAt: new(time.Date(2024, 6, 21, 8, 53, 20, 0, time.UTC)), LengthSeconds: new(58.25),
			SongName: new("Sunny Side"), SongLink: new("https://www.tiktok.com/music/x-7011111111111111111"),
			Private: new(false), IsAd: new(true), ShopAd: new(true), ShopProductID: new("1729384756012345678"),
		}, source.Facts{
			Views: new(int64(0)), Likes: new(int64(0)), Comments: new(int64(0)), Shares: new(int64(0)), Bookmarks: new(int64(0)),
			Title: new(""), Username: new("rails_rain"), AccountID: new("42"), AccountName: new("Rails & Rain"),
			UploadedAt: new(time.Date(2025, 10, 14, 0, 0, 0, 0, time.UTC)), LengthSeconds: new(0.0),
			SongName: new("original sound"), SongLink: new("https://www.tiktok.com/music/x-99"),
			Private: new(false), IsAd: new(false), ShopAd: new(false),
		}
}

func TestEnsembleData_fetchesTikTokVideos(t *testing.T) {
	t.Parallel()
	const folder = "ensembledata_tiktok"
	first, second := tiktokFacts()
	bare := &source.Facts{Views: new(int64(5))}
	all := videoAnswers(t, folder, []*source.Facts{&first, &second}, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.Bare:    {Body: testdataText(t, folder+"/bare"), Classes: []source.Class{source.OK}, Facts: []*source.Facts{bare, bare}},
		sourcetest.Gone:    {Body: testdataText(t, folder+"/gone"), Classes: []source.Class{source.Gone, source.OK}},
		sourcetest.Private: {Body: testdataText(t, folder+"/private"), Classes: []source.Class{source.Private, source.OK}},
		// The vendor leaves unavailable videos out of the answer to a batch. An item for a deleted video has no valid counts.
		sourcetest.Restricted:  {Body: testdataText(t, folder+"/deleted"), Classes: []source.Class{source.Gone, source.OK}},
		sourcetest.WrongTypes:  {Body: testdataText(t, folder+"/wrong_types"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Big:         {Body: testdataText(t, folder+"/big"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.GoneForeign: {Body: testdataText(t, folder+"/strangers"), Classes: []source.Class{source.Temporary, source.OK}},
	})
	ensembleRefusals(all)
	sourcetest.Run(t, sourcetest.Harness{
		New: newTestSource("ensembledata"), Answers: all,
		Targets: []queue.Target{tiktokTarget(pancakes, "mira.cooks"), tiktokTarget(train, "")},
	})
}

func TestEnsembleData_fetchesReels(t *testing.T) {
	t.Parallel()
	const folder = "ensembledata_instagram"
	facts := source.Facts{
		Views: new(int64(20331)), Likes: new(int64(455)), Comments: new(int64(14)), Title: new("Morning light\n☀️"),
		Username: new("mira_cooks"), AccountID: new("17841400000000001"), AccountName: new("Mira"),
		UploadedAt: new(time.Date(2025, 10, 3, 8, 26, 40, 0, time.UTC)), LengthSeconds: new(12.345),
		SongName: new("Sunny Side"), SongLink: new("https://www.instagram.com/reels/audio/1234567890/"),
		Private: new(false), HiddenStats: new(false), IsAd: new(true),
	}
	bare := source.Facts{Views: new(int64(5))}
	all := videoAnswers(t, folder, []*source.Facts{&facts}, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.Bare:        {Body: testdataText(t, folder+"/bare"), Classes: []source.Class{source.OK}, Facts: []*source.Facts{&bare}},
		sourcetest.Gone:        {Status: 404, Body: `{"detail":"Post not found"}`, Classes: []source.Class{source.Gone}},
		sourcetest.Private:     {Status: 472, Body: `{"detail":"Private user"}`, Classes: []source.Class{source.Private}},
		sourcetest.Restricted:  {Status: 471, Body: `{"detail":"Age restricted"}`, Classes: []source.Class{source.AgeLimited}},
		sourcetest.WrongTypes:  {Body: testdataText(t, folder+"/wrong_types"), Classes: []source.Class{source.Temporary}},
		sourcetest.Big:         {Body: testdataText(t, folder+"/big"), Classes: []source.Class{source.Temporary}},
		sourcetest.GoneForeign: {Body: testdataText(t, folder+"/strangers"), Classes: []source.Class{source.Temporary}},
	})
	ensembleRefusals(all)
	sourcetest.Run(t, sourcetest.Harness{New: newTestSource("ensembledata"), Answers: all, Targets: []queue.Target{instagramTarget(reel)}})
}

func TestEnsembleData_reportsHiddenLikes(t *testing.T) {
	t.Parallel()
	r := fetchTarget(t, "ensembledata", http.StatusOK, testdataText(t, "ensembledata_instagram/hidden"), instagramTarget(reel))
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Nil(t, r.Facts.Likes, "the likes must be missing, because -1 means hidden")
	require.Equal(t, new(true), r.Facts.HiddenStats)
	require.Equal(t, int64(20331), *r.Facts.Views)
}

func TestApify_fetchesTikTokVideos(t *testing.T) {
	t.Parallel()
	const folder = "apify_tiktok"
	first := source.Facts{
		Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Shares: new(int64(877)), Bookmarks: new(int64(4310)),
		Title: new("pancakes"), Username: new("mira.cooks"), AccountID: new("6801234567890123456"), AccountName: new("Mira"),
		UploadedAt: new(time.Date(2024, 6, 21, 8, 53, 20, 0, time.UTC)), LengthSeconds: new(58.0),
		SongName: new("Sunny Side"), SongLink: new("https://www.tiktok.com/music/x-7011111111111111111"), IsAd: new(false),
	}
	second := first
	second.Views, second.Likes, second.Comments, second.Shares, second.Bookmarks = new(int64(1)), new(int64(2)), new(int64(3)), new(int64(4)), new(int64(5))
	second.Title, second.Username = new("train"), new("rails_rain")
	bare := &source.Facts{Views: new(int64(5))}
	all := videoAnswers(t, folder, []*source.Facts{&first, &second}, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.Bare:        {Body: testdataText(t, folder+"/bare"), Classes: []source.Class{source.OK}, Facts: []*source.Facts{bare, bare}},
		sourcetest.Gone:        {Body: testdataText(t, folder+"/gone"), Classes: []source.Class{source.Missing, source.OK}},
		sourcetest.Private:     {Body: testdataText(t, folder+"/gone"), Classes: []source.Class{source.Missing, source.OK}},
		sourcetest.Restricted:  {Body: testdataText(t, folder+"/restricted"), Classes: []source.Class{source.AgeLimited, source.OK}},
		sourcetest.WrongTypes:  {Body: testdataText(t, folder+"/wrong_types"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Big:         {Status: http.StatusCreated, Body: testdataText(t, folder+"/big"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.GoneForeign: {Body: testdataText(t, folder+"/strangers"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.RateLimited: {Status: 429, Body: `{"error":{"type":"rate-limit-exceeded","message":"You have exceeded the rate limit."}}`},
		sourcetest.QuotaSpent:  {Status: 402, Body: `{"error":{"type":"not-enough-usage-to-run-paid-actor","message":"..."}}`},
		sourcetest.AuthFailed:  {Status: 401, Body: `{"error":{"type":"user-or-token-not-found","message":"Token {{credential}} is not valid."}}`},
		sourcetest.ServerError: {Status: 500, Body: `{"error":{"type":"internal-server-error","message":"..."}}`},
	})
	sourcetest.Run(t, sourcetest.Harness{
		New: newTestSource("apify"), Answers: all,
		Targets: []queue.Target{tiktokTarget(pancakes, "mira.cooks"), tiktokTarget(train, "rails_rain")},
	})
}

// A vendor returns an answer without a video also after a fault of its own.
func TestSource_returnsTemporaryForAnAnswerWithoutItems(t *testing.T) {
	t.Parallel()
	details := tiktokTarget(pancakes, "")
	details.NeedDetails = true
	account := queue.Target{Platform: link.TikTok, Kind: queue.KindAccount, ExternalID: "@mira.cooks", Handle: "mira.cooks"}
	for vendor, answers := range map[string][]string{
		"apify":          {"[]", "[null]", "null"},
		"ensembledata":   {`{"data":[]}`, `{"data":[null]}`, `{"data":null}`, `{"data":{}}`, `{"data":{"aweme_details":[]}}`, `{}`},
		"scrapecreators": {`{"success":true,"aweme_detail":[]}`, `{"success":true,"aweme_detail":[null]}`, `{"success":true,"aweme_detail":null}`, `{"success":true}`},
	} {
		for _, answer := range answers {
			for _, target := range []queue.Target{tiktokTarget(pancakes, ""), details, account} {
				require.Equal(t, source.Temporary, fetchTarget(t, vendor, http.StatusOK, answer, target).Class, "%s: %s about %s", vendor, answer, target.ExternalID)
			}
		}
	}
}

func TestSource_requestsATargetWithDetailsAfterTwoFailedAttempts(t *testing.T) {
	t.Parallel()
	s := newSource(t, "ensembledata", "", nil)
	for attempts, want := range []int{50, 50, 1, 1} {
		target := tiktokTarget(pancakes, "")
		target.Attempts = attempts
		batch, ok := s.Serves(target)
		require.True(t, ok)
		require.Equal(t, want, batch, "after %d failed attempts", attempts)
	}
}

func TestApify_classifiesUnavailableInstagramPosts(t *testing.T) {
	t.Parallel()
	for code, class := range map[string]source.Class{
		"not_found": source.Gone, "no_items": source.Missing, "restricted_page": source.Restricted, "request_failed": source.Temporary,
	} {
		answer := `[{"url":"` + instagramTarget(reel).Link + `","error":"` + code + `","errorDescription":"Empty or private data for provided input"}]`
		require.Equal(t, class, fetchTarget(t, "apify", http.StatusCreated, answer, instagramTarget(reel)).Class, code)
	}
}

func TestScrapeCreators_fetchesVideos(t *testing.T) {
	t.Parallel()
	youtube := queue.Target{Platform: link.YouTube, Kind: queue.KindVideo, ExternalID: "kJ4_q-Zx9W0", Link: "https://www.youtube.com/watch?v=kJ4_q-Zx9W0"}
	facebook := queue.Target{Platform: link.Facebook, Kind: queue.KindVideo, ExternalID: "845589071817523", Link: "https://www.facebook.com/reel/845589071817523"}
	first, _ := tiktokFacts()
	uploaded := time.Date(2026, 10, 3, 17, 4, 11, 0, time.UTC)
	for file, tt := range map[string]struct {
		target queue.Target
		facts  source.Facts
	}{
		"tiktok": {tiktokTarget(pancakes, "mira.cooks"), first},
		"instagram": {instagramTarget(reel), source.Facts{
			Views: new(int64(20331)), Comments: new(int64(14)), Title: new("Morning light\n☀️"),
			Username: new("mira_cooks"), AccountID: new("17841400000000001"), AccountName: new("Mira"),
			UploadedAt: new(time.Date(2025, 10, 3, 8, 26, 40, 0, time.UTC)), LengthSeconds: new(12.345),
			SongName: new("Sunny Side"), SongLink: new("https://www.instagram.com/reels/audio/1234567890/"),
			Private: new(false), HiddenStats: new(true), IsAd: new(true),
		}},
		"youtube": {youtube, source.Facts{
			Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Title: new("Tiny kitchen"),
			Username: new("miracooks"), AccountID: new("UCk3mXo7Q2hJp0LwR9sVbT1A"), AccountName: new("Mira Cooks"),
			UploadedAt: &uploaded, LengthSeconds: new(58.25), HiddenStats: new(false),
		}},
		"facebook": {facebook, source.Facts{
			Views: new(int64(1482337)), Likes: new(int64(90211)), Shares: new(int64(877)), Title: new("Pancakes!"),
			AccountID: new("100012345678901"), AccountName: new("Mira Cooks"), UploadedAt: &uploaded,
		}},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			r := fetchTarget(t, "scrapecreators", http.StatusOK, testdataText(t, "scrapecreators/"+file), tt.target)
			require.Equal(t, source.OK, r.Class, r.Detail)
			require.Equal(t, &tt.facts, r.Facts)
		})
	}
	for name, tt := range map[string]struct {
		status int
		file   string
		class  source.Class
	}{
		"a missing video":             {404, "missing", source.Gone},
		"status 200, a missing video": {200, "missing", source.Gone},
		"status 200, a private video": {200, "private", source.Private},
		"status 200, an error":        {200, "trouble", source.Temporary},
		"a refused key":               {401, "trouble", source.AuthFailed},
		"no credits left":             {402, "trouble", source.QuotaSpent},
		"too many calls":              {429, "trouble", source.RateLimited},
		"a server error":              {502, "trouble", source.Temporary},
		"a malformed request":         {400, "trouble", source.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.class, fetchTarget(t, "scrapecreators", tt.status, testdataText(t, "scrapecreators/"+tt.file), youtube).Class)
		})
	}
}

func TestScrapeCreators_usesFacebookItemOnlyIfItIsNotAboutAnotherVideo(t *testing.T) {
	t.Parallel()
	const id, otherID = "123456789012352", "123456789012399"
	target := queue.Target{Platform: link.Facebook, Kind: queue.KindVideo, ExternalID: id, Link: "https://www.facebook.com/reel/" + id}
	for members, class := range map[string]source.Class{
		`"url":"https://www.facebook.com/reel/` + id + `","video":{"id":"` + id + `"},`:           source.OK,
		`"url":"https://www.facebook.com/share/r/abc/","video":{"id":"` + id + `"},`:              source.OK,
		`"url":"https://www.facebook.com/watch/?v=` + id + `",`:                                   source.OK,
		`"post_id":"` + otherID + `",`:                                                            source.OK,
		`"url":null,"video":{"id":""},"post_id":"7",`:                                             source.OK,
		`"url":"https://www.facebook.com/watch/?v=` + id + `","video":{"id":"` + otherID + `"},`:  source.Temporary,
		`"url":null,"video":{"id":""},"post_id":"",`:                                              source.Temporary,
		`"message":"This content isn't available","like_count":0,"comment_count":0,`:              source.Temporary,
		`"url":"https://www.facebook.com/reel/` + otherID + `","video":{"id":"` + otherID + `"},`: source.Temporary,
		`"url":"https://www.facebook.com/reel/` + otherID + `",`:                                  source.Temporary,
		`"url":"https://www.facebook.com/reel/` + otherID + `","post_id":"7",`:                    source.Temporary,
		`"video":{"id":` + otherID + `},`:                                                         source.Temporary,
		`"video":{"id":{"x":1}},`:                                                                 source.Temporary,
	} {
		r := fetchTarget(t, "scrapecreators", http.StatusOK, `{"success":true,`+members+`"view_count":5000}`, target)
		require.Equal(t, class, r.Class, members)
		require.Equal(t, class == source.OK, r.Facts != nil, members)
		if class == source.Temporary {
			require.Equal(t, "missing from the answer; the answer has an item that was not requested", r.Detail)
		}
	}
}

func TestVendors_returnTemporaryIfAllCountsAreHiddenOrNull(t *testing.T) {
	t.Parallel()
	youtube := queue.Target{Platform: link.YouTube, Kind: queue.KindVideo, ExternalID: "kJ4_q-Zx9W0", Link: "https://www.youtube.com/watch?v=kJ4_q-Zx9W0"}
	r := fetchTarget(t, "scrapecreators", http.StatusOK, `{"success":true,"id":"kJ4_q-Zx9W0","viewCountInt":null,"likeCountInt":null,"commentCountInt":null}`, youtube)
	require.Equal(t, source.Temporary, r.Class)
	r = fetchTarget(t, "ensembledata", http.StatusOK, `{"data":{"code":"`+reel+`","like_count":3,"like_and_view_counts_disabled":true,"play_count":null}}`, instagramTarget(reel))
	require.Equal(t, source.Temporary, r.Class)
}

func TestApify_refusesItemsWithTheIDOfAnotherVideo(t *testing.T) {
	t.Parallel()
	tiktokLink, reelLink := tiktokTarget(pancakes, "mira.cooks").Link, instagramTarget(reel).Link
	for answer, want := range map[string]source.Class{
		`{"id":"` + train + `","playCount":999,"submittedVideoUrl":"` + tiktokLink + `","input":"` + tiktokLink + `"}`: source.Temporary,
		`{"id":"` + pancakes + `","playCount":999,"submittedVideoUrl":"` + tiktokLink + `"}`:                           source.OK,
		`{"id":null,"playCount":999,"submittedVideoUrl":"` + tiktokLink + `"}`:                                         source.OK,
	} {
		require.Equal(t, want, fetchTarget(t, "apify", http.StatusOK, "["+answer+"]", tiktokTarget(pancakes, "mira.cooks")).Class, answer)
	}
	for answer, want := range map[string]source.Class{
		`{"shortCode":"DAAAAAAAAAA","url":"https://www.instagram.com/p/DAAAAAAAAAA/","inputUrl":"` + reelLink + `","videoPlayCount":777}`: source.Temporary,
		`{"inputUrl":"` + reelLink + `","videoPlayCount":777}`:                                                                            source.OK,
	} {
		require.Equal(t, want, fetchTarget(t, "apify", http.StatusOK, "["+answer+"]", instagramTarget(reel)).Class, answer)
	}
}

// fetchTarget fetches one target from a vendor with a fixed answer. If Fetch returns a failure, the result has the class of the failure.
func fetchTarget(t *testing.T, name string, status int, text string, target queue.Target) source.Result {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	defer web.Close()
	s := newSource(t, name, web.URL, nil)
	batch := []queue.Target{target}
	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	var f *source.Failure
	if err != nil {
		require.ErrorAs(t, err, &f)
		return source.Result{Class: f.Class, Detail: f.Detail}
	}
	require.Len(t, results, 1)
	return results[0]
}
