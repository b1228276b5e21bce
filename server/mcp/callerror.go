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

// callErrorWriter is the http.ResponseWriter for the response to one message. JSON-RPC requires that the response to a call has the id of the
// call. The SDK refuses a call with an unknown method, or a call without required params, with an error in plain text and without the id.
// callErrorWriter replaces such an error by a JSON-RPC error. It writes all other responses unchanged.
type callErrorWriter struct {
	http.ResponseWriter
	message []byte // the JSON-RPC message
	refused bool   // true if the SDK has sent status 400 in plain text, but not yet the text of the error
}

// WriteHeader delays status 400 in plain text until Write has the text of the error.
func (w *callErrorWriter) WriteHeader(status int) {
	if status == http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = true
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *callErrorWriter) Write(b []byte) (int, error) {
	if !w.refused {
		return w.ResponseWriter.Write(b)
	}
	w.refused = false
	answer := callError(w.message, strings.TrimSpace(string(b)))
	if answer == nil {
		w.ResponseWriter.WriteHeader(http.StatusBadRequest)
		return w.ResponseWriter.Write(b)
	}
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(http.StatusOK)
	_, err := w.ResponseWriter.Write(answer)
	return len(b), err
}

// callError returns the JSON-RPC error for a call that the SDK refused. reason is the error of the SDK in plain text. callError returns nil
// if the message is not a call, or if the SDK refused it for another reason than its method or its params.
func callError(message []byte, reason string) []byte {
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
