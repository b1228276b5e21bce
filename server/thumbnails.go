package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"github.com/reeltally/reeltally/store/link"
)

// The address of a thumbnail contains a signature, so the request needs no session. If there was no signature,
// anyone could find out whether this server tracks a given video.

// SignThumbnail returns the signature in the address of a video's thumbnail. externalID is the id of the video on its platform.
func (b pageBackend) SignThumbnail(p link.Platform, externalID string) string {
	mac := hmac.New(sha256.New, b.s.cursorKey)
	_, _ = mac.Write([]byte("thumbnail\x00" + string(p) + "\x00" + externalID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Thumbnail returns the image file of a video's thumbnail. It returns a *web.Problem with status
// 404 if no thumbnail is stored, or if the signature is wrong.
func (b pageBackend) Thumbnail(ctx context.Context, p link.Platform, externalID, signature string) ([]byte, error) {
	if !hmac.Equal([]byte(signature), []byte(b.SignThumbnail(p, externalID))) {
		return nil, b.problem(ctx, problem(CodeNotFound, "This picture does not exist."))
	}
	image, err := b.s.store.ThumbnailImage(ctx, p, externalID)
	return image, b.problem(ctx, err)
}
