package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/seed"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/thumbnail"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// axe is the script axe-core. It finds faults that make a page hard to use for people with disabilities. The licence of axe-core is in testdata.
//
//go:embed testdata/axe-4.14.1.min.js
var axe string

// These texts contain HTML with scripts. The dashboard must show them as plain text. If a page
// contained such a text as HTML, the script would run.
const (
	hostileTitle    = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	hostileUsername = `"><svg/onload=alert(1)>`
	hostileName     = `{{7*7}}</script><script>alert('collection')</script>`
)

// dashboard is a running server whose organisation has videos and collections.
type dashboard struct {
	installation
	collection store.Collection // the collection that startDashboard creates
	video      store.Video      // the first video of this collection
}

// hostileVideos have hostile, long, Arabic and Japanese captions, and unknown and very large counts.
var hostileVideos = []ingest.VideoFacts{
	{Title: new(hostileTitle), Username: new(hostileUsername), SongName: new(hostileTitle), Views: new(int64(1_234_567_890)), Likes: new(int64(0)), Comments: new(int64(12))},
	{Title: new(strings.Repeat("A very long caption without an end ", 20)), Username: new("long.name.of.an.account.that.posts.every.day"), Views: new(int64(999_999))},
	{Title: new("مرحبا بكم في متجرنا الجديد 🎉 #عرض"), Username: new("matjar"), Views: new(int64(0))},
	{Title: new("手作りのお菓子の作り方🍰を紹介します"), Username: new("okashi"), Likes: new(int64(5))},
}

// startDashboard starts a server for an organisation with made-up data. The collection named
// collectionName contains the given videos and one video without numbers.
func startDashboard(t *testing.T, videos []ingest.VideoFacts, collectionName string, changeOptions ...func(*server.Options)) dashboard {
	t.Helper()
	d := dashboard{installation: startInstallation(t, append(changeOptions, func(o *server.Options) { o.AppURL = "http://127.0.0.1" })...)}
	o := d.db.Org(d.org.ID)
	box := sandbox.New(sandbox.Options{})
	require.NoError(t, seed.Run(t.Context(), o, box.World(), seed.Plan{Videos: 60, Days: 400, PerAccount: 5, Platforms: link.Platforms, Today: storetest.Today(d.db)}, func(seed.Progress) {}))
	d.storeThumbnails(t, box)
	clips := storetest.VideoLinks(t, len(videos)+1) // one extra link for a video without numbers: storeAnswers stores numbers only for the other links
	tracked := storetest.Track(t, o, clips...)
	d.storeAnswers(t, clips, videos)
	d.collection = storetest.Collection(t, o, collectionName, nil)
	ids := make([]uuid.UUID, len(tracked))
	for n, video := range tracked {
		ids[n] = video.ID
	}
	_, err := o.AddVideos(t.Context(), d.collection.ID, ids, nil)
	require.NoError(t, err)
	d.storeHeartbeat(t)
	d.video = storetest.VideoOf(t, o, clips[0])
	return d
}

// storeHeartbeat writes the heartbeat of a collector with one source into the database. The pages then show that a collector is running.
func (d dashboard) storeHeartbeat(t *testing.T) {
	t.Helper()
	var forms []queue.Form
	for _, p := range link.Platforms {
		forms = append(forms, queue.Form{Platform: p, Kind: queue.KindVideo, ByHandle: true}, queue.Form{Platform: p, Kind: queue.KindAccount, ByHandle: true})
	}
	sources := []queue.Source{{Name: "sandbox", Budgets: []queue.Budget{{Name: "requests", Limit: 10_000, Ends: d.db.Clock.Now().Add(6 * time.Hour)}}}}
	_, err := d.db.Heartbeat(t.Context(), store.NewID(), time.Minute, sources, forms...)
	require.NoError(t, err)
}

// storeThumbnails fetches the thumbnails of the organisation's videos from the sandbox and stores them.
func (d dashboard) storeThumbnails(t *testing.T, box *sandbox.Sandbox) {
	t.Helper()
	server := httptest.NewServer(box.Handler())
	defer server.Close()
	fetcher, err := thumbnail.New(thumbnail.Options{BaseURL: server.URL + "/thumbnails"})
	require.NoError(t, err)
	defer fetcher.Close()
	for _, v := range storetest.ListVideos(t, d.db.Org(d.org.ID), storetest.OrderedBy("created_at", true)).Rows {
		picture := store.Thumbnail{Platform: v.Platform, ExternalID: v.ExternalID, URL: *v.ThumbnailURL}
		image, err := fetcher.Fetch(t.Context(), v.Platform, picture.URL)
		require.NoError(t, err)
		require.NoError(t, d.db.RequestThumbnails(t.Context(), []store.Thumbnail{picture}))
		require.NoError(t, d.db.SaveThumbnail(t.Context(), picture, image))
	}
}

