package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
)

// TestRequestCost_collectionsWithCommonHashtagsUseLittleTime reads sums of 1,000 collections with the same hashtags and accounts. A join of
// collections, hashtags and videos would have 24 million rows.
//
//nolint:paralleltest // the test measures the time of the whole process
func TestRequestCost_collectionsWithCommonHashtagsUseLittleTime(t *testing.T) {
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	createVideosWithManyLabels(t, c, 4_800, 0)
	collections := make([]backfill.SeedCollection, 1_000)
	for i := range collections {
		collections[i] = backfill.SeedCollection{ID: store.NewID(), Name: fmt.Sprintf("Collection %03d", i), CreatedAt: store.InstantOf(a.Clock.Now())}
		if i > 0 {
			collections[i].ParentID = &collections[0].ID
		}
	}
	require.NoError(t, backfill.Seed(t.Context(), a.Org(c.org.ID), backfill.SeedBatch{Collections: collections}))
	addTags := func(from, to, each int) {
		for n := from; n < to; n++ {
			a.Exec(t, fmt.Sprintf(`INSERT INTO video_hashtags (organisation_id, tag, video_id) SELECT organisation_id, 'tag%d', id FROM videos LIMIT %d`, n, each))
			a.Exec(t, fmt.Sprintf(`INSERT INTO collection_hashtags (organisation_id, collection_id, tag, added_at) SELECT organisation_id, id, 'tag%d', 0 FROM collections`, n))
		}
	}
	addTags(0, 5, 4_800)
	a.Exec(t, `INSERT INTO collection_accounts (organisation_id, collection_id, account_id, added_at)
 SELECT c.organisation_id, c.id, a.id, 0 FROM collections c JOIN accounts a ON a.organisation_id = c.organisation_id`)
	root := "/collections/" + collections[0].ID.String()
	get := func(path string) response {
		before := measureCost(t)
		got := c.send(http.MethodGet, path, nil)
		used := measureCost(t).cpu - before.cpu
		t.Logf("%s: status %d, %v of processor time", path, got.StatusCode, used)
		require.Less(t, used, maxRequestCPU, path)
		return got
	}
	require.EqualValues(t, 4_800, c.readCollection(collections[0].ID).VideoCount.MustGet())
	get("/collections?limit=1&order_by=video_count").requireStatus(http.StatusOK)
	get(root + "/statistics?include_children=true").requireStatus(http.StatusOK)
	get(root + "/history?include_children=true").requireStatus(http.StatusOK)

	addTags(5, 60, 4_800)
	get("/collections?limit=1&order_by=name").requireStatus(http.StatusOK)
	get("/collections?limit=1&order_by=video_count").requireStatus(http.StatusOK)
	require.Contains(t, get(root+"/statistics?include_children=true&start_date="+a.daysAgo(1)).requireProblem(http.StatusConflict, server.CodeCollectionTooLarge).Detail,
		"more than 200000 videos with their hashtags")
	a.Exec(t, `INSERT INTO collection_videos (organisation_id, collection_id, video_id, added_at)
 SELECT c.organisation_id, c.id, v.id, 0 FROM collections c JOIN (SELECT organisation_id, id FROM videos LIMIT 500) AS v ON v.organisation_id = c.organisation_id`)
	get("/collections?limit=1&order_by=video_count").requireProblem(http.StatusConflict, server.CodeCollectionTooLarge)
	page := c.newSignedInVisitor(t).visit("/collection").requireStatus(http.StatusOK)
	require.Contains(t, string(page.body), "more than 500000 added videos and accounts")
	require.Contains(t, string(page.body), "Collection 999", "the page must list the collections without their numbers")
}

func TestSharePage_readsTheHistoryOfTheVideosOnceAndItsImageReadsNoListOfVideos(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		c.addVideos(collection, c.track(videoURL(1)))
		a.fetch(factsWithViews(5))
		settings := map[string]any{"metrics": []string{"views"}, "show_history": true}
		path := c.shareCollection(collection, "public", map[string]any{"display_settings": settings})
		visitor := &visitor{app: a, t: t}
		for n, want := range []struct {
			suffix             string
			histories, members int
		}{{"/card.png", 1, 0}, {"", 0, 1}, {"/card.png", 0, 0}} {
			if n == 1 {
				visitor.visit(path + "?page=1") // after a change of the data, the first list reads its order in an additional statement
			}
			a.Guard.Statements()
			visitor.visit(path + want.suffix).requireStatus(http.StatusOK)
			var histories, members int
			for _, statement := range a.Guard.Statements() {
				histories += strings.Count(statement, "wanted AS MATERIALIZED")
				members += strings.Count(statement, "videos.title")
			}
			require.Equal(t, []int{want.histories, want.members}, []int{histories, members}, "%d: %s", n, want.suffix)
		}
	})
}
