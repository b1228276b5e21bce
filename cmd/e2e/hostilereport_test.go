package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHostilePage_showsOldCostsOfEachCase(t *testing.T) {
	t.Parallel()
	cases := hostileCases()
	require.GreaterOrEqual(t, len(cases), 40)
	names := map[string]bool{}
	var rows []hostileRow
	for _, c := range cases {
		require.False(t, names[c.name], c.name)
		names[c.name] = true
		rows = append(rows, hostileRow{c, cost{server: 1234 * time.Millisecond, memory: 3 << 20}, "400 type"})
	}
	for name := range parseCosts(hostileBefore) {
		require.True(t, names[name], "testdata/hostile-before.md has the case %q, which hostileCases does not have", name)
	}
	honest := honestResult{alone: []timing{{duration: time.Millisecond}}, during: []timing{{duration: 2 * time.Millisecond}}, ratio: 2}
	page := hostilePage(t, rows, honest, hostileSize{videos: 5000, days: 730, runs: 2, windows: 3, window: 20 * time.Second})
	require.Contains(t, page, "| 3 | 650,000 empty objects as links, 2 MB | 1,234 | 0 | 3.0 | 0 | 400 type | 12,750 + 10 ms, 518.0 MiB |\n")
	require.Contains(t, page, "**2.00 times**")
}
