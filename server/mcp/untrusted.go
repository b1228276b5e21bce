package mcp

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// untrustedText says which parts of a JSON value are text that other people wrote, for example the caption of a video. The contract marks
// such parts with x-foreign-text. If no part of the value is such text, the *untrustedText is nil.
type untrustedText struct {
	self    bool                      // true if the JSON value is itself text that other people wrote
	items   *untrustedText            // if the JSON value is an array: the parts of each entry that other people wrote
	members map[string]*untrustedText // if the JSON value is an object: the parts of each member that other people wrote, by the member's name
}

// findUntrustedText returns which parts of a JSON value with the schema ref are text that other people wrote. It returns nil if no part is
// such text. depth is the nesting depth of the schema. findUntrustedText fails if the schema nests deeper than maxDepth.
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
		return nil, nil //nolint:nilnil // nil means that other people wrote no part of the JSON value
	}
	return found, nil
}

// merge returns the union of f and other: the parts of a JSON value that f or other describes as text that other people wrote. f and other
// can be nil.
func (f *untrustedText) merge(other *untrustedText) *untrustedText {
	switch {
	case f == nil:
		return other
	case other == nil:
		return f
	}
	out := &untrustedText{self: f.self || other.self, items: f.items.merge(other.items), members: maps.Clone(f.members)}
	for name, member := range other.members {
		out.members[name] = out.members[name].merge(member)
	}
	return out
}

// pointers returns the sorted JSON pointers (RFC 6901) of all parts that other people wrote, such as "/data/*/title". The * means every
// entry of an array.
func (f *untrustedText) pointers() []string {
	var out []string
	f.walk("", func(pointer string) { out = append(out, pointer) })
	slices.Sort(out)
	return out
}

// walk calls visit with the JSON pointer of each part that other people wrote. at is the JSON pointer of the JSON value that f describes.
func (f *untrustedText) walk(at string, visit func(pointer string)) {
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

// marks are the strings that enclose text that other people wrote, such as captions. Each result has new random marks, so that the author
// of the text cannot write the closing mark.
type marks struct{ open, end string }

// newMarks returns new random marks, such as "<foreign-k3j5x8q2ma>" and "</foreign-k3j5x8q2ma>".
func newMarks() marks {
	tag := "foreign-" + strings.ToLower(rand.Text()[:10])
	return marks{open: "<" + tag + ">", end: "</" + tag + ">"}
}

// mark encloses each part of v that other people wrote in the marks m. v is a value decoded by encoding/json. mark changes arrays and
// objects in place and returns the changed value. It also returns true if it enclosed at least one text.
func (f *untrustedText) mark(v any, m marks) (any, bool) {
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
