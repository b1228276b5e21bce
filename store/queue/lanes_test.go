package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// newOrgWithTier creates an organisation with a tier and a subscription.
func newOrgWithTier(t *testing.T, db *storetest.DB, tier store.Tier, sub store.Subscription) *store.Org {
	t.Helper()
	o, err := db.CreateOrganisation(t.Context(), "Payer", tier, sub)
	require.NoError(t, err)
	return db.Org(o.ID)
}

// trackAndFetchOnce tracks links in the lane of the organisation, and stores the result of one fetch for each link.
func trackAndFetchOnce(t *testing.T, db *storetest.DB, o *store.Org, links ...link.Link) {
	t.Helper()
	_, err := o.Track(t.Context(), store.TrackRequest{Links: links, Immediate: len(links), Allowance: len(links)})
	require.NoError(t, err)
	storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
}

// laneDigits returns a text of two digits for each target: its base lane and its current lane. The
// targets are sorted by kind and external id.
func laneDigits(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	return storetest.Column[string](t, db, "SELECT CAST(base_lane AS text) || CAST(lane AS text) FROM fetch_targets ORDER BY kind, external_id")
}

func TestSetTierAndSubscription_movesTheTargetsToTheNewLane(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive)
		trackAndFetchOnce(t, db, o, storetest.VideoLinks(t, 3)...)
		require.Equal(t, []string{"22", "22", "22"}, laneDigits(t, db))
		for _, sub := range []store.Subscription{store.SubscriptionActive, store.SubscriptionNone} {
			for _, tier := range store.Tiers {
				require.NoError(t, db.SetSubscription(t.Context(), o.ID(), sub))
				require.NoError(t, db.SetTier(t.Context(), o.ID(), tier))
				lane := store.LaneOf(store.Organisation{Tier: tier, Subscription: sub})
				want := fmt.Sprintf("%d%[1]d", lane)
				require.Equal(t, []string{want, want, want}, laneDigits(t, db), "%s %s", tier, sub)
			}
		}
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive))
		require.Equal(t, []string{"11", "11", "11"}, laneDigits(t, db), "the lane must also change if only the subscription changes")
		demand, err := db.Demand(t.Context())
		require.NoError(t, err)
		require.Len(t, demand, 1)
		require.Equal(t, queue.LanePremium, demand[0].Lane, "the method Demand must return the new lane")
	})
}

func TestSetTier_keepsATargetInTheMostUrgentLaneOfItsSubscribers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, premium, free := newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive), storetest.NewOrg(t, db), newOrgWithTier(t, db, store.TierPremium, store.SubscriptionNone)
		trackAndFetchOnce(t, db, o, storetest.VideoLinks(t, 3)...)
		trackAndFetchOnce(t, db, premium, storetest.VideoLink(t, 1), storetest.VideoLink(t, 3))
		trackAndFetchOnce(t, db, free, storetest.VideoLink(t, 2), storetest.VideoLink(t, 4))
		require.Equal(t, []string{"22", "11", "22", "11", "33"}, laneDigits(t, db))
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionNone))
		require.Equal(t, []string{"33", "11", "33", "11", "33"}, laneDigits(t, db))
		require.NoError(t, db.SetTier(t.Context(), premium.ID(), store.TierLimited))
		require.Equal(t, []string{"33", "22", "33", "22", "33"}, laneDigits(t, db))
		require.NoError(t, db.SetSubscription(t.Context(), free.ID(), store.SubscriptionActive))
		require.Equal(t, []string{"33", "22", "11", "22", "11"}, laneDigits(t, db), "both targets of the organisation must move to the premium lane")
	})
}

func TestSetTier_movesAccountsButLeavesTargetsInTheInteractiveLane(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone")})
		storetest.Track(t, o, storetest.VideoLink(t, 1))
		require.Equal(t, []string{"11", "10"}, laneDigits(t, db))
		require.NoError(t, db.SetTier(t.Context(), o.ID(), store.TierBasic))
		require.Equal(t, []string{"22", "20"}, laneDigits(t, db))
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(1)))
		require.Equal(t, []string{"22", "22"}, laneDigits(t, db))
	})
}

func TestSetSubscription_changesTheLaneOfClaimedTargets(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive)
		trackAndFetchOnce(t, db, o, storetest.VideoLink(t, 1))
		storetest.Track(t, o, storetest.VideoLink(t, 2)) // the target of this video stays in the interactive lane
		db.Clock.Advance(24 * time.Hour)
		held := storetest.Claim(t, db, link.TikTok, "video")
		require.Len(t, held, 2)
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionNone))
		require.Equal(t, []string{"33", "30"}, laneDigits(t, db))
		for _, c := range held {
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[0], storetest.Views(2))}))
		}
		require.Equal(t, []string{"33", "33"}, laneDigits(t, db))
		require.EqualValues(t, 2, *storetest.VideoOf(t, o, storetest.VideoLink(t, 1)).Latest.Views, "the claim must still be valid")
	})
}

