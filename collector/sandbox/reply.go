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
	body    any    // the value to send as JSON; not used if there are raw bytes
	raw     []byte // the bytes to send instead of a JSON value
	kind    string // content type of the body; "" means JSON
	pretty  bool   // true to send indented JSON
	refused bool   // true if the reply refuses a request whose credential, method or path is not valid; faults are not applied to such a reply

	truncate   bool // true to send only the first half of the body
	promiseAll bool // true to set Content-Length to the length of the whole body although only its first half is sent
}

// withHeader returns a copy of the reply with an additional header.
func (r reply) withHeader(name, value string) reply {
	header := maps.Clone(r.header)
	if header == nil {
		header = map[string]string{}
	}
	header[name] = value
	r.header = header
	return r
}

// withRetryAfter adds the header Retry-After to a reply. If the number of seconds is nil, it returns the reply unchanged.
func (r reply) withRetryAfter(seconds *int) reply {
	if seconds == nil {
		return r
	}
	return r.withHeader("Retry-After", strconv.Itoa(*seconds))
}

// withHalfBody returns the reply with only the first half of its body. If promiseAll is true, Content-Length is still the length of the
// whole body.
func (r reply) withHalfBody(promiseAll bool) reply {
	r.truncate, r.promiseAll = true, promiseAll
	return r
}

// markRefused marks a reply that refuses a request because its credential, method or path is not valid. Faults are not applied to such a
// reply.
func markRefused(r reply) reply {
	r.refused = true
	return r
}

func (r reply) isRedirect() bool {
	return r.status >= 300 && r.status < 400 && r.header["Location"] != ""
}

func (r reply) encodeBody() []byte {
	if r.raw != nil || r.body == nil {
		return r.raw
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	if r.pretty {
		encoder.SetIndent("", "  ")
	}
	_ = encoder.Encode(r.body) // Encode cannot fail, because the body has only strings, numbers, lists and maps
	return out.Bytes()
}

// writeReply sends a reply as the response to a request. It compresses the body if the request accepts gzip.
func writeReply(w http.ResponseWriter, r *http.Request, rep reply) {
	body := rep.encodeBody()
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

// acceptsGzip returns true if the header Accept-Encoding of a request allows gzip.
func acceptsGzip(r *http.Request) bool {
	for offer := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if coding == "gzip" && strings.TrimSpace(quality) != "q=0" {
			return true
		}
	}
	return false
}

// problemReply returns a reply with an error in the format of RFC 9457. Control calls and unknown paths get such replies. These replies do not
// simulate the error of a platform.
func problemReply(status int, detail string) reply {
	return reply{
		status: status, kind: "application/problem+json",
		body: object{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail},
	}
}
