// Package backfill writes many videos together with their histories. The result is the same as if the videos had been tracked and fetched,
// but writing takes far less time.
//
// Start reading at [Seed] and [Import]. Seed writes made-up data for demonstrations and measurements. Import adds histories from another
// tracker to an organisation. The organisation may already have points of the same videos. Both roll up the points of old weeks.
//
//   - seed.go, seedvideos.go, seeddays.go: Seed
//   - import.go, importtracking.go, merge.go, importdays.go: Import
//   - weeks.go: the roll-up, for Seed and Import
package backfill
