// Package quota limits the calls to sources by their budgets. All collectors share the budgets and pauses, which are stored in the
// database.
//
// [Quota.Call] reserves the units of a call, makes the call, returns the units that were not spent, and pauses the source if its answer
// requires a pause. Start reading there. failure.go decides what a failed call means, and budget.go reserves units.
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

	windows sync.Map // the id of the last window of each budget, by budget key
	warned  sync.Map // by budget key: the last window with a warning in the log
	refused sync.Map // the keys of sources and budgets that have recorded refusals
}

// New returns a Quota. now is its clock.
func New(qu *queue.Queue, now func() time.Time, log *slog.Logger) *Quota {
	return &Quota{queue: qu, now: now, log: log}
}

// Outcome says how a call for some targets ended.
type Outcome int

const (
	// Answered means that the source answered for each target of the call.
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
	At      time.Time       // the time of the call
	Results []source.Result // set if Answered: one result for each target
	Failure *source.Failure // set if Failed, Refused or Divided, or if the answer to the call made the source Unavailable
	Until   time.Time       // set if Unavailable: when the source may be asked again
	Pause   source.Class    // set if Unavailable: why the source is not asked
}

// Call asks a source for a batch of one platform, kind and group. It returns one reply, or two replies if some targets of the batch got no
// answer. Targets that the source does not serve get the class Unsupported, without a call. Call returns an error if a database query
// failed; no reply is then valid.
func (q *Quota) Call(ctx context.Context, s source.Source, batch []source.Target) ([]Reply, error) {
	if _, served := s.Serves(batch[0]); !served {
		return []Reply{unsupportedReply(batch, q.now())}, nil
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
		reply.Outcome, reply.Until, reply.Pause = Unavailable, until, state.pauseClass(until)
		return []Reply{reply}, nil
	}
	results, err := q.fetch(ctx, s, batch, taken)
	failure := (*source.Failure)(nil)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		reply.Outcome = Stopped
		return []Reply{reply}, nil
	case errors.As(err, &failure):
		reply, err = q.fail(writing, s, state, batch, failure)
		return []Reply{reply}, err
	case err != nil && ctx.Err() != nil: // the deadline of the fetch has passed, which says nothing about the source
		reply.Outcome, reply.Failure = Failed, &source.Failure{Class: source.Temporary, Detail: "the fetch took too long", Cause: err}
		return []Reply{reply}, nil //nolint:nilerr // the reply has the error
	case err != nil:
		return nil, err
	}
	if err := q.recordAnswer(writing, s, state, taken, reply.At); err != nil {
		return nil, err
	}
	return q.divideReply(writing, s, state, reply, results)
}

// fetch asks the source for a batch within the reserved units, and returns the units that were not spent to their budgets.
func (q *Quota) fetch(ctx context.Context, s source.Source, batch []source.Target, taken reservation) ([]source.Result, error) {
	budget := source.NewCallBudget(taken.calls())
	defer func() { q.refund(context.WithoutCancel(ctx), s, taken, budget.Spent()) }()
	return s.Fetch(ctx, batch, budget)
}

// unsupportedReply returns the reply for targets that no configured source serves.
func unsupportedReply(batch []source.Target, at time.Time) Reply {
	reply := Reply{Targets: batch, At: at}
	for _, t := range batch {
		reply.Results = append(reply.Results, source.Result{Target: t, Class: source.Unsupported, Detail: "no configured source can ask for it"})
	}
	return reply
}

// Probe asks a source for a single target. It neither pauses the source nor ends a pause. It asks the source even if the source is paused
// because its credential was refused. Probe returns an error only if a database query failed.
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
		reply.Until, reply.Failure = until, &source.Failure{Class: source.QuotaSpent, Detail: "all units of the budget are spent, by the count of the collectors"}
		return reply, nil
	}
	reply.Results, err = q.fetch(ctx, s, batch, taken)
	if err == nil {
		reply.Outcome = Answered
	}
	reply.Failure, _ = errors.AsType[*source.Failure](err)
	return reply, nil
}

// divideReply returns a reply for the answered targets. If later calls for the batch failed, it returns a second reply for the other
// targets.
func (q *Quota) divideReply(ctx context.Context, s source.Source, state state, reply Reply, results []source.Result) ([]Reply, error) {
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

// state contains the recorded pauses and refusals of a source and its budgets. The budget name "" means the source itself.
type state struct {
	pauses   map[string]queue.Pause // by budget name; also pauses that have ended, until the source answers successfully
	refusals []queue.Refusals
}

// state reads the recorded pauses and refusals of a source from the database.
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
	for _, bucket := range bucketNames(s) {
		if p, known := pauses[Key(s, bucket)]; known {
			st.pauses[bucket] = p
		}
	}
	return st, nil
}

// pausedUntil returns the end of the pause of the budget named bucket, or of the source if bucket is "". It returns the zero time if there
// is no pause.
func (st state) pausedUntil(bucket string, now time.Time) time.Time {
	if p, known := st.pauses[bucket]; known && p.BlockedUntil > store.InstantOf(now) {
		return p.BlockedUntil.Time()
	}
	return time.Time{}
}

// pauseClass returns the class of the pause that ends at until. If no such pause is recorded, it returns QuotaSpent, because the call then waits
// for units of a budget.
func (st state) pauseClass(until time.Time) source.Class {
	for _, p := range st.pauses {
		if p.BlockedUntil.Time().Equal(until) {
			return source.Class(p.Class)
		}
	}
	return source.QuotaSpent
}

// Key returns the key of a source's budget in the database. The bucket "" means the source itself.
func Key(s source.Source, bucket string) string {
	if bucket == "" {
		return s.Name()
	}
	return s.Name() + "/" + bucket
}

// bucketNames returns "" for the source itself, followed by the names of its budgets.
func bucketNames(s source.Source) []string {
	names := []string{""}
	for _, b := range s.Budgets() {
		names = append(names, b.Name)
	}
	return names
}

// recordAnswer records a successful answer of a source. It ends the pauses of the source and of the budgets in taken, and resets their
// refusals. began is the time of the call; pauses that began later are not ended.
func (q *Quota) recordAnswer(ctx context.Context, s source.Source, st state, taken reservation, began time.Time) error {
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

// Restart deletes the recorded refusals and pauses that are caused by credentials, because the operator may have configured new credentials
// before the start.
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
