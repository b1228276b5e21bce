package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// mainText returns the words of the element "main" of a page, separated by single spaces.
func mainText(page response) string {
	return strings.Join(strings.Fields(textOf(findElements(page.parseHTML(), "main")[0])), " ")
}

func TestChosenVideos_canBeStoppedAndTrackedAgain(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		v := c.newSignedInVisitor(t)
		first, second, unknown := videos[0].String(), videos[1].String(), uuid.NewString()
		list := "/video?order_by=latest_likes&page=1"
		for _, page := range []string{list, "/collection/" + collection.String()} {
			require.Contains(t, string(v.visit(page).requireStatus(http.StatusOK).body), `formaction="/video/chosen"`, page)
		}
		form := v.visit("/video/chosen?" + url.Values{"video": {first, second, first}, "back": {list}}.Encode()).requireStatus(http.StatusOK)
		require.Contains(t, mainText(form), "Stop tracking 2 videos")
		require.Contains(t, string(form.body), `href="/video/tiktok/`+second+`"`)

		removed := func(id string) bool {
			return decode[client.Video](c.send(http.MethodGet, "/videos/"+id, nil).requireStatus(http.StatusOK)).Removed
		}
		change := func(action string, ids ...string) response {
			fields := []string{"back", list}
			for _, id := range ids {
				fields = append(fields, "video", id)
			}
			return v.post("/video/chosen/"+action, fields...)
		}
		change("stop", first).requireStatus(http.StatusOK)
		stopped := change("stop", first, second, unknown).requireStatus(http.StatusOK)
		for _, text := range []string{"Tracking stopped: 1 video The numbers so far are kept.", "Stopped before: 1 video", "Not stopped: 1 video Your organisation tracks no video with this id.", "Track 1 video again"} {
			require.Contains(t, mainText(stopped), text)
		}
		require.Equal(t, []bool{true, true}, []bool{removed(first), removed(second)})
		require.Equal(t, second, fieldValue(stopped.parseHTML(), "video"), "the result must offer to track the stopped video again, and no other")
		require.Equal(t, list, strings.ReplaceAll(linkWithText(stopped.parseHTML(), "Back to the list"), "&amp;", "&"))

		change("track", second).requireStatus(http.StatusOK)
		again := mainText(change("track", first, second, unknown).requireStatus(http.StatusOK))
		for _, text := range []string{"Tracked again: 1 video", "Tracked already: 1 video", "Not tracked: 1 video Your organisation has no video with this id."} {
			require.Contains(t, again, text)
		}
		require.Equal(t, []bool{false, false}, []bool{removed(first), removed(second)})

		other := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
		require.Contains(t, mainText(other.post("/video/chosen/stop", "video", second, "back", list).requireStatus(http.StatusOK)), "Not stopped: 1 video")
		require.False(t, removed(second))
	})
}

func TestChosenVideos_canBeAddedToACollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		_, videos := createDashboardData(a, c)
		v := c.newSignedInVisitor(t)
		first, second, made := videos[0].String(), videos[1].String(), c.createNamedCollection("Chosen").String()
		require.Contains(t, mainText(v.post("/video/chosen/collect", "video", first, "collection", made, "back", "/video").requireStatus(http.StatusOK)), "Added to Chosen: 1 video")
		added := mainText(v.post("/video/chosen/collect", "video", first, "video", second, "collection", made, "back", "/video").requireStatus(http.StatusOK))
		require.Contains(t, added, "Added to Chosen: 1 video In Chosen before: 1 video")
		require.Len(t, decode[client.CollectionVideoPage](c.send(http.MethodGet, "/collections/"+made+"/videos", nil).requireStatus(http.StatusOK)).Data, 2)
		none := v.post("/video/chosen/collect", "video", first, "back", "/video").requireStatus(http.StatusBadRequest)
		require.Contains(t, mainText(none), "Choose a collection.")
		require.Contains(t, mainText(none), "Add 1 video to the collection")
	})
}

