package sandbox

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// object is a JSON object. Its members are encoded in alphabetical order.
type object = map[string]any

// reply is an HTTP answer.
type reply struct {
	status  int
	header  map[string]string
	body    any    // body that is encoded as JSON, unless raw is set
	raw     []byte // the encoded body; used instead of body if it is set
	kind    string // content type of the body; "" means JSON
	pretty  bool
	refused bool // true if the credential was refused

	truncate, promiseAll bool // see the method truncated
}

// with returns a copy of the reply with an additional header.
func (r reply) with(name, value string) reply {
	header := maps.Clone(r.header)
	if header == nil {
		header = map[string]string{}
	}
	header[name] = value
	r.header = header
	return r
}

// retryAfter returns the reply with the header Retry-After if seconds is not nil, and the unchanged reply otherwise.
func (r reply) retryAfter(seconds *int) reply {
	if seconds == nil {
		return r
	}
	return r.with("Retry-After", strconv.Itoa(*seconds))
}

// truncated returns the reply without the second half of its body. If promiseAll is true, Content-Length is still the length of the whole
// body.
func (r reply) truncated(promiseAll bool) reply {
	r.truncate, r.promiseAll = true, promiseAll
	return r
}

func (r reply) redirects() bool {
	return r.status >= 300 && r.status < 400 && r.header["Location"] != ""
}

// bytes returns the encoded body of the reply.
func (r reply) bytes() []byte {
	if r.raw != nil || r.body == nil {
		return r.raw
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	if r.pretty {
		encoder.SetIndent("", "  ")
	}
	_ = encoder.Encode(r.body) // cannot fail, because the body has only strings, numbers, lists and maps
	return out.Bytes()
}

// write sends a reply.
func write(w http.ResponseWriter, r *http.Request, rep reply) {
	body := rep.bytes()
	if rep.truncate && !rep.promiseAll {
		body = body[:len(body)/2]
	}
	h := w.Header()
	for name, value := range rep.header {
		h.Set(name, value)
	}
	if len(body) > 0 || rep.body != nil {
		kind := rep.kind
		if kind == "" {
			kind = "application/json; charset=UTF-8"
		}
		h.Set("Content-Type", kind)
		h.Add("Vary", "Accept-Encoding")
		if acceptsGzip(r) {
			var packed bytes.Buffer
			zip := gzip.NewWriter(&packed)
			_, _ = zip.Write(body) // writing to a buffer cannot fail
			_ = zip.Close()
			body = packed.Bytes()
			h.Set("Content-Encoding", "gzip")
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(rep.status)
	if r.Method == http.MethodHead {
		return
	}
	if rep.promiseAll {
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body) // an error means that the client has closed the connection
}

func acceptsGzip(r *http.Request) bool {
	for offer := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if coding == "gzip" && strings.TrimSpace(quality) != "q=0" {
			return true
		}
	}
	return false
}

// problem returns an error of the sandbox itself, in contrast to a simulated error of a platform.
func problem(status int, detail string) reply {
	return reply{
		status: status, kind: "application/problem+json",
		body: object{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail},
	}
}
