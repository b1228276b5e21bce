package server_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

func TestChosenVideos_canBeRemovedFromACollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		spring, videos := createDashboardData(a, c)
		other := c.createNamedCollection("Autumn")
		first, second := videos[0].String(), videos[1].String()
		v := c.newSignedInVisitor(t)
		list := "/collection/" + spring.String() + "?page=1"
		c.addVideos(other, videos[1])

		// The page of the chosen videos offers the collection whose list the visitor came from, and the page asks before anything changes.
		require.Contains(t, string(v.visit(list).body), `formaction="/video/chosen/remove" name="back"`)
		require.NotContains(t, string(v.visit("/video").body), `formaction="/video/chosen/remove"`)
		chosen := v.visit("/video/chosen?" + url.Values{"video": {first}, "back": {list}}.Encode()).requireStatus(http.StatusOK)
		require.Contains(t, string(chosen.body), `<option value="`+spring.String()+`" selected>`)
		require.Contains(t, string(chosen.body), `formmethod="get" formaction="/video/chosen/remove"`)
		asked := v.visit("/video/chosen/remove?" + url.Values{"video": {first, second}, "back": {list}}.Encode()).requireStatus(http.StatusOK)
		for _, text := range []string{"no longer count in the sums and gains of the collection on any day", "counts from that day on, and its gain starts anew", "The videos stay tracked", "Remove 2 videos from the collection"} {
			require.Contains(t, mainText(asked), text)
		}
		require.Equal(t, spring.String(), fieldValue(asked.parseHTML(), "collection"))
		count := func(collection uuid.UUID) int { return len(c.listCollectionVideos(collection, "").Data) }
		before := count(spring)

		removed := v.post("/video/chosen/remove", "video", first, "collection", spring.String(), "back", list).requireStatus(http.StatusOK)
		name := c.readCollection(spring).Name
		require.Contains(t, mainText(removed), "Removed from "+name+": 1 video They stay tracked.")
		require.Contains(t, mainText(removed), "Add 1 video again")
		require.Contains(t, mainText(removed), "its gain starts anew")
		require.Equal(t, before-1, count(spring))
		require.Contains(t, mainText(v.post("/video/chosen/remove", "video", first, "collection", spring.String(), "back", list)), "Not in "+name+" before: 1 video")
		require.Equal(t, spring.String(), fieldValue(removed.parseHTML(), "collection"), "the page must offer to add the video to the same collection")

		// A video that is also in the collection through its account stays, and the page says why.
		account := *c.video(second).LinkedAccountID
		c.send(http.MethodPost, "/collections/"+other.String()+"/accounts", map[string]any{"account_ids": []uuid.UUID{account}}).requireStatus(http.StatusOK)
		stays := mainText(v.post("/video/chosen/remove", "video", second, "collection", other.String(), "back", list).requireStatus(http.StatusOK))
		require.Contains(t, stays, "Still in Autumn: 1 video Its account is in the collection")
		require.NotContains(t, stays, "again")

		require.Contains(t, mainText(v.visit("/video/chosen/remove?back=%2Fvideo&video="+first).requireStatus(http.StatusBadRequest)), "Choose a collection.")
		v.post("/video/chosen/remove", "video", first, "back", list).requireStatus(http.StatusBadRequest)
		otherVisitor := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
		otherVisitor.post("/video/chosen/remove", "video", second, "collection", spring.String(), "back", list).requireStatus(http.StatusNotFound)
		require.Equal(t, before-1, count(spring))
	})
}

func TestChosenVideos_sayThatAHashtagKeepsAVideoInItsCollection(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.track(videoURL(1)).String()
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(10)), Title: new("In bloom #Spring")}
	})
	tagged := decode[client.CreatedCollection](c.send(http.MethodPost, "/collections", map[string]any{"name": "Tagged", "hashtags": []string{"spring"}}).requireStatus(http.StatusCreated)).ID.String()
	v := c.newSignedInVisitor(t)
	require.Contains(t, mainText(v.visit("/video/chosen/remove?back=%2Fvideo&video="+id+"&collection="+tagged)), "through its account or a hashtag (#spring) stays in it")
	require.Contains(t, mainText(v.post("/video/chosen/remove", "video", id, "collection", tagged, "back", "/video")), "Still in Tagged: 1 video Its caption has a hashtag of the collection.")
}

