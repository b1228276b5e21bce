package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

func TestTrackPage_tracksAtMost1000LinksAndKeepsTheRestInTheForm(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	links := []string{"https://www.tiktok.com/@someone"}
	for n := range 512 {
		links = append(links, videoURL(n))
	}
	page := v.post("/track", "links", strings.Join(links, "\n")).requireStatus(http.StatusOK)
	require.Len(t, page.rows(), 514)
	require.Empty(t, fieldValue(page.parseHTML(), "links"))
	require.Len(t, decode[client.VideoPage](c.send(http.MethodGet, "/videos?limit=1000", nil).requireStatus(http.StatusOK)).Data, 512)

	for n := range 500 {
		links = append(links, videoURL(1000+n))
	}
	page = v.post("/track", "links", strings.Join(links, "\n")).requireStatus(http.StatusOK)
	require.Contains(t, string(page.body), "You pasted 1,013 links, but at most 1,000 can be tracked at a time. The last 13 are still in the text field.")
	require.Equal(t, strings.Join(links[1000:], "\n"), fieldValue(page.parseHTML(), "links"))
}

func TestTrackPage_keepsLinksThatTheAPIRefused(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = server.NewMemoryRateStore() })
	c := a.newCaller(t, store.TierLimited)
	v := c.newSignedInVisitor(t)
	for range 5 {
		v.post("/track", "links", videoURL(1)).requireStatus(http.StatusOK)
	}
	page := v.post("/track", "links", videoURL(2)+"\nhttps://www.tiktok.com/@someone").requireStatus(http.StatusTooManyRequests)
	require.Equal(t, videoURL(2)+"\nhttps://www.tiktok.com/@someone", fieldValue(page.parseHTML(), "links"))
}

func TestTrackPage_ignoresTextBetweenLinksAndReportsDuplicates(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	page := v.post("/track", "links", "Hi, here are the links of the campaign\n"+videoURL(1)+"\nand this one: "+videoURL(1)+"?lang=en").requireStatus(http.StatusOK)
	require.Len(t, page.rows(), 2)
	require.Contains(t, mainText(page), "1 link repeats an earlier link, exactly or in another form. The list below has each video and account once."+videoURL(1)+"?lang=en")
	require.Contains(t, mainText(page), "1 line has no link, so it was ignored.Hi, here are the links of the campaign")
	require.NotContains(t, string(page.body), "positions")
}

func TestTrackPage_countsAddUpToTheNumberOfLines(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	lines := []string{"1. " + videoURL(1), "2. " + videoURL(2), "3. " + videoURL(1), "4. @carlos.runs", "5. " + videoURL(2) + "?lang=en", "6. https://example.com/x", "7. hello world",
		"8. https://www.tiktok.com/@someone", "9. https://www.tiktok.com/@SomeOne?lang=de", "10. " + videoURL(1) + "/"}
	text := mainText(v.post("/track", "links", strings.Join(lines, "\n")).requireStatus(http.StatusOK))
	for _, part := range []string{"3 links are newly tracked.", "1 link was refused", "4 links repeat an earlier link", "2 lines have no link, so they were ignored.4. @carlos.runs7. hello world"} {
		require.Contains(t, text, part)
	}
	many := mainText(v.post("/track", "links", videoURL(1)+strings.Repeat("\nsome words", 13)).requireStatus(http.StatusOK))
	require.Contains(t, many, "13 lines have no link")
	require.Equal(t, 10, strings.Count(many, "some words"))
	require.Contains(t, many, "and 3 more")
}

func TestTrackPage_addsTheTrackedLinksToACollectionAfterwards(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	pasted := videoURL(1) + "\n" + videoURL(2) + "\nhttps://www.tiktok.com/@someone\nnonsense"
	require.NotContains(t, mainText(v.post("/track", "links", pasted)), "to a collection", "without a collection, the page must not offer to add to one")
	collection := c.createNamedCollection("Spring").String()
	page := v.post("/track", "links", pasted).requireStatus(http.StatusOK)
	require.Contains(t, mainText(page), "Add 2 videos and 1 account to a collection")
	require.Contains(t, mainText(v.post("/track", "links", videoURL(1))), "Add 1 video to a collection")
	fields := []string{"collection", collection}
	for _, field := range findElements(page.parseHTML(), "input") {
		if attributeValue(field, "name") == "link" {
			fields = append(fields, "link", attributeValue(field, "value"))
		}
	}
	require.Len(t, fields, 8)
	added := v.post("/track", fields...).requireStatus(http.StatusOK)
	require.Contains(t, mainText(added), "3 links were tracked before. Collection: Spring.")
	require.NotContains(t, mainText(added), "to a collection")
	require.Len(t, decode[client.CollectionVideoPage](c.send(http.MethodGet, "/collections/"+collection+"/videos", nil).requireStatus(http.StatusOK)).Data, 2)
	for _, row := range added.rows()[1:] {
		require.Regexp(t, "^/(video|account)/tiktok/", row.link, "each result must have a link to its video or account")
	}
}

