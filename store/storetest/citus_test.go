package storetest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestStore_runsOneStatementForEachOrganisationOnCitus stores results of fetches for two organisations. Without Citus, some statements write rows of
// both, and CheckRouting refuses such statements. On Citus, it must accept every statement.
func TestStore_runsOneStatementForEachOrganisationOnCitus(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]string{"without Citus": "postgres", "on Citus": "citus"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, engine)
			for range 2 {
				storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLinks(t, 3)...)
			}
			db.Guard.Statements()
			storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: new(int64(10)), Title: new("A #dog"), Username: new("someone"), AccountID: new("42")})
			refused := 0
			for _, s := range db.Guard.Statements() {
				require.NoError(t, storetest.CheckStatement(s))
				if storetest.CheckRouting(s) != nil {
					refused++
				}
			}
			if engine == "citus" {
				require.Zero(t, refused)
			} else {
				require.Greater(t, refused, 5)
			}
		})
	}
}

// The store creates each partition in a transaction that has set Citus's sequential mode. Citus refuses the statements outside of this
// mode.
func TestStore_changesTablesInSequentialMode(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "citus")
	require.NoError(t, db.Store.DB().CreatePartitions(t.Context(), store.Date(0), store.Date(0)))
	statements := db.Guard.Statements()
	require.Contains(t, statements, "SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
	require.Contains(t, statements[len(statements)-1], "ATTACH PARTITION")
}

// On Citus, a join with the reference table "organisations" would not use the indexes of the queue.
// So no statement may read both the queue and this table.
func TestStore_readsTheQueueAndTheOrganisationsSeparatelyOnCitus(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "citus")
	premium, basic := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
	require.NoError(t, db.SetTier(t.Context(), premium.ID(), store.TierPremium))
	require.NoError(t, db.SetTier(t.Context(), basic.ID(), store.TierBasic))
	shared, own := storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)
	storetest.Track(t, premium, shared, own)
	storetest.Track(t, basic, shared)
	// The lanes must change in the same way as without Citus.
	lanes := func() []int64 {
		return storetest.Column[int64](t, db, "SELECT base_lane FROM fetch_targets ORDER BY external_id")
	}
	require.Equal(t, []int64{int64(queue.LanePremium), int64(queue.LanePremium)}, lanes())
	db.Guard.Statements()
	require.NoError(t, db.SetTier(t.Context(), premium.ID(), store.TierBasic))
	require.Equal(t, []int64{int64(queue.LaneBasic), int64(queue.LaneBasic)}, lanes())
	require.NoError(t, db.SetSubscription(t.Context(), basic.ID(), store.SubscriptionNone))
	storetest.StopVideos(t, premium, shared)
	require.Equal(t, []int64{int64(queue.LaneFree), int64(queue.LaneBasic)}, lanes())
	changes := 0
	for _, s := range db.Guard.Statements() {
		if strings.Contains(s, "fetch_targets") {
			require.NotContains(t, s, "organisations")
			changes++
		}
	}
	require.Greater(t, changes, 3)
}
