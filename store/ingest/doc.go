// Package ingest writes what sources answer to the data of all organisations that track the target: points, latest counts, derived numbers,
// the accounts of videos, the videos of accounts, and changed handles. It also rolls up and deletes old data.
//
// Start reading at [Writer.Acknowledge] for videos and [Writer.AcknowledgeAccounts] for accounts. [Writer.ApplyRetention] and
// [Writer.DeleteExpired] delete old data.
//
//   - ingest.go: the outcomes of a claim, the points and latest counts of videos
//   - derived.go: increases, uploads a day, and an organisation's sums
//   - authors.go: the accounts that post the videos
//   - accounts.go, backfill.go, accountmerge.go: tracked accounts and their lists of videos
//   - handles.go: accounts whose handle changed
//   - retention.go, expiry.go: roll-up and deletion
package ingest
