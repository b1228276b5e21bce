package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

const renamed = "https://www.tiktok.com/@renamed"

func TestRenames_takeAHandleThatAnotherRecordHolds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		follow(t, o, store.TrackLatest30, parse(t, someone))
		deliverAccount(t, db, listed(found(t, 2, db.Clock.Now())))
		id := account(t, o, parse(t, someone)).ID
		follow(t, o, store.TrackLatest30, parse(t, renamed)) // whoever had the name before
		deliverAccount(t, db, store.AccountFacts{ID: new("77"), Username: new("renamed"), Followers: new(int64(5))})
		before := account(t, o, parse(t, renamed))
		require.NotEqual(t, id, before.ID)

		db.Clock.Advance(25 * time.Hour)
		for _, c := range claim(t, db, link.TikTok, "account") {
			for _, target := range c.Targets {
				facts := store.AccountFacts{ID: &target.AccountID, Username: new("renamed"), Followers: new(int64(9))}
				if target.AccountID == "77" {
					facts.Username = new("elsewhere")
				}
				require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, target, facts)}))
			}
		}
		require.Equal(t, id, account(t, o, parse(t, renamed)).ID)
		require.Equal(t, before.ID, account(t, o, parse(t, "https://www.tiktok.com/@elsewhere")).ID)
		consistent(t, db, o)
	})
}

func TestRenames_areNotUndoneByALateAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		follow(t, o, store.TrackLatest30, parse(t, someone))
		deliverAccount(t, db, listed(found(t, 1, db.Clock.Now())))
		videos := claimOne(t, db, link.TikTok, "video") // asked before the rename, written after

		db.Clock.Advance(25 * time.Hour)
		deliverAccount(t, db, store.AccountFacts{ID: new("42"), Username: new("renamed")})
		require.NoError(t, db.Acknowledge(t.Context(), videos, videos.At, []store.Outcome{
			outcome(db, videos.Targets[0], store.VideoFacts{Views: new(int64(3)), Username: new("someone"), AccountID: new("42")})}))
		a := account(t, o, parse(t, renamed))
		require.Equal(t, "42", *a.ExternalID)
		require.Equal(t, "https://www.tiktok.com/@renamed", a.Link)
	})
}

func TestRenames_aHandleThatIsLostIsFreeForWhoTracksIt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		first := follow(t, o, store.TrackLatest30, parse(t, someone))[0].AccountID
		deliverAccount(t, db, store.AccountFacts{ID: new("42"), Username: new("someone"), Followers: new(int64(100))})

		db.Clock.Advance(25 * time.Hour)
		c := claimOne(t, db, link.TikTok, "account")
		require.Equal(t, "42", c.Targets[0].ExternalID, "called by its id")
		lost := accountOutcome(db, c.Targets[0], store.AccountFacts{})
		lost.Account, lost.HandleLost = nil, true
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{lost}))

		second := follow(t, o, store.TrackLatest30, parse(t, someone))[0].AccountID
		require.NotEqual(t, first, second)
		deliverAccount(t, db, store.AccountFacts{ID: new("77"), Username: new("someone"), Followers: new(int64(5))})
		a, err := o.Account(t.Context(), store.AccountRef{ID: first})
		require.NoError(t, err)
		require.EqualValues(t, 100, *a.LatestFollowersCount)
		require.EqualValues(t, 5, *account(t, o, parse(t, someone)).LatestFollowersCount)
		consistent(t, db, o)
	})
}
