// Package queue decides which target is fetched next. A target is one video or account of a platform, and each organisation that tracks it
// has a subscription. A video that many organisations track is fetched once.
//
// Start reading at [Enqueue], which adds targets and subscriptions, and [Queue.Claim], which leases due targets to a collector.
//
//   - queue.go: targets, subscriptions, claims and leases
//   - lanes.go: priorities
//   - fairqueue.go: the order between organisations in the interactive lane
//   - quota.go, refusals.go: call budgets, pauses and refused calls of sources
//   - jobs.go: scheduled jobs, each run by one process at a time
//   - sourcetokens.go: OAuth tokens that change with their use
//   - status.go, demand.go: counts for operators
//   - orphans.go: deletion of targets without a subscription
package queue
