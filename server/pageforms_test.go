package server_test

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// parseHTML returns the parsed HTML of a response with any status.
func (a response) parseHTML() *html.Node {
	a.t.Helper()
	page, err := html.Parse(bytes.NewReader(a.body))
	require.NoError(a.t, err)
	return page
}

// fieldValue returns the value of a form field, or the text of a textarea. It returns "" if the page has no such field.
func fieldValue(page *html.Node, name string) string {
	for _, kind := range []string{"input", "textarea"} {
		for _, field := range findElements(page, kind) {
			if attributeValue(field, "name") == name && kind == "input" {
				return attributeValue(field, "value")
			} else if attributeValue(field, "name") == name {
				return textOf(field)
			}
		}
	}
	return ""
}

// linkWithText returns the target of the page's first link with the given text, or "".
func linkWithText(page *html.Node, text string) string {
	for _, a := range findElements(page, "a") {
		if strings.TrimSpace(textOf(a)) == text {
			return attributeValue(a, "href")
		}
	}
	return ""
}

// alerts returns the text of the page's error messages.
func alerts(page *html.Node) string {
	text := ""
	for _, p := range findElements(page, "p") {
		if attributeValue(p, "role") == "alert" {
			text += textOf(p)
		}
	}
	return text
}

func TestDashboardPages_haveTheReferrerPolicySameOrigin(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	for _, path := range []string{"/", "/login", "/login/unknown", "/c/unknown", "/video/unknown"} {
		require.Equal(t, "same-origin", v.visit(path).Header.Get("Referrer-Policy"), path)
	}
	require.Equal(t, "no-referrer", c.send(http.MethodGet, "/videos", nil).Header.Get("Referrer-Policy"))
}

func TestAnswersToForms_canBeShownAgainIfTheyHaveNoSecret(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	for _, answer := range []struct {
		path   string
		fields []string
		want   string
		why    string
	}{
		{"/track", []string{"links", "nonsense"}, "private, no-cache", "the result of tracking"},
		{"/settings/webhook", []string{"url", "ftp://x"}, "private, no-cache", "a refused webhook"},
		{"/settings/token", []string{"name", "", "scopes", "read"}, "private, no-cache", "a refused token"},
		{"/settings/token", []string{"name", "Script", "scopes", "read"}, "no-store", "the secret of a token"},
		{"/settings/webhook", []string{"url", "https://hooks.example.com/a"}, "no-store", "the secret of a webhook"},
		{"/login", []string{"token", "wrong"}, "no-store", "a refused token at the sign-in"},
		{"/video/chosen/x", nil, "no-store", "an error page"},
	} {
		require.Equal(t, answer.want, v.post(answer.path, answer.fields...).Header.Get("Cache-Control"), answer.why)
	}
	require.Equal(t, "no-store", v.visit("/settings").Header.Get("Cache-Control"))
	for _, path := range []string{"/", "/track", "/video", "/video?csv=videos", "/account", "/collection", "/search?q=x", "/compare", "/operations", "/video/unknown"} {
		require.Equal(t, "no-store", v.visit(path).Header.Get("Cache-Control"), path)
	}
	require.Contains(t, v.post("/track", "links", "nonsense").Header.Values("Vary"), "Cookie", "the browser must not show the response again after the sign-out")
	require.Equal(t, `"cache"`, v.post("/logout").requireStatus(http.StatusSeeOther).Header.Get("Clear-Site-Data"))
}

