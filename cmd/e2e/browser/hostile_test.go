package browser

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/storetest"
)

// hostileTexts returns 200 texts that try to run a script or load files. Most texts first close an
// HTML construct, such as an attribute.
func hostileTexts() []string {
	const run = `document.title='owned'`
	scripts := []string{
		`<script>` + run + `</script>`, `<img src=x onerror=` + run + `>`, `<svg onload=` + run + `>`, `<svg><script>` + run + `</script>`, `<body onload=` + run + `>`,
		`<iframe srcdoc="<script>parent.` + run + `</script>">`, `<iframe src="javascript:parent.` + run + `">`, `<a href="javascript:` + run + `" autofocus>x</a>`,
		`<details open ontoggle=` + run + `>`, `<input autofocus onfocus=` + run + `>`, `<video><source onerror=` + run + `></video>`, `<object data="javascript:` + run + `">`,
		`<meta http-equiv=refresh content="0;url=javascript:` + run + `">`, `<form action="javascript:` + run + `"><button>x</button></form>`, `<style>@import "javascript:` + run + `";</style>`,
		`<base href="https://attacker.invalid/">`, `<link rel=stylesheet href="https://attacker.invalid/x.css">`, `onmouseover=` + run + ` x=`, `javascript:` + run, `{{constructor.constructor("` + run + `")()}}`,
	}
	var out []string
	for _, leave := range []string{``, `">`, `'>`, `</title>`, `</script>`, `-->`, `</textarea>`, `]]>`, "`}", `\u003c/script>`} {
		for _, script := range scripts {
			out = append(out, leave+script)
		}
	}
	return out
}

// TestDashboardPages_runNoScriptsInTextsOfOtherPeople puts hostile texts into captions, names and
// display settings. The test fails if a script runs, or if the Content-Security-Policy stops a script.
func TestDashboardPages_runNoScriptsInTextsOfOtherPeople(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	texts := hostileTexts()
	require.Len(t, texts, 200)
	facts := make([]ingest.VideoFacts, len(texts))
	for n, text := range texts {
		facts[n] = ingest.VideoFacts{Title: new(text), Username: new(text), SongName: new(text), Views: new(int64(n))}
	}
	d := startDashboard(t, facts, "Hostile", func(o *server.Options) { o.RateStore = server.Unlimited{} })
	o := d.db.Org(d.org.ID)
	paths := []string{"/", "/account?include_linked=true", "/collection", "/video/tiktok/" + d.video.ID.String(), "/collection/" + d.collection.ID.String()}
	public := d.shareCollection(t, d.collection.ID, store.AccessPublic, "{}")
	for _, page := range []string{"1", "2", "3", "4", "5"} {
		paths = append(paths, "/video?page="+page, public+"?page="+page)
	}
	for n, text := range texts {
		name := storetest.Collection(t, o, text[:min(len(text), 100)], nil)
		settings, err := json.Marshal(map[string]any{"title": text, "description": texts[(n+1)%len(texts)], "theme": text, "metrics": []string{text}})
		require.NoError(t, err)
		paths = append(paths, d.shareCollection(t, name.ID, store.AccessPublic, string(settings)))
		if n%20 == 0 {
			paths = append(paths, "/collection/"+name.ID.String())
		}
	}
	b := openBrowser(t)
	b.signIn(d)
	for _, path := range paths {
		var title string
		b.runSteps(chromedp.Navigate(d.url+path), chromedp.WaitReady("main"), chromedp.Title(&title))
		// A hostile script that runs changes the title of the page.
		require.NotEqual(t, "owned", title, path)
	}
	b.runSteps(chromedp.Navigate(d.url+"/video/tiktok/"+uuid.NewString()), chromedp.WaitReady("main"))
	b.mu.Lock()
	defer b.mu.Unlock()
	// The browser also reports an error for each script that the Content-Security-Policy stops. So a single error, the status 404, means that no page
	// tried to run a script.
	require.Len(t, b.faults, 1, "the browser must report one error, the status 404 of the last page, but reports %q", b.faults)
	require.Equal(t, map[string]bool{d.url: true}, b.hosts)
}
