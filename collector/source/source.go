package source

import (
	"context"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Target is a video or an account to fetch. The collector sets Handle, HandleClaimed, Link and NeedDetails for each fetch.
type Target = queue.Target

// Kind is the kind of a target.
type Kind = queue.Kind

// The kinds of target.
const (
	KindVideo   = queue.KindVideo
	KindAccount = store.KindAccount
)

// Source is one way to get numbers. Several sources may serve one platform; the collector asks them in the configured order. All
// methods may be called concurrently.
type Source interface {
	// Name returns the name of the source in logs, metrics, the queue and the provenance of points, e.g. "youtube" or
	// "vendor:apify". It is unique among the configured sources.
	Name() string
	// Serves returns whether this source can answer for a target, and how many such targets fit into one Fetch. A target without
	// ExternalID stands for all targets of its platform and kind.
	Serves(t Target) (batch int, ok bool)
	// Group returns a name for the targets that one Fetch may ask for together, besides having the same platform, kind and batch
	// size. Most sources return "". A source that lists the videos of an account returns the account.
	Group(t Target) string
	// AsksByHandle returns true if the source might answer differently for another handle of the target. If the handle is only
	// claimed, an answer without numbers then says nothing about the video.
	AsksByHandle(t Target) bool
	// Timeout returns the longest time that one call of the source takes.
	Timeout() time.Duration
	// Concurrency returns how many Fetch calls one collector may make at the same time, at least 1.
	Concurrency() int
	// Budgets returns the budgets of the source.
	Budgets() []Budget
	// Plan returns the possible ways to ask for the batch, preferred first, each with the calls and units that Fetch would spend at
	// most. The collector reserves the first one that the budgets allow and passes it to Fetch. Plan returns nil if the source must
	// not be asked now.
	Plan(batch []Target) [][]Call
	// Fetch asks for a batch of targets of one platform, kind and group, using the calls in budget. If little of a budget is left, a
	// call has fewer units than Plan asked for, and Fetch then gets what these units pay for.
	//
	// Fetch returns a result for each target, in the given order, or a *Failure. If a call fails after another one for the batch was
	// answered, the results of the remaining targets have Failed. A target that is missing from a good answer is Gone, unless the
	// source knows better.
	Fetch(ctx context.Context, batch []Target, budget *CallBudget) ([]Result, error)
}

// NetworkSource is a source that is served over the network.
type NetworkSource interface {
	// Address returns the URL below which the source is asked, without credentials.
	Address() string
	// Clock asks the server for its time. It returns the zero time if the server shows none, and an error if the server cannot be
	// reached.
	Clock(ctx context.Context) (time.Time, error)
}

// OwnAccountSource is a source that may answer for the operator's own accounts only.
type OwnAccountSource interface {
	// OwnAccountsOnly returns true if Unsupported for another account's video does not mean that the credential is wrong.
	OwnAccountsOnly() bool
}
