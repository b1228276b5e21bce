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

// crowd is how many equal requests come at once.
const crowd = 64

// atOnce sends equal requests at once and returns their answers.
func (c *caller) atOnce(method, target string, body any, headers ...string) []answer {
	c.t.Helper()
	var (
		workers sync.WaitGroup
		start   = make(chan struct{})
		answers = make([]answer, crowd)
		errs    = make([]error, crowd)
	)
	for i := range crowd {
		workers.Go(func() {
			<-start
			answers[i], errs[i] = c.app.exchange(c.t, method, target, body, append([]string{"Authorization", "Bearer " + c.token}, headers...)...)
		})
	}
	close(start)
	workers.Wait()
	for _, err := range errs {
		require.NoError(c.t, err)
	}
	return answers
}

// tallied counts what a function says of each answer.
func tallied(answers []answer, of func(answer) string) map[string]int {
	out := map[string]int{}
	for _, a := range answers {
		out[of(a)]++
	}
	return out
}

// counted are the rows of an organisation in tables.
func (c *caller) counted(tables ...string) map[string]int {
	c.t.Helper()
	out := map[string]int{}
	for _, table := range tables {
		out[table] = storetest.Column[int](c.t, c.app.DB, "SELECT COUNT(*) FROM "+table+" WHERE organisation_id = ?", c.org.ID)[0]
	}
	return out
}

// targets are the rows of the queue.
func (a *app) targets() int {
	a.t.Helper()
	return storetest.Column[int](a.t, a.DB, "SELECT COUNT(*) FROM fetch_targets")[0]
}

func TestConcurrent_requestsTrackALinkOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		got := c.atOnce(http.MethodPost, "/videos", map[string]any{"link": tiktokLink, "collection_names": []string{"Launch"}}, "X-Request-Id", "one-for-all")
		ids := map[string]int{}
		require.Equal(t, map[string]int{"new": 1, "already": crowd - 1}, tallied(got, func(a answer) string {
			r := decode[client.TrackVideoResult](a.is(http.StatusOK))
			if ids[r.VideoID.String()]++; r.Error == nil {
				return "new"
			}
			return "already"
		}))
		require.Len(t, ids, 1)
		require.Equal(t, map[string]int{"videos": 1, "accounts": 1, "collections": 1, "collection_videos": 1, "fetch_subscriptions": 1},
			c.counted("videos", "accounts", "collections", "collection_videos", "fetch_subscriptions"))
		require.Equal(t, 1, a.targets())
		require.EqualValues(t, 1, c.statistics("videos").Total)
	})
}

func TestConcurrent_bulkRequestsTrackEachLinkOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		label := c.named("Launch").String()
		got := c.atOnce(http.MethodPost, "/videos/bulk", map[string]any{"links": append(series(1, 10), series(5, 12)...), "label_ids": []string{label}})
		statuses := map[string]int{}
		for _, a := range got {
			r := decode[client.TrackVideosResult](a.is(http.StatusOK))
			require.Len(t, r.Results, 12)
			for _, e := range r.Results {
				statuses[string(e.Status)]++
			}
		}
		require.Equal(t, map[string]int{"tracked": 12, "already_tracked": 12 * (crowd - 1)}, statuses)
		require.Equal(t, map[string]int{"videos": 12, "collection_videos": 12, "fetch_subscriptions": 12}, c.counted("videos", "collection_videos", "fetch_subscriptions"))
		require.Equal(t, 12, a.targets())
		require.EqualValues(t, 12, c.statistics("videos").Total)
	})
}

func TestConcurrent_requestsTrackAnAccountOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		got := c.atOnce(http.MethodPost, "/accounts", map[string]any{"link": accountLink, "collection_names": []string{"Launch"}})
		ids := map[string]int{}
		require.Equal(t, map[string]int{"new": 1, "already": crowd - 1}, tallied(got, func(a answer) string {
			r := decode[client.TrackAccountResult](a.is(http.StatusOK))
			if ids[r.AccountID.String()]++; r.Error == nil {
				return "new"
			}
			return "already"
		}))
		require.Len(t, ids, 1)
		got = c.atOnce(http.MethodPost, "/accounts/bulk", map[string]any{"links": members(1, 5)})
		statuses := map[string]int{}
		for _, a := range got {
			for _, e := range decode[client.TrackAccountsResult](a.is(http.StatusOK)).Results {
				statuses[string(e.Status)]++
			}
		}
		require.Equal(t, map[string]int{"tracked": 5, "already_tracked": 5 * (crowd - 1)}, statuses)
		require.Equal(t, map[string]int{"accounts": 6, "collections": 1, "collection_accounts": 1, "fetch_subscriptions": 6},
			c.counted("accounts", "collections", "collection_accounts", "fetch_subscriptions"))
		require.Equal(t, 6, a.targets())
		require.EqualValues(t, 6, c.statistics("accounts").Total)
	})
}

// A POST of a collection makes one each time: two collections may bear one name. Who must not make two sends an Idempotency-Key.
func TestConcurrent_eachPostCreatesACollection(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		ids := tallied(c.atOnce(http.MethodPost, "/collections", map[string]any{"name": "Launch"}), func(a answer) string {
			return decode[client.CreatedCollection](a.is(http.StatusCreated)).ID.String()
		})
		require.Len(t, ids, crowd)
		require.Equal(t, map[string]int{"collections": crowd}, c.counted("collections"))
	})
}

func TestConcurrent_requestsAddAMemberOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.named("Launch")
		target := "/collections/" + collection.String()
		videos, accounts := []string{c.track(numbered(1)).String(), c.track(numbered(2)).String()}, []string{c.follow(accountLink).String()}
		added := func(kind string, ids []string) (n int32) {
			for _, a := range c.atOnce(http.MethodPost, target+"/"+kind+"s", map[string]any{kind + "_ids": ids}) {
				a.is(http.StatusOK)
				n += decode[client.AddedVideos](a).VideosAdded + decode[client.AddedAccounts](a).AccountsAdded
			}
			return n
		}
		require.EqualValues(t, 2, added("video", videos))
		require.EqualValues(t, 1, added("account", accounts))
		require.Equal(t, map[string]int{"collection_videos": 2, "collection_accounts": 1}, c.counted("collection_videos", "collection_accounts"))
	})
}

func TestConcurrent_requestsStopTrackingOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(numbered(2))
		for _, remove := range []func() []answer{
			func() []answer {
				return c.atOnce(http.MethodDelete, "/videos/"+c.track(numbered(1)).String(), nil)
			},
			func() []answer {
				return c.atOnce(http.MethodDelete, "/videos", map[string]any{"id": numbered(2)})
			},
		} {
			statuses := tallied(remove(), func(a answer) string { return fmt.Sprint(a.StatusCode) })
			require.Equal(t, map[string]int{"200": 1, "404": crowd - 1}, statuses)
		}
		s := c.statistics("videos")
		require.Equal(t, []int64{0, 2}, []int64{s.Total, s.Removed})
		require.Equal(t, map[string]int{"videos": 2, "fetch_subscriptions": 0}, c.counted("videos", "fetch_subscriptions"))
	})
}
