// Command statements prints the page docs/evidence/statements.md. It reads the SQL statements that tests of the store have recorded. The page
// shows what happens if a condition on the organisation is removed from a statement: the check of statements refuses the statement. The page
// also shows which nodes of a Citus cluster run each statement.
//
//	statements FOLDER > docs/evidence/statements.md
//
// FOLDER is the value of storetest.StatementsVariable during the tests. The exit status is 1 if the check accepts a statement from which a required
// condition was removed. It is also 1 if a statement for Citus is sent to the shards of several organisations.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reeltally/reeltally/store/storetest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: statements FOLDER")
		os.Exit(2)
	}
	if err := writePage(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "statements:", err)
		os.Exit(1)
	}
}

// writePage reads the statements in a folder and writes the page about them. If it returns an error, it has written nothing.
func writePage(folder string, w io.Writer) error {
	statements, err := readStatements(folder)
	if err != nil {
		return err
	}
	p := page{engines: map[string]engineCounts{}, routes: map[route]*routeStatements{}}
	var failures []error
	for _, s := range statements {
		failures = append(failures, p.addStatement(s))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	_, err = io.WriteString(w, p.text())
	return err
}

// readStatements returns the recorded statements of all files in a folder. Of statements that differ
// only in the field Text, it returns only one.
func readStatements(folder string) (map[storetest.RecordedStatement]storetest.RecordedStatement, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the folder %s has no recorded statements", folder)
	}
	out := map[storetest.RecordedStatement]storetest.RecordedStatement{}
	for _, name := range files {
		content, err := os.ReadFile(name) //nolint:gosec // the caller chooses the folder
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(content))
		lines.Buffer(nil, len(content)+1)
		for lines.Scan() {
			var s storetest.RecordedStatement
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			key := s
			key.Text = ""
			out[key] = s
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// engineCounts counts the statements of one engine, and their mutants. A mutant is a copy of a statement without one of the parts that restrict a
// table to one organisation. Such a part is a condition, a column or a conflict target.
type engineCounts struct {
	statements int            // number of all statements
	restricted int            // number of statements for which the check must refuse at least one mutant
	mutants    map[string]int // number of mutants that the check must refuse, by the part that was removed from the statement (Mutant.Removed)
	shared     int            // number of mutants that the check may accept: see Mutant.Shared
}

// route says on which nodes of Citus the statements of a store function run.
type route struct {
	file, function string
	nodes          storetest.Nodes
}

// routeStatements has the number of statements of a route, and the tables that these statements use.
type routeStatements struct {
	statements int
	tables     map[string]bool
}

// page has the contents of docs/evidence/statements.md.
type page struct {
	engines map[string]engineCounts
	routes  map[route]*routeStatements
}

// addStatement counts a statement and its mutants. It returns an error if storetest.CheckStatement accepts a mutant that must be refused, or
// if Citus would send the statement to the shards of several organisations.
func (p *page) addStatement(s storetest.RecordedStatement) error {
	c := p.engines[s.Engine]
	if c.mutants == nil {
		c.mutants = map[string]int{}
	}
	c.statements++
	var failures []error
	refused := 0
	for _, m := range storetest.Mutants(s.Text) {
		if m.Shared {
			c.shared++
			continue
		}
		refused++
		c.mutants[m.Removed]++
		if storetest.CheckStatement(m.Text) == nil {
			failures = append(failures, fmt.Errorf("%s %s: the check accepts a statement without the %s: %s", s.File, s.Function, m.Removed, m.Text))
		}
	}
	if refused > 0 {
		c.restricted++
	}
	p.engines[s.Engine] = c
	// addRoute returns an error if Citus sends the statement to the shards of several organisations.
	if s.Engine == "citus" {
		failures = append(failures, p.addRoute(s))
	}
	return errors.Join(failures...)
}

func (p *page) addRoute(s storetest.RecordedStatement) error {
	nodes, tables, err := storetest.NodesOf(s.Text)
	if err != nil || len(tables) == 0 {
		return err
	}
	key := route{s.File, s.Function, nodes}
	r := p.routes[key]
	if r == nil {
		r = &routeStatements{tables: map[string]bool{}}
		p.routes[key] = r
	}
	r.statements++
	for _, table := range tables {
		r.tables[table] = true
	}
	return nil
}

func (p *page) text() string {
	var b strings.Builder
	b.WriteString(`# Statements of the store

` +
		"`make statements` writes this page. " +
		`It records each SQL statement that the tests of the store run. Statements that differ only in the number or the values of their parameters
count as one statement.

## Statements without a condition on the organisation

` +
		"In all tests, a check (`CheckStatement` in `store/storetest/rules.go`) inspects each statement before it runs, and refuses a statement that is not restricted to one organisation. " +
		`This table shows that the
check finds each missing restriction. ` +
		"One restriction at a time was removed from each statement: a condition such as `organisation_id = ?`, the column of an INSERT, or the column of a conflict\ntarget. " +
		`The check refused **every** changed statement.

| Engine | Statements | Statements with restrictions | Removed conditions | Removed columns | Removed conflict targets | Accepted | Not required |
| --- | --: | --: | --: | --: | --: | --: | --: |
`)
	for _, engine := range slices.Sorted(maps.Keys(p.engines)) {
		c := p.engines[engine]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | 0 | %d |\n", engine, c.statements, c.restricted, c.mutants["condition"], c.mutants["column"], c.mutants["conflict target"], c.shared)
	}
	b.WriteString(`
A statement without restrictions uses only tables that all organisations share, such as the queue and the tokens.

` +
		"The column \"Not required\" counts conditions that a statement may lack. Most of them belong to the tables `fetch_subscriptions`, `org_turns`, `share_pages`, `api_tokens` and `webhook_queue`.\nSome statements use these tables for all organisations. " +
		"The tests in `store/tenancy_test.go` and `server/tenancy_test.go` check these tables: they compare the responses and the stored rows of several organisations.\n" +
		"One other condition is redundant: the search for the collections below a collection compares the organisation in a join and again in its `WHERE`.\n" +
		`
## Nodes of Citus that run each statement

` +
		"The tests of the store also run with the statements for Citus (`make test-citus`). No statement is sent to the shards of several organisations: the check refuses such a statement\n(`CheckRouting` in `store/storetest/rules.go`). " +
		`Functions with "all nodes" write a reference table, or change the definition of a table, such as the partition of a month. "Any node" is a read of a reference table.
The check reads the statements; the nodes were not observed on a cluster. Backup and restore copy whole tables without this check, so on Citus they read and write all shards.

| Nodes | Functions | Statements |
| --- | --: | --: |
`)
	functions, statements := map[storetest.Nodes]int{}, map[storetest.Nodes]int{}
	for key, r := range p.routes {
		functions[key.nodes]++
		statements[key.nodes] += r.statements
	}
	for _, nodes := range slices.Sorted(maps.Keys(functions)) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", nodes, functions[nodes], statements[nodes])
	}
	b.WriteString("\n| File | Function | Nodes | Statements | Tables |\n| --- | --- | --- | --: | --- |\n")
	byName := func(a, b route) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.function, b.function), cmp.Compare(a.nodes, b.nodes))
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.routes), byName) {
		r := p.routes[key]
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %d | %s |\n", key.file, key.function, key.nodes, r.statements, strings.Join(slices.Sorted(maps.Keys(r.tables)), ", "))
	}
	return b.String()
}