func TestEndedSession_keepsThePageAndThePastedLinks(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.AppURL = "http://example.test/tally" })
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	collection := c.createNamedCollection("Spring")
	v.post("/logout").requireStatus(http.StatusSeeOther)

	pasted := videoURL(1) + "\n\"" + videoURL(2) + "\""
	refused := v.post("/track", "links", pasted, "collection", collection.String(), "tracking_type", "all").requireStatus(http.StatusUnauthorized)
	require.Contains(t, string(refused.body), "Your session has ended. Nothing was changed.")
	require.NotContains(t, string(refused.body), "Sign out")
	require.Equal(t, "/track", fieldValue(refused.parseHTML(), "next"))
	fields := []string{"next", "/track", "links", fieldValue(refused.parseHTML(), "links"), "collection", collection.String(), "tracking_type", "all"}
	require.Equal(t, pasted, fieldValue(v.post("/login", append(fields, "token", "wrong")...).requireStatus(http.StatusUnauthorized).parseHTML(), "links"))
	page := v.post("/login", append(fields, "token", c.token)...).requireStatus(http.StatusOK)
	require.Equal(t, pasted, fieldValue(page.parseHTML(), "links"))
	require.Contains(t, string(page.body), "You are signed in. Press Track to track the links.")
	require.Contains(t, string(page.body), `value="`+collection.String()+`" selected`)
	require.Empty(t, decode[client.VideoPage](c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)).Data, "nothing may be tracked before the visitor presses Track")
	v.visit("/video").requireStatus(http.StatusOK)

	v.cookie = nil
	for from, next := range map[string]string{
		"http://example.test/tally/video?platform=tiktok": "/video?platform=tiktok", "http://evil.example/tally/account": "/settings",
		"http://example.test/tally/settings/token": "/settings", "http://example.test/tally/login/secret": "/settings", "": "/settings",
	} {
		v.headers = []string{"Referer", from}
		require.Equal(t, next, fieldValue(v.post("/settings/token", "name", "x").requireStatus(http.StatusUnauthorized).parseHTML(), "next"), from)
	}
}

func TestErrorPages_leadBackToThePageWithTheForm(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	v.headers = []string{"Referer", "https://app.example.test/collection"}
	require.Equal(t, "/collection", linkWithText(v.post("/settings/theme", "theme", "pink").requireStatus(http.StatusBadRequest).parseHTML(), "Back"))
	v.headers = nil
	require.Equal(t, "/settings", linkWithText(v.post("/settings/theme", "theme", "pink").requireStatus(http.StatusBadRequest).parseHTML(), "Back"))
	require.Equal(t, "/video?platform=tiktok", linkWithText(v.post("/video/chosen/stop", "back", "/video?platform=tiktok&notice=added").requireStatus(http.StatusBadRequest).parseHTML(), "Back"))
	require.Equal(t, "/video", linkWithText(v.visit("/video?page=x").requireStatus(http.StatusBadRequest).parseHTML(), "Back"))
	for _, name := range findElements(v.visit("/collection").parseHTML(), "input") {
		if attributeValue(name, "name") == "name" {
			require.Equal(t, "100", attributeValue(name, "maxlength"))
		}
	}
}

func TestErrorPages_sayWhatAFormDidNotFind(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	video, stopped := c.track(videoURL(1)), c.track(videoURL(2))
	collection := c.createNamedCollection("Spring")
	v := c.newSignedInVisitor(t)
	v.post("/video/tiktok/" + stopped.String() + "/stop").requireStatus(http.StatusSeeOther)
	v.post("/collection/" + collection.String() + "/delete").requireStatus(http.StatusSeeOther)
	require.Contains(t, string(v.post("/video/tiktok/"+stopped.String()+"/refresh").requireStatus(http.StatusNotFound).body), "Your organisation tracks no video "+stopped.String()+".")
	require.Contains(t, string(v.post("/video/tiktok/"+video.String()+"/collect", "collection", collection.String()).requireStatus(http.StatusNotFound).body), "Your organisation has no collection "+collection.String()+".")
	require.Contains(t, string(v.visit("/collection/"+collection.String()).requireStatus(http.StatusNotFound).body), "This page does not exist, or it belongs to another organisation.")
}

