package browser

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/storetest"
)

// trackOnPage tracks one video with the page Track. It returns as soon as the page shows that the video has no numbers yet.
func (b *tab) trackOnPage(d dashboard, link string) {
	b.t.Helper()
	b.runSteps(chromedp.Navigate(d.url+"/track"), chromedp.SetValue("#links", link), chromedp.Click(`form[action="/track"] .primary`), chromedp.WaitVisible("#progress .notice"))
}

func TestTrackPage_asksForProgressAgainAfterAnError(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	clips := storetest.VideoLinksFrom(t, 50, 1)
	b.trackOnPage(d, clips[0].Canonical)
	b.runSteps(network.Enable(), network.EmulateNetworkConditions(true, 0, -1, -1), chromedp.Sleep(7*time.Second), network.EmulateNetworkConditions(false, 0, -1, -1))
	d.storeAnswers(t, clips, []ingest.VideoFacts{{Views: new(int64(4321))}})
	b.runSteps(chromedp.WaitVisible(`//div[@id="progress"]//span[contains(., "The link has been fetched.")]`, chromedp.BySearch))
}

func TestBack_showsTheAnswersToFormsAgain(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	var text, selected string
	clips := storetest.VideoLinksFrom(t, 50, 1)
	b.trackOnPage(d, clips[0].Canonical+"\nnonsense\nrubbish")
	b.runSteps(chromedp.Click("section[aria-live] tbody a"), chromedp.WaitVisible(".chart"), chromedp.NavigateBack(), chromedp.WaitVisible("section[aria-live]"),
		chromedp.Text("section[aria-live]", &text))
	require.Contains(t, text, "nonsense")
	b.runSteps(chromedp.NavigateForward(), chromedp.WaitVisible(".chart"), chromedp.NavigateBack(), chromedp.WaitVisible("section[aria-live]"),
		chromedp.Evaluate(`navigator.clipboard.writeText = () => Promise.reject(); document.querySelector("button[data-copy]").click()`, nil),
		chromedp.WaitVisible(`//button[contains(., "Selected.")]`, chromedp.BySearch), chromedp.Evaluate(`getSelection().toString()`, &selected))
	require.Equal(t, "nonsense\nrubbish", selected, "the button must select the refused links, one a line")

	b.runSteps(chromedp.Navigate(d.url+"/settings"), chromedp.SetValue("input[name=url]", "https://user:secret@hooks.example.com/x"), chromedp.Click(`form[action="/settings/webhook"] button`),
		chromedp.WaitVisible(".notice.bad"), chromedp.Click(`nav a[href="/video"]`), chromedp.WaitVisible(`select[name="fetch_status"]`), chromedp.NavigateBack(),
		chromedp.WaitVisible(".notice.bad"), chromedp.Value("input[name=url]", &text))
	require.Equal(t, "https://user:secret@hooks.example.com/x", text)
}

func TestBack_showsNoAnswersToFormsAfterTheSignOut(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	u, err := url.Parse(d.url)
	require.NoError(t, err)
	// Browsers ignore the header Clear-Site-Data at http addresses, except those of this machine.
	for _, host := range []string{u.Host, namedHost + ":" + u.Port()} {
		d.url = "http://" + host
		b := openBrowser(t)
		b.signIn(d)
		b.runSteps(chromedp.Navigate(d.url+"/track"), chromedp.SetValue("#links", "nonsense\nrubbish"), chromedp.Click(`form[action="/track"] .primary`), chromedp.WaitVisible("section[aria-live]"),
			chromedp.Click(`form[action="/logout"] button`), chromedp.WaitVisible("#token"))
		var text string
		_ = chromedp.Run(b, chromedp.NavigateBack()) // fails, because the browser does not have the page any more
		b.runSteps(chromedp.Evaluate(`document.documentElement.textContent`, &text))
		require.NotContains(t, text, "rubbish", host)
	}
}

func TestPageFromMemory_opensTheSignInPageIfTheSessionHasEnded(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	// The browser of this test keeps no pages in its memory, so the test sends the event with which a browser shows such a page.
	const show = `dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))`
	var at string
	b.runSteps(chromedp.Navigate(d.url+"/video"), chromedp.WaitVisible("#search"), chromedp.Evaluate(show, nil), chromedp.Evaluate(`fetch("/search").then(() => location.pathname)`, &at, awaitPromise))
	require.Equal(t, "/video", at)
	b.runSteps(network.ClearBrowserCookies(), chromedp.Evaluate(show, nil), chromedp.WaitVisible("#token"), chromedp.Location(&at))
	require.Equal(t, d.url+"/login", at)
}

func TestEndedSession_opensTheSignInPageAlsoForPartsOfAPage(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	clips := storetest.VideoLinksFrom(t, 50, 1)
	b.trackOnPage(d, clips[0].Canonical)
	var at string
	b.runSteps(network.ClearBrowserCookies(), chromedp.WaitVisible("#token"), chromedp.Location(&at))
	require.Equal(t, d.url+"/login?next=%2Ftrack", at)

	b.signIn(d)
	b.runSteps(chromedp.Navigate(d.url+"/video?platform=tiktok"), chromedp.WaitVisible("#search"), network.ClearBrowserCookies(),
		chromedp.KeyEvent("k", chromedp.KeyModifiers(input.ModifierCtrl)), chromedp.WaitVisible("#palette-text"), chromedp.KeyEvent("caption"),
		chromedp.WaitVisible("#token"), chromedp.Location(&at))
	require.Equal(t, d.url+"/login?next=%2Fvideo%3Fplatform%3Dtiktok", at)
	b.runSteps(chromedp.SendKeys("#token", d.token+kb.Enter), chromedp.WaitVisible("#search"), chromedp.Location(&at))
	require.Equal(t, d.url+"/video?platform=tiktok", at)
}

