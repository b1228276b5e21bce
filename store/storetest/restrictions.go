package storetest

import "slices"

// restriction says that the organisation_id of a table equals that of the table `equal`, or a parameter if `equal` is nil. So the table is restricted to
// one organisation if `equal` is restricted or nil.
type restriction struct{ table, equal *tableUse }

// restrictTables sets tableUse.restricted to true for each table that the conditions restrict to one organisation. A condition restricts a table if it
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
func (b *block) restrictTables() {
	for _, c := range b.conditions {
		b.addRestrictions(c)
	}
	// A restriction can depend on one that comes later in the list, so the loop ends when no table was added.
	for changed := true; changed; {
		changed = false
		for _, r := range b.restrictions {
			if !r.table.restricted && (r.equal == nil || r.equal.restricted) {
				r.table.restricted, changed = true, true
			}
		}
	}
}

// addRestrictions adds the restrictions by a condition to b. It also records the parameters with which the condition compares an organisation_id.
func (b *block) addRestrictions(c condition) {
	tables := c.tables
	if tables == nil {
		tables = b.uses
	}
	for _, part := range splitAtAnd(c.nodes) {
		left, right, parameter, ok := b.parseEquality(part)
		if !ok {
			continue // a condition below a NOT also ends here
		}
		if left == nil || right == nil {
			b.wholeStatement().addOrganisation(parameter)
		}
		for _, r := range []restriction{{left, right}, {right, left}} {
			if slices.Contains(tables, r.table) { // the other tables belong to an enclosing query, or are on the left side of a left join
				b.restrictions = append(b.restrictions, r)
			}
		}
	}
}

// splitAtAnd splits a condition at each AND and returns the parts. It returns nil if the condition contains an
// OR, because the condition can then be true although a part is false.
func splitAtAnd(nodes []node) [][]node {
	var parts [][]node
	var part []node
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
			parts, part = append(parts, part), nil
			continue
		}
		part = append(part, n)
	}
	var out [][]node
	for _, a := range append(parts, part) {
		if len(a) == 1 && a[0].kind == groupNode && !a[0].isQuery() {
			out = append(out, splitAtAnd(a[0].kids)...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

// parseEquality parses a condition of the form organisation_id = x, where x is a parameter or another organisation_id. It returns the tables on both
// sides. If one side is a parameter, its table is nil, and `parameter` is the index of the argument. For other conditions, ok is false.
func (b *block) parseEquality(nodes []node) (left, right *tableUse, parameter int, ok bool) {
	sides := splitAt(nodes, func(n node) bool { return n.isMark("=") })
	if len(sides) != 2 {
		return nil, nil, 0, false
	}
	var tables [2]*tableUse
	for i, side := range sides {
		if index, isParameter := parseParameter(side); isParameter {
			parameter = index
		} else if tables[i] = b.findTableOfColumn(side); tables[i] == nil {
			return nil, nil, 0, false
		}
	}
	return tables[0], tables[1], parameter, tables[0] != tables[1]
}

// findTableOfColumn returns the table to which a column organisation_id belongs, or nil if it finds
// none. The parameter "nodes" is the parsed name of the column.
func (b *block) findTableOfColumn(nodes []node) *tableUse {
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
