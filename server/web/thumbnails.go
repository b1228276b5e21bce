package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store/link"
)

// placeholder is the SVG image that pages show while a video has no stored thumbnail. It has the
// proportions of a portrait video.
const placeholder = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 160" width="90" height="160"><rect width="90" height="160" fill="#8883"/>` +
	`<path d="M36 64v32l26-16z" fill="#888"/></svg>`

// thumbnailPath returns the path of a video's thumbnail on this server, or "" if no source has given the address of a picture.
func (p *Pages) thumbnailPath(v client.Video) string {
	l, err := link.Parse(v.AdLink)
	if v.ThumbnailURL == nil || err != nil {
		return ""
	}
	return fmt.Sprintf("%s/thumbnails/%s/%s/%s", p.base, l.Platform, url.PathEscape(l.ID), p.Backend.SignThumbnail(l.Platform, l.ID))
}

// showThumbnail sends the thumbnail of a video. While no thumbnail is stored, it sends the placeholder, because browsers show a missing
// image as an error.
func showThumbnail(v *visit) error {
	image, err := v.Backend.Thumbnail(v.r.Context(), link.Platform(v.r.PathValue("platform")), v.r.PathValue("id"), v.r.PathValue("signature"))
	kind, age := "image/jpeg", 7*24*60*60
	if missing := (*Problem)(nil); errors.As(err, &missing) && missing.Status == http.StatusNotFound {
		image, kind, age = []byte(placeholder), "image/svg+xml", 60
	} else if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", fmt.Sprintf("private, max-age=%d", age))
	h.Set("X-Content-Type-Options", "nosniff")
	_, err = v.w.Write(image) //nolint:gosec // safe: the content type is that of a picture, and nosniff forbids browsers to read it as another type
	return err
}
