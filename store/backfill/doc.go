// Package backfill writes many videos with their past at once, far faster than tracking and fetching, and with the same result.
//
// Start reading at [Load], which writes made-up data for demonstrations and measurements, and [Import], which adds the history that another
// tracker exported to an organisation that may have points already.
//
//   - seed.go, seeddays.go: Load
//   - import.go, merge.go, importdays.go: Import
package backfill
