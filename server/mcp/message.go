package mcp

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	// maxMessageDepth is the maximum nesting depth of arrays and objects in a JSON-RPC message.
	maxMessageDepth = 64
	// maxMessageValues is the maximum number of JSON values in a JSON-RPC message. A valid message has far fewer, because the longest array
	// in a request has 500 entries.
	maxMessageValues = 10_000
)

// checkMessage refuses a JSON-RPC batch, and a message that would need too much memory to decode.
// It does not check that the message is valid JSON.
func checkMessage(body []byte) error {
	body = bytes.TrimLeft(body, " \t\r\n")
	depth, values := 0, 1
	inString, escaped := false, false
	for _, b := range body {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = b == '\\', b != '"'
		case b == '"':
			inString = true
		case b == '[', b == '{':
			depth++
			values++
		case b == ']', b == '}':
			depth--
		case b == ',':
			values++
		}
		if depth > maxMessageDepth {
			return fmt.Errorf("the JSON-RPC message is nested deeper than %d levels", maxMessageDepth)
		}
		if values > maxMessageValues {
			return fmt.Errorf("the JSON-RPC message has more than %d values", maxMessageValues)
		}
	}
	if len(body) > 0 && body[0] == '[' {
		return errors.New("a JSON-RPC batch is not supported; send one message per request")
	}
	return nil
}
