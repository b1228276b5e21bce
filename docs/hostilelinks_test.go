package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHostileLinks_pageHasCurrentCounts compares the counts in evidence/hostile-links.md with the links in outboundtest/links.txt.
func TestHostileLinks_pageHasCurrentCounts(t *testing.T) {
	t.Parallel()
	total, counts := 0, map[string]*[3]int{}
	for line := range strings.Lines(readDocument(t, "../outbound/outboundtest/links.txt")) {
		words := strings.Fields(line)
		if len(words) < 4 || words[0] == "#" {
			continue
		}
		total++
		for column, word := range words[:3] {
			if counts[word] == nil {
				counts[word] = &[3]int{}
			}
			counts[word][column]++
		}
	}
	said := readDocument(t, "evidence/hostile-links.md")
	require.Contains(t, said, fmt.Sprintf("**%d links**", total))
	require.Len(t, counts, 6)
	for word, n := range counts {
		require.Contains(t, said, fmt.Sprintf("| %s | %d | %d | %d |\n", word, n[0], n[1], n[2]))
	}
}
