package transfer

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Requirements in docs/coverage.md: 11.12-06
func TestColumns_refusesTheOldViewCountOfInstagramUnlessItIsMapped(t *testing.T) {
	t.Parallel()
	_, err := Columns{}.fieldOf("video_view_count")
	require.ErrorContains(t, err, `column "video_view_count" is not known`)
	f, err := Columns{}.fieldOf("video_play_count")
	require.NoError(t, err)
	require.Equal(t, fieldViews, f)
	f, err = Columns{Map: map[string]string{"video_view_count": "views"}}.fieldOf("video_view_count")
	require.NoError(t, err)
	require.Equal(t, fieldViews, f)
}

// docs/operating.md lists every field with all its aliases.
func TestColumns_allNamesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operating.md"))
	require.NoError(t, err)
	documented := map[field][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z0-9_, ]*)\\|").FindAllStringSubmatch(string(text), -1) {
		f, ok := byAlias[foldName(row[1])]
		require.True(t, ok, row[1])
		names := []string{foldName(row[1])}
		for name := range strings.SplitSeq(row[2], ",") {
			if name = foldName(name); name != "" {
				names = append(names, name)
			}
		}
		documented[f] = names
	}
	for f, names := range aliases {
		if f != fieldIgnored {
			require.ElementsMatch(t, names, documented[f], fieldNames[f])
		}
	}
}
