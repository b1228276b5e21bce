package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// visitor is a browser without JavaScript that visits the dashboard. It stores the cookie of its session.
type visitor struct {
	*app
	t       *testing.T
	cookie  *http.Cookie // nil if the visitor is not signed in
	headers []string     // additional headers: a name, its value, the next name, and so on
}

// visit sends a GET request for a page.
func (v *visitor) visit(target string) response {
	v.t.Helper()
	return v.sendRequest(http.MethodGet, target, nil)
}

// post sends a form. The fields are given as a name, its value, the next name, and so on.
func (v *visitor) post(target string, fields ...string) response {
	v.t.Helper()
	form := url.Values{}
	for n := 0; n+1 < len(fields); n += 2 {
		form.Add(fields[n], fields[n+1])
	}
	return v.sendRequest(http.MethodPost, target, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// sendRequest sends a request with the visitor's cookie, and stores the cookie that the response sets. It fails if the page has a formatting error
// of package fmt.
func (v *visitor) sendRequest(method, target string, body any, headers ...string) response {
	v.t.Helper()
	headers = append(headers, v.headers...)
	if v.cookie != nil {
		headers = append(headers, "Cookie", v.cookie.Name+"="+v.cookie.Value)
	}
	got := v.app.send(v.t, method, target, body, headers...)
	if strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
		require.NotContains(v.t, string(got.body), "%!", "%s: a template formats a value of the wrong type", target)
	}
	for _, c := range got.Cookies() {
		if v.cookie = c; c.MaxAge < 0 {
			v.cookie = nil
		}
	}
	return got
}

// postConcurrently sends a form to target from several visitors at the same time. fieldsOf returns the fields of the form of visitor n. The
// result is the number of responses by status.
func (a *app) postConcurrently(t *testing.T, visitors int, target string, fieldsOf func(n int) url.Values) map[int]int {
	t.Helper()
	statuses := make([]int, visitors)
	var requests errgroup.Group
	for n := range visitors {
		requests.Go(func() error {
			got, err := a.exchange(t, http.MethodPost, target, fieldsOf(n).Encode(), "Content-Type", "application/x-www-form-urlencoded")
			if err == nil {
				statuses[n] = got.StatusCode
			}
			return err
		})
	}
	require.NoError(t, requests.Wait())
	counts := map[int]int{}
	for _, status := range statuses {
		counts[status]++
	}
	return counts
}

// newSignedInVisitor returns a visitor that is signed in with the token of c.
func (c *caller) newSignedInVisitor(t *testing.T) *visitor {
	t.Helper()
	v := &visitor{app: c.app, t: t}
	v.post("/login", "token", c.token).requireStatus(http.StatusSeeOther)
	require.NotNil(t, v.cookie)
	return v
}

func TestSignIn_startsASessionWithAToken(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		v := &visitor{app: a, t: t}
		require.Equal(t, "/login", v.visit("/").requireStatus(http.StatusSeeOther).Header.Get("Location"))
		require.Contains(t, string(v.visit("/login").requireStatus(http.StatusOK).body), `name="token"`)

		for _, wrong := range []string{"", "x", c.token[1:], c.token[:len(c.token)-1] + "_"} {
			require.Contains(t, string(v.post("/login", "token", wrong).requireStatus(http.StatusUnauthorized).body), `role="alert"`)
			require.Nil(t, v.cookie)
		}
		require.Equal(t, "/", v.post("/login", "token", " "+c.token+"\n").requireStatus(http.StatusSeeOther).Header.Get("Location"))
		require.True(t, v.cookie.HttpOnly)
		require.True(t, v.cookie.Secure, "the cookie must be secure, because AppURL is an https URL")
		require.Equal(t, http.SameSiteLaxMode, v.cookie.SameSite)
		require.NotContains(t, v.cookie.Value, c.token)

		page := v.visit("/").requireStatus(http.StatusOK)
		require.Contains(t, string(page.body), "Northwind")
		require.Equal(t, "no-store", page.Header.Get("Cache-Control"))
		require.Contains(t, page.Header.Get("Content-Security-Policy"), "script-src 'self'; style-src 'self';")
		a.send(t, http.MethodGet, "/videos", nil, "Authorization", "Bearer "+v.cookie.Value).requireProblem(http.StatusUnauthorized, server.CodeTokenMalformed)
		a.send(t, http.MethodGet, "/videos", nil, "Cookie", v.cookie.Name+"="+v.cookie.Value).requireProblem(http.StatusUnauthorized, server.CodeTokenMissing)

		old := *v.cookie
		require.Equal(t, "/login", v.post("/logout").requireStatus(http.StatusSeeOther).Header.Get("Location"))
		require.Nil(t, v.cookie)
		v.cookie = &old
		require.Equal(t, "/login", v.visit("/").requireStatus(http.StatusSeeOther).Header.Get("Location"), "signing out must end the session on the server")
		require.NotContains(t, a.log.String(), old.Value)
		require.NotContains(t, a.log.String(), c.token)
	})
}

