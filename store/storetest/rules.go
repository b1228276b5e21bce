package storetest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// CheckStatement returns an error if a statement breaks one of these rules:
//   - Each SELECT, UPDATE or DELETE restricts its distributed tables to one organisation: see restrictTables. Both halves of a recursive query
//     must do so.
//   - An INSERT into a distributed table names organisation_id in its columns. If it has an ON CONFLICT clause, the clause must have a
//     conflict target that names organisation_id.
//   - No statement changes an organisation_id.
//   - No value comes from a clock, a random function or a sequence of the database.
//   - Every table is listed in Tables, and the parser can read the whole statement.
//   - All parameters with which an organisation_id is compared have the same value. This rule is checked only if args is not empty.
func CheckStatement(statement string, args ...any) error {
	facts, err := checkText(statement)
	if err == nil {
		err = facts.checkArguments(args)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, statement)
	}
	return nil
}

// textResult is the result of checkText.
type textResult struct {
	facts *statementInfo
	err   error
}

// textResults has a textResult for each statement that checkText has checked.
var textResults sync.Map

// checkText checks the rules of CheckStatement that do not depend on the arguments. It checks each text only once, because without this, the tests of
// a database would spend a quarter of their CPU time here.
func checkText(statement string) (*statementInfo, error) {
	known, found := textResults.Load(statement)
	if !found {
		facts := &statementInfo{}
		err := checkEachStatement(statement, &block{statement: facts})
		known, _ = textResults.LoadOrStore(statement, textResult{facts, err})
	}
	result := known.(textResult)
	return result.facts, result.err
}

// CheckRouting returns an error if Citus might send a statement to more than one shard. It checks the rules of CheckStatement and these
// rules:
//   - Each query and each subquery with distributed tables compares an organisation_id of these tables with a parameter. A comparison with a
//     list or with a table of an enclosing query is not enough.
//   - An INSERT into a distributed table has VALUES, or selects rows from a distributed table.
//   - The inserted rows and the conditions of a statement name the same organisation. This rule is checked only if args is not empty.
func CheckRouting(statement string, args ...any) error {
	facts := &statementInfo{}
	err := checkEachStatement(statement, &block{routed: true, statement: facts})
	if err == nil {
		err = facts.checkArguments(args)
	}
	if err != nil {
		return fmt.Errorf("the statement is possibly sent to several shards of Citus: %w: %s", err, statement)
	}
	return nil
}

// organisationID is the name of the column by which distributed tables are sharded.
const organisationID = "organisation_id"

// checkEachStatement checks all statements in a text, which are separated by ";". The block "root"
// encloses every statement.
func checkEachStatement(statement string, root *block) error {
	nodes, err := parseStatement(statement)
	if err != nil {
		return err
	}
	if err := checkFunctions(nodes); err != nil {
		return err
	}
	for _, one := range splitAt(nodes, func(n node) bool { return n.isMark(";") }) {
		if err := checkParsedStatement(one, root); err != nil {
			return err
		}
	}
	return nil
}

// volatileFunctions and volatileWords match the functions and keywords whose result depends on a clock, a random number or a sequence.
var (
	volatileFunctions = regexp.MustCompile(`^(now|random|randomblob|setseed|timeofday|gen_random_\w+|uuid\w+|\w+_timestamp|nextval|currval|last_insert_rowid|changes` +
		`|date|time|datetime|julianday|unixepoch|strftime)$`)
	volatileWords = regexp.MustCompile(`^(current_(date|time|timestamp)|localtime|localtimestamp)$`)
)

// checkFunctions returns an error if the nodes contain a function or keyword whose result depends on a clock, a random number or a sequence.
func checkFunctions(nodes []node) error {
	for i, n := range nodes {
		if n.kind == groupNode {
			if err := checkFunctions(n.kids); err != nil {
				return err
			}
			continue
		}
		called := i+1 < len(nodes) && nodes[i+1].kind == groupNode
		if n.isName() && called && volatileFunctions.MatchString(n.text) || n.kind == wordNode && !n.quoted && volatileWords.MatchString(n.text) {
			return fmt.Errorf("%q is not allowed: pass times and random values as parameters", n.text)
		}
	}
	return nil
}

