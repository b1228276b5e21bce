package vendor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// Run describes the runs of a vendor whose calls only start the work, which can take many minutes. The source then asks for the state of the
// run until the run has ended, and requests its items. A vendor charges for a run even if its items are not read, so a request about a run is
// repeated if it gets no answer.
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
}

const (
	// runPause is the pause between two requests about a run. If the vendor supports it, Run.Status should make the vendor answer only when the run
	// has ended or a minute has passed.
	runPause = 5 * time.Second
	// runTries is how often a request about a run is sent if the vendor does not answer it.
	runTries = 4
)

// finishRun waits until the run that a call has started has ended. It returns the answer with the items of the run, or the vendor's refusal of a
// request about the run. If the call has started no run, finishRun returns its answer unchanged. If allowPart is false, a run that has not
// succeeded is a failure.
func (s *Source) finishRun(ctx context.Context, started *fetch.Response, allowPart bool) (*fetch.Response, error) {
	run := s.config.Run
	state, class, _ := s.classifyAnswer(started)
	id := fetch.ParseID(readCursor(state, run.ID))
	if class != string(source.OK) || id == "" {
		return started, nil
	}
	for asked := false; run.Running.isTrue(state); asked = true {
		if asked {
			pause(ctx, s.runPause)
		}
		res, err := s.askAboutRun(ctx, run.Status, id)
		if err != nil {
			return nil, err
		}
		if state, class, _ = s.classifyAnswer(res); class != string(source.OK) {
			return res, nil
		}
	}
	succeeded := run.Succeeded.isTrue(state)
	failure := &source.Failure{Class: source.Temporary, Detail: "the vendor's run has ended without success: " + fetch.Redact(state.Get(run.Succeeded.Path[0]).String(), s.key)}
	if !succeeded && !allowPart {
		return nil, failure
	}
	items, err := s.askAboutRun(ctx, run.Items, id)
	if err == nil && !succeeded && len(gjson.ParseBytes(items.Body).Array()) == 0 {
		return nil, failure
	}
	return items, err
}

// askAboutRun sends a request about a run. If the vendor does not answer, or answers that it has failed or is busy, askAboutRun repeats the
// request, up to runTries times in total. The requests take no units of a budget.
func (s *Source) askAboutRun(ctx context.Context, r Request, id string) (res *fetch.Response, err error) {
	req := r.buildRequest(s.Address(), s.config.Auth, s.key, time.Duration(s.config.Timeout), batchValues{targets: []values{{run: id}}})
	for try := range runTries {
		if try > 0 {
			pause(ctx, s.runPause)
		}
		res, err = s.api.Do(ctx, req)
		answered := err == nil && res.Status < http.StatusInternalServerError && res.Status != http.StatusTooManyRequests && res.Status != http.StatusRequestTimeout
		if answered || ctx.Err() != nil {
			break
		}
	}
	return res, err
}

// pause waits for the given time, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
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
	r.Running.check(p, memberPath+".running")
	r.Succeeded.check(p, memberPath+".succeeded")
}
