package storetest

import (
	"slices"
	"strings"
	"sync"
)

// Guard checks every statement against the rules that keep organisations apart and the schema fit for sharding: see CheckStatement. It
// also records the statements.
type Guard struct {
	mu         sync.Mutex
	statements []string
	pending    []interruption
}

type interruption struct {
	fragment string
	do       func()
}

// Statements returns the statements since the last call.
func (g *Guard) Statements() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.statements
	g.statements = nil
	return s
}

// Before runs do once, just before the next statement that contains the fragment. The statement waits until do returns. A test can so act
// like a concurrent process at the worst moment.
func (g *Guard) Before(fragment string, do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending = append(g.pending, interruption{fragment, do})
}

// Inspect records a statement and returns an error if it breaks a rule.
func (g *Guard) Inspect(statement string) error {
	if do := g.note(statement); do != nil {
		do()
	}
	return CheckStatement(statement)
}

func (g *Guard) note(statement string) func() {
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
