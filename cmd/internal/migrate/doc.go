// Package migrate copies an organisation from a hosted service, or from another ReelTally server, into an organisation of this database.
//
// It first downloads the data into a folder: Download reads the API through Remote and writes a file for each list, and one file with the
// histories in the format of imports. Then Store writes the data into the database. It imports the histories with package transfer. Download
// and Store can be killed at any time, and continue when they are called again. Start reading at Migration.Run in migrate.go.
package migrate
