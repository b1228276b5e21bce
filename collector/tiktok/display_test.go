package tiktok_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	soup    = "7588213403351190801"
	kite    = "7301234567890123456"
	foreign = "7412345678901234567"
	owner   = "soup.season"
)

var midnight = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func videoTarget(id, handle string, details bool) queue.Target {
	return queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: id, Handle: handle,
		Link: "https://www.tiktok.com/@" + handle + "/video/" + id, NeedDetails: details}
}

func accountTarget(handle string, depth int) queue.Target {
	return queue.Target{Platform: link.TikTok, Kind: queue.KindAccount, ExternalID: "@" + handle, Handle: handle,
		Link: "https://www.tiktok.com/@" + handle, Depth: depth}
}

// okAnswer returns the body of a successful answer with the given data member.
func okAnswer(data string) string {
	return `{"data":` + data + `,"error":{"code":"ok","message":"","log_id":"202611211530000102231234560A0B0C0D"}}`
}

func errorAnswer(code, message string) string {
	return fmt.Sprintf(`{"data":{},"error":{"code":%q,"message":%q,"log_id":"202611211530000102231234560A0B0C0D"}}`, code, message)
}

func videoListAnswer(items ...string) string {
	return okAnswer(`{"videos":[` + strings.Join(items, ",") + `]}`)
}

// displayVideoJSON returns a video in an answer of the Display API. moreMembers is the JSON text of additional members.
func displayVideoJSON(id, moreMembers string) string {
	return fmt.Sprintf(`{"id":%q,"create_time":1766782800,"title":"Leek soup 🥣","video_description":"Leek soup, slowly","duration":58,
		"share_url":"https://www.tiktok.com/@Soup.Season/video/%[1]s?utm_campaign=tt4d_open_api",%s}`, id, moreMembers)
}

const (
	counts  = `"view_count":1482337,"like_count":90211,"comment_count":1204,"share_count":311`
	counts2 = `"view_count":12,"like_count":0,"comment_count":0,"share_count":0`
)

const tokens = `{"open_id":"723f24d7","scope":"user.info.basic,user.info.profile,user.info.stats,video.list","access_token":"` + sourcetest.Credential + `",
	"expires_in":7200,"refresh_token":"rft.next","refresh_expires_in":15552000,"token_type":"Bearer"}`

const profile = `{"user":{"open_id":"723f24d7","display_name":"Soup Season","username":"Soup.Season","bio_description":"Soup.\nAll year","follower_count":1230000,"following_count":7}}`

// serveOtherRequests answers the source's requests for tokens and for the profile of the account.
func serveOtherRequests(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/oauth/token/"):
		_, _ = io.WriteString(w, tokens)
	case strings.HasSuffix(r.URL.Path, "/user/info/"):
		_, _ = io.WriteString(w, okAnswer(profile))
	default:
		http.NotFound(w, r)
	}
}

func newDisplay(t testing.TB, db *storetest.DB, base string, client *fetch.Client, change func(*tiktok.DisplayOptions)) *tiktok.Display {
	t.Helper()
	if client == nil {
		client = fetch.New(fetch.Options{Timeout: 10 * time.Second})
		t.Cleanup(client.Close)
	}
	o := tiktok.DisplayOptions{BaseURL: base, ClientKey: "aw1234", ClientSecret: sourcetest.Credential, RefreshToken: sourcetest.Credential,
		Client: client, Tokens: db.Queue, Now: func() time.Time { return sourcetest.Now }}
	if change != nil {
		change(&o)
	}
	d, err := tiktok.NewDisplay(o)
	require.NoError(t, err)
	return d
}

var logins atomic.Int64

// useNewRefreshToken sets the refresh token in the options to one that no other test uses. The source therefore finds no stored tokens of its
// login.
func useNewRefreshToken(o *tiktok.DisplayOptions) {
	o.RefreshToken = fmt.Sprintf("%s-%d", sourcetest.Credential, logins.Add(1))
}

func refusalAnswers() map[sourcetest.Case]sourcetest.Answer {
	return map[sourcetest.Case]sourcetest.Answer{
		sourcetest.RateLimited: {Status: http.StatusTooManyRequests, Body: errorAnswer("rate_limit_exceeded", "The API rate limit was exceeded."), RetryAt: sourcetest.Now.Add(time.Minute)},
		sourcetest.QuotaSpent:  {Status: http.StatusTooManyRequests, Body: errorAnswer("daily_quota_limit_exceeded", "Your daily quota limit has been exceeded."), RetryAt: midnight},
		sourcetest.AuthFailed:  {Status: http.StatusUnauthorized, Body: errorAnswer("access_token_invalid", "The access token {{credential}} is invalid.")},
		sourcetest.ServerError: {Status: http.StatusInternalServerError, Body: errorAnswer("internal_error", "Something is wrong.")},
	}
}

