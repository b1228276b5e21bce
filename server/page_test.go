package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// newCallerWith23Videos creates an organisation with 23 tracked videos. Many videos have equal view counts, and five were never fetched.
func newCallerWith23Videos(t *testing.T, a *app) *caller {
	t.Helper()
	c := a.newCaller(t, store.TierPremium)
	for batch := range 4 {
		c.trackVideos(http.StatusOK, videoURLs(batch*6, batch*6+5-batch/3))
		if batch < 3 {
			a.fetch(factsWithViews(int64(100 + batch/2)))
		}
	}
	require.Equal(t, int64(23), c.listVideos("limit=1").Pagination.Total)
	return c
}

// Requirements in docs/coverage.md: 2.3-01, 2.3-02, 2.3-03, 2.3-04, 2.3-05, 4.2-02, 4.2-03, 4.2-17, 8-09
func TestListVideos_paginationMatchesTheReturnedVideos(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWith23Videos(t, a)
		for _, limit := range []int32{1, 7, 22, 23, 24, 5000} {
			seen := map[uuid.UUID]bool{}
			pages := (23 + limit - 1) / limit
			for page := int32(1); page <= pages+1; page++ {
				got := c.listVideos(fmt.Sprintf("order_by=latest_views&limit=%d&page=%d", limit, page))
				p := got.Pagination
				require.Equal(t, int64(23), p.Total)
				require.Equal(t, page, p.Page)
				require.Equal(t, limit, p.Limit)
				require.Equal(t, int64(pages), p.TotalPages)
				require.Equal(t, page < pages, p.HasMore)
				require.Equal(t, p.HasMore, p.NextCursor != nil)
				for _, v := range got.Data {
					require.False(t, seen[v.AdID])
					seen[v.AdID] = true
				}
			}
			require.Len(t, seen, 23)
		}
		t.Run("a page after the last page", func(t *testing.T) {
			require.Empty(t, c.listVideos("page=2147483647&limit=5000").Data)
		})
		t.Run("an empty list", func(t *testing.T) {
			p := c.listVideos("username=nobody").Pagination
			require.Equal(t, int64(0), p.Total+p.TotalPages)
			require.Equal(t, int32(5000), p.Limit, "the default limit must be 5000")
		})
	})
}

// TestCursor_returnsEveryVideoOnceDuringWrites reads all pages of GET /videos by cursor, and
// sometimes tracks a new video between two pages. Each other video must be returned exactly once.
func TestCursor_returnsEveryVideoOnceDuringWrites(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWith23Videos(t, a)
		lastingIDs := map[uuid.UUID]bool{}
		for _, v := range c.listVideos("").Data {
			lastingIDs[v.AdID] = true
		}
		written := 1000
		rapid.Check(t, func(rt *rapid.T) {
			order := rapid.SampledFrom([]string{"created_at", "uploaded_at", "latest_views", "latest_likes"}).Draw(rt, "order")
			query := url.Values{"order_by": {order}, "order_direction": {rapid.SampledFrom([]string{"asc", "desc"}).Draw(rt, "direction")}}
			timesReturned := map[uuid.UUID]int{}
			for page := int32(1); ; page++ {
				query.Set("limit", fmt.Sprint(rapid.IntRange(6, 12).Draw(rt, "limit")))
				got := c.listVideos(query.Encode())
				if got.Pagination.Page != page {
					rt.Fatalf("pagination.page must be %d, not %d", page, got.Pagination.Page)
				}
				for _, v := range got.Data {
					timesReturned[v.AdID]++
				}
				if got.Pagination.NextCursor == nil {
					break
				}
				query.Set("cursor", *got.Pagination.NextCursor)
				if written < 1012 && rapid.Bool().Draw(rt, "write") {
					written++
					c.track(videoURL(written))
				}
			}
			for id := range lastingIDs {
				if timesReturned[id] != 1 {
					rt.Fatalf("all pages together must contain each video once, but one video was returned %d times", timesReturned[id])
				}
			}
		})
	})
}