// storeAnswers stores facts[i] as a collector's answer for the video of links[i]. If facts is
// shorter than links, the last videos stay without numbers.
func (d dashboard) storeAnswers(t *testing.T, links []link.Link, facts []ingest.VideoFacts) {
	t.Helper()
	outcomes := make([]ingest.Outcome, len(facts))
	for n, f := range facts {
		outcomes[n] = storetest.Outcome(d.db, queue.Target{Platform: links[n].Platform, Kind: "video", ExternalID: links[n].ID}, f)
		outcomes[n].Source = store.SandboxSource
	}
	require.NoError(t, d.db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(d.db.Clock.Now()), outcomes))
}

// pagePaths returns the path of each page. The names of the pages occur in file names of screenshots and in messages of failed tests.
func (d dashboard) pagePaths(t *testing.T) map[string]string {
	t.Helper()
	o := d.db.Org(d.org.ID)
	oldest := storetest.ListVideos(t, o, storetest.OrderedBy("created_at", false)).Rows[0]
	most := storetest.ListVideos(t, o, storetest.OrderedBy("latest_likes", true)).Rows[0]
	collections, err := o.ListCollections(t.Context(), store.CollectionQuery{Order: store.Order{Column: "video_count", Descending: true}, Window: store.Window{Limit: 1}})
	require.NoError(t, err)
	locked := storetest.Collection(t, o, "Locked", nil)
	busy := d.shareCollection(t, collections.Rows[0].ID, store.AccessPublic, `{"title":"Autumn in numbers","description":"All videos of the campaign, with the counts of today","show_accounts":true}`)
	top := storetest.ListVideos(t, o, storetest.OrderedBy("latest_likes", true)).Rows[:5]
	compared := "/compare?days=90"
	for _, video := range top {
		compared += "&video=" + video.ID.String()
	}
	chosen := url.Values{"back": {"/video"}, "video": {d.video.ID.String(), most.ID.String()}}
	accounts := url.Values{"account": {most.LinkedAccountID.String(), oldest.LinkedAccountID.String()}}
	made := d.makeReport(t, collections.Rows[0].ID)
	report, settings := "/collection/report/"+made, json.RawMessage(`{"description":"The views of our campaign","show_captions":true,"show_accounts":true}`)
	shared, err := o.UpdateReport(t.Context(), uuid.MustParse(made), store.SharingPatch{Access: new(store.AccessPublic), DisplaySettings: settings})
	require.NoError(t, err)
	return map[string]string{
		"chosen": "/video/chosen?" + chosen.Encode(), "compare-accounts": "/compare?" + accounts.Encode(), "compare": compared, "compare-empty": "/compare", "compare-hostile": "/compare?video=" + d.video.ID.String(), "videos-columns": "/video?columns=views,increase_7d,created_at,latest_updated_at,shares",
		"share": busy, "share-report": "/r/" + *shared.Hash, "share-embedded": busy + "?embed=1", "share-locked": d.shareCollection(t, locked.ID, store.AccessProtected, "{}"),
		"share-hostile": d.shareCollection(t, d.collection.ID, store.AccessPublic, `{"theme":"dark","metrics":["views","engagement","outlier_multiplier","increase_7d","views_gained_7d"]}`),
		"overview":      "/", "overview-gain": "/?view=gain&days=90", "videos": "/video", "video": "/video/" + string(most.Platform) + "/" + most.ID.String(),
		"video-year": "/video/" + string(oldest.Platform) + "/" + oldest.ID.String() + "?days=365", "video-hostile": "/video/tiktok/" + d.video.ID.String(), "accounts": "/account?include_linked=true", "account": "/account/" + string(most.Platform) + "/" + most.LinkedAccountID.String(),
		"collections": "/collection", "collection": "/collection/" + collections.Rows[0].ID.String(), "collection-hostile": "/collection/" + d.collection.ID.String(),
		"report": report, "report-amounts": report + "?rate=12.5&cap=500&currency=EUR", "track": "/track", "settings": "/settings", "search": "/search?q=e", "operations": "/operations", "operations-list": "/operations?status=pending", "not-found": "/video/tiktok/" + uuid.NewString(),
	}
}

