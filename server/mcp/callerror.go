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

// mcpResponseWriter is the http.ResponseWriter for the response to one message. JSON-RPC requires that the response to a call has the id of
// the call. If a call has an unknown method or lacks required params, the SDK sends an error in plain text without the id. mcpResponseWriter
// replaces such an error by a JSON-RPC error. It writes all other responses unchanged.
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
	answer := encodeCallError(w.message, strings.TrimSpace(string(b)))
	if answer == nil {
		w.ResponseWriter.WriteHeader(http.StatusBadRequest)
		return w.ResponseWriter.Write(b)
	}
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(http.StatusOK)
	_, err := w.ResponseWriter.Write(answer)
	return len(b), err
}

// encodeCallError returns the JSON-RPC error for a call that the SDK refused. reason is the error of the SDK in plain text. If message is
// not a call, the result is nil. If reason concerns neither the method nor the params of the call, the result is also nil.
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
		return nil
	}
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: call.ID, Error: refusal})
	if err != nil {
		return nil
	}
	return answer
}
