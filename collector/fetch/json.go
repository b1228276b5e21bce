package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxDepth is how deeply an answer may be nested. The deepest of the platforms has about fifteen levels.
const MaxDepth = 64

// MaxItems is how many items an answer may list. None of the calls asks for more than 500.
const MaxItems = 1000

var errItems = fmt.Errorf("the answer lists more than %d items", MaxItems)

// Items is a list of items that are still to be decoded, one by one, so that a broken one does not cost the others.
type Items []json.RawMessage

// UnmarshalJSON takes a list of at most MaxItems elements, or null. It stops at the first one too many: a few megabytes of
// tiny elements would otherwise take a hundred times their size.
func (items *Items) UnmarshalJSON(raw []byte) error {
	*items = nil
	if string(raw) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return errors.New("the items are no list")
	}
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

// CheckJSON says why a text is not one JSON value of a sane depth, or nil. Nothing else may read an answer before.
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
	return checkNames(text)
}

// checkNames says why the objects of a valid JSON text cannot be read in one way only: a member stands there twice. Of
// two counts one reader takes the first and another the last, and nobody knows which is true.
func checkNames(text []byte) error {
	var objects []map[string]bool // that are open, the innermost last; nil stands for a list
	named := false                // the next text is a member's name
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			objects, named = append(objects, map[string]bool{}), true
		case '[':
			objects, named = append(objects, nil), false
		case '}', ']':
			objects, named = objects[:len(objects)-1], false
		case ',':
			named = len(objects) > 0 && objects[len(objects)-1] != nil
		case '"':
			end := i + 1
			for ; text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			if named {
				name := string(text[i+1 : end])
				if strings.Contains(name, `\`) && json.Unmarshal(text[i:end+1], &name) != nil {
					return errors.New("the answer has a member without a readable name")
				}
				if objects[len(objects)-1][name] {
					return errors.New("the answer has a member twice in one object")
				}
				objects[len(objects)-1][name], named = true, false
			}
			i = end
		}
	}
	return nil
}

// checkDepth needs no valid JSON: it has to run before any parser that recurses.
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

// Count is a count as platforms send it: a JSON number or a decimal string. Decoding one never fails, so that a
// broken count costs one item and not the batch; ask Wrong afterwards.
type Count struct {
	value *int64
	wrong bool
}

// Value is the count, or nil when the key was absent, null or wrong. It is never negative.
func (c Count) Value() *int64 { return c.value }

// Wrong is true when something stood there that is no count: a fraction, a negative number or one beyond MaxCount, another type.
func (c Count) Wrong() bool { return c.wrong }

// UnmarshalJSON takes any value and returns no error.
func (c *Count) UnmarshalJSON(raw []byte) error {
	*c = Count{}
	text := string(raw)
	switch {
	case text == "null":
		return nil
	case strings.HasPrefix(text, `"`):
		if json.Unmarshal(raw, &text) != nil {
			text = ""
		}
	}
	n, ok := ParseCount(text)
	if !ok {
		c.wrong = true
		return nil
	}
	c.value = &n
	return nil
}

// MaxCount is the largest number that is taken for a count. The most viewed video has a millionth of it, and the sums of
// an organisation's counts must stay within int64, or one answer would stop all that is written with it.
const MaxCount = 10_000_000_000_000_000

// ParseCount reads a count: decimal digits alone, up to MaxCount. It does not go through float64, which would round
// what lies beyond 2^53.
func ParseCount(text string) (int64, bool) {
	if text == "" || len(text) > len("9223372036854775807") || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= MaxCount
}

// ID is an id as platforms send it: a string or an integer number of any length, kept digit by digit. Anything else
// decodes to "", without an error.
type ID string

// UnmarshalJSON takes any value and returns no error.
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

// ParseID returns text when it can be an id of some platform, that is 1 to 128 printable ASCII characters without
// spaces, and "" otherwise.
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
