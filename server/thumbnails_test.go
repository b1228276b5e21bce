package server_test

import (
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// externalID returns the id of the video in videoURL(n).
func externalID(n int) string { return path.Base(videoURL(n)) }

func TestThumbnails_areServedOnlyWithAValidSignature(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		v := c.newSignedInVisitor(t)
		c.track(videoURL(1))
		c.track(videoURL(2))
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			facts := ingest.VideoFacts{Views: new(int64(1))}
			if target.ExternalID == externalID(1) {
				facts.ThumbnailURL = new("https://p16.tiktokcdn.com/1.jpeg")
			}
			return facts
		})
		var addresses []string
		for _, picture := range findElements(v.visit("/video").parsePage(), "img") {
			addresses = append(addresses, attributeValue(picture, "src"))
		}
		require.Len(t, addresses, 1, "the page must show a thumbnail for the first video, and none for the second")

		outside := &visitor{app: a, t: t}
		missing := outside.visit(addresses[0]).requireStatus(http.StatusOK)
		require.Equal(t, "image/svg+xml", missing.Header.Get("Content-Type"), "the server must send the placeholder, because no copy of the picture is stored")
		known := store.Thumbnail{Platform: link.TikTok, ExternalID: externalID(1), URL: "https://p16.tiktokcdn.com/1.jpeg"}
		require.NoError(t, a.RequestThumbnails(t.Context(), []store.Thumbnail{known}))
		require.NoError(t, a.SaveThumbnail(t.Context(), known, []byte("a small picture")))
		stored := outside.visit(addresses[0]).requireStatus(http.StatusOK)
		require.Equal(t, "image/jpeg", stored.Header.Get("Content-Type"))
		require.Equal(t, "a small picture", string(stored.body))
		require.Equal(t, "private, max-age=604800", stored.Header.Get("Cache-Control"))

		for _, wrong := range []string{strings.Replace(addresses[0], externalID(1), externalID(2), 1), strings.Replace(addresses[0], "tiktok", "youtube", 1), addresses[0][:len(addresses[0])-1] + "_"} {
			got := outside.visit(wrong).requireStatus(http.StatusOK)
			require.Equal(t, missing.body, got.body, "a wrong signature must be answered like a missing picture")
		}
	})
}
