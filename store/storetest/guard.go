package storetest

import (
	"slices"
	"strings"
	"sync"
)

// Guard checks every statement with CheckStatement, and records the statements. A test can also run a function before a statement.
type Guard struct {
	// Engine is the name of the engine. If it is "citus", every statement is also checked with CheckRouting.
	Engine string

	mu         sync.Mutex
	statements []string
	pending    []interruption
}

// interruption is a function to run before the next statement that contains the fragment.
type interruption struct {
	fragment string
	do       func()
}

// Statements returns the statements that were inspected since the last call of Statements.
func (g *Guard) Statements() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.statements
	g.statements = nil
	return s
}

// BeforeStatement registers a function that the Guard calls once, just before the next statement that
// contains the fragment. The statement waits until the function returns.
func (g *Guard) BeforeStatement(fragment string, do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending = append(g.pending, interruption{fragment, do})
}

// Inspect records a statement, and runs the function that BeforeStatement has registered for it. It returns the error of CheckStatement or
// CheckRouting, or the error of writing the statement to the folder of StatementsVariable.
func (g *Guard) Inspect(statement string, args []any) error {
	if do := g.recordStatement(statement); do != nil {
		do()
	}
	if err := CheckStatement(statement, args...); err != nil {
		return err
	}
	if g.Engine == "citus" {
		if err := CheckRouting(statement, args...); err != nil {
			return err
		}
	}
	return recorded.addStatement(g.Engine, statement)
}

// recordStatement records a statement. It returns the function that BeforeStatement registered for this statement, or nil if there is none. Each
// function is returned only once.
func (g *Guard) recordStatement(statement string) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.statements = append(g.statements, statement)
	i := slices.IndexFunc(g.pending, func(p interruption) bool { return strings.Contains(statement, p.fragment) })
	if i < 0 {
		return nil
	}
	do := g.pending[i].do
	g.pending = slices.Delete(g.pending, i, i+1)
	return do
}
