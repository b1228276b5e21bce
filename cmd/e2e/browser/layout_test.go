package browser

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/storetest"
)

// allColumns is the value of the query parameter "columns" with which a list of videos has all columns.
const allColumns = "views,views_gained_7d,likes,comments,shares,bookmarks,engagement,increase_1d,increase_7d,increase_14d,increase_30d,outlier_multiplier,uploaded_at,created_at,latest_updated_at,fetch_status"

// longVideos have captions that are longer than their lines on a page. The numbers of the first video are large.
var longVideos = []ingest.VideoFacts{
	{Title: new(strings.Repeat("A caption of two thousand characters ", 54)), Username: new("northwind"), Views: new(int64(999_999_999_999)), Likes: new(int64(43_334))},
	{Title: new("مرحبا " + strings.Repeat("بكم في متجرنا الجديد ", 20)), Username: new("matjar"), Views: new(int64(1200))},
}

// setWidth returns a step that sets the width of the browser window.
func setWidth(width int64) chromedp.Action {
	return emulation.SetDeviceMetricsOverride(width, 900, 1, false)
}

func TestDashboard_neverScrollsSideways(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, append(slices.Clone(hostileVideos), longVideos...), hostileName)
	b := openBrowser(t)
	b.signIn(d)
	pages := d.pagePaths(t)
	pages["videos-all-columns"] = "/video?columns=" + allColumns
	pages["collection-all-columns"] = "/collection/" + d.collection.ID.String() + "?columns=" + allColumns
	everything := storetest.Collection(t, d.db.Org(d.org.ID), "Everything", nil)
	_, err := d.db.Org(d.org.ID).AddVideos(t.Context(), everything.ID, videoIDs(t, d), nil)
	require.NoError(t, err)
	pages["share-all-numbers"] = d.shareCollection(t, everything.ID, store.AccessPublic, `{"show_accounts":true,"metrics":["views","views_gained_7d","likes","comments","shares","bookmarks","engagement","increase_1d","increase_7d","increase_14d","increase_30d","outlier_multiplier"]}`)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if name != "not-found" {
			b.requireNoSidewaysScrolling(name, d.url+pages[name])
		}
	}
	b.requireNoPageErrors(d.url)
	b.requireNoSidewaysScrolling("not-found", d.url+pages["not-found"]) // last, because the browser reports its status 404 as an error
}

// requireNoSidewaysScrolling opens a page and requires that the page fits into windows of several widths from 320 to 1440 pixels, and
// that the titles of videos are readable.
func (b *tab) requireNoSidewaysScrolling(name, url string) {
	b.t.Helper()
	b.runSteps(setWidth(320), chromedp.Navigate(url), chromedp.WaitReady("main"))
	for _, width := range []int64{320, 360, 640, 768, 899, 900, 1024, 1280, 1440} {
		schemes := []string{"light"}
		if width == 360 || width == 1440 { // a phone and a desktop
			schemes = []string{"dark", "light"}
		}
		for _, scheme := range schemes {
			var scrolled []string
			b.runSteps(setWidth(width), preferColours(scheme), chromedp.Evaluate(waitForLayout, nil, awaitPromise),
				chromedp.Evaluate(`document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
					.filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120)).slice(0, 5)`, &scrolled))
			require.Empty(b.t, scrolled, "the page %s must not scroll sideways at %d pixels with %s colours", name, width, scheme)
		}
		var narrow []float64
		b.runSteps(chromedp.Evaluate(`[...document.querySelectorAll("td.name:has(.thumbnail) > a.name")].filter(e => !e.closest(".two")).map(e => e.getBoundingClientRect().width).filter(w => w < 160)`, &narrow))
		require.Empty(b.t, narrow, "the titles of the page %s must be readable at %d pixels", name, width)
	}
}

func TestAccountPage_labelsTheLowestDotAtEveryWidth(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	b.runSteps(chromedp.Navigate(d.url+"/account?include_linked=true"), chromedp.Click("td a.name"), chromedp.WaitVisible(".uploads circle"))
	for _, width := range []int64{360, 1280} {
		var distance float64
		b.runSteps(setWidth(width), chromedp.Evaluate(waitForLayout, nil, awaitPromise), chromedp.Evaluate(`(middle => {
			const dots = [...document.querySelectorAll(".uploads circle")].map(middle);
			return Math.abs(Math.max(...dots) - middle(document.querySelector(".uploads .low")));
		})(e => (e.getBoundingClientRect().top + e.getBoundingClientRect().bottom) / 2)`, &distance))
		require.Less(t, distance, 3.0, "the label must be beside the lowest dot at %d pixels", width)
	}
}

