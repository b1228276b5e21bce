package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// errNotModified is the error that an operation returns if the caller already has the current response. The server then answers with status
// 304.
var errNotModified = errors.New("not modified")

// conditionalResponse is the http.ResponseWriter for GET and HEAD requests. If the operation sets no
// ETag, the body is buffered, and the ETag is computed from the body.
type conditionalResponse struct {
	bufferedResponse
	original    http.ResponseWriter
	ifNoneMatch []string   // values of the header If-None-Match
	matchesAny  bool       // true if If-None-Match is *, which matches every ETag
	day         store.Date // day on which the operation began: if a new day begins during the request, the ETag must contain the old day
	tag         string     // ETag that the operation set; "" if the operation set no ETag
	matched     string     // the ETag in If-None-Match that equals the ETag of the response; only set if the operation returns errNotModified
	unbuffered  bool       // true if the status has been sent; the body is then sent without buffering
}

// WriteHeader sends the status immediately if the status is 200, the operation has set the ETag, and If-None-Match is not *. Otherwise it only stores the
// status.
func (k *conditionalResponse) WriteHeader(status int) {
	k.status = status
	if k.tag == "" || status != http.StatusOK || k.matchesAny {
		return
	}
	k.unbuffered = true
	k.original.Header().Set("ETag", k.tag)
	k.original.WriteHeader(status)
}

func (k *conditionalResponse) Write(b []byte) (int, error) {
	switch {
	case k.unbuffered:
		return k.original.Write(b)
	case k.matchesAny && k.tag != "" && k.status == http.StatusOK:
		return len(b), nil // the response will have status 304, so the body is not buffered
	}
	return k.bufferedResponse.Write(b)
}

// answerConditionally is a middleware that adds ETags to GET and HEAD responses with status 200. If
// the header If-None-Match contains the ETag, the status is 304.
func (s *Server) answerConditionally(c echo.Context, _ *operation, next echo.HandlerFunc) error {
	r := c.Request()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next(c)
	}
	w := c.Response()
	h := w.Header()
	k := &conditionalResponse{bufferedResponse: bufferedResponse{header: h}, original: w.Writer, ifNoneMatch: r.Header.Values("If-None-Match"), day: store.DateOf(s.now())}
	k.matchesAny = slices.ContainsFunc(k.ifNoneMatch, func(field string) bool { return strings.TrimSpace(field) == "*" })
	stateFrom(r.Context()).conditional = k
	w.Writer = k
	err := func() error {
		defer func() { // after a panic, the original writer is needed for the response with status 500
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
		tag = bodyETag(k.body.Bytes())
	}
	if matched, ok := findETag(k.ifNoneMatch, tag); ok {
		return s.answerNotModified(c, matched)
	}
	h.Set("ETag", tag)
	return k.send(c)
}

// answerNotModified answers with status 304. The response has the given ETag. If the organisation has reached its limit of responses with
// status 304, answerNotModified returns an *Error with status 429.
func (s *Server) answerNotModified(c echo.Context, tag string) error {
	h := c.Response().Header()
	for _, name := range []string{"Link", echo.HeaderContentType, echo.HeaderContentLength} {
		h.Del(name)
	}
	if err := s.limit304Responses(c); err != nil {
		return err
	}
	h.Set("ETag", tag)
	return c.NoContent(http.StatusNotModified)
}

// orgAtVersion returns the Org from which a GET operation must read its data. It sets the ETag from the version of the organisation's data, and returns
// errNotModified if the header If-None-Match contains the ETag. If metrics are masked, it sets no ETag: answerConditionally then computes the ETag from
// the response body. notInURL contains the values on which the response depends, except the URL, the data and the other values in etagInputs.
func (s *Server) orgAtVersion(ctx context.Context, notInURL ...any) (*store.Org, error) {
	state := stateFrom(ctx)
	// An ETag from the version would reveal when a masked metric changes.
	if state.rules.masked {
		return state.Org, nil
	}
	inputs, err := s.etagInputs(state, notInURL)
	if err != nil {
		return nil, err
	}
	// Read the version before the data. If the data changes between the two reads, the ETag is too old, and the next request reads the data
	// again.
	version, err := state.Org.Version(ctx)
	if err != nil {
		return nil, err
	}
	return state.Org.AtVersion(version), setETag(ctx, s.versionETag(version, inputs))
}

