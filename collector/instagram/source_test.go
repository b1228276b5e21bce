package instagram_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	pancakes = "DPWuK2sNkQ1"
	train    = "DFhXvE2yQ7a"
)

func newTestSource(t *testing.T, base string, client *fetch.Client) source.Source {
	return newSource(t, base+"/v25.0", func(o *instagram.Options) { o.Client = client })
}

func graphError(code, subcode int, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":"OAuthException","code":%d,"error_subcode":%d,"fbtrace_id":"AkP1"}}`, message, code, subcode)
}

var noSuchAccount = graphError(110, 2207013, "Invalid user id")

func refusalAnswers() map[sourcetest.Case]sourcetest.Answer {
	return map[sourcetest.Case]sourcetest.Answer{
		sourcetest.RateLimited: {Status: http.StatusBadRequest, RetryAt: sourcetest.Now.Add(15 * time.Minute),
			Body: `{"error":{"message":"(#4) Application request limit reached","type":"OAuthException","is_transient":true,"code":4}}`},
		sourcetest.QuotaSpent: {Status: http.StatusBadRequest, RetryAt: sourcetest.Now.Add(15 * time.Minute), Class: source.RateLimited,
			Body: graphError(80002, 0, "There have been too many calls to this Instagram account.")},
		sourcetest.AuthFailed: {Status: http.StatusBadRequest, Body: graphError(190, 463, "Error validating access token {{credential}}: Session has expired")},
		sourcetest.ServerError: {Status: http.StatusBadRequest,
			Body: `{"error":{"message":"An unexpected error has occurred.","type":"OAuthException","is_transient":true,"code":2}}`},
	}
}

// postJSON returns the JSON of a post with the given code. moreMembers is the JSON text of additional members, or "".
func postJSON(code, moreMembers string) string {
	if moreMembers != "" {
		moreMembers = "," + moreMembers
	}
	return fmt.Sprintf(`{"id":"17%015d","shortcode":%q%s}`, len(code)+int(code[0]), code, moreMembers)
}

const (
	reel  = `"caption":"Big pancakes 🥞","like_count":90211,"comments_count":1204,"view_count":1482337,"media_type":"VIDEO","media_product_type":"REELS","permalink":"https://www.instagram.com/reel/` + pancakes + `/","timestamp":"2026-10-03T17:04:11+0000"`
	night = `"caption":"","comments_count":0,"view_count":0,"media_type":"VIDEO","permalink":"https://www.instagram.com/p/` + train + `/","timestamp":"2025-01-31T23:59:59-0800"`
	photo = `{"id":"17900000000000007","shortcode":"DPWuK2sNkQ9","comments_count":3,"media_type":"IMAGE","timestamp":"2026-10-02T00:00:00+0000"}`
)

func mediaList(after string, posts ...string) string {
	if after != "" {
		after = fmt.Sprintf(`,"paging":{"cursors":{"before":"QVFIUjA","after":%q}}`, after)
	}
	return `{"data":[` + strings.Join(posts, ",") + `]` + after + `}`
}

// discoveryAnswer returns an answer to a business discovery request. Both parameters are JSON texts.
// If media is "", the answer has no list of posts.
func discoveryAnswer(accountMembers, media string) string {
	if media != "" {
		media = `,"media":` + media
	}
	return `{"business_discovery":{` + accountMembers + media + `,"id":"` + miraID + `"},"id":"` + ownID + `"}`
}

const miraID = "17841401234567890"

const mira = `"username":"mira.cooks","name":"Mira Cooks"`

