// Package migrations contains the SQL files that create the database schema. Each engine has a folder, and the files in both folders have
// the same numbers. To change the schema, add a file with the next number to both folders. The statements of files that a release contains must never change.
package migrations

import "embed"

// Files are the migrations, in the folders postgres and sqlite.
//
//go:embed postgres sqlite
var Files embed.FS
