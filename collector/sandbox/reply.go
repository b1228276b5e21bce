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

// object is a JSON object. Its members come out in alphabetical order, which no client may depend on.
type object = map[string]any

// reply is an answer before it is written.
type reply struct {
	status  int
	header  map[string]string
	body    any    // JSON, unless raw is set
	raw     []byte // the bytes themselves
	kind    string // content type; JSON when empty
	pretty  bool
	refused bool // the caller was not let in

	cut, breakOff bool // see truncated
}

func (r reply) with(name, value string) reply {
	header := maps.Clone(r.header)
	if header == nil {
		header = map[string]string{}
	}
	header[name] = value
	r.header = header
	return r
}

// retryAfter adds the header, unless seconds is nil: then the source says nothing.
func (r reply) retryAfter(seconds *int) reply {
	if seconds == nil {
		return r
	}
	return r.with("Retry-After", strconv.Itoa(*seconds))
}

// truncated cuts the body in the middle. When it breaks off, the header promises the whole.
func (r reply) truncated(breakOff bool) reply {
	r.cut, r.breakOff = true, breakOff
	return r
}

func (r reply) redirects() bool {
	return r.status >= 300 && r.status < 400 && r.header["Location"] != ""
}

// bytes encodes the body.
func (r reply) bytes() []byte {
	if r.raw != nil || r.body == nil {
		return r.raw
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	if r.pretty {
		encoder.SetIndent("", "  ")
	}
	_ = encoder.Encode(r.body) // made here, of strings, numbers, lists and maps alone: it cannot fail
	return out.Bytes()
}

func write(w http.ResponseWriter, r *http.Request, rep reply) {
	body := rep.bytes()
	if rep.cut && !rep.breakOff {
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
			_, _ = zip.Write(body) // a buffer takes everything
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
	if rep.breakOff {
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body) // whoever hung up needs no answer
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

// problem is an error of the sandbox's own, not of a platform.
func problem(status int, detail string) reply {
	return reply{
		status: status, kind: "application/problem+json",
		body: object{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail},
	}
}
