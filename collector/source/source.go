package source

import (
	"context"
	"time"

	"github.com/reeltally/reeltally/store/queue"
)

// Source fetches the counts of videos and accounts from an API. The collector asks the sources of a
// platform in the configured order. All methods may be called concurrently. The collector sets the fields Handle, HandleClaimed, AccountID,
// Link and NeedDetails of the targets for each fetch.
type Source interface {
	// Name returns the name of the source in logs, metrics, the queue and the provenance of points, e.g. "youtube" or
	// "vendor:apify". It is unique among the configured sources.
	Name() string
	// Serves returns true if the source can fetch t. It also returns the maximum number of targets in a batch.
	// If t.ExternalID is "", Serves answers for any target of the same platform and kind.
	Serves(t queue.Target) (batch int, ok bool)
	// Group returns the group of t, such as the handle of its account, or "". A batch has only targets
	// of one group, platform, kind and batch size.
	Group(t queue.Target) string
	// NeedsHandle returns true if the source needs the handle of the account to find the target. With a
	// wrong handle, the source does not find the video.
	NeedsHandle(t queue.Target) bool
	// OnlyAccounts returns which accounts the source can fetch, as words such as "professional accounts". It
	// returns "" if the source can fetch all public accounts. If OnlyAccounts does not return "", the result
	// Unsupported for a target of another account does not mean that the credential is wrong.
	OnlyAccounts() string
	// Concurrency returns how many Fetch calls one collector may make at the same time, at least 1.
	Concurrency() int
	// Budgets returns the budgets from which the calls of the source take units.
	Budgets() []Budget
	// Plan returns the possible plans for the batch, or nil if the source must not be asked now. The
	// collector uses the first plan that fits into the budgets.
	Plan(batch []queue.Target) [][]Call
	// Fetch returns one result for each target, in the given order. If the whole call fails, it returns an
	// error, usually a *Failure. If the budget has fewer units than planned, Fetch fetches only a part of the
	// data.
	Fetch(ctx context.Context, batch []queue.Target, budget *CallBudget) ([]Result, error)
	// Address returns the base URL of the source's requests, without credentials.
	Address() string
	// Clock returns the server's time, or the zero time if the answer has no Date header or a malformed one. If the
	// server cannot be reached, Clock returns an error.
	Clock(ctx context.Context) (time.Time, error)
	// Timeout returns the duration after which one call to the source is cancelled.
	Timeout() time.Duration
}

// AreAccounts returns true if the targets of the batch are accounts. All targets of a batch have the same kind, so the first one decides.
func AreAccounts(batch []queue.Target) bool {
	return len(batch) > 0 && batch[0].Kind == queue.KindAccount
}
