// Package transfer imports histories from the files of other trackers, and exports an organisation's histories to files.
//
// Import reads CSV or JSON in stages. rowReader reads the rows, rowParser checks each row and converts it to a record, and sortRecords sorts the
// records by video. The sorted records are written to a temporary file (type spool). Import writes records to the database only after it has checked
// all of them. Export writes CSV or JSON Lines, which Import can read. Start reading at Import.Run in import.go and Export.Write in export.go.
package transfer