// orgAtVersionOfFirstQuery is like orgAtVersion, but usually saves a database query. The operation must read a list or history from the returned Org
// before it reads other data.
func (s *Server) orgAtVersionOfFirstQuery(ctx context.Context, notInURL ...any) (*store.Org, error) {
	state := stateFrom(ctx)
	k := state.conditional
	if state.rules.masked || len(k.ifNoneMatch) > 0 {
		return s.orgAtVersion(ctx, notInURL...)
	}
	inputs, err := s.etagInputs(state, notInURL)
	if err != nil {
		return nil, err
	}
	// The returned Org reads the version immediately before the rows of its first list or history. So the ETag is never newer than the rows.
	return state.Org.OnVersion(func(v store.Version) { k.tag = s.versionETag(v, inputs) }), nil
}

// etagInputs returns the JSON of all values on which a response depends, except the version of the organisation's data. The query of the URL is the
// same for each order of the parameters, because the middleware validate sorts them.
func (s *Server) etagInputs(state *requestState, notInURL []any) ([]byte, error) {
	url := state.echo.Request().URL
	return json.Marshal([]any{"entity tag", state.Organisation.ID, state.conditional.day, s.contract.etag, state.View.noCollector, url.EscapedPath(), url.RawQuery, notInURL})
}

// versionETag returns the ETag for a version of the organisation's data. The parameter inputs is the result of etagInputs.
func (s *Server) versionETag(version store.Version, inputs []byte) string {
	mac := hmac.New(sha256.New, s.cursorKey) // the key is secret, so callers cannot find out the version
	_, _ = mac.Write(inputs)                 // writing to a hash cannot fail
	_, _ = fmt.Fprint(mac, version.Version, " ")
	for _, due := range []*store.Instant{version.Late, version.Due} {
		if due != nil {
			_, _ = fmt.Fprint(mac, int64(*due))
		}
		_, _ = fmt.Fprint(mac, " ")
	}
	return hashToETag(mac.Sum(nil))
}

// setETag sets the ETag of the response to a GET request. An operation calls setETag before it reads the data. If If-None-Match contains the ETag,
// setETag returns errNotModified. If-None-Match: * matches every ETag, but an unknown item must still get status 404. So for *, setETag returns nil. When
// the operation has ended, answerConditionally sends 304 instead of 200.
func setETag(ctx context.Context, tag string) error {
	k := stateFrom(ctx).conditional
	k.tag = tag
	if k.matchesAny {
		return nil
	}
	var ok bool
	if k.matched, ok = findETag(k.ifNoneMatch, tag); ok {
		return errNotModified
	}
	return nil
}

// bodyETag returns the strong ETag of a response body. It is computed from the body's SHA-256 hash.
func bodyETag(body []byte) string {
	sum := sha256.Sum256(body)
	return hashToETag(sum[:])
}

// hashToETag converts a hash to an ETag: the first 18 bytes of the hash in base64, in quotes.
func hashToETag(sum []byte) string { return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"` }

// encodingSuffixes are the suffixes that the compression middleware adds to the ETag of a compressed response. findETag ignores these
// suffixes, because they do not change the content.
var encodingSuffixes = []string{"-gzip", "-zstd"}

// trimEncodingSuffix returns an ETag without the suffixes in encodingSuffixes.
func trimEncodingSuffix(tag string) string {
	for _, suffix := range encodingSuffixes {
		if cut, ok := strings.CutSuffix(tag, suffix+`"`); ok {
			return cut + `"`
		}
	}
	return tag
}

// findETag searches headerLines, the values of If-Match or If-None-Match, for wantedTags. It returns
// the first match without the prefix W/.
func findETag(headerLines []string, wantedTags ...string) (string, bool) {
	for _, field := range headerLines {
		for listed := range strings.SplitSeq(field, ",") {
			listed = strings.TrimSpace(listed)
			if listed == "*" { // the value * matches every ETag
				return wantedTags[0], true
			}
			listed = strings.TrimPrefix(listed, "W/")
			if slices.Contains(wantedTags, trimEncodingSuffix(listed)) {
				// The result can have one of the encodingSuffixes.
				return listed, true
			}
		}
	}
	return "", false
}