func TestTrack_givesATargetWithoutASubscriptionTheLaneOfTheNewSubscriber(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		premium, basic, free := storetest.NewOrg(t, db), newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive), storetest.NewFreeOrg(t, db)
		trackAndFetchOnce(t, db, premium, storetest.VideoLinks(t, 3)...)
		require.Equal(t, []string{"11", "11", "11"}, laneDigits(t, db))
		storetest.StopVideos(t, premium, storetest.VideoLinks(t, 3)...)
		require.Equal(t, []string{"33", "33", "33"}, laneDigits(t, db))
		for i, o := range []*store.Org{free, basic, premium} {
			_, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{storetest.VideoLink(t, i)}, Allowance: 1})
			require.NoError(t, err)
		}
		require.Equal(t, []string{"33", "22", "11"}, laneDigits(t, db))
	})
}

func TestSetTier_setsTheRightLaneIfTwoSubscribersOfATargetChangeConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		one, two := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		trackAndFetchOnce(t, db, one, storetest.VideoLink(t, 1))
		trackAndFetchOnce(t, db, two, storetest.VideoLink(t, 1))
		// The transaction that changes the tier of organisation "one" has locked the target, but not yet
		// updated the lane. Meanwhile, another transaction changes the tier of organisation "two".
		finish := storetest.RunBeforeStatement(t, db, "UPDATE fetch_targets SET base_lane", func(s *store.Store) {
			require.NoError(t, s.SetTier(t.Context(), two.ID(), store.TierBasic))
		})
		require.NoError(t, db.SetTier(t.Context(), one.ID(), store.TierBasic))
		finish()
		require.Equal(t, []string{"22"}, laneDigits(t, db))
	})
}

func TestSetTier_setsTheRightLaneIfAnOrganisationSubscribesConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, premium := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		trackAndFetchOnce(t, db, o, storetest.VideoLink(t, 1))
		// The tier changes after the transaction of the new subscriber has read the target, and before it writes the subscription.
		finish := storetest.RunBeforeStatement(t, db, "INSERT INTO fetch_subscriptions", func(s *store.Store) { require.NoError(t, s.SetTier(t.Context(), o.ID(), store.TierBasic)) })
		trackOnSchedule(t, premium, storetest.VideoLink(t, 1))
		finish()
		require.Equal(t, []string{"11"}, laneDigits(t, db))
	})
}

