package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// bufferedResponse is a response that is kept in memory before it is sent or replaced.
type bufferedResponse struct {
	header http.Header
	body   bytes.Buffer
	status int
}

func (b *bufferedResponse) Header() http.Header         { return b.header }
func (b *bufferedResponse) Write(p []byte) (int, error) { return b.body.Write(p) }
func (b *bufferedResponse) WriteHeader(status int)      { b.status = status }

// bufferResponse runs next and buffers its response, which is then sent by send or replaced by another response.
func bufferResponse(c echo.Context, next echo.HandlerFunc) (*bufferedResponse, error) {
	w := c.Response()
	original := w.Writer
	b := &bufferedResponse{header: w.Header()}
	w.Writer = b
	defer func() { w.Writer, w.Committed, w.Size = original, false, 0 }() // also after a panic, which is answered with 500
	return b, next(c)
}

// send sends the buffered response.
func (b *bufferedResponse) send(c echo.Context) error {
	w := c.Response()
	w.WriteHeader(b.status)
	if b.body.Len() == 0 {
		return nil
	}
	_, err := w.Write(b.body.Bytes())
	return err
}

// errNotModified ends an operation if the caller already has the current response.
var errNotModified = errors.New("not modified")

// conditional is the response to a GET. It buffers the body to compute the ETag from it. If the operation has set the ETag already
// (Server.unlessUnchanged), the body is not buffered but sent as it is written.
type conditional struct {
	bufferedResponse
	original   http.ResponseWriter
	seen       []string // If-None-Match
	any        bool     // If-None-Match is *: any representation matches
	tag        string   // set by the operation; "" if it set none
	matched    string   // the matching tag as the caller wrote it; set with errNotModified
	unbuffered bool     // the status was sent
}

type conditionalKey struct{}

// WriteHeader sends the status if the ETag is known and the status is 200.
func (k *conditional) WriteHeader(status int) {
	k.status = status
	if k.tag == "" || status != http.StatusOK || k.any {
		return
	}
	k.unbuffered = true
	k.original.Header().Set("ETag", k.tag)
	k.original.WriteHeader(status)
}

func (k *conditional) Write(b []byte) (int, error) {
	switch {
	case k.unbuffered:
		return k.original.Write(b)
	case k.any && k.tag != "" && k.status == http.StatusOK:
		return len(b), nil // the response will be 304, so the body is not needed
	}
	return k.bufferedResponse.Write(b)
}

// answerConditionally adds a strong ETag to every response with 200, and answers 304 if the caller has the same response already. The ETag
// is computed from the response body, or from the organisation's version if nothing is masked. So it reveals nothing that is masked.
func (s *Server) answerConditionally(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if s.operations.match(c) == nil || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
			return next(c)
		}
		w := c.Response()
		h := w.Header()
		k := &conditional{bufferedResponse: bufferedResponse{header: h}, original: w.Writer, seen: r.Header.Values("If-None-Match")}
		k.any = slices.ContainsFunc(k.seen, func(field string) bool { return strings.TrimSpace(field) == "*" })
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), conditionalKey{}, k)))
		w.Writer = k
		err := func() error {
			defer func() { // also after a panic, which is answered with 500
				if w.Writer = k.original; !k.unbuffered {
					w.Committed, w.Size = false, 0
				}
			}()
			return next(c)
		}()
		switch {
		case errors.Is(err, errNotModified):
			return s.answerNotModified(c, k.matched)
		case err != nil:
			h.Del("Link")
			return err
		case k.unbuffered:
			return nil
		case k.status != http.StatusOK:
			return k.send(c)
		}
		tag := k.tag
		if tag == "" {
			tag = entityTag(k.body.Bytes())
		}
		if seen, ok := matching(k.seen, tag); ok {
			return s.answerNotModified(c, seen)
		}
		h.Set("ETag", tag)
		return k.send(c)
	}
}

// answerNotModified answers 304. It answers 429 if the caller has used up its limit of such answers.
func (s *Server) answerNotModified(c echo.Context, tag string) error {
	h := c.Response().Header()
	for _, name := range []string{"Link", echo.HeaderContentType, echo.HeaderContentLength} {
		h.Del(name)
	}
	if err := s.limitNotModified(c); err != nil {
		return err
	}
	h.Set("ETag", tag)
	return c.NoContent(http.StatusNotModified)
}

// unlessUnchanged sets the ETag of a response before its data is read, and returns errNotModified if the caller already has that response.
// The ETag is computed from the organisation's version and everything else that the response depends on: the operation, the parsed
// request, the day (default ranges end today) and the contract. If the caller gets masked values, unlessUnchanged does nothing, because
// the version would reveal that masked numbers changed.
func (s *Server) unlessUnchanged(ctx context.Context, operation string, request ...any) error {
	caller := CallerFrom(ctx)
	k, ok := ctx.Value(conditionalKey{}).(*conditional)
	if !ok || caller.facts.masked {
		return nil
	}
	version, err := caller.Org.Version(ctx) // read before the data: a change in between makes the tag too old, never too new
	if err != nil {
		return err
	}
	facts, err := json.Marshal([]any{"entity tag", caller.Organisation.ID, version, store.DateOf(s.now()), s.operations.version, operation, request})
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, s.cursorKey) // signed, so that callers cannot read the version from the ETag or forge an ETag
	mac.Write(facts)
	k.tag = tagOf(mac.Sum(nil))
	if k.any {
		return nil
	}
	if k.matched, ok = matching(k.seen, k.tag); ok {
		return errNotModified
	}
	return nil
}

// entityTag is the strong validator of a body.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return tagOf(sum[:])
}

func tagOf(sum []byte) string { return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"` }

// encodingSuffixes are what compression adds to a tag: the compressed representation is another one, but it says the same.
var encodingSuffixes = []string{"-gzip", "-zstd"}

// matching searches for one of the tags in the values of If-Match or If-None-Match. It returns the tag as the caller wrote it, with the
// suffix of its encoding. It ignores W/ (weak comparison). If a value is *, it returns the first tag.
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
