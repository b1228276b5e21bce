// Package quota makes the calls of sources within their budgets. All collectors share the budgets and pauses, which are in the database.
//
// [Quota.Call] reserves the units of a call, makes it, returns the units that were not spent, and pauses the source if its answer
// requires that. Start reading there; failure.go decides what a failed call means, budget.go reserves units.
package quota

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Quota makes calls for one collector. All methods may be called concurrently.
type Quota struct {
	queue *queue.Queue
	now   func() time.Time
	log   *slog.Logger

	windows sync.Map // the last window of each budget, by its key
	warned  sync.Map // the window of each budget in which a call that is too large was last logged
	refused sync.Map // the keys of sources and budgets with refusals on record
}

// New returns a Quota.
func New(qu *queue.Queue, now func() time.Time, log *slog.Logger) *Quota {
	return &Quota{queue: qu, now: now, log: log}
}

// Outcome is what became of a call for some targets.
type Outcome int

const (
	// Answered means that the source answered for each target.
	Answered Outcome = iota
	// Unavailable means that the source was not asked, or that it is paused because of its answer. It may be asked again at Reply.Until.
	Unavailable
	// Failed means that the call failed and that a retry may succeed.
	Failed
	// Refused means that the source refused these targets and that another source may answer for them.
	Refused
	// Divided means that the source refused the batch as a whole: each half must be asked for separately.
	Divided
	// Stopped means that the collector is stopping.
	Stopped
)

// Reply is the outcome of a call for some of its targets.
type Reply struct {
	Outcome Outcome
	Targets []source.Target
	At      time.Time       // when the source was asked
	Results []source.Result // one for each target if Answered
	Failure *source.Failure // if Failed, Refused or Divided, or if Unavailable because of an answer
	Until   time.Time       // if Unavailable
}

// Call asks a source for a batch of one platform, kind and group. It returns one reply, or two if some targets of the batch got no
// answer. Targets that the source does not serve are Unsupported, without a call. The error is the database's; the targets then have no outcome.
func (q *Quota) Call(ctx context.Context, s source.Source, batch []source.Target) ([]Reply, error) {
	if _, served := s.Serves(batch[0]); !served {
		return []Reply{notServed(batch, q.now())}, nil
	}
	writing := context.WithoutCancel(ctx)
	state, err := q.state(writing, s)
	if err != nil {
		return nil, err
	}
	reply := Reply{Targets: batch, At: q.now()}
	taken, until, err := q.reserve(writing, s, state, batch)
	if err != nil {
		return nil, err
	}
	if !until.IsZero() {
		reply.Outcome, reply.Until = Unavailable, until
		return []Reply{reply}, nil
	}
	budget := source.NewCallBudget(taken.calls())
	results, err := s.Fetch(ctx, batch, budget)
	q.refund(writing, s, taken, budget.Spent())
	failure := (*source.Failure)(nil)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		reply.Outcome = Stopped
		return []Reply{reply}, nil //nolint:nilerr // the collector is stopping, which is not a failure
	case errors.As(err, &failure):
		reply, err = q.fail(writing, s, state, batch, failure)
		return []Reply{reply}, err
	case err != nil && ctx.Err() != nil: // the time of the fetch is over, which says nothing about the source
		reply.Outcome, reply.Failure = Failed, &source.Failure{Class: source.Temporary, Detail: "the fetch took too long", Cause: err}
		return []Reply{reply}, nil
	case err != nil:
		return nil, err
	}
	if err := q.answered(writing, s, state, taken, reply.At); err != nil {
		return nil, err
	}
	return q.divideAnswered(writing, s, state, reply, results)
}

func notServed(batch []source.Target, at time.Time) Reply {
	reply := Reply{Targets: batch, At: at}
	for _, t := range batch {
		reply.Results = append(reply.Results, source.Result{Target: t, Class: source.Unsupported, Detail: "no configured source can ask for it"})
	}
	return reply
}

// Probe asks a source for a single target. It pauses nothing and ends no pause: a source that was refused for its credential is asked all the
// same. The error is the database's.
func (q *Quota) Probe(ctx context.Context, s source.Source, t source.Target) (Reply, error) {
	writing, batch := context.WithoutCancel(ctx), []source.Target{t}
	state, err := q.state(writing, s)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Outcome: Failed, Targets: batch, At: q.now()}
	if p, known := state.pauses[""]; known && p.Class == string(source.AuthFailed) {
		delete(state.pauses, "")
	}
	if until := state.pausedUntil("", reply.At); !until.IsZero() {
		p := state.pauses[""]
		reply.Until, reply.Failure = until, &source.Failure{Class: source.Class(p.Class), Detail: p.Detail, RetryAt: until}
		return reply, nil
	}
	taken, until, err := q.reserve(writing, s, state, batch)
	if err != nil {
		return reply, err
	}
	if !until.IsZero() {
		reply.Until, reply.Failure = until, &source.Failure{Class: source.QuotaSpent, Detail: "our own count has reached the limit"}
		return reply, nil
	}
	budget := source.NewCallBudget(taken.calls())
	reply.Results, err = s.Fetch(ctx, batch, budget)
	q.refund(writing, s, taken, budget.Spent())
	if err == nil {
		reply.Outcome = Answered
	}
	reply.Failure, _ = errors.AsType[*source.Failure](err)
	return reply, nil
}

