// Package ingest stores the answers of sources. It writes an answer about a target to the data of all organisations that track the target. The answer
// changes points, latest counts, numbers that are computed from them, the accounts of videos, the videos of accounts, and handles. The package also
// rolls up and deletes old data.
//
// Start reading at [Writer.Acknowledge]. [Writer.ApplyRetention] and [Writer.DeleteExpired] delete old data.
//
//   - ingest.go: the outcomes of a claim, the points and latest counts of videos
//   - derived.go: growth, the number of uploads of each day, and the totals of organisations
//   - authors.go: the accounts that post the videos
//   - accounts.go, listdepth.go, accountmerge.go: tracked accounts and their lists of videos
//   - handles.go: the names of targets, and accounts whose handle another account uses now
//   - retention.go, expiry.go: roll-up and deletion
package ingest
