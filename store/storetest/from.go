package storetest

import (
	"errors"
	"fmt"
)

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
		joined := b.uses[before:]
		switch {
		case i < len(nodes) && nodes[i].isKeyword("on"):
			end := i + 1
			for end < len(nodes) && !nodes[end].isMark(",") && !isJoin(nodes, end) {
				end++
			}
			on := condition{nodes: nodes[i+1 : end]}
			if left {
				on.tables = joined
			}
			b.conditions = append(b.conditions, on)
			i = end
		case i+1 < len(nodes) && nodes[i].isKeyword("using"):
			if containsOrganisationID(nodes[i+1].kids) {
				b.addUsing(b.uses[:before], joined)
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

// addUsing adds the restrictions by a join with USING (organisation_id): the joined tables have the same organisation_id as the earlier tables.
func (b *block) addUsing(earlier, joined []*tableUse) {
	for _, table := range joined {
		for _, equal := range earlier {
			b.restrictions = append(b.restrictions, restriction{table, equal})
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
// the result to the block and returns the index of the first node after it.
func (b *block) parseTable(nodes []node, i int) (int, error) {
	lateral := false
	for i < len(nodes) && nodes[i].isKeyword("only", "lateral") {
		lateral = lateral || nodes[i].isKeyword("lateral")
		i++
	}
	if i >= len(nodes) {
		return 0, errors.New("a FROM clause lacks the name of a table")
	}
	u := &tableUse{}
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
			u.restricted = list && !b.isRouted()
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
