// Package store reads and writes the data of organisations, on SQLite or PostgreSQL: organisations and their tokens, videos, accounts,
// collections, histories and idempotency keys.
//
// Start reading at [Open] and [Org]. Open connects to the database. [Store.Org] returns an Org for one organisation. Every method of Org
// reads and writes the data of that organisation only. An id that belongs to another organisation gives the same result as an unknown id.
//
// These are the packages in this folder, from the lowest to the highest. A package imports only packages that are listed before it:
//
//   - internal/db connects to SQLite or PostgreSQL. It contains all code that depends on the database engine, and also migrations,
//     transactions, paging, times and errors.
//   - queue stores the targets to fetch, with their priorities, leases, budgets and pauses. See [Store.Queue].
//   - store is this package.
//   - ingest writes the answers of sources, and deletes old data.
//   - backfill writes many videos together with their histories: made-up data, and imports from other trackers.
//   - backup writes the whole database to a file, and restores it on either engine.
//
// Package link parses links of the platforms and imports none of these packages. Package migrations contains the SQL files of the schema.
// Package storetest gives each test a new database.
//
// Every stored time comes from Options.Now or from the caller, in UTC, without fractions of a microsecond. Only time limits, pauses, new ids and
// measurements use the real clock. CheckClock also reads the clock of PostgreSQL.
//
// Three comments explain what concerns several files: [Version] says when cached data are valid, listReader how lists of videos and accounts are read,
// and OrgTx.addMembers how videos and accounts get into collections.
//
// To add a table: add a migration with the next number to both folders below migrations, and describe the table in internal/db/tables.go. A
// test checks the table's keys. Then add the model and its methods to the package of its subject.
package store
