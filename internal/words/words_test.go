package words_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/internal/words"
)

func TestJoinWithOr_returnsListForSentence(t *testing.T) {
	t.Parallel()
	require.Empty(t, words.JoinWithOr([]int{}))
	require.Equal(t, "7", words.JoinWithOr([]int{7}))
	require.Equal(t, "ok or failing", words.JoinWithOr([]string{"ok", "failing"}))
	require.Equal(t, "7, 30 or 90", words.JoinWithOr([]int32{7, 30, 90}))
}

func TestJoinWithAnd_returnsListForSentence(t *testing.T) {
	t.Parallel()
	require.Equal(t, "views", words.JoinWithAnd([]string{"views"}))
	require.Equal(t, "views, likes and comments", words.JoinWithAnd([]string{"views", "likes", "comments"}))
}

func TestDuration_returnsShortText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"192h": "8d", "-24h": "-1d", "36h": "36h", "90m": "1h30m", "10m": "10m", "1h0m5s": "1h0m5s", "100s": "1m40s", "0": "0s"} {
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		require.Equal(t, want, words.Duration(d))
	}
}

func TestTruncate_returnsAtMostTheGivenNumberOfCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "äöü": "äöü", "äöüß": "äöüß", "äöüßé": "äöü…", "aaaaaaaaa": "aaa…"} {
		require.Equal(t, want, words.Truncate(text, 4))
	}
}

func TestQuote_escapesAndCutsText(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"a \"b\"\n"`, words.Quote("a \"b\"\n"))
	require.Equal(t, `"`+strings.Repeat("é", 99)+`…"`, words.Quote(strings.Repeat("é", 101)))
}
