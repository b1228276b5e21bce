package source

import (
	"errors"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
)

// Class is the class of a result or a failure. It decides what happens to the target and to its source.
type Class string

// The classes. OK to Temporary concern one target, the others the whole source.
const (
	OK          Class = "ok"
	Gone        Class = "gone"          // deleted, or private where the source cannot tell; nothing is written
	Missing     Class = "missing"       // this source does not show the target, but another may; without another, it is Gone
	OtherOwner  Class = "handle_reused" // another account has the handle now; as Missing, because another source may ask by id
	Private     Class = "private"       // the source says that the target is private
	Restricted  Class = "restricted"    // age or region restriction
	Unsupported Class = "unsupported"   // this source can never answer for this target
	Unconfirmed Class = "unconfirmed"   // not found under handles that no source has confirmed; as Missing, but never makes the target Gone
	Temporary   Class = "temporary"     // a retry may get an answer

	RateLimited Class = "rate_limited" // the source is paused until RetryAt
	QuotaSpent  Class = "quota_spent"  // the source's budget is used up until RetryAt
	AuthFailed  Class = "auth_failed"  // the credential was refused
	BadRequest  Class = "bad_request"  // the platform refused the form of the request
)

// Facts are what a source said about a video. A nil pointer means that the source did not say: never zero, never empty.
type Facts = ingest.VideoFacts

// AccountFacts are what a source said about an account, and its newest videos.
type AccountFacts = ingest.AccountFacts

// Result is a source's answer for one target of a batch.
type Result struct {
	Target Target
	Class  Class
	Detail string // for the log; never contains a credential
	// Facts are set for a video and Account for an account, if Class is OK.
	Facts   *Facts
	Account *AccountFacts
	// Sandbox is true if the answer came from a sandbox: its numbers are invented.
	Sandbox bool
	// Lags is true if the source's numbers may be days old. They never replace newer numbers of another source.
	Lags bool
	// Failed is the failure of this target's call, if other calls for the batch were answered. Class is then Temporary.
	Failed *Failure
}

// Unanswered returns the result for a target whose call failed with err after another call for the batch was answered.
func Unanswered(t Target, err error) Result {
	r := Result{Target: t, Class: Temporary, Detail: "a call of the batch failed: " + err.Error()}
	r.Failed, _ = errors.AsType[*Failure](err)
	return r
}

// IsOtherAccount returns true if the ids in the facts show that they are of another account than the target: its handle was reused.
func IsOtherAccount(t Target, f *AccountFacts) bool {
	var id, sourceID string
	if f.ID != nil {
		id = *f.ID
	}
	if f.SourceID != nil {
		sourceID = *f.SourceID
	}
	return store.DifferentAccounts(t.AccountID, t.SourceID, id, sourceID)
}

// HandleReused returns the result for an account target whose handle now belongs to another account.
func HandleReused(t Target, sandbox bool) Result {
	return Result{Target: t, Class: OtherOwner, Sandbox: sandbox, Detail: "the handle " + t.Handle + " belongs to another account now: nothing of it is written"}
}

// Failure is the outcome of a whole call: no target of the batch has an answer.
type Failure struct {
	Class   Class
	Bucket  string    // the budget that the failure concerns; "" for the whole source
	RetryAt time.Time // when the source said that it may be asked again; zero if it did not say
	// OfSource is true if the answer says that the failure concerns the credential or the source, whatever the target is. If it is
	// false, the target may be the cause, unless the class is RateLimited or QuotaSpent.
	OfSource bool
	Detail   string // for the log; never contains a credential
	Cause    error  // for errors.Is and errors.As, may be nil; never contains a credential
}

func (f *Failure) Error() string { return string(f.Class) + ": " + f.Detail }

// Unwrap returns the cause, so that callers can recognise a timeout or an answer that is too large.
func (f *Failure) Unwrap() error { return f.Cause }

// ConcernsSource returns true if the failure concerns the source, whatever its target is.
func (f *Failure) ConcernsSource() bool {
	return f.OfSource || f.Class == RateLimited || f.Class == QuotaSpent
}

// ErrNoAnswer is the cause of a failure whose call got no complete answer, such as a timeout or a broken connection.
var ErrNoAnswer = errors.New("no complete answer")