// shareCollection gives a collection a share page with the given access and display settings, and returns the path of the page.
func (d dashboard) shareCollection(t *testing.T, collection uuid.UUID, access store.Access, settings string) string {
	t.Helper()
	hash, err := store.HashPassword(t.Context(), "a long password")
	require.NoError(t, err)
	shared, err := d.db.Org(d.org.ID).UpdateCollection(t.Context(), collection, store.CollectionPatch{SharingPatch: store.SharingPatch{Access: &access, PasswordHash: &hash, DisplaySettings: json.RawMessage(settings)}})
	require.NoError(t, err)
	return "/c/" + *shared.Hash
}

func (d dashboard) makeReport(t *testing.T, collection uuid.UUID) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/collections/"+collection.String()+"/reports", strings.NewReader("{}"))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	require.Equal(t, http.StatusCreated, answer.StatusCode)
	var report struct{ ID string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&report))
	return report.ID
}

// signIn enters the token on the page for signing in, and waits until the first page is shown.
func (b *tab) signIn(d dashboard) {
	b.t.Helper()
	b.runSteps(chromedp.Navigate(d.url+"/"),
		chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", d.token+kb.Enter),
		chromedp.WaitVisible(".tiles"))
}

func TestDashboard_signsInAndTracksLinks(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, hostileName)
	b := openBrowser(t)
	b.signIn(d)
	var at string
	b.runSteps(chromedp.Click(`.top a[href="/track"]`), chromedp.WaitVisible("#links"), chromedp.Location(&at))
	require.Equal(t, d.url+"/track", at)

	// The text field has the focus when the page opens. The test uses only the keyboard.
	clips := storetest.VideoLinksFrom(t, 50, 2)
	b.runSteps(chromedp.KeyEvent("Look at "+clips[0].Canonical+"?lang=en, and "+strings.TrimPrefix(clips[1].Canonical, "https://")+"!\none more line\nnonsense"),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible("#progress .notice"))
	var rows []string
	b.runSteps(chromedp.Evaluate(`[...document.querySelectorAll("section[aria-live] tbody tr")].map(r => r.cells[1].innerText.trim())`, &rows))
	require.Len(t, rows, 3)
	require.Contains(t, rows[0], "Refused")
	require.Equal(t, "Tracked", rows[1])
	require.Equal(t, "Tracked", rows[2])

	d.storeAnswers(t, clips, []ingest.VideoFacts{{Views: new(int64(4321))}, {Views: new(int64(7))}})
	var shown string
	b.runSteps(chromedp.WaitVisible(`//div[@id="progress"]//span[contains(., "All 2 links have been fetched.")]`, chromedp.BySearch),
		chromedp.Text("section[aria-live]", &shown))
	require.Contains(t, shown, "4,321 views")
	b.requireAccessible("results of tracking")
	b.saveScreenshot("track-results")

	b.runSteps(chromedp.Click(`section[aria-live] tbody a`), chromedp.WaitVisible(".chart"), chromedp.Text("main", &shown))
	require.Contains(t, shown, "4,321")
	b.runSteps(chromedp.KeyEvent("/"), chromedp.Evaluate(`document.activeElement.id`, &at))
	require.Equal(t, "search", at)

	// Ctrl-K opens the search dialog. The arrow keys move the focus to its results, which are links.
	b.runSteps(chromedp.KeyEvent("k", chromedp.KeyModifiers(input.ModifierCtrl)), chromedp.WaitVisible("#palette-text"), chromedp.KeyEvent("4"), chromedp.KeyEvent(kb.Backspace),
		chromedp.KeyEvent("caption"), chromedp.WaitVisible("#found a"))
	b.requireAccessible("search dialog")
	b.runSteps(chromedp.KeyEvent(kb.ArrowDown), chromedp.Evaluate(`document.activeElement.closest("#found") !== null ? "result" : ""`, &at))
	require.Equal(t, "result", at)
	b.runSteps(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//main//h1[contains(., "caption")]`, chromedp.BySearch))
	var clock string
	b.runSteps(emulation.SetTimezoneOverride("Asia/Tokyo"), chromedp.Reload(), chromedp.WaitReady("time[data-local]"),
		chromedp.Evaluate(`(t => new Date(t.dateTime).toISOString().slice(0, 16).replace("T", " ") + "|" + t.textContent)(document.querySelector("time[data-clock]"))`, &clock))
	utc, tokyo, _ := strings.Cut(clock, "|")
	at9, err := time.Parse("2006-01-02 15:04", utc)
	require.NoError(t, err)
	require.Equal(t, at9.Add(9*time.Hour).Format("2006-01-02 15:04"), tokyo, "the page must show times in the time zone of the browser")
	var readout string
	b.runSteps(chromedp.Text(".readout", &readout))
	require.Contains(t, readout, tokyo, "the line below the chart must have the time of the table")
	b.runSteps(chromedp.Click(".top form:last-child button"), chromedp.WaitVisible("#token"))
	b.requireNoPageErrors(d.url)
}

