package storetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/reeltally/reeltally/store"
)

// StatementsVariable is the environment variable with the folder into which each Guard of the engine "citus" writes the statements that it
// inspects, as lines of JSON with a RoutedStatement. .ci/citus makes a list of them.
const StatementsVariable = "REELTALLY_TEST_STATEMENTS"

// RoutedStatement is a statement of the store, and the nodes of a Citus cluster that run it.
type RoutedStatement struct {
	Source string   // file and function that runs the statement
	Text   string   // the statement in a form that does not depend on the number of its parameters
	Tables []string // names of its tables, sorted
	Nodes  string   // one of the Nodes constants
}

// These are the nodes that run a statement.
const (
	NodesShard       = "shard of the organisation"
	NodesMixed       = "shard of the organisation, with rows of the coordinator"
	NodesReference   = "reference table, read on one node"
	NodesReferences  = "reference table, written on all nodes"
	NodesCoordinator = "coordinator"
	NodesTables      = "all nodes: changes tables"
	NodesSeveral     = "several shards"
)

// Routing returns the nodes of a Citus cluster that run a statement, and the tables of the statement. It returns "" as the nodes if the
// statement has no table of the schema.
func Routing(statement string) (nodes string, tables []string) {
	root := &block{routed: true, statement: &statementInfo{}}
	err := checkAll(statement, root, nil)
	classes := map[store.TableClass]bool{}
	for name := range root.statement.tables {
		if partitions.MatchString(name) {
			name = "snapshots_daily"
		}
		if described, known := store.Tables[name]; known {
			classes[described.Class] = true
			tables = append(tables, name)
		}
	}
	slices.Sort(tables)
	tables = slices.Compact(tables)
	isWrite := writes.MatchString(statement)
	switch {
	case changes.MatchString(statement):
		return NodesTables, []string{"snapshots_daily"}
	case err != nil:
		return NodesSeveral, tables
	case classes[store.Distributed] && classes[store.Coordinator]:
		return NodesMixed, tables
	case classes[store.Distributed]:
		return NodesShard, tables
	case classes[store.Coordinator]:
		return NodesCoordinator, tables
	case classes[store.Reference] && isWrite:
		return NodesReferences, tables
	case classes[store.Reference]:
		return NodesReference, tables
	}
	return "", nil
}

var (
	writes  = regexp.MustCompile(`(?i)\b(INSERT INTO|UPDATE|DELETE FROM|FOR UPDATE|FOR SHARE)\b`)
	changes = regexp.MustCompile(`(?i)^\s*(CREATE|ALTER|DROP|LOCK)\b`)
)

// These patterns match the parts of a statement that depend on its parameters.
var (
	numbered  = regexp.MustCompile(`\$\d+`)
	blanks    = regexp.MustCompile(`\s+`)
	lists     = regexp.MustCompile(`\(\?(?:, ?\?)+\)`)
	rowLists  = regexp.MustCompile(`(\([^()]*\?[^()]*\))(?:, ?\([^()]*\?[^()]*\))+`)
	dates     = regexp.MustCompile(`'\d{4}-\d\d-\d\d'`)
	months    = regexp.MustCompile(`snapshots_daily_\d{6}`)
	closures  = regexp.MustCompile(`(\.func\d+|\.\d+|-range\d+|\[\.\.\.\]|\.gowrap\d+)+$`)
	plumbing  = regexp.MustCompile(`/store/internal/db/(inspect|db|rows|lists|writes|bulk|dialect|values|page)\.go$`)
	storeCode = regexp.MustCompile(`/(store/(?:[a-z]+/)*[a-z]+\.go)$`)
)

// normal returns a statement in a form that does not depend on the number and the numbering of its parameters.
func normal(statement string) string {
	s := numbered.ReplaceAllString(statement, "?")
	s = strings.TrimSpace(blanks.ReplaceAllString(s, " "))
	s = lists.ReplaceAllString(s, "(?, …)")
	s = rowLists.ReplaceAllString(s, "$1, …")
	s = dates.ReplaceAllString(s, "'YYYY-MM-DD'")
	return strings.ReplaceAll(months.ReplaceAllString(s, "snapshots_daily_YYYYMM"), `"`, "")
}

// source returns the file and the name of the function of the store that runs the present statement. It leaves out tests, and the functions
// of store/internal/db through which all statements are run.
func source() string {
	callers := make([]uintptr, 60)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		file := storeCode.FindStringSubmatch(filepath.ToSlash(frame.File))
		if file != nil && !plumbing.MatchString(frame.File) && !strings.HasSuffix(frame.File, "_test.go") && !strings.Contains(file[1], "/storetest/") {
			_, name, _ := strings.Cut(frame.Function[strings.LastIndex(frame.Function, "/")+1:], ".")
			return file[1] + " " + strings.NewReplacer("(*", "", ")", "").Replace(closures.ReplaceAllString(name, ""))
		}
		if !more {
			return ""
		}
	}
}

// statementFile writes each statement of this process once into a file in the folder of StatementsVariable.
type statementFile struct {
	mu   sync.Mutex
	file *os.File
	seen map[string]bool
}

var recorded = statementFile{seen: map[string]bool{}}

// record writes a statement with its source and its nodes, unless it was written before.
func (f *statementFile) record(statement string) error {
	dir := os.Getenv(StatementsVariable)
	if dir == "" {
		return nil
	}
	r := RoutedStatement{Source: source(), Text: normal(statement)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Source == "" || f.seen[r.Source+r.Text] {
		return nil
	}
	f.seen[r.Source+r.Text] = true
	if r.Nodes, r.Tables = Routing(statement); r.Nodes == "" {
		return nil
	}
	if f.file == nil {
		var err error
		if f.file, err = os.CreateTemp(dir, "statements-*.jsonl"); err != nil {
			return fmt.Errorf("%s: %w", StatementsVariable, err)
		}
	}
	return json.NewEncoder(f.file).Encode(r)
}
