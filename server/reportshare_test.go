package server_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// shareReport changes who can open the share page of a report, and returns the path of the page.
func (c *caller) shareReport(collection, report uuid.UUID, changes map[string]any) string {
	c.t.Helper()
	c.send(http.MethodPatch, "/reports/"+report.String(), changes).requireStatus(http.StatusNoContent)
	listed := decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/reports", nil).requireStatus(http.StatusOK))
	for _, r := range listed.Data {
		if r.ID == report {
			require.NotNil(c.t, r.Hash)
			return "/r/" + *r.Hash
		}
	}
	require.Fail(c.t, "the list of reports lacks the report")
	return ""
}

// Requirements in docs/coverage.md: 11.5-05
func TestSharedReport_showsTheFrozenNumbersWithoutIDs(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		report := c.createReport(collection)
		document := c.send(http.MethodGet, "/reports/"+report.String(), nil).requireStatus(http.StatusOK)
		want := decode[client.Report](document)
		path := c.shareReport(collection, report, map[string]any{"access": "public"})
		visitor := &visitor{app: a, t: t}
		got := visitor.visit(path).requireStatus(http.StatusOK)
		require.Equal(t, "noindex, nofollow", got.Header.Get("X-Robots-Tag"))
		page := string(got.body)
		require.Contains(t, page, `property="og:url" content="https://app.example.test`+path+`"`)
		require.NotContains(t, page, `name="start"`, "visitors cannot choose the period of a report")
		require.Equal(t, digits(want.Statistics.Views), numbersIn(got.parsePage())[1])
		for _, v := range want.Videos {
			require.Contains(t, page, v.AdLink)
		}
		days := visitor.visit(path + "?csv=history").requireStatus(http.StatusOK)
		table := visitor.visit(path + "?csv=videos").requireStatus(http.StatusOK)
		require.Contains(t, string(table.body), "link,removed,uploaded_at,added_at,start_day")
		visitor.visit(path + "?csv=x").requireStatus(http.StatusBadRequest)
		visitor.visit(path + "?csv=accounts").requireStatus(http.StatusBadRequest)
		hidden := append([]string{"@northwind.studio<", want.Videos[0].AccountID.String(), c.org.ID.String(), "Northwind</", collection.String(), report.String(), want.CreatedBy.String()}, toStrings(videos)...)
		for _, response := range []response{got, days, table} {
			for _, text := range hidden {
				require.NotContains(t, string(response.body), text)
			}
		}
		ofCollection := c.shareCollection(collection, "public", nil)
		visitor.visit(ofCollection).requireStatus(http.StatusOK)
		visitor.visit("/r" + ofCollection[2:]).requireStatus(http.StatusNotFound)
		visitor.visit("/c" + path[2:]).requireStatus(http.StatusNotFound)
		require.Contains(t, visitor.visit(path+"?embed=1").requireStatus(http.StatusOK).Header.Get("Content-Security-Policy"), "frame-ancestors *")

		a.fetch(factsWithViews(9_000_000))
		c.send(http.MethodDelete, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK)
		require.Equal(t, numbersIn(got.parsePage()), numbersIn(visitor.visit(path).requireStatus(http.StatusOK).parsePage()), "the numbers must not change, even if the collection is deleted")
		require.Equal(t, document.body, c.send(http.MethodGet, "/reports/"+report.String(), nil).requireStatus(http.StatusOK).body, "sharing must not change the report")
		a.newCaller(t, store.TierPremium).send(http.MethodPatch, "/reports/"+report.String(), map[string]any{"access": "private"}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		visitor.visit(path).requireStatus(http.StatusOK)
	})
}