// waitForLayout is a script that waits until the page has its layout for a new width of the window. Charts adapt one frame later than the page.
const waitForLayout = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))`

// videoIDs returns the ids of all tracked videos.
func videoIDs(t *testing.T, d dashboard) []uuid.UUID {
	t.Helper()
	var ids []uuid.UUID
	for _, video := range storetest.ListVideos(t, d.db.Org(d.org.ID), storetest.OrderedBy("created_at", true)).Rows {
		ids = append(ids, video.ID)
	}
	return ids
}

func TestDashboard_narrowPagesHaveNoInvisibleTabStops(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, hostileName)
	b := openBrowser(t)
	b.signIn(d)
	pages := d.pagePaths(t)
	b.runSteps(setWidth(360))
	for _, name := range []string{"videos", "accounts", "account", "collection", "collections", "settings", "operations", "share"} {
		var invisible []string
		b.runSteps(chromedp.Navigate(d.url+pages[name]), chromedp.WaitReady("main"),
			chromedp.Evaluate(`[...document.querySelectorAll("main :is(a[href], button, input, select, textarea)")].filter(e => e.checkVisibility()).filter(e => {
				e.scrollIntoView({ block: "center" });
				const box = e.getBoundingClientRect(), hit = document.elementFromPoint(box.left + Math.min(box.width, 40) / 2, box.top + box.height / 2);
				return !hit || !e.contains(hit) && !hit.contains(e);
			}).map(e => e.outerHTML.slice(0, 120))`, &invisible))
		require.Empty(t, invisible, name)
		b.requireAccessible(name + " at 360 pixels")
	}
	var box struct{ Left, Label, Width, Height float64 }
	b.runSteps(chromedp.Navigate(d.url+"/account"), chromedp.WaitReady("main"), chromedp.Evaluate(`(e => ({ left: e.getBoundingClientRect().left, width: e.offsetWidth,
		label: e.parentElement.getBoundingClientRect().left, height: e.parentElement.offsetHeight }))(document.querySelector("input[name=include_linked]"))`, &box))
	require.InDelta(t, box.Label, box.Left, 0.5, "a checkbox must stand at the beginning of its label")
	require.Less(t, box.Height, 40.0, "a checkbox and its label must be in one line")
	require.InDelta(t, 16, box.Width, 1)
	var gap float64
	b.runSteps(chromedp.Navigate(d.url+"/track"), chromedp.WaitReady("#links"), chromedp.Evaluate(`document.querySelector("#forms").getBoundingClientRect().top - document.querySelector("#links").getBoundingClientRect().bottom`, &gap))
	require.GreaterOrEqual(t, gap, 4.0, "the ring around the focused field must not cover the hint below it")
}

func TestDashboard_usesTheSpaceOfNarrowWindows(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, nil, "Spring")
	b := openBrowser(t)
	b.signIn(d)
	var bottom float64
	var links []string
	b.runSteps(setWidth(390), chromedp.Navigate(d.url+"/video"), chromedp.WaitReady("main"),
		chromedp.Evaluate(`[...document.querySelectorAll("a[href='/track']")].filter(e => e.checkVisibility()).map(e => e.textContent)`, &links),
		chromedp.Evaluate(`scrollTo(0, 600); document.querySelector(".top").getBoundingClientRect().bottom`, &bottom))
	require.Equal(t, []string{"Track"}, links)
	require.LessOrEqual(t, bottom, 0.0, "the bar at the top must not cover a scrolled page")
	for _, page := range []struct {
		path string
		wide bool
		want []string
	}{{"/video", false, []string{"q", "order_by", "order_direction"}}, {"/account", false, []string{"q", "order_by", "order_direction"}}, {"/video", true, []string{"q", "order_by", "table"}}} {
		var controls []string // the visible controls that search and sort
		width := int64(390)
		if page.wide {
			width = 1280
		}
		b.runSteps(setWidth(width), chromedp.Navigate(d.url+page.path+"?include_linked=true"), chromedp.WaitReady("main"),
			chromedp.Evaluate(`[...document.querySelectorAll(".search input, main input[name=q], select[name=order_by], select[name=order_direction], thead")].filter(e => e.checkVisibility()).map(e => e.name ?? "table")`, &controls))
		require.Equal(t, page.want, controls, "%s at %d pixels", page.path, width)
	}

	var tops []float64
	b.runSteps(setWidth(768), chromedp.Navigate(d.url+"/"), chromedp.WaitReady(".tiles"), chromedp.Evaluate(`[...document.querySelectorAll(".tile")].map(e => e.offsetTop)`, &tops))
	require.Len(t, tops, 6)
	require.Less(t, tops[0], tops[3], "the tiles must be in two rows")
	require.Equal(t, []float64{tops[0], tops[0], tops[0], tops[3], tops[3], tops[3]}, tops)
	var shares []float64 // the five tiles of a video fill their rows
	b.runSteps(chromedp.Navigate(d.url+d.pagePaths(t)["video"]), chromedp.WaitReady(".tiles"), chromedp.Evaluate(`[...document.querySelectorAll(".tile")].map(e => e.offsetTop)`, &tops),
		setWidth(390), chromedp.Evaluate(waitForLayout, nil, awaitPromise), chromedp.Evaluate(`[...document.querySelectorAll(".tile")].map(e => e.offsetWidth / e.parentElement.clientWidth)`, &shares))
	require.Equal(t, []float64{tops[0], tops[0], tops[0], tops[0], tops[0]}, tops)
	require.InDeltaSlice(t, []float64{0.5, 0.5, 0.5, 0.5, 1}, shares, 0.01)

	var before, after float64
	const left = `document.querySelector("#progress ~ table th:last-child").getBoundingClientRect().left`
	b.runSteps(setWidth(1280))
	b.trackOnPage(d, storetest.VideoLinksFrom(t, 50, 1)[0].Canonical)
	b.runSteps(chromedp.Evaluate(left, &before),
		chromedp.Evaluate(`document.querySelector("#progress ~ table td:last-child").innerHTML = '<span class="why">'+"The video is private. ".repeat(9)+"</span>"; `+left, &after))
	require.InDelta(t, before, after, 0.5, "the columns must not move when the reason of a failed fetch arrives")
}

func TestDashboard_longCaptionsKeepTheirBeginning(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, longVideos, "Long captions")
	b := openBrowser(t)
	b.signIn(d)
	for _, width := range []int64{360, 1280} {
		var visible bool
		b.runSteps(setWidth(width), chromedp.Navigate(d.url+"/video?q=%D9%85%D8%B1%D8%AD%D8%A8%D8%A7"), chromedp.WaitReady("td.name a.name"), chromedp.Evaluate(`(link => {
			const range = document.createRange(), box = link.getBoundingClientRect();
			range.setStart(link.firstChild, 0);
			range.setEnd(link.firstChild, 5);
			const word = range.getBoundingClientRect();
			return link.scrollWidth > link.clientWidth && word.left >= box.left && word.right <= box.right;
		})(document.querySelector("td.name a.name"))`, &visible))
		require.True(t, visible, "the first word of an Arabic caption must be visible at %d pixels", width)
		var lines float64
		var facts string
		b.runSteps(chromedp.Navigate(d.url+"/video/tiktok/"+d.video.ID.String()), chromedp.WaitReady("main"), chromedp.Text(".facts", &facts),
			chromedp.Evaluate(`(h => h.offsetHeight / parseFloat(getComputedStyle(h).lineHeight))(document.querySelector("h1"))`, &lines))
		require.LessOrEqual(t, lines, 3.1)
		require.Contains(t, facts, strings.TrimSpace(*longVideos[0].Title))
	}
}

// recordDrawing is a script that records which dash patterns and which texts a page draws on canvases.
const recordDrawing = `window.drawn = { dashes: new Set(), texts: new Set() };
for (const [method, record] of [["setLineDash", dash => drawn.dashes.add(dash.join(" "))], ["fillText", text => drawn.texts.add(text)]]) {
	const original = CanvasRenderingContext2D.prototype[method];
	CanvasRenderingContext2D.prototype[method] = function(first, ...rest) { record(first); return original.call(this, first, ...rest); };
}`

// readChartDrawing returns the dash patterns and the texts that the charts of the page have drawn. The script recordDrawing must have run
// before the scripts of the page.
func (b *tab) readChartDrawing() (dashes, texts []string) {
	b.t.Helper()
	b.runSteps(chromedp.WaitReady(".uplot"), chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done([...drawn.dashes]))))`, &dashes, awaitPromise),
		chromedp.Evaluate(`[...drawn.texts]`, &texts))
	return dashes, texts
}

