package mcp

import (
	"bytes"
	"errors"
)

// checkMessage refuses a JSON-RPC batch.
func checkMessage(body []byte) error {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return errors.New("a JSON-RPC batch is not supported; send one message per request")
	}
	return nil
}