func TestSharedReport_privateExpiredAndUnknownPagesGetTheSameResponse(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		report := c.createReport(collection)
		path := c.shareReport(collection, report, map[string]any{"access": "public"})
		visitor := &visitor{app: a, t: t}
		const unknown = "/r/aaaaaaaaaaaaaa"
		requireUnknown := func() {
			t.Helper()
			a.server.Close() // waits until the last visit is stored
			a.Guard.Statements()
			private := visitor.visit(path).requireStatus(http.StatusNotFound)
			sent := len(a.Guard.Statements())
			missing := visitor.visit(unknown).requireStatus(http.StatusNotFound)
			require.Len(t, a.Guard.Statements(), sent, "both requests must run the same SQL statements")
			require.Equal(t, string(missing.body), string(private.body))
			require.Equal(t, withoutRequestID(missing.Header), withoutRequestID(private.Header))
			require.Equal(t, string(visitor.post(unknown, "password", "x").requireStatus(http.StatusNotFound).body), string(visitor.post(path, "password", "x").requireStatus(http.StatusNotFound).body))
		}
		c.shareReport(collection, report, map[string]any{"access": "private"})
		requireUnknown()
		require.Equal(t, path, c.shareReport(collection, report, map[string]any{"access": "public", "share_expires_at": a.Clock.Now().Add(time.Hour)}))
		visitor.visit(path).requireStatus(http.StatusOK)
		a.Clock.Advance(time.Hour)
		requireUnknown()
		c.shareReport(collection, report, map[string]any{"share_expires_at": nil})
		visitor.visit(path).requireStatus(http.StatusOK)
	})
}

func TestSharedReport_asksForItsPassword(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		report := c.createReport(collection)
		c.send(http.MethodPatch, "/reports/"+report.String(), map[string]any{"access": "protected"}).requireProblem(http.StatusConflict, server.CodePasswordRequired)
		path := c.shareReport(collection, report, map[string]any{"access": "protected", "password": sharePassword})
		visitor := &visitor{app: a, t: t}
		for _, suffix := range []string{"", "?csv=videos", "?embed=1"} {
			locked := visitor.visit(path + suffix).requireStatus(http.StatusOK)
			require.Empty(t, numbersIn(locked.parsePage()))
			require.NotContains(t, string(locked.body), "Report 1")
		}
		visitor.post(path, "password", "wrong password").requireStatus(http.StatusForbidden)
		require.Nil(t, visitor.cookie)
		require.Equal(t, path, visitor.post(path, "password", sharePassword).requireStatus(http.StatusSeeOther).Header.Get("Location"))
		require.Contains(t, string(visitor.visit(path).requireStatus(http.StatusOK).body), "Report 1")
		c.shareReport(collection, report, map[string]any{"password": "another password"})
		require.NotContains(t, string(visitor.visit(path).requireStatus(http.StatusOK).body), "Report 1", "a new password must end the earlier visits")
	})
}

func TestSharedReport_hasAPreviewForMessengers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		report := c.createReport(collection)
		path := c.shareReport(collection, report, map[string]any{"access": "public"})
		visitor := &visitor{app: a, t: t}
		meta := visitor.visit(path).requireStatus(http.StatusOK).metaContents()
		require.Equal(t, "Report 1: Spring", meta["og:title"])
		require.Contains(t, meta["og:description"], " · 3 videos · 999 gained views · 6,999 views at the end")
		require.Equal(t, meta["og:description"], meta["description"])
		require.Equal(t, "https://app.example.test"+path+"/card.png", meta["og:image"])
		require.Equal(t, []string{"1200", "630", "summary_large_image"}, []string{meta["og:image:width"], meta["og:image:height"], meta["twitter:card"]})
		card := visitor.visit(path + "/card.png").requireStatus(http.StatusOK)
		require.Equal(t, "image/png", card.Header.Get("Content-Type"))
		picture, err := png.Decode(bytes.NewReader(card.body))
		require.NoError(t, err)
		require.Equal(t, 1200, picture.Bounds().Dx())
		require.NotEqual(t, card.body, visitor.visit(c.shareCollection(collection, "public", nil)+"/card.png").requireStatus(http.StatusOK).body)

		a.fetch(factsWithViews(9_000_000))
		require.Equal(t, card.body, visitor.visit(path+"/card.png?start=2020-01-01&end=2020-01-02&days=7").requireStatus(http.StatusOK).body, "the picture must show the numbers of the report, not the current ones")
		require.Equal(t, meta, visitor.visit(path).metaContents())

		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(2 * time.Second)
		masked := visitor.visit(path).requireStatus(http.StatusOK).metaContents()
		require.NotContains(t, masked["og:description"], "views")
		require.NotEqual(t, card.body, visitor.visit(path+"/card.png").requireStatus(http.StatusOK).body, "the picture of a masked report must have no numbers")
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierPremium))
		a.Clock.Advance(2 * time.Second)
		require.Equal(t, card.body, visitor.visit(path+"/card.png").body)

		c.shareReport(collection, report, map[string]any{"access": "protected", "password": sharePassword})
		requireNothing := func() {
			t.Helper()
			require.Equal(t, string(visitor.visit("/r/aaaaaaaaaaaaaa/card.png").requireStatus(http.StatusNotFound).body), string(visitor.visit(path+"/card.png").requireStatus(http.StatusNotFound).body))
		}
		locked := visitor.visit(path).requireStatus(http.StatusOK)
		for name := range locked.metaContents() {
			require.NotContains(t, name, "og:", "messengers must not learn anything about a protected report")
			require.NotContains(t, name, "description")
		}
		require.NotContains(t, string(locked.body), "Spring")
		requireNothing()
		visitor.post(path, "password", sharePassword).requireStatus(http.StatusSeeOther)
		require.NotContains(t, visitor.visit(path).requireStatus(http.StatusOK).metaContents(), "og:image")
		requireNothing()
		c.shareReport(collection, report, map[string]any{"access": "private"})
		requireNothing()
		c.shareReport(collection, report, map[string]any{"access": "public", "share_expires_at": a.Clock.Now().Add(time.Hour)})
		visitor.visit(path + "/card.png").requireStatus(http.StatusOK)
		a.Clock.Advance(time.Hour)
		requireNothing()
	})
}

