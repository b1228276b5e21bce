package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/server/mcp"
)

// mcpPath is the path of the Model Context Protocol (MCP). It is not an operation of the OpenAPI contract.
const mcpPath = "/mcp"

const (
	// mcpCalls is the name of the rate limit of POST /mcp in the RateLimit headers.
	mcpCalls = "mcp"
	// mcpLimit is the maximum number of requests that an organisation can send to /mcp in a minute.
	// Clients send up to four requests for one tool call.
	mcpLimit = 600
)

// serveMCP returns the handler of POST /mcp. Each request counts towards mcpLimit. A tool call also
// counts towards the rate limit of its operation.
func (s *Server) serveMCP(trusted []netip.Prefix) echo.HandlerFunc {
	handler := mcp.New(mcp.Options{Tools: s.contract.tools, Version: s.contract.version, Do: s.serveTool, Logger: s.logger, Sandbox: s.dataKind.read,
		AnyHost: len(trusted) > 0}) // a trusted proxy can be on this machine, so loopback requests can then have a public Host header
	return func(c echo.Context) error {
		id, err := s.identify(c)
		if err != nil {
			return err
		}
		if err = s.countCall(c, id.Organisation, mcpCalls, mcpLimit); err != nil {
			return err
		}
		message, err := readAll(c.Request().Body)
		if err != nil {
			return err
		}
		r, err := checkMCPMessage(c.Request(), message)
		if err != nil {
			return err
		}
		r.Header.Set(echo.HeaderXRequestID, requestID(c)) // the HTTP request of a tool call keeps this request id
		if refusal := handler.Serve(c.Response(), r, message); refusal != nil {
			return mcpProblem(refusal, r)
		}
		return nil
	}
}

// argumentFaultsKey is the key of a context value: the faults that checkMCPMessage found in the arguments of a tool call.
type argumentFaultsKey struct{}

// checkMCPMessage checks the JSON of an MCP message, the body of r, as strictly as a JSON body of the API. It returns the request to pass to the
// MCP handler.
//
// If all faults are duplicate members or invalid strings in the arguments of a tool call, checkMCPMessage returns no error and keeps the faults in the
// request's context. toolArgumentFaults reads them later, so that the result of the call contains them and the model can correct the call.
func checkMCPMessage(r *http.Request, message []byte) (*http.Request, error) {
	faults, err := checkJSON(r.Context(), message, openapi3.NewSchema())
	if err != nil || len(faults) == 0 {
		return r, err
	}
	isInArguments := func(f api.Fault) bool {
		// After a fault with another code, checkJSON may have stopped. The rest of the message is then unchecked, so the message must be refused.
		return strings.HasPrefix(*f.Pointer, argumentsPointer+"/") && (f.Code == faultDuplicateMember || f.Code == faultEncoding)
	}
	inMessage := slices.DeleteFunc(slices.Clone(faults), isInArguments)
	switch {
	case len(inMessage) > 0:
		return nil, invalidRequest(inMessage...)
	case len(faults) == maxFaults, !isToolCall(message):
		return nil, invalidRequest(faults...)
	}
	for _, f := range faults {
		*f.Pointer = strings.TrimPrefix(*f.Pointer, argumentsPointer)
	}
	return r.WithContext(context.WithValue(r.Context(), argumentFaultsKey{}, faults)), nil
}

// argumentsPointer is the JSON pointer to the arguments of the tool in a message that calls a tool.
const argumentsPointer = "/params/arguments"

// isToolCall returns true if an MCP message calls a tool. The message must be valid JSON.
func isToolCall(message []byte) bool {
	var members map[string]json.RawMessage // a map, because the names of members are case-sensitive
	err := json.Unmarshal(message, &members)
	return err == nil && string(members["method"]) == `"tools/call"`
}

// serveTool sends the HTTP request of a tool call through all middleware and returns the response. If the response is incomplete, serveTool
// returns a response with status 500.
func (s *Server) serveTool(r *http.Request) mcp.Response {
	response, complete := s.serveInternalRequest(r, mcp.MaxResponseBytes)
	if !complete {
		return mcp.Response{Status: http.StatusInternalServerError, Header: http.Header{}, Body: []byte("{}")}
	}
	return mcp.Response{Status: response.status, Header: response.header, Size: response.size, Body: response.body.Bytes()}
}

// acceptRefusal is the beginning of the SDK's error message for a request whose header Accept lacks a media type. The SDK's own status is 400.
const acceptRefusal = "Accept must contain"

// mcpProblem converts a Refusal of the MCP handler into the error of the API that r gets.
func mcpProblem(refusal *mcp.Refusal, r *http.Request) *Error {
	errorText, _, _ := strings.Cut(refusal.Reason, "malformed payload:") // the SDK adds an internal error message at the end, which callers must not see
	if errorText == "" {
		errorText = "the body is not a message of JSON-RPC 2.0"
	}
	switch refusal.Status {
	case http.StatusBadRequest:
		if strings.HasPrefix(errorText, acceptRefusal) {
			return problem(CodeNotAcceptable, "Accept is %s, but a client of the Model Context Protocol must accept application/json and text/event-stream.",
				words.Quote(strings.Join(r.Header.Values("Accept"), ", ")))
		}
		return problem(CodeInvalidRequest, "This is not a request of the Model Context Protocol: %s", withFullStop(words.Truncate(errorText, maxPlace)))
	case http.StatusForbidden:
		return problem(CodeHostNotAllowed, "The request came over a loopback address, but names the host %s. "+
			"If a proxy on this machine sent the request, add the network of the proxy to the trusted proxies.", words.Quote(r.Host))
	case http.StatusUnsupportedMediaType:
		return problem(CodeUnsupportedMedia, "Content-Type must be application/json, not %s.", words.Quote(r.Header.Get(echo.HeaderContentType)))
	}
	return &Error{Code: CodeInternal, Detail: internalDetail}
}

// toolArgumentFaults returns the faults in the arguments of an MCP tool call. r is the HTTP request
// of this call. For any other request, the result is nil. The JSON pointers begin at the arguments.
func toolArgumentFaults(r *http.Request) []api.Fault {
	call, ok := mcp.CallFrom(r.Context())
	if !ok {
		return nil
	}
	var found faultCollector
	strictFaults, _ := r.Context().Value(argumentFaultsKey{}).([]api.Fault)
	for _, f := range strictFaults {
		found.addFault(f)
	}
	for _, f := range call.Faults {
		pointer := ""
		if f.Argument != "" {
			pointer = words.Truncate("/"+escapePointer(f.Argument), maxPlace)
		}
		found.addFault(bodyFault(pointer, f.Code, "%s", f.Detail))
	}
	values := make(map[string]any, len(call.Arguments))
	for name, raw := range call.Arguments {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var value any
		_ = decoder.Decode(&value) // no error is possible, because checkMCPMessage has checked the JSON
		values[name] = value
	}
	// A query or a header is text, in which the number 1 and the string "1" are equal. So the types are checked here.
	found.checkValue(values, call.Schema)
	return found.faults
}
