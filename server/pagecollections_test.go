package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
)

func TestPages_offerMoreThan1000Collections(t *testing.T) {
	t.Parallel()
	db := newSQLite(t)
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, MaxCollections: store.MaxLabels})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	a := newApp(t, db, func(o *server.Options) { o.Store = s })
	c := a.newCaller(t, store.TierPremium)
	_, videos := createDashboardData(a, c)
	batch := make([]backfill.SeedCollection, 1498)
	for n := range batch {
		batch[n] = backfill.SeedCollection{ID: store.NewID(), Name: fmt.Sprintf("Campaign %04d", n), CreatedAt: store.InstantOf(a.Clock.Now())}
	}
	require.NoError(t, backfill.Seed(t.Context(), s.Org(c.org.ID), backfill.SeedBatch{Collections: batch}))
	all := c.collections("order_by=name&order_direction=asc").Data
	last := all[len(all)-1]
	child := c.createNamedCollection("Zebra", last.ID)
	v := c.newSignedInVisitor(t)
	video := c.video(videos[0].String())
	for path, lists := range map[string]int{ // path and number of lists of collections on the page
		"/track": 1,
		"/video": 1,
		"/video/chosen?back=%2Fvideo&video=" + videos[0].String(): 1,
		"/video/tiktok/" + videos[0].String():                     1,
		"/account/tiktok/" + video.LinkedAccountID.String():       1,
		"/collection": 1,
	} {
		options := 0
		for _, option := range findElements(v.visit(path).requireStatus(http.StatusOK).parsePage(), "option") {
			if value := attributeValue(option, "value"); value == last.ID.String() || value == child.String() || value == all[0].ID.String() {
				options++
			}
		}
		require.Equal(t, 3*lists, options, path)
	}
	list := v.visit("/collection").requireStatus(http.StatusOK)
	require.Len(t, list.rows(), 1+1500)
	require.NotContains(t, string(list.body), "The first ")
	require.Contains(t, string(v.visit("/collection/"+child.String()).body), `href="/collection/`+last.ID.String()+`"`, "the page of a collection must link to its parent")
	require.Contains(t, string(v.visit("/collection/"+last.ID.String()).body), `href="/collection/`+child.String()+`"`, "the page of a collection must link to its subcollections")
	require.Contains(t, string(v.visit("/search?q=zebra").body), `href="/collection/`+child.String()+`"`)
	require.Contains(t, string(v.visit("/video?collections="+child.String()).body), `<option value="`+child.String()+`" selected>`)
	v.post("/video/tiktok/"+videos[0].String()+"/collect", "collection", child.String()).requireStatus(http.StatusSeeOther)
	require.Len(t, c.listCollectionVideos(child, "").Data, 1)
}

func TestCollectionsPage_showsTheNumbersAndTheSharePageOfEachCollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		spring, videos := createDashboardData(a, c)
		ids := []uuid.UUID{spring, c.createNamedCollection("Summer", spring), c.createNamedCollection("Autumn"), c.createNamedCollection("Winter")}
		summer, autumn := ids[1], ids[2]
		c.addVideos(summer, videos[2])
		c.send(http.MethodDelete, "/videos/"+videos[1].String(), nil).requireStatus(http.StatusOK)
		c.shareCollection(spring, "public", nil)
		c.shareCollection(summer, "protected", map[string]any{"password": "correct horse"})
		c.shareCollection(autumn, "public", map[string]any{"share_expires_at": a.Clock.Now().Add(time.Hour)})
		a.Clock.Advance(2 * time.Hour)
		v := c.newSignedInVisitor(t)

		rows := v.visit("/collection").requireStatus(http.StatusOK).rows()
		for n, share := range []string{"public", "with password", "closed", "none"} {
			var views *int64
			for _, video := range c.listCollectionVideos(ids[n], "").Data {
				if views == nil {
					views = new(int64(0))
				}
				views = new(*views + *video.LatestViews)
			}
			row := findRow(t, rows, "/collection/"+ids[n].String())
			require.Equal(t, []string{digits(new(c.readCollection(ids[n]).VideoCount.MustGet())), digits(views)}, row.values)
			require.Contains(t, row.text, share)
		}
		require.Equal(t, "2", findRow(t, rows, "/collection/"+spring.String()).values[0], "a stopped video must not count")

		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(time.Second)
		masked := v.visit("/collection").requireStatus(http.StatusOK).rows()
		at := slices.IndexFunc(masked, func(r pageRow) bool { return r.link == "/collection/"+autumn.String() })
		require.Equal(t, []string{"", ""}, masked[at].values, "a tier that hides numbers must hide those of collections")
	})
}

