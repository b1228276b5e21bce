package db

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// RowKey is the key of a row of a distributed table: the organisation and the row's id.
type RowKey struct{ Org, ID uuid.UUID }

// KeysOf returns the keys of an organisation's rows with the given ids.
func KeysOf(org uuid.UUID, ids []uuid.UUID) []RowKey {
	keys := make([]RowKey, len(ids))
	for i, id := range ids {
		keys[i] = RowKey{org, id}
	}
	return keys
}

// SortedKeys returns the keys of m, sorted by organisation and id. All transactions lock rows in this order, so that they cannot deadlock.
func SortedKeys[V any](m map[RowKey]V) []RowKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b RowKey) int {
		return cmp.Or(slices.Compare(a.Org[:], b.Org[:]), slices.Compare(a.ID[:], b.ID[:]))
	})
}

// OrgsOf returns the organisations of the keys, sorted and without duplicates.
func OrgsOf(keys []RowKey) []uuid.UUID {
	orgs := make([]uuid.UUID, len(keys))
	for i, k := range keys {
		orgs[i] = k.Org
	}
	return Distinct(orgs)
}

// hasRowLocks returns true if the engine of tx locks rows. If it returns false, only one transaction at a time can write.
func hasRowLocks(tx *gorm.DB) bool { return tx.Name() != "sqlite" }

// ForUpdate adds FOR UPDATE to a query, so that the query locks the rows that it reads. It returns q unchanged on engines without row locks.
func ForUpdate(q *gorm.DB) *gorm.DB {
	if !hasRowLocks(q) {
		return q
	}
	return q.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
}

// ForUpdateClause returns the clause FOR UPDATE OF table, with which a SELECT locks the rows of the table. It returns "" on engines without row
// locks.
func ForUpdateClause(tx *gorm.DB, table string) string {
	if !hasRowLocks(tx) {
		return ""
	}
	return " FOR UPDATE OF " + table
}

// ForUpdateSkipLocked is like ForUpdateClause, but the SELECT leaves out rows of the table that
// other transactions have locked.
func ForUpdateSkipLocked(tx *gorm.DB, table string) string {
	if !hasRowLocks(tx) {
		return ""
	}
	return " FOR UPDATE OF " + table + " SKIP LOCKED"
}

// LockRows runs a SELECT and locks the selected rows of a table, in the order of the SELECT. It does nothing on engines without row locks.
func LockRows(tx *gorm.DB, query, table string, args ...any) error {
	if !hasRowLocks(tx) {
		return nil
	}
	return tx.Exec(query+ForUpdateClause(tx, table), args...).Error
}

// OnConflictDoNothing returns the clause ON CONFLICT (…) DO NOTHING for the columns that are named in key.
func OnConflictDoNothing(key ...string) clause.OnConflict {
	return clause.OnConflict{Columns: Columns(key), DoNothing: true}
}

// Columns returns the columns with the given names, for a GORM clause.
func Columns(names []string) []clause.Column {
	out := make([]clause.Column, len(names))
	for i, n := range names {
		out[i] = clause.Column{Name: n}
	}
	return out
}

// Distinct returns the ids sorted and without duplicates. All transactions lock rows in this order, so that they cannot deadlock.
func Distinct(ids []uuid.UUID) []uuid.UUID {
	return slices.Compact(slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }))
}

// Assign sets the variable that `to` points to. The new value is the value that `from` points to. If `from` is nil, Assign does nothing.
func Assign[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// AssignPointer copies the pointer `from` to the variable that `to` points to. If `from` is nil, AssignPointer does nothing.
func AssignPointer[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

// InsertChunk is the maximum number of rows of one statement. It keeps the number of parameters below the limits of the engines: 65,535 on
// PostgreSQL and 32,766 on SQLite.
const InsertChunk = 1000
