package storetest

import "slices"

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
