package fetch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
)

func TestCache_forgetsExpiredAndLeastRecentlyUsedValues(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	c := fetch.NewCache[string](2, time.Hour, func() time.Time { return now })
	get := func(id string) string {
		value, ok := c.Get(id)
		require.Equal(t, ok, value != "")
		return value
	}
	c.Put("a", "A")
	c.Put("b", "B")
	require.Equal(t, "A", get("a"))
	c.Put("c", "C")
	require.Empty(t, get("b"), "the least recently used value must be removed")
	require.Equal(t, "A", get("a"))
	require.Equal(t, "C", get("c"))
	c.Put("c", "C2")
	require.Equal(t, "C2", get("c"))
	require.Equal(t, "A", get("a"), "putting the same id again must not remove another value")

	now = now.Add(30 * time.Minute)
	c.Put("a", "A2")
	now = now.Add(30 * time.Minute)
	require.Empty(t, get("c"))
	require.Equal(t, "A2", get("a"), "putting an id again must prolong its time")
}
