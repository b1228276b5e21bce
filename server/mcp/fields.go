package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// defaultLimit is the page size if a tool call has no limit. It is lower than the API's default,
// because a model reads every entry.
const defaultLimit = 20

const (
	// fieldsArgument is the name of the argument that selects the members of list entries.
	fieldsArgument = "fields"
	// allFields is the value in fieldsArgument that selects every member.
	allFields = "all"
	// maskedMember is the name of a member that selectFields never removes. Without this member, a
	// model would mistake masked counts for unknown counts.
	maskedMember = "metrics_masked"
	// dataMember is the name of the member that contains the entries of a page.
	dataMember = "data"
)

// entry describes the entries of the list that a tool returns.
type entry struct {
	members  []string // names of the members of an entry, sorted
	defaults []string // names of the members that an entry has if a call does not send the argument "fields"; nil means all members
}

// findEntry returns the members and the default members of a list entry. The default members come
// from x-tool-fields in the entry's schema.
func findEntry(responses *openapi3.Responses) (*entry, error) {
	for _, form := range resultSchemas(responses) {
		list := form.Value.Properties[dataMember]
		if list == nil || list.Value.Items == nil {
			continue
		}
		schema := list.Value.Items.Value
		e := &entry{members: slices.Sorted(maps.Keys(schema.Properties))}
		stated, _ := schema.Extensions["x-tool-fields"].([]any)
		for _, v := range stated {
			name, _ := v.(string)
			if !slices.Contains(e.members, name) {
				return nil, fmt.Errorf("x-tool-fields: an entry has no member '%v'", v)
			}
			e.defaults = append(e.defaults, name)
		}
		return e, nil
	}
	return nil, errors.New("the operation has the parameter 'limit', but its response has no array named 'data'")
}

// selectionArgument returns the argument that selects the members of each entry.
func (e *entry) selectionArgument() argument {
	schema := map[string]any{"type": openapi3.TypeArray,
		"items":       map[string]any{"type": openapi3.TypeString, "enum": append([]string{allFields}, e.members...)},
		"description": "The members that each entry has."}
	a := argument{name: fieldsArgument, in: inResult, schema: schema}
	if e.defaults != nil {
		schema["default"] = e.defaults
		a.defaultValue, _ = json.Marshal(e.defaults) // Marshal cannot fail for a list of strings
	}
	return a
}

// readFields returns the names of the members that the argument "fields" selects. It returns nil if the argument selects all members.
func (e *entry) readFields(raw json.RawMessage) ([]string, *Fault) {
	refuse := func(code, format string, args ...any) ([]string, *Fault) {
		return nil, &Fault{fieldsArgument, code, fmt.Sprintf(format, args...)}
	}
	var names []any
	if err := json.Unmarshal(raw, &names); err != nil {
		return refuse(faultType, "%s must be an array of names, such as [%q]", fieldsArgument, e.members[0])
	}
	if len(names) == 0 {
		return refuse(faultEmpty, "%s must not be empty; leave it out for the default, or send [%q]", fieldsArgument, allFields)
	}
	selected := make([]string, 0, len(names))
	for _, v := range names {
		name, ok := v.(string)
		if !ok || name != allFields && !slices.Contains(e.members, name) {
			text, _ := json.Marshal(v) // Marshal cannot fail, because v was decoded from JSON
			return refuse(faultEnum, "%.100s in %s is not allowed; allowed are %s, or %s for every member",
				text, fieldsArgument, strings.Join(e.members, ", "), allFields)
		}
		selected = append(selected, name)
	}
	if slices.Contains(selected, allFields) {
		return nil, nil
	}
	return selected, nil
}

// setPageDefaults sets the default value of the argument "limit", and makes the argument "paginated" always true. A list without pagination
// data would be cut at the limit, and a model could not see that. setPageDefaults changes arguments and returns them.
func setPageDefaults(arguments []argument) []argument {
	for i := range arguments {
		a := &arguments[i]
		switch {
		case a.isLimit():
			a.setDefault(defaultLimit)
		case a.in == openapi3.ParameterInQuery && a.requestName == "paginated":
			a.setDefault(true)
			a.isFixed = true
		}
	}
	return arguments
}

// setDefault sets the value that is used if a call lacks the argument.
func (a *argument) setDefault(value any) {
	a.defaultValue, _ = json.Marshal(value) // Marshal cannot fail for a number or a boolean
	a.schema["default"] = value
}

// entriesOf returns the entries of the list in the data of a result. It returns nil if the data is not a list.
func entriesOf(value map[string]any) []any {
	for _, name := range []string{dataMember, itemsMember} {
		if list, ok := value[name].([]any); ok {
			return list
		}
	}
	return nil
}

// selectFields removes members from the entries. Each entry keeps only maskedMember and the members in selectedNames.
func selectFields(entries []any, selectedNames []string) {
	for _, e := range entries {
		if members, ok := e.(map[string]any); ok {
			maps.DeleteFunc(members, func(name string, _ any) bool {
				return name != maskedMember && !slices.Contains(selectedNames, name)
			})
		}
	}
}
