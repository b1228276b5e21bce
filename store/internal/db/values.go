package db

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

// RowKey names a row of a distributed table: an id without its organisation never does.
type RowKey struct{ Org, ID uuid.UUID }

// KeysOf names rows of one organisation.
func KeysOf(org uuid.UUID, ids []uuid.UUID) []RowKey {
	keys := make([]RowKey, len(ids))
	for i, id := range ids {
		keys[i] = RowKey{org, id}
	}
	return keys
}

// SortedKeys returns keys in the order in which all writers lock rows.
func SortedKeys[V any](m map[RowKey]V) []RowKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b RowKey) int {
		return cmp.Or(slices.Compare(a.Org[:], b.Org[:]), slices.Compare(a.ID[:], b.ID[:]))
	})
}

func OrgsOf(keys []RowKey) []uuid.UUID {
	orgs := make([]uuid.UUID, len(keys))
	for i, k := range keys {
		orgs[i] = k.Org
	}
	return Distinct(orgs)
}

// with returns "WITH name(…) AS (VALUES …)" for rows of parameters, and these. A column is a name and its type, as
// "day date". There is at least one row, and no more than InsertChunk.
func WithRows(tx *gorm.DB, name string, columns []string, rows [][]any) (statement string, args []any) {
	names, casts := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		var kind string
		names[i], kind, _ = strings.Cut(c, " ")
		switch kind {
		case "uuid":
			kind = UUIDType(tx)
		case "date":
			kind = DateType(tx)
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

// WithKeys is with of "wanted": the rows' keys.
func WithKeys(tx *gorm.DB, keys []RowKey) (statement string, args []any) {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.Org, k.ID}
	}
	return WithRows(tx, "wanted", []string{"organisation_id uuid", "id uuid"}, rows)
}

// WithOrgs is with of "wanted": organisations.
func WithOrgs(tx *gorm.DB, orgs []uuid.UUID) (statement string, args []any) {
	rows := make([][]any, len(orgs))
	for i, org := range orgs {
		rows[i] = []any{org}
	}
	return WithRows(tx, "wanted", []string{"organisation_id uuid"}, rows)
}

// hasRowLocks returns true if the engine of tx locks rows. Otherwise only one transaction at a time can write.
func hasRowLocks(tx *gorm.DB) bool { return tx.Name() != "sqlite" }

// ForUpdate makes a query lock the rows that it reads, on engines with row locks.
func ForUpdate(q *gorm.DB) *gorm.DB {
	if !hasRowLocks(q) {
		return q
	}
	return q.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
}

// ForUpdateOf returns the clause with which a SELECT locks the rows of a table. It is empty on engines without row locks.
func ForUpdateOf(tx *gorm.DB, table string) string {
	if !hasRowLocks(tx) {
		return ""
	}
	return " FOR UPDATE OF " + table
}

// SkipLocked returns the clause with which a SELECT locks rows and leaves out those that other transactions have locked. It is empty on
// engines without row locks.
func SkipLocked(tx *gorm.DB) string {
	if !hasRowLocks(tx) {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

// LockRows runs a SELECT that locks rows of a table in the order of the SELECT. It does nothing on engines without row locks.
func LockRows(tx *gorm.DB, query, table string, args ...any) error {
	if !hasRowLocks(tx) {
		return nil
	}
	return tx.Exec(query+ForUpdateOf(tx, table), args...).Error
}

func DoNothing(key ...string) clause.OnConflict {
	return clause.OnConflict{Columns: Columns(key), DoNothing: true}
}

func Columns(names []string) []clause.Column {
	out := make([]clause.Column, len(names))
	for i, n := range names {
		out[i] = clause.Column{Name: n}
	}
	return out
}

// Distinct returns ids sorted and each once, the order in which all writers lock rows.
func Distinct(ids []uuid.UUID) []uuid.UUID {
	return slices.Compact(slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return cmp.Compare(a.String(), b.String()) }))
}

func Assign[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func AssignPointer[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

// InsertChunk bounds the rows of one INSERT: PostgreSQL takes 65,535 parameters in a statement, SQLite 32,766.
const InsertChunk = 1000