func TestDisplay_fetchesVideos(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	first := source.Facts{
		Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Shares: new(int64(311)),
		Title: new("Leek soup 🥣"), Username: new(owner), UploadedAt: new(time.Date(2025, 12, 26, 21, 0, 0, 0, time.UTC)), LengthSeconds: new(58.0), HiddenStats: new(false),
	}
	second := first
	second.Views, second.Likes, second.Comments, second.Shares = new(int64(12)), new(int64(0)), new(int64(0)), new(int64(0))
	bare := &source.Facts{Views: new(int64(5)), HiddenStats: new(true)}
	both := []*source.Facts{&first, &second}
	good, gone, doubtful := []source.Class{source.OK}, []source.Class{source.Missing, source.OK}, []source.Class{source.Temporary, source.OK}

	answers := refusalAnswers()
	maps.Copy(answers, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.OK:         {Body: videoListAnswer(displayVideoJSON(soup, counts), displayVideoJSON(kite, counts2)), Classes: good, Facts: both},
		sourcetest.Bare:       {Body: videoListAnswer(`{"id":"`+soup+`","view_count":5}`, `{"id":"`+kite+`","view_count":5}`), Classes: good, Facts: []*source.Facts{bare, bare}},
		sourcetest.Gone:       {Body: videoListAnswer(displayVideoJSON(kite, counts2)), Classes: gone},
		sourcetest.Private:    {Body: videoListAnswer(displayVideoJSON(kite, counts2)), Classes: gone}, // TikTok leaves out a private video in the same way as a deleted video
		sourcetest.Restricted: {Body: videoListAnswer(displayVideoJSON(soup, counts), displayVideoJSON(kite, counts2)), Classes: good},
		sourcetest.WrongTypes: {Body: videoListAnswer(displayVideoJSON(soup, `"view_count":["1482337"]`), displayVideoJSON(kite, counts2)), Classes: doubtful},
		sourcetest.Strings: {Body: videoListAnswer(strings.ReplaceAll(displayVideoJSON(soup, `"view_count":"1482337","like_count":"90211","comment_count":"1204","share_count":"311"`), `"`+soup+`"`, soup),
			displayVideoJSON(kite, counts2)), Classes: good},
		sourcetest.Big:         {Body: videoListAnswer(displayVideoJSON(soup, strings.Replace(counts, "1482337", "9007199254740993", 1)), displayVideoJSON(kite, counts2)), Classes: doubtful},
		sourcetest.Duplicates:  {Body: videoListAnswer(displayVideoJSON(soup, counts), displayVideoJSON(kite, counts2), displayVideoJSON(soup, counts2)), Classes: doubtful},
		sourcetest.Foreign:     {Body: videoListAnswer(displayVideoJSON(foreign, counts), displayVideoJSON(soup, counts), displayVideoJSON(kite, counts2)), Classes: good},
		sourcetest.GoneForeign: {Body: videoListAnswer(displayVideoJSON(foreign, counts), displayVideoJSON(kite, counts2)), Classes: doubtful},
	})
	sourcetest.Run(t, sourcetest.Harness{
		New: func(t *testing.T, base string, client *fetch.Client) source.Source {
			return newDisplay(t, db, base, client, useNewRefreshToken)
		},
		Targets: []queue.Target{videoTarget(soup, owner, true), videoTarget(kite, "Soup.Season", true)},
		IsMain:  func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/video/query/") },
		Side:    http.HandlerFunc(serveOtherRequests),
		Answers: answers,
	})
}

func listEntryJSON(id string, at int64) string {
	return fmt.Sprintf(`{"id":%q,"create_time":%d}`, id, at)
}

func listPage(more bool, cursor int64, entries ...string) sourcetest.Reply {
	return sourcetest.Reply{Body: okAnswer(fmt.Sprintf(`{"videos":[%s],"cursor":%d,"has_more":%t}`, strings.Join(entries, ","), cursor, more))}
}

