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

// A failed call may be caused by its target only: a vendor answers 403 for an age-restricted video, or a token may not read one page.
// So a failure pauses its source in two cases only:
//
//   - its answer says that it concerns the credential, the quota or a limit (source.Failure.ConcernsSource);
//   - several different targets got the same refusal, without a good answer of the source in between. The count is in the database
//     (store.NoteRefusal), so that all collectors share it.
//
// If a call for several targets is refused as a whole, each half is asked for separately, down to single targets.

const (
	// authRefusals is the number of AuthFailed calls in a row at which a source is paused.
	authRefusals = 2
	// otherRefusals is the number of failed calls of another class in a row at which a source is paused.
	otherRefusals = 3
	// longestDoubtfulPause is the longest pause after refusals that do not name the credential: their targets may have caused them all.
	longestDoubtfulPause = 5 * time.Minute
)

// fail decides what a failed call means for its source and its targets, and pauses the source or one of its budgets.
func (q *Quota) fail(ctx context.Context, s source.Source, st state, batch []source.Target, f *source.Failure) (Reply, error) {
	now := q.now()
	reply := Reply{Outcome: Failed, Targets: batch, At: now, Failure: f}
	if errors.Is(f, source.ErrNoUnits) { // no request was sent
		return reply, nil
	}
	strikes := st.pauses[f.Bucket].Strikes
	var until time.Time // the end of the pause; zero for none
	switch {
	case f.ConcernsSource():
		until = q.pauseAfter(f, strikes)
		if f.Class != source.BadRequest && f.Class != source.Temporary {
			reply.Outcome = Unavailable
		}
	case !errors.Is(f, source.ErrNoAnswer) && divisible(s, batch):
		// It is unknown which target is the cause, so the refusal is not counted, unless the source is known to refuse others.
		if !slices.ContainsFunc(st.refusals, func(r queue.Refusals) bool {
			return r.Source == Key(s, f.Bucket) && r.Class == string(f.Class) && enough(r)
		}) {
			reply.Outcome = Divided
			return reply, nil
		}
		until, reply.Outcome = pauseDoubtful(f, strikes, now)
	default:
		r, err := q.queue.NoteRefusal(ctx, Key(s, f.Bucket), string(f.Class), subject(s, batch[0]))
		if err != nil {
			return reply, err
		}
		q.refused.Store(Key(s, f.Bucket), true)
		switch {
		case enough(r):
			until, reply.Outcome = pauseDoubtful(f, strikes, now)
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
	reply.Until = until
	return reply, q.queue.PauseSource(ctx, queue.Pause{Source: Key(s, f.Bucket), Class: string(f.Class), Detail: f.Detail,
		Strikes: strikes + 1, BlockedUntil: store.InstantOf(until)})
}

// pauseAfter returns the end of the pause after a failure that concerns the source. strikes is the number of pauses in a row before it.
func (q *Quota) pauseAfter(f *source.Failure, strikes int) time.Time {
	now := q.now()
	if f.Class == source.RateLimited {
		if f.RetryAt.After(now) {
			return f.RetryAt
		}
		return now.Add(schedule.Jitter(schedule.PauseWaits.Nth(strikes + 1)))
	}
	// Even if the source says when its budget is available again, it is tried before then: operators may buy more.
	until := now.Add(schedule.ProbeWaits.Nth(strikes + 1))
	if f.Class == source.QuotaSpent && f.RetryAt.After(now) && f.RetryAt.Before(until) {
		return f.RetryAt
	}
	return until
}

// pauseDoubtful returns the end of the pause, and the outcome, after several targets were refused.
func pauseDoubtful(f *source.Failure, strikes int, now time.Time) (time.Time, Outcome) {
	if f.Class == source.AuthFailed {
		return now.Add(min(schedule.ProbeWaits.Nth(strikes+1), longestDoubtfulPause)), Unavailable
	}
	return now.Add(schedule.Jitter(schedule.PauseWaits.Nth(strikes + 1))), Failed
}

// enough returns true if refusals in a row concern the source.
func enough(r queue.Refusals) bool {
	if r.Class == string(source.AuthFailed) {
		return r.Targets > 1 && r.Calls >= authRefusals
	}
	return r.Targets > 1 && r.Calls >= otherRefusals
}

// subject returns the name under which refusals of a target are counted: its group if the source has groups, else the target.
func subject(s source.Source, t source.Target) string {
	if group := s.Group(t); group != "" && t.Kind == source.KindVideo {
		return fmt.Sprintf("%s/group/%s", t.Platform, group)
	}
	return fmt.Sprintf("%s/%s/%s", t.Platform, t.Kind, t.ExternalID)
}

// divisible returns true if a batch has more than one subject. Then one half of it may get a good answer.
func divisible(s source.Source, batch []source.Target) bool {
	first := subject(s, batch[0])
	return slices.ContainsFunc(batch[1:], func(t source.Target) bool { return subject(s, t) != first })
}
