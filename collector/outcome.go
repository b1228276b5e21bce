package collector

import (
	"cmp"
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/fetchstatus"
	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/verify"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// longestPauseWait limits how long a target waits while its source is paused. A longer wait may be
// unnecessary, because operators can end some pauses early.
const longestPauseWait = 5 * time.Minute

// lastingClasses contains the classes of answers that will probably not change within a week. The
// source of such an answer can be skipped for a week.
var lastingClasses = []source.Class{source.AuthFailed, source.BadRequest, source.Missing, source.OtherOwner, source.Unsupported, source.Unconfirmed}

// refusalRules has a rule for each class of answers with which a source refuses a target. Refusals whose rules have the same name are
// counted together.
var refusalRules = map[source.Class]struct {
	name      string
	waits     schedule.Waits // delays of the next fetch after the first consecutive refusal, after the second one, and so on
	confirmed int            // number of consecutive refusals after which the target gets the new state
	state     string
}{
	source.Gone:        {queue.StateGone, schedule.GoneWaits, schedule.AnswersUntilGone, queue.StateGone},
	source.Missing:     {queue.StateGone, schedule.GoneWaits, schedule.AnswersUntilGone, queue.StateGone},
	source.OtherOwner:  {queue.StateGone, schedule.GoneWaits, schedule.AnswersUntilGone, queue.StateGone},
	source.Unconfirmed: {"unconfirmed", schedule.GoneWaits, 1, queue.StateActive}, // the state is not "gone", because the video may exist under another handle
	source.Private:     {"refused", schedule.RefusedWaits, schedule.RefusalsUntilParked, queue.StateParked},
	source.Restricted:  {"refused", schedule.RefusedWaits, schedule.RefusalsUntilParked, queue.StateParked},
	source.AgeLimited:  {"refused", schedule.RefusedWaits, schedule.RefusalsUntilParked, queue.StateParked},
}

// outcome returns what to store for a target after a result. mixedUp is true if the views in the
// result probably belong to another video.
func (w *worker) outcome(t queue.Target, r source.Result, mixedUp bool, now time.Time) ingest.Outcome {
	a := parseAttempt(t)
	if r.Class == source.OK && a.Counted == nil {
		return w.successOutcome(t, a, r, mixedUp, now)
	}
	asked := w.addAnswer(a, r, now)
	next := w.nextSource(t, asked)
	switch {
	case next != nil && r.Class != source.OK && (a.Counted != nil || w.needsNextSource(t, r)):
		o := unchangedOutcome(t)
		o.Detail = r.Detail
		return continueAttempt(o, asked, next, now)
	case a.Counted != nil:
		return w.detailsOutcome(t, a, r, now)
	case r.Class == quota.Paused:
		return w.pausedOutcome(t, asked, r, now)
	case slices.Contains(lastingClasses, r.Class):
		return w.noAnswerOutcome(t, asked, r, now)
	}
	return w.refusedOutcome(t, asked, r, w.source.Name(), now)
}

// needsNextSource returns true if the next source must be asked after the result r, which has no
// numbers.
func (w *worker) needsNextSource(t queue.Target, r source.Result) bool {
	// For the classes in skippedClasses, a retry at the same source would not help: the class is lasting, or many attempts have failed.
	lasting := slices.Contains(skippedClasses(t), r.Class)
	if lasting || r.Failed == nil {
		return lasting || r.Class == source.Doubted
	}
	last := t.RequestedAt
	if t.FetchedAt != nil {
		last = *t.FetchedAt
	}
	// A fetch after the time "latest" would be late by more than half of the target's interval.
	latest := last.Time().Add(w.schedulePlan(t).Interval(t) * 3 / 2)
	// In the interactive lane, an organisation waits for the target, so any failure is enough.
	return t.Lane == queue.LaneInteractive || r.Class == quota.Paused && r.Failed.RetryAt.After(latest)
}

// skippedClasses returns the classes of answers after which a source can be skipped. If the target would be parked after another failed
// attempt, they include Temporary. A source that never gives numbers of the target then does not prevent the next source from giving them.
func skippedClasses(t queue.Target) []source.Class {
	if t.Attempts+1 >= schedule.FailuresUntilParked {
		return append(slices.Clone(lastingClasses), source.Temporary)
	}
	return lastingClasses
}

// successOutcome returns the outcome after a source gave numbers. If the target needs details and the answer lacks them, the next source is
// asked for the details. If there is no next source, the outcome lacks these details.
func (w *worker) successOutcome(t queue.Target, a attempt, r source.Result, mixedUp bool, now time.Time) ingest.Outcome {
	o := w.checkedOutcome(t, r, mixedUp, now)
	if o.Suspect == nil {
		o.Account = r.Account
	}
	if o.Facts != nil && t.NeedDetails && lacksDetails(o.Facts) {
		facts := *o.Facts
		facts.Views, facts.Likes, facts.Comments, facts.Shares, facts.Bookmarks = nil, nil, nil, nil, nil
		asked := attempt{Answers: a.Answers, Counted: &countsSource{w.source.Name(), &facts}}
		if next := w.nextSource(t, asked); next != nil {
			return continueAttempt(o, asked, next, now)
		}
	}
	w.endAttempt(&o, a, skippedClasses(t)...)
	return o
}

// checkedOutcome returns the outcome after the source gave numbers. The outcome stores these numbers only if they are plausible and not
// older than the stored numbers.
func (w *worker) checkedOutcome(t queue.Target, r source.Result, mixedUp bool, now time.Time) ingest.Outcome {
	o := ingest.Outcome{Target: t, Source: w.storedSourceName(r), State: queue.StateActive, Pace: t.Pace,
		Fetch: &queue.FetchChange{Status: queue.FetchOK, Attempted: true}}
	if a := r.Account; a != nil && a.Private != nil && *a.Private && !a.Listed {
		o.Fetch.Status, o.Fetch.Reason = queue.FetchPrivate, fetchstatus.PrivateAccountReason(w.source.Name())
	}
	suspicion := verify.Check(t, r, mixedUp, now)
	switch {
	case verify.IsOlder(t, r, now):
		o.Detail = "the answer is older than the stored numbers"
	case suspicion != nil:
		o.Suspect, o.Detail = suspicion.Text(), "suspicious, not stored: "+suspicion.Why
		reason, confirmable := "The newest counts are not stored until they are confirmed: "+suspicion.Why, !verify.IsWiped(t, r)
		if !confirmable {
			reason = "The source reports zero views of a video that had views; such a zero is not stored"
		}
		o.Fetch = &queue.FetchChange{Status: queue.FetchOK, Reason: reason, Attempted: true}
		// No answer can confirm zero views (verify.IsWiped). After some retries, such a target is fetched only at its scheduled times.
		if confirmable || suspicion.Seen <= len(schedule.SuspectWaits) {
			wait := schedule.SuspectWaits.Nth(suspicion.Seen)
			if suspicion.RisenTo > 0 {
				wait = schedule.RiseWait
			}
			o.NextAt = store.InstantOf(schedule.NextFetchTime(t, wait, now))
			return o
		}
	case r.Facts != nil:
		if confirmed := r.Facts.Username; confirmed != nil && *confirmed == t.Handle {
			o.Handle = *confirmed // store the confirmed handle even if only counts were requested
		}
		o.Facts = removeAuthor(t, r.Facts)
		o.Details = t.NeedDetails && o.Facts.Title != nil && o.Facts.Username != nil
		o.Pace = schedule.PaceOf(t, r.Facts, now)
	}
	o.NextAt = store.InstantOf(w.schedulePlan(t).Next(t, o.Pace, now))
	return o
}

// detailsOutcome returns the outcome of an attempt in which one source returned counts, and other sources were
// asked for missing details. r is the result of the source that was asked last.
func (w *worker) detailsOutcome(t queue.Target, a attempt, r source.Result, now time.Time) ingest.Outcome {
	o := unchangedOutcome(t)
	o.Fetch = &queue.FetchChange{Status: queue.FetchOK, Attempted: true}
	if r.Class == source.OK {
		o.Source, o.Facts, o.DetailsOnly = w.storedSourceName(r), a.Counted.Facts, true
		fillDetails(o.Facts, r.Facts)
		o.Details = o.Facts.Title != nil && o.Facts.Username != nil
	}
	o.NextAt = store.InstantOf(w.schedulePlan(t).Next(t, t.Pace, now))
	w.endAttempt(&o, a, lastingClasses...)
	return o
}

// pausedOutcome returns the outcome for a target whose source is paused. The target is due when the pause ends, or after about longestPauseWait
// if the pause is longer. If an earlier source of the attempt can be asked again before the pause ends, the attempt ends. The next fetch then
// begins with the first source that is not skipped (see endAttempt).
func (w *worker) pausedOutcome(t queue.Target, a attempt, r source.Result, now time.Time) ingest.Outcome {
	failed := a.firstAnswerOfClass(source.Temporary)
	if failed != nil && failed.At.Add(schedule.FailureWaits.Nth(t.Attempts+1)).Before(r.Failed.RetryAt) {
		return w.failedOutcome(t, a, r, *failed, now)
	}
	o := unchangedOutcome(t)
	first := a.firstAnswerToResume()
	o.Detail, o.NextAt = r.Detail, store.InstantOf(first.Until)
	if first.Source != w.source.Name() {
		o.Detail = first.Detail + "; " + r.Detail
		w.endAttempt(&o, a, lastingClasses...)
	}
	o.Fetch = fetchstatus.StatusChangeDuringPause(t, first.Source, first.Until, first.Pause, o.Detail, now)
	if soon := now.Add(schedule.Jitter(longestPauseWait)); soon.Before(first.Until) {
		o.NextAt = store.InstantOf(soon)
	}
	return o
}

// failedOutcome returns the outcome of an attempt without numbers in which a call to a source failed, or the answer of a source was doubted. The target does not count as refused, and
// the source will be asked again. `failed` is the answer for the failed call, and r is the result of the source that was asked last.
func (w *worker) failedOutcome(t queue.Target, a attempt, r source.Result, failed answer, now time.Time) ingest.Outcome {
	r.Class, r.Detail = failed.Class, failed.Source+": "+failed.Detail
	return w.refusedOutcome(t, a, r, failed.Source, now)
}

// noAnswerOutcome returns the outcome if no source gave numbers of a target. In this order of preference, the target counts as failed, waits for a
// paused source, or counts as refused.
func (w *worker) noAnswerOutcome(t queue.Target, a attempt, r source.Result, now time.Time) ingest.Outcome {
	// A source that failed or is paused will be asked again, so the target does not count as
	// refused.
	if failed := a.firstAnswerOfClass(source.Temporary, source.Doubted); failed != nil {
		return w.failedOutcome(t, a, r, *failed, now)
	}
	if p := a.firstAnswerOfClass(quota.Paused); p != nil {
		o := unchangedOutcome(t)
		o.State, o.Detail = queue.StateActive, r.Detail+"; this source is paused and will be asked later: "+p.Source
		o.NextAt = store.InstantOf(p.Until)
		o.Fetch = fetchstatus.StatusChangeDuringPause(t, p.Source, p.Until, p.Pause, o.Detail, now)
		w.endAttempt(&o, a)
		return o
	}
	o := w.refusedOutcome(t, a, r, w.source.Name(), now)
	o.HandleLost = a.firstAnswerOfClass(source.OtherOwner) != nil
	return o
}

// refusedOutcome returns the outcome of an attempt that has ended without numbers. The result r says why there are no numbers. sourceName is the name of the
// source that gave this result.
func (w *worker) refusedOutcome(t queue.Target, a attempt, r source.Result, sourceName string, now time.Time) ingest.Outcome {
	o := ingest.Outcome{Target: t, State: queue.StateActive, Detail: r.Detail, Suspect: t.Suspect, Pace: t.Pace}
	lasting, delay := []source.Class{source.Unsupported}, schedule.Weekly
	switch rule, counted := refusalRules[r.Class]; {
	case counted:
		// Only consecutive refusals under the same rule are counted. A failed call between two refusals does not change the count, because
		// it says nothing about the target.
		o.Attempts, o.RefusedAs, o.Refusals = t.Attempts+1, rule.name, 1
		if t.RefusedAs == rule.name {
			o.Refusals += t.Refusals
		}
		if o.Refusals >= rule.confirmed {
			o.State = rule.state
		}
		delay = rule.waits.Nth(o.Refusals)
	case r.Class == source.Unsupported:
		o.State = queue.StateParked
	case r.Class == source.Doubted:
		o.Attempts, o.RefusedAs, o.Refusals = t.Attempts+1, t.RefusedAs, t.Refusals
		lasting, delay = lastingClasses, schedule.DoubtWaits.Nth(o.Attempts)
	default: // the call failed, for example with the class Temporary
		o.Attempts, o.RefusedAs, o.Refusals = t.Attempts+1, t.RefusedAs, t.Refusals
		if o.Attempts >= schedule.FailuresUntilParked && r.Class != source.AuthFailed { // AuthFailed does not park the target, because the credential can be the cause
			o.State = queue.StateParked
		}
		lasting, delay = lastingClasses, schedule.FailureWaits.Nth(o.Attempts)
	}
	if r.Class == source.Private {
		o.Private = new(true)
	}
	if r.Class == source.AgeLimited {
		o.NotSafe = new(true)
	}
	o.NextAt = store.InstantOf(schedule.NextFetchTime(t, delay, now))
	o.Fetch = fetchstatus.StatusChangeAfterRefusal(w.Sources, o, r.Class, sourceName)
	w.endAttempt(&o, a, lasting...)
	return o
}

// storedSourceName returns the source name that is stored with the history points of a result. It is the name of the worker's source, or
// store.SandboxSource if a sandbox answered.
func (w *worker) storedSourceName(r source.Result) string {
	if r.Sandbox {
		return store.SandboxSource
	}
	return w.source.Name()
}

// removeAuthor returns the facts without the author if only counts were requested. A request for
// counts must never rename an author or change the account of a video.
func removeAuthor(t queue.Target, facts *source.Facts) *source.Facts {
	if t.NeedDetails {
		return facts
	}
	f := *facts
	f.Username, f.AccountID, f.AccountSourceID, f.AccountName = nil, nil, nil, nil
	return &f
}

// lacksDetails returns true if the facts lack the title, the username, the time of the upload or the length. Every video has these details. A length of
// 0 counts as known: the video has no length yet.
func lacksDetails(f *source.Facts) bool {
	return f.Title == nil || f.Username == nil || f.UploadedAt == nil || f.LengthSeconds == nil
}

// fillDetails adds the missing details of a video from the answer of another source, and replaces a length of 0. It copies no counts, and no account ids,
// because each source has its own account ids.
func fillDetails(f *source.Facts, other *source.Facts) {
	f.Title = cmp.Or(f.Title, other.Title)
	f.Username = cmp.Or(f.Username, other.Username)
	f.UploadedAt = cmp.Or(f.UploadedAt, other.UploadedAt)
	if f.LengthSeconds == nil || *f.LengthSeconds == 0 && other.LengthSeconds != nil {
		f.LengthSeconds = other.LengthSeconds
	}
	f.SongName = cmp.Or(f.SongName, other.SongName)
	f.SongLink = cmp.Or(f.SongLink, other.SongLink)
	f.ThumbnailURL = cmp.Or(f.ThumbnailURL, other.ThumbnailURL)
	f.IsAd = cmp.Or(f.IsAd, other.IsAd)
	f.ShopAd = cmp.Or(f.ShopAd, other.ShopAd)
	f.ShopProductID = cmp.Or(f.ShopProductID, other.ShopProductID)
}
