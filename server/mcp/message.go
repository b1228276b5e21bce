package mcp

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	// maxMessageDepth is the maximum nesting of arrays and objects in a message.
	maxMessageDepth = 64
	// maxMessageValues is the maximum number of values in a message. The longest array that the contract allows has 500
	// entries.
	maxMessageValues = 10_000
)

// checkMessage returns an error if body is a JSON-RPC batch, nests deeper than maxMessageDepth, or has more than maxMessageValues values.
// Decoding such a message would need too much memory. checkMessage does not decode the message or check that it is JSON.
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
			return fmt.Errorf("the message is nested deeper than %d levels", maxMessageDepth)
		}
		if values > maxMessageValues {
			return fmt.Errorf("the message has more than %d values", maxMessageValues)
		}
	}
	if len(body) > 0 && body[0] == '[' {
		return errors.New("a JSON-RPC batch is not supported; send one message per request")
	}
	return nil
}
