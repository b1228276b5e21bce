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
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// pageRow is a row of an HTML table on a page of the dashboard.
type pageRow struct {
	link   string   // address of the first link in the row; "" if the row has no link
	day    string   // attribute data-day of a row of a chart
	values []string // the numbers in the cells of the row, in order; "" if a number is unknown
	text   string
}

// findElements returns all HTML elements with the given name below a node, in the order of the document.
func findElements(n *html.Node, name string) []*html.Node {
	var out []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			out = append(out, d)
		}
	}
	return out
}

// attributeValue returns the value of an attribute of an element, or "".
func attributeValue(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns all text below an HTML node.
func textOf(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data)
		}
	}
	return out.String()
}

// numbersIn returns the numbers below an HTML node, in order. Pages show each number in a "data" element. The attribute "value" of this
// element contains the number.
func numbersIn(n *html.Node) []string {
	var out []string
	for _, d := range findElements(n, "data") {
		out = append(out, attributeValue(d, "value"))
	}
	return out
}

// parsePage requires status 200 and returns the parsed HTML of the response.
func (a response) parsePage() *html.Node {
	a.t.Helper()
	a.requireStatus(http.StatusOK)
	doc, err := html.Parse(bytes.NewReader(a.body))
	require.NoError(a.t, err)
	return doc
}

// rows returns the rows of all tables of a page.
func (a response) rows() []pageRow {
	a.t.Helper()
	var out []pageRow
	for _, tr := range findElements(a.parsePage(), "tr") {
		row := pageRow{day: attributeValue(tr, "data-day"), values: numbersIn(tr), text: textOf(tr)}
		if links := findElements(tr, "a"); len(links) > 0 {
			row.link = attributeValue(links[0], "href")
		}
		out = append(out, row)
	}
	return out
}

// findRow returns the row with a link to path. It fails the test if there is no such row.
func findRow(t *testing.T, rows []pageRow, path string) pageRow {
	t.Helper()
	for _, r := range rows {
		if r.link == path {
			return r
		}
	}
	require.Fail(t, "the page must have a row with a link to "+path)
	return pageRow{}
}

// digits returns a number as it is written in the attribute "value" of a "data" element. The result is "" if the number is unknown.
func digits(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// createDashboardData tracks three videos in a collection and fetches them on each of four days.
// The likes and comments of the third video are unknown.
func createDashboardData(a *app, c *caller) (collection uuid.UUID, videos []uuid.UUID) {
	collection = decode[client.CreatedCollection](c.send(http.MethodPost, "/collections", map[string]any{"name": "Spring"}).requireStatus(http.StatusCreated)).ID
	links := []string{videoURL(1), videoURL(2), videoURL(3)}
	result := decode[client.TrackVideosResult](c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": links, "label_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK))
	for _, entry := range result.Results {
		videos = append(videos, *entry.VideoID)
	}
	for day := range int64(4) {
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			n := int64(target.ExternalID[len(target.ExternalID)-1] - '0')
			f := ingest.VideoFacts{Views: new(1000*n + 111*day), Likes: new(10*n + day), Comments: new(int64(0)), Username: new("northwind.studio"), AccountID: new("7")}
			if n == 3 {
				f.Likes, f.Comments = nil, nil
			}
			return f
		})
		a.Clock.Advance(24 * time.Hour)
	}
	a.Clock.Advance(24 * time.Hour) // the videos are not fetched on the last two days, so these days have no history points
	return collection, videos
}

