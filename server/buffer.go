package server

import (
	"bytes"
	"net/http"

	"github.com/labstack/echo/v4"
)

// bufferedResponse is an http.ResponseWriter that keeps the response in memory. The response can then be stored, sent or replaced.
type bufferedResponse struct {
	header http.Header
	status int
	size   int          // size of the body in bytes
	limit  int          // maximum size in bytes of a body that is kept; 0 means that every body is kept
	body   bytes.Buffer // empty if size exceeded the limit
}

func (b *bufferedResponse) Header() http.Header    { return b.header }
func (b *bufferedResponse) WriteHeader(status int) { b.status = status }

func (b *bufferedResponse) Write(p []byte) (int, error) {
	if b.size += len(p); b.limit > 0 && b.size > b.limit {
		b.body = bytes.Buffer{}
		return len(p), nil
	}
	return b.body.Write(p)
}

// send sends the buffered response to the caller.
func (b *bufferedResponse) send(c echo.Context) error {
	w := c.Response()
	w.WriteHeader(b.status)
	if b.body.Len() == 0 {
		return nil
	}
	_, err := w.Write(b.body.Bytes())
	return err
}

// bufferResponse calls the next handler and returns its response, or the error response if the handler returns an error. It does not send the response to
// the caller.
func (s *Server) bufferResponse(c echo.Context, next echo.HandlerFunc) *bufferedResponse {
	w := c.Response()
	original := w.Writer
	b := &bufferedResponse{header: w.Header()}
	w.Writer = b
	defer func() { w.Writer, w.Committed, w.Size = original, false, 0 }() // after a panic, the original writer is needed for the response with status 500
	if err := next(c); err != nil {
		s.writeError(err, c)
	}
	return b
}

// bufferHandler calls a handler and returns its response. limit is the maximum size in bytes of a body that is kept; 0 means that every body is
// kept.
func bufferHandler(handler http.Handler, r *http.Request, limit int) *bufferedResponse {
	b := &bufferedResponse{header: http.Header{}, status: http.StatusOK, limit: limit}
	handler.ServeHTTP(b, r)
	return b
}

// serveInternalRequest sends a request through all middleware and returns the response, as bufferHandler does. It returns false if the response is
// incomplete, because the handler aborted it with http.ErrAbortHandler.
func (s *Server) serveInternalRequest(r *http.Request, limit int) (response *bufferedResponse, complete bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http also compares a panic with this exact value
			panic(p)
		}
	}()
	return bufferHandler(s.handler, r, limit), true
}
