package storetest

import (
	"errors"
	"fmt"
	"slices"
)

// block is one SELECT, UPDATE or DELETE in a checked statement. It has the tables, and the conditions that may restrict these tables to one
// organisation.
type block struct {
	outer      *block          // the block of the enclosing query; for the outermost query, a block without tables
	statement  *statementInfo  // facts about the whole statement; set only if outer is nil
	routed     bool            // the block and the queries in it must also follow the rules of CheckRouting
	names      map[string]bool // the key is the name of a query in the WITH clause; the value is true if the query is a list of parameters with a column organisation_id
	uses       []*use
	derived    []derived   // the subqueries in the FROM clause
	conditions []condition // the WHERE clause and the ON clauses
}

// use is one place in a block at which the statement names a table. A table that is joined with
// itself has two uses.
type use struct {
	alias       string // the alias, or the name of the table
	distributed bool   // true if the table has the class Distributed
	bound       bool   // true if the conditions require that organisation_id of the table equals a parameter
}

// derived is a subquery in the FROM clause. It can refer to the other tables of that FROM clause only if the keyword LATERAL precedes it.
type derived struct {
	query   []node
	lateral bool
}

// condition is a WHERE or ON clause. The ON clause of a left join restricts only the tables on the right side of the join.
type condition struct {
	where []node
	only  []*use // the tables that the condition restricts; nil means all tables of the query
	using bool   // true for a join with USING (organisation_id): the joined tables have the same organisation_id as the tables before them
}

// isRouted returns true if the block must follow the rules of CheckRouting, because routed is set for the block or for an enclosing query.
func (b *block) isRouted() bool { return b != nil && (b.routed || b.outer.isRouted()) }