func TestSharedReport_hidesNumbersIfTheTierOfTheOrganisationIsLow(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	report := c.createReport(collection)
	path := c.shareReport(collection, report, map[string]any{"access": "public"})
	links := decode[client.Report](c.send(http.MethodGet, "/reports/"+report.String(), nil).requireStatus(http.StatusOK)).Videos
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(2 * time.Second)
	got := (&visitor{app: a, t: t}).visit(path).requireStatus(http.StatusOK)
	require.Contains(t, string(got.body), "The numbers of this page are hidden")
	require.NotContains(t, string(got.body), links[0].AdLink)
	require.Empty(t, strings.Join(numbersIn(got.parsePage()), ""), "a masked page must have no number")
}

func TestReportPage_publishesTheReportOnASharePage(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	report := c.createReport(collection)
	page, signedIn := "/collection/report/"+report.String(), c.newSignedInVisitor(t)
	require.Contains(t, string(signedIn.visit(page).requireStatus(http.StatusOK).body), "The report is private")
	refused := signedIn.post(page, "access", "protected", "last_day", "2030-01-01").requireStatus(http.StatusConflict)
	require.Contains(t, string(refused.body), "no password is set")
	require.Contains(t, string(refused.body), `value="2030-01-01"`)
	signedIn.post(page, "access", "public", "last_day", "2030-01-01").requireStatus(http.StatusSeeOther)
	path := c.shareReport(collection, report, map[string]any{})
	shown := string(signedIn.visit(page).requireStatus(http.StatusOK).body)
	require.Contains(t, shown, "https://app.example.test"+path)
	require.Contains(t, shown, "Not opened yet")
	(&visitor{app: a, t: t}).visit(path).requireStatus(http.StatusOK)
	a.server.Close() // Close waits for the background write that stores the time of the visit
	require.NotContains(t, string(signedIn.visit(page).requireStatus(http.StatusOK).body), "Not opened yet")
	require.Contains(t, string(signedIn.visit("/collection/"+collection.String()).requireStatus(http.StatusOK).body), `report/`+report.String()+`#share">public`)
}

