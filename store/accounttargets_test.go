package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// In the tests of this file, two accounts have the same handle, one after the other.

// accountSubscriptions returns the organisation's subscriptions to accounts. The key is the external id of the target, and the value is the id of
// the account.
func accountSubscriptions(t *testing.T, db *storetest.DB, o *store.Org) map[string]uuid.UUID {
	t.Helper()
	subscriptions := map[string]uuid.UUID{}
	for _, name := range storetest.Column[string](t, db, "SELECT external_id FROM fetch_subscriptions WHERE kind = 'account' AND organisation_id = ?", o.ID()) {
		id := storetest.Column[string](t, db, "SELECT CAST(subject_id AS text) FROM fetch_subscriptions WHERE kind = 'account' AND organisation_id = ? AND external_id = ?", o.ID(), name)
		subscriptions[name] = uuid.MustParse(id[0])
	}
	return subscriptions
}

// followTwice tracks the handle of storetest.AccountURL twice, each time with the given allowance. Between both calls, the author of a tracked video
// takes this handle and gives it up. followTwice returns the ids of the two accounts.
func followTwice(t *testing.T, db *storetest.DB, o *store.Org, firstAllowance, secondAllowance int) (first, second uuid.UUID) {
	t.Helper()
	follow := func(allowance int) uuid.UUID {
		tracked, err := o.TrackAccounts(t.Context(), store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, storetest.AccountURL)}, Type: store.TrackAll, Allowance: allowance})
		require.NoError(t, err)
		return tracked[0].ID
	}
	storetest.Track(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@before/video/7301234567800000001"))
	storetest.Deliver(t, db, link.TikTok, storetest.FactsWithAuthor("42", "before"))
	first = follow(firstAllowance)
	for _, handle := range []string{"someone", "after"} {
		db.Clock.Advance(25 * time.Hour)
		storetest.Deliver(t, db, link.TikTok, storetest.FactsWithAuthor("42", handle))
	}
	second = follow(secondAllowance)
	require.NotEqual(t, first, second)
	return first, second
}

func TestSetSubscription_schedulesTheAccountThatHasTheHandleNow(t *testing.T) {
	t.Parallel()
	for name, allowances := range map[string][2]int{"both are pending": {0, 0}, "the first is pending": {0, 1}, "the second is pending": {1, 0}, "none is pending": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o := storetest.NewFreeOrg(t, db)
				first, second := followTwice(t, db, o, allowances[0], allowances[1])
				if allowances == [2]int{1, 1} { // the second account takes the target of the first
					lost, err := o.Account(t.Context(), store.Ref{ID: first})
					require.NoError(t, err)
					require.Equal(t, queue.FetchGone, lost.FetchStatus)
				}
				unrelated, err := o.TrackAccounts(t.Context(), store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, "https://www.tiktok.com/@unrelated")}, Type: store.TrackAll})
				require.NoError(t, err)
				want := map[string]uuid.UUID{"@someone": second, "@unrelated": unrelated[0].ID}
				for range 2 { // the second call must change nothing
					require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive))
					require.Equal(t, want, accountSubscriptions(t, db, o))
				}
				_, err = o.RefreshAccount(t.Context(), store.Ref{ID: first}, nil)
				require.ErrorIs(t, err, store.ErrHandleLost)
				require.Equal(t, want, accountSubscriptions(t, db, o))
				a, err := o.Account(t.Context(), store.Ref{ID: first})
				require.NoError(t, err)
				require.Equal(t, queue.FetchGone, a.FetchStatus)
				require.Contains(t, *a.FetchDetail("account", false), "The handle of the account belongs to another account now")
				require.Nil(t, a.NextFetchAt)
				require.Equal(t, queue.FetchPending, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).FetchStatus)
				storetest.RequireConsistent(t, db, o)
			})
		})
	}
}

func TestTrackAccounts_keepsTheSubscriptionOfTheAccountThatHadTheHandleBefore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		storetest.Track(t, o, storetest.VideoLink(t, 1))
		first := storetest.Follow(t, o, store.TrackNewOnly, l)[0].ID
		// No source fetches accounts, so the external id of the target stays "@someone". The fetches of a video report the id and then a new handle of the account.
		storetest.Deliver(t, db, link.TikTok, storetest.FactsWithAuthor("42", "someone"))
		db.Clock.Advance(25 * time.Hour)
		storetest.Deliver(t, db, link.TikTok, storetest.FactsWithAuthor("42", "renamed"))
		require.Equal(t, map[string]uuid.UUID{"@someone": first}, accountSubscriptions(t, db, o))

		second := storetest.Follow(t, o, store.TrackNewOnly, l)[0].ID
		storetest.Follow(t, other, store.TrackNewOnly, l)
		require.NotEqual(t, first, second)
		require.Equal(t, map[string]uuid.UUID{"42": first, "@someone": second}, accountSubscriptions(t, db, o))
		answers := map[string]ingest.AccountFacts{
			"renamed": {ID: new("42"), Username: new("renamed"), Followers: new(int64(1))},
			"someone": {ID: new("77"), Username: new("someone"), Followers: new(int64(2))},
		}
		for _, c := range storetest.Claim(t, db, link.TikTok, "account") {
			for _, target := range c.Targets {
				require.Equal(t, link.AccountURL(link.TikTok, target.Handle), target.Link)
				require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, target, answers[target.Handle])}))
			}
		}
		require.Equal(t, map[string]uuid.UUID{"42": first, "77": second}, accountSubscriptions(t, db, o))
		for _, org := range []*store.Org{o, other} {
			require.Equal(t, "77", *storetest.AccountByLink(t, org, l).ExternalID)
			storetest.RequireConsistent(t, db, org)
		}
		require.Equal(t, first, storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@renamed")).ID)
	})
}