func TestTrackPage_countsTheRefusedLinksAndListsThemFirst(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	page := v.post("/track", "links", videoURL(1)+"\nnonsense\n"+videoURL(2)+"\nhttps://www.tiktok.com/@someone\nrubbish").requireStatus(http.StatusOK)
	rows := page.rows()
	require.Len(t, rows, 6)
	for n, text := range []string{"nonsense", "rubbish", videoURL(1), videoURL(2), "@someone"} {
		require.Contains(t, rows[n+1].text, text)
	}
	require.Contains(t, string(page.body), "2 links were refused; the list below says why.")
	require.Contains(t, string(page.body), "data-copy=\"nonsense\nrubbish\">Copy the refused links</button>")
	require.Contains(t, string(v.post("/track", "links", videoURL(1)+"\nnonsense").body), "1 link was refused; the list below says why.")
	require.NotContains(t, string(v.post("/track", "links", videoURL(1)).body), "refused")
}

func TestTrackPage_waitsForLinksWhoseFetchesFail(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	rows := v.post("/track", "links", videoURL(1)+"\n"+videoURL(2)).rows()
	var items []string
	for _, row := range rows[1:] {
		items = append(items, "video:"+strings.TrimPrefix(row.link, "/video/tiktok/"))
	}
	progress := func(rounds string, failing ...string) string {
		fields := []string{"total", "2", "rounds", rounds}
		for _, item := range items {
			fields = append(fields, "waiting", item)
		}
		for _, item := range failing {
			fields = append(fields, "failing", item)
		}
		return string(v.post("/track/progress", fields...).requireStatus(http.StatusOK).body)
	}
	a.Exec(t, "UPDATE videos SET fetch_status = 'failing', fetch_reason = 'server_error'")
	failed := progress("0")
	require.Contains(t, failed, "0 of 2 links have been fetched, 2 could not be fetched yet. This page waits for the next attempts.")
	require.Contains(t, failed, `hx-post="/track/progress"`)
	require.Contains(t, failed, `name="failing" value="`+items[0]+`"`)
	require.Equal(t, 2, strings.Count(failed, "Failing</span>"))
	require.NotContains(t, progress("1", items...), "Failing</span>", "a state that the page shows already must not be read out again")
	again := v.post("/track", "links", videoURL(1))
	require.Contains(t, string(again.body), "The link could not be fetched yet.")
	require.Contains(t, again.rows()[1].text, "Failing")

	a.Exec(t, "UPDATE videos SET fetch_status = 'ok', fetch_reason = '', latest_views = 7, latest_updated_at = ? WHERE id = ?", store.InstantOf(a.Clock.Now()), strings.TrimPrefix(items[0], "video:"))
	half := progress("2", items...)
	require.Contains(t, half, "1 of 2 links have been fetched, 1 could not be fetched yet.")
	require.Contains(t, half, "7 views")
	require.Contains(t, progress("119", items...), "1 could not be fetched yet. This page no longer waits.")
	a.Exec(t, "UPDATE videos SET fetch_status = 'private', fetch_reason = '' WHERE latest_views IS NULL")
	require.Contains(t, progress("3", items...), "All 2 links have been fetched.", "the page must not wait for the numbers of a private video")
}

func TestTrackPage_keepsTheLinksIfTheChosenCollectionWasDeleted(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	collection := c.createNamedCollection("Spring").String()
	c.send(http.MethodDelete, "/collections/"+collection, nil).requireStatus(http.StatusOK)
	pasted := videoURL(1) + "\nhttps://www.tiktok.com/@someone"
	page := v.post("/track", "links", pasted, "collection", collection, "tracking_type", "all").requireStatus(http.StatusNotFound)
	require.Equal(t, pasted, fieldValue(page.parseHTML(), "links"))
	require.Contains(t, string(page.body), "The chosen collection does not exist. Was it deleted? The links in the text field were not tracked.")
	require.Contains(t, string(page.body), `<option value="all" selected>`)
	require.Empty(t, c.listVideos("").Data)
	for _, id := range []string{collection, "x"} {
		page = v.visit("/track?collection=" + id + "&links=youtu.be").requireStatus(http.StatusNotFound)
		require.Equal(t, "youtu.be", fieldValue(page.parseHTML(), "links"), "the page must keep the form, so that Back shows the links")
		require.Contains(t, string(page.body), "The form now adds the links to no collection.")
	}
}

func TestTrackPage_saysThatManyLinksTakeMinutes(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	page := v.post("/track", "links", strings.Join(videoURLs(1, 61), "\n")).requireStatus(http.StatusOK)
	require.Contains(t, string(page.body), "The numbers of so many links usually arrive within some minutes.")
	require.NotContains(t, string(page.body), "scheduled update", "a success must not look like a warning")
	require.Contains(t, string(page.body), `<noscript><p class="notice">`)
	few := v.post("/track", "links", videoURL(99))
	require.Contains(t, string(few.body), "The numbers usually arrive within a minute.")
}

func TestTrackPage_offersTheChosenCollectionAlsoIfTheTierHidesIt(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierBasic)
	v := c.newSignedInVisitor(t)
	for _, name := range []string{"Autumn", "Spring"} {
		id := c.createNamedCollection(name).String()
		require.Contains(t, string(v.visit("/track?collection="+id).requireStatus(http.StatusOK).body), `<option value="`+id+`" selected>`)
	}
}

func TestTrackPage_refusesTextThatIsTooLongForARequest(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	got := c.newSignedInVisitor(t).post("/track", "links", strings.Repeat("x", 2<<20)+" "+videoURL(1), "tracking_type", "new_only")
	require.Contains(t, string(got.requireStatus(http.StatusRequestEntityTooLarge).body), "The form may have at most 2 MiB")
	require.Empty(t, c.listVideos("").Data)
}
