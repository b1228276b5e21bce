package collector

import (
	"context"
	"errors"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
)

// Kind is what a target asks a source for.
type Kind string

// The kinds of target.
const (
	KindVideo   Kind = "video"
	KindAccount Kind = "account"
)

// Target is one thing to be fetched: a video or an account of a platform, whoever subscribes to it.
type Target struct {
	Platform   link.Platform
	Kind       Kind
	ExternalID string // the platform's own id (for Instagram the shortcode)
	Handle     string // the account's handle where known, "" otherwise: some sources can ask by account only
	// HandleClaimed is true if Handle comes only from a caller's link and no source has confirmed it.
	HandleClaimed bool
	Link          string // the canonical link: some sources ask by link
	// NeedDetails is true when title, account, upload date and the like are wanted as well as the counts.
	// A source whose cheaper call gives counts alone may use that call when no target of a batch needs details.
	NeedDetails bool
	// Again is true when it has no answer since it was last asked for: a source that may ask in a surer way then does.
	Again bool
	// Of an account: the platform's own id and the one that this kind of source has (AccountFacts.SourceID), each "" until it
	// is known, and how many of its newest videos are wanted at the least. A source may give more where they come in
	// the same call.
	AccountID, SourceID string
	Depth               int
}

// IsStranger says whether facts are of another account than the target, by whichever id both have: its handle is
// somebody else's by now. Nothing of such an answer may be written.
func (t Target) IsStranger(f *AccountFacts) bool {
	var id, sourceID string
	if f.ID != nil {
		id = *f.ID
	}
	if f.SourceID != nil {
		sourceID = *f.SourceID
	}
	return store.DifferentAccounts(t.AccountID, t.SourceID, id, sourceID)
}

// knowsOtherIDs says whether facts bear an id, but none of a kind that is known of the target: nothing tells whether they are of it.
func (t Target) knowsOtherIDs(f *AccountFacts) bool {
	common := t.AccountID != "" && f.ID != nil || t.SourceID != "" && f.SourceID != nil
	return !common && (t.AccountID != "" || t.SourceID != "") && (f.ID != nil || f.SourceID != nil)
}

// Stranger is the outcome for a target whose handle belongs to somebody else.
func (t Target) Stranger(sandbox bool) Result {
	return Result{Target: t, Class: Taken, Sandbox: sandbox, Detail: "the handle " + t.Handle + " belongs to another account now: nothing of it is written"}
}

// Class is what the outcome of a fetch means for the target and for its source.
type Class string

// The outcome classes. The first nine concern one target, the others the whole source.
const (
	OK          Class = "ok"
	Gone        Class = "gone"        // deleted, or private where the source cannot tell; nothing is written
	Missing     Class = "missing"     // this source does not show it, though another may: that one is asked; else as Gone
	Taken       Class = "taken"       // another account answers to the handle; as Missing, since another source may ask by id
	Private     Class = "private"     // the source says so
	Restricted  Class = "restricted"  // age gate, region
	Unsupported Class = "unsupported" // this source can never answer for this target
	Unconfirmed Class = "unconfirmed" // not found under handles that no source has confirmed; like Missing, but never makes the target Gone
	Temporary   Class = "temporary"   // try again soon

	RateLimited Class = "rate_limited" // the source is paused until RetryAt
	QuotaSpent  Class = "quota_spent"  // the source's budget is used up until RetryAt
	AuthFailed  Class = "auth_failed"  // no calls until the credential changes
	BadRequest  Class = "bad_request"  // our fault: the platform refused the shape of the request
)

// Facts are what a source said of a video. A nil pointer means that it did not say: never zero, never empty.
type Facts = ingest.VideoFacts

// AccountFacts are what a source said of an account, and its newest videos.
type AccountFacts = ingest.AccountFacts

// Result is the outcome for one target of a batch.
type Result struct {
	Target Target
	Class  Class
	Detail string // for the log; never holds a credential
	// When Class is OK, Facts are set for a video and Account for an account, and for nothing else.
	Facts   *Facts
	Account *AccountFacts
	// Sandbox is true when the answer came from a sandbox: the numbers are made up and must never pass for real ones.
	Sandbox bool
	// Lags is true when the source's numbers may be days old: they never set back what another source gave.
	Lags bool

	// Failed is the failure of this target's call, if other calls for the batch were answered. Class is then Temporary.
	Failed *Failure

	doubt string // what the other results of the batch say against this one; see compare
}

