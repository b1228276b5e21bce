package browser

import (
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestSignIn_worksOverHTTPAtAHostName(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	u, err := url.Parse(d.url)
	require.NoError(t, err)
	d.url = "http://" + namedHost + ":" + u.Port()
	b := openBrowser(t)
	b.signIn(d)
	b.runSteps(chromedp.Click(".top form:last-child button"), chromedp.WaitVisible("#token"))
}

func TestDashboard_keyboardChangesAFilterWithoutApplyingIt(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	var at, chosen string
	b.runSteps(chromedp.Navigate(d.url+"/video"), chromedp.Focus("select[name=platform]"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.Sleep(500*time.Millisecond),
		chromedp.Location(&at), chromedp.Value("select[name=platform]", &chosen))
	require.Equal(t, d.url+"/video", at, "an arrow key must not load another page")
	require.Equal(t, "instagram", chosen)
	b.runSteps(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//a[contains(., "Clear")]`, chromedp.BySearch), chromedp.Location(&at))
	require.Contains(t, at, "platform=instagram")
	b.runSteps(chromedp.Evaluate(`history.back()`, nil))
	require.Eventually(t, func() bool { // after "back", the form must show the filters of the page's URL
		err := chromedp.Run(b, chromedp.Evaluate(`location.search + "|" + document.querySelector("select[name=platform]").value`, &chosen))
		return err == nil && chosen == "|"
	}, 10*time.Second, 100*time.Millisecond)

	b.runSteps(chromedp.Navigate(d.url+"/video"), chromedp.WaitVisible("#search"), chromedp.KeyEvent("k", chromedp.KeyModifiers(input.ModifierCtrl)), chromedp.WaitVisible("#palette-text"), chromedp.KeyEvent("caption"), chromedp.KeyEvent(kb.Escape),
		chromedp.WaitNotVisible("#palette-text"))
	b.requireNoPageErrors(d.url)
}

func TestDashboard_waitingPageKeepsAnOpenMenu(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	o := d.db.Org(d.org.ID)
	clips := storetest.VideoLinksFrom(t, 70, 1)
	video := storetest.Track(t, o, clips...)[0].ID.String()
	b := openBrowser(t)
	b.signIn(d)
	var open bool
	var focused string
	b.runSteps(chromedp.Navigate(d.url+"/video/"+string(clips[0].Platform)+"/"+video), chromedp.WaitReady("[data-wait]"),
		chromedp.Click(`//summary[contains(., "Add to collection")]`, chromedp.BySearch), chromedp.Focus("#collection"))
	d.storeAnswers(t, clips, []ingest.VideoFacts{{Views: new(int64(4321))}})
	b.runSteps(chromedp.Sleep(7*time.Second), chromedp.Evaluate(`document.getElementById("collection").closest("details").open`, &open), chromedp.Evaluate(`document.activeElement.id`, &focused))
	require.True(t, open, "the page must not be replaced while a menu is open")
	require.Equal(t, "collection", focused)
	b.runSteps(chromedp.Click(`//summary[contains(., "Add to collection")]`, chromedp.BySearch), chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.WaitNotPresent("[data-wait]"))
	var shown string
	b.runSteps(chromedp.Text("main", &shown))
	require.Contains(t, shown, "4,321")
	b.requireNoPageErrors(d.url)
}
