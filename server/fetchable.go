package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// fetchableCacheTime is how long fetchableReader keeps the last result of its database query.
const fetchableCacheTime = 5 * time.Second

// fetchableReader reads from the database which videos and accounts the running collectors can fetch. It uses a query result for fetchableCacheTime.
type fetchableReader struct {
	queue *queue.Queue
	now   func() time.Time

	reading sync.Mutex // held while a request reads the database
	last    atomic.Pointer[fetchableResult]
}

// fetchableResult is a query result.
type fetchableResult struct {
	fetchable queue.Fetchable
	at        time.Time
}

// isFresh returns true if the result can still be used at the given time.
func (r *fetchableResult) isFresh(now time.Time) bool {
	return r != nil && !now.Before(r.at) && now.Before(r.at.Add(fetchableCacheTime))
}

// readFetchable returns which videos and accounts the running collectors can fetch. It reads the database if the last query result is older than
// fetchableCacheTime. If another request is reading the database, or if the read fails, readFetchable returns the last query result, even if it is older.
// Without an earlier result, readFetchable waits for the other request, and returns the error of a failed read.
func (r *fetchableReader) readFetchable(ctx context.Context) (queue.Fetchable, error) {
	last := r.last.Load()
	if last.isFresh(r.now()) {
		return last.fetchable, nil
	}
	if last == nil {
		r.reading.Lock()
	} else if !r.reading.TryLock() {
		return last.fetchable, nil
	}
	defer r.reading.Unlock()
	if last = r.last.Load(); last.isFresh(r.now()) { // another request has read the database in the meantime
		return last.fetchable, nil
	}
	fetchable, err := r.queue.Fetchable(ctx)
	switch {
	case err == nil:
		r.last.Store(&fetchableResult{fetchable, r.now()})
	case last != nil:
		return last.fetchable, nil
	}
	return fetchable, err
}

// checkFetchable returns a warning if the running collectors cannot fetch the video or account of a link. If they
// could not fetch it by another form of link either, checkFetchable also returns the reason. If no running collector has a source, both results are "".
func checkFetchable(fetchable queue.Fetchable, l link.Link) (reason, warning string) {
	byHandle := queue.Form{Platform: l.Platform, Kind: queue.Kind(l.Kind), ByHandle: true}
	byID := queue.Form{Platform: l.Platform, Kind: queue.Kind(l.Kind)}
	platform := l.Platform.Title()
	needed := byHandle
	if l.Handle == "" {
		needed = byID
	}
	switch {
	case !fetchable.IsKnown() || fetchable.CanFetch(needed):
		return "", ""
	case !fetchable.CanFetch(byHandle) && !fetchable.CanFetch(byID):
		// The collectors cannot fetch any form of the link, so `reason` is set too.
		reason = fmt.Sprintf("No configured source can fetch %ss of %s", l.Kind, platform)
		return reason, reason + "; the operator can configure one."
	case l.Kind == link.Video && l.Handle == "":
		// In this and the following cases, the collectors can fetch another form of the link.
		warning = fmt.Sprintf("The configured sources find a video of %s only if they know its account. Track the account, or send a link that contains the account's handle.", platform)
		if l.Platform == link.Instagram { // only the source of Instagram finds the operator's own videos by their ids
			warning += " The operator's own videos need no handle."
		}
		return "", warning
	case l.Handle == "":
		return "", fmt.Sprintf("The configured sources find an account of %s only by its handle: track it by a link that names the handle.", platform)
	}
	return "", fmt.Sprintf("On %s, the configured sources need the id of the %s: track a link that contains the id.", platform, l.Kind)
}

// unsupportedReasons returns a function that explains why the running collectors cannot fetch the video or account of a link by any form of link.
// The function returns "" if they can fetch it by one of the forms, or if no running collector has a source.
func unsupportedReasons(fetchable queue.Fetchable) func(link.Link) string {
	return func(l link.Link) string {
		reason, _ := checkFetchable(fetchable, l)
		return reason
	}
}

// warningsAboutLinks returns the warnings about links that the running collectors cannot fetch, without duplicates, in the order of the links.
func warningsAboutLinks(fetchable queue.Fetchable, links []link.Link) []string {
	warnings, seen := []string{}, map[string]bool{}
	for _, l := range links {
		if _, warning := checkFetchable(fetchable, l); warning != "" && !seen[warning] {
			seen[warning] = true
			warnings = append(warnings, warning)
		}
	}
	return warnings
}
