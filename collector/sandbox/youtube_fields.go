package sandbox

import (
	"fmt"
	"strings"
)

// fields is a parsed field mask of Google's APIs, such as "a,b/c". It maps each selected member to the
// mask for its value. An empty mask selects everything.
type fields map[string]fields

// parseFields parses a field mask. An error contains the text of the mask from its first invalid character on.
func parseFields(mask string) (fields, error) {
	out := fields{}
	rest, err := out.addMembers(mask)
	if err == nil && rest != "" {
		err = invalidFieldMask(rest)
	}
	return out, err
}

// invalidFieldMask returns Google's error for an invalid field mask. The error contains the mask from its first invalid character on.
func invalidFieldMask(invalid string) error {
	return fmt.Errorf("Invalid field selection %s", invalid) //nolint:staticcheck // Google's wording
}

// addMembers adds the members of a field mask to f. It returns the text after the last member.
// In a valid nested mask, this text begins with ")".
func (f fields) addMembers(mask string) (unparsed string, err error) {
	for {
		end := strings.IndexAny(mask, ",/()")
		if end < 0 {
			end = len(mask)
		}
		name := strings.TrimSpace(mask[:end])
		if name == "" {
			return "", invalidFieldMask(mask)
		}
		below := f[name]
		if below == nil {
			below = fields{}
			f[name] = below
		}
		mask = mask[end:]
		// The path "a/b/c" means the same as "a(b(c))".
		for strings.HasPrefix(mask, "/") {
			end = strings.IndexAny(mask[1:], ",/()")
			if end < 0 {
				end = len(mask) - 1
			}
			name = strings.TrimSpace(mask[1 : 1+end])
			if name == "" {
				return "", invalidFieldMask(mask)
			}
			next := fields{}
			below[name] = next
			below, mask = next, mask[1+end:]
		}
		if strings.HasPrefix(mask, "(") {
			if mask, err = below.addMembers(mask[1:]); err != nil {
				return "", err
			}
			if !strings.HasPrefix(mask, ")") {
				return "", invalidFieldMask("(")
			}
			mask = mask[1:]
		}
		if !strings.HasPrefix(mask, ",") {
			return mask, nil
		}
		mask = mask[1:]
	}
}

// selectFrom returns the parts of a decoded JSON value that the mask selects. It applies the mask to each element of a list.
func (f fields) selectFrom(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = f.selectFrom(element)
		}
		return out
	case object:
		out := object{}
		for name, member := range v {
			below, ok := f[name]
			if !ok {
				below, ok = f["*"]
			}
			if !ok {
				continue
			}
			if len(below) > 0 {
				member = below.selectFrom(member)
			}
			out[name] = member
		}
		return out
	}
	return value
}
