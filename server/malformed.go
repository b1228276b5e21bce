package server

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// Listener wraps a listener so that malformed requests, such as one with the path /%zz, also get an error response in JSON. net/http refuses these
// requests itself: it calls no handler, and answers in plain text. The connections of the returned listener replace this answer.
func (s *Server) Listener(l net.Listener) net.Listener { return problemListener{l, s} }

// problemListener is the listener that Server.Listener returns.
type problemListener struct {
	net.Listener
	server *Server
}

func (l problemListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return problemConn{c, l.server}, nil
}

// problemConn is a connection of a problemListener.
type problemConn struct {
	net.Conn
	server *Server
}

// CloseWrite closes the sending side of the connection, if the connection supports it. After some refusals, net/http calls it so that the client can read
// the response.
func (c problemConn) CloseWrite() error {
	if closer, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return closer.CloseWrite()
	}
	return nil
}

func (c problemConn) Write(b []byte) (int, error) {
	reason, ok := malformedReason(b)
	if !ok {
		return c.Conn.Write(b)
	}
	detail := "The request is malformed: " + reason + "."
	if reason == "" {
		detail = "The request line or a header is malformed. In the path, write a percent sign as %25."
	}
	return len(b), c.server.writeMalformed(c.Conn, problem(CodeInvalidRequest, "%s", detail))
}

// malformedReason returns true if b is the answer with which net/http refuses a malformed request with status 400. The reason is "" if the answer has none.
func malformedReason(b []byte) (reason string, ok bool) {
	const status = "400 Bad Request"
	if !bytes.HasPrefix(b, []byte("HTTP/1.1 "+status)) { // most responses end this check here
		return "", false
	}
	line, text, _ := strings.Cut(string(b), "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	// No handler sends such a response, because its headers would include a date.
	return strings.TrimPrefix(strings.TrimPrefix(text, status), ": "), line == "HTTP/1.1 "+text
}

// writeMalformed sends an error response to a malformed request, and logs its request id.
func (s *Server) writeMalformed(w io.Writer, e *Error) error {
	id := store.NewID().String()
	s.logger.Info("malformed request", "request_id", id, "detail", e.Detail)
	body, err := e.encode("/", id)
	if err != nil {
		return err
	}
	r := http.Response{StatusCode: http.StatusBadRequest, ProtoMajor: 1, ProtoMinor: 1, Close: true, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{echo.HeaderContentType: {problemType}, echo.HeaderXRequestID: {id}, "Api-Version": {s.contract.version},
			"Date": {s.now().UTC().Format(http.TimeFormat)}, "X-Content-Type-Options": {"nosniff"}}}
	var response bytes.Buffer
	if err := r.Write(&response); err != nil {
		return err
	}
	_, err = w.Write(response.Bytes()) // a single write, because net/http closes the connection directly after it
	return err
}
