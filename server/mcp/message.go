package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeltally/reeltally/internal/words"
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
		return fmt.Errorf("the id must be a string or an integer from %d to %d, without fraction or exponent, not %s", -maxID, maxID, words.Truncate(string(id), maxShown))
	}
	return nil
}

// paramTypes has, for each JSON-RPC method with params, a function that returns a new value of the type into which the SDK decodes the params.
var paramTypes = map[string]func() any{
	"initialize":               func() any { return new(sdk.InitializeParams) },
	"ping":                     func() any { return new(sdk.PingParams) },
	"server/discover":          func() any { return new(sdk.DiscoverParams) },
	"tools/list":               func() any { return new(sdk.ListToolsParams) },
	"tools/call":               func() any { return new(sdk.CallToolParamsRaw) },
	"prompts/list":             func() any { return new(sdk.ListPromptsParams) },
	"prompts/get":              func() any { return new(sdk.GetPromptParams) },
	"completion/complete":      func() any { return new(sdk.CompleteParams) },
	"logging/setLevel":         func() any { return new(sdk.SetLoggingLevelParams) }, //nolint:staticcheck // the SDK still answers this deprecated method
	"resources/list":           func() any { return new(sdk.ListResourcesParams) },
	"resources/templates/list": func() any { return new(sdk.ListResourceTemplatesParams) },
	"resources/read":           func() any { return new(sdk.ReadResourceParams) },
	"resources/subscribe":      func() any { return new(sdk.SubscribeParams) },
	"resources/unsubscribe":    func() any { return new(sdk.UnsubscribeParams) },
	"subscriptions/listen":     func() any { return new(sdk.SubscriptionsListenParams) },
}

// checkParams returns a JSON-RPC error for a call whose params contain a value of a wrong type, and nil otherwise. Without this check, the SDK
// would answer with an error that contains names of Go types.
func checkParams(message []byte) []byte {
	call := decodeCall(message)
	if call == nil || paramTypes[call.Method] == nil || len(call.Params) == 0 {
		return nil
	}
	err := json.Unmarshal(call.Params, paramTypes[call.Method]())
	if err == nil {
		return nil
	}
	text := "the params do not have the form that " + call.Method + " requires"
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		place := strings.TrimSuffix("params."+wrong.Field, ".")
		given, _, _ := strings.Cut(wrong.Value, " ") // for a number that is too large, Value also has its digits
		text = fmt.Sprintf("%s has a value of the type %s where the type %s is required", place, given, jsonType(wrong.Type))
	}
	return encodeError(call, jsonrpc.CodeInvalidParams, text)
}

// jsonType returns the name of the JSON type into which values of the Go type t are encoded.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "array"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "object"
	}
	return "number"
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
	writeResponse(w.ResponseWriter, response)
	return nil
}

// writeResponse sends a JSON-RPC response that the SDK did not write.
func writeResponse(w http.ResponseWriter, response []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(response) // an error means that the client has closed the connection
}

// encodeCallError converts the SDK's plain-text error `reason` into a JSON-RPC error. The result is
// nil if the error must stay plain text.
func encodeCallError(message []byte, reason string) []byte {
	call := decodeCall(message)
	switch {
	case call == nil:
		return nil
	case strings.HasPrefix(reason, methodNotHandled):
		return encodeError(call, jsonrpc.CodeMethodNotFound, "method not found: "+words.Quote(call.Method))
	case strings.HasPrefix(reason, invalidRequest):
		return encodeError(call, jsonrpc.CodeInvalidRequest, words.Truncate(reason, maxReason))
	}
	return nil // the error concerns neither the method nor the params of the call
}

// decodeCall returns the JSON-RPC call in a message. The result is nil if the message is not a call, for example because it is a notification.
func decodeCall(message []byte) *jsonrpc.Request {
	decoded, err := jsonrpc.DecodeMessage(message)
	call, ok := decoded.(*jsonrpc.Request)
	if err != nil || !ok || !call.IsCall() {
		return nil
	}
	return call
}

// encodeError returns the JSON-RPC error that answers a call. The result is nil if the error cannot be encoded.
func encodeError(call *jsonrpc.Request, code int64, text string) []byte {
	response, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: call.ID, Error: &jsonrpc.Error{Code: code, Message: text}})
	if err != nil {
		return nil
	}
	return response
}