func TestCursor_isRefusedForAnotherList(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := newCallerWith23Videos(t, a)
	const list = "order_by=latest_views&username=northwind.studio&limit=5"
	next := *c.listVideos(list).Pagination.NextCursor
	refused := func(sender *caller, query string) {
		t.Helper()
		p := sender.send(http.MethodGet, "/videos?"+query, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "invalid_cursor", p.Errors[0].Code)
	}
	require.Len(t, c.listVideos(list+"&cursor="+next).Data, 5)
	require.Len(t, c.listVideos("order_by=latest_views&username=@NORTHWIND.studio&limit=7&order_direction=desc&cursor="+next).Data, 7,
		"the cursor must be valid with another spelling of the same filter, and with another limit")

	t.Run("the same cursor, but another order_by", func(t *testing.T) { refused(c, "order_by=latest_likes&username=northwind.studio&cursor="+next) })
	t.Run("the same cursor, but another order_direction", func(t *testing.T) { refused(c, list+"&order_direction=asc&cursor="+next) })
	t.Run("the same cursor, but no filter by username", func(t *testing.T) { refused(c, "order_by=latest_views&cursor="+next) })
	t.Run("the same cursor, but an additional filter", func(t *testing.T) { refused(c, list+"&include_removed=true&cursor="+next) })
	t.Run("the cursor of another organisation", func(t *testing.T) { refused(a.newCaller(t, store.TierPremium), list+"&cursor="+next) })
	t.Run("the cursor with one changed bit", func(t *testing.T) {
		raw, err := base64.RawURLEncoding.DecodeString(next)
		require.NoError(t, err)
		for i := range raw {
			changed := append([]byte(nil), raw...)
			changed[i] ^= 1 << (i % 8)
			refused(c, list+"&cursor="+base64.RawURLEncoding.EncodeToString(changed))
		}
		refused(c, list+"&cursor="+next[:len(next)-2])
		refused(c, list+"&cursor="+next+"AA")
	})
	t.Run("the cursor together with a page number", func(t *testing.T) {
		p := c.send(http.MethodGet, "/videos?"+list+"&page=2&cursor="+next, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "conflict", p.Errors[0].Code)
	})
}

// Requirements in docs/coverage.md: 2.3-06, 2.3-07, 4-02, 4.2-01, 8-12
func TestListVideos_returnsOneMaskedVideoForLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWith23Videos(t, a)
		full := c.listVideos("order_by=latest_views")
		cursor := *c.listVideos("order_by=latest_views&limit=3").Pagination.NextCursor
		for _, tier := range []store.Tier{store.TierLimited, store.TierBasic} {
			require.NoError(t, a.SetTier(t.Context(), c.org.ID, tier))
			a.Clock.Advance(1e9)
			got := c.listVideos("order_by=latest_views&limit=10")
			require.Len(t, got.Data, 1)
			require.Equal(t, full.Data[0].AdID, got.Data[0].AdID, "the response must contain the first row of the requested order")
			require.Nil(t, got.Data[0].LatestViews)
			require.True(t, *got.Data[0].MetricsMasked)
			require.Equal(t, client.VideoPagination{Total: 1, Page: 1, Limit: 10, TotalPages: 1, OrderBy: "latest_views", OrderDirection: "desc"}, got.Pagination)
			for _, query := range []string{"order_by=latest_views&page=2&limit=1", "order_by=latest_views&cursor=" + cursor} {
				beyond := c.listVideos(query)
				require.Empty(t, beyond.Data, query)
				require.Equal(t, int64(1), beyond.Pagination.Total)
				require.False(t, beyond.Pagination.HasMore)
			}
			require.Equal(t, int64(0), c.listVideos("username=nobody").Pagination.Total)
		}
	})
}

