package facebook_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	pancakes = "1139247764231866"
	mira     = "100064550044307"
)

func newTestSource(t *testing.T, base string, client *fetch.Client) source.Source {
	return newSource(t, base+"/v25.0/", func(o *facebook.Options) { o.Client = client })
}

func graphError(code, subcode int, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":"OAuthException","code":%d,"error_subcode":%d,"fbtrace_id":"AkP1"}}`, message, code, subcode)
}

var (
	notThere    = graphError(100, 33, "Unsupported get request. Object with ID '1' does not exist, cannot be loaded due to missing permissions")
	notReadable = graphError(10, 0, "(#10) This endpoint requires the 'pages_read_engagement' permission")
)

func refusalAnswers() map[sourcetest.Case]sourcetest.Answer {
	return map[sourcetest.Case]sourcetest.Answer{
		sourcetest.RateLimited: {Status: http.StatusBadRequest, RetryAt: sourcetest.Now.Add(15 * time.Minute),
			Body: `{"error":{"message":"(#4) Application request limit reached","type":"OAuthException","is_transient":true,"code":4}}`},
		sourcetest.QuotaSpent: {Status: http.StatusBadRequest, RetryAt: sourcetest.Now.Add(15 * time.Minute), Class: source.RateLimited,
			Body: graphError(80001, 0, "There have been too many calls to this Page account.")},
		sourcetest.AuthFailed:  {Status: http.StatusBadRequest, Body: graphError(190, 460, "Error validating access token {{credential}}: the password was changed")},
		sourcetest.ServerError: {Status: http.StatusInternalServerError, Body: graphError(1, 0, "An unknown error has occurred.")},
	}
}

const reel = `{"id":"` + pancakes + `","title":"Reel","description":"Big pancakes 🥞","length":58.433,"created_time":"2026-10-03T17:04:11+0000",
	"permalink_url":"/reel/` + pancakes + `/","views":1482337,"likes":{"data":[],"summary":{"total_count":90211,"can_like":false}},
	"comments":{"data":[],"summary":{"order":"ranked","total_count":1204}},"from":{"id":"` + mira + `","name":"Mira Cooks"}}`

// serveOtherRequests answers the source's requests for the page's handle, page tokens and insights.
func serveOtherRequests(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/video_insights") {
		_, _ = w.Write([]byte(insights))
		return
	}
	if strings.HasSuffix(r.URL.Path, "/me/accounts") {
		_, _ = w.Write([]byte(`{"data":[{"id":"` + mira + `","name":"Mira Cooks","access_token":"s3cret-page"}]}`))
		return
	}
	_, _ = w.Write([]byte(`{"id":"` + mira + `","username":"Mira.Cooks"}`))
}

const insights = `{"data":[{"name":"fb_reels_total_plays","period":"lifetime","values":[{"value":1500001}]},
	{"name":"post_video_social_actions","period":"lifetime","values":[{"value":{"COMMENT":1204,"SHARE":877}}]}]}`

var uploaded = time.Date(2026, 10, 3, 17, 4, 11, 0, time.UTC)

func videoFacts() source.Facts {
	return source.Facts{Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Title: new("Big pancakes 🥞"),
		Username: new("mira.cooks"), AccountID: new(mira), AccountName: new("Mira Cooks"), UploadedAt: &uploaded, LengthSeconds: new(58.433),
		Private: new(false), HiddenStats: new(false)}
}

// videoAnswers maps each test case to the server's answer to a request for one video. The source
// returns the facts f for most successful answers.
func videoAnswers(f source.Facts) map[sourcetest.Case]sourcetest.Answer {
	swap := func(from, to string) string { return strings.Replace(reel, from, to, 1) }
	ok, temporary, missing := []source.Class{source.OK}, []source.Class{source.Temporary}, []source.Class{source.Missing}
	out := refusalAnswers()
	maps.Copy(out, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.OK: {Body: reel, Classes: ok, Facts: []*source.Facts{&f}},
		sourcetest.Bare: {Body: `{"id":"` + pancakes + `","comments":{"data":[],"summary":{"total_count":5}}}`, Classes: ok,
			Facts: []*source.Facts{{Comments: new(int64(5)), HiddenStats: new(true), Private: new(false)}}},
		sourcetest.Gone:        {Status: http.StatusBadRequest, Body: notThere, Classes: missing},
		sourcetest.Private:     {Status: http.StatusBadRequest, Body: notThere, Classes: missing}, // Facebook returns the same error for a private video and for a missing video
		sourcetest.Restricted:  {Status: http.StatusForbidden, Body: notReadable, Classes: []source.Class{source.Unsupported}},
		sourcetest.WrongTypes:  {Body: swap(`"total_count":90211`, `"total_count":[90211]`), Classes: temporary},
		sourcetest.Strings:     {Body: strings.NewReplacer("90211", `"90211"`, `"id":"`+pancakes+`"`, `"id":`+pancakes).Replace(reel), Classes: ok},
		sourcetest.Big:         {Body: swap("90211", "9007199254740993"), Classes: []source.Class{source.Temporary}},
		sourcetest.Duplicates:  {Body: reel, Classes: ok}, // an answer contains one object, so it cannot contain duplicates
		sourcetest.Foreign:     {Body: swap(`"from":`, `"other":{"id":"1139247764231867","views":1},"from":`), Classes: ok},
		sourcetest.GoneForeign: {Body: swap(pancakes, "1139247764231867"), Classes: temporary},
	})
	return out
}

func isVideoRequest(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+pancakes) }

