// Package store keeps organisations, videos, their numbers and the queue of what is to be fetched, on SQLite or
// PostgreSQL.
//
// Tenancy: a caller reaches an organisation's data through *Org alone, which [Store.Org] hands out and which has no
// method that crosses organisations. Another organisation's id is answered as an unknown one.
//
// The store never reads the wall clock: every time comes from Options.Now or from the caller, in UTC, cut to
// microseconds. Instants are kept as microseconds since 1970 and days as dates, on both engines alike.
//
// Where SQLite and PostgreSQL differ, dialect.go says so and no other file does.
//
// To add a table: a migration of the same number in both folders under migrations, its class in tables.go (a test
// holds the schema to the rules of its class), its model and methods in the file of its room.
package store
