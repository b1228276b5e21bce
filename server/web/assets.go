package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// asset is an embedded file that the browser loads.
type asset struct {
	body        []byte
	etag        string
	contentType string
}

// contentTypes are the media types of the assets. Package mime is not used, because its results depend on the operating system.
var contentTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

func (p *Pages) loadAssets() error {
	files, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		return err
	}
	for _, f := range files {
		body, err := fs.ReadFile(assetFiles, "assets/"+f.Name())
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		p.assets[f.Name()] = asset{body, hex.EncodeToString(sum[:8]), contentTypes[path.Ext(f.Name())]}
	}
	return nil
}

// assetPath returns the path of an asset for use in a page. The path contains the hash of the file, so that browsers can keep the file.
func (p *Pages) assetPath(name string) (string, error) {
	a, ok := p.assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return p.base + "/assets/" + name + "?" + a.etag, nil
}

// serveAsset sends an asset. Browsers keep it for a year if the address contains the hash of the file.
func serveAsset(v *visit) error {
	a, ok := v.assets[v.r.PathValue("name")]
	if !ok {
		return errNotFound
	}
	h := v.w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("ETag", `"`+a.etag+`"`)
	h.Set("Cache-Control", "no-cache")
	if v.r.URL.RawQuery == a.etag {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(v.w, v.r, "", time.Time{}, bytes.NewReader(a.body))
	return nil
}