func TestForms_keepTheirValuesAndShowTheReasonIfTheyAreRefused(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	parent := c.createNamedCollection("Spring").String()
	long := strings.Repeat("x", 300)
	for _, wrong := range []struct {
		path   string
		fields []string // names and values of the form's fields
		reason string
	}{
		{"/collection", []string{"name", " ", "hashtags", "#a", "parent", parent}, `"Name" is empty.`},
		{"/collection", []string{"name", long, "hashtags", "#a", "parent", parent}, `"Name" must have at most 100 characters, not 300.`},
		{"/collection", []string{"name", "Summer", "hashtags", "#a, ##x", "parent", parent}, `"##x" must be a hashtag without white space, with # only at its beginning, not "##x".`},
		{"/settings/webhook", []string{"url", "ftp://x", "type", "video.removed"}, `"Address" must be an https URL`},
		{"/settings/token", []string{"name", long, "scopes", "read,write", "days", "365"}, `"Name" must have at most 100 characters, not 300.`},
		{"/settings/token", []string{"name", "Report", "scopes", "read,write", "days", "0"}, `"Valid" must be at least 1, not 0.`},
		{"/settings/token", []string{"name", "Report", "scopes", "read,write", "days", "soon"}, "The number of days must be a whole number."},
	} {
		refused := v.post(wrong.path, wrong.fields...).requireStatus(http.StatusBadRequest)
		page := refused.parseHTML()
		require.Contains(t, alerts(page), wrong.reason)
		for n := 0; n < len(wrong.fields); n += 2 {
			name, value := wrong.fields[n], wrong.fields[n+1]
			if shown := fieldValue(page, name); shown != value && value != "0" && value != "soon" { // the list of days has no option for the last two values
				require.Regexp(t, `<option value="`+regexp.QuoteMeta(value)+`" selected>|<input type="checkbox" name="`+name+`" value="`+regexp.QuoteMeta(value)+`" checked>`, string(refused.body), "%s of %s", name, wrong.path)
			}
		}
		_, after, found := strings.Cut(string(refused.body), `role="alert"`)
		require.True(t, found)
		_, action, _ := strings.Cut(after, "<form")
		require.Contains(t, action[:100], `action="`+wrong.path+`"`, "the reason must be directly above the form")
	}
	unknown := uuid.NewString()
	refused := v.post("/collection", "name", "Summer", "parent", unknown).requireStatus(http.StatusNotFound).parseHTML()
	require.Contains(t, alerts(refused), "Your organisation has no collection "+unknown+".")
	require.Equal(t, "Summer", fieldValue(refused, "name"))
}

func TestFilters_keepRefusedValuesAndShowTheReason(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	video := c.track(tiktokLink)
	v := c.newSignedInVisitor(t)
	for target, want := range map[string]struct{ reason, field, value string }{
		"/video?uploaded_at_start=2026-02-02&uploaded_at_end=2026-02-01":       {"The first upload day, 2026-02-02, is after the last, 2026-02-01.", "uploaded_at_start", "2026-02-02"},
		"/video?q=https%3A%2F%2Fexample.com%2Fx":                               {"example.com", "q", "https://example.com/x"},
		"/account?username=%40":                                                {"username", "username", "@"},
		"/?start=2026-02-02&end=2026-02-01":                                    {"The first day, 2026-02-02, is after the last day, 2026-02-01.", "start", "2026-02-02"},
		"/video/tiktok/" + video.String() + "?start=2000-01-01&end=2000-01-02": {"the oldest day that can be shown", "end", "2000-01-02"},
		"/compare?link=https%3A%2F%2Fyoutu.be%2FdQw4w9WgXcQ":                   {"does not track the video", "link", "https://youtu.be/dQw4w9WgXcQ"},
		"/compare?link=https%3A%2F%2Fexample.com%2Fx":                          {"example.com", "link", "https://example.com/x"},
	} {
		page := v.visit(target).requireStatus(http.StatusBadRequest)
		require.Contains(t, alerts(page.parseHTML()), want.reason, target)
		require.Equal(t, want.value, fieldValue(page.parseHTML(), want.field), target)
	}
	v.visit("/video?uploaded_at_start=2026-02-02&uploaded_at_end=2026-02-01&csv=videos").requireStatus(http.StatusBadRequest)
	v.visit("/?start=2026-02-02&end=2026-02-01&csv=history").requireStatus(http.StatusBadRequest)
}