func TestDisplay_fetchesAccountThatHasLoggedIn(t *testing.T) {
	t.Parallel()
	const new1, old1 = int64(1766782800), int64(1700000000)
	full := source.AccountFacts{SourceID: new("tiktok_display:aw1234/723f24d7"), Username: new(owner), Name: new("Soup Season"), Bio: new("Soup.\nAll year"), Followers: new(int64(1230000)), Following: new(int64(7)), Listed: true}
	full.Videos = foundVideos(soup, new1, kite, old1)
	bare := source.AccountFacts{Username: new(owner), Listed: true}
	empty := full
	empty.Videos = nil
	whole := sourcetest.Reply{Body: okAnswer(profile)}
	pages := []sourcetest.Reply{listPage(true, new1*1000, listEntryJSON(soup, new1)), listPage(false, old1*1000, listEntryJSON(kite, old1))}
	none := []sourcetest.Reply{listPage(false, 0)}
	with := func(from, to string) sourcetest.Reply {
		return sourcetest.Reply{Body: strings.Replace(whole.Body, from, to, 1)}
	}
	answers := map[sourcetest.Case]sourcetest.AccountAnswer{
		sourcetest.OK:         {Profile: whole, Pages: pages, Class: source.OK, Account: &full},
		sourcetest.Bare:       {Profile: sourcetest.Reply{Body: okAnswer(`{"user":{"username":"soup.season"}}`)}, Pages: none, Class: source.OK, Account: &bare},
		sourcetest.Gone:       {Profile: with("Soup.Season", "somebody.else"), Class: source.Unsupported},
		sourcetest.WrongTypes: {Profile: with("1230000", `["1230000"]`), Class: source.Temporary},
		sourcetest.Strings:    {Profile: with("1230000", `"1230000"`), Pages: pages, Class: source.OK},
		sourcetest.Big:        {Profile: with("1230000", "9007199254740993"), Class: source.Temporary},
		sourcetest.Foreign:    {Profile: with("Soup.Season", "kite.club"), Class: source.Unsupported},
		// Even if the logged-in account is private, TikTok returns the profile and the public videos of the account.
		sourcetest.PrivateAccount: {Profile: whole, Pages: none, Class: source.OK, Account: &empty},
		sourcetest.Empty:          {Profile: whole, Pages: none, Class: source.OK, Account: &empty},
		sourcetest.Pinned:         {Profile: whole, Pages: []sourcetest.Reply{pages[0], listPage(false, 0, listEntryJSON(kite, old1), listEntryJSON(soup, new1))}, Class: source.OK},
		sourcetest.BrokenEntry:    {Profile: whole, Pages: []sourcetest.Reply{listPage(true, new1*1000, listEntryJSON(soup, new1), `{"id":7}`), pages[1]}, Class: source.OK},
		sourcetest.BrokenList:     {Profile: whole, Pages: []sourcetest.Reply{listPage(false, 0, `{"id":["x"]}`)}, Class: source.Temporary},
	}
	for c, r := range refusalAnswers() {
		answers[c] = sourcetest.AccountAnswer{Profile: sourcetest.Reply{Status: r.Status, Body: r.Body}, RetryAt: r.RetryAt, Budget: r.Budget}
	}
	db := storetest.New(t, "sqlite")
	sourcetest.RunAccountTests(t, sourcetest.AccountHarness{
		New: func(t *testing.T, base string, client *fetch.Client) source.Source {
			return newDisplay(t, db, base, client, useNewRefreshToken)
		},
		Target: accountTarget(owner, 30), Answers: answers,
		IsList: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/video/list/") },
		IsSide: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/oauth/token/") }, Side: http.HandlerFunc(serveOtherRequests),
	})
}

// request is the recorded part of a request that the test server received.
type request struct {
	line                    string // the method and the URI
	auth, contentType, body string
}