// addSharedReport creates a report of 60 videos with captions and accounts. The share page of the report is public. page is the path of the page for
// members, and path is the path of the share page.
func (c *caller) addSharedReport() (page, path string, report client.Report) {
	c.t.Helper()
	collection := c.createNamedCollection("Launch")
	c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": videoURLs(1, 58), "label_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
	c.addVideos(collection, c.track("https://www.instagram.com/reel/C0000000004/"), c.track("https://www.youtube.com/shorts/v3AAAAAAAAA"))
	for day := range int64(2) {
		c.app.fetch(func(target queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(1000 + 100*day), Title: new("Caption of " + target.ExternalID), Username: new("maker." + string(target.Platform)), UploadedAt: new(c.app.Clock.Now())}
		})
		c.app.Clock.Advance(24 * time.Hour)
	}
	id := c.createReport(collection)
	path = c.shareReport(collection, id, map[string]any{"access": "public"})
	return "/collection/report/" + id.String(), path, decode[client.Report](c.send(http.MethodGet, "/reports/"+id.String(), nil).requireStatus(http.StatusOK))
}

func TestSharedReport_showsTheCaptionsAndAccountsThatTheMemberChose(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		page, path, report := c.addSharedReport()
		member, visitor := c.newSignedInVisitor(t), &visitor{app: a, t: t}
		const caption, account = "Caption of C0000000004", "@maker.instagram"
		for _, chosen := range []struct{ captions, accounts string }{{"", ""}, {"true", ""}, {"", "true"}, {"true", "true"}} {
			member.post(page, "access", "public", "title", "Our launch", "description", "For <the> brand", "show_history", "true", "show_captions", chosen.captions, "show_accounts", chosen.accounts).requireStatus(http.StatusSeeOther)
			settings := textOf(member.visit(page).requireStatus(http.StatusOK).parsePage())
			require.Equal(t, chosen.captions == "", strings.Contains(settings, "They see no captions"), "%s", settings)
			require.Equal(t, chosen.accounts == "", strings.Contains(settings, "no accounts"))
			shown := visitor.visit(path + "?page=2").requireStatus(http.StatusOK)
			text := textOf(shown.parsePage()) + textOf(visitor.visit(path).requireStatus(http.StatusOK).parsePage())
			require.Contains(t, text, "Our launch")
			require.Contains(t, text, "For <the> brand")
			require.Contains(t, text, "Instagram")
			require.Equal(t, chosen.captions != "", strings.Contains(text, caption))
			require.Equal(t, chosen.accounts != "", strings.Contains(text, account))
			table := string(visitor.visit(path + "?csv=videos").requireStatus(http.StatusOK).body)
			require.Equal(t, 61, strings.Count(table, "\n"), "the file must have the videos of all pages")
			require.Equal(t, chosen.captions != "", strings.Contains(table, caption))
			require.Equal(t, chosen.accounts != "", strings.Contains(table, strings.TrimPrefix(account, "@")))
			bodies := string(shown.body) + table
			if chosen.accounts == "" {
				visitor.visit(path + "?csv=accounts").requireStatus(http.StatusBadRequest)
			} else {
				accounts := string(visitor.visit(path + "?csv=accounts&rate=2").requireStatus(http.StatusOK).body)
				require.True(t, strings.HasPrefix(accounts, "report,period_start,period_end,username,platform,videos,"), accounts)
				require.NotContains(t, accounts, "amount")
				bodies += accounts
			}
			for _, v := range report.Videos {
				require.NotContains(t, bodies, v.AdID.String())
				require.NotContains(t, bodies, v.AccountID.String())
			}
		}
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(2 * time.Second)
		masked := visitor.visit(path).requireStatus(http.StatusOK)
		require.NotContains(t, string(masked.body), caption)
		require.NotContains(t, string(masked.body), account)
		require.Empty(t, strings.Join(numbersIn(masked.parsePage()), ""), "a masked page must have no number")
	})
}