func TestChosenVideos_canCountFromAPastDay(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		_, videos := createDashboardData(a, c)
		v := c.newSignedInVisitor(t)
		first, second, made := videos[0], videos[1], c.createNamedCollection("October")
		times := func() map[uuid.UUID]store.Instant {
			t.Helper()
			got, err := a.Org(c.org.ID).TimesOfAdding(t.Context(), made, "video", []uuid.UUID{first, second})
			require.NoError(t, err)
			return got
		}
		endOf := func(day string) store.Instant {
			begins, err := time.Parse(time.DateOnly, day)
			require.NoError(t, err)
			return store.InstantOf(begins.AddDate(0, 0, 1)) - 1
		}
		add := func(day string, ids ...uuid.UUID) response {
			fields := []string{"collection", made.String(), "back", "/collection/" + made.String(), "counts_from", day}
			for _, id := range ids {
				fields = append(fields, "video", id.String())
			}
			return v.post("/video/chosen/collect", fields...)
		}
		form := v.visit("/video/chosen?" + url.Values{"video": {first.String()}, "back": {"/collection/" + made.String()}}.Encode()).requireStatus(http.StatusOK)
		require.Contains(t, mainText(form), "Count gains from")
		require.Contains(t, string(form.body), `<input type="date" name="counts_from" value="" min="2005-01-01" max="`+a.daysAgo(0)+`">`)

		day := a.daysAgo(20)
		require.Contains(t, mainText(add(day, first).requireStatus(http.StatusOK)), "Added to October: 1 video Gains count from "+day+". A video that is also in the collection")
		require.Equal(t, map[uuid.UUID]store.Instant{first: endOf(a.daysAgo(21))}, times())

		// The video that was added before gets the new day, and Undo leaves it in the collection.
		day = a.daysAgo(10)
		added := add(day, first, second).requireStatus(http.StatusOK)
		require.Contains(t, mainText(added), "Added to October: 1 video Gains count from "+day)
		require.Contains(t, mainText(added), "In October before: 1 video Gains count from "+day)
		require.Equal(t, map[uuid.UUID]store.Instant{first: endOf(a.daysAgo(11)), second: endOf(a.daysAgo(11))}, times())
		action, fields := undoForm(added.parsePage())
		require.Contains(t, fields, second.String())
		require.NotContains(t, fields, first.String(), "Undo must not remove a video that only got another day")
		v.post(action, fields...).requireStatus(http.StatusSeeOther)
		require.Equal(t, map[uuid.UUID]store.Instant{first: endOf(a.daysAgo(11))}, times())

		changed := add(a.daysAgo(15), first).requireStatus(http.StatusOK)
		action, _ = undoForm(changed.parsePage())
		require.Empty(t, action)
		for _, refused := range []string{a.daysAgo(-1), "2004-12-31", "1.10."} {
			page := add(refused, first, second).requireStatus(http.StatusBadRequest)
			require.Contains(t, mainText(page), `"Count gains from" `)
			require.Equal(t, refused, fieldValue(page.parseHTML(), "counts_from"), "the page must keep the day that was entered")
		}
		require.Equal(t, map[uuid.UUID]store.Instant{first: endOf(a.daysAgo(16))}, times())
		require.NotContains(t, mainText(add("", second).requireStatus(http.StatusOK)), "Gains count from")
	})
}

