package storetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

// StatementsVariable is the environment variable with the path of a folder. Each test process writes
// its statements to a new file in this folder.
const StatementsVariable = "REELTALLY_TEST_STATEMENTS"

// RecordedStatement is a statement that the tests run. It is one line of a file, as JSON.
type RecordedStatement struct {
	// Engine is the name of the engine: "sqlite", "postgres" or "citus".
	Engine string
	// File and Function name the function of the store that runs the statement, such as "store/videos.go" and "Org.Video".
	File, Function string
	// Text is the SQL text of the statement.
	Text string
	// Form is the statement in a form that does not depend on the number and the values of its parameters.
	Form string
}

// recorder writes the statements of this process to a file in the folder of StatementsVariable.
type recorder struct {
	mu   sync.Mutex
	file *os.File
	seen map[RecordedStatement]bool // the statements in the file, without their field Text
}

var recorded = recorder{seen: map[RecordedStatement]bool{}}

// addStatement writes a statement with the name of the store function that runs it. It skips further
// statements of the same function with the same form.
func (r *recorder) addStatement(engine, statement string) error {
	folder := os.Getenv(StatementsVariable)
	if folder == "" {
		return nil
	}
	s := RecordedStatement{Engine: engine, Form: statementForm(statement)}
	if s.File, s.Function = callingFunction(); s.File == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[s] {
		return nil
	}
	r.seen[s] = true
	if r.file == nil {
		var err error
		if r.file, err = os.CreateTemp(folder, "*.jsonl"); err != nil {
			return fmt.Errorf("%s: %w", StatementsVariable, err)
		}
	}
	s.Text = statement
	return json.NewEncoder(r.file).Encode(s)
}

// The patterns below match the parts of a statement that depend on its parameters.
var (
	numbered  = regexp.MustCompile(`\$\d+`)
	blanks    = regexp.MustCompile(`\s+`)
	lists     = regexp.MustCompile(`\(\?(?:, ?\?)+\)`)
	rowLists  = regexp.MustCompile(`(\([^()]*\?[^()]*\))(?:, ?\([^()]*\?[^()]*\))+`)
	dates     = regexp.MustCompile(`'\d{4}-\d\d-\d\d'`)
	limits    = regexp.MustCompile(`(?i)\b(LIMIT|OFFSET) \d+`)
	savepoint = regexp.MustCompile(`\bsp0x[0-9a-f]+`)
)

// statementForm returns a general form of a statement. Two statements have the same form if they differ only in the number or the values of their
// parameters.
func statementForm(statement string) string {
	s := numbered.ReplaceAllString(statement, "?")
	s = strings.TrimSpace(blanks.ReplaceAllString(s, " "))
	s = lists.ReplaceAllString(s, "(?, …)")
	s = rowLists.ReplaceAllString(s, "$1, …")
	s = dates.ReplaceAllString(s, "'YYYY-MM-DD'")
	s = limits.ReplaceAllString(s, "$1 ?")
	s = savepoint.ReplaceAllString(s, "sp")
	return monthTables.ReplaceAllString(s, "snapshots_daily_YYYYMM")
}

// storeFiles matches the files of the store. sharedFiles matches the files through which most functions of the store run their statements.
var (
	storeFiles  = regexp.MustCompile(`/(store/(?:[a-z]+/)*[a-z]+\.go)$`)
	sharedFiles = regexp.MustCompile(`^store/internal/db/(inspect|db|rows|lists|writes|bulk|dialect|values|page)\.go$|^store/storetest/`)
)

// functionName uses these patterns to remove parts of a name.
var (
	// The end of the name of a closure or of a generic function, such as ".func1".
	closure = regexp.MustCompile(`(\.func\d+|\.\d+|-range\d+|\[\.\.\.\]|\.gowrap\d+)+$`)
	// The name of an inlined function begins with its caller's name, such as "Org.Video." in
	// "Org.Video.Queue.Claim".
	inlined = regexp.MustCompile(`^(.*\.func[\d.]+|\w+\.\w+\.(\w+\.\w+$))`)
)

// functionName returns the short form of a function's name in a stack, such as "Org.Video" for "…/store.(*Org).Video.func1".
func functionName(long string) string {
	_, name, _ := strings.Cut(long[strings.LastIndex(long, "/")+1:], ".")
	name = strings.NewReplacer("(*", "", ")", "", "[...]", "").Replace(name)
	return inlined.ReplaceAllString(closure.ReplaceAllString(name, ""), "$2")
}

// callingFunction returns the file and the name of the innermost store function that runs the present
// statement. It returns "" if a test runs the statement.
func callingFunction() (file, function string) {
	callers := make([]uintptr, 200)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		found := storeFiles.FindStringSubmatch(filepath.ToSlash(frame.File))
		if found != nil && !sharedFiles.MatchString(found[1]) {
			return found[1], functionName(frame.Function)
		}
		if !more {
			return "", ""
		}
	}
}
