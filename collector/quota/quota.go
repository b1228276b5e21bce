// Package quota makes calls to sources and keeps them within the budgets of the sources. Budgets and pauses are stored in the database, so
// that all collectors share them.
//
// [Quota.Call] reserves the units of a call, makes the call, returns the units that were not spent, and pauses the source if its answer
// requires a pause. Start reading there. failure.go decides what a failed call means, budget.go reserves units, and probe.go checks whether a
// source accepts its credential.
package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Quota calls the sources on behalf of a collector and observes the budgets of the sources. All methods may be called concurrently.
type Quota struct {
	queue *queue.Queue
	now   func() time.Time
	log   *slog.Logger

	windows sync.Map // maps the key of a budget to the id of the window in which it was last used
	warned  sync.Map // maps the key of a budget to the id of the last window for which a warning was logged
	refused sync.Map // keys of the sources and budgets for which a refusal is recorded
}

// New returns a Quota that stores budgets and pauses through the queue.
func New(qu *queue.Queue, clock func() time.Time, log *slog.Logger) *Quota {
	return &Quota{queue: qu, now: clock, log: log}
}

// Paused is the class of a result in two cases: the source was already paused, or the call for the
// target failed and caused a pause.
const Paused source.Class = "paused"

// Reply says how a call ended for some or all of its targets.
type Reply struct {
	Targets    []queue.Target
	At         time.Time // the time of the call, or of its failure
	MustDivide bool      // true if the call for the whole batch failed, so that each half of the batch must be requested separately
	Stopped    bool      // true if the targets got no answer because the collector is stopping
	// Results has one result for each target, unless MustDivide or Stopped is true. If a target got no answer,
	// Result.Failed says why. The class of its result is Paused, Temporary, or the class of the refusal.
	Results []source.Result
}

// withResult returns a copy of the reply in which all targets have the same result.
func (reply Reply) withResult(r source.Result) Reply {
	for _, t := range reply.Targets {
		r.Target = t
		reply.Results = append(reply.Results, r)
	}
	return reply
}

// pausedResult returns the result for a target whose source is paused. The pause was caused by the failure f, and ends at f.RetryAt.
func pausedResult(s source.Source, f source.Failure) source.Result {
	return source.Result{Class: Paused, Detail: fmt.Sprintf("%s is paused until %s", s.Name(), f.RetryAt.UTC().Format(time.RFC3339)), Failed: &f}
}

// Call asks a source for a batch of targets with the same platform, kind and group. It returns one Reply or, if
// the source answered for only some targets, a second Reply with the other targets. If the database fails after the call, it can return replies and
// an error.
func (q *Quota) Call(ctx context.Context, s source.Source, batch []queue.Target) ([]Reply, error) {
	writing := context.WithoutCancel(ctx)
	reply := Reply{Targets: batch, At: q.now()}
	if _, served := s.Serves(batch[0]); !served {
		return []Reply{reply.withResult(source.Result{Class: source.Unsupported, Detail: "no configured source serves this target"})}, nil
	}
	st, err := q.readState(writing)
	if err != nil {
		return nil, err
	}
	taken, pause, err := q.reserveUnits(writing, s, st, batch)
	if err != nil {
		return nil, err
	}
	if pause != nil {
		return []Reply{reply.withResult(pausedResult(s, *pause))}, nil //nolint:nilerr // err is nil: reserveUnits has returned a pause
	}
	results, err := q.fetchWithinUnits(ctx, s, batch, taken)
	failure := (*source.Failure)(nil)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		reply.Stopped = true
		return []Reply{reply}, nil
	case errors.As(err, &failure):
		reply, err = q.handleFailure(writing, s, st, batch, failure)
		return []Reply{reply}, err
	case err != nil && ctx.Err() != nil: // the fetch reached its deadline, so nothing is known about the source
		failure = &source.Failure{Class: source.Temporary, Detail: "the fetch took too long", Cause: err}
		return []Reply{reply.withResult(source.Result{Class: failure.Class, Detail: failure.Detail, Failed: failure})}, nil //nolint:nilerr // the reply has the error
	case err != nil:
		return nil, err
	}
	q.log.DebugContext(ctx, "fetched", "source", s.Name(), "targets", len(batch), "elapsed", q.now().Sub(reply.At))
	recorded := q.recordAnswer(writing, s, &st, taken, reply.At)
	replies, err := q.splitReply(writing, s, st, reply, results, errors.Is(ctx.Err(), context.Canceled))
	return replies, errors.Join(recorded, err) // if recordAnswer failed, the results are still stored
}

// fetchWithinUnits asks the source for a batch. The source may spend the reserved units. Afterwards, fetchWithinUnits gives the unspent units
// back to their budgets.
func (q *Quota) fetchWithinUnits(ctx context.Context, s source.Source, batch []queue.Target, taken reservation) ([]source.Result, error) {
	budget := source.NewCallBudget(taken.reservedCalls())
	defer func() {
		if err := q.returnUnits(context.WithoutCancel(ctx), taken, budget.Spent()); err != nil {
			q.log.ErrorContext(ctx, "cannot return unused units to a budget", "source", s.Name(), "error", err)
		}
	}()
	return s.Fetch(ctx, batch, budget)
}

