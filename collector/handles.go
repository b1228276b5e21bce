package collector

import (
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Some sources find a video only through its account. The handle in a caller's link may be wrong, by mistake or on purpose, and all
// organisations share one target. So a source is asked under each handle that a subscriber claims, until it finds the video. Only the handle
// in the source's answer is then used for all organisations.

// request returns a claimed target as its source is asked for it: with the confirmed handle of a video, or else the first claimed one.
func (c *Collector) request(t queue.Target, now time.Time) source.Target {
	t.NeedDetails = schedule.NeedsDetails(t, now) || attemptOf(t).Counted != nil
	if t.Handle == "" && len(t.Handles) > 0 {
		t.Handle, t.HandleClaimed = t.Handles[0], t.Handles[0] != ""
	}
	if t.Kind == source.KindVideo && t.Handle != "" {
		t.Link = link.UnderHandle(t.Platform, t.Link, t.Handle)
	}
	if t.AccountID == "" && t.Kind == source.KindAccount && store.IsAccountID(t.ExternalID) {
		t.AccountID = t.ExternalID // the link contained it
	}
	return t
}

// search records what a source answered for a video under the handles that were tried so far.
type search struct {
	tried     []string       // claimed handles, "" for a link without a handle
	confirmed *source.Result // the result under the confirmed handle; nil if there is none
}

// searches are the searches of one claim, by external id.
type searches map[string]*search

func (all searches) of(t source.Target) *search {
	if all[t.ExternalID] == nil {
		all[t.ExternalID] = &search{}
	}
	return all[t.ExternalID]
}

// notFound are the classes after which another handle is tried.
var notFound = []source.Class{source.Gone, source.Missing, source.Unsupported}

// next evaluates the result r of asking for a video under one handle. If the source did not find the video and other handles are claimed, it
// returns the request under the next handle. Otherwise again is nil and the result is final.
func (s *search) next(by source.Source, t source.Target, r source.Result) (final source.Result, again *source.Target) {
	if t.Kind != source.KindVideo || r.Class == source.OK || !by.AsksByHandle(t) {
		return r, nil
	}
	rest := t
	switch {
	case len(t.Handles) > 0 && t.Handle == t.Handles[0]:
		s.tried = append(s.tried, t.Handle)
		rest.Handles = t.Handles[1:]
	case t.Handle != "" && slices.Contains(notFound, r.Class):
		s.confirmed = &r
	default:
		return r, nil
	}
	if len(rest.Handles) == 0 {
		return s.conclude(r), nil
	}
	rest.Handle, rest.HandleClaimed = rest.Handles[0], rest.Handles[0] != ""
	rest.Link = link.UnderHandle(t.Platform, t.Link, rest.Handle)
	return r, &rest
}

// conclude returns the result of a search that has tried all handles. r is the result of the last one.
func (s *search) conclude(r source.Result) source.Result {
	switch {
	case s.confirmed != nil:
		return *s.confirmed
	case len(s.tried) == 0, len(s.tried) == 1 && s.tried[0] == "":
		return r
	case len(s.tried) == 1 && !slices.Contains(notFound, r.Class):
		return r // only one handle is claimed, and the source knows its account
	}
	r.Class, r.Detail = source.Unconfirmed, "not found under the claimed account names: "+r.Detail
	return r
}

// stopped returns the result of a search that ends before all handles were tried. ok is false if none was tried. The next fetch tries the other
// handles.
func (s *search) stopped(t source.Target) (r source.Result, ok bool) {
	switch {
	case s.confirmed != nil:
		return *s.confirmed, true
	case len(s.tried) > 0:
		return source.Result{Target: t, Class: source.Unconfirmed, Detail: "not found under the claimed account names that were tried so far"}, true
	}
	return r, false
}
