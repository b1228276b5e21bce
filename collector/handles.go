package collector

import (
	"slices"

	"github.com/reeltally/reeltally/store"
)

// Some sources find a video by its account alone. The handle that a caller's link names may be wrong, by mistake or on
// purpose, and one target serves all organisations. So a source is asked under each handle that a subscriber claims until
// it finds the video. Only the handle of an answer is then trusted for all.

// search is what a source said of a video under the handles that were tried before.
type search struct {
	tried     []string // claimed handles, "" for none
	confirmed *Result  // under the handle that a source had confirmed
}

// searches are those of one source, by external id.
type searches map[string]*search

func newSearches(targets []store.Target) searches {
	all := make(searches, len(targets))
	for _, t := range targets {
		all[t.ExternalID] = &search{}
	}
	return all
}

// under weighs what a source said of a video under the handle that it was asked by. If it did not find the video and
// other handles are claimed, next is the target to ask for under the next one. Otherwise the result is final.
func (s *search) under(source Source, t store.Target, asked Target, r Result) (final Result, next *store.Target) {
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

// conclude returns what the results under all handles mean, the last of which is r.
func (s *search) conclude(r Result) Result {
	switch {
	case s.confirmed != nil:
		return *s.confirmed
	case len(s.tried) == 0, len(s.tried) == 1 && s.tried[0] == "":
		return r
	case len(s.tried) == 1 && !slices.Contains([]Class{Gone, Missing, Unsupported}, r.Class):
		return r // the only claim, of an account that the source knows
	}
	r.Class, r.Detail = Unconfirmed, "not found under the claimed account names: "+r.Detail
	return r
}

// stopped is the result of a search that ends before all handles were tried; false when none was.
func (s *search) stopped(t Target) (Result, bool) {
	switch {
	case s.confirmed != nil:
		return *s.confirmed, true
	case len(s.tried) > 0:
		return Result{Target: t, Class: Unconfirmed, Detail: "not found under the claimed account names that were tried so far"}, true
	}
	return Result{}, false
}

// noted adds the handles that were tried in vain to the outcome. A source found the video under none of them.
func (s *search) noted(o store.Outcome) store.Outcome {
	o.TriedHandles = append(o.TriedHandles, s.tried...)
	return o
}
