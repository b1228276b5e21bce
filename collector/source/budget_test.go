package source_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
)

// spendAll calls Spend until it returns false, but at most n times. It returns how often Spend returned true.
func spendAll(b *source.CallBudget, n int) (paid int) {
	for paid < n && b.Spend() {
		paid++
	}
	return paid
}

func TestCallBudget_spendAllCountsAllReservedUnitsAsSpent(t *testing.T) {
	t.Parallel()
	b := source.NewCallBudget([]source.Call{{Budget: "units", Units: 3}})
	b.SpendAll()
	require.Equal(t, []source.Call{{Budget: "units", Units: 3}}, b.Spent())
	require.Equal(t, 10, spendAll(b, 10))
	require.False(t, b.Exhausted())
	require.Equal(t, []source.Call{{Budget: "units", Units: 3}}, b.Spent())
}

func TestCallBudget_refusesRequestsBeyondTheReservedUnits(t *testing.T) {
	t.Parallel()
	b := source.NewCallBudget([]source.Call{{Budget: "units", Units: 5}, {Budget: "calls", Units: 3}})
	require.Equal(t, 2, spendAll(b, 2))
	require.False(t, b.Exhausted())
	require.Equal(t, []source.Call{{Budget: "units", Units: 2}, {Budget: "calls", Units: 2}}, b.Spent())
	require.Equal(t, 1, spendAll(b, 10), "the number of requests must be limited by the budget that has the fewest reserved units")
	require.True(t, b.Exhausted())
}

func TestCallBudget_endsCallEarlyOnlyIfALaterCallCanGetMoreUnits(t *testing.T) {
	t.Parallel()
	budgets := []source.Budget{{Name: "units", Limit: 20}, {Name: "calls", Limit: 4}, {Name: "other", Limit: 3}}
	for units, want := range map[int64]bool{3: true, 4: false} {
		b := source.NewCallBudget([]source.Call{{Budget: "units", Units: 20}, {Budget: "calls", Units: units}})
		require.False(t, b.EndedEarly(budgets), "the call can spend further units")
		require.Equal(t, int(units), spendAll(b, 10))
		require.Equal(t, want, b.EndedEarly(budgets), "reserved units: %d", units)
	}
}

func TestCallBudget_allowMoreRequestsAllowsRequestsBeyondTheReservedUnits(t *testing.T) {
	t.Parallel()
	b := source.NewCallBudget([]source.Call{{Budget: "calls", Units: 3}})
	b.AllowMoreRequests()
	require.Equal(t, 10, spendAll(b, 10))
	require.False(t, b.Exhausted())
	require.Equal(t, []source.Call{{Budget: "calls", Units: 3}}, b.Spent(), "the spent units must not exceed the reserved units")
}

func TestCallBudget_nilBudgetAllowsAnyRequest(t *testing.T) {
	t.Parallel()
	var b *source.CallBudget
	require.False(t, b.EndedEarly(nil))
	require.True(t, b.Spend())
	require.False(t, b.Exhausted())
}
