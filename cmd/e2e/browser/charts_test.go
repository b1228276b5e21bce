package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

func TestComparePage_keepsEmojiAndFitsItsAxisToTheLines(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, longVideos, "Long captions")
	b := openBrowser(t)
	b.signIn(d)
	var readout, axis string
	// changeTable is a script that changes the numbers of the table, draws the chart again and returns a text.
	changeTable := func(change, result string) string {
		return `(() => { ` + change + `; document.dispatchEvent(new Event("htmx:afterSettle")); return ` + result + `; })()`
	}
	const emoji = `document.querySelector("thead th[data-metric]").textContent = "Small flat, big plants 🪴🪴🪴"`
	const text = `(e => e.isWellFormed() ? e : "not well-formed")(document.querySelector(".readout").textContent)`
	b.runSteps(setWidth(1280), chromedp.Navigate(d.url+d.pagePaths(t)["compare"]), chromedp.WaitReady(".uplot"), chromedp.Evaluate(changeTable(emoji, text), &readout))
	require.Contains(t, readout, "Small flat, big plants 🪴…")

	for value, notice := range map[string]string{"950": "The axis does not begin at 0.", "100": ""} {
		change := `document.querySelectorAll("td[data-of]").forEach((cell, n) => { delete cell.dataset.quality; cell.querySelector("data").value = n % 2 ? "1000" : "` + value + `"; })`
		b.runSteps(chromedp.Evaluate(changeTable(change, `document.querySelector(".chart .axis").textContent`), &axis))
		require.Equal(t, notice, strings.TrimSpace(axis), value)
	}
}

func TestDashboard_tableHeadsStayInView(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, hostileName)
	b := openBrowser(t)
	b.signIn(d)
	var top float64
	b.runSteps(setWidth(1280), chromedp.Navigate(d.url+"/video?columns=views"), chromedp.WaitReady(".wide.fits"), chromedp.Evaluate(`(() => {
		document.querySelector("main").style.paddingBottom = "2000px";
		const head = document.querySelector(".rows thead th"), rows = document.querySelectorAll(".rows tbody tr");
		scrollTo(0, rows[rows.length - 1].getBoundingClientRect().top - 100);
		return head.getBoundingClientRect().top;
	})()`, &top))
	require.InDelta(t, 52, top, 2, "the head of a table must stay below the bar at the top")
}