func TestChosenVideos_canBeRefreshed(t *testing.T) {
	t.Parallel()
	a, rates := newAppWithExceededLimit(t)
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	fields := []string{"back", "/video"}
	for n := range 2 {
		fields = append(fields, "video", c.track(videoURL(n)).String())
	}
	a.fetch(factsWithViews(10))
	require.Contains(t, mainText(v.post("/video/chosen/refresh", fields...).requireStatus(http.StatusOK)), "Not refreshed, because the numbers are less than 4 hours old: 2 videos")
	a.Clock.Advance(5 * time.Hour)
	unknown := append(slices.Clone(fields), "video", uuid.NewString())
	refreshed := mainText(v.post("/video/chosen/refresh", unknown...).requireStatus(http.StatusOK))
	require.Contains(t, refreshed, "Refresh requested: 2 videos New numbers usually arrive within a minute.")
	require.Contains(t, refreshed, "Not refreshed: 1 video")
	require.NotContains(t, refreshed, "Refresh the other")
	rates.limitName.Store("refreshVideo")
	refused := mainText(v.post("/video/chosen/refresh", fields...).requireStatus(http.StatusOK))
	require.Contains(t, refused, "Not refreshed: 2 videos")
	require.Contains(t, refused, "times a minute, on pages and in programs together. Try again in 42 seconds.")
	require.Contains(t, refused, "Refresh the other 2 videos")
}

func TestChosenVideos_refusesRequestsThatNameNoVideoOrNoList(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	id := c.track(videoURL(1)).String()
	require.Contains(t, mainText(v.post("/video/chosen/stop", "back", "/video").requireStatus(http.StatusBadRequest)), "Choose at least one video")
	require.Contains(t, mainText(v.visit("/video/chosen?back=%2Fvideo").requireStatus(http.StatusBadRequest)), "Choose at least one video")
	require.Contains(t, mainText(v.visit("/video/chosen?back=%2Fvideo&video=x").requireStatus(http.StatusBadRequest)), "must be the id of a video")
	for _, outside := range []string{"", "//example.com/video", "https://example.com/video", "video", "/%zz"} {
		v.post("/video/chosen/stop", "video", id, "back", outside).requireStatus(http.StatusBadRequest)
	}
	v.post("/video/chosen/other", "video", id, "back", "/video").requireStatus(http.StatusNotFound)
	many := url.Values{"back": {"/video"}}
	for range 51 {
		many.Add("video", uuid.NewString())
	}
	require.Contains(t, mainText(v.visit("/video/chosen?"+many.Encode()).requireStatus(http.StatusBadRequest)), "You chose 51 videos; at most 50 can be changed at once.")
	require.False(t, decode[client.Video](c.send(http.MethodGet, "/videos/"+id, nil).requireStatus(http.StatusOK)).Removed)
	readOnly := a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t)
	require.NotContains(t, string(readOnly.visit("/video/chosen?back=%2Fvideo&video="+id).requireStatus(http.StatusOK).body), "Stop tracking")
}

func TestChosenVideos_offersOnlyChangesThatFitTheTracking(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	first, second, third, unknown := c.track(videoURL(1)).String(), c.track(videoURL(2)).String(), c.track(videoURL(3)).String(), uuid.NewString()
	c.stopVideos(http.StatusOK, first, second)
	open := func(ids ...string) response {
		return v.visit("/video/chosen?" + url.Values{"video": ids, "back": {"/video"}}.Encode()).requireStatus(http.StatusOK)
	}
	// offered returns the ids that the form of each change sends.
	offered := func(page response) map[string][]string {
		out := map[string][]string{}
		for _, form := range findElements(page.parseHTML(), "form") {
			for _, field := range findElements(form, "input") {
				if action, ok := strings.CutPrefix(attributeValue(form, "action"), "/video/chosen/"); ok && attributeValue(field, "name") == "video" {
					out[action] = append(out[action], attributeValue(field, "value"))
				}
			}
		}
		return out
	}
	mixed := open(first, third, second, unknown)
	require.Equal(t, map[string][]string{"track": {first, second}, "refresh": {third}, "stop": {third}}, offered(mixed))
	require.Contains(t, mainText(mixed), "2 of them are not tracked. Track 2 videos again Refresh 1 video Stop tracking 1 video")
	stopped := open(first, second)
	require.Equal(t, map[string][]string{"track": {first, second}}, offered(stopped))
	require.Contains(t, mainText(stopped), "These videos are not tracked.")
	require.NotContains(t, mainText(stopped), "Stop tracking")
	require.Equal(t, map[string][]string{"refresh": {third}, "stop": {third}}, offered(open(third)))
}