// videoAnswers returns one answer of the server for each test case. The parameters `first` and
// `second` are the facts of the two requested videos.
func videoAnswers(answerWith func(list string) string, first, second source.Facts) map[sourcetest.Case]sourcetest.Answer {
	answer := func(posts ...string) string { return answerWith(mediaList("", posts...)) }
	ok, missing := []source.Class{source.OK}, []source.Class{source.Missing, source.OK}
	facts := []*source.Facts{&first, &second}
	bare := source.Facts{AccountSourceID: first.AccountSourceID, Comments: new(int64(5)), HiddenStats: new(true), Username: first.Username, AccountName: first.AccountName, Private: new(false),
		Views: nil, Shares: first.Shares, Bookmarks: first.Bookmarks}
	if first.Shares != nil {
		bare.Views = first.Views
	}
	answers := refusalAnswers()
	maps.Copy(answers, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.OK:         {Body: answer(postJSON(pancakes, reel), postJSON(train, night)), Classes: ok, Facts: facts},
		sourcetest.Bare:       {Body: answer(postJSON(pancakes, `"comments_count":5`), postJSON(train, `"comments_count":5`)), Classes: ok, Facts: []*source.Facts{&bare, &bare}},
		sourcetest.Gone:       {Body: answer(postJSON(train, night)), Classes: missing},
		sourcetest.WrongTypes: {Body: answer(postJSON(pancakes, strings.Replace(reel, "90211", `{"count":90211}`, 1)), postJSON(train, night)), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Strings: {Classes: ok, Body: answer(strings.Replace(postJSON(pancakes, strings.NewReplacer("90211", `"90211"`, "1482337", `"1482337"`).Replace(reel)), `"id":"17000000000000079"`, `"id":17000000000000079`, 1),
			postJSON(train, night))},
		sourcetest.Big:         {Body: answer(postJSON(pancakes, strings.Replace(reel, "90211", "9007199254740993", 1)), postJSON(train, night)), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Duplicates:  {Body: answer(postJSON(pancakes, reel), postJSON(train, night), postJSON(pancakes, `"like_count":1,"comments_count":1,"view_count":1`)), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Foreign:     {Body: answer(postJSON("DPWuK2sNkQ9", strings.ReplaceAll(reel, pancakes, "DPWuK2sNkQ9")), postJSON(pancakes, reel), postJSON(train, night)), Classes: ok},
		sourcetest.GoneForeign: {Body: answer(postJSON("DPWuK2sNkQ9", strings.ReplaceAll(reel, pancakes, "DPWuK2sNkQ9")), postJSON(train, night)), Classes: missing},
	})
	return answers
}

var (
	uploadedPancakes = time.Date(2026, 10, 3, 17, 4, 11, 0, time.UTC)
	uploadedTrain    = time.Date(2025, 2, 1, 7, 59, 59, 0, time.UTC)
)

func TestSource_fetchesVideosOfOtherAccounts(t *testing.T) {
	t.Parallel()
	first := source.Facts{Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Title: new("Big pancakes 🥞"),
		Username: new("mira.cooks"), AccountSourceID: new("instagram/" + miraID), AccountName: new("Mira Cooks"), UploadedAt: &uploadedPancakes, Private: new(false), HiddenStats: new(false)}
	second := source.Facts{Views: new(int64(0)), Comments: new(int64(0)), Title: new(""), Username: new("mira.cooks"), AccountSourceID: new("instagram/" + miraID), AccountName: new("Mira Cooks"),
		UploadedAt: &uploadedTrain, Private: new(false), HiddenStats: new(true)}
	answers := videoAnswers(func(list string) string { return discoveryAnswer(mira, list) }, first, second)
	unsupported := sourcetest.Answer{Status: http.StatusBadRequest, Body: noSuchAccount, Classes: []source.Class{source.Unsupported}}
	answers[sourcetest.Private], answers[sourcetest.Restricted] = unsupported, unsupported // business discovery shows neither private nor age-gated accounts
	sourcetest.Run(t, sourcetest.Harness{
		New: newTestSource, Targets: []queue.Target{videoTarget(pancakes, "mira.cooks"), videoTarget(train, "mira.cooks")}, Answers: answers,
		IsMain: func(r *http.Request) bool { return strings.Contains(r.URL.Query().Get("fields"), "business_discovery") },
		Side:   http.HandlerFunc(serveOtherRequests),
	})
}

const insights = `{"data":[{"name":"views","period":"lifetime","values":[{"value":1482337}]},
	{"name":"shares","period":"lifetime","values":[{"value":877}]},{"name":"saved","period":"lifetime","values":[{"value":4310}]}]}`

// serveOtherRequests answers the source's requests for the profile of the operator's account and for insights.
func serveOtherRequests(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/insights") {
		_, _ = w.Write([]byte(insights))
		return
	}
	_, _ = w.Write([]byte(`{"id":"` + ownID + `","username":"Our.Kitchen","name":"Our Kitchen"}`))
}

func TestSource_fetchesInsightsOfVideosOfConfiguredAccount(t *testing.T) {
	t.Parallel()
	first := source.Facts{Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Shares: new(int64(877)), Bookmarks: new(int64(4310)),
		Title: new("Big pancakes 🥞"), Username: new("our.kitchen"), AccountSourceID: new("instagram/" + ownID), AccountName: new("Our Kitchen"), UploadedAt: &uploadedPancakes, Private: new(false), HiddenStats: new(false)}
	second := first
	second.Likes, second.Comments, second.HiddenStats, second.Title, second.UploadedAt = nil, new(int64(0)), new(true), new(""), &uploadedTrain
	answers := videoAnswers(func(list string) string { return list }, first, second)
	gone := answers[sourcetest.Gone] // a post that is not public is also missing from the list of the operator's account
	answers[sourcetest.Private], answers[sourcetest.Restricted] = gone, gone
	sourcetest.Run(t, sourcetest.Harness{
		New: newTestSource, Targets: []queue.Target{videoTarget(pancakes, "our.kitchen"), videoTarget(train, "our.kitchen")}, Answers: answers,
		IsMain: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/media") },
		Side:   http.HandlerFunc(serveOtherRequests), SideCounts: insights,
	})
}

func TestSource_fetchesAccounts(t *testing.T) {
	t.Parallel()
	const profile = mira + `,"biography":"Big pancakes, tiny kitchen.","followers_count":1230000,"follows_count":310,"media_count":4`
	found := func(code, form string, at time.Time) ingest.FoundVideo {
		return ingest.FoundVideo{ID: code, Link: "https://www.instagram.com/" + form + "/" + code + "/", UploadedAt: new(store.InstantOf(at))}
	}
	const third, fourth = "DCXkB8LpR2q", "DBXkB8LpR2q"
	more := func(code string) string {
		return postJSON(code, `"comments_count":1,"media_type":"VIDEO","timestamp":"2024-11-05T10:00:00+0000"`)
	}
	at := time.Date(2024, 11, 5, 10, 0, 0, 0, time.UTC)
	ok := source.AccountFacts{SourceID: new("instagram/" + miraID), Username: new("mira.cooks"), Name: new("Mira Cooks"), Bio: new("Big pancakes, tiny kitchen."),
		Followers: new(int64(1230000)), Following: new(int64(310)), Private: new(false), Listed: true,
		Videos: []ingest.FoundVideo{found(pancakes, "reel", uploadedPancakes), found(train, "p", uploadedTrain), found(third, "reel", at), found(fourth, "reel", at)}}
	answer := func(account, list string) sourcetest.Reply {
		return sourcetest.Reply{Body: discoveryAnswer(account, list)}
	}
	begin := mediaList("QVFIUnA", photo, postJSON(pancakes, reel))
	pages := []sourcetest.Reply{answer(mira, mediaList("QVFIUnB", postJSON(train, night), more(third))), answer(mira, mediaList("", more(fourth)))}
	empty, bare := ok, source.AccountFacts{SourceID: new("instagram/" + miraID), Username: new("mira.cooks"), Private: new(false), Listed: true}
	empty.Videos = nil
	refused := sourcetest.AccountAnswer{Profile: sourcetest.Reply{Status: http.StatusBadRequest, Body: noSuchAccount}, Class: source.Unsupported}
	answers := map[sourcetest.Case]sourcetest.AccountAnswer{
		sourcetest.OK:             {Profile: answer(profile, begin), Pages: pages, Class: source.OK, Account: &ok},
		sourcetest.Bare:           {Profile: answer(`"username":"mira.cooks"`, ""), Class: source.OK, Account: &bare},
		sourcetest.Empty:          {Profile: answer(strings.Replace(profile, `"media_count":4`, `"media_count":0`, 1), ""), Class: source.OK, Account: &empty},
		sourcetest.Gone:           refused,
		sourcetest.PrivateAccount: refused,
		sourcetest.WrongTypes:     {Profile: answer(strings.Replace(profile, "1230000", `["1230000"]`, 1), begin), Class: source.Temporary},
		sourcetest.Strings:        {Profile: answer(strings.Replace(profile, "1230000", `"1230000"`, 1), begin), Pages: pages, Class: source.OK},
		sourcetest.Big:            {Profile: answer(strings.Replace(profile, "1230000", "9007199254740993", 1), begin), Class: source.Temporary},
		sourcetest.Foreign:        {Profile: answer(strings.Replace(profile, "mira.cooks", "somebody", 1), begin), Class: source.Temporary},
		sourcetest.Pinned:         {Profile: answer(profile, begin), Pages: []sourcetest.Reply{pages[0], answer(mira, mediaList("", more(fourth), postJSON(pancakes, reel)))}, Class: source.OK},
		sourcetest.BrokenEntry:    {Profile: answer(profile, begin), Pages: []sourcetest.Reply{answer(mira, mediaList("QVFIUnB", postJSON(train, night), `{"shortcode":["x"]}`, more(third))), pages[1]}, Class: source.OK},
		sourcetest.BrokenList:     {Profile: answer(profile, mediaList("", `{"shortcode":7}`, `[]`)), Class: source.Temporary},
	}
	for c, refusal := range refusalAnswers() {
		answers[c] = sourcetest.AccountAnswer{Profile: sourcetest.Reply{Status: refusal.Status, Body: refusal.Body}, RetryAt: refusal.RetryAt, Class: refusal.Class}
	}
	sourcetest.RunAccountTests(t, sourcetest.AccountHarness{
		New: newTestSource, Target: accountTarget("mira.cooks", 120), Answers: answers,
		IsList: func(r *http.Request) bool { return strings.Contains(r.URL.Query().Get("fields"), "media.after(") },
	})
}

func TestSource_reportsWhetherTheListOfAnAccountContinues(t *testing.T) {
	t.Parallel()
	lastPost := postJSON("DBXkB8LpR2q", `"media_type":"IMAGE","timestamp":"2024-11-05T10:00:00+0000"`)
	since := new(store.InstantOf(time.Date(2024, 11, 5, 10, 0, 0, 0, time.UTC)))
	for name, tt := range map[string]struct {
		members   string // further members of the profile
		list      string
		continues bool
		since     *store.Instant
	}{
		"further posts follow":                      {"", mediaList("QVFIUnA", photo, postJSON(pancakes, reel), postJSON(train, night), lastPost), true, since},
		"the listed posts may all be pinned":        {`,"media_count":3`, mediaList("QVFIUnA", photo, lastPost), true, nil},
		"the list has ended":                        {"", mediaList("", photo, postJSON(pancakes, reel), postJSON(train, night), lastPost), false, nil},
		"all posts of the account are listed":       {`,"media_count":3`, mediaList("QVFIUnA", photo, postJSON(pancakes, reel), lastPost), false, nil},
		"the time of the last post is not reported": {"", mediaList("QVFIUnA", photo, postJSON(pancakes, reel), lastPost, postJSON("DCXkB8LpR2q", "")), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Query().Get("fields"), "business_discovery") {
					serveOtherRequests(w, r)
					return
				}
				_, _ = w.Write([]byte(discoveryAnswer(mira+tt.members, tt.list)))
			}))
			t.Cleanup(web.Close)
			s := newSource(t, web.URL+"/v25.0", nil)
			batch := []queue.Target{accountTarget("mira.cooks", 0)}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			require.Equal(t, source.OK, results[0].Class, results[0].Detail)
			require.Equal(t, tt.continues, results[0].Account.ListContinues)
			require.Equal(t, tt.since, results[0].Account.CompleteSince)
		})
	}
}
