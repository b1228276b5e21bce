package storetest

import "fmt"

// block is one SELECT, UPDATE or DELETE in a checked statement. It has the tables, and the conditions that may restrict these tables to one
// organisation.
type block struct {
	outer        *block          // the block of the enclosing query; for the outermost query, a block without tables
	statement    *statementInfo  // facts about the whole statement; set only if outer is nil
	routed       bool            // the block and the queries in it must also follow the rules of CheckRouting
	names        map[string]bool // the key is the name of a query in the WITH clause; the value is true if the query is a list of parameters with a column organisation_id
	uses         []*tableUse
	derived      []derived     // the subqueries in the FROM clause
	conditions   []condition   // the WHERE clause and the ON clauses
	restrictions []restriction // the restrictions by USING clauses and, after restrictTables, those by the conditions
}

// tableUse is one place in a block at which the statement names a table. A table that is joined with
// itself has two uses.
type tableUse struct {
	alias       string // the alias, or the name of the table
	distributed bool   // true if the table has the class Distributed
	restricted  bool   // true if the conditions require that organisation_id of the table equals a parameter
}

// derived is a subquery in a FROM clause. If lateral is true, the keyword LATERAL precedes it, and it can refer to other tables of the FROM clause.
type derived struct {
	query   []node
	lateral bool
}

// condition is a WHERE or ON clause. The ON clause of a left join restricts only the tables on the right side of the join.
type condition struct {
	nodes  []node
	tables []*tableUse // the tables that the condition can restrict; nil means all tables of the block
}

// isRouted returns true if the block must follow the rules of CheckRouting, because routed is set for the block or for an enclosing query.
func (b *block) isRouted() bool { return b != nil && (b.routed || b.outer.isRouted()) }

// checkConditions returns an error if the conditions do not restrict each distributed table to one
// organisation, or if a subquery breaks a rule of CheckStatement.
func (b *block) checkConditions(clauses map[string][]node) error {
	b.restrictTables()
	for _, u := range b.uses {
		if u.distributed && !u.restricted {
			return fmt.Errorf("the statement does not restrict the table %q to one organisation: the condition %[1]s.%s = ? is missing", u.alias, organisationID)
		}
	}
	for _, d := range b.derived {
		scope := b.outer
		if d.lateral {
			scope = b
		}
		if err := checkParsedStatement(d.query, scope); err != nil {
			return err
		}
	}
	for _, c := range b.conditions {
		if err := b.checkSubqueries(c.nodes); err != nil {
			return err
		}
	}
	for name, nodes := range clauses {
		if name == "where" {
			continue // the loop over b.conditions above has already checked the WHERE clause
		}
		if err := b.checkSubqueries(nodes); err != nil {
			return err
		}
	}
	return nil
}

// checkSubqueries checks all subqueries in the nodes, with the block b as their enclosing query.
func (b *block) checkSubqueries(nodes []node) error {
	for _, n := range nodes {
		if n.kind != groupNode {
			continue
		}
		check := b.checkSubqueries
		if n.isQuery() {
			check = func(kids []node) error { return checkParsedStatement(kids, b) }
		}
		if err := check(n.kids); err != nil {
			return err
		}
	}
	return nil
}