func TestListPages_redirectToTheLastPageIfThePageNumberIsTooHigh(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	collection := c.createNamedCollection("Spring")
	links := make([]string, 51)
	for n := range links {
		links[n] = videoURL(n)
	}
	c.trackVideos(http.StatusOK, links, collection.String())
	c.trackAccounts(http.StatusOK, []string{"https://www.tiktok.com/@someone"})
	c.send(http.MethodPatch, "/collections/"+collection.String(), map[string]any{"access": "public"}).requireStatus(http.StatusNoContent)
	share := "/c/" + *decode[client.Collection](c.send(http.MethodGet, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK)).Hash
	for from, to := range map[string]string{
		"/video?page=14&notice=stopped":                  "/video?notice=stopped&page=2",
		"/video?page=14&q=nothing":                       "/video?page=1&q=nothing",
		"/account?page=3":                                "/account?page=1",
		"/collection/" + collection.String() + "?page=3": "/collection/" + collection.String() + "?page=2",
		share + "?page=77&embed=1":                       share + "?embed=1&page=2",
	} {
		require.Equal(t, to, v.visit(from).requireStatus(http.StatusSeeOther).Header.Get("Location"))
		v.visit(to).requireStatus(http.StatusOK)
	}
}

func TestWaitingPages_askAgainOnlyWhenNumbersCanArrive(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	video := c.track(tiktokLink)
	v := c.newSignedInVisitor(t)
	interval := func(path string) int {
		for _, div := range findElements(v.visit(path).requireStatus(http.StatusOK).parseHTML(), "div") {
			if text, ok := strings.CutPrefix(attributeValue(div, "hx-trigger"), "every "); ok {
				n, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
				require.NoError(t, err)
				return n
			}
		}
		return 0
	}
	path := "/video/tiktok/" + video.String()
	require.Equal(t, 5, interval(path))
	a.Clock.Advance(10 * time.Minute)
	require.Equal(t, 60, interval(path), "a page that has waited ten minutes for numbers must request them less often")
	a.fetch(factsWithViews(1))
	require.Zero(t, interval(path))
}

func TestUnknownAddresses_showAPageInABrowser(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	v.headers = []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
	for _, path := range []string{"/nothing", "/nothing/else"} {
		page := v.visit(path).requireStatus(http.StatusNotFound)
		require.Equal(t, "text/html; charset=utf-8", page.Header.Get("Content-Type"))
		require.Equal(t, "/", linkWithText(page.parseHTML(), "Overview"), path)
		require.Contains(t, string(page.body), "Northwind", "a signed-in visitor must see the navigation")
		require.Contains(t, page.Header.Get("Vary"), "Accept")
		otherResponse := a.send(t, http.MethodGet, path, nil, v.headers...).requireStatus(http.StatusNotFound)
		require.NotContains(t, string(otherResponse.body), "Northwind")
	}
	for _, accept := range []string{"", "*/*", "application/json", "application/json, text/html"} {
		a.send(t, http.MethodGet, "/nothing", nil, "Accept", accept).requireProblem(http.StatusNotFound, server.CodeNotFound)
		a.send(t, http.MethodGet, "/videos", nil, "Accept", accept).requireProblem(http.StatusUnauthorized, server.CodeTokenMissing)
	}
	a.send(t, http.MethodGet, "/videos", nil, v.headers...).requireProblem(http.StatusUnauthorized, server.CodeTokenMissing)
	c.send(http.MethodGet, "/videos/"+uuid.NewString(), nil, v.headers...).requireProblem(http.StatusNotFound, server.CodeNotFound)
	a.send(t, http.MethodPost, "/nothing", nil, v.headers...).requireProblem(http.StatusNotFound, server.CodeNotFound)
}

