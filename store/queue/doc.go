// Package queue decides which target is fetched next. A target is one video or account of a platform, and each organisation that tracks it
// has a subscription. A video that many organisations track is fetched once.
//
// Start reading at [Enqueue], which adds targets and subscriptions, and [Queue.Claim], which leases due targets to a collector.
//
//   - queue.go: targets and subscriptions
//   - claim.go: claims and leases
//   - lanes.go: priorities
//   - routes.go, serves.go: the first source for each platform, and the targets that running collectors can fetch
//   - heartbeats.go: the last heartbeats of collectors
//   - fairqueue.go: the order between organisations in the interactive lane
//   - quota.go, refusals.go: call budgets, pauses and refused calls of sources
//   - jobs.go: scheduled jobs, each run by one process at a time
//   - sourcetokens.go: OAuth tokens that change with their use
//   - fetchstatus.go: the fetch statuses of videos and accounts
//   - status.go, demand.go, lastfetches.go: counts of targets
//   - orphans.go, repair.go: deletion of targets without a subscription, and correction of times in the future
package queue
