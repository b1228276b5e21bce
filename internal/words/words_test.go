package words_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/internal/words"
)

func TestOr_joinsValuesWithCommasAndTheWordOr(t *testing.T) {
	t.Parallel()
	require.Empty(t, words.Or([]int{}))
	require.Equal(t, "7", words.Or([]int{7}))
	require.Equal(t, "ok or failing", words.Or([]string{"ok", "failing"}))
	require.Equal(t, "7, 30 or 90", words.Or([]int32{7, 30, 90}))
}