func TestSettingsPage_createsOneTokenIfTheFormIsSentTwice(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	key := fieldValue(v.visit("/settings").requireStatus(http.StatusOK).parseHTML(), "key")
	require.NotEmpty(t, key)
	tokens := func() int {
		return len(decode[client.TokenList](c.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK)).Data)
	}
	before := tokens()
	form := []string{"key", key, "name", "Report", "scopes", "read", "days", "30"}
	first := v.post("/settings/token", form...).requireStatus(http.StatusOK)
	require.Contains(t, string(first.body), "It is shown only now")
	again := v.post("/settings/token", form...).requireStatus(http.StatusOK)
	require.Contains(t, string(again.body), "was already created")
	require.NotContains(t, string(again.body), `id="secret"`)
	require.Equal(t, before+1, tokens())
	form[3] = "Other"
	require.Contains(t, string(v.post("/settings/token", form...).requireStatus(http.StatusOK).body), "It is shown only now", "the form with other values must create another token")

	webhook := []string{"key", key, "url", "https://hooks.example.com/a"}
	require.Contains(t, string(v.post("/settings/webhook", webhook...).requireStatus(http.StatusOK).body), "Its secret is shown only now")
	require.Contains(t, string(v.post("/settings/webhook", webhook...).requireStatus(http.StatusOK).body), "was already created")
}

// periodForm returns the HTML of the form for a custom period up to its first label.
func periodForm(t *testing.T, page response) string {
	t.Helper()
	_, form, found := strings.Cut(string(page.requireStatus(http.StatusOK).body), "<summary>Custom</summary>")
	require.True(t, found)
	form, _, found = strings.Cut(form, "<label>From ")
	require.True(t, found)
	return form
}

func TestForms_keepTheRestOfTheView(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	for page, hidden := range map[string]string{
		"/collection/" + collection.String() + "?subtree=true&days=7":           `<input type="hidden" name="subtree" value="true">`,
		"/compare?video=" + videos[0].String() + "&video=" + videos[1].String(): `<input type="hidden" name="video" value="` + videos[1].String() + `">`,
	} {
		require.Contains(t, periodForm(t, v.visit(page)), hidden, page)
	}
	require.NotContains(t, periodForm(t, v.visit("/collection/"+collection.String()+"?days=7")), `name="days"`, "the days must not contradict a custom period")
	require.Contains(t, string(v.visit("/video?hashtag=launch&has_metrics=true").body), `<input type="hidden" name="hashtag" value="launch">`)
	require.Contains(t, string(v.visit("/video?has_metrics=true").body), `<option value="true" selected>With numbers</option>`)
	require.Contains(t, string(v.visit("/video?order_by=latest_shares").body), `<option value="latest_shares" selected>`, "a filter must not change the order of the list")
}

func TestAccountPage_keepsTheTrackingTypeIfTheAccountIsTrackedAgain(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.trackAccount(map[string]any{"link": "https://www.tiktok.com/@mira.cooks", "tracking_type": "all"}).AccountID.String()
	v, page := c.newSignedInVisitor(t), "/account/tiktok/"+id
	v.post(page + "/stop").requireStatus(http.StatusSeeOther)
	v.post(page + "/track").requireStatus(http.StatusSeeOther)
	account := decode[client.Account](c.send(http.MethodGet, "/accounts/"+id, nil).requireStatus(http.StatusOK))
	require.Equal(t, "all", *account.TrackingType)
}

func TestSettingsPage_sendsAFailedEventAgain(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		v, hook := c.newSignedInVisitor(t), c.createWebhook(r.URL)
		r.answerWithFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<b>Our queue is full</b>", http.StatusServiceUnavailable)
		})
		made := c.testWebhook(hook.ID)
		a.sendDueEvents(t)
		r.takeRequests()
		got := v.visit("/settings?webhook=" + hook.ID.String()).requireStatus(http.StatusOK)
		text := textOf(got.parsePage())
		require.Contains(t, text, made.EventID.String())
		require.Contains(t, text, "<b>Our queue is full</b>")
		require.Contains(t, string(got.body), c.deliveries(hook.ID)[0].NextAttemptAt.UTC().Format("2006-01-02T15:04:05"))

		path := "/settings/webhook/" + hook.ID.String() + "/replay"
		v.post(path, "delivery", "x").requireStatus(http.StatusNotFound)
		shown := v.post(path, "delivery", made.ID.String()).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, textOf(v.visit(shown).parsePage()), "The event will be sent again within seconds.")
		deliveries := c.deliveries(hook.ID)
		require.Len(t, deliveries, 2)
		require.Equal(t, made.EventID, deliveries[0].EventID)
		other := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
		other.post(path, "delivery", made.ID.String()).requireStatus(http.StatusNotFound)
	})
}
