package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// A call can fail because of its target, although its source works. So a failed call pauses its
// source in two cases only:
//   - The source is the cause (source.Failure.ConcernsSource).
//   - Calls for several targets failed with the same class, and no call succeeded between them.

const (
	// authRefusals is the number of consecutive calls with the class AuthFailed after which a source is paused. The calls must be for at
	// least two different targets.
	authRefusals = 2
	// otherRefusals is the number of consecutive refused calls after which a source is paused. All
	// calls must have the same class, other than AuthFailed, and must be for at least two different targets.
	otherRefusals = 3
	// longestRefusalPause is the longest pause of a source after several targets were refused with the class AuthFailed. The cause may be the
	// targets and not the credential.
	longestRefusalPause = 5 * time.Minute
)

// handleFailure pauses the source or one of its budgets if a failed call requires this. The reply has
// a result for each target, or Reply.MustDivide is true.
func (q *Quota) handleFailure(ctx context.Context, s source.Source, st state, batch []queue.Target, f *source.Failure) (Reply, error) {
	key, now := BudgetKey(s, f.Budget), q.now()
	reply := Reply{Targets: batch, At: now}
	r := source.Result{Class: source.Temporary, Detail: f.Detail, Failed: f}
	earlierPauses := st.pauses[key].PausesSinceSuccess
	var until time.Time // the end of the pause; the zero time means no pause
	paused := false     // true if the targets must wait for the end of the pause
	switch {
	case errors.Is(f, source.ErrNoUnits): // a request was not sent, because the call budget was used up
		return reply.withResult(r), nil
	case f.ConcernsSource():
		until, paused = endTimeOfPause(f, earlierPauses, now), f.Class != source.BadRequest && f.Class != source.Temporary
	case errors.Is(f, fetch.ErrTooLarge) && len(batch) > 1: // a smaller batch has a smaller answer
		reply.MustDivide = true
		return reply, nil
	case !errors.Is(f, source.ErrNoAnswer) && hasSeveralSubjects(s, batch):
		// One target of the batch may have caused the failure, so the batch is divided. The batch is not divided if
		// earlier refusals show that the source has caused the failure.
		if !slices.ContainsFunc(st.refusals, func(r queue.Refusals) bool {
			return r.Source == key && r.Class == string(f.Class) && refusalsConcernSource(r)
		}) {
			reply.MustDivide = true
			return reply, nil
		}
		until, paused = endTimeOfRefusalPause(f, earlierPauses, now)
	default:
		refusals, err := q.queue.RecordRefusal(ctx, key, string(f.Class), refusalSubject(s, batch[0]))
		if err != nil {
			return reply.withResult(r), err
		}
		q.refused.Store(key, true)
		if refusalsConcernSource(refusals) {
			until, paused = endTimeOfRefusalPause(f, earlierPauses, now)
		} else {
			r.Class = f.Class
		}
	}
	attrs := []any{"source", s.Name(), "budget", f.Budget, "class", f.Class, "detail", f.Detail, "targets", len(batch), "id", batch[0].ExternalID}
	if until.IsZero() {
		q.log.WarnContext(ctx, "call failed, source not paused", attrs...)
		return reply.withResult(r), nil
	}
	attrs = append(attrs, "until", until.UTC())
	if !f.RetryAt.IsZero() {
		attrs = append(attrs, "source_says", f.RetryAt.UTC())
	}
	q.log.WarnContext(ctx, "source paused", attrs...)
	if paused {
		r = pausedResult(s, source.Failure{Class: f.Class, Detail: f.Detail, RetryAt: until})
	}
	return reply.withResult(r), q.queue.PauseSource(ctx, queue.Pause{Source: key, Class: string(f.Class), Detail: f.Detail,
		PausesSinceSuccess: earlierPauses + 1, BlockedUntil: store.InstantOf(until)})
}

// endTimeOfPause returns when the source's pause ends, after a failure that concerns the source and not a target. earlierPauses is the number of
// pauses since the last successful call.
func endTimeOfPause(f *source.Failure, earlierPauses int, now time.Time) time.Time {
	if f.Class == source.RateLimited {
		if f.RetryAt.After(now) {
			return f.RetryAt
		}
		return now.Add(schedule.Jitter(schedule.PauseWaits.Nth(earlierPauses + 1)))
	}
	// A source may say when its quota is available again. If this time is far away, the source is tried again earlier, because operators
	// can buy more units.
	until := now.Add(schedule.ProbeWaits.Nth(earlierPauses + 1))
	if f.Class == source.QuotaSpent && f.RetryAt.After(now) && f.RetryAt.Before(until) {
		return f.RetryAt
	}
	return until
}

// endTimeOfRefusalPause returns the end of the pause of a source that has refused several targets. If mustWait
// is true, the targets of the refused call must wait until the pause ends.
func endTimeOfRefusalPause(f *source.Failure, earlierPauses int, now time.Time) (pauseEnd time.Time, mustWait bool) {
	if f.Class == source.AuthFailed {
		return now.Add(min(schedule.ProbeWaits.Nth(earlierPauses+1), longestRefusalPause)), true
	}
	return now.Add(schedule.Jitter(schedule.PauseWaits.Nth(earlierPauses + 1))), false
}

// refusalsConcernSource returns true if so many consecutive calls for different targets were refused that the source must be the cause.
func refusalsConcernSource(r queue.Refusals) bool {
	if r.Class == string(source.AuthFailed) {
		return r.Targets > 1 && r.Calls >= authRefusals
	}
	return r.Targets > 1 && r.Calls >= otherRefusals
}

// refusalSubject returns the name under which refusals of a target are counted. Videos of one group
// (Source.Group) share a name, because the group may be the cause.
func refusalSubject(s source.Source, t queue.Target) string {
	if group := s.Group(t); group != "" && t.Kind == queue.KindVideo {
		return fmt.Sprintf("%s/group/%s", t.Platform, group)
	}
	return fmt.Sprintf("%s/%s/%s", t.Platform, t.Kind, t.ExternalID)
}

// hasSeveralSubjects returns true if refusalSubject returns different names for the targets of a
// batch.
func hasSeveralSubjects(s source.Source, batch []queue.Target) bool {
	first := refusalSubject(s, batch[0])
	return slices.ContainsFunc(batch[1:], func(t queue.Target) bool { return refusalSubject(s, t) != first })
}
