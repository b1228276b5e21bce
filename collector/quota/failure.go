package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// A call can fail although its source works, because of its target. For example, a vendor answers 403 for an age-restricted video, or a
// token has no permission to read one page. A failure therefore pauses its source in two cases only:
//
//   - The answer says that the cause is the credential, the quota or a rate limit (source.Failure.ConcernsSource).
//   - Several different targets in a row got the same refusal, without a successful answer of the source between them. The refusals are
//     counted in the database (queue.NoteRefusal), so that all collectors share the count.
//
// If a call for several targets is refused as a whole, each half of the batch is requested separately, down to single targets.

const (
	// authRefusals is the number of AuthFailed calls in a row after which a source is paused.
	authRefusals = 2
	// otherRefusals is the number of failed calls in a row, of a class other than AuthFailed, after which a source is paused.
	otherRefusals = 3
	// longestRefusalPause is the longest pause after refusals that do not blame the credential. It is short because the targets may have
	// caused all of them.
	longestRefusalPause = 5 * time.Minute
)

// fail decides what a failed call means for its source and its targets, and pauses the source or one of its budgets.
func (q *Quota) fail(ctx context.Context, s source.Source, st state, batch []source.Target, f *source.Failure) (Reply, error) {
	now := q.now()
	reply := Reply{Outcome: Failed, Targets: batch, At: now, Failure: f}
	if errors.Is(f, source.ErrNoUnits) { // the call budget was used up before the first request was sent
		return reply, nil
	}
	strikes := st.pauses[f.Bucket].Strikes
	var until time.Time // the end of the pause; the zero time means no pause
	switch {
	case f.ConcernsSource():
		until = q.pauseAfter(f, strikes)
		if f.Class != source.BadRequest && f.Class != source.Temporary {
			reply.Outcome = Unavailable
		}
	case !errors.Is(f, source.ErrNoAnswer) && hasSeveralSubjects(s, batch):
		// The refusal of a batch is not counted, because it is not known which target caused it. The exception is a source that has already
		// refused other targets.
		if !slices.ContainsFunc(st.refusals, func(r queue.Refusals) bool {
			return r.Source == Key(s, f.Bucket) && r.Class == string(f.Class) && refusalsConcernSource(r)
		}) {
			reply.Outcome = Divided
			return reply, nil
		}
		until, reply.Outcome = pauseAfterRefusals(f, strikes, now)
	default:
		r, err := q.queue.NoteRefusal(ctx, Key(s, f.Bucket), string(f.Class), refusalSubject(s, batch[0]))
		if err != nil {
			return reply, err
		}
		q.refused.Store(Key(s, f.Bucket), true)
		switch {
		case refusalsConcernSource(r):
			until, reply.Outcome = pauseAfterRefusals(f, strikes, now)
		case f.Class != source.Temporary:
			reply.Outcome = Refused
		}
	}
	attrs := []any{"source", s.Name(), "budget", f.Bucket, "class", f.Class, "detail", f.Detail, "targets", len(batch), "id", batch[0].ExternalID}
	if until.IsZero() {
		q.log.WarnContext(ctx, "call failed for its targets", attrs...)
		return reply, nil
	}
	q.log.WarnContext(ctx, "source paused", append(attrs, "until", until.UTC(), "source_says", f.RetryAt.UTC())...)
	reply.Until, reply.Pause = until, f.Class
	return reply, q.queue.PauseSource(ctx, queue.Pause{Source: Key(s, f.Bucket), Class: string(f.Class), Detail: f.Detail,
		Strikes: strikes + 1, BlockedUntil: store.InstantOf(until)})
}

// pauseAfter returns the end of the pause after a failure that concerns the source. strikes is the number of earlier pauses in a row.
func (q *Quota) pauseAfter(f *source.Failure, strikes int) time.Time {
	now := q.now()
	if f.Class == source.RateLimited {
		if f.RetryAt.After(now) {
			return f.RetryAt
		}
		return now.Add(schedule.Jitter(schedule.PauseWaits.Nth(strikes + 1)))
	}
	// The source is tried again even before the time at which it says that its budget is available, because operators can buy more units.
	until := now.Add(schedule.ProbeWaits.Nth(strikes + 1))
	if f.Class == source.QuotaSpent && f.RetryAt.After(now) && f.RetryAt.Before(until) {
		return f.RetryAt
	}
	return until
}

// pauseAfterRefusals is called after several targets in a row were refused without a clear cause. It returns the end of the source's pause, and
// the outcome of the last call. strikes is the number of earlier pauses in a row.
func pauseAfterRefusals(f *source.Failure, strikes int, now time.Time) (time.Time, Outcome) {
	if f.Class == source.AuthFailed {
		return now.Add(min(schedule.ProbeWaits.Nth(strikes+1), longestRefusalPause)), Unavailable
	}
	return now.Add(schedule.Jitter(schedule.PauseWaits.Nth(strikes + 1))), Failed
}

// refusalsConcernSource returns true if there were so many refusals in a row that the source must be the cause.
func refusalsConcernSource(r queue.Refusals) bool {
	if r.Class == string(source.AuthFailed) {
		return r.Targets > 1 && r.Calls >= authRefusals
	}
	return r.Targets > 1 && r.Calls >= otherRefusals
}

// refusalSubject returns the name under which refusals of a target are counted: the target's group if the source has groups, and the target
// otherwise.
func refusalSubject(s source.Source, t source.Target) string {
	if group := s.Group(t); group != "" && t.Kind == source.KindVideo {
		return fmt.Sprintf("%s/group/%s", t.Platform, group)
	}
	return fmt.Sprintf("%s/%s/%s", t.Platform, t.Kind, t.ExternalID)
}

// hasSeveralSubjects returns true if a batch has targets of more than one subject. One half of the batch can then be answered although the other is
// refused.
func hasSeveralSubjects(s source.Source, batch []source.Target) bool {
	first := refusalSubject(s, batch[0])
	return slices.ContainsFunc(batch[1:], func(t source.Target) bool { return refusalSubject(s, t) != first })
}
