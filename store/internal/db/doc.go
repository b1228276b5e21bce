// Package db connects the store to its database. It contains all code that depends on the database engine, SQLite or PostgreSQL. The other
// packages of the store work with both engines.
//
// Start reading at [Open] and [DB.Tx]:
//
//   - db.go: connections, transactions and their retries after conflicts
//   - dialect.go, bulk.go, values.go: the differences between the engines, including row locks and column types. A function without a DB asks its
//     handle of GORM for the engine: see hasRowLocks
//   - versions.go: transactions that change an organisation's data, and the version that rises with every change
//   - page.go: ordered lists, pages of lists, and the allow-list of the columns by which a list can be ordered
//   - replica.go: the streaming replica from which lists and histories can be read
//   - migrate.go, partitions.go, tables.go: migrations, monthly partitions, and a description of each table
//   - text.go: the form in which texts are compared
//   - time.go, clock.go: instants, days, and the check of the clock before old data is deleted
//   - counts.go: the counts of a video, which all packages of the store use
//   - snapshot.go: reading all tables as they were at one moment, for backups
//   - errors.go: the errors that all packages of the store return
package db