func TestCopyButton_selectsTheTextIfThereIsNoClipboard(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	u, err := url.Parse(d.url)
	require.NoError(t, err)
	d.url = "http://" + namedHost + ":" + u.Port()
	b := openBrowser(t)
	b.signIn(d)
	var secret, selected, label string
	b.runSteps(chromedp.Navigate(d.url+"/settings"), chromedp.SetValue("input[name=name]", "Script"), chromedp.Click(`form[action="/settings/token"] button`), chromedp.WaitVisible("#secret"),
		chromedp.Text("#secret", &secret), chromedp.Text("button[data-copy]", &label))
	require.Equal(t, "Copy", label)
	b.runSteps(chromedp.Click("button[data-copy]"), chromedp.Text("button[data-copy]", &label), chromedp.Evaluate(`getSelection().toString()`, &selected))
	require.NotEmpty(t, secret)
	require.Equal(t, secret, strings.TrimSpace(selected))
	require.Equal(t, "Selected. Press Ctrl-C or ⌘-C", label)

	var visible bool
	b.runSteps(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(d.url+"/settings"), chromedp.SetValue("input[name=name]", "Script 2"), chromedp.Click(`form[action="/settings/token"] button`),
		chromedp.WaitVisible("#secret"), chromedp.Evaluate(`document.querySelector("button[data-copy]").checkVisibility()`, &visible))
	require.False(t, visible, "without JavaScript, the button must not be shown")
}

func TestComparison_showsEachNumberBesideItsRightToLeftCaption(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, []ingest.VideoFacts{{Title: new("مرحبا بكم في متجرنا"), Views: new(int64(1200))}, {Title: new("الجديد في الخريف"), Views: new(int64(34))}}, "Spring")
	second := storetest.VideoOf(t, d.db.Org(d.org.ID), storetest.VideoLink(t, 1))
	b := openBrowser(t)
	b.signIn(d)
	// The script returns the text below the chart without its Arabic letters: as it is stored, and in the order in which the browser shows it.
	var stored, shown string
	b.runSteps(chromedp.Navigate(d.url+"/compare?video="+d.video.ID.String()+"&video="+second.ID.String()), chromedp.WaitReady(".uplot"), chromedp.Evaluate(`(readout => {
		const walker = document.createTreeWalker(readout, NodeFilter.SHOW_TEXT), characters = [], range = document.createRange();
		while (walker.nextNode()) for (let n = 0; n < walker.currentNode.length; n++) {
			const text = walker.currentNode.data[n];
			if (!/[\w:,-]/.test(text)) continue;
			range.setStart(walker.currentNode, n);
			range.setEnd(walker.currentNode, n + 1);
			characters.push({ text, left: range.getBoundingClientRect().left });
		}
		window.shown = characters.toSorted((a, b) => a.left - b.left).map(c => c.text).join("");
		return characters.map(c => c.text).join("");
	})(document.querySelector(".readout"))`, &stored), chromedp.Evaluate(`window.shown`, &shown))
	require.Contains(t, stored, "1:1,2002:34")
	require.Equal(t, stored, shown)
}

func TestCollectionLists_doNotWidenNarrowPages(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, strings.Repeat("A long name ", 8))
	b := openBrowser(t)
	b.signIn(d)
	b.runSteps(setWidth(360))
	for name, path := range d.pagePaths(t) {
		if name == "not-found" {
			continue
		}
		var wide []string
		b.runSteps(chromedp.Navigate(d.url+path), chromedp.WaitReady("main"), chromedp.Evaluate(`document.querySelectorAll("details").forEach(e => { e.open = true; })`, nil),
			chromedp.Evaluate(`document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80)).slice(0, 5)`, &wide))
		require.Empty(t, wide, path)
	}
}

func TestForms_doNotGrowWithLongTexts(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, strings.Repeat("A long name ", 8))
	b := openBrowser(t)
	b.signIn(d)
	b.runSteps(setWidth(1440))
	var overflow, widest int
	for _, path := range []string{"/video", "/collection", "/track"} {
		b.runSteps(chromedp.Navigate(d.url+path), chromedp.WaitReady("main"), chromedp.Evaluate(`document.querySelectorAll("details").forEach(e => { e.open = true; })`, nil),
			chromedp.Evaluate(`Math.max(...[...document.querySelectorAll("main select")].map(e => Math.ceil(e.getBoundingClientRect().width)))`, &widest))
		require.LessOrEqual(t, widest, 320, path)
	}
	b.runSteps(chromedp.Navigate(d.url+"/settings"), chromedp.SetValue("input[name=url]", "https://hooks.example.com/"+strings.Repeat("a", 400)),
		chromedp.Click(`form[action="/settings/webhook"] button`), chromedp.WaitVisible("#secret"), chromedp.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &overflow))
	require.LessOrEqual(t, overflow, 0, "a long address must not widen the page")
}
