package server_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// concurrentRequests is the number of requests that one call of sendConcurrently sends.
const concurrentRequests = 64

// sendConcurrently starts concurrentRequests equal requests at the same time and returns all responses.
func (c *caller) sendConcurrently(method, target string, body any, headers ...string) []response {
	c.t.Helper()
	var (
		workers   sync.WaitGroup
		start     = make(chan struct{})
		responses = make([]response, concurrentRequests)
		errs      = make([]error, concurrentRequests)
	)
	for i := range concurrentRequests {
		workers.Go(func() {
			<-start
			responses[i], errs[i] = c.exchange(method, target, body, headers...)
		})
	}
	close(start)
	workers.Wait()
	for _, err := range errs {
		require.NoError(c.t, err)
	}
	return responses
}

// countResponsesByKey counts the responses by the text that keyOf returns for them.
func countResponsesByKey(responses []response, keyOf func(response) string) map[string]int {
	out := map[string]int{}
	for _, a := range responses {
		out[keyOf(a)]++
	}
	return out
}

// countRows counts the rows of the given database tables that belong to the organisation of c. The keys of the result are the tables.
func (c *caller) countRows(tables ...string) map[string]int {
	c.t.Helper()
	out := map[string]int{}
	for _, table := range tables {
		out[table] = storetest.Column[int](c.t, c.app.DB, "SELECT COUNT(*) FROM "+table+" WHERE organisation_id = ?", c.org.ID)[0]
	}
	return out
}

// countTargets returns the number of rows in the table fetch_targets, which has one row for each video or account that collectors must
// fetch.
func (a *app) countTargets() int {
	a.t.Helper()
	return storetest.Column[int](a.t, a.DB, "SELECT COUNT(*) FROM fetch_targets")[0]
}

func TestTrackVideo_concurrentRequestsCreateOneVideo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		got := c.sendConcurrently(http.MethodPost, "/videos", map[string]any{"link": tiktokLink, "collection_names": []string{"Launch"}}, "X-Request-Id", "one-for-all")
		ids := map[string]int{}
		require.Equal(t, map[string]int{"new": 1, "already": concurrentRequests - 1}, countResponsesByKey(got, func(a response) string {
			r := decode[client.TrackVideoResult](a.requireStatus(http.StatusOK))
			if ids[r.VideoID.String()]++; r.Error == nil {
				return "new"
			}
			return "already"
		}))
		require.Len(t, ids, 1)
		require.Equal(t, map[string]int{"videos": 1, "accounts": 1, "collections": 1, "collection_videos": 1, "fetch_subscriptions": 1},
			c.countRows("videos", "accounts", "collections", "collection_videos", "fetch_subscriptions"))
		require.Equal(t, 1, a.countTargets())
		require.EqualValues(t, 1, c.statistics("videos").Total)
	})
}

func TestBulkTrackVideos_concurrentRequestsCreateEachVideoOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		label := c.createNamedCollection("Launch").String()
		got := c.sendConcurrently(http.MethodPost, "/videos/bulk", map[string]any{"links": append(videoURLs(1, 10), videoURLs(5, 12)...), "label_ids": []string{label}})
		statuses := map[string]int{}
		for _, a := range got {
			r := decode[client.TrackVideosResult](a.requireStatus(http.StatusOK))
			require.Len(t, r.Results, 12)
			for _, e := range r.Results {
				statuses[string(e.Status)]++
			}
		}
		require.Equal(t, map[string]int{"tracked": 12, "already_tracked": 12 * (concurrentRequests - 1)}, statuses)
		require.Equal(t, map[string]int{"videos": 12, "collection_videos": 12, "fetch_subscriptions": 12}, c.countRows("videos", "collection_videos", "fetch_subscriptions"))
		require.Equal(t, 12, a.countTargets())
		require.EqualValues(t, 12, c.statistics("videos").Total)
	})
}

