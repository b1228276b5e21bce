package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// collections sends GET /collections with the given query and returns the decoded response.
func (c *caller) collections(query string) client.CollectionList {
	c.t.Helper()
	return decode[client.CollectionList](c.send(http.MethodGet, "/collections?"+query, nil).requireStatus(http.StatusOK))
}

// collectionNames sends GET /collections and returns the names of the collections, separated by commas, in the order of the response.
func (c *caller) collectionNames(query string) string {
	c.t.Helper()
	var names []string
	for _, found := range c.collections(query).Data {
		names = append(names, found.Name)
	}
	return strings.Join(names, ",")
}

func TestListCollections_returnsTheSameMembersAsTheReadOfOneCollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		parent := c.createNamedCollection("Parent")
		child := c.createCollection(map[string]any{"name": "Child", "parent_id": parent, "access": "public", "hashtags": []string{"zoo"}})
		closes := a.Clock.Now().UTC().Add(90 * time.Minute)
		c.patchCollection(child, map[string]any{"share_expires_at": closes, "display_settings": map[string]any{"columns": []string{"views"}}}).requireStatus(http.StatusNoContent)
		want := decode[client.Collection](c.send(http.MethodGet, "/collections/"+child.String(), nil).requireStatus(http.StatusOK))
		require.Equal(t, closes, want.ShareExpiresAt.UTC())
		require.NotNil(t, want.Hash)
		require.NotNil(t, want.DisplaySettings)
		for _, query := range []string{"order_direction=desc", "parent_id=" + parent.String(), "parent_id=null&include_children=true&order_direction=desc"} {
			require.Equal(t, want, c.collections(query).Data[0], query)
		}
	})
}

// Requirements in docs/coverage.md: 4.1-01, 4.1-02, 4.1-03, 4.1-04, 4.1-09
func TestListCollections_filtersByParent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		one := c.createNamedCollection("one")
		two := c.createNamedCollection("two", one)
		c.createNamedCollection("three", two)
		c.createNamedCollection("four", one)
		c.createNamedCollection("five")
		for query, want := range map[string]string{
			"":                                     "one,two,three,four,five",
			"include_children=true":                "one,two,three,four,five",
			"include_children=false":               "one,two,three,four,five",
			"parent_id=null":                       "one,five",
			"parent_id=null&include_children=true": "one,two,three,four,five",
			"parent_id=" + one.String():            "two,four",
			"parent_id=" + strings.ToUpper(one.String()):                   "two,four",
			"parent_id=" + one.String() + "&include_children=false":        "two,four",
			"parent_id=" + one.String() + "&include_children=true":         "two,three,four",
			"parent_id=" + two.String() + "&include_children=true":         "three",
			"parent_id=" + unknownID:                                       "",
			"parent_id=" + unknownID + "&include_children=true":            "",
			"parent_id=null&limit=1":                                       "one",
			"parent_id=" + one.String() + "&include_children=true&limit=2": "two,three",
		} {
			got := c.collections(query + "&order_direction=asc")
			require.Equal(t, want, c.collectionNames(query+"&order_direction=asc"), query)
			require.Equal(t, len(got.Data), int(*got.Count), query)
			require.Nil(t, got.Pagination, query)
			paged := c.collections(query + "&order_direction=asc&paginated=true")
			require.Equal(t, got.Data, paged.Data, query)
			require.Nil(t, paged.Count, query)
			if !strings.Contains(query, "limit") {
				require.Equal(t, int64(len(got.Data)), paged.Pagination.Total, query)
			}
		}
	})
}

