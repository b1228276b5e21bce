package db_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

func TestSchema_followsTheRulesOfTheTableClasses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		c := readCatalog(t, db)

		t.Run("every table has a class, and every described table exists", func(t *testing.T) {
			require.ElementsMatch(t, slices.Collect(maps.Keys(storetest.Tables)), slices.Collect(maps.Keys(c)))
		})
		for name, tb := range c {
			t.Run(name, func(t *testing.T) {
				require.NotEmpty(t, tb.PrimaryKey, "the table must have a primary key, because rows without a key cannot be moved or repaired")
				require.Empty(t, tb.Triggers)
				checkDefaults(t, tb)
				checkForeignKeys(t, name, tb)
				if storetest.Tables[name].Class == storetest.Distributed {
					checkDistributedTable(t, tb)
				}
			})
		}
	})
}

func checkDistributedTable(t *testing.T, tb *table) {
	require.Contains(t, tb.Columns, "organisation_id")
	require.True(t, tb.Columns["organisation_id"].NotNull, "the column organisation_id must be NOT NULL")
	require.Equal(t, "organisation_id", tb.PrimaryKey[0], "the primary key %v must begin with organisation_id", tb.PrimaryKey)
	for name, ix := range tb.Indexes {
		require.Equal(t, "organisation_id", ix.Columns[0], "index %s must begin with organisation_id, because every query is for one organisation", name)
	}
}

func checkForeignKeys(t *testing.T, name string, tb *table) {
	class := storetest.Tables[name].Class
	for _, f := range tb.ForeignKeys {
		require.Contains(t, []string{"CASCADE", "NO ACTION"}, f.OnDelete, "%v", f)
		require.Equal(t, "NO ACTION", f.OnUpdate, "the foreign key %v must have no action ON UPDATE, because keys never change", f)
		switch storetest.Tables[f.To].Class {
		case storetest.Distributed:
			require.Equal(t, storetest.Distributed, class, "a table of the class %s must not refer to the distributed table %s", class, f.To)
			require.Equal(t, "organisation_id", f.Columns[0], "%v", f)
			require.Equal(t, "organisation_id", f.Referenced[0], "%v", f)
		case storetest.Reference:
			require.NotEqual(t, storetest.Coordinator, class, "a coordinator table must not refer to the reference table %s", f.To)
			require.Len(t, f.Columns, 1)
		default:
			require.Failf(t, "a foreign key must not refer to a coordinator table", "foreign key %v", f)
		}
	}
}

var constant = regexp.MustCompile(`^(|-?\d+|true|false|'[^']*'(::\w+)?)$`)

func checkDefaults(t *testing.T, tb *table) {
	for name, col := range tb.Columns {
		require.Regexp(t, constant, col.Default, "column %s: a default must be a constant, not a sequence, a clock or a random value", name)
	}
}

// onlyOnSQLite has the indexes that exist only on SQLite. The key is the name of the table.
var onlyOnSQLite = map[string]string{"fetch_targets": "fetch_targets_counts"}

func TestSchema_isTheSameOnEveryEngine(t *testing.T) {
	t.Parallel()
	first := readCatalog(t, storetest.New(t, "sqlite"))
	for name, index := range onlyOnSQLite {
		require.Contains(t, first[name].Indexes, index)
		delete(first[name].Indexes, index)
	}
	for _, engine := range storetest.Engines[1:] {
		other := readCatalog(t, storetest.New(t, engine))
		for name, tb := range first {
			require.Contains(t, other, name, engine)
			// Compare the indexes without their names, because each engine names the index of a unique constraint differently.
			require.ElementsMatch(t, slices.Collect(maps.Values(tb.Indexes)), slices.Collect(maps.Values(other[name].Indexes)), "indexes of %s on %s", name, engine)
			tb.Indexes, other[name].Indexes = nil, nil
			require.Equal(t, tb, other[name], "%s on %s", name, engine)
		}
		require.Len(t, other, len(first))
	}
}

func TestSchema_hasNoNameLongerThan50Characters(t *testing.T) {
	t.Parallel()
	const maxNameLength = 50 // Citus appends the number of the shard to each name, and PostgreSQL truncates names to 63 characters
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		query := `SELECT name FROM sqlite_master WHERE length(name) > ?`
		if db.Engine != "sqlite" {
			query = `SELECT name FROM (SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT conname::text FROM pg_constraint WHERE connamespace = 'public'::regnamespace) AS names WHERE length(name) > CAST(? AS integer)`
		}
		require.Empty(t, storetest.Column[string](t, db, query, maxNameLength))
	})
}

func TestSchema_hasNoSequences(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		query := `SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%' AND name NOT LIKE 'goose%'`
		if db.Engine != "sqlite" {
			query = `SELECT relname FROM pg_class WHERE relkind = 'S' AND relname NOT LIKE 'goose%'`
		}
		require.Empty(t, storetest.Column[string](t, db, query))
	})
}

func TestSchema_deletesAllDataOfADeletedOrganisation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.CreateOrgWithData(t, db), storetest.CreateOrgWithData(t, db)
		storetest.FillEmptyTables(t, db, o)
		count := func(id any) map[string]int64 {
			rows := map[string]int64{}
			for name, described := range storetest.Tables {
				if described.Class == storetest.Distributed {
					rows[name] = storetest.Column[int64](t, db, "SELECT COUNT(*) FROM "+name+" WHERE organisation_id = ?", id)[0]
				}
			}
			return rows
		}
		for name, n := range count(o.ID()) {
			require.Positive(t, n, "the organisation must have rows in the table %s before it is deleted", name)
		}
		before := count(other.ID())
		db.Exec(t, "DELETE FROM organisations WHERE id = ?", o.ID())
		for name, n := range count(o.ID()) {
			require.Zero(t, n, name)
		}
		require.Equal(t, before, count(other.ID()))
	})
}
