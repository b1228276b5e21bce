package storetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestServerCrash_keepsCommittedRows(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	db := server.New(t, "crashed")
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierBasic, store.SubscriptionActive)
	require.NoError(t, err)
	server.Crash(t)
	var again store.Organisation
	require.Eventually(t, func() bool {
		again, err = db.Organisation(t.Context(), o.ID)
		return err == nil
	}, 10*time.Second, 20*time.Millisecond, "%v", err)
	require.Equal(t, o, again)
}
