package source

import (
	"context"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Target is a video or an account to fetch. The collector sets Handle, HandleClaimed, Link and NeedDetails for each fetch.
type Target = queue.Target

// Kind is the kind of a target: video or account.
type Kind = queue.Kind

// These are the kinds of target.
const (
	KindVideo   = queue.KindVideo
	KindAccount = store.KindAccount
)

// Source fetches the counts of videos and accounts from an API. Several sources can serve one platform. The collector asks them in the
// configured order. All methods may be called concurrently.
type Source interface {
	// Name returns the name of the source in logs, metrics, the queue and the provenance of points, e.g. "youtube" or
	// "vendor:apify". It is unique among the configured sources.
	Name() string
	// Serves returns ok = true if this source can fetch the target. batch is then the largest number of such targets in one call of Fetch. A
	// target without an ExternalID stands for all targets of its platform and kind: ok is true if the source can fetch any of them.
	Serves(t Target) (batch int, ok bool)
	// Group returns the group of a target. All targets of one call of Fetch must have the same group, platform, kind and batch size. Most
	// sources return "" for every target. A source that finds a video in the video list of its account returns the handle of this account.
	Group(t Target) string
	// NeedsHandle returns true if the source needs the handle of the account to find the target. A handle may be wrong until a source has
	// confirmed it. If the handle is wrong, the source does not find the video, although the video may exist.
	NeedsHandle(t Target) bool
	// Timeout returns the duration after which one call to the source is cancelled.
	Timeout() time.Duration
	// Concurrency returns how many Fetch calls one collector may make at the same time, at least 1.
	Concurrency() int
	// Budgets returns the budgets from which the calls of the source take units.
	Budgets() []Budget
	// Plan returns the possible plans for requesting the batch, the preferred plan first. Each plan is a list of calls. Call.Units is the
	// largest number of units that Fetch would spend on the call. The collector uses the first plan for which the budgets have enough units,
	// reserves these units and passes them to Fetch. Plan returns nil if the source must not be asked now.
	Plan(batch []Target) [][]Call
	// Fetch fetches a batch of targets of one platform, kind and group. It may spend the units of the budget. If the budget has fewer units
	// than Plan requested, Fetch fetches only a part of the data. Fetch returns a result for each target, in the given order, or a *Failure.
	// If a call fails after another call for the batch was answered, the results of the remaining targets have Failed set. A target that is
	// missing from a successful answer gets the class Gone, unless the source gives another reason.
	Fetch(ctx context.Context, batch []Target, budget *CallBudget) ([]Result, error)
}

// NetworkSource is a source that is called over the network.
type NetworkSource interface {
	// Address returns the base URL of the source's requests, without credentials.
	Address() string
	// Clock returns the time of the source's server. It returns the zero time if the server's answer does not contain the time, and an
	// error if the server cannot be reached.
	Clock(ctx context.Context) (time.Time, error)
}

// OwnAccountSource is implemented by sources that can be limited to the operator's own accounts and their videos.
type OwnAccountSource interface {
	// OwnAccountsOnly returns true if the source fetches only the operator's own accounts and their videos. A result of class Unsupported
	// for a video of another account then does not mean that the credential is wrong.
	OwnAccountsOnly() bool
}
