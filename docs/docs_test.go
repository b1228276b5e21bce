package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated documents instead of comparing them")

// requireGeneratedText requires that a document has the generated text. With the flag -update, it first writes this text to the document.
func requireGeneratedText(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o600))
	}
	got, expected := strings.Split(readDocument(t, name), "\n"), strings.Split(want, "\n")
	for i := range min(len(got), len(expected)) {
		require.Equal(t, expected[i], got[i], "line %d of docs/%s is out of date; run go test ./docs -update", i+1, name)
	}
	require.Len(t, got, len(expected), "docs/%s is out of date; run go test ./docs -update", name)
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(name))
	require.NoError(t, err)
	return string(text)
}

// testFunc is a test function of the repository.
type testFunc struct {
	file string // path of the file from the root of the repository, with slashes
	name string
	rows []string // ids of the requirements in the comment above the test
}

// requirementsLine matches a line of the comment above a test. The line lists the requirements that the test checks.
var requirementsLine = regexp.MustCompile(`^// Requirements in docs/coverage\.md:\s*(.*)$`)

// allTests returns all test functions and fuzz targets of the repository. It also returns the error
// messages of findTests.
var allTests = sync.OnceValues(func() (found []testFunc, faults []string) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && len(d.Name()) > 2 && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		funcs, wrong, err := findTests(path)
		found, faults = append(found, funcs...), append(faults, wrong...)
		return err
	})
	if err != nil {
		faults = append(faults, err.Error())
	}
	return found, faults
})

// findTests returns the test functions and fuzz targets of a file. It also returns an error message for
// each list of requirements that is not in a test's comment.
func findTests(path string) (found []testFunc, faults []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	name := strings.TrimPrefix(filepath.ToSlash(path), "../")
	above := map[*ast.CommentGroup]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
			continue
		}
		above[f.Doc] = true
		found = append(found, testFunc{file: name, name: f.Name.Name, rows: requirementIDs(f.Doc)})
	}
	for _, g := range file.Comments {
		if !above[g] && len(requirementIDs(g)) > 0 {
			faults = append(faults, fmt.Sprintf("%s: this list of requirements is not in the comment of a test", files.Position(g.Pos())))
		}
	}
	return found, faults, nil
}

// requirementIDs returns the ids of the requirements in a comment.
func requirementIDs(g *ast.CommentGroup) (rows []string) {
	if g == nil {
		return nil
	}
	for _, line := range g.List {
		if m := requirementsLine.FindStringSubmatch(line.Text); m != nil {
			for id := range strings.SplitSeq(m[1], ",") {
				rows = append(rows, strings.TrimSpace(id))
			}
		}
	}
	return rows
}

// pathStep matches a row of the two tables in architecture.md. Each row has a number, a file and a
// function.
var pathStep = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\| `([^`]+)` \\|")

func TestArchitecture_mentionsOnlyExistingFunctions(t *testing.T) {
	t.Parallel()
	steps := pathStep.FindAllStringSubmatch(readDocument(t, "architecture.md"), -1)
	require.Len(t, steps, 8+12, "architecture.md must list 8 functions for a request and 12 for a fetch")
	for i, h := range steps {
		step := i + 1
		if i >= 8 {
			step = i - 7
		}
		require.Equal(t, strconv.Itoa(step), h[1])
		require.Regexp(t, `(?m)^func (\([^)]*\) )?`+h[3]+`\(`, readDocument(t, filepath.Join("..", h[2])), "architecture.md names the function %s, which the file %s does not have", h[3], h[2])
	}
}

// storeFunction matches a row of the table in evidence/statements.md that lists the functions of the store. A row begins with a file and a
// function.
var storeFunction = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(?:\\w+\\.)?(\\w+)` \\|")

// If this test fails because a function was renamed or removed, run `make statements`.
func TestStatementsPage_mentionsOnlyExistingFunctions(t *testing.T) {
	t.Parallel()
	functions := storeFunction.FindAllStringSubmatch(readDocument(t, "evidence/statements.md"), -1)
	require.Greater(t, len(functions), 200)
	for _, f := range functions {
		require.Regexp(t, `(?m)^func (\([^)]*\) )?`+f[2]+`[(\[]`, readDocument(t, filepath.Join("..", f[1])), "evidence/statements.md names the function %s, which the file %s does not have", f[2], f[1])
	}
}

// repositoryPath matches a path in backticks, such as `docs/operating.md`. The path must begin with
// one of the listed folders.
var repositoryPath = regexp.MustCompile("`((?:\\.ci|bench|cmd|collector|docs|gen|outbound|server|store)/[\\w./-]*)`")

func TestDocuments_mentionOnlyExistingFiles(t *testing.T) {
	t.Parallel()
	pages := append(listDocuments(t), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "../SECURITY.md")
	for _, folder := range []string{"decisions", "evidence"} {
		more, err := filepath.Glob(folder + "/*.md")
		require.NoError(t, err)
		pages = append(pages, more...)
	}
	for _, page := range pages {
		for _, m := range repositoryPath.FindAllStringSubmatch(readDocument(t, page), -1) {
			_, err := os.Stat(filepath.Join("..", m[1]))
			require.NoError(t, err, "docs/%s names %s, which does not exist", page, m[1])
		}
	}
}

// runPattern finds a flag such as "-run TestVideos" in the recipes of the Makefile. The first group
// is a regular expression for test names.
var runPattern = regexp.MustCompile(`(?m)^\t.* -run '?(\^?Test\w*\$?)\$?`)

func TestMakefile_runsOnlyExistingTests(t *testing.T) {
	t.Parallel()
	all, _ := allTests()
	for _, m := range runPattern.FindAllStringSubmatch(readDocument(t, "../Makefile"), -1) {
		pattern := regexp.MustCompile(m[1])
		require.True(t, slices.ContainsFunc(all, func(f testFunc) bool { return pattern.MatchString(f.name) }), "the Makefile runs %s, which is not a test", m[1])
	}
}
