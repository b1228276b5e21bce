package storetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// The test stores the results of fetches of videos that two organisations track. Without Citus, the store runs statements with lists of the
// rows of both organisations. CheckRouting refuses these statements. On Citus, the store runs one statement for each organisation, which
// CheckRouting accepts.
func TestStore_runsOneStatementForEachOrganisationOnCitus(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]string{"without Citus": "postgres", "on Citus": "citus"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, engine)
			for range 2 {
				storetest.Track(t, storetest.NewOrg(t, db), storetest.Clips(t, 3)...)
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
	require.NoError(t, db.Store.DB().MakeDays(t.Context(), store.Date(0), store.Date(0)))
	statements := db.Guard.Statements()
	require.Contains(t, statements, "SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
	require.Contains(t, statements[len(statements)-1], "ATTACH PARTITION")
}
