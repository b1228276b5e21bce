// Package store reads and writes the data of organisations, on SQLite or PostgreSQL: organisations and their tokens, videos, accounts,
// collections, histories and idempotency keys.
//
// Start reading at [Open] and [Org]. Open connects to the database. [Store.Org] returns one organisation's view, and every method of Org
// reads and writes the data of that organisation only. The id of another organisation is answered like an unknown id.
//
// The packages below this folder, from the lowest to the highest. A package imports only packages that are listed before it:
//
//   - internal/db connects to SQLite or PostgreSQL. It holds everything in which the two differ, and also migrations, transactions, paging,
//     times and errors.
//   - queue holds the targets to fetch, with their priorities, leases, budgets and pauses. See [Store.Queue].
//   - store is this package.
//   - ingest writes what sources answer, and deletes old data.
//   - backfill writes many videos with their past at once: demonstration data, and imports from other trackers.
//
// link reads links of the platforms and imports none of these packages. migrations holds the SQL files of the schema. storetest gives tests
// a fresh database.
//
// The store never reads the wall clock. Every time comes from Options.Now or from the caller, in UTC, without fractions of a microsecond.
//
// To add a table: add a migration with the next number to both folders below migrations, and the table's class to internal/db/tables.go. A
// test checks the keys of each class. Then add the model and its methods to the package of its subject.
package store
