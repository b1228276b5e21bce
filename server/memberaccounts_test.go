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
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// trackAccountLink tracks the account with the given link and returns the account id. It calls the store directly, without an HTTP request.
func (c *caller) trackAccountLink(raw string) uuid.UUID {
	c.t.Helper()
	l, err := link.Parse(raw)
	require.NoError(c.t, err)
	tracked, err := c.app.Org(c.org.ID).TrackAccounts(c.t.Context(), store.TrackRequest{
		Links: []link.Link{l}, Type: store.TrackLatest30, Immediate: 1})
	require.NoError(c.t, err)
	return tracked[0].ID
}

// fetchProfiles takes all due accounts of the interactive lane from the queue. It stores the value
// of factsOf as the result of each account's fetch.
func (a *app) fetchProfiles(factsOf func(target queue.Target) ingest.AccountFacts) {
	a.t.Helper()
	for _, p := range link.Platforms {
		c, err := a.Claim(a.t.Context(), storetest.NewClaimRequest(store.NewID(), p, "account", 1000, time.Minute, queue.LaneInteractive))
		require.NoError(a.t, err)
		outcomes := make([]ingest.Outcome, len(c.Targets))
		for i, target := range c.Targets {
			outcomes[i] = ingest.Outcome{Account: new(factsOf(target)), Target: target, Source: "test", State: "active",
				NextAt: store.InstantOf(a.Clock.Now().Add(time.Hour))}
		}
		require.NoError(a.t, a.Acknowledge(a.t.Context(), c, c.At, outcomes))
	}
}

