package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// maxID is the highest absolute value of an id that is a number. The SDK decodes numbers as float64, which would change a higher number.
const maxID int64 = 1<<53 - 1

// checkMessage refuses a JSON-RPC batch, and a message whose id the SDK would change in the response.
func checkMessage(body []byte) error {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return errors.New("a JSON-RPC batch is not supported; send one message per request")
	}
	var members map[string]json.RawMessage // a map, because the names of members are case-sensitive
	if err := json.Unmarshal(body, &members); err != nil {
		return errors.New("the message must be a JSON object")
	}
	id, ok := members["id"]
	if !ok || id[0] == '"' {
		return nil
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n > maxID || n < -maxID {
		const maxShown = 100
		return fmt.Errorf("the id must be a string or an integer from %d to %d, without fraction or exponent, not %s", -maxID, maxID, truncate(string(id), maxShown))
	}
	return nil
}
