package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// held is an answer that is kept back until it is decided what becomes of it.
type held struct {
	header http.Header
	body   bytes.Buffer
	status int
}

func (h *held) Header() http.Header         { return h.header }
func (h *held) Write(b []byte) (int, error) { return h.body.Write(b) }
func (h *held) WriteHeader(status int)      { h.status = status }

// hold runs the rest of the request and keeps its answer back. The answer can then be sent by send, or another in its place.
func hold(c echo.Context, next echo.HandlerFunc) (*held, error) {
	w := c.Response()
	under := w.Writer
	h := &held{header: w.Header()}
	w.Writer = h
	defer func() { w.Writer, w.Committed, w.Size = under, false, 0 }() // also in a panic, which is answered too
	return h, next(c)
}

func (h *held) send(c echo.Context) error {
	w := c.Response()
	w.WriteHeader(h.status)
	if h.body.Len() == 0 {
		return nil
	}
	_, err := w.Write(h.body.Bytes())
	return err
}

// answerConditionally gives every representation a strong ETag and answers 304 to a caller who has it. The tag is made from
// what the caller is shown and from nothing else: it differs where masking differs, and tells nothing about what is hidden.
func (s *Server) answerConditionally(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if s.operations.of(c) == nil || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
			return next(c)
		}
		answer, err := hold(c, next)
		if err != nil {
			return err
		}
		if answer.status != http.StatusOK {
			return answer.send(c)
		}
		tag := entityTag(answer.body.Bytes())
		h := c.Response().Header()
		h.Set("ETag", tag)
		if seen, ok := matching(r.Header.Values("If-None-Match"), tag); ok {
			h.Set("ETag", seen)
			h.Del(echo.HeaderContentType)
			h.Del(echo.HeaderContentLength)
			h.Del("Link")
			return c.NoContent(http.StatusNotModified)
		}
		return answer.send(c)
	}
}

// entityTag is the strong validator of a body.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
}

// encodingSuffixes are what compression adds to a tag: the compressed representation is another one, but it says the same.
var encodingSuffixes = []string{"-gzip", "-zstd"}

// matching finds one of the tags in a list of entity tags, as If-Match and If-None-Match hold it, and returns it as it is
// listed: with the suffix of its encoding. W/ is ignored, as the weak comparison of If-None-Match has it. For * it is the first tag.
func matching(fields []string, tags ...string) (string, bool) {
	for _, field := range fields {
		for listed := range strings.SplitSeq(field, ",") {
			listed = strings.TrimSpace(listed)
			if listed == "*" {
				return tags[0], true
			}
			listed = strings.TrimPrefix(listed, "W/")
			bare := listed
			for _, suffix := range encodingSuffixes {
				if cut, ok := strings.CutSuffix(listed, suffix+`"`); ok {
					bare = cut + `"`
				}
			}
			if slices.Contains(tags, bare) {
				return listed, true
			}
		}
	}
	return "", false
}
