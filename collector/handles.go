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

// A handle in a caller's link is called a claimed handle, because it can be wrong. The confirmed
// handle is the handle in a source's answer.

// prepareTarget copies a target for a request to a source. If the account's handle is not confirmed
// yet, the copy has the first claimed handle.
func (c *Collector) prepareTarget(t queue.Target, now time.Time) queue.Target {
	t.NeedDetails = schedule.NeedsDetails(t, now) || parseAttempt(t).Counted != nil
	if t.Handle == "" && len(t.Handles) > 0 {
		t.Handle, t.HandleClaimed = t.Handles[0], t.Handles[0] != ""
	}
	if t.Kind == queue.KindVideo && t.Handle != "" {
		t.Link = link.ReplaceHandle(t.Platform, t.Link, t.Handle)
	}
	if t.AccountID == "" && t.Kind == queue.KindAccount && store.IsAccountID(t.ExternalID) {
		t.AccountID = t.ExternalID // the link contained the account id
	}
	return t
}

// search is the state of the search for one video at a source that needs the handle of the video's account. Each call tries one of the known
// handles.
type search struct {
	tried     []string       // the claimed handles that were tried without success; "" stands for a link without a handle
	confirmed *source.Result // result of the call with the confirmed handle; set only if this call did not find the video
}

// searchesByID maps the external id of each video of a batch to the search for this video.
type searchesByID map[string]*search

// searchFor returns the search for a video, with the handles that were already tried. If there is no search for the video yet, searchFor
// creates an empty one.
func (all searchesByID) searchFor(t queue.Target) *search {
	if all[t.ExternalID] == nil {
		all[t.ExternalID] = &search{}
	}
	return all[t.ExternalID]
}

// notFoundClasses contains the classes of answers that mean that the source did not find the video under the handle. After such an answer for the
// confirmed handle, the search tries the claimed handles.
var notFoundClasses = []source.Class{source.Gone, source.Missing, source.Unsupported}

// continueSearch handles the result r of a call. It returns the next request, with another claimed handle. If
// there is no next request, nextRequest is nil and `final` is the result of the search.
func (s *search) continueSearch(src source.Source, t queue.Target, r source.Result) (final source.Result, nextRequest *queue.Target) {
	rest := t
	switch {
	case r.Class == quota.Paused:
		return s.finalResult(r), nil // the remaining handles are tried in the next fetch
	case t.Kind != queue.KindVideo || r.Class == source.OK || r.Failed != nil || !src.NeedsHandle(t):
		return r, nil
	case len(t.Handles) > 0 && t.Handle == t.Handles[0]:
		s.tried = append(s.tried, t.Handle)
		rest.Handles = t.Handles[1:]
	case t.Handle != "" && slices.Contains(notFoundClasses, r.Class):
		s.confirmed = &r
	default:
		return r, nil
	}
	if len(rest.Handles) == 0 {
		return s.finalResult(r), nil
	}
	rest.Handle, rest.HandleClaimed = rest.Handles[0], rest.Handles[0] != ""
	rest.Link = link.ReplaceHandle(t.Platform, t.Link, rest.Handle)
	return r, &rest
}

// finalResult returns the result of the whole search. lastResult is the result of the last call.
func (s *search) finalResult(lastResult source.Result) source.Result {
	unconfirmed := len(s.tried) > 1 || len(s.tried) == 1 && (lastResult.Class == quota.Paused || s.tried[0] != "" && slices.Contains(notFoundClasses, lastResult.Class))
	switch {
	case s.confirmed != nil:
		return *s.confirmed
	case unconfirmed:
		// Only claimed handles were tried, and the video may exist under another handle.
		lastResult.Class, lastResult.Detail, lastResult.Failed = source.Unconfirmed, "not found under the claimed account names: "+lastResult.Detail, nil
	}
	return lastResult
}