func TestReports_havePagesOfVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	page, shared, report := c.addSharedReport()
	for path, v := range map[string]*visitor{page: c.newSignedInVisitor(t), shared: {app: a, t: t}} {
		seen := map[string]bool{}
		for query, rows := range map[string]int{"": 50, "?page=2": 10} {
			shown := string(v.visit(path + query).requireStatus(http.StatusOK).body)
			before := len(seen)
			for _, v := range report.Videos {
				if strings.Contains(shown, `"`+v.AdLink+`"`) || strings.Contains(shown, "?q="+url.QueryEscape(v.AdLink)+`"`) {
					require.False(t, seen[v.AdLink], "a video must be on one page only")
					seen[v.AdLink] = true
				}
			}
			require.Len(t, seen, before+rows, path+query)
		}
		require.Len(t, seen, len(report.Videos))
		for _, n := range []string{"3", "9223372036854775807"} {
			require.Equal(t, path+"?page=2", v.visit(path+"?page="+n).requireStatus(http.StatusSeeOther).Header.Get("Location"))
		}
		v.visit(path + "?page=0").requireStatus(http.StatusBadRequest)
		require.Contains(t, string(v.visit(path).body), "CSV of 60 videos")
	}
	(&visitor{app: a, t: t}).visit(shared + "/card.png?page=0").requireStatus(http.StatusOK)
}

func TestSharedReport_withoutChartShowsNoDays(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	path := c.shareReport(collection, c.createReport(collection), map[string]any{"access": "public", "display_settings": map[string]any{"show_history": false}})
	visitor := &visitor{app: a, t: t}
	shown := visitor.visit(path).requireStatus(http.StatusOK)
	page := string(shown.body)
	require.NotContains(t, page, `class="chart"`)
	require.NotContains(t, page, `class="spark"`, "the small lines of the tiles would show the days")
	require.NotContains(t, page, "?metric=", "the tiles must have no links to the chart")
	require.Contains(t, textOf(shown.parsePage()), "999")
	visitor.visit(path + "?csv=history").requireStatus(http.StatusBadRequest)
	visitor.visit(path + "?csv=x").requireStatus(http.StatusBadRequest)
	visitor.visit(path + "?csv=videos").requireStatus(http.StatusOK)
}

func TestUpdateReport_storesTheDisplaySettingsAsTheyWereSent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		report := c.createReport(collection)
		path := "/reports/" + report.String()
		stored := func() string {
			return string(decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/reports", nil).requireStatus(http.StatusOK)).Data[0].DisplaySettings)
		}
		require.Equal(t, "null", stored())
		const settings = `{"show_captions":true,"campaign":{"id":9007199254740993,"ratio":1.50},"metrics":["likes"]}`
		c.send(http.MethodPatch, path, json.RawMessage(`{"access":"public","display_settings":`+settings+`}`)).requireStatus(http.StatusNoContent)
		require.Equal(t, []string{settings}, []string{stored()}, "the settings must be stored byte for byte")
		for body, fault := range map[string]string{
			`{"display_settings":{"show_captions":"yes"}}`:                     "/display_settings/show_captions type",
			`{"display_settings":{"x":"` + strings.Repeat("a", 16<<10) + `"}}`: "/display_settings max_length",
		} {
			p := c.send(http.MethodPatch, path, json.RawMessage(body)).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Equal(t, fault, *p.Errors[0].Pointer+" "+p.Errors[0].Code)
		}

		// The form on the page of the report changes no members of display_settings for which it has no field.
		page := c.newSignedInVisitor(t)
		page.post("/collection/report/"+report.String(), "access", "public", "show_accounts", "true", "theme", "dark").requireStatus(http.StatusSeeOther)
		var changed map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(stored()), &changed))
		require.Equal(t, map[string]json.RawMessage{"campaign": json.RawMessage(`{"id":9007199254740993,"ratio":1.50}`), "metrics": json.RawMessage(`["likes"]`), "theme": json.RawMessage(`"dark"`),
			"show_history": json.RawMessage("false"), "show_captions": json.RawMessage("false"), "show_accounts": json.RawMessage("true")}, changed)
		refused := page.post("/collection/report/"+report.String(), "access", "protected", "title", "Our launch", "show_captions", "true").requireStatus(http.StatusConflict)
		require.Contains(t, string(refused.body), `name="show_captions" value="true" checked>`)
		require.Equal(t, "Our launch", fieldValue(refused.parseHTML(), "title"))

		c.send(http.MethodPatch, path, json.RawMessage(`{"display_settings":null}`)).requireStatus(http.StatusNoContent)
		require.Equal(t, "null", stored())
	})
}
