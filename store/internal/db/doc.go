// Package db connects the store to its database and holds everything in which SQLite and PostgreSQL differ. The packages above it are
// written once, for both.
//
// Start reading at [Open] and [DB.Tx]:
//
//   - db.go: connections, transactions and their repetition after conflicts
//   - dialect.go, bulk.go, values.go: the differences between the engines, including row locks and column types
//   - versions.go: transactions that change an organisation's data, and the version that tells readers of the change
//   - page.go: ordered lists, their pages, and the allow-list of the columns by which a list can be ordered
//   - migrate.go, partitions.go, tables.go: the schema
//   - time.go, clock.go: instants, days, and the checks of the clock before old data is deleted
//   - errors.go: the errors that all packages of the store return
package db