func TestDashboardPages_showTheNumbersThatTheAPIReturns(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		v := c.newSignedInVisitor(t)

		for _, path := range []string{"/video?order_by=latest_views", "/collection/" + collection.String()} {
			rows := v.visit(path).rows()
			for _, video := range c.listVideos("limit=10").Data {
				row := findRow(t, rows, "/video/"+string(video.Platform)+"/"+video.AdID.String())
				if strings.HasPrefix(path, "/video") {
					require.Equal(t, []string{digits(video.LatestViews), digits(video.LatestLikes), digits(video.LatestComments)}, row.values, "%s", row.text)
				}
			}
		}
		for _, id := range videos {
			page := v.visit("/video/tiktok/" + id.String())
			video := decode[client.Video](c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK))
			tiles := numbersIn(page.parsePage())
			require.Equal(t, []string{digits(video.LatestViews), digits(video.LatestLikes), digits(video.LatestComments), digits(video.LatestShares), digits(video.LatestBookmarks)}, tiles[:5])

			history := decode[client.VideoHistory](c.send(http.MethodGet, "/videos/"+id.String()+"/history?include=quality", nil).requireStatus(http.StatusOK))
			require.Len(t, history, 4)
			require.Contains(t, string(page.body), "Of the 30 days in the period, 4 were measured, 26 were without a number.")
			var days []pageRow
			for _, row := range page.rows() {
				if row.day != "" {
					days = append(days, row)
				}
			}
			require.Len(t, days, len(history), "a day without a point must have no row")
			for n, point := range history {
				require.Equal(t, point.Date.String(), days[n].day)
				for m, count := range []*int64{point.Views, point.Likes, point.Comments, point.Shares, point.Bookmarks} {
					require.Equal(t, digits(count), days[n].values[2*m], "%s", days[n].text)
				}
				gain := ""
				if n+1 < len(history) {
					gain = digits(new(*point.Views - *history[n+1].Views))
				}
				require.Equal(t, gain, days[n].values[1])
				require.Contains(t, days[n].text, string(*point.Quality))
			}
		}

		statistics := decode[client.CollectionStatistics](c.send(http.MethodGet, "/collections/"+collection.String()+"/statistics", nil).requireStatus(http.StatusOK))
		// The page shows the last 30 days. The default period of the API has one more day at its beginning. On
		// that day the collection was empty, so the numbers are equal.
		shown := numbersIn(v.visit("/collection/" + collection.String()).parsePage())
		require.Equal(t, []string{digits(statistics.ViewsGained), digits(statistics.Views), digits(statistics.Engagements), digits(statistics.Videos)}, shown[:4])
		require.NotEqual(t, "0", shown[0])

		organisation := decode[client.OrganisationHistory](c.send(http.MethodGet, "/organisation/history", nil).requireStatus(http.StatusOK))
		overview := numbersIn(v.visit("/").parsePage())
		require.Equal(t, []string{digits(organisation[0].Views), digits(organisation[0].Engagements)}, overview[:2])

		account := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK)).LinkedAccountID
		record := decode[client.Account](c.send(http.MethodGet, "/accounts/"+account.String(), nil).requireStatus(http.StatusOK))
		onPage := numbersIn(v.visit("/account/tiktok/" + account.String()).parsePage())
		require.Equal(t, []string{digits(record.LatestFollowersCount), digits(record.TotalViews), digits(record.TotalLikes), digits(record.TotalComments), digits(record.TotalVideosTracked)}, onPage[:5])
	})
}

func TestDashboardPages_treatIDsOfOtherOrganisationsLikeUnknownIDs(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		theirs, mine := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, theirs)
		video := decode[client.Video](theirs.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK))
		report := decode[client.ReportSummary](theirs.send(http.MethodPost, "/collections/"+collection.String()+"/reports", map[string]any{}).requireStatus(http.StatusCreated))
		token, _, err := a.CreateToken(t.Context(), theirs.org.ID, "theirs", []store.Scope{store.ScopeRead}, 0)
		require.NoError(t, err)
		hook := theirs.createWebhook("https://hooks.example.com/theirs").ID
		v := mine.newSignedInVisitor(t)
		for _, page := range []struct {
			before, after string
			id            uuid.UUID
			post          []string // form fields of a POST request to the page; nil for a GET request
		}{
			{"/video/tiktok/", "", videos[0], nil}, {"/account/tiktok/", "", *video.LinkedAccountID, nil}, {"/collection/", "", collection, nil},
			{"/collection/report/", "", report.ID, nil}, {"/collection/report/", "", report.ID, []string{"access", "public"}}, {"/video/tiktok/", "/stop", videos[0], []string{}}, {"/video/tiktok/", "/refresh", videos[0], []string{}},
			{"/video/tiktok/", "/track", videos[0], []string{}}, {"/video/tiktok/", "/collect", videos[0], []string{"collection", collection.String()}},
			{"/account/tiktok/", "/stop", *video.LinkedAccountID, []string{}}, {"/account/tiktok/", "/refresh", *video.LinkedAccountID, []string{}},
			{"/collection/", "/delete", collection, []string{}}, {"/collection/", "/freeze", collection, []string{}},
			{"/collection/", "/remove", collection, []string{"account", video.LinkedAccountID.String()}}, {"/collection/", "/edit", collection, []string{"name", "Mine"}}, {"/settings/token/", "/revoke", token.ID, []string{}},
			{"/settings/webhook/", "/delete", hook, []string{}}, {"/settings/webhook/", "/test", hook, []string{}}, {"/settings/webhook/", "/disable", hook, []string{}},
		} {
			// ask returns the body of the response, with "ID" in place of id.
			ask := func(id uuid.UUID) string {
				var got response
				if page.post == nil {
					got = v.visit(page.before + id.String() + page.after)
				} else {
					got = v.post(page.before+id.String()+page.after, page.post...)
				}
				require.Equal(t, http.StatusNotFound, got.StatusCode, page.before+page.after)
				return strings.ReplaceAll(string(got.body), id.String(), "ID")
			}
			require.Equal(t, ask(uuid.New()), ask(page.id), page.before+page.after)
		}
		require.NotContains(t, string(v.visit("/settings").body), token.ID.String())
		require.NotContains(t, string(v.visit("/settings?webhook="+hook.String()).body), hook.String())
		require.NotContains(t, string(v.visit("/video").body), videos[0].String())
		progress := v.post("/track/progress", "total", "1", "rounds", "0", "waiting", "video:"+videos[0].String())
		require.NotContains(t, string(progress.body), "views")
		require.False(t, decode[client.Video](theirs.send(http.MethodGet, "/videos/"+videos[0].String(), nil)).Removed)
	})
}

