package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

func TestVideoList_choosesAllVideosOfThePageWithTheKeyboard(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	const all = "[data-choose] input"
	var texts [3]string
	var mixed, shown bool
	status := func(text *string) chromedp.Action {
		return chromedp.Text("[data-choose] [role=status]", text, chromedp.ByQuery)
	}
	b.runSteps(chromedp.Navigate(d.url+"/video"), chromedp.WaitVisible(all), chromedp.Evaluate(`document.querySelector("[data-choose] button").checkVisibility()`, &shown))
	require.False(t, shown, "the button must be hidden until a video is chosen")
	b.runSteps(chromedp.Focus(all), chromedp.KeyEvent(" "), status(&texts[0]),
		chromedp.Click("tbody .pick"), status(&texts[1]), chromedp.Evaluate(`document.querySelector("[data-choose] input").indeterminate`, &mixed),
		chromedp.Focus(all), chromedp.KeyEvent(" "), chromedp.KeyEvent(" "), status(&texts[2]))
	require.Equal(t, [3]string{"50 of 50 chosen", "49 of 50 chosen", "Nothing is chosen"}, texts)
	require.True(t, mixed)
	b.runSteps(chromedp.Focus(all), chromedp.KeyEvent(" "))
	for _, width := range []int64{1440, 390} {
		var visible bool
		b.runSteps(setWidth(width), chromedp.Evaluate(`scrollTo(0, document.body.scrollHeight / 2); (() => {
  const button = document.querySelector("[data-choose] button"), at = button.getBoundingClientRect();
  return button.contains(document.elementFromPoint((at.left + at.right) / 2, (at.top + at.bottom) / 2));
})()`, &visible))
		require.True(t, visible, "the button must stay in view at a width of %d", width)
	}
	b.runSteps(setWidth(1440), chromedp.Focus(all), chromedp.KeyEvent(" "))

	var heading, result string
	b.runSteps(chromedp.Focus(all), chromedp.KeyEvent(" "), chromedp.Focus("[data-choose] button"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("form.changes"), chromedp.Text("h1", &heading))
	require.Equal(t, "50 chosen videos", heading)
	b.requireAccessible("chosen")
	b.runSteps(chromedp.Click(`form[action="/video/chosen/stop"] button`), chromedp.WaitVisible("section[role=status]"), chromedp.Text("section[role=status]", &result))
	require.Contains(t, result, "Tracking stopped: 50 videos")
	b.requireAccessible("chosen-stopped")
	b.runSteps(chromedp.Click(`form[action="/video/chosen/track"] button`), chromedp.WaitVisible(`//strong[contains(., "Tracked again: 50 videos")]`, chromedp.BySearch),
		chromedp.Navigate(d.url+"/video"), chromedp.WaitVisible(all))
}

func TestAccountList_addsAllAccountsOfThePageToACollection(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	const all = "[data-choose] input"
	var chosen, shown string
	b.runSteps(chromedp.Navigate(d.url+"/account"), chromedp.WaitVisible(all), chromedp.Focus(all), chromedp.KeyEvent(" "), chromedp.Text("[data-choose] [role=status]", &chosen, chromedp.ByQuery),
		chromedp.SetValue("#collection", d.collection.ID.String()), chromedp.Click(`button[formaction="/account/chosen/collect"]`), chromedp.WaitVisible(".notice"), chromedp.Text("main", &shown))
	require.Equal(t, "12 of 12 chosen", chosen)
	require.Contains(t, shown, "The accounts are in the collection.")
	var rows int
	b.runSteps(chromedp.Evaluate(`document.querySelectorAll("#accounts tbody tr").length`, &rows))
	require.Equal(t, 12, rows)
}
