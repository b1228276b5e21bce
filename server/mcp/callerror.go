package mcp

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// These are the beginnings of the plain-text errors with which the SDK refuses a message before it dispatches the message to a method.
const (
	methodNotHandled = "JSON RPC not handled"
	invalidRequest   = "invalid request"
)

// mcpResponseWriter is the http.ResponseWriter for the response to one message. If the SDK refuses
// a call in plain text, mcpResponseWriter sends a JSON-RPC error instead.
type mcpResponseWriter struct {
	http.ResponseWriter
	message []byte // the JSON-RPC message
	refused bool   // true if the SDK has written status 400 for a plain-text response, but has not yet written the response body
}

// WriteHeader delays the status 400 of a plain-text response until Write receives the response body.
func (w *mcpResponseWriter) WriteHeader(status int) {
	if status == http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = true
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *mcpResponseWriter) Write(b []byte) (int, error) {
	if !w.refused {
		return w.ResponseWriter.Write(b)
	}
	w.refused = false
	// The response to a call must have the call's id, which the plain-text error lacks.
	response := encodeCallError(w.message, strings.TrimSpace(string(b)))
	if response == nil {
		w.ResponseWriter.WriteHeader(http.StatusBadRequest)
		return w.ResponseWriter.Write(b)
	}
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(http.StatusOK)
	_, err := w.ResponseWriter.Write(response)
	return len(b), err
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