// checkConditions returns an error if the conditions do not restrict each distributed table to one
// organisation, or if a subquery breaks a rule of CheckStatement.
func (b *block) checkConditions(clauses map[string][]node) error {
	b.bindTables()
	for _, u := range b.uses {
		if u.distributed && !u.bound {
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
		if err := b.checkSubqueries(c.where); err != nil {
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

// afterTable lists the keywords that can follow the name of a table. If one of these keywords follows, it is not the alias of the table.
var afterTable = []string{"where", "on", "set", "join", "left", "right", "full", "inner", "cross", "natural", "using", "group", "order", "limit",
	"union", "except", "intersect", "returning", "values", "select", "for", "having", "offset", "window", "fetch", "default", "tablesample", "outer"}

// parseFrom parses a FROM clause, and adds its tables, subqueries and join conditions to the block.
func (b *block) parseFrom(nodes []node) error {
	left := false
	for i := 0; ; {
		before := len(b.uses)
		var err error
		if i, err = b.parseTable(nodes, i); err != nil {
			return err
		}
		only := []*use(nil)
		if left {
			only = b.uses[before:]
		}
		switch {
		case i < len(nodes) && nodes[i].isKeyword("on"):
			end := i + 1
			for end < len(nodes) && !nodes[end].isMark(",") && !isJoin(nodes, end) {
				end++
			}
			b.conditions = append(b.conditions, condition{where: nodes[i+1 : end], only: only})
			i = end
		case i+1 < len(nodes) && nodes[i].isKeyword("using"):
			if containsOrganisationID(nodes[i+1].kids) {
				b.conditions = append(b.conditions, condition{using: true, only: b.uses[before:]})
			}
			i += 2
		}
		if i >= len(nodes) {
			return nil
		}
		if i, left, err = parseJoin(nodes, i); err != nil {
			return err
		}
	}
}

// isJoin returns true if a join begins at nodes[i].
func isJoin(nodes []node, i int) bool {
	called := i+1 < len(nodes) && nodes[i+1].kind == groupNode // before a parenthesis, "left" and "right" are names of functions and do not begin a join
	return nodes[i].isKeyword("join", "inner", "cross", "natural", "left", "right", "full") && (!called || nodes[i].isKeyword("join"))
}

// parseJoin parses a comma or the keywords of a join at nodes[i]. It returns the index of the next table, and whether the join is a left join.
func parseJoin(nodes []node, i int) (next int, left bool, err error) {
	if nodes[i].isMark(",") {
		return i + 1, false, nil
	}
	for ; i < len(nodes) && !nodes[i].isKeyword("join"); i++ {
		switch {
		case nodes[i].isKeyword("left"):
			left = true
		case nodes[i].isKeyword("inner", "cross", "outer"):
		default:
			return 0, false, fmt.Errorf("cannot read a FROM clause with %q", nodes[i].text)
		}
	}
	return i + 1, left, nil
}

// parseTable parses a table, a subquery or a group of joins at nodes[i] of a FROM clause. It adds
// the result to the block and returns the next index.
func (b *block) parseTable(nodes []node, i int) (int, error) {
	lateral := false
	for i < len(nodes) && nodes[i].isKeyword("only", "lateral") {
		lateral = lateral || nodes[i].isKeyword("lateral")
		i++
	}
	if i >= len(nodes) {
		return 0, errors.New("a FROM clause lacks the name of a table")
	}
	u := &use{}
	switch n := nodes[i]; {
	case n.isQuery():
		b.derived = append(b.derived, derived{n.kids, lateral})
		i++
	case n.kind == groupNode:
		return i + 1, b.parseFrom(n.kids)
	case n.isName():
		for i+2 < len(nodes) && nodes[i+1].isMark(".") {
			i += 2
		}
		u.alias = nodes[i].text
		i++
		if i < len(nodes) && nodes[i].kind == groupNode {
			return 0, fmt.Errorf("a FROM clause has the function %s() in place of a table", u.alias)
		}
		if list, named := b.namedQuery(u.alias); named {
			// A list of parameters counts as restricted, but not under the rules of CheckRouting.
			u.bound = list && !b.isRouted()
		} else {
			var err error
			if u.distributed, err = isDistributed(u.alias); err != nil {
				return 0, err
			}
			b.wholeStatement().addTable(u.alias)
		}
	default:
		return 0, fmt.Errorf("a FROM clause has %q in place of a table", n.text)
	}
	if i < len(nodes) && nodes[i].isKeyword("as") {
		i++
	}
	if i < len(nodes) && nodes[i].isName() && !nodes[i].isKeyword(afterTable...) {
		u.alias = nodes[i].text
		i++
		if i < len(nodes) && nodes[i].kind == groupNode {
			i++ // skip the names of the columns after the alias
		}
	}
	b.uses = append(b.uses, u)
	return i, nil
}

// namedQuery searches the WITH clauses of the query b and of its enclosing queries for a name. If it finds the
// name, named is true, and `list` is the value in the field names.
func (b *block) namedQuery(name string) (list, named bool) {
	for ; b != nil; b = b.outer {
		if list, named = b.names[name]; named {
			return list, true
		}
	}
	return false, false
}

// isParameterList returns true if a query of a WITH clause has one of the two forms that
// db.WithRows writes. Such a query selects only parameters.
func isParameterList(query []node) bool {
	from := keywordAt(query, "from")
	if len(query) != from+3 || !query[0].isKeyword("select") || query[from+2].kind != groupNode {
		return false
	}
	selected, arguments := query[1:from], query[from+2].kids
	switch {
	case query[from+1].isKeyword("unnest"):
		// SELECT * FROM unnest((SELECT CAST(? AS type[])), …), or the same without the inner SELECT
		return len(selected) == 1 && selected[0].isMark("*") && allMatch(splitAt(arguments, isComma), isArrayParameter)
	case query[from+1].isKeyword("json_each"):
		// SELECT CAST(value ->> 0 AS type), … FROM json_each(?)
		_, isParameter := parseParameter(arguments)
		return isParameter && allMatch(splitAt(selected, isComma), isJSONMember)
	}
	return false
}

func isComma(n node) bool { return n.isMark(",") }

// allMatch returns true if match returns true for every part.
func allMatch(parts [][]node, match func([]node) bool) bool {
	return !slices.ContainsFunc(parts, func(part []node) bool { return !match(part) })
}

// isArrayParameter returns true if the nodes are (SELECT CAST(? AS type[])) or CAST(? AS type[]).
func isArrayParameter(nodes []node) bool {
	if len(nodes) == 1 && len(nodes[0].kids) == 3 && nodes[0].kids[0].isKeyword("select") {
		nodes = nodes[0].kids[1:]
	}
	if len(nodes) != 2 || !nodes[0].isKeyword("cast") {
		return false
	}
	cast := nodes[1].kids
	end := len(cast) - 2
	return end >= 3 && cast[end].isMark("[") && cast[end+1].isMark("]") && isCast(cast[:end], 1) && cast[0].kind == parameterNode
}

// isJSONMember returns true if the nodes are CAST(value ->> N AS type) with a literal N, which reads a member of a JSON list.
func isJSONMember(nodes []node) bool {
	if len(nodes) != 2 || !nodes[0].isKeyword("cast") {
		return false
	}
	cast := nodes[1].kids
	return isCast(cast, 3) && cast[0].isKeyword("value") && cast[1].isMark("->>") && cast[2].kind == literalNode
}

// isCast returns true if the nodes inside of CAST(…) have AS at index i, and after it the name of a
// type: one or more words.
func isCast(inside []node, i int) bool {
	return len(inside) > i+1 && inside[i].isKeyword("as") && !slices.ContainsFunc(inside[i+1:], func(n node) bool { return n.kind != wordNode })
}

// equality is a condition of the form a.organisation_id = b.organisation_id. If a is nil, the left side is a
// parameter instead; if b is nil, the right side.
type equality struct {
	a, b      *use
	parameter int    // index of the argument for the parameter, if one side is a parameter
	only      []*use // the tables that the condition restricts; nil means all tables of the query
}

// bindTables sets use.bound to true for each table that the conditions restrict to one organisation. A condition restricts a table if it
// compares the table's organisation_id with one of these values:
//
//   - a parameter
//   - the organisation_id of a list that db.WithRows made
//   - the organisation_id of another table that is already restricted
//
// The list or the other table can belong to an enclosing query. The rules of CheckRouting are stricter: under these rules, lists do not
// count, and another table counts only if it belongs to the same query.
//
// Conditions beside an OR or below a NOT do not count. A condition in the ON clause of a LEFT JOIN restricts only the joined table.
func (b *block) bindTables() {
	var equalities []equality
	for _, c := range b.conditions {
		if c.using {
			for _, joined := range c.only {
				for _, earlier := range b.uses[:slices.Index(b.uses, c.only[0])] {
					equalities = append(equalities, equality{a: earlier, b: joined, only: c.only})
				}
			}
		}
		for _, atom := range splitAtAnd(c.where) {
			// A condition below a NOT does not count, because parseEquality returns false for it.
			if e, ok := b.parseEquality(atom); ok {
				if e.a == nil || e.b == nil {
					b.wholeStatement().addOrganisation(e.parameter)
				}
				e.only = c.only
				equalities = append(equalities, e)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, e := range equalities {
			for _, pair := range [2][2]*use{{e.a, e.b}, {e.b, e.a}} {
				from, to := pair[0], pair[1]
				if to == nil || to.bound || from != nil && !from.bound || e.only != nil && !slices.Contains(e.only, to) || !slices.Contains(b.uses, to) {
					continue
				}
				to.bound, changed = true, true
			}
		}
	}
}

// splitAtAnd splits a condition at each AND and returns the parts. It returns nil if the condition contains an
// OR, because the condition can then be true although a part is false.
func splitAtAnd(nodes []node) [][]node {
	var atoms [][]node
	var atom []node
	cases, between := 0, false
	for _, n := range nodes {
		switch {
		case n.isKeyword("case"):
			cases++
		case n.isKeyword("end"):
			cases--
		case cases > 0:
		case n.isKeyword("or"):
			return nil
		case n.isKeyword("between"):
			between = true
		case n.isKeyword("and") && between:
			between = false
		case n.isKeyword("and"):
			atoms, atom = append(atoms, atom), nil
			continue
		}
		atom = append(atom, n)
	}
	var out [][]node
	for _, a := range append(atoms, atom) {
		if len(a) == 1 && a[0].kind == groupNode && !a[0].isQuery() {
			out = append(out, splitAtAnd(a[0].kids)...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

// parseEquality parses a condition of the form organisation_id = x, where x is a parameter or another organisation_id. It returns false for other
// conditions.
func (b *block) parseEquality(atom []node) (equality, bool) {
	sides := splitAt(atom, func(n node) bool { return n.isMark("=") })
	if len(sides) != 2 {
		return equality{}, false
	}
	var uses [2]*use
	parameter := -1
	for i, side := range sides {
		if p, ok := parseParameter(side); ok {
			parameter = p
			continue
		}
		if uses[i] = b.findTableOfColumn(side); uses[i] == nil {
			return equality{}, false
		}
	}
	return equality{a: uses[0], b: uses[1], parameter: parameter}, uses[0] != uses[1]
}

// parseParameter returns the index of the argument if the nodes are a parameter: ?, $1, $1::type or CAST(? AS type). Otherwise it returns false.
func parseParameter(nodes []node) (index int, ok bool) {
	switch {
	case len(nodes) == 0:
		return 0, false
	case nodes[0].kind == parameterNode:
		return nodes[0].index, len(nodes) == 1 || len(nodes) == 3 && nodes[1].isMark("::")
	case len(nodes) == 2 && nodes[0].isKeyword("cast"):
		inside := nodes[1].kids
		return parameterIndex(inside), isCast(inside, 1) && inside[0].kind == parameterNode
	}
	return 0, false
}

// parameterIndex returns the field "index" of the first node, or 0 if there is no node. The caller checks whether the first node is a
// parameter.
func parameterIndex(nodes []node) int {
	if len(nodes) == 0 {
		return 0
	}
	return nodes[0].index
}

// findTableOfColumn returns the table to which a column organisation_id belongs, or nil if it finds
// none. The parameter "nodes" is the parsed name of the column.
func (b *block) findTableOfColumn(nodes []node) *use {
	if len(nodes) == 0 || !nodes[len(nodes)-1].isName() || nodes[len(nodes)-1].text != organisationID {
		return nil
	}
	switch {
	case len(nodes) == 1 && len(b.uses) == 1:
		// The column has no table name, so it belongs to the only table of the block.
		return b.uses[0]
	case len(nodes) == 3 && nodes[1].isMark("."):
		// The search continues in the enclosing queries. Under the rules of CheckRouting, it ends after this
		// block.
		for s := b; s != nil && (s == b || !b.isRouted()); s = s.outer {
			for _, u := range s.uses {
				if u.alias == nodes[0].text {
					return u
				}
			}
		}
	}
	return nil
}
