package mcp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// untrustedText says which parts of a JSON value are text that other people wrote. It is nil if the
// value has no such text.
type untrustedText struct {
	self    bool                      // true if the JSON value is itself untrusted text
	items   *untrustedText            // if the JSON value is an array: the untrusted text in each entry
	members map[string]*untrustedText // if the JSON value is an object: maps the name of each member to the untrusted text in the member
}

// findUntrustedInResponses returns which parts of a tool's results are untrusted text. It fails if the JSON of a successful response is
// neither an object nor an array.
func findUntrustedInResponses(responses *openapi3.Responses) (*untrustedText, error) {
	var untrusted *untrustedText
	for _, form := range resultSchemas(responses) {
		isArray := form.Value.Type.Is(openapi3.TypeArray)
		if !isArray && !form.Value.Type.Is(openapi3.TypeObject) {
			return nil, errors.New("the response is neither an object nor an array")
		}
		found, err := findUntrustedText(form, 0)
		if err != nil {
			return nil, fmt.Errorf("response: %w", err)
		}
		if isArray && found != nil {
			found = &untrustedText{members: map[string]*untrustedText{itemsMember: found}}
		}
		untrusted = untrusted.merge(found)
	}
	return untrusted, nil
}

// findUntrustedText returns which parts of a JSON value are untrusted text, or nil if no part is. ref is the value's schema, and depth is the value's
// nesting depth.
func findUntrustedText(ref *openapi3.SchemaRef, depth int) (*untrustedText, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the schema is nested deeper than %d levels", maxDepth)
	}
	s := ref.Value
	self, _ := s.Extensions["x-foreign-text"].(bool)
	found := &untrustedText{self: self, members: map[string]*untrustedText{}}
	if s.Items != nil {
		items, err := findUntrustedText(s.Items, depth+1)
		if err != nil {
			return nil, err
		}
		found.items = items
	}
	for name, p := range s.Properties {
		member, err := findUntrustedText(p, depth+1)
		if err != nil {
			return nil, err
		}
		if member != nil {
			found.members[name] = member
		}
	}
	for _, alternative := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		other, err := findUntrustedText(alternative, depth+1)
		if err != nil {
			return nil, err
		}
		found = found.merge(other)
	}
	if !found.self && found.items == nil && len(found.members) == 0 {
		return nil, nil //nolint:nilnil // nil means that the JSON value contains no untrusted text
	}
	return found, nil
}

// merge combines f and g, which describe the same JSON value: a part of the value is untrusted if f or g says so. f and g can be nil.
func (f *untrustedText) merge(g *untrustedText) *untrustedText {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	out := &untrustedText{self: f.self || g.self, items: f.items.merge(g.items), members: maps.Clone(f.members)}
	for name, member := range g.members {
		out.members[name] = out.members[name].merge(member)
	}
	return out
}

// pointersIn returns the sorted paths of the untrusted texts in v, a decoded JSON value. A path is a JSON pointer in which * stands for every array
// index, such as "/data/*/title".
func (f *untrustedText) pointersIn(v any) []string {
	found := map[string]bool{}
	f.addPointers(v, "", found)
	return slices.Sorted(maps.Keys(found))
}

// addPointers adds the paths of the untrusted texts in v to foundPointers. ownPointer is the path of v.
func (f *untrustedText) addPointers(v any, ownPointer string, foundPointers map[string]bool) {
	if f == nil {
		return
	}
	switch v := v.(type) {
	case string:
		if f.self && v != "" {
			foundPointers[ownPointer] = true
		}
	case []any:
		for _, e := range v {
			f.items.addPointers(e, ownPointer+"/*", foundPointers)
		}
	case map[string]any:
		for name, member := range f.members {
			member.addPointers(v[name], ownPointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), foundPointers)
		}
	}
}

// memberNames returns the names of the members to which JSON pointers lead, sorted and without duplicates. For "/data/*/title" it returns
// "title".
func memberNames(pointers []string) []string {
	names := make([]string, len(pointers))
	for i, p := range pointers {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p[strings.LastIndexByte(p, '/')+1:])
	}
	slices.Sort(names)
	return slices.Compact(names)
}
