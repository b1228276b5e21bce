package server

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/mcp"
)

// mcpPath is where assistants are answered (interface.md 6). It stands beside the contract: what it offers is the contract.
const mcpPath = "/mcp"

// serveMCP returns the handler of the Model Context Protocol. The requests that its tools make are requests to this server
// like any other, with the caller's token, so that everything is decided, counted and logged as usual; this one is counted for
// nobody.
func (s *Server) serveMCP(trusted []netip.Prefix) (echo.HandlerFunc, error) {
	handler, err := mcp.New(mcp.Options{Contract: s.operations.doc, Do: s.answerTool, Logger: s.logger, Sandbox: s.sandbox,
		AnyHost: len(trusted) > 0}) // a proxy on this machine comes over loopback and names the host that people know
	if err != nil {
		return nil, err
	}
	return func(c echo.Context) error {
		if _, err := s.identify(c); err != nil {
			return err
		}
		r := c.Request()
		r.Header.Set(echo.HeaderXRequestID, requestID(c)) // so that the requests of tools have the same
		header := c.Response().Header()
		answer := &held{header: header, status: http.StatusOK}
		handler.ServeHTTP(answer, r)
		if answer.status >= http.StatusBadRequest && strings.HasPrefix(header.Get(echo.HeaderContentType), echo.MIMETextPlain) {
			header.Del(echo.HeaderContentType)
			return ofMCP(answer.status, strings.TrimSpace(answer.body.String()), r)
		}
		header.Set("Cache-Control", "no-store")
		return answer.send(c)
	}, nil
}

// answerTool answers the request of a tool.
func (s *Server) answerTool(r *http.Request) mcp.Answer {
	answer := &held{header: http.Header{}, status: http.StatusOK}
	if !s.serveWhole(answer, r) {
		return mcp.Answer{Status: http.StatusInternalServerError, Header: http.Header{}, Body: []byte("{}")}
	}
	return mcp.Answer{Status: answer.status, Header: answer.header, Body: answer.body.Bytes()}
}

// serveWhole answers a request and says whether the answer is whole: one that breaks off panics, to have net/http close the connection.
func (s *Server) serveWhole(w http.ResponseWriter, r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http asks for this very value
			panic(p)
		}
	}()
	s.handler.ServeHTTP(w, r)
	return true
}

// ofMCP explains why a request is no message of the protocol.
func ofMCP(status int, text string, r *http.Request) *Error {
	text, _, _ = strings.Cut(text, "malformed payload:") // what follows are the decoder's words
	if text == "" {
		text = "the body is not a message of JSON-RPC 2.0"
	}
	switch status {
	case http.StatusBadRequest:
		return problem(CodeInvalidRequest, "This is no request of the Model Context Protocol: %s", sentence(text))
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
