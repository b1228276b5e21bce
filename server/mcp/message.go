package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// These are the beginnings of the plain-text errors with which the SDK refuses a message before it dispatches the message to a method.
const (
	methodNotHandled = "JSON RPC not handled"
	invalidRequest   = "invalid request"
)

// responseWriter is the http.ResponseWriter for the response to one message. It keeps an error in plain text, which is not a message of JSON-RPC.
type responseWriter struct {
	http.ResponseWriter
	started     bool         // true if WriteHeader was called
	errorStatus int          // status of an error in plain text; 0 for any other response
	errorText   bytes.Buffer // the error in plain text
}

func (w *responseWriter) WriteHeader(status int) {
	if w.started {
		return
	}
	w.started = true
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.errorStatus = status
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.errorStatus != 0 {
		return w.errorText.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// finish sends an error that the SDK has written in plain text as a JSON-RPC error, because the response to a call must have the call's id. If this
// is not possible, finish returns the error. It does nothing if the SDK has written no such error.
func (w *responseWriter) finish(message []byte) *Refusal {
	if w.errorStatus == 0 {
		return nil
	}
	w.Header().Del("Content-Type")
	reason := strings.TrimSpace(w.errorText.String())
	var response []byte
	if w.errorStatus == http.StatusBadRequest {
		response = encodeCallError(message, reason)
	}
	if response == nil {
		return &Refusal{w.errorStatus, reason}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.ResponseWriter.Write(response) // an error means that the client has closed the connection
	return nil
}

// encodeCallError converts the SDK's plain-text error `reason` into a JSON-RPC error. The result is
// nil if the error must stay plain text.
func encodeCallError(message []byte, reason string) []byte {
	decoded, err := jsonrpc.DecodeMessage(message)
	call, ok := decoded.(*jsonrpc.Request)
	if err != nil || !ok || !call.IsCall() {
		return nil
	}
	refusal := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: truncate(reason, maxReason)}
	switch {
	case strings.HasPrefix(reason, methodNotHandled):
		refusal.Code, refusal.Message = jsonrpc.CodeMethodNotFound, "method not found: "+quoteText(call.Method)
	case !strings.HasPrefix(reason, invalidRequest):
		// The error concerns neither the method nor the params of the call.
		return nil
	}
	response, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: call.ID, Error: refusal})
	if err != nil {
		return nil
	}
	return response
}