// Unanswered returns the result for a target whose call failed with err after another call for the batch was answered.
func Unanswered(t Target, err error) Result {
	r := Result{Target: t, Class: Temporary, Detail: "a call of the batch failed: " + err.Error()}
	r.Failed, _ = errors.AsType[*Failure](err)
	return r
}

// Failure is the outcome of a whole call: no target of the batch has an answer.
type Failure struct {
	Class   Class
	Bucket  string    // the budget that is concerned; "" for the whole source
	RetryAt time.Time // when the source said it may be asked again; zero when it did not say
	// OfSource is true if the answer says that the failure concerns the credential or the source, whatever the target is. If it is false,
	// the target may be the cause, unless the class is RateLimited or QuotaSpent.
	OfSource bool
	Detail   string // for the log; never holds a credential
	Cause    error  // for errors.Is and errors.As, may be nil; never holds a credential
}

func (f *Failure) Error() string { return string(f.Class) + ": " + f.Detail }

// Unwrap gives the cause, so that a timeout or an answer that is too large can be told apart from other failures.
func (f *Failure) Unwrap() error { return f.Cause }

// Budget is an amount of calls, in the source's own units, that may be spent in one window of time.
type Budget struct {
	Name  string // unique within the source, e.g. "videos.list"
	Limit int64  // units a window; 0 means no known limit
	// Window names the window that now falls into and says when it ends, in the source's own time zone.
	Window func(now time.Time) (id string, ends time.Time)
}

// Call is what a batch will cost before it is made.
type Call struct {
	Bucket string // a Budget's name
	Units  int64
}

// Addressed is a source that is served over the network.
type Addressed interface {
	// Address is the URL below which it is asked, for operators: with no credential in it.
	Address() string
	// Clock asks the server for its time: the zero time when it has none to show. The error says that it cannot be reached.
	Clock(ctx context.Context) (time.Time, error)
}

// Grouped is a source that needs a separate call for each group of a batch, one after the other. The collector makes batches of one group
// each.
type Grouped interface {
	// Group returns what a target is found by, e.g. the account whose list contains it.
	Group(t Target) string
}

// HandleAsker is a source that finds some videos by the handle of their account.
type HandleAsker interface {
	// AsksByHandle returns true if the source might answer differently for another handle of the target. If the handle is not
	// confirmed, an answer without numbers then says nothing about the video.
	AsksByHandle(t Target) bool
}

// ErrNoAnswer is the cause of a failure whose call got no complete answer, such as a timeout or a broken connection.
var ErrNoAnswer = errors.New("no complete answer")

// ErrNoTime reports that a call was not made because the claim would have ended during it. A call that is broken off is paid for and
// says nothing about its source.
var ErrNoTime = errors.New("not enough of the claim's time is left for a call")

// Source is one way to get numbers. A platform may be served by several, tried in the configured order. All
// methods may be called concurrently.
type Source interface {
	// Name is the source's name in logs, metrics and provenance, e.g. "youtube" or "vendor".
	Name() string
	// Serves says whether this source can answer for a target, and how many such targets fit into one call. A target
	// without ExternalID stands for all of its platform and kind.
	Serves(t Target) (batch int, ok bool)
	// Patience is for how long one call may take before the source itself gives up. A claim leaves time for two.
	Patience() time.Duration
	// Budgets lists the source's budgets.
	Budgets() []Budget
	// Plan returns the possible ways to ask for the batch, preferred first, each with the calls and units that Fetch would spend at most.
	// The collector reserves the first one that its budget allows and passes it to Fetch. Plan returns nil if the source must not be asked now.
	Plan(batch []Target) [][]Call
	// Fetch asks for a batch of one kind with one of the plans that Plan returned. If the budget is low, a call in plan has fewer units than
	// Plan asked for, and Fetch then gets what these units pay for. Fetch may lower the units in plan to what it spent, even if it fails; the
	// rest goes back to the budget. If it is unknown whether units were spent, they count as spent.
	//
	// Fetch returns a result for each target, in the given order, or a *Failure. If a call fails after another one for the batch was answered,
	// the results of the remaining targets have Failed. A target that is missing from a good answer is Gone, unless the source knows better.
	Fetch(ctx context.Context, batch []Target, plan []Call) ([]Result, error)
}
