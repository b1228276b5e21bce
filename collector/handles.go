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

// Some sources find a video only through its account. The handle in a caller's link can be wrong, by mistake or on purpose, and all
// organisations share one target. A source is therefore asked with each handle that a subscriber claims, until it finds the video. From
// then on, only the handle in the source's answer is used, for all organisations.

// request returns the target as it is sent to its source. Its handle is the confirmed handle of the video, or the first claimed handle if
// none is confirmed.
func (c *Collector) request(t queue.Target, now time.Time) source.Target {
	t.NeedDetails = schedule.NeedsDetails(t, now) || attemptOf(t).Counted != nil
	if t.Handle == "" && len(t.Handles) > 0 {
		t.Handle, t.HandleClaimed = t.Handles[0], t.Handles[0] != ""
	}
	if t.Kind == source.KindVideo && t.Handle != "" {
		t.Link = link.UnderHandle(t.Platform, t.Link, t.Handle)
	}
	if t.AccountID == "" && t.Kind == source.KindAccount && store.IsAccountID(t.ExternalID) {
		t.AccountID = t.ExternalID // the link contained the account id
	}
	return t
}

// search is the search for one video at one source that needs the handle of the video's account. Each call tries another handle.
type search struct {
	tried     []string       // the claimed handles that were tried; "" for a link without a handle
	confirmed *source.Result // the result under the confirmed handle; nil if no handle is confirmed
}

// searches are the searches of one claim, by the external id of the video.
type searches map[string]*search

// of returns the search for a target. It begins a new search if there is none.
func (all searches) of(t source.Target) *search {
	if all[t.ExternalID] == nil {
		all[t.ExternalID] = &search{}
	}
	return all[t.ExternalID]
}

// notFound contains the classes of answers after which a search tries another handle.
var notFound = []source.Class{source.Gone, source.Missing, source.Unsupported}

// next evaluates r, the result of asking for a video under one handle. If the source did not find the video and further handles are
// claimed, again is the request with the next handle. Otherwise again is nil and final is the result.
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
		return s.resultOfAll(r), nil
	}
	rest.Handle, rest.HandleClaimed = rest.Handles[0], rest.Handles[0] != ""
	rest.Link = link.UnderHandle(t.Platform, t.Link, rest.Handle)
	return r, &rest
}

// resultOfAll returns the result of a search that has tried all handles. r is the result of the last try.
func (s *search) resultOfAll(r source.Result) source.Result {
	switch {
	case s.confirmed != nil:
		return *s.confirmed
	case len(s.tried) == 0, len(s.tried) == 1 && s.tried[0] == "":
		return r
	case len(s.tried) == 1 && !slices.Contains(notFound, r.Class):
		return r // the source did not say that the video is not found, and no other handle is claimed
	}
	r.Class, r.Detail = source.Unconfirmed, "not found under the claimed account names: "+r.Detail
	return r
}

// stopped returns the result of a search that ends before all handles were tried. ok is false if no handle was tried. The remaining handles
// are tried in the next fetch.
func (s *search) stopped(t source.Target) (r source.Result, ok bool) {
	switch {
	case s.confirmed != nil:
		return *s.confirmed, true
	case len(s.tried) > 0:
		return source.Result{Target: t, Class: source.Unconfirmed, Detail: "not found under the claimed account names that were tried so far"}, true
	}
	return r, false
}