func TestSource_fetchesVideos(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, sourcetest.Harness{
		New: newTestSource, Targets: []queue.Target{videoTarget(pancakes)}, Answers: videoAnswers(videoFacts()), IsMain: isVideoRequest, Side: http.HandlerFunc(serveOtherRequests),
	})
}

func TestSource_fetchesInsightsOfVideosOnConfiguredPages(t *testing.T) {
	t.Parallel()
	f := videoFacts()
	f.Views, f.Shares = new(int64(1500001)), new(int64(877))
	sourcetest.Run(t, sourcetest.Harness{
		New: func(t *testing.T, base string, client *fetch.Client) source.Source {
			return newSource(t, base+"/v25.0", func(o *facebook.Options) { o.Client, o.PageIDs = client, []string{mira} })
		},
		Targets: []queue.Target{videoTarget(pancakes)}, Answers: videoAnswers(f), IsMain: isVideoRequest, Side: http.HandlerFunc(serveOtherRequests), SideCounts: insights,
	})
}

func TestSource_fetchesAccounts(t *testing.T) {
	t.Parallel()
	const profile = `{"id":"` + mira + `","name":"Mira Cooks","username":"Mira.Cooks","about":"Big pancakes, tiny kitchen.","website":"https://example.com/mira","followers_count":1230000}`
	entry := func(id, at string) string {
		return fmt.Sprintf(`{"id":%q,"created_time":%q,"permalink_url":"/reel/%s/"}`, id, at, id)
	}
	list := func(after string, entries ...string) sourcetest.Reply {
		next := ""
		if after != "" {
			next = `,"next":"https://graph.facebook.com/v25.0/1/videos?after=x"`
		}
		return sourcetest.Reply{Body: `{"data":[` + strings.Join(entries, ",") + `],"paging":{"cursors":{"before":"a","after":"` + after + `"}` + next + `}}`}
	}
	const second, third = "1139247764231867", "1139247764231868"
	found := func(id string, at time.Time) ingest.FoundVideo {
		return ingest.FoundVideo{ID: id, Link: "https://www.facebook.com/reel/" + id, UploadedAt: new(store.InstantOf(at))}
	}
	newest, oldest := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC), time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	ok := source.AccountFacts{ID: new(mira), Username: new("mira.cooks"), Name: new("Mira Cooks"), Bio: new("Big pancakes, tiny kitchen."),
		ProfileLink: new("https://example.com/mira"), Followers: new(int64(1230000)), Private: new(false), Listed: true,
		Videos: []ingest.FoundVideo{found(third, newest), found(pancakes, uploaded), found(second, oldest)}}
	first := entry(pancakes, "2026-10-03T17:04:11+0000")
	last := entry(second, "2024-01-01T00:00:00+0000")
	reels := list("", entry(third, "2026-11-01T08:00:00+0000"))
	pages := []sourcetest.Reply{list("QVFIUnA", first), list("", last), reels}
	none := []sourcetest.Reply{list(""), list("")}
	empty, bare := ok, source.AccountFacts{ID: new(mira), Username: new("mira.cooks"), Private: new(false), Listed: true}
	empty.Videos = nil
	profileWith := func(from, to string) sourcetest.Reply {
		return sourcetest.Reply{Body: strings.Replace(profile, from, to, 1)}
	}
	refused := sourcetest.AccountAnswer{Profile: sourcetest.Reply{Status: http.StatusBadRequest, Body: notThere}, Class: source.Missing}
	all := map[sourcetest.Case]sourcetest.AccountAnswer{
		sourcetest.OK:             {Profile: profileWith("", ""), Pages: pages, Class: source.OK, Account: &ok},
		sourcetest.Bare:           {Profile: sourcetest.Reply{Body: `{"id":"` + mira + `","username":"mira.cooks"}`}, Pages: none, Class: source.OK, Account: &bare},
		sourcetest.Empty:          {Profile: profileWith("", ""), Pages: none, Class: source.OK, Account: &empty},
		sourcetest.Gone:           {Profile: sourcetest.Reply{Status: http.StatusNotFound, Body: graphError(803, 0, "(#803) Some of the aliases you requested do not exist: mira.cooks")}, Class: source.Missing},
		sourcetest.PrivateAccount: refused, // a private account is a person's profile, which the API does not return
		sourcetest.WrongTypes:     {Profile: profileWith("1230000", `["1230000"]`), Class: source.Temporary},
		sourcetest.Strings:        {Profile: profileWith("1230000", `"1230000"`), Pages: pages, Class: source.OK},
		sourcetest.Big:            {Profile: profileWith("1230000", "9007199254740993"), Class: source.Temporary},
		sourcetest.Foreign:        {Profile: profileWith("Mira.Cooks", "somebody"), Class: source.Temporary},
		sourcetest.Pinned:         {Profile: profileWith("", ""), Pages: []sourcetest.Reply{pages[0], list("", first, last), reels}, Class: source.OK},
		sourcetest.BrokenEntry:    {Profile: profileWith("", ""), Pages: []sourcetest.Reply{list("QVFIUnA", `{"id":["x"]}`, first), pages[1], reels}, Class: source.OK},
		sourcetest.BrokenList:     {Profile: profileWith("", ""), Pages: []sourcetest.Reply{list("", `{"id":7}`, `[]`)}, Class: source.Temporary},
	}
	for c, refusal := range refusalAnswers() {
		all[c] = sourcetest.AccountAnswer{Profile: sourcetest.Reply{Status: refusal.Status, Body: refusal.Body}, RetryAt: refusal.RetryAt, Class: refusal.Class}
	}
	sourcetest.RunAccountTests(t, sourcetest.AccountHarness{
		New: newTestSource, Target: accountTarget("mira.cooks", 120), Answers: all,
		IsList: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/video") },
	})
}
