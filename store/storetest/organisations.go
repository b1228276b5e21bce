package storetest

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// statementInfo has facts about a statement. They are collected while each query in the statement is checked.
type statementInfo struct {
	organisations []int    // index of each argument that is the id of an organisation
	tables        []string // names of the tables in the statement; a name can occur several times
}

// wholeStatement returns the facts about the statement to which the block belongs.
func (b *block) wholeStatement() *statementInfo {
	for b.outer != nil {
		b = b.outer
	}
	return b.statement
}

// addTable records that the statement names a table.
func (i *statementInfo) addTable(name string) {
	i.tables = append(i.tables, name)
}

// addOrganisation records that the argument with the given index is an organisation.
func (i *statementInfo) addOrganisation(argument int) {
	i.organisations = append(i.organisations, argument)
}

// addInsertedOrganisations records the parameters that an INSERT writes to the column
// organisation_id. The parameter "source" is the part of the INSERT with VALUES or SELECT.
func (b *block) addInsertedOrganisations(columns, source []node) {
	at := 0
	for i, column := range splitAt(columns, isComma) {
		if containsOrganisationID(column) {
			at = i
		}
	}
	add := func(values []node) {
		fields := splitAt(values, isComma)
		if at >= len(fields) {
			return
		}
		if p, ok := parseParameter(fields[at]); ok {
			b.wholeStatement().addOrganisation(p)
		}
	}
	switch {
	case len(source) == 0:
	case source[0].isKeyword("values"):
		// On SQLite and PostgreSQL, one INSERT may insert rows of several organisations.
		if !b.isRouted() {
			return
		}
		for _, row := range source[1:] {
			if row.kind == groupNode {
				add(row.kids)
			}
		}
	case source[0].isKeyword("select"):
		add(source[1:keywordAt(source, "from")])
	}
}

// errSeveralOrganisations reports that a statement has parameters with different organisations.
var errSeveralOrganisations = errors.New("the statement has parameters of several organisations")

// checkArguments returns an error unless all arguments that are organisations are present and equal.
// If args is empty, it returns nil.
func (i *statementInfo) checkArguments(args []any) error {
	if len(args) == 0 || len(i.organisations) == 0 {
		return nil
	}
	first := ""
	for n, at := range i.organisations {
		if at < 0 || at >= len(args) {
			return fmt.Errorf("the statement has no argument for the parameter %d", at+1)
		}
		text, err := argumentText(args[at])
		switch {
		case err != nil:
			return err
		case n == 0:
			first = text
		case text != first:
			return fmt.Errorf("%w: %s and %s", errSeveralOrganisations, first, text)
		}
	}
	return nil
}

// argumentText returns the text of an argument, so that the ids of organisations can be compared although their types in Go differ.
func argumentText(arg any) (string, error) {
	switch v := arg.(type) {
	case pgtype.UUID:
		return uuid.UUID(v.Bytes).String(), nil
	case driver.Valuer:
		value, err := v.Value()
		return fmt.Sprint(value), err
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.Pointer && !v.IsNil() {
		return argumentText(v.Elem().Interface())
	}
	return fmt.Sprint(arg), nil
}
