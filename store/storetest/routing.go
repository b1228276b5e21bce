package storetest

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Nodes says which nodes of a Citus cluster run a statement.
type Nodes string

// The nodes that can run a statement.
const (
	// ShardNodes means that one worker runs the statement: the worker with the shard of the organisation.
	ShardNodes Nodes = "one shard"
	// MixedNodes means that two nodes run the statement: the worker with the shard of the organisation, and the coordinator.
	MixedNodes Nodes = "one shard, and the coordinator"
	// AnyNode means that any single node can run the statement, because it writes nothing and reads only reference tables.
	AnyNode Nodes = "any node"
	// AllNodesReference means that all nodes run the statement, because it writes or locks rows of a reference table.
	AllNodesReference Nodes = "all nodes (reference table)"
	// CoordinatorNode means that the coordinator runs the statement.
	CoordinatorNode Nodes = "coordinator"
	// DefinitionNodes means that all nodes run the statement, because it changes the definition of a table.
	DefinitionNodes Nodes = "all nodes (table definition)"
)

// The patterns below match statements that write or lock rows, and statements that change the definition of a table. The last one matches the names
// of the partitions of snapshots_daily.
var (
	rowWrites   = regexp.MustCompile(`(?i)\b(INSERT INTO|UPDATE|DELETE FROM|FOR UPDATE|FOR SHARE)\b`)
	definitions = regexp.MustCompile(`(?i)^\s*(CREATE|ALTER|DROP|LOCK)\b`)
	monthTables = regexp.MustCompile(`snapshots_daily_\d+`)
)

// NodesOf returns the Citus nodes that run a statement, and the sorted names of the statement's
// tables. The error is the error of CheckRouting.
func NodesOf(statement string) (Nodes, []string, error) {
	if definitions.MatchString(statement) {
		names := strings.FieldsFunc(monthTables.ReplaceAllString(statement, "snapshots_daily"), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
		slices.Sort(names)
		return DefinitionNodes, slices.DeleteFunc(slices.Compact(names), func(name string) bool { _, known := Tables[name]; return !known }), nil
	}
	if err := CheckRouting(statement); err != nil {
		return "", nil, err
	}
	root := &block{statement: &statementInfo{}}
	if err := checkEachStatement(statement, root); err != nil {
		return "", nil, err
	}
	var tables []string
	has := map[TableClass]bool{}
	for _, name := range root.statement.tables {
		name = monthTables.ReplaceAllString(name, "snapshots_daily")
		if described, known := Tables[name]; known {
			has[described.Class] = true
			tables = append(tables, name)
		}
	}
	slices.Sort(tables)
	tables = slices.Compact(tables)
	switch {
	case has[Distributed] && has[Coordinator]:
		return MixedNodes, tables, nil
	case has[Distributed]:
		return ShardNodes, tables, nil
	case has[Coordinator]:
		return CoordinatorNode, tables, nil
	case rowWrites.MatchString(statement):
		return AllNodesReference, tables, nil
	}
	return AnyNode, tables, nil
}
