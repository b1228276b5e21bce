package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Statements over several organisations. Each row is named with its organisation, in a list of parameters that the statement
// joins, so that none reads or changes a row of an organisation that it was not given.

// rowKey names a row of a distributed table: an id without its organisation never does.
type rowKey struct{ Org, ID uuid.UUID }

func (v *Video) key() rowKey { return rowKey{v.OrganisationID, v.ID} }

// keysOf names rows of one organisation.
func keysOf(org uuid.UUID, ids []uuid.UUID) []rowKey {
	keys := make([]rowKey, len(ids))
	for i, id := range ids {
		keys[i] = rowKey{org, id}
	}
	return keys
}

// sortedKeys returns keys in the order in which all writers lock rows.
func sortedKeys[V any](m map[rowKey]V) []rowKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b rowKey) int {
		return cmp.Or(slices.Compare(a.Org[:], b.Org[:]), slices.Compare(a.ID[:], b.ID[:]))
	})
}

func orgsOf(keys []rowKey) []uuid.UUID {
	orgs := make([]uuid.UUID, len(keys))
	for i, k := range keys {
		orgs[i] = k.Org
	}
	return distinct(orgs)
}

// with returns "WITH name(…) AS (VALUES …)" for rows of parameters, and these. A column is a name and its type, as
// "day date". There is at least one row, and no more than insertChunk.
func with(tx *gorm.DB, name string, columns []string, rows [][]any) (statement string, args []any) {
	names, casts := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		var kind string
		names[i], kind, _ = strings.Cut(c, " ")
		switch kind {
		case "uuid":
			kind = uuidType(tx)
		case "date":
			kind = dateType(tx)
		}
		casts[i] = "CAST(? AS " + kind + ")"
	}
	values := make([]string, len(rows))
	for i, r := range rows {
		values[i] = "(" + strings.Join(casts, ", ") + ")"
		args = append(args, r...)
	}
	return "WITH " + name + "(" + strings.Join(names, ", ") + ") AS (VALUES " + strings.Join(values, ", ") + ")\n", args
}

// withKeys is with of "wanted": the rows' keys.
func withKeys(tx *gorm.DB, keys []rowKey) (statement string, args []any) {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.Org, k.ID}
	}
	return with(tx, "wanted", []string{"organisation_id uuid", "id uuid"}, rows)
}

// withOrgs is with of "wanted": organisations.
func withOrgs(tx *gorm.DB, orgs []uuid.UUID) (statement string, args []any) {
	rows := make([][]any, len(orgs))
	for i, org := range orgs {
		rows[i] = []any{org}
	}
	return with(tx, "wanted", []string{"organisation_id uuid"}, rows)
}

// forUpdateOf locks the rows that a statement reads from a table, where the engine has such locks.
func forUpdateOf(d dialect, table string) string {
	if !d.skipLocked() {
		return ""
	}
	return " FOR UPDATE OF " + table
}

// forUpdateSkipLocked is forUpdateOf for a queue: it leaves out the rows that other transactions have locked.
func forUpdateSkipLocked(d dialect, table string) string {
	if !d.skipLocked() {
		return ""
	}
	return " FOR UPDATE OF " + table + " SKIP LOCKED"
}

var forUpdate = clause.Locking{Strength: clause.LockingStrengthUpdate}

func doNothing(key ...string) clause.OnConflict {
	return clause.OnConflict{Columns: columns(key), DoNothing: true}
}

func columns(names []string) []clause.Column {
	out := make([]clause.Column, len(names))
	for i, n := range names {
		out[i] = clause.Column{Name: n}
	}
	return out
}
