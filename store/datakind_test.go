package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// Requirements in docs/coverage.md: 11.3-01
func TestDataKind_isDecidedByTheFirstStoredNumbers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		require := require.New(t)
		kind, err := db.DataKind(t.Context())
		require.NoError(err)
		require.Equal(store.NoData, kind)

		kinds := []store.DataKind{store.MadeUpData, store.RealData}
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				errs[i] = db.DB().Tx(t.Context(), func(tx *gorm.DB) error { return store.RequireDataKind(tx, kinds[i%2]) })
			})
		}
		wg.Wait()
		kind, err = db.DataKind(t.Context())
		require.NoError(err)
		require.Contains(kinds, kind)
		for i, err := range errs {
			if kinds[i%2] == kind {
				require.NoError(err)
				continue
			}
			require.Equal(&store.DataKindError{Have: kind, New: kinds[i%2]}, err)
		}
	})
}