func TestCollectionPage_removesAnAccount(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	spring, videos := createDashboardData(a, c)
	account := c.video(videos[0].String()).LinkedAccountID.String()
	c.send(http.MethodPost, "/collections/"+spring.String()+"/accounts", map[string]any{"account_ids": []string{account}}).requireStatus(http.StatusOK)
	v := c.newSignedInVisitor(t)
	page := "/collection/" + spring.String()
	require.Contains(t, mainText(v.visit(page)), "no longer count in the sums and gains of the collection on any day")
	require.Contains(t, mainText(v.visit(page)), "The numbers are those of today.")
	require.Contains(t, string(v.visit(page+"?start="+a.daysAgo(3)+"&end="+a.daysAgo(1)).body), "<h2>Accounts now</h2>")
	target := v.post(page+"/remove", "account", account).requireStatus(http.StatusSeeOther).Header.Get("Location")
	after := mainText(v.visit(target).requireStatus(http.StatusOK))
	require.Contains(t, after, "The account was removed from the collection.")
	require.NotContains(t, after, "Remove an account")
	v.post(page+"/remove", "account", account).requireStatus(http.StatusNotFound)
	v.post(page+"/remove", "account", "x").requireStatus(http.StatusBadRequest)
	readOnly := a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t)
	readOnly.post(page+"/remove", "account", account).requireStatus(http.StatusForbidden)
}

func TestCollectionPage_changesNameParentAndHashtags(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	parent := c.createNamedCollection("Year")
	spring := c.createNamedCollection("Spring")
	child := c.createNamedCollection("April", spring)
	v := c.newSignedInVisitor(t)
	page := "/collection/" + spring.String()
	shown := v.visit(page).requireStatus(http.StatusOK)
	require.Contains(t, string(shown.body), `<option value="`+parent.String()+`">`)
	require.NotContains(t, string(shown.body), `<option value="`+child.String()+`"`, "a collection cannot move below itself")
	etag := fieldValue(shown.parseHTML(), "version")

	target := v.post(page+"/edit", "version", etag, "name", " Summer ", "parent", parent.String(), "hashtags", "#sun, sea").requireStatus(http.StatusSeeOther).Header.Get("Location")
	require.Contains(t, mainText(v.visit(target)), "The collection was changed.")
	got := c.readCollection(spring)
	require.Equal(t, "Summer", got.Name)
	require.Equal(t, parent, *got.ParentID)
	require.Equal(t, []string{"sea", "sun"}, got.Hashtags)

	stale := v.post(page+"/edit", "version", etag, "name", "Autumn", "parent", "", "hashtags", "").requireStatus(http.StatusPreconditionFailed)
	require.Contains(t, alerts(stale.parseHTML()), "The collection was changed meanwhile. Nothing was saved.")
	require.Equal(t, "Autumn", fieldValue(stale.parseHTML(), "name"))
	below := v.post(page+"/edit", "name", "Autumn", "parent", child.String(), "hashtags", "").requireStatus(http.StatusConflict)
	require.Contains(t, string(below.body), `name="name" required maxlength="100" value="Autumn"`)
	wrong := v.post(page+"/edit", "name", "Autumn", "parent", "", "hashtags", "#a#b").requireStatus(http.StatusBadRequest)
	require.NotEmpty(t, alerts(wrong.parseHTML()))
	require.Equal(t, "Summer", c.readCollection(spring).Name)

	v.post(page+"/edit", "name", "Winter", "hashtags", "").requireStatus(http.StatusSeeOther)
	require.Equal(t, parent, *c.readCollection(spring).ParentID, "a form without a list of parents must not move the collection")
	v.post(page+"/edit", "name", "Winter", "parent", "", "hashtags", "").requireStatus(http.StatusSeeOther)
	got = c.readCollection(spring)
	require.Nil(t, got.ParentID)
	require.Empty(t, got.Hashtags)
}
