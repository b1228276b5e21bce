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

// errNotModified ends an operation if the caller already has its answer.
var errNotModified = errors.New("not modified")

// conditional handles the answer to a GET. It buffers the answer to compute its tag from the body. If the operation has set the tag
// already (Server.unlessUnchanged), the answer is passed on as it is written.
type conditional struct {
	held
	under   http.ResponseWriter
	seen    []string // If-None-Match
	any     bool     // If-None-Match is *: any representation matches
	tag     string   // set by the operation; "" if it set none
	matched string   // the matching tag as the caller wrote it; set with errNotModified
	through bool
}

type conditionalKey struct{}

// WriteHeader passes a complete answer on if its tag is known.
func (k *conditional) WriteHeader(status int) {
	k.status = status
	if k.tag == "" || status != http.StatusOK || k.any {
		return
	}
	k.through = true
	k.under.Header().Set("ETag", k.tag)
	k.under.WriteHeader(status)
}

func (k *conditional) Write(b []byte) (int, error) {
	switch {
	case k.through:
		return k.under.Write(b)
	case k.any && k.tag != "" && k.status == http.StatusOK:
		return len(b), nil // the answer will be 304, so the body is not needed
	}
	return k.held.Write(b)
}

// answerConditionally adds a strong ETag to every representation, and answers 304 if the caller has it already. The tag is computed from
// the body that the caller is shown, or from the organisation's version if nothing is masked. So the tag differs where masking differs,
// and reveals nothing that is hidden.
func (s *Server) answerConditionally(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if s.operations.of(c) == nil || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
			return next(c)
		}
		w := c.Response()
		h := w.Header()
		k := &conditional{held: held{header: h}, under: w.Writer, seen: r.Header.Values("If-None-Match")}
		k.any = slices.ContainsFunc(k.seen, func(field string) bool { return strings.TrimSpace(field) == "*" })
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), conditionalKey{}, k)))
		w.Writer = k
		err := func() error {
			defer func() { // even after a panic, which is answered too
				if w.Writer = k.under; !k.through {
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
		case k.through:
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
	for _, ofTheBody := range []string{"Link", echo.HeaderContentType, echo.HeaderContentLength} {
		h.Del(ofTheBody)
	}
	if err := s.limitNotModified(c); err != nil {
		return err
	}
	h.Set("ETag", tag)
	return c.NoContent(http.StatusNotModified)
}

// unlessUnchanged sets the tag of an answer before its data is read, and returns errNotModified if the caller already has that answer. The
// tag is computed from the organisation's version and everything else that the answer depends on: the operation, the parsed request, the
// day (ranges of days begin today) and the contract. If the caller is shown masked values, unlessUnchanged does nothing: the version
// would reveal that hidden numbers changed.
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
	mac := hmac.New(sha256.New, s.cursorKey) // so that nobody can read the version from the tag or forge a tag
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
