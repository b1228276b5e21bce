// Package migrations contains the SQL files that create the schema: one folder for each engine, with the same numbers in both. To change the
// schema, add a file with the next number to both folders. Files that a release contains must never change.
package migrations

import "embed"

// Files are the migrations, in the folders postgres and sqlite.
//
//go:embed postgres sqlite
var Files embed.FS
