package collector

import (
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// The states of a target in the queue.
const (
	active = "active"
	gone   = "gone"
	parked = "parked"
)

const weekly = 7 * 24 * time.Hour

// outcome turns a source's answer for one target into what is written and when the target is due again, given how far
// turns are spaced out.
func outcome(t queue.Target, r Result, source string, spaced stretch, now time.Time) ingest.Outcome {
	o := ingest.Outcome{Target: t, Source: source, State: active, Detail: r.Detail, Suspect: t.Suspect, Pace: t.Pace}
	if r.Sandbox {
		o.Source = "sandbox"
	}
	wait := func(d time.Duration) { o.NextAt = store.InstantOf(after(t, d, now)) }
	// What was said before counts only where it was the same; an outage in between says nothing of the target.
	said := func(as string) {
		o.Attempts, o.RefusedAs, o.Refusals = t.Attempts+1, as, 1
		if t.RefusedAs == as {
			o.Refusals += t.Refusals
		}
	}
	refused := func() {
		if said("refused"); o.Refusals >= refusedParked {
			o.State = parked
		}
		wait(step(refusedWaits, o.Refusals-1))
	}
	yes := true
	switch r.Class {
	case OK:
		if r.Account == nil && r.Lags && isOlder(t, r.Facts, now) {
			o.Attempts, o.Suspect, o.Detail = 0, nil, "older than what is known"
			o.NextAt = store.InstantOf(spaced.next(t, o.Pace, now))
			return o
		}
		if s := weigh(t, r, now); s != nil {
			o.Suspect, o.Detail = s.text(), "held back: "+s.Why
			wait(step(suspectWaits, s.Seen-1))
			return o
		}
		if o.Suspect = nil; r.Account != nil {
			o.Attempts, o.Detail = 0, ""
			o.NextAt = store.InstantOf(spaced.next(t, o.Pace, now))
			return o
		}
		if confirmed := r.Facts.Username; confirmed != nil && *confirmed == r.Target.Handle {
			o.Handle = *confirmed // even if only counts were requested
		}
		o.Facts, o.Detail = wantedOf(r), ""
		o.Details = r.Target.NeedDetails && r.Facts.Title != nil && r.Facts.Username != nil
		o.Pace = paceOf(t, r.Facts, now)
		o.NextAt = store.InstantOf(spaced.next(t, o.Pace, now))
	case Gone, Missing, Taken:
		o.HandleLost = r.Class == Taken
		if said(gone); o.Refusals >= goneConfirmed {
			o.State = gone
		}
		wait(step(goneWaits, o.Refusals-1))
	case Unconfirmed: // another claimed handle may be the right one
		said(string(Unconfirmed))
		wait(step(goneWaits, o.Refusals-1))
	case Private:
		o.Private = &yes
		refused()
	case Restricted:
		o.NotSafe = &yes
		refused()
	case Unsupported:
		o.State = parked
		wait(weekly)
	case BadRequest, AuthFailed, QuotaSpent, RateLimited, Temporary:
		o.Attempts, o.RefusedAs, o.Refusals = t.Attempts+1, t.RefusedAs, t.Refusals
		if o.Attempts >= parkedAfter && r.Class != AuthFailed { // the cause of AuthFailed may be the credential, not the target
			o.State = parked
		}
		o.NextAt = store.InstantOf(nextRetry(t, o.Attempts, now))
	}
	return o
}

// lagAtMost is how old the numbers of a source that lags can be.
const lagAtMost = 10 * 24 * time.Hour

// isOlder says whether the facts of a source that lags are from before the last ones written. Once these are older than
// any lag, fewer views are what they are.
func isOlder(t queue.Target, f *Facts, now time.Time) bool {
	return t.Views != nil && f.Views != nil && *f.Views < *t.Views && t.FetchedAt != nil && now.Sub(t.FetchedAt.Time()) < lagAtMost
}

// wantedOf drops who the author is from an answer that was asked for counts alone: such a call may go by another key than
// the one with details, and must never rename an author or move a video to another account.
func wantedOf(r Result) *Facts {
	if r.Target.NeedDetails {
		return r.Facts
	}
	f := *r.Facts
	f.Username, f.AccountID, f.AccountSourceID, f.AccountName = nil, nil, nil, nil
	return &f
}

// ask returns the query for a claimed target. If no source has confirmed the handle of a video, the query has the first claimed
// handle.
func ask(t queue.Target, now time.Time) Target {
	asked := Target{Platform: t.Platform, Kind: Kind(t.Kind), ExternalID: t.ExternalID, Handle: t.Handle, Link: t.Link, Depth: t.Depth,
		NeedDetails: needsDetails(t, now), Again: t.Attempts > 0}
	if t.Handle == "" && len(t.Handles) > 0 {
		asked.Handle, asked.HandleClaimed = t.Handles[0], t.Handles[0] != ""
	}
	if asked.Kind == KindVideo && asked.Handle != "" {
		asked.Link = link.UnderHandle(t.Platform, t.Link, asked.Handle)
	}
	switch {
	case t.NativeID != nil:
		asked.AccountID = *t.NativeID
	case asked.Kind == KindAccount && store.IsAccountID(t.ExternalID):
		asked.AccountID = t.ExternalID // the link had it
	}
	if t.SourceID != nil {
		asked.SourceID = *t.SourceID
	}
	return asked
}