func TestDashboard_chartsHaveDistinctLinesAndShortLabels(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, longVideos, "Long captions")
	b := openBrowser(t)
	b.signIn(d)
	b.runSteps(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(recordDrawing).Do(ctx)
		return err
	}), chromedp.Navigate(d.url+d.pagePaths(t)["compare"]))
	dashes, texts := b.readChartDrawing()
	require.Subset(t, dashes, []string{"", "12 4", "6 4", "12 4 3 4", "12 4 3 4 3 4"}, "each line must have a different dash pattern")
	require.Subset(t, texts, []string{"1", "2", "3", "4", "5"}, "each line must end with its number")
	var legend string
	b.runSteps(chromedp.Text(".legend", &legend), chromedp.Evaluate(`[...document.querySelectorAll(".swatch")].map(e => getComputedStyle(e).strokeDasharray + " " + e.textContent).join("|")`, &legend))
	require.Equal(t, "none 1|12px, 4px 2|6px, 4px 3|12px, 4px, 3px, 4px 4|12px, 4px, 3px, 4px, 3px, 4px 5", legend)

	for metric, value := range map[string]string{"views": "1T", "likes": "44k"} { // the video has one point: 999,999,999,999 views and 43,334 likes
		b.runSteps(chromedp.Navigate(d.url + "/video/tiktok/" + d.video.ID.String() + "?metric=" + metric))
		_, texts = b.readChartDrawing()
		require.Contains(t, texts, value, metric)
		for _, text := range texts {
			require.LessOrEqual(t, len(text), 8, "the axis label %s of the chart of %s must be short", text, metric)
		}
	}
}

