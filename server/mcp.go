package server

import (
	"bytes"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/mcp"
)

// mcpPath is the path of the Model Context Protocol (interface.md 6). It is not an operation of the contract.
const mcpPath = "/mcp"

const (
	// mcpCalls names the limit of POST /mcp in the quota headers.
	mcpCalls = "mcp"
	// mcpLimit is how many requests to /mcp an organisation may send in a window. Clients send up to four for one call of a tool, which
	// also counts for its operation.
	mcpLimit = 600
)

// serveMCP returns the handler of the Model Context Protocol. Each request counts for the organisation in a separate bucket, with the limit
// of GET /authenticate. A tool sends its request through this server with the caller's token, so it also counts for its operation.
func (s *Server) serveMCP(trusted []netip.Prefix) (echo.HandlerFunc, error) {
	handler, err := mcp.New(mcp.Options{Contract: s.operations.doc, Do: s.answerTool, Logger: s.logger, Sandbox: s.sandbox,
		AnyHost: len(trusted) > 0}) // a proxy on this machine comes over loopback and names the host that people know
	if err != nil {
		return nil, err
	}
	return func(c echo.Context) error {
		id, err := s.identify(c)
		if err != nil {
			return err
		}
		if err := s.countCall(c, id.Organisation, mcpCalls, mcpLimit); err != nil {
			return err
		}
		r := c.Request()
		r.Header.Set(echo.HeaderXRequestID, requestID(c)) // so that the requests of tools have the same
		answer := &mcpAnswer{ResponseWriter: c.Response()}
		handler.ServeHTTP(answer, r)
		if answer.refused != 0 {
			c.Response().Header().Del(echo.HeaderContentType)
			return ofMCP(answer.refused, strings.TrimSpace(answer.reason.String()), r)
		}
		return nil
	}, nil
}

// mcpAnswer passes an answer on as it is written. It buffers a refusal in plain text, which is then sent as a problem instead.
type mcpAnswer struct {
	http.ResponseWriter
	refused int // the status of the refusal; 0 if there is none
	reason  bytes.Buffer
	begun   bool
}

func (a *mcpAnswer) WriteHeader(status int) {
	if a.begun {
		return
	}
	a.begun = true
	if status >= http.StatusBadRequest && strings.HasPrefix(a.Header().Get(echo.HeaderContentType), echo.MIMETextPlain) {
		a.refused = status
		return
	}
	a.Header().Set("Cache-Control", "no-store")
	a.ResponseWriter.WriteHeader(status)
}

func (a *mcpAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.refused != 0 {
		return a.reason.Write(b)
	}
	return a.ResponseWriter.Write(b)
}

// answerTool answers the request of a tool.
func (s *Server) answerTool(r *http.Request) mcp.Answer {
	answer := &toolAnswer{header: http.Header{}, status: http.StatusOK}
	if !s.serveWhole(answer, r) {
		return mcp.Answer{Status: http.StatusInternalServerError, Header: http.Header{}, Body: []byte("{}")}
	}
	return mcp.Answer{Status: answer.status, Header: answer.header, Size: answer.size, Body: answer.body.Bytes()}
}

// toolAnswer records the answer to a tool's request. It counts the size of the body, but drops a body of more than mcp.MaxAnswer bytes.
type toolAnswer struct {
	header http.Header
	status int
	size   int
	body   bytes.Buffer
}

func (a *toolAnswer) Header() http.Header    { return a.header }
func (a *toolAnswer) WriteHeader(status int) { a.status = status }

func (a *toolAnswer) Write(b []byte) (int, error) {
	if a.size += len(b); a.size > mcp.MaxAnswer {
		a.body = bytes.Buffer{}
		return len(b), nil
	}
	return a.body.Write(b)
}

// serveWhole answers a request. It returns false if the answer is incomplete: the handler then panics so that net/http closes the
// connection.
func (s *Server) serveWhole(w http.ResponseWriter, r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http asks for this very value
			panic(p)
		}
	}()
	s.handler.ServeHTTP(w, r)
	return true
}

// ofMCP converts a refusal of a message into a problem. text is the reason.
func ofMCP(status int, text string, r *http.Request) *Error {
	text, _, _ = strings.Cut(text, "malformed payload:") // what follows are the decoder's words
	if text == "" {
		text = "the body is not a message of JSON-RPC 2.0"
	}
	switch status {
	case http.StatusBadRequest:
		return problem(CodeInvalidRequest, "This is not a request of the Model Context Protocol: %s", sentence(cut(text)))
	case http.StatusForbidden:
		return problem(CodeHostNotAllowed, "The request came over a loopback address for the host %s, as a rebound name would. "+
			"Where a proxy on this machine sent it, name the proxy's network as trusted.", quote(r.Host))
	case http.StatusRequestEntityTooLarge:
		return problem(CodeBodyTooLarge, "The body is larger than the %d bytes allowed.", maxBody)
	case http.StatusUnsupportedMediaType:
		return problem(CodeUnsupportedMedia, "Content-Type must be application/json, not %s.", quote(r.Header.Get(echo.HeaderContentType)))
	}
	return &Error{Code: CodeInternal, Detail: "The server failed to answer. Quote the request id when you report this."}
}

// argumentFaults are those that a tool's arguments have before they become a request.
func argumentFaults(r *http.Request) []api.Fault {
	var faults []api.Fault
	for _, f := range mcp.FaultsFrom(r.Context()) {
		pointer := ""
		if f.Argument != "" {
			pointer = cut("/" + escapePointer(f.Argument))
		}
		faults = append(faults, bodyFault(pointer, f.Code, "%s", f.Detail))
	}
	return faults
}
