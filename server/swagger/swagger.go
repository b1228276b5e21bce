// Package swagger serves Swagger UI at /docs. Handler is its only exported function. All files are embedded in the program, so that the
// page loads nothing from other hosts.
//
// The folder dist contains the published files of Swagger UI and their licences. Large files are compressed with gzip. The program
// .ci/swagger-ui downloads the files. The folder page contains the page of ReelTally that loads Swagger UI.
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

// policy is the Content-Security-Policy of the Swagger UI page. It allows inline styles, because
// Swagger UI sets style attributes.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Handler returns a handler that serves Swagger UI at /docs/ without authentication. specURL is the
// URL of the OpenAPI contract as JSON, absolute or relative to the page.
func Handler(specURL string) http.Handler {
	assets := map[string]asset{}
	for _, folder := range []string{"page", "dist"} {
		for _, entry := range valueOrPanic(fs.ReadDir(files, folder)) {
			name, body := entry.Name(), valueOrPanic(fs.ReadFile(files, path.Join(folder, entry.Name())))
			if name == "index.html" {
				// With the URL ../openapi.json, the page also works if a proxy adds a path prefix.
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
			http.Error(w, "this page does not exist", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "this page allows only the methods GET and HEAD", http.StatusMethodNotAllowed)
		case !below:
			// The Location is relative, because a proxy can add a path prefix. http.Redirect would make it absolute.
			h.Set("Location", "docs/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			a.serve(w, r)
		}
	})
}

// valueOrPanic returns v, or panics if err is not nil. It is used for embedded files. Reading them fails only if the program file is
// damaged.
func valueOrPanic[T any](v T, err error) T {
	if err != nil {
		panic("swagger: embedded files: " + err.Error())
	}
	return v
}

// asset is an embedded file that the handler can serve.
type asset struct {
	contentType string
	etag        string        // ETag of the uncompressed file, without quotes
	compressed  []byte        // content of the file, compressed with gzip; nil if the file is embedded uncompressed
	plain       func() []byte // function that returns the uncompressed content of the file
}

// newAsset returns the asset of an embedded file with this name and content. If name ends in .gz, body is compressed with gzip.
func newAsset(name string, body []byte) asset {
	sum := sha256.Sum256(body)
	a := asset{etag: hex.EncodeToString(sum[:16]), plain: func() []byte { return body }}
	if plain, ok := strings.CutSuffix(name, ".gz"); ok {
		name, a.compressed = plain, body
		// The file is decompressed only when a client needs it uncompressed for the first time, because the file is large and most clients
		// accept gzip.
		a.plain = sync.OnceValue(func() []byte { return valueOrPanic(io.ReadAll(valueOrPanic(gzip.NewReader(bytes.NewReader(body))))) })
	}
	a.contentType = contentType(name)
	return a
}

// contentType returns the media type of the file with this name. It does not use package mime, whose results depend on the operating
// system.
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
	default: // the file is a licence, such as LICENSE or NOTICE
		return "text/plain; charset=utf-8"
	}
}

// serve answers a request with the file, compressed if the client accepts gzip.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h, etag, body := w.Header(), a.etag, a.compressed
	if a.compressed != nil {
		h.Add("Vary", "Accept-Encoding")
	}
	if a.compressed != nil && acceptsGzip(strings.Join(r.Header.Values("Accept-Encoding"), ",")) {
		etag += "-gzip" // the ETag must differ from the ETag of the uncompressed file
		h.Set("Content-Encoding", "gzip")
	} else {
		body = a.plain()
	}
	h.Set("Content-Type", a.contentType)
	h.Set("ETag", `"`+etag+`"`)
	h.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip returns true if a client with this Accept-Encoding header accepts gzip. The weight of
// gzip must be above 0.
func acceptsGzip(accepted string) bool {
	allowed := map[string]bool{}
	for coding := range strings.SplitSeq(strings.ToLower(accepted), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		_, q, weighted := strings.Cut(weight, "q=")
		allowed[strings.TrimSpace(name)] = !weighted || strings.Trim(q, " 0.") != ""
	}
	gzip, named := allowed["gzip"]
	// If gzip is not listed, the weight of * must be above 0.
	return gzip || !named && allowed["*"]
}