// recordRequests serves requests with a handler and records them. The function requests returns the requests since its last call.
func recordRequests(t *testing.T, h http.HandlerFunc) (base string, requests func() []request) {
	t.Helper()
	log := make(chan request, 64)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		log <- request{r.Method + " " + r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL, func() []request {
		var all []request
		for len(log) > 0 {
			all = append(all, <-log)
		}
		return all
	}
}

func TestDisplay_sendsRequestsAsDocumented(t *testing.T) {
	t.Parallel()
	base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/video/query/"):
			_, _ = io.WriteString(w, videoListAnswer(displayVideoJSON(soup, counts)))
		case strings.HasSuffix(r.URL.Path, "/video/list/"):
			_, _ = io.WriteString(w, listPage(false, 0, listEntryJSON(soup, 1766782800)).Body)
		default:
			serveOtherRequests(w, r)
		}
	})
	d := newDisplay(t, storetest.New(t, "sqlite"), base+"/prefix/", nil, nil)
	batch := []queue.Target{videoTarget(soup, "", true), videoTarget(kite, "", false), videoTarget(soup, "", false)}
	results, err := d.Fetch(t.Context(), batch, source.NewCallBudget(d.Plan(batch)[0]))
	require.NoError(t, err)
	require.Equal(t, results[0].Facts, results[2].Facts)
	require.NotSame(t, results[0].Facts, results[2].Facts)
	require.Equal(t, source.Unsupported, results[1].Class, "the class must be unsupported, because a video whose handle is unknown may belong to another account")
	const bearer, js = "Bearer " + sourcetest.Credential, "application/json"
	require.Equal(t, []request{
		{"POST /prefix/v2/oauth/token/", "", "application/x-www-form-urlencoded",
			"client_key=aw1234&client_secret=s3cret%2BKey%2F42&grant_type=refresh_token&refresh_token=s3cret%2BKey%2F42"},
		{"POST /prefix/v2/video/query/?fields=id%2Ccreate_time%2Ccover_image_url%2Cshare_url%2Cvideo_description%2Cduration%2Ctitle%2Clike_count%2Ccomment_count%2Cshare_count%2Cview_count",
			bearer, js, `{"filters":{"video_ids":["` + soup + `","` + kite + `"]}}`},
	}, requests())

	account := []queue.Target{accountTarget(owner, 5)}
	_, err = d.Fetch(t.Context(), account, source.NewCallBudget(d.Plan(account)[0]))
	require.NoError(t, err)
	require.Equal(t, []request{
		{"GET /prefix/v2/user/info/?fields=open_id%2Cdisplay_name%2Cusername%2Cbio_description%2Cfollower_count%2Cfollowing_count", bearer, "", ""},
		{"POST /prefix/v2/video/list/?fields=id%2Ccreate_time%2Cshare_url", bearer, js, `{"max_count":20}`},
	}, requests())
}

func TestDisplay_returnsUnsupportedForOtherAccounts(t *testing.T) {
	t.Parallel()
	base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/video/query/") {
			_, _ = io.WriteString(w, okAnswer(`{}`))
			return
		}
		serveOtherRequests(w, r)
	})
	d := newDisplay(t, storetest.New(t, "sqlite"), base, nil, nil)
	batch := []queue.Target{videoTarget(soup, "somebody.else", true), videoTarget(kite, "", true), videoTarget(foreign, owner, true), videoTarget("123", owner, true)}
	results, err := d.Fetch(t.Context(), batch, source.NewCallBudget(d.Plan(batch)[0]))
	require.NoError(t, err)
	require.Equal(t, []source.Class{source.Unsupported, source.Unsupported, source.Temporary, source.Unsupported}, resultClasses(results),
		"a video of the logged-in account must not count as gone if the answer has no list")
	require.Len(t, requests(), 3, "the profile must be requested only once")
	_, ok := d.Serves(accountTarget("somebody.else", 1))
	require.False(t, ok, "the source must serve only the account that is logged in")
	_, ok = d.Serves(accountTarget(owner, 1))
	require.True(t, ok)
	_, ok = d.Serves(queue.Target{Platform: link.YouTube, Kind: queue.KindVideo, ExternalID: soup})
	require.False(t, ok)
}

func resultClasses(results []source.Result) []source.Class {
	out := make([]source.Class, len(results))
	for i, r := range results {
		out[i] = r.Class
	}
	return out
}

func TestDisplay_requestsOnlyFieldsOfGrantedScopes(t *testing.T) {
	t.Parallel()
	base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/oauth/token/"):
			_, _ = io.WriteString(w, strings.Replace(tokens, "user.info.profile,user.info.stats,", "", 1))
		case strings.HasSuffix(r.URL.Path, "/user/info/"):
			_, _ = io.WriteString(w, okAnswer(`{"user":{"open_id":"723f24d7","display_name":"Soup Season"}}`))
		default:
			_, _ = io.WriteString(w, videoListAnswer())
		}
	})
	d := newDisplay(t, storetest.New(t, "sqlite"), base, nil, nil)
	batch := []queue.Target{videoTarget(soup, owner, true)}
	results, err := d.Fetch(t.Context(), batch, source.NewCallBudget(d.Plan(batch)[0]))
	require.NoError(t, err)
	require.Equal(t, []source.Class{source.Unsupported}, resultClasses(results), "the class must be unsupported if the handle of the logged-in account is not known")
	require.Equal(t, "GET /v2/user/info/?fields=open_id%2Cdisplay_name", requests()[2].line, "fields of scopes that are not granted must not be requested")
	account := []queue.Target{accountTarget(owner, 1)}
	results, err = d.Fetch(t.Context(), account, source.NewCallBudget(d.Plan(account)[0]))
	require.NoError(t, err)
	require.Equal(t, source.Unsupported, results[0].Class)
	require.Contains(t, results[0].Detail, "user.info.profile")
}

