package db_test

import (
	"cmp"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// catalog is a map from the names of the tables of a database to their descriptions. It leaves out partitions and the tables of the migration
// tool.
type catalog map[string]*table

type table struct {
	Columns     map[string]column
	PrimaryKey  []string
	Indexes     map[string]index
	ForeignKeys []foreignKey
	Triggers    []string
}

type column struct {
	NotNull bool
	Default string
}

type index struct {
	Unique  bool
	Partial bool
	Columns []string // names of the indexed columns; "" for an expression
}

type foreignKey struct {
	Columns    []string
	To         string
	Referenced []string
	OnDelete   string // action on deletion, such as "CASCADE" or "NO ACTION"
	OnUpdate   string
}

// readCatalog reads the descriptions of all tables from the engine's system tables.
func readCatalog(t *testing.T, db *storetest.DB) catalog {
	t.Helper()
	var c catalog
	if db.Engine == "sqlite" {
		c = readSQLiteCatalog(t, db)
	} else {
		c = readPostgresCatalog(t, db)
	}
	require.NotEmpty(t, c)
	for _, tb := range c {
		slices.SortFunc(tb.ForeignKeys, func(a, b foreignKey) int {
			return cmp.Compare(strings.Join(a.Columns, ","), strings.Join(b.Columns, ","))
		})
	}
	return c
}

// newCatalog runs a query for names of tables. It returns a catalog with an empty description of each of these tables.
func newCatalog(t *testing.T, db *storetest.DB, query string) catalog {
	t.Helper()
	c := catalog{}
	for _, name := range storetest.Column[string](t, db, query) {
		c[name] = &table{Columns: map[string]column{}, Indexes: map[string]index{}}
	}
	return c
}

// eachRow runs a query. For each row of the result, it scans the row into the pointers and then calls f.
func eachRow(t *testing.T, db *storetest.DB, pointers []any, f func(), query string, args ...any) {
	t.Helper()
	rows, err := db.Raw(t).QueryContext(t.Context(), db.Bind(query), args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		require.NoError(t, rows.Scan(pointers...))
		f()
	}
	require.NoError(t, rows.Err())
}

func readSQLiteCatalog(t *testing.T, db *storetest.DB) catalog {
	c := newCatalog(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%'`)
	for name, tb := range c {
		var col, def, to, from, onDelete, onUpdate sql.NullString
		var notNull, unique, partial bool
		var key, id int
		keys := map[int]string{}
		eachRow(t, db, []any{&col, &notNull, &def, &key}, func() {
			tb.Columns[col.String] = column{notNull, def.String}
			if key > 0 {
				keys[key] = col.String
			}
		}, `SELECT name, "notnull", dflt_value, pk FROM pragma_table_xinfo(?)`, name)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			tb.PrimaryKey = append(tb.PrimaryKey, keys[k])
		}
		eachRow(t, db, []any{&col, &unique, &partial}, func() { tb.Indexes[col.String] = index{Unique: unique, Partial: partial} },
			`SELECT name, "unique", partial FROM pragma_index_list(?) WHERE origin <> 'pk'`, name)
		for i, ix := range tb.Indexes {
			eachRow(t, db, []any{&col}, func() { ix.Columns = append(ix.Columns, col.String) }, `SELECT name FROM pragma_index_info(?) ORDER BY seqno`, i)
			tb.Indexes[i] = ix
		}
		last := -1
		eachRow(t, db, []any{&id, &to, &col, &from, &onDelete, &onUpdate}, func() {
			if id != last {
				tb.ForeignKeys = append(tb.ForeignKeys, foreignKey{To: to.String, OnDelete: onDelete.String, OnUpdate: onUpdate.String})
				last = id
			}
			f := &tb.ForeignKeys[len(tb.ForeignKeys)-1]
			f.Columns, f.Referenced = append(f.Columns, col.String), append(f.Referenced, from.String)
		}, `SELECT id, "table", "from", "to", on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY id, seq`, name)
		tb.Triggers = storetest.Column[string](t, db, `SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?`, name)
	}
	return c
}

func readPostgresCatalog(t *testing.T, db *storetest.DB) catalog {
	c := newCatalog(t, db, `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT LIKE 'goose%'`)
	actions := map[string]string{"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
	const names = `(SELECT string_agg(COALESCE(a.attname, ''), ',' ORDER BY k.n) FROM unnest(%keys%) WITH ORDINALITY AS k(attnum, n)
  LEFT JOIN pg_attribute a ON a.attrelid = %table% AND a.attnum = k.attnum AND k.attnum > 0)`
	of := func(keys, table string) string {
		return strings.NewReplacer("%keys%", keys, "%table%", table).Replace(names)
	}
	for name, tb := range c {
		var col, def, cols, to, referenced, onDelete, onUpdate string
		var notNull, unique, partial, primary bool
		eachRow(t, db, []any{&col, &notNull, &def}, func() { tb.Columns[col] = column{notNull, strings.TrimSuffix(def, "::text")} }, `
SELECT a.attname, a.attnotnull, COALESCE(pg_get_expr(d.adbin, d.adrelid), '') || a.attidentity::text || a.attgenerated::text
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attrelid = CAST(? AS text)::regclass AND a.attnum > 0 AND NOT a.attisdropped`, name)
		// PostgreSQL's indexes have INCLUDE columns, and SQLite's do not. The schema for SQLite adds these columns to the columns of an index,
		// but not to a primary key. This expression does the same, so that both schemas can be compared.
		const keys = "CASE WHEN x.indisprimary THEN (x.indkey::int[])[0:x.indnkeyatts - 1] ELSE x.indkey::int[] END"
		eachRow(t, db, []any{&col, &unique, &partial, &primary, &cols}, func() {
			if primary {
				tb.PrimaryKey = strings.Split(cols, ",")
				return
			}
			tb.Indexes[col] = index{unique, partial, strings.Split(cols, ",")}
		}, `SELECT x.indexrelid::regclass::text, x.indisunique, x.indpred IS NOT NULL, x.indisprimary, `+of(keys, "x.indrelid")+`
  FROM pg_index x WHERE x.indrelid = CAST(? AS text)::regclass`, name)
		eachRow(t, db, []any{&cols, &to, &referenced, &onDelete, &onUpdate}, func() {
			tb.ForeignKeys = append(tb.ForeignKeys, foreignKey{strings.Split(cols, ","), to, strings.Split(referenced, ","), actions[onDelete], actions[onUpdate]})
		}, `SELECT `+of("f.conkey", "f.conrelid")+`, f.confrelid::regclass::text, `+of("f.confkey", "f.confrelid")+`, f.confdeltype, f.confupdtype
  FROM pg_constraint f WHERE f.contype = 'f' AND f.conrelid = CAST(? AS text)::regclass`, name)
		tb.Triggers = storetest.Column[string](t, db, `SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = CAST(? AS text)::regclass`, name)
	}
	return c
}
