// Package transfer imports histories from the files of other trackers and exports an organisation's histories to files.
//
// Import reads CSV or JSON in stages: rowReader reads the rows, rowParser checks each row, sortRecords sorts the records by video, and a
// spool keeps them on disk until they are checked and written. Export writes CSV or JSON Lines, which Import can read.
// Start reading at Import.Run in import.go and Export.Write in export.go.
package transfer