func TestDisplay_requestsNextPageAfterShortPage(t *testing.T) {
	t.Parallel()
	pages := []string{
		listPage(true, 300, listEntryJSON(soup, 1766782800)).Body, listPage(true, 200).Body, listPage(true, 100, listEntryJSON(kite, 1700000000)).Body, listPage(true, 50, listEntryJSON(foreign, 1699999999)).Body,
	} // four pages, because the source makes at most four calls for a list of 25 videos
	base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/video/list/") {
			_, _ = io.WriteString(w, pages[0])
			pages = pages[1:]
			return
		}
		serveOtherRequests(w, r)
	})
	d := newDisplay(t, storetest.New(t, "sqlite"), base, nil, nil)
	account := []queue.Target{accountTarget(owner, 25)}
	results, err := d.Fetch(t.Context(), account, source.NewCallBudget(d.Plan(account)[0]))
	require.NoError(t, err)
	require.Equal(t, source.Temporary, results[0].Class, "the result must be temporary if the list was not read to its end: %s", results[0].Detail)
	var cursors []string
	for _, r := range requests()[2:] {
		cursors = append(cursors, r.body)
	}
	require.Equal(t, []string{`{"max_count":20}`, `{"max_count":20,"cursor":300}`, `{"max_count":20,"cursor":200}`, `{"max_count":20,"cursor":100}`}, cursors)

	pages = []string{listPage(true, 300, listEntryJSON(soup, 1766782800)).Body}
	budget := source.NewCallBudget([]source.Call{{Budget: tiktok.BudgetRequests, Units: 2}})
	results, err = d.Fetch(t.Context(), account, budget)
	require.NoError(t, err)
	require.Equal(t, source.OK, results[0].Class, `the class must be "ok" although the budget is used up: %s`, results[0].Detail)
	require.Len(t, results[0].Account.Videos, 1)
	require.True(t, results[0].Account.ListContinues)
	require.True(t, results[0].Account.Unfinished)
	require.EqualValues(t, 2, budget.Spent()[0].Units)
}

func TestNewDisplay_refusesInvalidOptions(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	client := fetch.New(fetch.Options{})
	good := tiktok.DisplayOptions{ClientKey: "k", ClientSecret: "s3cret", RefreshToken: "r", Client: client, Tokens: db.Queue, Now: time.Now}
	for want, change := range map[string]func(*tiktok.DisplayOptions){
		"the client key or the client secret is missing":  func(o *tiktok.DisplayOptions) { o.ClientSecret = "" },
		"the refresh token is missing":                    func(o *tiktok.DisplayOptions) { o.RefreshToken = "" },
		"the option Tokens is required":                   func(o *tiktok.DisplayOptions) { o.Tokens = nil },
		"the options \"Client\" and \"Now\" are required": func(o *tiktok.DisplayOptions) { o.Now = nil },
		`must be an http or https address without credentials, query and fragment, not "https://x/?a=REDACTED"`: func(o *tiktok.DisplayOptions) { o.BaseURL = "https://x/?a=s3cret" },
	} {
		o := good
		change(&o)
		_, err := tiktok.NewDisplay(o)
		require.ErrorContains(t, err, want)
	}
	d, err := tiktok.NewDisplay(good)
	require.NoError(t, err)
	require.Equal(t, int64(300), d.Budgets()[0].Limit)
	window, ends := d.Budgets()[0].Window(sourcetest.Now.Add(59 * time.Second))
	require.Equal(t, "2026-11-21T15:30", window)
	require.Equal(t, sourcetest.Now.Add(time.Minute), ends)
	all := []queue.Target{accountTarget(owner, 5000)}
	require.LessOrEqual(t, d.Plan(all)[0][0].Units, int64(300), "one minute's budget must be enough for the longest list")
	_, err = d.Fetch(t.Context(), make([]queue.Target, 21), source.NewCallBudget(d.Plan(nil)[0]))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.BadRequest, f.Class)
}

func foundVideos(pairs ...any) []ingest.FoundVideo {
	var out []ingest.FoundVideo
	for i := 0; i < len(pairs); i += 2 {
		id := pairs[i].(string)
		out = append(out, ingest.FoundVideo{ID: id, Link: "https://www.tiktok.com/@" + owner + "/video/" + id, UploadedAt: new(store.InstantOf(time.Unix(pairs[i+1].(int64), 0)))})
	}
	return out
}