// divideAnswered returns a reply for the answered targets and, if later calls for the batch failed, one for the others.
func (q *Quota) divideAnswered(ctx context.Context, s source.Source, state state, reply Reply, results []source.Result) ([]Reply, error) {
	var unanswered []source.Target
	var failure *source.Failure
	batch := reply.Targets
	reply.Targets = nil
	for i, r := range results {
		if r.Failed != nil {
			unanswered, failure = append(unanswered, batch[i]), r.Failed
			continue
		}
		reply.Targets, reply.Results = append(reply.Targets, batch[i]), append(reply.Results, r)
	}
	if failure == nil {
		return []Reply{reply}, nil
	}
	rest, err := q.fail(ctx, s, state, unanswered, failure)
	return []Reply{reply, rest}, err
}

// Fail returns the reply for a batch whose handling failed outside of the call, for example by a panic.
func (q *Quota) Fail(ctx context.Context, s source.Source, batch []source.Target, f *source.Failure) (Reply, error) {
	state, err := q.state(ctx, s)
	if err != nil {
		return Reply{}, err
	}
	return q.fail(ctx, s, state, batch, f)
}

// state is what the database has on record about a source and its budgets, by bucket; "" stands for the source.
type state struct {
	pauses   map[string]queue.Pause // also those that are over: no good answer came since
	refusals []queue.Refusals
}

func (q *Quota) state(ctx context.Context, s source.Source) (state, error) {
	pauses, err := q.queue.Pauses(ctx)
	if err != nil {
		return state{}, err
	}
	refusals, err := q.queue.Refusals(ctx)
	if err != nil {
		return state{}, err
	}
	for _, r := range refusals {
		q.refused.Store(r.Source, true)
	}
	st := state{pauses: map[string]queue.Pause{}, refusals: refusals}
	for _, bucket := range buckets(s) {
		if p, known := pauses[Key(s, bucket)]; known {
			st.pauses[bucket] = p
		}
	}
	return st, nil
}

// pausedUntil returns the end of the pause of a source or one of its budgets, or the zero time if it is not paused.
func (st state) pausedUntil(bucket string, now time.Time) time.Time {
	if p, known := st.pauses[bucket]; known && p.BlockedUntil > store.InstantOf(now) {
		return p.BlockedUntil.Time()
	}
	return time.Time{}
}

// Key returns the name of a source's budget in the database; bucket "" is the source as a whole.
func Key(s source.Source, bucket string) string {
	if bucket == "" {
		return s.Name()
	}
	return s.Name() + "/" + bucket
}

// buckets returns "" for the source and the names of its budgets.
func buckets(s source.Source) []string {
	names := []string{""}
	for _, b := range s.Budgets() {
		names = append(names, b.Name)
	}
	return names
}

// answered records that a source and the budgets of a call work: it ends their pauses and resets their refusals. began is when the
// call was made; later pauses stay.
func (q *Quota) answered(ctx context.Context, s source.Source, st state, taken reservation, began time.Time) error {
	used := []string{""}
	for _, p := range taken {
		used = append(used, p.call.Bucket)
	}
	for _, bucket := range used {
		if _, known := q.refused.LoadAndDelete(Key(s, bucket)); known {
			if err := q.queue.ForgetRefusals(ctx, Key(s, bucket)); err != nil {
				return err
			}
		}
	}
	for bucket := range maps.Keys(st.pauses) {
		if !slices.Contains(used, bucket) {
			continue
		}
		resumed, err := q.queue.ResumeSource(ctx, Key(s, bucket), store.InstantOf(began))
		if err != nil {
			return err
		}
		if resumed {
			q.log.InfoContext(ctx, "source answers again", "source", s.Name(), "budget", bucket)
		}
	}
	return nil
}

// Restart forgets refusals and pauses that are due to credentials: a collector that starts may have new ones.
func (q *Quota) Restart(ctx context.Context, sources []source.Source) error {
	for _, s := range sources {
		st, err := q.state(ctx, s)
		if err != nil {
			return err
		}
		if err := q.queue.ForgetRefusals(ctx, s.Name()); err != nil {
			return err
		}
		if p := st.pauses[""]; p.Class == string(source.AuthFailed) {
			if _, err := q.queue.ResumeSource(ctx, s.Name(), p.BlockedUntil); err != nil {
				return err
			}
		}
	}
	return nil
}
