package mcp

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// foreign says where in a value there is text that strangers wrote, as x-foreign-text in the contract does. A nil one says
// nowhere.
type foreign struct {
	self    bool // the value itself
	items   *foreign
	members map[string]*foreign
}

// foreignIn finds it in a schema.
func foreignIn(ref *openapi3.SchemaRef, depth int) (*foreign, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("its schema nests deeper than %d levels", maxDepth)
	}
	s := ref.Value
	self, _ := s.Extensions["x-foreign-text"].(bool)
	found := &foreign{self: self, members: map[string]*foreign{}}
	if s.Items != nil {
		items, err := foreignIn(s.Items, depth+1)
		if err != nil {
			return nil, err
		}
		found.items = items
	}
	for name, p := range s.Properties {
		member, err := foreignIn(p, depth+1)
		if err != nil {
			return nil, err
		}
		if member != nil {
			found.members[name] = member
		}
	}
	for _, alternative := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		other, err := foreignIn(alternative, depth+1)
		if err != nil {
			return nil, err
		}
		found = found.merge(other)
	}
	if !found.self && found.items == nil && len(found.members) == 0 {
		return nil, nil //nolint:nilnil // nil is the foreign that says nowhere
	}
	return found, nil
}

// merge returns what either says.
func (f *foreign) merge(other *foreign) *foreign {
	switch {
	case f == nil:
		return other
	case other == nil:
		return f
	}
	out := &foreign{self: f.self || other.self, items: f.items.merge(other.items), members: maps.Clone(f.members)}
	for name, member := range other.members {
		out.members[name] = out.members[name].merge(member)
	}
	return out
}

// pointers are the places as JSON pointers (RFC 6901), sorted, in which * is every entry of an array.
func (f *foreign) pointers() []string {
	var out []string
	f.walk("", func(pointer string) { out = append(out, pointer) })
	slices.Sort(out)
	return out
}

func (f *foreign) walk(at string, visit func(pointer string)) {
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

// marks are what foreign text stands between in one result. Whoever wrote the text cannot know them, and so cannot end them.
type marks struct{ open, end string }

func newMarks() marks {
	tag := "foreign-" + strings.ToLower(rand.Text()[:10])
	return marks{open: "<" + tag + ">", end: "</" + tag + ">"}
}

// mark returns a value, as encoding/json decodes it, with its foreign text between marks, and whether there was any.
func (f *foreign) mark(v any, m marks) (any, bool) {
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
			marked, did := f.items.mark(v[i], m)
			v[i], found = marked, found || did
		}
	case map[string]any:
		for name, member := range f.members {
			if child, ok := v[name]; ok {
				marked, did := member.mark(child, m)
				v[name], found = marked, found || did
			}
		}
	}
	return v, found
}