func TestCollectionsPage_asksBeforeItCreatesASecondCollectionWithTheSameName(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	parent := c.createNamedCollection("Spring").String()
	v := c.newSignedInVisitor(t)
	asked := v.post("/collection", "name", " spring ", "parent", parent, "hashtags", "#a").requireStatus(http.StatusConflict)
	page := asked.parseHTML()
	require.Contains(t, alerts(page), `There is already a collection with the name "Spring".`)
	require.Equal(t, " spring ", fieldValue(page, "name"))
	require.Equal(t, "#a", fieldValue(page, "hashtags"))
	require.Contains(t, string(asked.body), `<option value="`+parent+`" selected>`)
	require.Len(t, c.collections("").Data, 1)

	confirmed := fieldValue(page, "same_name")
	c.createNamedCollection("Summer")
	v.post("/collection", "name", "Summer", "same_name", confirmed).requireStatus(http.StatusConflict)
	v.post("/collection", "name", " spring ", "same_name", confirmed).requireStatus(http.StatusSeeOther)
	require.Len(t, c.collections("").Data, 3)
}

func TestVideosPage_namesTheCollectionOfItsFilter(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	autumn, spring := c.createNamedCollection("Autumn").String(), c.createNamedCollection("Spring").String()
	v := c.newSignedInVisitor(t)
	chosen := func(filter string) string {
		for _, option := range findElements(v.visit("/video?collections="+url.QueryEscape(filter)).parsePage(), "option") {
			if slices.ContainsFunc(option.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) && attributeValue(option, "value") == filter {
				return textOf(option)
			}
		}
		return "All"
	}
	require.Equal(t, "Spring", chosen(spring))
	require.Equal(t, "Autumn,Spring", chosen("Autumn,Spring"))
	unknown := uuid.NewString()
	require.Equal(t, unknown, chosen(unknown))
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(time.Second)
	require.Equal(t, "Autumn", chosen(autumn))
	require.Equal(t, "Spring", chosen(spring), "the tier hides this collection in the list of collections")
}

func TestCollectionPage_namesTheEffectsOfItsDeletion(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	top := c.createNamedCollection("Campaigns")
	parent := c.createNamedCollection("Launch", top)
	c.createNamedCollection("Germany", parent)
	c.createNamedCollection("France", parent)
	c.addVideos(parent, c.track(videoURL(1)))
	v, page := c.newSignedInVisitor(t), "/collection/"+parent.String()
	text := textOf(v.visit(page).parsePage())
	require.Contains(t, text, "2 subcollections move up to \"Campaigns\".")
	require.Contains(t, textOf(v.visit("/collection/"+top.String()).parsePage()), "1 subcollection moves up to the top level.")
	require.NotContains(t, text, "share page closes")
	require.NotContains(t, text, "in the list of reports")

	c.shareCollection(parent, "public", nil)
	report := c.createReport(parent)
	text = textOf(v.visit(page).parsePage())
	require.Contains(t, text, "Its share page closes immediately, and its address never opens again.")
	require.Contains(t, text, "1 report stays in the list of reports on the page Collections.")

	link := "/collection/report/" + report.String()
	require.NotContains(t, textOf(v.visit("/collection").parsePage()), "was deleted")
	v.post(page + "/delete").requireStatus(http.StatusSeeOther)
	list := v.visit("/collection").requireStatus(http.StatusOK)
	require.Contains(t, string(list.body), link)
	require.Contains(t, textOf(list.parsePage()), "Launchwith subcollections · the collection was deleted")
	v.visit(link).requireStatus(http.StatusOK)
	other := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	require.NotContains(t, string(other.visit("/collection").body), "Report 1")
}
