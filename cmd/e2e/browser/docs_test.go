package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store/storetest"
)

// listVideos is a CSS selector. It selects the section about the operation listVideos on the page /docs.
const listVideos = "#operations-videos-listVideos "

// enterToken enters an API token in the authorisation dialog of the page /docs.
func (b *tab) enterToken(token string) {
	b.t.Helper()
	b.runSteps(chromedp.Click(".auth-wrapper .authorize"),
		chromedp.SendKeys(".modal-ux input", token),
		chromedp.Click(".modal-ux button.authorize"),
		chromedp.Click(".modal-ux .btn-done"))
}

// executeOperation opens the section that operationSelector selects on the page /docs, sends the
// request of the operation, and waits for the response.
func (b *tab) executeOperation(operationSelector string) {
	b.t.Helper()
	b.runSteps(chromedp.Click(operationSelector+".opblock-summary-control"),
		chromedp.Click(operationSelector+".try-out__btn"),
		// The parameters keep their default values.
		chromedp.Click(operationSelector+".execute"),
		chromedp.WaitVisible(operationSelector+".live-responses-table .response"))
}

func TestDocs_pageSendsRequestsAndShowsResponses(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	const link = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"
	i := startInstallation(t)
	id := i.trackVideo(t, link)
	b := openBrowser(t)

	b.runSteps(preferColours("light"),
		chromedp.Navigate(i.url+"/docs"),
		chromedp.WaitVisible(listVideos))
	var at, note, shown, sandbox string
	b.runSteps(chromedp.Location(&at),
		chromedp.Text("aside", &note),
		chromedp.Text(".servers select", &shown),
		chromedp.Text("#sandbox", &sandbox))
	require.Equal(t, i.url+"/docs/", at)
	require.Contains(t, note, "Settings")
	require.Empty(t, sandbox)
	const rules = ".info details"
	var closed, opened string
	b.runSteps(chromedp.Text(rules, &closed), chromedp.Click(rules+" summary"), chromedp.Text(rules, &opened), chromedp.Click(rules+" summary"))
	require.NotContains(t, closed, "Rate limits.")
	require.Contains(t, opened, "Rate limits.")
	require.Contains(t, opened, "Versions.", "the section of rules must have the whole description of the API")
	require.Contains(t, shown, i.url, "the page must send its requests to the server that served the page")
	b.saveScreenshot("docs-light")
	var tables int
	b.runSteps(chromedp.Click(listVideos+".opblock-summary-control"), chromedp.WaitVisible(listVideos+".headers-wrapper", chromedp.ByQuery),
		chromedp.Evaluate(`[...document.querySelectorAll("`+listVideos+`.headers-wrapper")].filter(e => e.offsetParent !== null).length`, &tables),
		chromedp.Click(listVideos+".opblock-summary-control"), chromedp.WaitNotPresent(listVideos+".opblock-body"))
	require.Equal(t, 1, tables, "the page must show the headers of responses only once")

	b.enterToken(i.token)
	b.executeOperation(listVideos)
	var samples string
	b.runSteps(chromedp.Text(listVideos+".opblock-description", &samples), chromedp.ScrollIntoView(listVideos+".opblock-description"))
	require.Contains(t, samples, `curl -sS "$REELTALLY_URL/videos?order_by=latest_views&limit=10"`)
	require.Contains(t, samples, `os.environ["REELTALLY_URL"] + "/videos?order_by=latest_views&limit=10"`)
	require.Contains(t, samples, `await fetch(process.env.REELTALLY_URL + "/videos?order_by=latest_views&limit=10"`)
	b.saveScreenshot("docs-samples")
	var requested, status, response string
	b.runSteps(chromedp.Text(listVideos+".request-url", &requested),
		chromedp.Text(listVideos+".live-responses-table .response .response-col_status", &status),
		chromedp.Text(listVideos+".live-responses-table .response .highlight-code", &response),
		chromedp.ScrollIntoView(listVideos+".live-responses-table"))
	require.Contains(t, status, "200")
	require.Contains(t, requested, i.url+"/videos", "the page must not send empty parameters")
	require.NotContains(t, requested, "?")
	require.Contains(t, response, `"ad_id": "`+id+`"`)
	require.Contains(t, response, `"ad_link": "`+link+`"`)
	b.saveScreenshot("docs-answer")

	var stored int
	b.runSteps(chromedp.Evaluate("localStorage.length + sessionStorage.length + document.cookie.length", &stored))
	require.Zero(t, stored, "the page must not store the token in the browser")
	b.requireNoPageErrors(i.url)
}

func TestDocs_pageWorksBehindProxyWithPathPrefix(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	i := startInstallation(t)
	target, err := url.Parse(i.url)
	require.NoError(t, err)
	proxy := httptest.NewServer(http.StripPrefix("/reeltally", httputil.NewSingleHostReverseProxy(target)))
	t.Cleanup(proxy.Close)

	b := openBrowser(t)
	b.runSteps(chromedp.Navigate(proxy.URL+"/reeltally/docs"), chromedp.WaitVisible(listVideos))
	b.enterToken(i.token)
	b.executeOperation(listVideos)
	var requested, status string
	b.runSteps(chromedp.Text(listVideos+".request-url", &requested),
		chromedp.Text(listVideos+".live-responses-table .response .response-col_status", &status))
	require.Contains(t, requested, proxy.URL+"/reeltally/videos")
	require.Contains(t, status, "200")
	b.requireNoPageErrors(proxy.URL)
}

func TestDocs_pageSaysThatSandboxNumbersAreMadeUp(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	i := startInstallation(t, func(o *server.Options) { o.Sandbox = true })
	b := openBrowser(t)
	var sandbox string
	b.runSteps(chromedp.Navigate(i.url+"/docs/"),
		chromedp.WaitVisible(listVideos),
		chromedp.Text("#sandbox", &sandbox))
	require.Contains(t, sandbox, "made up")
	b.requireNoPageErrors(i.url)
}

func TestDocs_pageUsesColourSchemeOfSystem(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	i := startInstallation(t)
	b := openBrowser(t)
	const background = `getComputedStyle(document.documentElement).backgroundColor`
	var dark, light string
	b.runSteps(preferColours("dark"),
		chromedp.Navigate(i.url+"/docs/"),
		chromedp.WaitVisible(listVideos),
		chromedp.Evaluate(background, &dark))
	b.saveScreenshot("docs-dark")
	b.runSteps(preferColours("light"),
		chromedp.WaitReady("html:not(.dark-mode)"),
		chromedp.Evaluate(background, &light))
	require.NotEqual(t, dark, light)
	b.requireNoPageErrors(i.url)
}

func TestGuides_fitIntoNarrowWindowsAndAreAccessible(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	i := startInstallation(t)
	b := openBrowser(t)
	for _, width := range []int64{360, 1440} {
		for _, name := range []string{"quickstart", "dashboard", "clients", "mcp"} {
			b.runSteps(chromedp.EmulateViewport(width, 900), chromedp.Navigate(i.url+"/docs/guides/"+name), chromedp.WaitVisible("article h1"))
			var overflow int64
			b.runSteps(chromedp.Evaluate("document.documentElement.scrollWidth - innerWidth", &overflow))
			require.LessOrEqual(t, overflow, int64(0), "the page %s must not be wider than %d pixels", name, width)
			b.requireAccessible(name)
		}
	}
}