// fillSubscriptions adds n targets to a lane, each with a subscription of the organisation. The external ids are consecutive numbers that begin with
// first.
func fillSubscriptions(t *testing.T, db *storetest.DB, o *store.Org, first, n int, lane queue.Lane) {
	t.Helper()
	const numbers = `WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)`
	series := fmt.Sprintf(numbers, first, first+n-1)
	db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail) `+
		series+fmt.Sprintf(` SELECT 0, 'tiktok', 'video', CAST(i AS text), '', '', %d, %[1]d, 0, 0, 0, 'active', '' FROM n`, lane))
	subject := "CAST('00000000-0000-7000-8000-' || CAST(100000000000 + i AS text) AS " + uuidType(db) + ")"
	db.Exec(t, `INSERT INTO fetch_subscriptions (bucket, source, kind, external_id, organisation_id, subject_id) `+
		series+` SELECT 0, 'tiktok', 'video', CAST(i AS text), CAST(? AS `+uuidType(db)+`), `+subject+` FROM n`, o.ID())
}

func TestSetTier_movesManyTargetsInBatches(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const many = 2500
		o, others := newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive), newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive)
		fillSubscriptions(t, db, o, 1, many, queue.LaneBasic)
		fillSubscriptions(t, db, others, many+1, 10, queue.LaneBasic)
		var progress [][2]int64
		require.NoError(t, db.SetTier(t.Context(), o.ID(), store.TierPremium, func(done, total int64) { progress = append(progress, [2]int64{done, total}) }))
		require.Equal(t, [][2]int64{{1000, many}, {2000, many}, {many, many}}, progress)
		require.Equal(t, []int64{many}, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM fetch_targets WHERE lane = 1 AND base_lane = 1"))

		// Interrupt the change of the tier after the first batch of targets. Repeating the change moves the remaining targets.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		require.Error(t, db.SetTier(ctx, o.ID(), store.TierLimited, func(int64, int64) { cancel() }))
		require.Equal(t, []int64{1000 + 10}, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM fetch_targets WHERE lane = 2 AND base_lane = 2"))
		require.NoError(t, db.SetTier(t.Context(), o.ID(), store.TierLimited))
		require.Equal(t, []int64{many + 10}, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM fetch_targets WHERE lane = 2 AND base_lane = 2"))
	})
}

func TestSetTier_readsOnlyTheTargetsOfTheOrganisation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, others := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		fillSubscriptions(t, db, o, 1, 5, queue.LanePremium)
		fillSubscriptions(t, db, others, 6, 20_000, queue.LanePremium)
		db.Exec(t, "ANALYZE")
		db.Guard.Statements()
		require.NoError(t, db.SetTier(t.Context(), o.ID(), store.TierBasic))
		keys := targetParameters(t, db, 5)
		seen := 0
		for _, statement := range db.Guard.Statements() {
			var args []any
			switch {
			case strings.Contains(statement, "SELECT source, kind, external_id, subject_id"):
				args = []any{o.ID(), uuid.Nil, o.ID(), uuid.Nil, 1000}
			case strings.Contains(statement, "SELECT u.place"), strings.Contains(statement, "SELECT DISTINCT s.organisation_id"):
				args = keys
			case strings.Contains(statement, "best AS"):
				args = slices.Concat(keys, tierParameters(t, db, o.ID()), []any{0, 0})
			default:
				continue
			}
			seen++
			plan := queryPlan(t, db, statement, args...)
			for _, table := range []string{"fetch_targets", "fetch_subscriptions"} {
				require.NotContains(t, plan, "Seq Scan on "+table)
				require.NotContains(t, plan, "SCAN "+table)
				require.NotContains(t, plan, "(bucket=?)", "the plan must use more than the first column of the key")
			}
		}
		require.GreaterOrEqual(t, seen, 2)
	})
}

// targetParameters returns the parameters of the statements of UpdateLanes for n targets.
func targetParameters(t *testing.T, d *storetest.DB, n int) []any {
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = []any{queue.Bucket, "tiktok", "video", fmt.Sprint(i + 1), i}
	}
	_, args := db.WithRows(d.Store.DB().Read(t.Context()), "u", []string{"bucket smallint", "source text", "kind text", "external_id text", "place integer"}, rows)
	return args
}

// tierParameters returns the parameters that the UPDATE has only on Citus: a list with the tier of the
// organisation. On other engines, it returns nil.
func tierParameters(t *testing.T, d *storetest.DB, org uuid.UUID) (args []any) {
	tx := d.Store.DB().Read(t.Context())
	if db.IsSharded(tx) {
		_, args = db.WithRows(tx, "tiers", []string{"id uuid", "tier text", "subscription text"}, [][]any{{org, "basic", "active"}})
	}
	return args
}

func TestStopVideos_movesTheTargetToTheLaneOfTheRemainingSubscriber(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		premium, basic := storetest.NewOrg(t, db), newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive)
		trackAndFetchOnce(t, db, premium, storetest.VideoLinks(t, 4)...)
		trackAndFetchOnce(t, db, basic, storetest.VideoLinks(t, 3)...)
		require.Equal(t, []string{"11", "11", "11", "11"}, laneDigits(t, db))
		storetest.StopVideos(t, premium, storetest.VideoLink(t, 0), storetest.VideoLink(t, 2), storetest.VideoLink(t, 3))
		require.Equal(t, []string{"22", "11", "22", "33"}, laneDigits(t, db), "the last target has no subscription, so it must have the least urgent lane")
		storetest.StopVideos(t, basic, storetest.VideoLink(t, 1))
		require.Equal(t, "11", laneDigits(t, db)[1])
		db.Clock.Advance(48 * time.Hour)
		require.Equal(t, 3, storetest.Deliver(t, db, link.TikTok, storetest.Views(2)))
	})
}

func TestStopAccounts_movesTheTargetsToTheLaneOfTheRemainingSubscriber(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		premium, basic, someone := storetest.NewOrg(t, db), newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive), storetest.ParseLink(t, "https://www.tiktok.com/@someone")
		for _, o := range []*store.Org{premium, basic} {
			storetest.Follow(t, o, store.TrackLatest30, someone)
		}
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Listed: true, Videos: []ingest.FoundVideo{{ID: storetest.VideoLink(t, 1).ID, Link: storetest.VideoLink(t, 1).Canonical}}})
		storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
		require.Equal(t, []string{"11", "11"}, laneDigits(t, db))
		storetest.StopAccounts(t, premium, someone)
		require.Equal(t, []string{"22", "22"}, laneDigits(t, db), "the targets of the account and of its video must be in the basic lane")
	})
}

// Two of three subscribers stop tracking a video at the same time, in two transactions. The transaction that ends last must see that both
// subscriptions are deleted.
func TestStopVideos_setsTheLaneOfTheRemainingSubscriberAfterConcurrentStops(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		one, two, basic := storetest.NewOrg(t, db), storetest.NewOrg(t, db), newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive)
		for _, o := range []*store.Org{one, two, basic} {
			trackAndFetchOnce(t, db, o, storetest.VideoLink(t, 1))
		}
		finish := storetest.RunBeforeStatement(t, db, "UPDATE organisation_totals SET videos = videos -", func(s *store.Store) { storetest.StopVideos(t, s.Org(two.ID()), storetest.VideoLink(t, 1)) })
		storetest.StopVideos(t, one, storetest.VideoLink(t, 1))
		finish()
		require.Equal(t, []string{"22"}, laneDigits(t, db))
	})
}