// Requirements in docs/coverage.md: 4.1-07, 4.1-08
func TestListCollections_sortsByTheParameterOrderBy(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		zoo, apple, eclair, beach := c.createNamedCollection("zoo"), c.createNamedCollection("Apple"), c.createNamedCollection("éclair"), c.createNamedCollection("beach")
		video, other := c.track(videoURL(1)), c.track(videoURL(2))
		account := *c.video(video.String()).LinkedAccountID
		c.addVideos(apple, video, other)
		c.addVideos(zoo, video)
		c.addAccounts(eclair, account)
		c.patchCollection(apple, map[string]any{"access": "public"}).requireStatus(http.StatusNoContent)
		_ = beach
		for query, want := range map[string]string{
			"":                                  "beach,éclair,Apple,zoo",
			"order_by=created_at":               "beach,éclair,Apple,zoo",
			"order_direction=asc":               "zoo,Apple,éclair,beach",
			"order_by=updated_at":               "Apple,beach,éclair,zoo",
			"order_by=name&order_direction=asc": "Apple,beach,zoo,éclair",
			"order_by=name":                     "éclair,zoo,beach,Apple",
			"order_by=video_count":              "éclair,Apple,zoo,beach",
			"order_by=video_count&order_direction=asc":   "beach,zoo,Apple,éclair",
			"order_by=account_count":                     "éclair,beach,Apple,zoo",
			"order_by=account_count&order_direction=asc": "zoo,Apple,beach,éclair",
		} {
			require.Equal(t, want, c.collectionNames(query), query)
		}
	})
}

// Requirements in docs/coverage.md: 2.3-01, 2.3-02, 2.3-03, 2.3-04, 4.1-05, 4.1-06
func TestListCollections_pagesReturnEveryCollectionOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		video := c.track(tiktokLink)
		lastingIDs := map[uuid.UUID]bool{}
		for n := range 13 { // the clock does not advance, so all collections have the same creation time
			id := c.createCollection(map[string]any{"name": fmt.Sprintf("same %d", n/4)})
			lastingIDs[id] = true
			if n%3 == 0 {
				c.addVideos(id, video)
			}
		}
		for order := range store.CollectionOrders {
			for _, direction := range []string{"asc", "desc"} {
				list := "paginated=true&limit=5&order_by=" + order + "&order_direction=" + direction
				all := c.collections("order_by=" + order + "&order_direction=" + direction).Data
				var byPage, byCursor []client.Collection
				cursor := ""
				for page := 1; page <= 4; page++ {
					got := c.collections(fmt.Sprintf("%s&page=%d", list, page))
					require.Equal(t, int64(13), got.Pagination.Total)
					require.Equal(t, int64(3), got.Pagination.TotalPages)
					require.Equal(t, int32(page), got.Pagination.Page)
					require.Equal(t, int32(5), got.Pagination.Limit)
					require.Equal(t, page >= 3, got.Pagination.NextCursor == nil)
					byPage = append(byPage, got.Data...)
				}
				for {
					got := c.collections(list + cursor)
					byCursor = append(byCursor, got.Data...)
					if got.Pagination.NextCursor == nil {
						break
					}
					cursor = "&cursor=" + *got.Pagination.NextCursor
				}
				require.Equal(t, all, byPage, list)
				require.Equal(t, all, byCursor, list)
			}
		}
		t.Run("collections are created and deleted between the requests", func(t *testing.T) {
			timesReturned := map[uuid.UUID]int{}
			cursor := ""
			for {
				got := c.collections("paginated=true&limit=3&order_by=name&order_direction=asc" + cursor)
				for _, found := range got.Data {
					timesReturned[found.ID]++
				}
				if got.Pagination.NextCursor == nil {
					break
				}
				cursor = "&cursor=" + *got.Pagination.NextCursor
				c.createNamedCollection("a new collection")
				c.send(http.MethodDelete, "/collections/"+c.createNamedCollection("same 1").String(), nil).requireStatus(http.StatusOK)
			}
			for id := range lastingIDs {
				require.Equal(t, 1, timesReturned[id])
			}
		})
	})
}