// checkParsedStatement checks one statement, or one query in a statement. outer is the enclosing query, or nil.
func checkParsedStatement(nodes []node, outer *block) error {
	if len(nodes) == 0 {
		return nil
	}
	switch first := nodes[0]; {
	case first.isKeyword("with"):
		return checkWITHClause(nodes[1:], outer)
	case first.isKeyword("select", "values"), first.isQuery():
		return checkQuery(nodes, outer)
	case first.isKeyword("insert"):
		return checkInsert(nodes, outer)
	case first.isKeyword("update"):
		return checkUpdate(nodes, outer)
	case first.isKeyword("delete"):
		return checkDelete(nodes, outer)
	case first.isKeyword("explain"):
		return checkParsedStatement(nodes[keywordAt(nodes, "with", "select", "insert", "update", "delete"):], outer)
	case first.isKeyword("create"):
		return checkDefinition(nodes)
	case first.isKeyword("savepoint", "release", "rollback"):
		return nil
	case first.isKeyword("set", "lock", "drop", "alter"):
		return checkMaintenance(nodes)
	default:
		return fmt.Errorf("a statement begins with %q, which is not allowed", first.text)
	}
}

// checkMaintenance checks SET, LOCK, DROP and ALTER, which change no rows. It allows them only for monthly partitions,
// constraints, timeouts and settings of Citus.
func checkMaintenance(nodes []node) error {
	switch {
	case nodes[0].isKeyword("set") && len(nodes) > 2 && nodes[1].isKeyword("local") && nodes[2].isKeyword("lock_timeout", "statement_timeout", "citus"):
		return nil
	case nodes[0].isKeyword("lock", "drop") && len(nodes) > 2 && nodes[1].isKeyword("table") && partitions.MatchString(nodes[2].text) && (nodes[0].isKeyword("lock") || len(nodes) == 3):
		return nil
	case nodes[0].isKeyword("alter") && len(nodes) > 5 && nodes[1].isKeyword("table") && nodes[2].isKeyword("snapshots_daily") && nodes[3].isKeyword("attach") &&
		nodes[4].isKeyword("partition") && partitions.MatchString(nodes[5].text):
		return nil
	case nodes[0].isKeyword("alter") && len(nodes) > 5 && nodes[1].isKeyword("table") && nodes[3].isKeyword("add", "drop") && nodes[4].isKeyword("constraint") && !hasQuery(nodes):
		return nil
	}
	return fmt.Errorf("%s is allowed only to change the partition of one month, to add or drop a constraint, and to set a timeout or a setting of Citus for the transaction", strings.ToUpper(nodes[0].text))
}

// checkDefinition checks CREATE. It returns nil for CREATE TABLE, unless the statement copies rows of other tables.
func checkDefinition(nodes []node) error {
	if len(nodes) < 2 || !nodes[1].isKeyword("table") || keywordAt(nodes, "as", "select") < len(nodes) || hasQuery(nodes) {
		return errors.New("a CREATE statement creates something other than a table, or copies rows")
	}
	return nil
}

// checkWITHClause checks the queries of a WITH clause and the statement after the clause. The nodes
// begin after the word WITH.
func checkWITHClause(nodes []node, outer *block) error {
	b := &block{outer: outer, names: map[string]bool{}}
	if len(nodes) > 0 && nodes[0].isKeyword("recursive") {
		nodes = nodes[1:]
	}
	// Each iteration reads one query: name [(columns)] AS [[NOT] MATERIALIZED] (query)
	for {
		as := keywordAt(nodes, "as")
		if as == len(nodes) || !nodes[0].isName() {
			return errors.New("cannot read the WITH clause")
		}
		body := slices.IndexFunc(nodes[as:], func(n node) bool { return n.kind == groupNode }) + as
		if body < as {
			return errors.New("a WITH clause has a name without a query")
		}
		columns := nodes[1:as]
		if len(columns) == 1 {
			columns = columns[0].kids
		}
		list := isParameterList(nodes[body].kids)
		b.names[nodes[0].text] = list && containsOrganisationID(columns)
		if !list {
			if err := checkParsedStatement(nodes[body].kids, b); err != nil {
				return err
			}
		}
		nodes = nodes[body+1:]
		if len(nodes) == 0 || !nodes[0].isMark(",") {
			return checkParsedStatement(nodes, b)
		}
		nodes = nodes[1:]
	}
}