// Requirements in docs/coverage.md: 2.3-01, 2.3-02, 2.3-03, 2.3-04, 2.3-05, 2.3-06, 2.3-07, 4.1-29, 4.2-17, 4.2-30
func TestPagination_hasExtraMembersOnlyInTheListOfVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	account, collection := c.trackAccountLink(accountLink).String(), c.createCollection(map[string]any{"name": "Launch"}).String()
	for list, want := range map[string]string{
		"/videos":                                  `{"total":0,"page":1,"limit":7,"total_pages":0,"next_cursor":null,"has_more":false,"order_by":"latest_updated_at","order_direction":"desc"}`,
		"/collections?parent_id=" + unknownID:      `{"total":0,"page":1,"limit":7,"total_pages":0,"next_cursor":null}`,
		"/collections/" + collection + "/videos":   `{"total":0,"page":1,"limit":7,"total_pages":0,"next_cursor":null}`,
		"/collections/" + collection + "/accounts": `{"total":0,"page":1,"limit":7,"total_pages":0,"next_cursor":null}`,
		"/accounts?platform=youtube":               `{"total":0,"page":1,"limit":7,"total_pages":0,"next_cursor":null}`,
		"/accounts/" + account + "/videos":         `{"total":0,"page":1,"limit":7,"total_pages":0,"next_cursor":null}`,
	} {
		path, query, _ := strings.Cut(list, "?")
		if strings.HasSuffix(path, "s") && !strings.HasPrefix(path, "/collections/") && path != "/videos" {
			query += "&paginated=true"
		}
		page := decode[struct{ Pagination json.RawMessage }](c.send(http.MethodGet, path+"?limit=7&"+query, nil).requireStatus(http.StatusOK))
		require.JSONEq(t, want, string(page.Pagination), list)
	}
}

func TestLists_linkHeaderPointsToTheNextPage(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := newCallerWith23Videos(t, a)
	collection := c.createCollection(map[string]any{"name": "Launch"})
	c.createCollection(map[string]any{"name": "Other"})
	account := c.listVideos("limit=1").Data[0].LinkedAccountID
	c.addAccounts(collection, *account)
	c.addAccounts(collection, c.trackAccountLink("https://www.tiktok.com/@other"))
	c.trackAccountLink("https://www.tiktok.com/@third")
	for list, want := range map[string]int{ // the key is the first page of a list, and the value is the number of rows in the whole list
		"/videos?order_by=latest_views&username=@Northwind.Studio&limit=5&page=1": 23,
		"/collections?paginated=true&limit=1":                                     2,
		"/collections/" + collection.String() + "/videos?limit=9":                 23, // the collection contains an account, and therefore the 23 videos of the account
		"/collections/" + collection.String() + "/accounts?limit=1":               2,
		"/accounts?paginated=true&limit=1":                                        2,
		"/accounts/" + account.String() + "/videos?paginated=true&limit=9":        23,
	} {
		base, err := url.Parse(list)
		require.NoError(t, err)
		seen := 0
		for target := list; target != ""; {
			got := c.send(http.MethodGet, target, nil).requireStatus(http.StatusOK)
			head := c.send(http.MethodHead, target, nil).requireStatus(http.StatusOK)
			require.Equal(t, got.Header.Get("Link"), head.Header.Get("Link"))
			page := decode[struct {
				Data       []json.RawMessage
				Pagination struct {
					Next *string `json:"next_cursor"`
				}
			}](got)
			seen += len(page.Data)
			header := got.Header.Get("Link")
			require.Equal(t, page.Pagination.Next != nil, header != "", target)
			if target = ""; header != "" {
				address, ok := strings.CutSuffix(strings.TrimPrefix(header, "<"), `>; rel="next"`)
				require.True(t, ok, header)
				next, err := base.Parse(address)
				require.NoError(t, err)
				require.Equal(t, *page.Pagination.Next, next.Query().Get("cursor"))
				target = next.String()
			}
		}
		require.Equal(t, want, seen, list)
	}
	t.Run("a response that is an array", func(t *testing.T) {
		for _, list := range []string{"/collections", "/accounts", "/accounts/" + account.String() + "/videos"} {
			require.Contains(t, c.send(http.MethodGet, list+"?limit=1", nil).requireStatus(http.StatusOK).Header.Get("Link"), "paginated=true", list)
			require.Empty(t, c.send(http.MethodGet, list, nil).requireStatus(http.StatusOK).Header.Get("Link"), list)
		}
	})
	t.Run("a 304 response", func(t *testing.T) {
		tag := c.send(http.MethodGet, "/videos?limit=1", nil).Header.Get("ETag")
		require.Empty(t, c.send(http.MethodGet, "/videos?limit=1", nil, "If-None-Match", tag).requireStatus(http.StatusNotModified).Header.Get("Link"))
	})
}