// listCollectionAccounts returns the decoded response of GET /collections/{collection_id}/accounts.
func (c *caller) listCollectionAccounts(collection uuid.UUID, query string) client.CollectionAccountPage {
	c.t.Helper()
	return decode[client.CollectionAccountPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/accounts?"+query, nil).requireStatus(http.StatusOK))
}

// accountNames returns the handles of a collection's accounts, separated by commas, in the order of the response.
func (c *caller) accountNames(collection uuid.UUID, query string) string {
	c.t.Helper()
	var names []string
	for _, found := range c.listCollectionAccounts(collection, query).Data {
		names = append(names, found.Username)
	}
	return strings.Join(names, ",")
}

// newCallerWithCollectionAccounts creates an organisation with a collection of four accounts. It
// returns the collection id and the account ids by handle.
func newCallerWithCollectionAccounts(t *testing.T, a *app) (*caller, uuid.UUID, map[string]uuid.UUID) {
	t.Helper()
	c := a.newCaller(t, store.TierPremium)
	accounts := map[string]uuid.UUID{}
	// These three accounts are tracked.
	for _, handle := range []string{"carl", "anna", "bert"} {
		accounts[handle] = c.trackAccountLink("https://www.tiktok.com/@" + handle)
		a.Clock.Advance(time.Second)
	}
	followers := map[string]*int64{"anna": new(int64(7)), "bert": nil, "carl": new(int64(7))}
	a.fetchProfiles(func(target queue.Target) ingest.AccountFacts {
		return ingest.AccountFacts{Followers: followers[target.Handle]}
	})
	numbers := map[string]int64{}
	// The account dora is not tracked, but is the author of a tracked video.
	for n, handle := range []string{"carl", "dora", "anna", "anna"} {
		video := c.track(fmt.Sprintf("https://www.tiktok.com/@%s/video/%d", handle, 7300000000000000000+n))
		accounts[handle] = *c.video(video.String()).LinkedAccountID
		numbers[fmt.Sprint(7300000000000000000+n)] = int64(100 * (n + 1))
	}
	uploaded := january(10)
	a.fetch(func(target queue.Target) ingest.VideoFacts {
		uploaded = uploaded.AddDate(0, 0, 1)
		return ingest.VideoFacts{Views: new(numbers[target.ExternalID]), UploadedAt: new(uploaded)}
	})
	id := c.createNamedCollection("Circle")
	require.Equal(t, int32(4), c.addAccounts(id, accounts["anna"], accounts["bert"], accounts["carl"], accounts["dora"]))
	c.trackAccountLink("https://www.tiktok.com/@outside")
	return c, id, accounts
}

// Requirements in docs/coverage.md: 2.1-12, 4.1-34, 8-09, 11.6-04
func TestListCollectionAccounts_sortsAndPaginatesAccounts(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, id, accounts := newCallerWithCollectionAccounts(t, a)
		a.Exec(t, "UPDATE accounts SET views_gained_7d = CASE username WHEN 'bert' THEN 5 WHEN 'carl' THEN -1 END")
		for query, want := range map[string]string{
			"": "dora,bert,anna,carl",
			"order_by=created_at&order_direction=asc":  "carl,anna,bert,dora",
			"order_by=username&order_direction=asc":    "anna,bert,carl,dora",
			"order_by=username":                        "dora,carl,bert,anna",
			"order_by=latest_followers_count":          "anna,carl,dora,bert",
			"order_by=total_views":                     "anna,dora,carl,bert",
			"order_by=total_views&order_direction=asc": "carl,dora,anna,bert",
			"order_by=median_views":                    "anna,dora,carl,bert",
			"order_by=views_gained_7d":                 "bert,carl,dora,anna",
			"limit=2&page=2":                           "anna,carl",
			"page=2":                                   "",
		} {
			require.Equal(t, want, c.accountNames(id, query), query)
		}
		page := c.listCollectionAccounts(id, "")
		require.Equal(t, client.Pagination{Total: 4, Page: 1, Limit: 100, TotalPages: 1}, page.Pagination)
		require.Equal(t, int64(4), c.readCollection(id).AccountCount.MustGet())
		require.Equal(t, int64(700), *page.Data[2].TotalViews)
		require.Equal(t, []uuid.UUID{id}, page.Data[2].LabelIds)
		require.Nil(t, page.Data[1].LatestFollowersCount, "a count that was never fetched must be null, not 0")

		t.Run("the list omits stopped accounts by default, and contains them with include_removed=true", func(t *testing.T) {
			_, err := a.Org(c.org.ID).StopAccounts(t.Context(), []uuid.UUID{accounts["bert"]})
			require.NoError(t, err)
			require.Equal(t, "dora,anna,carl", c.accountNames(id, ""))
			require.Equal(t, "dora,bert,anna,carl", c.accountNames(id, "include_removed=true"))
			require.Equal(t, int64(3), c.readCollection(id).AccountCount.MustGet())
		})
		t.Run("reading all accounts by page number and by cursor", func(t *testing.T) {
			for order := range store.AccountOrders {
				for _, direction := range []string{"asc", "desc"} {
					query := "include_removed=true&order_by=" + order + "&order_direction=" + direction
					var byPage, byCursor []client.Account
					cursor := ""
					for page := 1; page <= 4; page++ {
						byPage = append(byPage, c.listCollectionAccounts(id, fmt.Sprintf("%s&limit=1&page=%d", query, page)).Data...)
						got := c.listCollectionAccounts(id, query+"&limit=1"+cursor)
						byCursor = append(byCursor, got.Data...)
						require.Equal(t, page == 4, got.Pagination.NextCursor == nil)
						if page < 4 {
							cursor = "&cursor=" + *got.Pagination.NextCursor
						}
					}
					all := c.listCollectionAccounts(id, query).Data
					require.Equal(t, all, byPage, query)
					require.Equal(t, all, byCursor, query)
				}
			}
		})
		t.Run("lower tiers", func(t *testing.T) {
			next := *c.listCollectionAccounts(id, "order_by=username&limit=1").Pagination.NextCursor
			require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierLimited))
			a.Clock.Advance(time.Second)
			got := c.listCollectionAccounts(id, "order_by=username&order_direction=asc")
			require.Len(t, got.Data, 1)
			require.Equal(t, "anna", got.Data[0].Username)
			require.Nil(t, got.Data[0].TotalViews)
			require.True(t, *got.Data[0].MetricsMasked)
			require.Equal(t, client.Pagination{Total: 1, Page: 1, Limit: 100, TotalPages: 1}, got.Pagination)
			require.Empty(t, c.listCollectionAccounts(id, "order_by=username&page=2").Data)
			require.Empty(t, c.listCollectionAccounts(id, "order_by=username&cursor="+next).Data)
		})
	})
}

// Requirements in docs/coverage.md: 4.1-34
func TestListCollectionAccounts_refusesInvalidParameters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c, id, _ := newCallerWithCollectionAccounts(t, a)
	next := *c.listCollectionAccounts(id, "limit=1").Pagination.NextCursor
	for query, want := range map[string]string{
		"limit=5001":                          "limit maximum",
		"order_by=latest_views":               "order_by enum",
		"order_direction=up":                  "order_direction enum",
		"include_linked=true":                 "include_linked unknown_parameter",
		"page=2&cursor=" + next:               "page conflict",
		"order_by=username&cursor=" + next:    "cursor invalid_cursor",
		"include_removed=true&cursor=" + next: "cursor invalid_cursor",
	} {
		p := c.send(http.MethodGet, "/collections/"+id.String()+"/accounts?"+query, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Len(t, p.Errors, 1, query)
		require.Equal(t, want, *p.Errors[0].Name+" "+p.Errors[0].Code, query)
	}
}
