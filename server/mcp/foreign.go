package mcp

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// foreignText tells which parts of a value are text that was written by strangers, as marked with x-foreign-text in the contract. A nil
// foreignText means that no part is.
type foreignText struct {
	self    bool // the value itself is foreign text
	items   *foreignText
	members map[string]*foreignText
}

// findForeignText returns the foreign text of a schema.
func findForeignText(ref *openapi3.SchemaRef, depth int) (*foreignText, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the schema is nested deeper than %d levels", maxDepth)
	}
	s := ref.Value
	self, _ := s.Extensions["x-foreign-text"].(bool)
	found := &foreignText{self: self, members: map[string]*foreignText{}}
	if s.Items != nil {
		items, err := findForeignText(s.Items, depth+1)
		if err != nil {
			return nil, err
		}
		found.items = items
	}
	for name, p := range s.Properties {
		member, err := findForeignText(p, depth+1)
		if err != nil {
			return nil, err
		}
		if member != nil {
			found.members[name] = member
		}
	}
	for _, alternative := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		other, err := findForeignText(alternative, depth+1)
		if err != nil {
			return nil, err
		}
		found = found.merge(other)
	}
	if !found.self && found.items == nil && len(found.members) == 0 {
		return nil, nil //nolint:nilnil // nil means no foreign text
	}
	return found, nil
}

// merge returns the union of two.
func (f *foreignText) merge(other *foreignText) *foreignText {
	switch {
	case f == nil:
		return other
	case other == nil:
		return f
	}
	out := &foreignText{self: f.self || other.self, items: f.items.merge(other.items), members: maps.Clone(f.members)}
	for name, member := range other.members {
		out.members[name] = out.members[name].merge(member)
	}
	return out
}

// pointers returns the sorted JSON pointers (RFC 6901) of the foreign text. In them, * means every entry of an array.
func (f *foreignText) pointers() []string {
	var out []string
	f.walk("", func(pointer string) { out = append(out, pointer) })
	slices.Sort(out)
	return out
}

// walk calls visit with the pointer of each part that is foreign text.
func (f *foreignText) walk(at string, visit func(pointer string)) {
	if f == nil {
		return
	}
	if f.self {
		visit(at)
	}
	f.items.walk(at+"/*", visit)
	for name, member := range f.members {
		member.walk(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), visit)
	}
}

// marks enclose foreign text in one result. They are random, so that the author of the text cannot insert a closing mark.
type marks struct{ open, end string }

func newMarks() marks {
	tag := "foreign-" + strings.ToLower(rand.Text()[:10])
	return marks{open: "<" + tag + ">", end: "</" + tag + ">"}
}

// mark encloses the foreign text of a value, decoded by encoding/json, in marks. It returns true if there was foreign text.
func (f *foreignText) mark(v any, m marks) (any, bool) {
	if f == nil {
		return v, false
	}
	found := false
	switch v := v.(type) {
	case string:
		if f.self && v != "" {
			return m.open + v + m.end, true
		}
	case []any:
		for i := range v {
			marked, changed := f.items.mark(v[i], m)
			v[i], found = marked, found || changed
		}
	case map[string]any:
		for name, member := range f.members {
			if child, ok := v[name]; ok {
				marked, changed := member.mark(child, m)
				v[name], found = marked, found || changed
			}
		}
	}
	return v, found
}
