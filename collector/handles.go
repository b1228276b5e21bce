package collector

import (
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Some sources find a video only through its account. The handle in a caller's link can be wrong, by mistake or on purpose, and all
// organisations share one target. A source is therefore asked with each handle that a subscriber claims, until it finds the video. From
// then on, only the handle in the source's answer is used, for all organisations.

// request returns the target as it is sent to its source: with its confirmed handle, or else with its first claimed handle.
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

// searches contains the searches for the videos of one claim. The keys are the external ids of the videos.
type searches map[string]*search

// of returns the search that belongs to the target t. If the map does not contain a search for t yet, of adds a new one.
func (all searches) of(t source.Target) *search {
	if all[t.ExternalID] == nil {
		all[t.ExternalID] = &search{}
	}
	return all[t.ExternalID]
}

// notFound contains the classes of answers after which a search tries another handle.
var notFound = []source.Class{source.Gone, source.Missing, source.Unsupported}

// next evaluates r, which the source by has returned for the video t under one handle. If the source did not find the video and further
// handles are claimed, again is the request with the next handle. Otherwise again is nil and final is the result of the search.
func (s *search) next(by source.Source, t source.Target, r source.Result) (final source.Result, again *source.Target) {
	rest := t
	switch {
	case r.Class == quota.Paused:
		return s.result(r), nil // the remaining handles are tried in the next fetch
	case t.Kind != source.KindVideo || r.Class == source.OK || r.Failed != nil || !by.AsksByHandle(t):
		return r, nil
	case len(t.Handles) > 0 && t.Handle == t.Handles[0]:
		s.tried = append(s.tried, t.Handle)
		rest.Handles = t.Handles[1:]
	case t.Handle != "" && slices.Contains(notFound, r.Class):
		s.confirmed = &r
	default:
		return r, nil
	}
	if len(rest.Handles) == 0 {
		return s.result(r), nil
	}
	rest.Handle, rest.HandleClaimed = rest.Handles[0], rest.Handles[0] != ""
	rest.Link = link.UnderHandle(t.Platform, t.Link, rest.Handle)
	return r, &rest
}

// result returns the result of a search that ends with r: the result under the confirmed handle, or Unconfirmed if the video was not found
// under the claimed handles.
func (s *search) result(r source.Result) source.Result {
	unconfirmed := len(s.tried) > 1 || len(s.tried) == 1 && (r.Class == quota.Paused || s.tried[0] != "" && slices.Contains(notFound, r.Class))
	switch {
	case s.confirmed != nil:
		return *s.confirmed
	case unconfirmed:
		r.Class, r.Detail, r.Failed = source.Unconfirmed, "not found under the claimed account names: "+r.Detail, nil
	}
	return r
}
