// Package migrate copies an organisation from a remote server into an organisation of this database. The remote server is a hosted service
// with the same API, or a ReelTally server.
//
// Migration.Run first downloads the data into a folder. The folder has a file for each list, such as the list of videos, and one file with the
// histories in the format of imports. Migration.Run then writes the data into the database, where package transfer imports the histories. A migration
// can be killed at any time. If it is run again with the same folder, it continues. Start reading at Migration.Run in migrate.go.
package migrate
