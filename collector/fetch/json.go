package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxDepth is the deepest nesting of JSON that an answer may have. Real answers have up to about fifteen levels.
const MaxDepth = 64

// MaxItems is the largest number of items that a list in an answer may have. No source requests more than 1,000 items in one call, but an answer
// can have some more than requested, such as pinned videos.
const MaxItems = 1100

var errItems = fmt.Errorf("the answer lists more than %d items", MaxItems)

// Items is a JSON list whose items are not decoded yet. The caller decodes each item separately, so that a malformed item does not affect
// the other items.
type Items []json.RawMessage

// UnmarshalJSON accepts null, which gives nil, or a list of at most MaxItems elements. For a longer list, it returns an error and does not decode the
// further elements, because elements can need a hundred times the memory of their JSON.
func (items *Items) UnmarshalJSON(raw []byte) error {
	*items = nil
	if string(raw) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return errors.New("the items are not a list")
	}
	*items = Items{}
	for decoder.More() {
		if len(*items) == MaxItems {
			return errItems
		}
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		*items = append(*items, item)
	}
	return nil
}

// CheckJSON returns an error for invalid JSON, nesting deeper than MaxDepth or duplicate member
// names. Call CheckJSON before other functions read the answer.
func CheckJSON(text []byte) error {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) == 0 {
		return errors.New("the answer is empty")
	} else if trimmed[0] == '<' {
		return errors.New("the answer is a page of HTML or XML, not JSON")
	}
	if err := checkDepth(text); err != nil {
		return err
	}
	if !json.Valid(text) {
		return errors.New("the answer is not JSON, or was cut off")
	}
	return checkDuplicateNames(text)
}

// checkDuplicateNames returns an error if an object in a valid JSON text has two members of the same name. JSON parsers disagree about
// which of the two values is used.
func checkDuplicateNames(text []byte) error {
	var open []map[string]bool // one element for each open object or list, outermost first: for an object, the set of its member names so far; for a list, nil
	nameNext := false          // true if the next string is the name of a member
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open, nameNext = append(open, map[string]bool{}), true
		case '[':
			open, nameNext = append(open, nil), false
		case '}', ']':
			open, nameNext = open[:len(open)-1], false
		case ',':
			nameNext = len(open) > 0 && open[len(open)-1] != nil
		case '"':
			end := i + 1
			for ; text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			if nameNext {
				name := string(text[i+1 : end])
				if strings.Contains(name, `\`) && json.Unmarshal(text[i:end+1], &name) != nil {
					return errors.New("an object in the answer has a member whose name cannot be decoded")
				}
				if open[len(open)-1][name] {
					return errors.New("an object in the answer has two members with the same name")
				}
				open[len(open)-1][name], nameNext = true, false
			}
			i = end
		}
	}
	return nil
}

// checkDepth returns an error if a JSON text is nested deeper than MaxDepth. It also works for invalid JSON, because it must run before the
// JSON parser, which is recursive.
func checkDepth(text []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("the answer is nested deeper than %d levels", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// Number decodes a whole number in an answer: a JSON number or a decimal string. An invalid number causes
// no error; call Invalid to detect it.
type Number struct {
	value   *int64
	invalid bool
}

// Value returns the number. It is never negative. It is nil if the member was absent, null or invalid.
func (n Number) Value() *int64 { return n.value }

// Invalid returns true if the member had a value that is not accepted, such as a fraction, a negative number or
// another type.
func (n Number) Invalid() bool { return n.invalid }

// UnmarshalJSON accepts any JSON value and never returns an error. After an invalid value, Invalid returns true.
func (n *Number) UnmarshalJSON(raw []byte) error {
	n.decode(raw, ParseNumber)
	return nil // returning an error would make the whole answer unreadable
}

// decode sets n to the number in the JSON value raw. The function parse checks the number's text.
func (n *Number) decode(raw []byte, parse func(text string) (int64, bool)) {
	*n = Number{}
	text := string(raw)
	switch {
	case text == "null":
		return
	case strings.HasPrefix(text, `"`):
		if json.Unmarshal(raw, &text) != nil {
			text = ""
		}
	}
	value, ok := parse(text)
	if !ok {
		n.invalid = true
		return
	}
	n.value = &value
}

// Count decodes a count in an answer, such as the views. It is a Number that is invalid above MaxCount.
type Count struct{ Number }

// UnmarshalJSON accepts any JSON value and never returns an error. After an invalid value, Invalid returns true.
func (c *Count) UnmarshalJSON(raw []byte) error {
	c.decode(raw, ParseCount)
	return nil
}

// MaxCount is the largest accepted count. The most viewed video of all platforms has less than a fiftieth of it, so a higher number is
// wrong.
const MaxCount = 1_000_000_000_000

// ParseCount parses a decimal count. It returns false if the text is not a number from 0 to MaxCount.
func ParseCount(text string) (int64, bool) {
	n, ok := ParseNumber(text)
	return n, ok && n <= MaxCount
}

// ParseNumber parses a decimal number. It returns false if the text is not a whole number from 0 to the largest int64. It does not use
// float64, which would round numbers above 2^53.
func ParseNumber(text string) (int64, bool) {
	if text == "" || len(text) > len("9223372036854775807") || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// ID decodes an id in an answer: a string, or a number that consists of digits, which are used unchanged. Any other value, and an id that ParseID does
// not accept, decodes to "" without an error.
type ID string

// UnmarshalJSON accepts any JSON value and never returns an error. It sets id to "" if the value is not a valid id.
func (id *ID) UnmarshalJSON(raw []byte) error {
	*id = ""
	text := string(raw)
	if strings.HasPrefix(text, `"`) {
		if json.Unmarshal(raw, &text) != nil {
			text = ""
		}
	} else if strings.Trim(text, "0123456789") != "" {
		text = ""
	}
	*id = ID(ParseID(text))
	return nil
}

// ParseID returns the text unchanged if it has 1 to 128 printable ASCII characters and no spaces, and "" otherwise. The ids of all
// platforms have this form.
func ParseID(text string) string {
	if len(text) > 128 {
		return ""
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return ""
		}
	}
	return text
}
