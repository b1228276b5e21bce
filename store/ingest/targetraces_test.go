package ingest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// The tests of this file change the external id of an account's target from "@" and the handle to the id of the account. Meanwhile, another transaction
// uses the target with the handle or a target with the id.

// accountTargets returns the external ids of the accounts' targets in the fetch queue, and the external ids of the targets to which the organisation
// is subscribed.
func accountTargets(t *testing.T, db *storetest.DB, o *store.Org) (targets, subscribed []string) {
	t.Helper()
	return storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE kind = 'account' ORDER BY external_id"),
		storetest.Column[string](t, db, "SELECT external_id FROM fetch_subscriptions WHERE kind = 'account' AND organisation_id = ? ORDER BY external_id", o.ID())
}

// claimWithOrphan returns a claim of the target "@someone", which o tracks. The account has the id 42. The queue also contains the target "42" without
// a subscription, which is due in a second.
func claimWithOrphan(t *testing.T, db *storetest.DB, o *store.Org) queue.Claim {
	t.Helper()
	earlier, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
	storetest.Follow(t, earlier, store.TrackAll, l)
	storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("someone"), Followers: new(int64(1))})
	storetest.StopAccounts(t, earlier, l)
	db.Clock.Advance(24*time.Hour - time.Second)
	storetest.Follow(t, o, store.TrackAll, l)
	c := storetest.ClaimOne(t, db, link.TikTok, "account")
	require.Equal(t, "@someone", c.Targets[0].ExternalID)
	return c
}

// acknowledge stores a fetch result for the claimed account, in which the account has the id 42 and the handle "someone".
func acknowledge(t *testing.T, db *storetest.DB, s *store.Store, c queue.Claim) {
	t.Helper()
	facts := ingest.AccountFacts{ID: new("42"), Username: new("someone"), Followers: new(int64(2))}
	require.NoError(t, ingest.New(s).Acknowledge(context.WithoutCancel(t.Context()), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], facts)}))
}

func TestRenameTarget_keepsTheTargetIfAClaimConcurrentlyDeletesTheOtherTarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		c := claimWithOrphan(t, db, o)
		if !db.SharedByProcesses() {
			acknowledge(t, db, db.Store, c)
		} else {
			db.Clock.Advance(2 * time.Second) // the target without a subscription is now due
			finish := storetest.RunBeforeStatement(t, db, "DELETE FROM fetch_targets", func(s *store.Store) { acknowledge(t, db, s, c) })
			require.Empty(t, storetest.Claim(t, db, link.TikTok, "account"))
			finish()
		}
		targets, subscribed := accountTargets(t, db, o)
		require.Equal(t, []string{"42"}, targets)
		require.Equal(t, []string{"42"}, subscribed)
	})
}

func TestDeleteOrphans_keepsATargetThatIsConcurrentlyMergedWithAnother(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		c := claimWithOrphan(t, db, o)
		db.Clock.Advance(48 * time.Hour) // DeleteOrphans now deletes the target without a subscription
		finish := func() {}
		if db.SharedByProcesses() {
			finish = storetest.RunBeforeStatement(t, db, "INSERT INTO fetch_subscriptions", func(s *store.Store) {
				_, err := s.Queue.DeleteOrphans(context.WithoutCancel(t.Context()), storetest.NeverStop)
				require.NoError(t, err)
			})
		}
		acknowledge(t, db, db.Store, c)
		finish()
		targets, subscribed := accountTargets(t, db, o)
		require.Equal(t, []string{"42"}, targets)
		require.Equal(t, []string{"42"}, subscribed)
	})
}

func TestRenameTarget_keepsTheSubscriptionOfAnOrganisationThatConcurrentlyTracksTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, concurrent, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		storetest.Follow(t, concurrent, store.TrackAll, storetest.ParseLink(t, "https://www.tiktok.com/@before")) // the earlier handle of the account
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("before"), Followers: new(int64(1))})
		storetest.Follow(t, o, store.TrackAll, l)
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		follow := func() { storetest.Follow(t, concurrent, store.TrackAll, l) }
		if db.SharedByProcesses() {
			db.Guard.BeforeStatement("UPDATE organisation_totals SET version", follow) // the transaction has read the subscriptions
		} else {
			follow()
		}
		acknowledge(t, db, db.Store, c)
		for _, org := range []*store.Org{o, concurrent} {
			targets, subscribed := accountTargets(t, db, org)
			require.Equal(t, []string{"42"}, targets)
			require.Equal(t, []string{"42"}, subscribed)
			require.Equal(t, new(int64(2)), storetest.AccountByLink(t, org, l).LatestFollowersCount)
			storetest.RequireConsistent(t, db, org)
		}
	})
}
