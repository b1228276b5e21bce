package source

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// Class is the class of a result or a failure. It decides what happens to the target and to its source.
type Class string

// These are the classes of results and failures. The classes from OK to Doubted concern one target.
const (
	OK          Class = "ok"
	Gone        Class = "gone"          // the source says that the target does not exist, or omits the target; some sources report private targets in the same way
	Missing     Class = "missing"       // this source does not return the target, but the target may exist: the next source is asked; if there is none, Missing has the same effect as Gone
	OtherOwner  Class = "handle_reused" // another account has the target's handle now; the next source is asked, because it may find the account by id
	Private     Class = "private"       // the source says that the target is private
	Restricted  Class = "restricted"    // the target is shown only to some viewers, for example in some regions, so the source refuses it
	AgeLimited  Class = "age_limited"   // like Restricted, and the source says that the viewers must be adults or that the target is sensitive
	Unsupported Class = "unsupported"   // this source can never answer for this target
	Unconfirmed Class = "unconfirmed"   // the video was not found, but its unconfirmed handle may be wrong; the next source is asked, and the video never counts as Gone
	Temporary   Class = "temporary"     // the call failed, but a retry may succeed
	Doubted     Class = "doubted"       // the source answers Gone or Missing for most targets, so it is probably wrong; the next source is asked, and the answer does not count as Gone

	RateLimited Class = "rate_limited" // the source refuses all calls until the failure's RetryAt
	QuotaSpent  Class = "quota_spent"  // the source's quota is used up until the failure's RetryAt
	AuthFailed  Class = "auth_failed"  // the source refused the credential; the cause can be a target or the source
	BadRequest  Class = "bad_request"  // the platform rejected the request as malformed; the cause can be a target or the source
)

// Facts are what a source returned about a video. A nil pointer means that the source did not return the value. It never means zero or
// empty.
type Facts = ingest.VideoFacts

// AccountFacts are what a source returned about an account and about its newest videos.
type AccountFacts = ingest.AccountFacts

// Result is a source's answer for one target of a batch.
type Result struct {
	Target queue.Target
	Class  Class
	Detail string // reason as text for the log; it never contains a credential
	// If Class is OK, Facts is set for a video, and Account is set for an account.
	Facts   *Facts
	Account *AccountFacts
	// Sandbox is true if a sandbox (a simulated platform) answered instead of the platform. The numbers are then made up.
	Sandbox bool
	// Lags is true if the source's numbers can be days old. Such numbers never replace newer numbers of another source.
	Lags bool
	// Failed is set if there is no answer for this target, because a call failed or the source is paused. Class is then Temporary, the class of
	// the refusal, or quota.Paused.
	Failed *Failure
}

// ForTarget returns the result with the given target and a copy of the facts. So two results for the same video do not share their facts.
func (r Result) ForTarget(t queue.Target) Result {
	r.Target = t
	if r.Facts != nil {
		facts := *r.Facts
		r.Facts = &facts
	}
	return r
}

// AddResult adds the result for one item of an answer to results, which maps the id of each item to its result. If the answer has a different
// item for the same id, it is not known which item is right. The result for the id is then Temporary.
func AddResult(results map[string]Result, id string, r Result) {
	earlier, twice := results[id]
	same := earlier.Class == r.Class && earlier.Detail == r.Detail && reflect.DeepEqual(earlier.Facts, r.Facts) && reflect.DeepEqual(earlier.Account, r.Account)
	if twice && !same {
		r = Result{Class: Temporary, Detail: "the answer has two different items for this id"}
	}
	results[id] = r
}

// UnansweredResult returns the result for a target that got no answer because a call failed with err.
func UnansweredResult(t queue.Target, err error) Result {
	failure, ok := errors.AsType[*Failure](err)
	if !ok { // for example, the deadline passed before the call began
		failure = &Failure{Class: Temporary, Detail: err.Error(), Cause: err}
	}
	return Result{Target: t, Class: Temporary, Detail: "a call of the batch failed: " + err.Error(), Failed: failure}
}

// FetchEach calls fetchOne for each target until a call fails. If no earlier target was answered, or the error is context.Canceled, FetchEach
// returns the error. Otherwise, the failed and all later targets get UnansweredResult. A result of the class Unsupported does not count as an
// answer.
func FetchEach(ctx context.Context, batch []queue.Target, fetchOne func(context.Context, queue.Target) (Result, error)) ([]Result, error) {
	results := make([]Result, len(batch))
	var failed error
	answered := false
	for i, t := range batch {
		var r Result
		err := failed
		if failed == nil {
			r, err = fetchOne(ctx, t)
		}
		switch {
		case err == nil:
			answered = answered || r.Class != Unsupported
		case !answered || errors.Is(err, context.Canceled):
			return nil, err
		default:
			failed = err
			r = UnansweredResult(t, err)
		}
		r.Target = t
		results[i] = r
	}
	return results, nil
}

// IsOtherAccount returns true if the ids of a target and of an answer show that they are two different accounts with the same handle.
func IsOtherAccount(t queue.Target, f *AccountFacts) bool {
	var id, sourceID string
	if f.ID != nil {
		id = *f.ID
	}
	if f.SourceID != nil {
		sourceID = *f.SourceID
	}
	return store.DifferentAccounts(t.AccountID, t.SourceID, id, sourceID)
}

// ResultForReusedHandle returns the result for an account whose handle now belongs to another account on the platform. Its class is OtherOwner.
// sandbox is true if a sandbox answered.
func ResultForReusedHandle(t queue.Target, sandbox bool) Result {
	return Result{Target: t, Class: OtherOwner, Sandbox: sandbox, Detail: "the answer is not stored, because another account now has the handle " + t.Handle}
}

// Failure is the error of a call that returned no result for any of its targets.
type Failure struct {
	Class   Class
	Budget  string    // name of the budget that the failure concerns; "" means the whole source
	RetryAt time.Time // the time from which the source accepts calls again; zero if the source did not say
	// OfSource is true if the answer says that the credential or the source caused the failure. It does not
	// matter for RateLimited and QuotaSpent, which always concern the source.
	OfSource bool
	Detail   string // reason as text for the log; it never contains a credential
	Cause    error  // underlying error for errors.Is and errors.As; it can be nil and never contains a credential
}

func (f *Failure) Error() string { return string(f.Class) + ": " + f.Detail }

// Unwrap returns the cause of the failure, so that callers can use errors.Is to recognise a timeout or an answer that is too large.
func (f *Failure) Unwrap() error { return f.Cause }

// ErrorType returns the class of the failure. The span of a failed call gets this class as its attribute error.type, instead of the text of
// the error.
func (f *Failure) ErrorType() string { return string(f.Class) }

// ConcernsSource returns true if the cause of the failure is the source and not a target.
func (f *Failure) ConcernsSource() bool {
	return f.OfSource || f.Class == RateLimited || f.Class == QuotaSpent
}

// ErrNoAnswer is the cause of a failure if no complete answer was received, for example because of a timeout or a broken connection.
var ErrNoAnswer = errors.New("no complete answer was received")
