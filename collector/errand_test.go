package collector

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

func TestStrands_keepOrganisationsApart(t *testing.T) {
	t.Parallel()
	a, b := store.NewID(), store.NewID()
	target := func(id string, org uuid.UUID, lane store.Lane) store.Target {
		return store.Target{ExternalID: id, Organisation: org, Lane: lane}
	}
	targets := []store.Target{target("1", a, store.LaneInteractive), target("2", b, store.LaneBasic), target("3", a, store.LaneInteractive),
		target("4", b, store.LaneInteractive), target("5", a, store.LanePremium)}
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