func TestSession_endsWhenItsTokenIsRevoked(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		v := c.newSignedInVisitor(t)
		v.visit("/").requireStatus(http.StatusOK)
		id, err := a.Authenticate(t.Context(), c.token)
		require.NoError(t, err)
		require.NoError(t, a.RevokeToken(t.Context(), id.Token.ID))
		a.Clock.Advance(time.Second)
		require.Equal(t, "/login", v.visit("/").requireStatus(http.StatusSeeOther).Header.Get("Location"))
		require.Nil(t, v.cookie, "the browser must forget the session")
	})
}

func TestLoginLink_worksOnlyOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id, err := a.Authenticate(t.Context(), c.token)
		require.NoError(t, err)
		link, err := a.CreateLoginLink(t.Context(), id.Token.ID)
		require.NoError(t, err)
		v := &visitor{app: a, t: t}
		for range 2 {
			require.Contains(t, string(v.visit("/login/"+link).requireStatus(http.StatusOK).body), "Sign in to Northwind")
			require.Nil(t, v.cookie, "opening the link must not use it up")
		}
		require.Equal(t, "/", v.post("/login/"+link).requireStatus(http.StatusSeeOther).Header.Get("Location"))
		v.visit("/").requireStatus(http.StatusOK)

		other := &visitor{app: a, t: t}
		require.Contains(t, string(other.post("/login/"+link).requireStatus(http.StatusUnauthorized).body), "This link does not work: it was already used, is older than 30 minutes, is incomplete, or its token is no longer valid. Ask for a new one: reeltally login-link --org NAME.")
		require.Nil(t, other.cookie)
		require.NotContains(t, a.log.String(), link)
	})
}

func TestSignIn_limitsTheAttemptsOfAnIPAddress(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = server.NewMemoryRateStore() })
	c := a.newCaller(t, store.TierPremium)
	v := &visitor{app: a, t: t}
	for range 20 {
		v.post("/login", "token", c.token).requireStatus(http.StatusSeeOther) // a successful sign-in does not count towards the limit
	}
	for range 10 {
		v.post("/login", "token", "rt_wrong").requireStatus(http.StatusUnauthorized)
	}
	refused := v.post("/login", "token", c.token).requireStatus(http.StatusTooManyRequests)
	require.Contains(t, string(refused.body), "Try again in")
	require.Regexp(t, `^[1-9]\d?$`, refused.Header.Get("Retry-After"))
	require.Regexp(t, `^[1-9]\d?$`, v.visit("/login/"+strings.Repeat("A", 43)).requireStatus(http.StatusTooManyRequests).Header.Get("Retry-After"))
	require.Regexp(t, `^[1-9]\d?$`, v.visit("/setup/"+strings.Repeat("A", 43)).requireStatus(http.StatusTooManyRequests).Header.Get("Retry-After"))
}

func TestSignIn_leadsBackToTheRequestedPage(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := &visitor{app: a, t: t}
	to := v.visit("/video?platform=tiktok").requireStatus(http.StatusSeeOther).Header.Get("Location")
	require.Equal(t, "/login?next=%2Fvideo%3Fplatform%3Dtiktok", to)
	require.Contains(t, string(v.visit(to).body), `name="next" value="/video?platform=tiktok"`)
	for next, want := range map[string]string{"/video?platform=tiktok": "/video?platform=tiktok", "": "/", "https://evil.example/": "/", "//evil.example/": "/",
		`/\evil.example`: "/", "/%2Fevil.example": "/", "javascript:alert(1)": "/", "evil": "/"} {
		require.Equal(t, want, v.post("/login", "token", c.token, "next", next).requireStatus(http.StatusSeeOther).Header.Get("Location"), next)
	}
}