// hiddenCount matches the view counts that createDashboardData stores, such as 1,333 or 1.33k. An id can contain the same digits, so the count must
// have no letter, digit or hyphen beside it.
var hiddenCount = regexp.MustCompile(`(^|[^\w-])([123],?333|1\.33k?)($|[^\w-])`)

func TestDashboardPages_explainToTheBasicTierWhyNumbersAreHidden(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(time.Second)
		v := c.newSignedInVisitor(t)
		for _, path := range []string{"/", "/?days=7", "/video", "/video/tiktok/" + videos[0].String(), "/account?include_linked=true", "/collection/" + collection.String(), "/settings", "/track"} {
			page := v.visit(path)
			require.Contains(t, string(page.body), "Your organisation's tier, <strong>basic</strong>, hides numbers, and lists show only their first entry. The numbers that are collected can be seen in the tier premium.", path)
			for _, number := range numbersIn(page.parsePage()) {
				if path == "/settings" || path == "/" || path == "/?days=7" {
					continue // these pages also show numbers that no tier hides, for example rate limits
				}
				require.Empty(t, number, path)
			}
			require.NotRegexp(t, hiddenCount, string(page.body), path)
		}
		refused := v.visit("/?days=365").requireStatus(http.StatusBadRequest)
		require.Contains(t, string(refused.body), "must be 7, 30 or 90")
	})
}

func TestDashboardPages_visitsDoNotCountAgainstTheRateLimitOfPrograms(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = server.NewMemoryRateStore() })
	c := a.newCaller(t, store.TierLimited)
	v := c.newSignedInVisitor(t)
	for range 8 {
		v.visit("/video").requireStatus(http.StatusOK) // the 8 visits succeed, although the tier allows programs only 5 requests a minute
	}
	c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
	for range 5 {
		v.post("/track", "links", tiktokLink).requireStatus(http.StatusOK)
	}
	require.Contains(t, string(v.post("/track", "links", tiktokLink).requireStatus(http.StatusTooManyRequests).body), "Your organisation can do this at most 5 times a minute, on pages and in programs together.")
	c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": []string{tiktokLink}}).requireStatus(http.StatusTooManyRequests)
}

func TestDashboardPages_refuseChangesIfTheTokenLacksTheScope(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.track(tiktokLink)
	v := a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t)
	v.visit("/video").requireStatus(http.StatusOK)
	for path, fields := range map[string][]string{
		"/video/tiktok/" + id.String() + "/stop": nil, "/collection": {"name", "x"},
		"/settings/token": {"name", "more", "days", "30", "scopes", "read,write"}, "/settings/token/" + uuid.NewString() + "/revoke": nil,
	} {
		require.Contains(t, string(v.post(path, fields...).requireStatus(http.StatusForbidden).body), "Scope missing", path)
	}
}