// splitReply returns a Reply for the targets that the source answered, and a second Reply for the targets that got no answer, if there are any. If
// the collector is stopping, the fetch can have been cut short. The result Temporary then also means no answer, and the second Reply has
// Stopped set, so that its targets do not count as failed.
func (q *Quota) splitReply(ctx context.Context, s source.Source, st state, reply Reply, results []source.Result, stopping bool) (replies []Reply, err error) {
	var unanswered []queue.Target
	var failure *source.Failure
	batch := reply.Targets
	reply.Targets = nil
	for i, r := range results {
		if r.Failed != nil || stopping && r.Class == source.Temporary {
			unanswered, failure = append(unanswered, batch[i]), r.Failed
			continue
		}
		reply.Targets, reply.Results = append(reply.Targets, batch[i]), append(reply.Results, r)
	}
	if len(reply.Targets) > 0 {
		replies = append(replies, reply)
	}
	if len(unanswered) == 0 {
		return replies, nil
	}
	rest := Reply{Targets: unanswered, At: reply.At, Stopped: true}
	if !stopping {
		rest, err = q.handleFailure(ctx, s, st, unanswered, failure)
	}
	return append(replies, rest), err
}

// Fail handles a failure outside of the call to the source, such as a panic while the answer is
// stored. Fail can pause the source or divide the batch.
func (q *Quota) Fail(ctx context.Context, s source.Source, batch []queue.Target, f *source.Failure) ([]Reply, error) {
	st, err := q.readState(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := q.handleFailure(ctx, s, st, batch, f)
	return []Reply{reply}, err
}

// state contains the recorded pauses and refusals of all sources and budgets.
type state struct {
	pauses   map[string]queue.Pause // the key is that of a source or budget, see BudgetKey; a pause that has ended is kept until the next successful answer of the source
	refusals []queue.Refusals
}

// readState reads the recorded pauses and refusals from the database.
func (q *Quota) readState(ctx context.Context) (st state, err error) {
	if st.pauses, err = q.queue.Pauses(ctx); err != nil {
		return st, err
	}
	st.refusals, err = q.queue.Refusals(ctx)
	for _, r := range st.refusals {
		q.refused.Store(r.Source, true)
	}
	return st, err
}

// currentPause returns the current pause of the source or budget with the given key. It returns nil if there is no pause.
func (st state) currentPause(key string, now time.Time) *source.Failure {
	if p := st.pauses[key]; p.BlockedUntil > store.InstantOf(now) {
		return &source.Failure{Class: source.Class(p.Class), Detail: p.Detail, RetryAt: p.BlockedUntil.Time()}
	}
	return nil
}

// BudgetKey returns the key of a budget in the database. For an empty name, it returns the key of
// the whole source.
func BudgetKey(s source.Source, budgetName string) string {
	if budgetName == "" {
		return s.Name()
	}
	return s.Name() + "/" + budgetName
}

// recordAnswer deletes the recorded refusals of a source that has answered, and of the budgets that
// the call used. It also deletes those pauses of the source and the budgets that have ended. It deletes refusals and pauses in the database and in st.
func (q *Quota) recordAnswer(ctx context.Context, s source.Source, st *state, taken reservation, callStart time.Time) error {
	for _, call := range append(taken.reservedCalls(), source.Call{}) {
		key := BudgetKey(s, call.Budget)
		if _, known := q.refused.LoadAndDelete(key); known {
			if err := q.queue.DeleteRefusals(ctx, key); err != nil {
				return err
			}
			st.refusals = slices.DeleteFunc(st.refusals, func(r queue.Refusals) bool { return r.Source == key })
		}
		if _, known := st.pauses[key]; !known {
			continue
		}
		resumed, err := q.queue.ResumeSource(ctx, key, store.InstantOf(callStart))
		if err != nil {
			return err
		}
		if resumed {
			delete(st.pauses, key)
			q.log.InfoContext(ctx, "source answers again", "source", s.Name(), "budget", call.Budget)
		}
	}
	return nil
}

// ResetRefusals deletes the recorded refusals of the sources. It also ends each pause that a refused
// credential caused. Collectors call ResetRefusals when they start.
func (q *Quota) ResetRefusals(ctx context.Context, sources []source.Source) error {
	st, err := q.readState(ctx)
	if err != nil {
		return err
	}
	for _, s := range sources {
		if err := q.queue.DeleteRefusals(ctx, s.Name()); err != nil {
			return err
		}
		// The operator may have configured a new credential since the refusal.
		if p := st.pauses[s.Name()]; p.Class == string(source.AuthFailed) {
			if _, err := q.queue.ResumeSource(ctx, s.Name(), p.BlockedUntil); err != nil {
				return err
			}
		}
	}
	return nil
}
