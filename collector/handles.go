package collector

import (
	"slices"

	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// Some sources find a video only through its account. The handle in a caller's link may be wrong, by mistake or on purpose, and all
// organisations share one target. So the collector asks a source under each handle that a subscriber claims, until it finds the
// video. Only the handle in the source's answer is then used for all organisations.

// search records what a source answered for a video under the handles that were tried so far.
type search struct {
	tried     []string // claimed handles, "" for none
	confirmed *Result  // the result under the handle that a source had confirmed; nil if that was not tried
}

// searches are the searches of one source, by external id.
type searches map[string]*search

func newSearches(targets []queue.Target) searches {
	all := make(searches, len(targets))
	for _, t := range targets {
		all[t.ExternalID] = &search{}
	}
	return all
}

// under evaluates the result r of asking for a video under one handle. If the source did not find the video and other handles are
// claimed, next is the target with the next handle. Otherwise next is nil and the result is final.
func (s *search) under(source Source, t queue.Target, asked Target, r Result) (final Result, next *queue.Target) {
	by, ok := source.(HandleAsker)
	if asked.Kind != KindVideo || r.Class == OK || !ok || !by.AsksByHandle(asked) {
		return r, nil
	}
	rest := t
	switch {
	case t.Handle == "" && len(t.Handles) > 0:
		s.tried = append(s.tried, t.Handles[0])
		rest.Handles = t.Handles[1:]
	case t.Handle != "" && slices.Contains([]Class{Gone, Missing, Unsupported}, r.Class):
		s.confirmed, rest.Handle = &r, ""
	default:
		return r, nil
	}
	if len(rest.Handles) > 0 {
		return r, &rest
	}
	return s.conclude(r), nil
}

// conclude returns the result of a search that has tried all handles. r is the result of the last one.
func (s *search) conclude(r Result) Result {
	switch {
	case s.confirmed != nil:
		return *s.confirmed
	case len(s.tried) == 0, len(s.tried) == 1 && s.tried[0] == "":
		return r
	case len(s.tried) == 1 && !slices.Contains([]Class{Gone, Missing, Unsupported}, r.Class):
		return r // only one claim, and the source knows its account
	}
	r.Class, r.Detail = Unconfirmed, "not found under the claimed account names: "+r.Detail
	return r
}

// stopped returns the result of a search that ends before all handles were tried. ok is false if none was tried.
func (s *search) stopped(t Target) (Result, bool) {
	switch {
	case s.confirmed != nil:
		return *s.confirmed, true
	case len(s.tried) > 0:
		return Result{Target: t, Class: Unconfirmed, Detail: "not found under the claimed account names that were tried so far"}, true
	}
	return Result{}, false
}

// noted adds the handles under which the source did not find the video to the outcome.
func (s *search) noted(o ingest.Outcome) ingest.Outcome {
	o.TriedHandles = append(o.TriedHandles, s.tried...)
	return o
}