func TestDashboard_pagesAreAccessible(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, hostileName)
	b := openBrowser(t)
	check := func(name, path string) {
		b.runSteps(chromedp.Navigate(d.url+path), chromedp.WaitReady("main"))
		for _, scheme := range []string{"light", "dark"} {
			b.runSteps(preferColours(scheme))
			b.requireAccessible(name + " in " + scheme)
		}
	}
	check("sign-in", "/login")
	b.signIn(d)
	pages := d.pagePaths(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		check(name, pages[name])
	}
	require.NoError(t, d.db.SetTier(t.Context(), d.org.ID, store.TierBasic))
	d.db.Clock.Advance(time.Second)
	for _, name := range []string{"overview", "videos", "video", "account", "collection", "settings"} {
		check("masked "+name, pages[name])
	}
}

func TestDashboard_showsTextsOfOtherPeopleAsPlainText(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, hostileName)
	b := openBrowser(t)
	b.signIn(d)
	for _, shown := range []struct{ path, selector, text string }{
		{"/video/tiktok/" + d.video.ID.String(), "h1", hostileTitle},
		{"/collection/" + d.collection.ID.String(), "h1", hostileName},
		{"/video?q=" + "%3Cscript%3Ealert(1)%3C%2Fscript%3E", "#search", ""},
		{"/video", "main", hostileTitle},
		{"/collection", "main", hostileName},
		{"/", "main", "Overview"},
	} {
		var text, title string
		b.runSteps(chromedp.Navigate(d.url+shown.path), chromedp.WaitReady("main"), chromedp.Text(shown.selector, &text), chromedp.Title(&title))
		require.Contains(t, text, shown.text, shown.path)
		require.NotEqual(t, "owned", title)
	}
	b.requireNoPageErrors(d.url) // if the content security policy stopped a script, the browser reported an error
}

func TestDashboard_printsReportsWithoutControls(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	d := startDashboard(t, hostileVideos, hostileName)
	b := openBrowser(t)
	b.signIn(d)
	pages := map[string]string{"collection": "/collection/" + d.collection.ID.String(), "report": "/collection/report/" + d.makeReport(t, d.collection.ID)} // the collection of the report has five videos
	for name, path := range pages {
		var shown string
		var printed []byte
		b.runSteps(preferColours("dark"), chromedp.Navigate(d.url+path), chromedp.WaitReady(".uplot"),
			emulation.SetEmulatedMedia().WithMedia("print"), chromedp.Text("body", &shown), emulation.SetDeviceMetricsOverride(794, 1123, 1, false))
		b.saveScreenshot("print-" + name)
		for _, control := range []string{"Sign out", "Save as report", "7 days", "Table of the same numbers", "Next"} {
			require.NotContains(t, shown, control)
		}
		require.Contains(t, shown, "Gained views")
		require.Contains(t, shown, " to ", "the period")
		if name == "report" {
			require.Regexp(t, "Checksum \\(SHA-256\\) of the report in the API. It proves that the report was not changed: [0-9a-f]{64}", shown)
		}
		b.runSteps(emulation.SetEmulatedMedia().WithMedia(""), chromedp.ActionFunc(func(ctx context.Context) (err error) {
			printed, _, err = page.PrintToPDF().Do(ctx)
			return err
		}))
		require.LessOrEqual(t, strings.Count(string(printed), "/Type /Page\n"), 2, name)
	}
}

// requireAccessible requires that axe finds no fault in the page that the tab shows.
func (b *tab) requireAccessible(name string) {
	b.t.Helper()
	var violations []string
	b.runSteps(chromedp.Evaluate(axe, nil),
		chromedp.Evaluate(`axe.run().then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`, &violations, awaitPromise))
	require.Empty(b.t, violations, name)
}

// awaitPromise makes chromedp.Evaluate wait for the result of a promise.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
