package collector

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// asking is the context of a call that an organisation waits for.
func asking(ctx context.Context, org uuid.UUID) context.Context {
	return askingFor(ctx, []store.Target{{Lane: store.LaneInteractive, Organisation: org}})
}

func TestSlots_keepTheLastForWhoHasNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, burst, other := NewSlots(3), store.NewID(), store.NewID()
		granted := map[uuid.UUID][]func(){}
		var mu sync.Mutex
		ask := func(ctx context.Context, org uuid.UUID) {
			go func() {
				if give, err := s.Take(asking(ctx, org)); err == nil {
					mu.Lock()
					defer mu.Unlock()
					granted[org] = append(granted[org], give)
				}
			}()
		}
		has := func(org uuid.UUID) int {
			synctest.Wait()
			return len(granted[org])
		}
		patience, lost := context.WithCancel(t.Context())
		for range 5 {
			ask(patience, burst)
		}
		require.Equal(t, 2, has(burst))
		ask(t.Context(), other)
		require.Equal(t, 1, has(other))
		ask(t.Context(), other)
		require.Equal(t, 1, has(other), "each of the three is taken")
		granted[burst][0]()
		require.Equal(t, 2, has(burst), "the last one is kept for others")
		granted[burst][1]()
		require.Equal(t, 3, has(burst), "who has fewest is served first")
		require.Equal(t, 1, has(other))
		lost()
		granted[other][0]()
		require.Equal(t, 2, has(other))
		granted[other][1]()
		granted[burst][2]()
		require.Equal(t, 3, has(burst), "nobody gets what it no longer waits for")
		require.Equal(t, 3, s.free)
		require.Empty(t, s.held)
		require.Empty(t, s.waiting)
	})
}

func TestSlots_giveASingleOneByTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, org := NewSlots(1), store.NewID()
		give, err := s.Take(asking(t.Context(), org))
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			again, err := s.Take(asking(t.Context(), org))
			if err == nil {
				again()
			}
		}()
		synctest.Wait()
		give()
		<-done
		require.Equal(t, 1, s.free)
	})
}

func TestStrands_keepOrganisationsApart(t *testing.T) {
	t.Parallel()
	a, b := store.NewID(), store.NewID()
	target := func(id string, org uuid.UUID, lane store.Lane) store.Target {
		return store.Target{ExternalID: id, Organisation: org, Lane: lane}
	}
	targets := []store.Target{target("1", a, store.LaneInteractive), target("2", b, store.LaneBasic), target("3", a, store.LaneInteractive),
		target("4", b, store.LaneInteractive), target("5", a, store.LanePremium)}
	ids := func(strands [][]store.Target) (out [][]string) {
		for _, strand := range strands {
			var of []string
			for _, t := range strand {
				of = append(of, t.ExternalID)
			}
			out = append(out, of)
		}
		return out
	}
	c := &Collector{now: store.InstantOf(someDay).Time}
	require.Equal(t, [][]string{{"4"}, {"1", "3"}, {"5", "2"}}, ids(c.strands(ways{{source: takes(1)}}, targets)))
	require.Equal(t, [][]string{{"4", "1", "3", "5", "2"}}, ids(c.strands(ways{{source: takes(50)}, {source: takes(1)}}, targets)),
		"they share a call, in which nobody waits for another's")
}

// takes is a source that takes so many targets a call.
type takes int

func (takes) Name() string                { return "takes" }
func (n takes) Serves(Target) (int, bool) { return int(n), true }
func (takes) Budgets() []Budget           { return nil }
func (takes) Plan([]Target) [][]Call      { return [][]Call{nil} }
func (takes) Fetch(context.Context, []Target, []Call) ([]Result, error) {
	return nil, &Failure{Class: Temporary, Detail: "never asked"}
}