func TestTrackAccount_concurrentRequestsCreateOneAccount(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		got := c.sendConcurrently(http.MethodPost, "/accounts", map[string]any{"link": accountLink, "collection_names": []string{"Launch"}})
		ids := map[string]int{}
		require.Equal(t, map[string]int{"new": 1, "already": concurrentRequests - 1}, countResponsesByKey(got, func(a response) string {
			r := decode[client.TrackAccountResult](a.requireStatus(http.StatusOK))
			if ids[r.AccountID.String()]++; r.Error == nil {
				return "new"
			}
			return "already"
		}))
		require.Len(t, ids, 1)
		got = c.sendConcurrently(http.MethodPost, "/accounts/bulk", map[string]any{"links": accountURLs(1, 5)})
		statuses := map[string]int{}
		for _, a := range got {
			for _, e := range decode[client.TrackAccountsResult](a.requireStatus(http.StatusOK)).Results {
				statuses[string(e.Status)]++
			}
		}
		require.Equal(t, map[string]int{"tracked": 5, "already_tracked": 5 * (concurrentRequests - 1)}, statuses)
		require.Equal(t, map[string]int{"accounts": 6, "collections": 1, "collection_accounts": 1, "fetch_subscriptions": 6},
			c.countRows("accounts", "collections", "collection_accounts", "fetch_subscriptions"))
		require.Equal(t, 6, a.countTargets())
		require.EqualValues(t, 6, c.statistics("accounts").Total)
	})
}

// TestCreateCollection_eachConcurrentRequestCreatesACollection sends concurrent POST requests with the same name and without an
// Idempotency-Key. Each request must create a collection, because several collections can have the same name.
func TestCreateCollection_eachConcurrentRequestCreatesACollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		ids := countResponsesByKey(c.sendConcurrently(http.MethodPost, "/collections", map[string]any{"name": "Launch"}), func(a response) string {
			return decode[client.CreatedCollection](a.requireStatus(http.StatusCreated)).ID.String()
		})
		require.Len(t, ids, concurrentRequests)
		require.Equal(t, map[string]int{"collections": concurrentRequests}, c.countRows("collections"))
	})
}

func TestAddCollectionMembers_concurrentRequestsAddEachMemberOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		target := "/collections/" + collection.String()
		videos, accounts := []string{c.track(videoURL(1)).String(), c.track(videoURL(2)).String()}, []string{c.trackAccountLink(accountLink).String()}
		added := func(kind string, ids []string) (n int32) {
			for _, a := range c.sendConcurrently(http.MethodPost, target+"/"+kind+"s", map[string]any{kind + "_ids": ids}) {
				a.requireStatus(http.StatusOK)
				n += decode[client.AddedVideos](a).VideosAdded + decode[client.AddedAccounts](a).AccountsAdded
			}
			return n
		}
		require.EqualValues(t, 2, added("video", videos))
		require.EqualValues(t, 1, added("account", accounts))
		require.Equal(t, map[string]int{"collection_videos": 2, "collection_accounts": 1}, c.countRows("collection_videos", "collection_accounts"))
	})
}

func TestStopVideo_onlyOneConcurrentRequestSucceeds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(videoURL(2))
		for _, remove := range []func() []response{
			func() []response {
				return c.sendConcurrently(http.MethodDelete, "/videos/"+c.track(videoURL(1)).String(), nil)
			},
			func() []response {
				return c.sendConcurrently(http.MethodDelete, "/videos", map[string]any{"id": videoURL(2)})
			},
		} {
			statuses := countResponsesByKey(remove(), func(a response) string { return fmt.Sprint(a.StatusCode) })
			require.Equal(t, map[string]int{"200": 1, "404": concurrentRequests - 1}, statuses)
		}
		s := c.statistics("videos")
		require.Equal(t, []int64{0, 2}, []int64{s.Total, s.Removed})
		require.Equal(t, map[string]int{"videos": 2, "fetch_subscriptions": 0}, c.countRows("videos", "fetch_subscriptions"))
	})
}
