package vendor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// Run describes the runs of a vendor whose calls only start the work, which can take many minutes. The source then asks for the state of the
// run until the run has ended, and requests its items. A vendor charges for a run even if its items are not read, so a request about a run is
// repeated if it gets no answer, or an answer of class Temporary or RateLimited.
type Run struct {
	// ID has the possible paths of the run's id in the answer to a call. If the answer has no id, the call has started no run, and the answer
	// has the items itself.
	ID Paths `json:"id"`
	// Status is the request for the state of a run. It contains {run}, the id of the run.
	Status Request `json:"status"`
	// Running is true for an answer about a run that has not ended.
	Running Condition `json:"running"`
	// Succeeded is true for an answer about a run that has ended with all its items. Other ended runs can have a part of their items: the
	// videos among them are used, but a list of an account's videos is not.
	Succeeded Condition `json:"succeeded"`
	// Items is the request for the items of a run. It contains {run}. The answer has the format that Call.Items describes.
	Items Request `json:"items"`
	// Abort is the request that ends a run early. It contains {run}. It is sent if the collector stops during the run. The next fetch starts another
	// run, so the vendor would otherwise be paid twice for the rest of this one. The answer has the state of the run. Abort is nil if the vendor cannot
	// end a run.
	Abort *Request `json:"abort,omitempty"`
}

const (
	// runPause is the pause between two requests for the state of a run, and the first pause before a request about a run is repeated. If the
	// vendor supports it, Run.Status should make the vendor answer only when the run has ended or a minute has passed.
	runPause = 5 * time.Second
	// maxRunPause is the longest pause before a request about a run is repeated, unless the vendor asks for a longer one.
	maxRunPause = time.Minute
	// stopTime is how long a collector that is stopping may still work on a run. In this time, it waits until the run has started, aborts the run, and
	// requests the items that the run has found.
	stopTime = 10 * time.Second
)

// errRun is the cause of a failure after a run was started. It wraps source.ErrNoAnswer, so that the collector does not divide the batch: each
// part of the batch would start another paid run.
var errRun = fmt.Errorf("%w from the run of a vendor", source.ErrNoAnswer)

// finishRun waits until the run that a call has started has ended. It returns the answer with the items of the run. If the call has started no
// run, finishRun returns its answer unchanged.
//
// A run that has not succeeded can have a part of its items. finishRun returns this part only if the call requests videos. videoCall is then this
// call. If videoCall is nil, finishRun returns a failure for a run that has not succeeded.
//
// If ctx is cancelled, finishRun aborts the run and uses the items that the run has found. It sends these requests with stopping, the context that
// cancelLate has made of ctx.
func (s *Source) finishRun(ctx, stopping context.Context, started *fetch.Response, videoCall *Call) (*fetch.Response, error) {
	run := s.config.Run
	state, class, _ := s.classifyAnswer(started)
	id := fetch.ParseID(readCursor(state, run.ID))
	if class != string(source.OK) || id == "" {
		return started, nil
	}
	state, err := s.awaitRun(ctx, id, state)
	if errors.Is(err, context.Canceled) && run.Abort != nil {
		state, err = s.stateOfRun(stopping, *run.Abort, id)
	}
	if err != nil {
		return nil, err
	}
	succeeded := run.Succeeded.isTrue(state)
	failure := &source.Failure{
		Class: source.Temporary, Cause: errRun,
		Detail: "the vendor's run has ended without success: " + fetch.Redact(state.Get(run.Succeeded.Path[0]).String(), s.key),
	}
	if !succeeded && videoCall == nil {
		return nil, failure
	}
	res, err := s.askAboutRun(stopping, run.Items, id)
	if err != nil || videoCall == nil {
		return res, err
	}
	items, err := findItems(gjson.ParseBytes(res.Body), videoCall.Items, videoCall.Unwrap)
	switch {
	case !succeeded && len(items) == 0:
		return nil, failure
	case err != nil:
		return nil, &source.Failure{Class: source.Temporary, Cause: errRun, Detail: err.Error()}
	}
	return res, nil
}

