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

// The kinds of target.
const (
	KindVideo   = queue.KindVideo
	KindAccount = store.KindAccount
)

// Source is one way to get numbers. Several sources can serve one platform; the collector asks them in the configured order. All methods
// may be called concurrently.
type Source interface {
	// Name returns the name of the source in logs, metrics, the queue and the provenance of points, e.g. "youtube" or
	// "vendor:apify". It is unique among the configured sources.
	Name() string
	// Serves returns whether this source can answer for a target, and how many such targets fit into one Fetch. A target without ExternalID
	// represents all targets of its platform and kind.
	Serves(t Target) (batch int, ok bool)
	// Group returns the name of the group of a target. One Fetch may request only targets with the same group, platform, kind and batch
	// size. Most sources return "". A source that lists the videos of an account returns the account.
	Group(t Target) string
	// AsksByHandle returns true if the answer for the target can depend on its handle. If the handle is only claimed, an answer without
	// numbers then says nothing about the video.
	AsksByHandle(t Target) bool
	// Timeout returns the longest duration of one call to the source.
	Timeout() time.Duration
	// Concurrency returns how many Fetch calls one collector may make at the same time, at least 1.
	Concurrency() int
	// Budgets returns the budgets that pay for the calls of the source.
	Budgets() []Budget
	// Plan returns the possible ways to request the batch, preferred way first. Each way is a list of calls with the largest number of units
	// that Fetch would spend on them. The collector reserves the first way that the budgets allow and passes it to Fetch. Plan returns nil
	// if the source must not be asked now.
	Plan(batch []Target) [][]Call
	// Fetch asks for a batch of targets of one platform, kind and group. It spends at most the calls in budget. If little of a budget is
	// left, a call has fewer units than Plan requested, and Fetch then fetches only what these units pay for.
	//
	// Fetch returns a result for each target, in the given order, or a *Failure. If a call fails after another call for the batch was
	// answered, the results of the remaining targets have Failed set. A target that is missing from a successful answer gets the class Gone,
	// unless the source can tell the reason.
	Fetch(ctx context.Context, batch []Target, budget *CallBudget) ([]Result, error)
}

// NetworkSource is a source that is reached over the network.
type NetworkSource interface {
	// Address returns the base URL of the source's requests, without credentials.
	Address() string
	// Clock returns the server's time. It returns the zero time if the answer does not contain the time, and an error if the server cannot
	// be reached.
	Clock(ctx context.Context) (time.Time, error)
}

// OwnAccountSource is a source that can be limited to the operator's own accounts.
type OwnAccountSource interface {
	// OwnAccountsOnly returns true if the source answers for the operator's own accounts only. The class Unsupported for another account's
	// video then does not mean that the credential is wrong.
	OwnAccountsOnly() bool
}