func TestDashboard_withoutJavaScriptShowsTheTableInPlaceOfTheChart(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, hostileName)
	b := openBrowser(t)
	b.signIn(d)
	pages := d.pagePaths(t)
	for _, name := range []string{"video", "collection", "share"} {
		var text string
		var plot, table bool
		b.runSteps(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(d.url+pages[name]), chromedp.WaitReady("main"),
			chromedp.Text("figure.chart", &text),
			chromedp.Evaluate(`document.querySelector(".plot").checkVisibility()`, &plot),
			chromedp.Evaluate(`document.querySelector(".numbers tbody tr").checkVisibility({ contentVisibilityAuto: true }) && document.querySelector(".numbers tbody tr").getBoundingClientRect().height > 10`, &table))
		require.Contains(t, text, "The chart needs JavaScript.", name)
		require.False(t, plot, "the page %s must not have an empty box in place of its chart", name)
		require.True(t, table, "the page %s must show the table of the numbers", name)
		b.runSteps(emulation.SetScriptExecutionDisabled(false), chromedp.Reload(), chromedp.WaitReady(".uplot"), chromedp.Evaluate(`document.querySelector("details.points").open`, &table))
		require.False(t, table)
	}
}

func TestDashboard_printedPagesFitPaperAndShowHeadings(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, "Autumn campaign")
	b := openBrowser(t)
	b.signIn(d)
	const paper = 718 // width of a page of size A4 without its margins, in pixels
	b.runSteps(setWidth(paper), emulation.SetEmulatedMedia().WithMedia("print"))
	for path, heading := range map[string]string{
		"/collection/" + d.collection.ID.String():                             "Views: total", // its videos were added today, so their gain is unknown
		"/collection/" + d.collection.ID.String() + "?metric=gained":          "Gained views: daily value",
		"/collection/" + d.collection.ID.String() + "?metric=views&view=gain": "Views: daily change",
		"/collection/" + d.collection.ID.String() + "?metric=views":           "Views: total",
		"/collection/" + d.collection.ID.String() + "?columns=" + allColumns:  "Views: total",
		"/collection/report/" + d.makeReport(t, d.collection.ID):              "Views: total",
		"/compare?video=" + d.video.ID.String():                               "Views of each video in percent of its highest value",
	} {
		var width int64
		var shown string
		b.runSteps(chromedp.Navigate(d.url+path), chromedp.WaitReady("main"), chromedp.Text("main", &shown), chromedp.Evaluate(`document.documentElement.scrollWidth`, &width))
		require.LessOrEqual(t, width, int64(paper), path)
		require.Contains(t, shown, heading, path)
		if strings.Contains(path, "/report/") {
			require.Contains(t, shown, *hostileVideos[2].Title, "the videos of a report must have captions")
			require.Contains(t, shown, "tiktok.com/@")
		}
	}
}