// awaitRun asks for the state of a run until the run has ended. It returns the last state.
func (s *Source) awaitRun(ctx context.Context, id string, state gjson.Result) (last gjson.Result, err error) {
	for asked := false; err == nil && s.config.Run.Running.isTrue(state); asked = true {
		if asked {
			_ = pause(ctx, runPause) // if ctx is done, the next request fails
		}
		state, err = s.stateOfRun(ctx, s.config.Run.Status, id)
	}
	return state, err
}

// stateOfRun sends a request about a run whose answer has the state of the run.
func (s *Source) stateOfRun(ctx context.Context, r Request, id string) (gjson.Result, error) {
	res, err := s.askAboutRun(ctx, r, id)
	if err != nil {
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(res.Body), nil
}

// askAboutRun sends a request about a run. It returns a successful answer or an error. If the vendor does not answer, or answers that it has
// failed or is busy, askAboutRun repeats the request with growing pauses until ctx is done. The requests take no units of a budget.
func (s *Source) askAboutRun(ctx context.Context, r Request, id string) (*fetch.Response, error) {
	req := s.buildRequest(r, batchValues{targets: []values{{run: id}}})
	for wait := runPause; ; wait = min(2*wait, maxRunPause) {
		res, err := s.Do(ctx, req)
		mayRepeat, untilRetry := errors.Is(err, source.ErrNoAnswer), time.Duration(0)
		if err == nil {
			body, class, detail := s.classifyAnswer(res)
			if class == string(source.OK) {
				return res, nil
			}
			err = s.runFailure(res, body, source.Class(class), detail)
			mayRepeat = res.Status >= http.StatusBadRequest && (class == string(source.Temporary) || class == string(source.RateLimited))
			untilRetry = fetch.RetryAfter(res.Header, s.now()).Sub(s.now())
		}
		if !mayRepeat {
			return nil, err
		}
		switch stopped := pause(ctx, max(wait, untilRetry)); {
		case errors.Is(stopped, context.Canceled):
			return nil, stopped
		case stopped != nil:
			return nil, err
		}
	}
}

// runFailure returns the failure for an answer that refuses a request about a run. The request names no target, so no target can be the cause.
// Therefore all classes other than those of a rate limit, a spent quota and a refused credential become Temporary.
func (s *Source) runFailure(res *fetch.Response, body gjson.Result, class source.Class, detail string) *source.Failure {
	switch class {
	case source.RateLimited, source.QuotaSpent, source.AuthFailed:
	default:
		class = source.Temporary
	}
	f := s.sourceFailure(res, body, class, "a request about the vendor's run failed: "+detail)
	f.Cause = errRun
	return f
}

// cancelLate returns a context that is cancelled stopTime after ctx was cancelled. If ctx has a deadline, the context has the same deadline.
func cancelLate(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if deadline, ok := ctx.Deadline(); ok {
		cancel()
		late, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = pause(late, stopTime)
		cancel()
	})
	return late, func() {
		stop()
		cancel()
	}
}

// pause waits for the given time, or until ctx is done. In the second case, it returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check adds an error for each invalid member of the run.
func (r Run) check(p *problems, memberPath string) {
	if len(r.ID) == 0 {
		p.add(memberPath+".id", "is missing")
	}
	for i, path := range r.ID {
		checkPath(p, fmt.Sprintf("%s.id[%d]", memberPath, i), path)
	}
	r.Status.check(p, memberPath+".status", runPlaceholders)
	r.Items.check(p, memberPath+".items", runPlaceholders)
	if r.Abort != nil {
		r.Abort.check(p, memberPath+".abort", runPlaceholders)
	}
	r.Running.check(p, memberPath+".running")
	r.Succeeded.check(p, memberPath+".succeeded")
}
