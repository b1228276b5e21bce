// Package swagger serves Swagger UI at /docs from this program alone: no other host is asked for anything.
//
// dist is Swagger UI as its makers publish it, compressed where that pays, with their licences; .ci/swagger-ui fetches it.
// page is ours.
package swagger

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed page dist
var files embed.FS

// policy lets the page load from and talk to its own server only. Swagger UI styles elements by attribute, so inline
// styles are let through; scripts are not.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Handler serves the page at /docs/ and its parts below, and redirects /docs there; nothing needs a token. specURL is
// where the contract is as JSON, absolute or relative to the page: /openapi.json, or ../openapi.json where a proxy may
// put the server under a path. The page calls the operations next to it.
//
// Answers to GET and HEAD bear an ETag and may be stored, but are asked for again each time; the large ones are sent as
// gzip to whoever takes it. Bodies of errors are plain text.
func Handler(specURL string) http.Handler {
	assets := map[string]asset{}
	for _, folder := range []string{"page", "dist"} {
		for _, entry := range must(fs.ReadDir(files, folder)) {
			name, body := entry.Name(), must(fs.ReadFile(files, path.Join(folder, entry.Name())))
			if name == "index.html" {
				page := bytes.ReplaceAll(body, []byte("{{contract}}"), []byte(html.EscapeString(specURL)))
				assets[""] = newAsset(name, page)
				continue
			}
			assets[strings.TrimSuffix(name, ".gz")] = newAsset(name, body)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		name, below := strings.CutPrefix(r.URL.Path, "/docs/")
		a, known := assets[name]
		switch {
		case r.URL.Path != "/docs" && (!below || !known):
			http.Error(w, "there is no such page", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed here", http.StatusMethodNotAllowed)
		case !below:
			// Relative, so that it holds under whatever path a proxy put the server; http.Redirect would make it absolute.
			h.Set("Location", "docs/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			a.serve(w, r)
		}
	})
}

// must is for what fails only if the files of this program are damaged.
func must[T any](v T, err error) T {
	if err != nil {
		panic("swagger: embedded files: " + err.Error())
	}
	return v
}

// asset is a file to serve.
type asset struct {
	contentType string
	etag        string // without quotes
	compressed  []byte // nil unless it is kept so
	plain       func() []byte
}

func newAsset(name string, body []byte) asset {
	sum := sha256.Sum256(body)
	a := asset{etag: hex.EncodeToString(sum[:16]), plain: func() []byte { return body }}
	if plain, ok := strings.CutSuffix(name, ".gz"); ok {
		name, a.compressed = plain, body
		// Few clients want it, and it is large: it is made when the first of them asks.
		a.plain = sync.OnceValue(func() []byte { return must(io.ReadAll(must(gzip.NewReader(bytes.NewReader(body))))) })
	}
	a.contentType = contentType(name)
	return a
}

// contentType does not ask the machine's own table of types, which may lack or misname them.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".png":
		return "image/png"
	default: // licences
		return "text/plain; charset=utf-8"
	}
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h, etag, body := w.Header(), a.etag, a.compressed
	if a.compressed != nil {
		h.Add("Vary", "Accept-Encoding")
	}
	if a.compressed != nil && takesGzip(strings.Join(r.Header.Values("Accept-Encoding"), ",")) {
		etag += "-gzip" // another representation
		h.Set("Content-Encoding", "gzip")
	} else {
		body = a.plain()
	}
	h.Set("Content-Type", a.contentType)
	h.Set("ETag", `"`+etag+`"`)
	h.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// takesGzip says whether Accept-Encoding allows gzip, by name or else by *, with a weight above 0.
func takesGzip(accepted string) bool {
	allowed := map[string]bool{}
	for coding := range strings.SplitSeq(strings.ToLower(accepted), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		_, q, weighted := strings.Cut(weight, "q=")
		allowed[strings.TrimSpace(name)] = !weighted || strings.Trim(q, " 0.") != ""
	}
	gzip, named := allowed["gzip"]
	return gzip || !named && allowed["*"]
}
