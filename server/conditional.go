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

// bufferedResponse keeps a response in memory, so that it can be stored, sent or replaced.
type bufferedResponse struct {
	header http.Header
	body   bytes.Buffer
	status int
}

func (b *bufferedResponse) Header() http.Header         { return b.header }
func (b *bufferedResponse) Write(p []byte) (int, error) { return b.body.Write(p) }
func (b *bufferedResponse) WriteHeader(status int)      { b.status = status }

// bufferResponse runs next and returns its response without sending it.
func bufferResponse(c echo.Context, next echo.HandlerFunc) (*bufferedResponse, error) {
	w := c.Response()
	original := w.Writer
	b := &bufferedResponse{header: w.Header()}
	w.Writer = b
	defer func() { w.Writer, w.Committed, w.Size = original, false, 0 }() // deferred, so that a panic of next can be answered with 500
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

// errNotModified is returned by an operation if the caller already has the current response. The response is then 304.
var errNotModified = errors.New("not modified")

// conditional is the response writer of a GET. It buffers the body to compute the ETag from it. If the operation has set the ETag before
// (Server.checkNotModified), the body is sent without buffering.
type conditional struct {
	bufferedResponse
	original    http.ResponseWriter
	ifNoneMatch []string // the values of If-None-Match
	matchesAny  bool     // If-None-Match is *, which matches every ETag
	tag         string   // the ETag that the operation set; "" if it set none
	matched     string   // the ETag in If-None-Match that matches tag; set if the operation returns errNotModified
	unbuffered  bool     // the status was sent, so the body is sent without buffering
}

type conditionalKey struct{}

// WriteHeader sends the status if the status is 200 and the operation has set the ETag. Otherwise it stores the status.
func (k *conditional) WriteHeader(status int) {
	k.status = status
	if k.tag == "" || status != http.StatusOK || k.matchesAny {
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
	case k.matchesAny && k.tag != "" && k.status == http.StatusOK:
		return len(b), nil // the response will be 304, so the body is discarded
	}
	return k.bufferedResponse.Write(b)
}

// answerConditionally adds a strong ETag to every response with status 200. It answers 304 if If-None-Match contains the ETag. The ETag is
// computed from the response body, or by checkNotModified from the organisation's version if no metrics are masked. So an ETag does not reveal
// masked metrics.
func (s *Server) answerConditionally(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if s.contract.match(c) == nil || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
			return next(c)
		}
		w := c.Response()
		h := w.Header()
		k := &conditional{bufferedResponse: bufferedResponse{header: h}, original: w.Writer, ifNoneMatch: r.Header.Values("If-None-Match")}
		k.matchesAny = slices.ContainsFunc(k.ifNoneMatch, func(field string) bool { return strings.TrimSpace(field) == "*" })
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), conditionalKey{}, k)))
		w.Writer = k
		err := func() error {
			defer func() { // deferred, so that a panic of next can be answered with 500
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
		if matched, ok := matching(k.ifNoneMatch, tag); ok {
			return s.answerNotModified(c, matched)
		}
		h.Set("ETag", tag)
		return k.send(c)
	}
}

// answerNotModified answers 304 with the ETag tag. It answers 429 if the organisation has reached its limit of responses with 304.
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

// checkNotModified sets the ETag of a response before the operation reads its data. If If-None-Match contains the ETag, checkNotModified
// returns errNotModified. The ETag is computed from the organisation's version and everything else that the response depends on: the operation, the parsed
// request, the day (default ranges end today) and the contract. If metrics are masked, checkNotModified does nothing, because the version would
// reveal that masked metrics changed.
func (s *Server) checkNotModified(ctx context.Context, operation string, request ...any) error {
	caller := CallerFrom(ctx)
	k, ok := ctx.Value(conditionalKey{}).(*conditional)
	if !ok || caller.facts.masked {
		return nil
	}
	// The version is read before the data. If the data changes in between, the ETag is too old, so the next request reads the data again.
	version, err := caller.Org.Version(ctx)
	if err != nil {
		return err
	}
	facts, err := json.Marshal([]any{"entity tag", caller.Organisation.ID, version, store.DateOf(s.now()), s.contract.version, operation, request})
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, s.cursorKey) // signed, so that callers cannot read the version from the ETag or forge an ETag
	mac.Write(facts)
	k.tag = tagOf(mac.Sum(nil))
	if k.matchesAny {
		return nil
	}
	if k.matched, ok = matching(k.ifNoneMatch, k.tag); ok {
		return errNotModified
	}
	return nil
}

// entityTag returns the strong ETag of a body.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return tagOf(sum[:])
}

// tagOf returns an ETag from a hash: its first 18 bytes in base64, in quotes.
func tagOf(sum []byte) string { return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"` }

// encodingSuffixes are the suffixes that compression adds to the ETag of a response. matching ignores them, because the uncompressed content is
// the same.
var encodingSuffixes = []string{"-gzip", "-zstd"}

// matching searches the values of If-Match or If-None-Match (fields) for one of the ETags in tags. It returns the ETag as the caller wrote it,
// with an encoding suffix if there is one, but without W/ (weak comparison). If a value is *, it returns the first of tags.
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