func TestSignIn_isRequestedForTheWholePageIfItsScriptHasNoSession(t *testing.T) {
	t.Parallel()
	v := &visitor{app: newApp(t, newSQLite(t), func(o *server.Options) { o.AppURL = "http://example.test/tally" }), t: t}
	for _, from := range []struct{ page, signIn string }{
		{"http://example.test/tally/track", "/tally/login?next=%2Ftrack"}, {"http://example.test/tally/video?q=a+b", "/tally/login?next=%2Fvideo%3Fq%3Da%2Bb"},
		{"http://example.test/tally/", "/tally/login"}, {"http://evil.example/tally/video", "/tally/login"},
	} {
		v.headers = []string{"HX-Request", "true", "Referer", from.page}
		for _, got := range []response{v.visit("/search?q=spring"), v.visit("/video"), v.post("/track/progress", "total", "1")} {
			got.requireStatus(http.StatusUnauthorized)
			require.Equal(t, from.signIn, got.Header.Get("HX-Redirect"), from.page)
			require.Empty(t, got.body)
		}
	}
}

func TestDashboardPages_refuseRequestsOfOtherSites(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		v.headers = headers
		v.post("/logout").requireStatus(http.StatusForbidden)
		v.post("/login", "token", c.token).requireStatus(http.StatusForbidden)
	}
	v.headers = []string{"Origin", "https://app.example.test"}
	v.post("/track", "links", "x").requireStatus(http.StatusOK)
	v.headers = []string{"Sec-Fetch-Site", "same-origin"}
	v.visit("/").requireStatus(http.StatusOK)
	v.post("/logout").requireStatus(http.StatusSeeOther)
}

func TestDashboardPages_ignoreIfMatchAndIdempotencyKeyOfTheBrowser(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	v.headers = []string{"If-Match", `"never"`, "Idempotency-Key", "k"}
	first := v.post("/collection", "name", "Launch").requireStatus(http.StatusSeeOther).Header.Get("Location")
	second := v.post("/collection", "name", "Germany").requireStatus(http.StatusSeeOther).Header.Get("Location")
	require.NotEqual(t, first, second)
	page, _, _ := strings.Cut(first, "?")
	v.post(page+"/edit", "name", "Spring").requireStatus(http.StatusSeeOther)
	v.post(page, "access", "public", "metric", "views").requireStatus(http.StatusSeeOther)
	v.post(page + "/delete").requireStatus(http.StatusSeeOther)
}

func TestTrackPage_showsTheResultForEachLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		old := c.track(videoURL(1))
		v := c.newSignedInVisitor(t)
		a.platforms.redirect("https://vm.tiktok.com/ZMaccount9/", "https://www.tiktok.com/@elsewhere")
		short := v.post("/track", "links", "https://vm.tiktok.com/ZMaccount9/").rows()
		require.Contains(t, short[1].link, "/account/tiktok/", "the page must accept a short link that leads to an account")
		require.Contains(t, short[1].text, "Tracked")
		require.Contains(t, short[1].text, "Next, its latest 30 videos are found and tracked.")

		collection := c.createNamedCollection("Launch").String()
		results := v.post("/track", "links", "Old: "+videoURL(1)+"\nnew: "+videoURL(2)+", @ https://www.tiktok.com/@someone\nnonsense", "tracking_type", "new_only", "collection", collection)
		require.Contains(t, textOf(results.parsePage()), "2 links are newly tracked. 1 link was tracked before. Collection: Launch.")
		require.Equal(t, "/collection/"+collection, linkWithText(results.parseHTML(), "Launch"))
		rows := results.rows()
		require.Len(t, rows, 5)
		require.Equal(t, "/video/tiktok/"+old.String(), rows[2].link)
		for n, word := range []string{"Refused", "Already tracked", "Tracked", "Tracked"} {
			require.Contains(t, rows[n+1].text, word)
		}
		require.Contains(t, rows[1].text, "nonsense")
		id, ok := strings.CutPrefix(rows[3].link, "/video/tiktok/")
		require.True(t, ok)
		require.Contains(t, rows[4].link, "/account/tiktok/")
		require.Contains(t, rows[4].text, "Next, only new videos are found and tracked.")

		waiting := []string{"total", "2", "rounds", "0", "waiting", "video:" + id, "waiting", "account:" + strings.TrimPrefix(rows[4].link, "/account/tiktok/")}
		require.Contains(t, string(v.post("/track/progress", waiting...).requireStatus(http.StatusOK).body), "0 of 2 links have been fetched.")
		a.fetch(factsWithViews(4321))
		half := string(v.post("/track/progress", waiting...).requireStatus(http.StatusOK).body)
		require.Contains(t, half, "1 of 2 links have been fetched.")
		require.Contains(t, half, "4,321 views")
		require.NotContains(t, half, `value="video:`, "the page must not ask for the progress of videos and accounts that already have numbers")
		require.Contains(t, half, `hx-post="/track/progress"`)
		waiting[3] = "119"
		require.NotContains(t, string(v.post("/track/progress", waiting...).body), "hx-post", "the page must stop asking for progress after ten minutes")

		require.Contains(t, string(v.post("/track", "links", " \n").requireStatus(http.StatusBadRequest).body), "The text has no links. Paste at least one.")
		for _, wrong := range [][]string{{}, {"total", "x", "rounds", "0"}, {"total", "0", "rounds", "0", "waiting", "video:1"}} {
			v.post("/track/progress", wrong...).requireStatus(http.StatusBadRequest)
		}
	})
}

