package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func tracked(t *testing.T, o *store.Org) int {
	t.Helper()
	return int(list(t, o, store.VideoQuery{}).Total)
}

func TestDiscovery_goesDeeperForWhoJoinedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, second := newOrg(t, db), newOrg(t, db)
		follow(t, first, store.TrackLatest30, parse(t, someone))
		c := claimOne(t, db, link.TikTok, "account")
		require.Equal(t, 30, c.Targets[0].Depth)
		follow(t, second, store.TrackLatest200, parse(t, someone)) // while the first one's is being fetched
		videos := found(t, 250, db.Clock.Now())
		answer := func(c store.Claim, n int) {
			require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], listed(videos[:n]))}))
		}
		answer(c, 30)
		require.Equal(t, 30, tracked(t, first))
		require.Equal(t, 30, tracked(t, second))

		c = claimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth)
		answer(c, 250)
		require.Equal(t, 30, tracked(t, first))
		require.Equal(t, 200, tracked(t, second))
		require.Empty(t, claim(t, db, link.TikTok, "account"))

		db.Clock.Advance(25 * time.Hour)
		require.Zero(t, claimOne(t, db, link.TikTok, "account").Targets[0].Depth, "a page is enough from now on")
	})
}

func TestDiscovery_comesBackAtOnceWhereItDidNotGoDeepEnough(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		_, err := o.TrackAccounts(t.Context(), store.TrackAccountsRequest{Links: []link.Link{parse(t, someone)}, Type: store.TrackLatest200, Lane: store.LanePremium})
		require.NoError(t, err) // saved, and not enqueued
		_, err = o.RefreshAccount(t.Context(), store.AccountRef{Link: parse(t, someone)})
		require.NoError(t, err)
		videos := found(t, 250, db.Clock.Now())
		c := claimOne(t, db, link.TikTok, "account")
		require.Zero(t, c.Targets[0].Depth)
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], listed(videos[:50]))}))
		c = claimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth)
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], listed(videos))}))
		require.Equal(t, 200, tracked(t, o))
		require.Empty(t, claim(t, db, link.TikTok, "account"))
	})
}

func TestDiscovery_waitsForAnAccountToBecomePublic(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		follow(t, o, store.TrackLatest200, parse(t, someone))
		deliverAccount(t, db, store.AccountFacts{ID: new("42"), Username: new("someone"), Private: new(true)})
		a := account(t, o, parse(t, someone))
		require.True(t, a.Private)
		require.False(t, a.Empty, "nobody has seen that it has none")
		require.Nil(t, a.DiscoveredAt)

		db.Clock.Advance(25 * time.Hour)
		c := claimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth)
		require.Equal(t, "42", *c.Targets[0].NativeID)
		facts := listed(found(t, 60, db.Clock.Now()))
		facts.Private = new(false)
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], facts)}))
		require.False(t, account(t, o, parse(t, someone)).Private)
		require.Equal(t, 60, tracked(t, o))
	})
}

func TestDiscovery_takesTheVideosUpAgainWithTheirAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		videos := found(t, 5, db.Clock.Now())
		follow(t, o, store.TrackLatest30, parse(t, someone))
		deliverAccount(t, db, listed(videos))
		require.Equal(t, 5, tracked(t, o))

		stop(t, o, parse(t, videos[0].Link))
		db.Clock.Advance(25 * time.Hour)
		deliverAccount(t, db, listed(videos))
		require.Equal(t, 4, tracked(t, o), "what was stopped by itself stays so")

		_, err := o.StopAccounts(t.Context(), []store.AccountRef{{Link: parse(t, someone)}}, true)
		require.NoError(t, err)
		require.Zero(t, tracked(t, o))
		follow(t, o, store.TrackLatest30, parse(t, someone))
		deliverAccount(t, db, listed(videos))
		require.Equal(t, 5, tracked(t, o), "the account is asked for anew, with all that belongs to it")
		require.Equal(t, 5, deliver(t, db, link.TikTok, views(7)))
		consistent(t, db, o)
	})
}

func TestDiscovery_whereTheSourceNamesNobodyIsOfTheAccountThatWasAskedFor(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		follow(t, o, store.TrackLatest30, parse(t, someone))
		deliverAccount(t, db, store.AccountFacts{Name: new("Some One"), Followers: new(int64(7))})
		page, err := o.Accounts(t.Context(), store.AccountQuery{IncludeLinked: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, page.Accounts, 1, "no record without a name beside it")
		require.EqualValues(t, 7, *page.Accounts[0].LatestFollowersCount)
		require.Equal(t, "Some One", *page.Accounts[0].Name)
	})
}