// Requirements in docs/coverage.md: 4.1-05, 4.1-06, 4.1-08, 8-09, 8-10
func TestListCollections_refusesInvalidParameters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.createNamedCollection("one")
	c.createNamedCollection("two")
	next := *c.collections("paginated=true&limit=1").Pagination.NextCursor
	for query, want := range map[string]string{
		"parent_id=":                           "parent_id min_length",
		"parent_id=none":                       "parent_id pattern",
		"parent_id=NULL":                       "parent_id pattern",
		"parent_id=%7B" + unknownID + "%7D":    "parent_id max_length",
		"include_children=some":                "include_children type",
		"paginated=yes":                        "paginated type",
		"paginated=":                           "paginated empty",
		"limit=0":                              "limit minimum",
		"limit=5001":                           "limit maximum",
		"paginated=true&limit=5001":            "limit maximum",
		"paginated=true&page=0":                "page minimum",
		"page=2":                               "page conflict",
		"paginated=false&page=2":               "page conflict",
		"order_by=hash":                        "order_by enum",
		"order_by=Name":                        "order_by enum",
		"order_direction=up":                   "order_direction enum",
		"include_counts=true":                  "include_counts unknown_parameter",
		"cursor=" + next:                       "cursor conflict",
		"paginated=true&cursor=abc":            "cursor invalid_cursor",
		"paginated=true&page=2&cursor=" + next: "page conflict",
		"paginated=true&order_by=name&cursor=" + next:       "cursor invalid_cursor",
		"paginated=true&parent_id=null&cursor=" + next:      "cursor invalid_cursor",
		"paginated=true&order_direction=asc&cursor=" + next: "cursor invalid_cursor",
		"parent_id=null&parent_id=null":                     "parent_id repeated_parameter",
	} {
		p := c.send(http.MethodGet, "/collections?"+query, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.NotEmpty(t, p.Errors, query)
		require.Equal(t, want, *p.Errors[0].Name+" "+p.Errors[0].Code, query)
	}
	p := c.send(http.MethodGet, "/collections?order_by=hash", nil).problem(http.StatusBadRequest)
	require.Contains(t, p.Detail, "created_at, updated_at, name, video_count or account_count")
	require.Equal(t, "one", c.collectionNames("paginated=true&limit=1&page=1&cursor="+next), "page=1 must be allowed with a cursor, because it is the default")
	require.Equal(t, "one", c.collectionNames("paginated=true&include_children=true&cursor="+next), "a cursor must stay valid with include_children=true, because include_children has no effect without parent_id")
	require.Equal(t, int32(5000), c.collections("paginated=true").Pagination.Limit, "the default limit must be 5000")
	require.Empty(t, c.collections("paginated=true&page=2147483647").Data)
}

// Requirements in docs/coverage.md: 4-02, 4.1-01, 4.1-15, 8-12
func TestListCollections_returnsOneMaskedCollectionToLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		video := c.track(tiktokLink)
		beach, apple := c.createNamedCollection("beach"), c.createNamedCollection("apple")
		c.addVideos(beach, video)
		next := *c.collections("paginated=true&limit=1&order_by=name").Pagination.NextCursor
		for _, tier := range []store.Tier{store.TierLimited, store.TierBasic} {
			require.NoError(t, a.SetTier(t.Context(), c.org.ID, tier))
			a.Clock.Advance(time.Second)
			list := c.collections("order_by=name&order_direction=asc")
			require.Equal(t, int32(1), *list.Count)
			require.Equal(t, apple, list.Data[0].ID, "a lower tier must get only one collection: the first one in the requested sort order")
			require.True(t, *list.Data[0].MetricsMasked)
			list = c.collections("order_by=name&paginated=true&limit=10")
			require.Equal(t, beach, list.Data[0].ID)
			require.Len(t, list.Data, 1)
			require.Equal(t, client.Pagination{Total: 1, Page: 1, Limit: 10, TotalPages: 1}, *list.Pagination)
			for _, query := range []string{"paginated=true&order_by=name&page=2", "paginated=true&order_by=name&cursor=" + next} {
				list = c.collections(query)
				require.Empty(t, list.Data, query)
				require.Equal(t, int64(1), list.Pagination.Total)
			}
			require.Equal(t, int32(0), *c.collections("parent_id=" + unknownID).Count)

			raw := c.send(http.MethodGet, "/collections/"+beach.String()+"?include_counts=true", nil).requireStatus(http.StatusOK).body
			require.Contains(t, string(raw), `"video_count":null`)
			require.Contains(t, string(raw), `"account_count":null`)
			require.Contains(t, string(raw), `"metrics_masked":true`)
			raw = c.send(http.MethodGet, "/collections/"+beach.String(), nil).requireStatus(http.StatusOK).body
			require.NotContains(t, string(raw), "_count")
			require.Contains(t, string(raw), `"metrics_masked":true`)
		}
	})
}
