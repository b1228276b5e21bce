package collector

import (
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/verify"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// nextSourceClasses contains the classes of answers after which the next source is asked for the same target.
var nextSourceClasses = []source.Class{source.Missing, source.OtherOwner, source.Unsupported, source.Unconfirmed}

// lastingClasses contains the classes of answers that are not expected to change within a week. If a source gives such an answer for a
// target, the source is skipped for a week, as long as another source gives the target's numbers.
var lastingClasses = append([]source.Class{source.AuthFailed, source.BadRequest}, nextSourceClasses...)

// outcome returns what to store for a target after a source answered with r, and when the target is due next. Suspicious numbers, and
// numbers that are older than the stored ones, are not stored. mixedUp is true if r has the views of another video of the same batch.
func (w *worker) outcome(t queue.Target, r source.Result, mixedUp bool, now time.Time) (o ingest.Outcome) {
	a := attemptOf(t)
	switch {
	case a.Counted != nil:
		return w.detailsOutcome(t, a, r, now)
	case slices.Contains(nextSourceClasses, r.Class):
		a = a.with(answer{Source: w.source.Name(), Class: r.Class, Detail: r.Detail, At: now})
		if o, ok := w.sendToNextSource(t, a, r.Detail, now); ok {
			return o
		}
		return w.lastOutcome(t, a, r, now)
	case r.Class != source.OK:
		return w.refusedOutcome(t, a, r, now)
	}
	defer func() { w.endAfterNumbers(&o, a) }()
	o = ingest.Outcome{Target: t, Source: w.provenance(r), State: queue.StateActive, Pace: t.Pace}
	throttle := w.throttle(t)
	o.Fetch = &queue.FetchChange{Status: queue.FetchOK, Attempted: true}
	if verify.IsOlder(t, r, now) {
		o.Detail, o.NextAt = "older than the known numbers", store.InstantOf(throttle.Next(t, o.Pace, now))
		return o
	}
	if s := verify.Check(t, r, mixedUp, now); s != nil {
		o.Suspect, o.Detail = s.Text(), "held back: "+s.Why
		o.Fetch.Reason = "The newest counts are held back until they are confirmed: " + s.Why
		o.NextAt = store.InstantOf(schedule.After(t, schedule.SuspectWaits.Nth(s.Seen), now))
		return o
	}
	if a := r.Account; a != nil && a.Private != nil && *a.Private && !a.Listed {
		o.Fetch.Status, o.Fetch.Reason = queue.FetchPrivate, sourceTitle(w.source.Name())+" says that the account is private, so its videos are not listed"
	}
	if r.Facts != nil {
		if confirmed := r.Facts.Username; confirmed != nil && *confirmed == t.Handle {
			o.Handle = *confirmed // the confirmed handle is also stored if only counts were requested
		}
		o.Facts = withoutAuthor(t, r.Facts)
		o.Details = t.NeedDetails && o.Facts.Title != nil && o.Facts.Username != nil
		o.Pace = schedule.PaceOf(t, r.Facts, now)
	}
	o.NextAt = store.InstantOf(throttle.Next(t, o.Pace, now))
	return o
}

// endAfterNumbers ends an attempt after a source gave numbers. If the source did not give all requested details, the next source is asked
// for the details.
func (w *worker) endAfterNumbers(o *ingest.Outcome, a attempt) {
	if o.Facts != nil && o.Target.NeedDetails && lacksDetails(o.Facts) {
		facts := *o.Facts
		facts.Views, facts.Likes, facts.Comments, facts.Shares, facts.Bookmarks = nil, nil, nil, nil, nil
		asked := attempt{Running: true, Answers: a.Answers, Counted: &counted{w.source.Name(), &facts}}
		if next := w.nextSource(o.Target, asked); next != nil {
			o.Route, o.Answers, o.Onward, o.NextAt = next.Name(), asked.text(), true, store.InstantOf(w.now())
			return
		}
	}
	w.end(o, a, lastingClasses...)
}

// detailsOutcome returns the outcome after a source was asked for the details of a video only. Another source already gave the counts.
func (w *worker) detailsOutcome(t queue.Target, a attempt, r source.Result, now time.Time) ingest.Outcome {
	o := unchanged(t)
	o.Fetch = &queue.FetchChange{Status: queue.FetchOK, Attempted: true}
	if r.Class == source.OK {
		o.Facts, o.DetailsOnly = a.Counted.Facts, true
		fillDetails(o.Facts, r.Facts)
		o.Details = o.Facts.Title != nil && o.Facts.Username != nil
	} else if next, ok := w.sendToNextSource(t, a.with(answer{Source: w.source.Name(), Class: r.Class, Detail: r.Detail, At: now}), r.Detail, now); ok {
		return next
	}
	o.NextAt = store.InstantOf(w.throttle(t).Next(t, t.Pace, now))
	w.end(&o, a, lastingClasses...)
	return o
}

// refusedOutcome returns the outcome of a final answer without numbers, after which no other source is asked.
func (w *worker) refusedOutcome(t queue.Target, a attempt, r source.Result, now time.Time) ingest.Outcome {
	o := ingest.Outcome{Target: t, Source: w.provenance(r), State: queue.StateActive, Detail: r.Detail, Suspect: t.Suspect, Pace: t.Pace}
	wait := func(d time.Duration) { o.NextAt = store.InstantOf(schedule.After(t, d, now)) }
	// Only equal answers in a row are counted. A failed call between two answers neither counts nor resets the count, because it says
	// nothing about the target.
	count := func(as string) {
		o.Attempts, o.RefusedAs, o.Refusals = t.Attempts+1, as, 1
		if t.RefusedAs == as {
			o.Refusals += t.Refusals
		}
	}
	yes := true
	switch r.Class {
	case source.Gone, source.Missing, source.OtherOwner:
		if count(queue.StateGone); o.Refusals >= schedule.GoneConfirmed {
			o.State = queue.StateGone
		}
		wait(schedule.GoneWaits.Nth(o.Refusals))
	case source.Unconfirmed: // the state never becomes gone, because the video may be found under another claimed handle
		count(string(source.Unconfirmed))
		wait(schedule.GoneWaits.Nth(o.Refusals))
	case source.Private, source.Restricted:
		if r.Class == source.Private {
			o.Private = &yes
		} else {
			o.NotSafe = &yes
		}
		if count("refused"); o.Refusals >= schedule.RefusedParked {
			o.State = queue.StateParked
		}
		wait(schedule.RefusedWaits.Nth(o.Refusals))
	case source.Unsupported:
		o.State = queue.StateParked
		wait(schedule.Weekly)
	default: // the class Temporary and the classes of all other failures
		o.Attempts, o.RefusedAs, o.Refusals = t.Attempts+1, t.RefusedAs, t.Refusals
		if o.Attempts >= schedule.FailedParked && r.Class != source.AuthFailed { // AuthFailed does not park the target, because the credential can be the cause
			o.State = queue.StateParked
		}
		o.NextAt = store.InstantOf(schedule.AfterFailures(t, o.Attempts, now))
		o.Fetch = w.refusedChange(t, o, r.Class, w.source.Name())
		w.end(&o, a, lastingClasses...)
		return o
	}
	o.Fetch = w.refusedChange(t, o, r.Class, w.source.Name())
	w.end(&o, a, source.Unsupported)
	return o
}

// lastOutcome returns the outcome after no source could answer for a target. If the call of an earlier source failed, or if an earlier source
// is paused, the target does not count as refused, because that source will be asked later.
func (w *worker) lastOutcome(t queue.Target, a attempt, r source.Result, now time.Time) ingest.Outcome {
	if failed, ok := a.find(source.Temporary); ok {
		r.Class, r.Detail = source.Temporary, failed.Source+": "+failed.Detail
		o := w.refusedOutcome(t, a, r, now)
		o.Fetch = w.refusedChange(t, o, r.Class, failed.Source)
		return o
	}
	if p, ok := a.find(paused); ok {
		o := unchanged(t)
		o.State, o.Detail = queue.StateActive, r.Detail+"; "+p.Source+" could be asked, but is paused"
		o.NextAt = store.InstantOf(p.Until)
		o.Fetch = pauseChange(t, p.Source, p.Until, p.Pause, o.Detail, now)
		w.end(&o, a)
		return o
	}
	_, lost := a.find(source.OtherOwner)
	o := w.refusedOutcome(t, a, r, now)
	o.HandleLost = lost
	return o
}

// failedOutcome returns the outcome for a target whose call failed. If an organisation is waiting for the target, the next source is asked.
func (w *worker) failedOutcome(t queue.Target, reply quota.Reply, now time.Time) ingest.Outcome {
	a := attemptOf(t)
	class, detail := reply.Failure.Class, reply.Failure.Detail
	if reply.Outcome == quota.Failed {
		class = source.Temporary
	}
	if a.Counted != nil {
		return w.detailsOutcome(t, a, source.Result{Class: class, Detail: detail}, now)
	}
	asked := a.with(answer{Source: w.source.Name(), Class: class, Detail: detail, At: now})
	if reply.Outcome == quota.Refused || t.Lane == queue.LaneInteractive {
		if o, ok := w.sendToNextSource(t, asked, detail, now); ok {
			return o
		}
	}
	r := source.Result{Class: reply.Failure.Class, Detail: detail}
	if reply.Outcome == quota.Refused {
		return w.lastOutcome(t, asked, r, now)
	}
	return w.refusedOutcome(t, a, r, now)
}

// longestDefer is the longest time for which a target is deferred because its source is paused. After that time, the pause is checked again,
// because operators can end some pauses early.
const longestDefer = 5 * time.Minute

// unavailableOutcome returns the outcome for a target whose source must not be asked before until. The next source is asked if an
// organisation is waiting for the target. The next source is also asked if the pause would delay the target by more than half of its
// interval.
func (w *worker) unavailableOutcome(t queue.Target, until time.Time, why source.Class, now time.Time) ingest.Outcome {
	a := attemptOf(t)
	last := t.RequestedAt
	if t.FetchedAt != nil {
		last = *t.FetchedAt
	}
	latest := last.Time().Add(w.throttle(t).Interval(t) * 3 / 2)
	detail := w.source.Name() + " is paused until " + until.UTC().Format(time.RFC3339)
	switch {
	case a.Counted != nil:
		return w.detailsOutcome(t, a, source.Result{Class: paused, Detail: detail}, now)
	case t.Lane == queue.LaneInteractive || until.After(latest):
		if o, ok := w.sendToNextSource(t, a.with(answer{Source: w.source.Name(), Class: paused, Detail: detail, At: now, Until: until, Pause: why}), detail, now); ok {
			return o
		}
	}
	o := unchanged(t)
	o.Detail, o.NextAt = detail, store.InstantOf(until)
	o.Fetch = pauseChange(t, w.source.Name(), until, why, detail, now)
	if soon := now.Add(schedule.Jitter(longestDefer)); soon.Before(until) {
		o.NextAt = store.InstantOf(soon)
	}
	return o
}

// provenance returns the source name that is stored with the history points of a result.
func (w *worker) provenance(r source.Result) string {
	if r.Sandbox {
		return "sandbox"
	}
	return w.source.Name()
}

// withoutAuthor removes the author from facts if only counts were requested. A call for counts can use another API key than a call with
// details. It must therefore never rename an author or move a video to another account.
func withoutAuthor(t queue.Target, facts *source.Facts) *source.Facts {
	if t.NeedDetails {
		return facts
	}
	f := *facts
	f.Username, f.AccountID, f.AccountSourceID, f.AccountName = nil, nil, nil, nil
	return &f
}

// lacksDetails returns true if the facts lack a detail that every video has.
func lacksDetails(f *source.Facts) bool {
	return f.Title == nil || f.Username == nil || f.UploadedAt == nil || f.LengthSeconds == nil
}

// fillDetails copies the details that facts lack from another source's facts. It copies no counts. It copies no account, because each
// source has its own account ids.
func fillDetails(f *source.Facts, from *source.Facts) {
	fill(&f.Title, from.Title)
	fill(&f.Username, from.Username)
	fill(&f.UploadedAt, from.UploadedAt)
	fill(&f.LengthSeconds, from.LengthSeconds)
	fill(&f.SongName, from.SongName)
	fill(&f.SongLink, from.SongLink)
	fill(&f.IsAd, from.IsAd)
	fill(&f.ShopAd, from.ShopAd)
	fill(&f.ShopProductID, from.ShopProductID)
}

func fill[T any](to **T, from *T) {
	if *to == nil {
		*to = from
	}
}