func TestSettingsPage_managesWebhooks(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		v := c.newSignedInVisitor(t)
		refused := string(v.post("/settings/webhook", "url", r.URL+"/?a=<b>", "type", "video.removed", "type", "video.views.fell").requireStatus(http.StatusBadRequest).body)
		require.Contains(t, refused, `role="alert"`)
		for _, chosen := range []string{"video.removed", "video.views.fell"} {
			require.Contains(t, refused, `value="`+chosen+`" checked`, "a refused form must keep its choice")
		}
		require.NotContains(t, refused, "<b>")
		page := v.post("/settings/webhook", "url", r.URL+"/?a=b&c='d'", "type", "video.removed", "type", "video.views.fell")
		secret := strings.TrimSpace(textOf(findElements(page.parsePage(), "code")[0]))
		require.Regexp(t, `^whsec_`, secret)
		require.NotContains(t, string(v.visit("/settings").requireStatus(http.StatusOK).body), secret, "the secret must be shown only once")
		hook := decode[client.WebhookList](c.send(http.MethodGet, "/webhooks", nil).requireStatus(http.StatusOK)).Data[0]
		require.Equal(t, []client.EventType{"video.removed", "video.views.fell"}, hook.EventTypes)
		require.Contains(t, string(v.post("/settings/webhook", "url", "ftp://x").requireStatus(http.StatusBadRequest).body), `role="alert"`)

		path := "/settings/webhook/" + hook.ID.String()
		shown := v.post(path + "/test").requireStatus(http.StatusSeeOther).Header.Get("Location")
		a.sendDueEvents(t)
		r.takeRequests()[0].requireValidSignature(t, secret)
		require.Contains(t, textOf(v.visit(shown).requireStatus(http.StatusOK).parsePage()), "status 200")
		r.answerWithStatus(http.StatusServiceUnavailable)
		v.post(path + "/test").requireStatus(http.StatusSeeOther)
		a.sendDueEvents(t)
		failing := textOf(v.visit("/settings").requireStatus(http.StatusOK).parsePage())
		for _, text := range []string{"failing since", "The response has status 503.", "“Next attempt” says when each event is sent again.", "Send again"} {
			require.Contains(t, failing, text, "the page must show the deliveries of a failing webhook without a click")
		}
		r.answerWithStatus(http.StatusOK)
		v.post(path + "/disable").requireStatus(http.StatusSeeOther)
		require.Contains(t, textOf(v.visit("/settings").parsePage()), "disabled on request")
		v.post(path + "/test").requireStatus(http.StatusConflict)
		v.post(path + "/enable").requireStatus(http.StatusSeeOther)
		v.post(path + "/other").requireStatus(http.StatusNotFound)
		v.post(path + "/delete").requireStatus(http.StatusSeeOther)
		require.Empty(t, decode[client.WebhookList](c.send(http.MethodGet, "/webhooks", nil).requireStatus(http.StatusOK)).Data)
	})
}

func TestSettingsPage_createsAndRevokesTokens(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		v := c.newSignedInVisitor(t)
		page := v.post("/settings/token", "name", "Report <b>script</b>", "days", "30", "scopes", "read")
		require.Contains(t, string(page.body), "Report &lt;b&gt;script&lt;/b&gt;")
		secret := strings.TrimSpace(textOf(findElements(page.parsePage(), "code")[0]))
		require.True(t, store.WellFormedToken(secret))
		id, err := a.Authenticate(t.Context(), secret)
		require.NoError(t, err)
		require.Equal(t, c.org.ID, id.Organisation.ID)
		require.Equal(t, []store.Scope{store.ScopeRead}, id.Token.Scopes)
		require.Equal(t, store.InstantOf(a.Clock.Now().Add(30*24*time.Hour)), *id.Token.ExpiresAt)
		require.NotContains(t, string(v.visit("/settings").requireStatus(http.StatusOK).body), secret, "the secret must be shown only once")

		for _, wrong := range [][]string{{"name", "", "days", "30", "scopes", "read"}, {"name", "x", "days", "0", "scopes", "read"}, {"name", "x", "days", "soon", "scopes", "read"},
			{"name", "x", "days", "30", "scopes", "owner"}, {"name", "x", "days", "30", "scopes", ""}} {
			require.Contains(t, string(v.post("/settings/token", wrong...).requireStatus(http.StatusBadRequest).body), `role="alert"`)
		}
		require.Equal(t, "/settings?notice=token-revoked", v.post("/settings/token/"+id.Token.ID.String()+"/revoke").requireStatus(http.StatusSeeOther).Header.Get("Location"))
		_, err = a.Authenticate(t.Context(), secret)
		require.ErrorIs(t, err, store.ErrTokenRevoked)
		require.Contains(t, string(v.visit("/settings?notice=token-revoked").body), "The token was revoked.")
	})
}

func TestVideoPage_linksOfTheChartDropARefusedLengthOfThePeriod(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c, video := newCallerWithVideoHistory(t, a, store.TierPremium, 3)
	v := c.newSignedInVisitor(t)
	body := string(v.visit("/video/tiktok/" + video + "?days=8").body)
	require.Contains(t, body, "view=gain")
	require.NotContains(t, body, "days=8")
}