func TestDashboardPages_existAtTheDirectURLOfEachTrackedItem(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	for path, link := range map[string]string{"/videos": tiktokLink, "/accounts": "https://www.youtube.com/@someone"} {
		var tracked struct{ DirectURL string }
		require.NoError(t, json.Unmarshal(c.send(http.MethodPost, path, map[string]any{"link": link}).requireStatus(http.StatusOK).body, &tracked))
		page, ok := strings.CutPrefix(tracked.DirectURL, "https://app.example.test")
		require.True(t, ok, tracked.DirectURL)
		require.Contains(t, string(v.visit(page).requireStatus(http.StatusOK).body), "Waiting for first numbers")
	}
}

func TestDashboardPages_linksBeginWithThePathOfTheAppURL(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.AppURL = "http://example.test/tally/" })
	c := a.newCaller(t, store.TierPremium)
	v := &visitor{app: a, t: t}
	require.Equal(t, "/tally/login", v.visit("/").requireStatus(http.StatusSeeOther).Header.Get("Location"))
	require.Equal(t, "/tally/", v.post("/login", "token", c.token).requireStatus(http.StatusSeeOther).Header.Get("Location"))
	require.Equal(t, "/tally/", v.cookie.Path)
	require.False(t, v.cookie.Secure, "the cookie must not be secure, because browsers would not send a secure cookie to an http URL")
	page := v.visit("/settings").parsePage()
	for _, element := range []struct{ name, attribute string }{{"a", "href"}, {"link", "href"}, {"script", "src"}, {"form", "action"}} {
		for _, found := range findElements(page, element.name) {
			if to := attributeValue(found, element.attribute); to != "" && !strings.HasPrefix(to, "#") {
				require.True(t, strings.HasPrefix(to, "/tally/"), to)
			}
		}
	}
}

func TestSettingsPage_saysWhatTheCollectorsCanFetch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
		require.Contains(t, string(v.visit("/settings").requireStatus(http.StatusOK).body), "No collector is running")
		a.Guard.Statements()
		v.visit("/settings").requireStatus(http.StatusOK)
		for _, statement := range a.Guard.Statements() {
			require.NotContains(t, statement, "FROM collectors", "the second page must not read again from the database what the collectors can fetch")
		}
		a.Clock.Advance(10 * time.Second)
		_, err := a.Queue.Heartbeat(t.Context(), store.NewID(), time.Minute, nil, queue.Form{Platform: link.YouTube, Kind: queue.KindVideo},
			queue.Form{Platform: link.Instagram, Kind: queue.KindVideo, ByHandle: true})
		require.NoError(t, err)
		var rows [][]string // the texts of the cells of each row
		for _, row := range findElements(v.visit("/settings").parsePage(), "tr") {
			var cells []string
			for cell := range row.ChildNodes() {
				if text := strings.Join(strings.Fields(textOf(cell)), " "); text != "" {
					cells = append(cells, text)
				}
			}
			rows = append(rows, cells)
		}
		require.Contains(t, rows, []string{"YouTube", "fetched", "not fetched, because no source is configured"})
		require.Contains(t, rows, []string{"Instagram", "fetched, but only for links that contain the name of the account", "not fetched, because no source is configured"})
	})
}

func TestDashboard_programsThatMistakeAPathGetAnErrorOfTheAPI(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for method, path := range map[string]string{http.MethodGet: "/video", http.MethodHead: "/account", http.MethodPost: "/collection"} {
		got := c.send(method, path, nil).requireStatus(http.StatusNotFound)
		require.Equal(t, "application/problem+json", got.Header.Get("Content-Type"))
		if method != http.MethodHead {
			require.Contains(t, string(got.body), path+" is a page for browsers. The API has no such path; GET /openapi.yaml returns its paths.")
		}
	}
	v := c.newSignedInVisitor(t)
	v.headers = []string{"Authorization", "Bearer " + c.token}
	require.Contains(t, v.visit("/video").requireStatus(http.StatusOK).Header.Get("Content-Type"), "text/html", "a browser with a session gets the page")
}
