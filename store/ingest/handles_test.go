package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

const renamed = "https://www.tiktok.com/@renamed"

func TestRename_takesTheHandleFromTheAccountThatHadItBefore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		storetest.DeliverAccount(t, db, storetest.ListedAccount(storetest.FoundVideos(t, 2, db.Clock.Now())))
		id := storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).ID
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, renamed)) // a second account, which has the handle @renamed at first
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("77"), Username: new("renamed"), Followers: new(int64(5))})
		before := storetest.AccountByLink(t, o, storetest.ParseLink(t, renamed))
		require.NotEqual(t, id, before.ID)

		db.Clock.Advance(25 * time.Hour)
		for _, c := range storetest.Claim(t, db, link.TikTok, "account") {
			for _, target := range c.Targets {
				facts := ingest.AccountFacts{ID: &target.AccountID, Username: new("renamed"), Followers: new(int64(9))}
				if target.AccountID == "77" {
					facts.Username = new("elsewhere")
				}
				require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, target, facts)}))
			}
		}
		require.Equal(t, id, storetest.AccountByLink(t, o, storetest.ParseLink(t, renamed)).ID)
		require.Equal(t, before.ID, storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@elsewhere")).ID)
		storetest.RequireConsistent(t, db, o)
	})
}

func TestRename_isNotUndoneByAnOldAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		storetest.DeliverAccount(t, db, storetest.ListedAccount(storetest.FoundVideos(t, 1, db.Clock.Now())))
		videos := storetest.ClaimOne(t, db, link.TikTok, "video") // the video is claimed before the rename and acknowledged after the rename

		db.Clock.Advance(25 * time.Hour)
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("renamed")})
		require.NoError(t, db.Acknowledge(t.Context(), videos, videos.At, []ingest.Outcome{
			storetest.Outcome(db, videos.Targets[0], ingest.VideoFacts{Views: new(int64(3)), Username: new("someone"), AccountID: new("42")})}))
		a := storetest.AccountByLink(t, o, storetest.ParseLink(t, renamed))
		require.Equal(t, "42", *a.ExternalID)
		require.Equal(t, "https://www.tiktok.com/@renamed", a.Link)
	})
}

func TestRename_freesTheOldHandleForAnotherAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		first := storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))[0].ID
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("someone"), Followers: new(int64(100))})

		db.Clock.Advance(25 * time.Hour)
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, "42", c.Targets[0].ExternalID, "the target of the account must use the account's id")
		lost := storetest.AccountOutcome(db, c.Targets[0], ingest.AccountFacts{})
		lost.Account, lost.HandleLost = nil, true
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{lost}))

		second := storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))[0].ID
		require.NotEqual(t, first, second)
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("77"), Username: new("someone"), Followers: new(int64(5))})
		a, err := o.Account(t.Context(), store.Ref{ID: first})
		require.NoError(t, err)
		require.EqualValues(t, 100, *a.LatestFollowersCount)
		require.EqualValues(t, 5, *storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).LatestFollowersCount)
		storetest.RequireConsistent(t, db, o)
	})
}
