package collector

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestStrands_keepOrganisationsApart(t *testing.T) {
	t.Parallel()
	a, b := store.NewID(), store.NewID()
	target := func(id string, org uuid.UUID, lane queue.Lane) queue.Target {
		return queue.Target{ExternalID: id, Organisation: org, Lane: lane}
	}
	targets := []queue.Target{target("1", a, queue.LaneInteractive), target("2", b, queue.LaneBasic), target("3", a, queue.LaneInteractive),
		target("4", b, queue.LaneInteractive), target("5", a, queue.LanePremium)}
	ids := func(strands [][]errand) (out [][]string) {
		for _, strand := range strands {
			var of []string
			for _, e := range strand {
				of = append(of, e.target.ExternalID)
			}
			out = append(out, of)
		}
		return out
	}
	c := &Collector{now: store.InstantOf(someDay).Time}
	require.Equal(t, [][]string{{"4"}, {"1", "3"}, {"5", "2"}}, ids(c.strands(ways{{source: takes(1)}}, errands(targets))))
	both := ways{{source: takes(50)}, {source: takes(1)}}
	shared := c.strands(both, errands(targets))
	require.Equal(t, [][]string{{"4", "1", "3", "5", "2"}}, ids(shared), "they share a call, in which nobody waits for another's")
	slices.Reverse(shared[0])
	require.Equal(t, [][]string{{"4"}, {"3", "1"}, {"5", "2"}}, ids(c.strands(both[1:], shared[0])), "and part before the next one, whose answer came first")
}

// What one source does not show is no confirmation while another, which may know it, is paused.
func TestAwaitPaused_countsNoRefusal(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	c := &Collector{store: db.Store, writer: db.Writer, now: db.Clock.Now, sources: []Source{takes(1)}}
	until := store.InstantOf(db.Clock.Now().Add(time.Hour))
	require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "takes", Class: string(RateLimited), Strikes: 1, BlockedUntil: until}))
	target := queue.Target{ExternalID: "1", RefusedAs: gone, Refusals: 1}
	refused := map[string]ingest.Outcome{"1": outcome(target, Result{Class: Missing}, "first", 0, db.Clock.Now())}
	require.Equal(t, 2, refused["1"].Refusals)
	require.NoError(t, c.awaitPaused(t.Context(), refused))
	require.Equal(t, 1, refused["1"].Refusals)
	require.Equal(t, until, refused["1"].NextAt)
}

// takes is a source that takes so many targets a call.
type takes int

func (takes) Name() string                { return "takes" }
func (n takes) Serves(Target) (int, bool) { return int(n), true }
func (takes) Patience() time.Duration     { return time.Second }
func (takes) Budgets() []Budget           { return nil }
func (takes) Plan([]Target) [][]Call      { return [][]Call{nil} }
func (takes) Fetch(context.Context, []Target, []Call) ([]Result, error) {
	return nil, &Failure{Class: Temporary, Detail: "never asked"}
}
