package db_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestStoredTables_haveEachTableAfterTheTablesToWhichItRefers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tables, err := d.DB().StoredTables(t.Context())
		require.NoError(t, err)
		var names []string
		for _, table := range tables {
			names = append(names, table.Name)
		}
		referenced := map[string]bool{}
		for name, table := range readCatalog(t, d) {
			for _, key := range table.ForeignKeys {
				if key.To == name {
					continue
				}
				referenced[key.To] = true
				require.Less(t, slices.Index(names, key.To), slices.Index(names, name), "%s refers to %s", name, key.To)
			}
		}
		for _, name := range names {
			require.Equal(t, referenced[name], db.IsReferencedByForeignKeys(name), name)
		}
	})
}
