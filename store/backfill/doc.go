// Package backfill writes many videos together with their histories. The result is the same as if the videos had been tracked and fetched,
// but writing takes far less time.
//
// Start reading at [Load] and [Import]. Load writes generated data for demonstrations and measurements. Import adds histories from another
// tracker to an organisation. The organisation may already have points of the same videos.
//
//   - seed.go, seedvideos.go, seeddays.go: Load
//   - import.go, merge.go, importdays.go: Import
package backfill
