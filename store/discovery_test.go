package store_test

import (
	"fmt"
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
		require.Zero(t, c.Targets[0].Depth, "a long list is not reserved from the budget while there is none")
		require.Equal(t, "42", c.Targets[0].AccountID)
		facts := listed(found(t, 60, db.Clock.Now()))
		facts.Private = new(false)
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], facts)}))
		require.False(t, account(t, o, parse(t, someone)).Private)
		c = claimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth, "and comes at once when there is one")
		facts = listed(found(t, 90, db.Clock.Now()))
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], facts)}))
		require.Equal(t, 90, tracked(t, o))
		require.Empty(t, claim(t, db, link.TikTok, "account"))
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
		db.Clock.Advance(store.RefreshPause)
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

func TestDiscovery_ofALateAnswerWritesNothingOfTheProfile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		db.Clock.Advance(today(db).Time().Add(24*time.Hour - 10*time.Second).Sub(db.Clock.Now()))
		follow(t, o, store.TrackLatest30, parse(t, someone))
		slow := claimOne(t, db, link.TikTok, "account") // and stalls
		videos := found(t, 3, db.Clock.Now())
		facts := func(followers int64, videos []store.FoundVideo) store.AccountFacts {
			f := listed(videos)
			f.Followers, f.Following, f.Name, f.Bio, f.Private = &followers, new(followers/10), new(fmt.Sprint("Named at ", followers)), new(fmt.Sprint(followers)), new(followers == 1000)
			return f
		}
		db.Clock.Advance(2 * time.Minute)
		deliverAccount(t, db, facts(1010, videos[:2]))
		before, point := account(t, o, parse(t, someone)), organisationToday(t, db, o)
		days := func() []store.AccountPoint {
			points, err := o.AccountHistory(t.Context(), store.AccountRef{ID: before.ID}, today(db)-1, today(db))
			require.NoError(t, err)
			return points
		}
		noted := days()

		late := accountOutcome(db, slow.Targets[0], facts(1000, videos[:2]))
		late.Private = new(true)
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), slow, slow.At, []store.AccountOutcome{late}))
		require.Equal(t, before, account(t, o, parse(t, someone)))
		require.Equal(t, noted, days())
		require.Equal(t, point, organisationToday(t, db, o))

		lost := accountOutcome(db, store.Target{Platform: link.TikTok, Kind: "account", ExternalID: "42", Handle: "someone"}, store.AccountFacts{})
		lost.Account, lost.HandleLost = nil, true
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), slow, slow.At, []store.AccountOutcome{lost}))
		require.Equal(t, before, account(t, o, parse(t, someone)))
	})
}

func TestDiscovery_ofALateListTakesEachVideoOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		follow(t, o, store.TrackLatest30, parse(t, someone))
		videos := found(t, 5, db.Clock.Now())
		deliverAccount(t, db, listed(videos[2:]))
		db.Clock.Advance(25 * time.Hour)
		slow := claimOne(t, db, link.TikTok, "account")
		db.Clock.Advance(2 * time.Minute)
		videos[0].UploadedAt, videos[1].UploadedAt = &slow.At, &slow.At
		deliverAccount(t, db, listed(videos[1:])) // the newest is deleted by now
		discovered := account(t, o, parse(t, someone)).DiscoveredAt
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), slow, slow.At, []store.AccountOutcome{accountOutcome(db, slow.Targets[0], listed(videos))}))
		require.Equal(t, 5, tracked(t, o))
		require.Equal(t, discovered, account(t, o, parse(t, someone)).DiscoveredAt)
		consistent(t, db, o)
	})
}

// organisationToday are the organisation's sums of today.
func organisationToday(t *testing.T, db *storetest.DB, o *store.Org) store.OrganisationPoint {
	t.Helper()
	points, err := o.OrganisationHistory(t.Context(), today(db), today(db))
	require.NoError(t, err)
	require.Len(t, points, 1)
	return points[0]
}