// checkQuery checks SELECT and VALUES, and combinations of them with UNION, INTERSECT or EXCEPT.
func checkQuery(nodes []node, outer *block) error {
	// Both halves of a recursive query must restrict their tables to one organisation.
	for _, part := range splitAt(nodes, func(n node) bool { return n.isKeyword("union", "intersect", "except") }) {
		if len(part) > 0 && part[0].isKeyword("all", "distinct") {
			part = part[1:]
		}
		switch {
		case len(part) == 0:
			return errors.New("one side of a UNION, INTERSECT or EXCEPT is missing")
		case part[0].isKeyword("select"):
			if err := checkSelect(part, outer); err != nil {
				return err
			}
		case part[0].isKeyword("values"), part[0].isQuery():
			if err := (&block{outer: outer}).checkSubqueries(part); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a query begins with %q, which is not allowed", part[0].text)
		}
	}
	return nil
}

// checkSelect returns an error unless the conditions of a SELECT restrict each distributed table to one organisation: see restrictTables.
func checkSelect(nodes []node, outer *block) error {
	clauses, err := splitAtKeywords(nodes, "select", "from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "returning")
	if err != nil {
		return err
	}
	b := &block{outer: outer}
	if from, ok := clauses["from"]; ok {
		if err := b.parseFrom(from); err != nil {
			return err
		}
	}
	b.conditions = append(b.conditions, condition{nodes: clauses["where"]})
	delete(clauses, "from")
	return b.checkConditions(clauses)
}

// checkUpdate returns an error unless the conditions of an UPDATE restrict each distributed table to one organisation. It also returns an
// error if the UPDATE changes an organisation_id.
func checkUpdate(nodes []node, outer *block) error {
	clauses, err := splitAtKeywords(nodes, "update", "set", "from", "where", "returning")
	if err != nil {
		return err
	}
	b := &block{outer: outer}
	if err := b.parseFrom(clauses["update"]); err != nil {
		return err
	}
	if from, ok := clauses["from"]; ok {
		if err := b.parseFrom(from); err != nil {
			return err
		}
	}
	if err := checkAssignments(clauses["set"]); err != nil {
		return err
	}
	b.conditions = append(b.conditions, condition{nodes: clauses["where"]})
	delete(clauses, "update")
	delete(clauses, "from")
	return b.checkConditions(clauses)
}

// checkDelete returns an error unless the conditions of a DELETE restrict each distributed table to one organisation: see restrictTables.
func checkDelete(nodes []node, outer *block) error {
	clauses, err := splitAtKeywords(nodes, "delete", "from", "using", "where", "returning")
	if err != nil {
		return err
	}
	b := &block{outer: outer}
	for _, k := range []string{"from", "using"} {
		if tables, ok := clauses[k]; ok {
			if err := b.parseFrom(tables); err != nil {
				return err
			}
			delete(clauses, k)
		}
	}
	b.conditions = append(b.conditions, condition{nodes: clauses["where"]})
	return b.checkConditions(clauses)
}

// checkInsert checks INSERT INTO table [AS alias] (columns) source [ON CONFLICT …] [RETURNING …].
func checkInsert(nodes []node, outer *block) error {
	columns := slices.IndexFunc(nodes, func(n node) bool { return n.kind == groupNode })
	if columns < 3 || !nodes[1].isKeyword("into") {
		return errors.New("an INSERT does not name its columns")
	}
	target := &block{outer: outer}
	if err := target.parseFrom(nodes[2:columns]); err != nil {
		return err
	}
	distributed := target.uses[0].distributed
	if distributed && !containsOrganisationID(nodes[columns].kids) {
		return fmt.Errorf("the column list of an insert into %s lacks %s", target.uses[0].alias, organisationID)
	}
	rest := nodes[columns+1:]
	end := keywordAt(rest, "returning")
	for i := range rest[:end] {
		if rest[i].isKeyword("on") && i+1 < len(rest) && rest[i+1].isKeyword("conflict") {
			if err := checkConflict(rest[i+2:end], distributed); err != nil {
				return err
			}
			end = i
			break
		}
	}
	source := rest[:end]
	if distributed && len(source) > 0 && source[0].isKeyword("values") && hasQuery(source) {
		return errors.New("an INSERT has a subquery in VALUES, which is not allowed")
	}
	if len(source) > 0 && source[0].isKeyword("default") {
		return errors.New("an INSERT has DEFAULT VALUES, which is not allowed")
	}
	if err := checkParsedStatement(source, outer); err != nil {
		return err
	}
	if distributed {
		target.addInsertedOrganisations(nodes[columns].kids, source)
	}
	if distributed && outer.isRouted() && !source[0].isKeyword("values") && !selectsDistributedTable(source, outer) {
		return fmt.Errorf("an INSERT into %s selects rows without restricting them to one organisation", target.uses[0].alias)
	}
	return nil
}

// selectsDistributedTable returns true if the FROM clause of a SELECT contains a distributed table, either directly or in a subquery of the FROM
// clause.
func selectsDistributedTable(nodes []node, outer *block) bool {
	from, b := keywordAt(nodes, "from"), &block{outer: outer}
	if from == len(nodes) {
		return false
	}
	end := from + keywordAt(nodes[from:], "where", "group", "order", "limit")
	return b.parseFrom(nodes[from+1:end]) == nil && (slices.ContainsFunc(b.uses, func(u *tableUse) bool { return u.distributed }) ||
		slices.ContainsFunc(b.derived, func(d derived) bool { return selectsDistributedTable(d.query, outer) }))
}

// checkConflict checks the part of an INSERT after ON CONFLICT. distributed is true if the table of the INSERT is distributed.
func checkConflict(nodes []node, distributed bool) error {
	if distributed && (len(nodes) == 0 || nodes[0].kind != groupNode || !containsOrganisationID(nodes[0].kids)) {
		return fmt.Errorf("the conflict target of an INSERT lacks %s", organisationID)
	}
	if hasQuery(nodes) {
		return errors.New("an INSERT has a subquery in ON CONFLICT, which is not allowed")
	}
	set := keywordAt(nodes, "set")
	if set == len(nodes) {
		return nil
	}
	return checkAssignments(nodes[set+1:])
}

// checkAssignments returns an error if a SET clause changes organisation_id.
func checkAssignments(nodes []node) error {
	nodes = nodes[:keywordAt(nodes, "where")]
	for _, a := range splitAt(nodes, func(n node) bool { return n.isMark(",") }) {
		to := a[:slices.IndexFunc(append(slices.Clone(a), node{kind: markNode, text: "="}), func(n node) bool { return n.isMark("=") })]
		if containsOrganisationID(to) || len(to) == 1 && containsOrganisationID(to[0].kids) {
			return fmt.Errorf("%s of a row is changed, which is not allowed", organisationID)
		}
	}
	return nil
}

// containsOrganisationID returns true if one of the nodes is the name organisation_id.
func containsOrganisationID(nodes []node) bool {
	return slices.ContainsFunc(nodes, func(n node) bool { return n.isName() && n.text == organisationID })
}

// hasQuery returns true if the nodes contain a subquery, at any depth.
func hasQuery(nodes []node) bool {
	return slices.ContainsFunc(nodes, func(n node) bool { return n.isQuery() || hasQuery(n.kids) })
}

// splitAtKeywords maps each keyword in a statement to the nodes between this keyword and the next
// one. It returns an error if a keyword occurs twice.
func splitAtKeywords(nodes []node, keywords ...string) (map[string][]node, error) {
	clauses := map[string][]node{}
	current := ""
	for i, n := range nodes {
		isDistinctFrom := n.isKeyword("from") && i > 1 && nodes[i-1].isKeyword("distinct") && nodes[i-2].isKeyword("is", "not")
		if !n.isKeyword(keywords...) || isDistinctFrom || i > 0 && nodes[i-1].isMark(".") {
			clauses[current] = append(clauses[current], n)
			continue
		}
		if _, twice := clauses[n.text]; twice {
			return nil, fmt.Errorf("a statement has the clause %s twice", strings.ToUpper(n.text))
		}
		current = n.text
		clauses[current] = []node{}
	}
	return clauses, nil
}

// partitions matches the names of the partitions of snapshots_daily. systemTables matches tables of the engine, of Citus and of the
// migration tool.
var (
	partitions   = regexp.MustCompile(`^snapshots_daily_\d+$`)
	systemTables = regexp.MustCompile(`^(pg_\w+|sqlite_\w+|goose_\w+|citus_\w+)$`)
)

// isDistributed returns true if each statement that uses the table must name the table's organisation_id in a
// condition. It returns an error for an unknown table.
func isDistributed(table string) (bool, error) {
	described, known := Tables[table]
	// Partitions and system tables are not listed in Tables.
	if !known && !partitions.MatchString(table) && !systemTables.MatchString(table) {
		return false, fmt.Errorf("table %q is missing in db.Tables", table)
	}
	return described.Class == Distributed || partitions.MatchString(table), nil
}
