package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// testName matches the name of a test in a document, in backticks.
var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")

func listDocuments(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	return pages
}

func TestDocuments_mentionOnlyExistingTests(t *testing.T) {
	t.Parallel()
	all, _ := allTests()
	exists := map[string]bool{"TestMain": true}
	for _, f := range all {
		exists[f.name] = true
	}
	for _, page := range append(listDocuments(t), "../CONTRIBUTING.md") {
		for _, m := range testName.FindAllStringSubmatch(readDocument(t, page), -1) {
			require.True(t, exists[m[1]], "docs/%s names %s, which is not a test", page, m[1])
		}
	}
}

// contractRows is the number of rows in the table of contract.md. The rows have the ids A1 to A33.
const contractRows = 33

func TestContract_hasTestInEveryRow(t *testing.T) {
	t.Parallel()
	point := 0
	for line := range strings.Lines(readDocument(t, "contract.md")) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| A") {
			continue
		}
		point++
		require.Equal(t, fmt.Sprintf("| A%d", point), cells[0])
		require.Len(t, cells, 3, line)
		require.True(t, testName.MatchString(cells[2]) || strings.HasPrefix(cells[2], "`make contract`"), line)
	}
	require.Equal(t, contractRows, point)
}

// link matches the second half of a Markdown link to a file or a section, such as "](glossary.md#terms)". The groups are the path of the file
// and the id of the section. One of them can be empty.
var link = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)

// heading matches a heading of Markdown.
var heading = regexp.MustCompile(`(?m)^#+ (.*)$`)

// sectionIDs returns the ids that GitHub gives to the sections of a document.
func sectionIDs(text string) (ids []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		ids = append(ids, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return ids
}

// TestDocuments_areLinkedAndHaveValidLinks checks that README.md links every document, that the file and the section of every link exist,
// and that a document shows every screenshot.
func TestDocuments_areLinkedAndHaveValidLinks(t *testing.T) {
	t.Parallel()
	linked, targets := map[string]bool{}, map[string]bool{}
	for _, page := range append(listDocuments(t), "../README.md") {
		for _, m := range link.FindAllStringSubmatch(readDocument(t, page), -1) {
			target := filepath.Join(filepath.Dir(page), m[1])
			if m[1] == "" {
				target = page
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s of docs/%s", m[1], page)
			if m[2] != "" {
				require.Contains(t, sectionIDs(readDocument(t, target)), m[2], "docs/%s links to a section of %s that does not exist", page, target)
			}
			targets[strings.TrimPrefix(target, "../docs/")] = true
			if page == "../README.md" {
				linked[target] = true
			}
		}
	}
	for _, page := range listDocuments(t) {
		require.True(t, linked[filepath.Join("..", "docs", page)], "README.md does not link docs/%s", page)
	}
	pictures, err := filepath.Glob("screenshots/*")
	require.NoError(t, err)
	for _, picture := range pictures {
		require.True(t, targets[picture], "no document shows docs/%s", picture)
	}
}
