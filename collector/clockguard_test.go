package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockGuard_repairsAgainIfTheClockWentBackDuringARepair(t *testing.T) {
	t.Parallel()
	var g clockGuard
	start := someDay
	require.Nil(t, g.repairDue(start), "no repair must be due at the start")
	begin := start.Add(clockSteadyFor)
	repair := g.repairDue(begin)
	require.Equal(t, &clockRepair{at: begin, longest: longestPause}, repair)
	back := begin.Add(-time.Hour) // the clock goes back while the repair runs
	g.note(back)
	g.repaired(repair, begin)
	require.Nil(t, g.repairDue(back.Add(clockSteadyFor-time.Second)))
	again := g.repairDue(back.Add(clockSteadyFor))
	require.NotNil(t, again, "the times must be repaired again")
	require.Equal(t, longestUsualPause, again.longest)
	g.repaired(again, back.Add(clockSteadyFor))
	require.Nil(t, g.repairDue(back.Add(clockSteadyFor+repairEvery-time.Second)))
	require.NotNil(t, g.repairDue(back.Add(clockSteadyFor+repairEvery)))
}
