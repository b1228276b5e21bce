package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// forms has five functions for each platform. Each function returns a different form of a video's
// link. `short` is the last part of the code of a short link.
var forms = map[link.Platform][5]func(v video, short string) string{
	link.TikTok: {
		func(v video, _ string) string { return v.url },
		func(v video, _ string) string { return v.url + "?is_from_webapp=1&sender_device=pc" },
		func(v video, _ string) string { return "https://m.tiktok.com/v/" + v.ID + ".html" },
		func(v video, _ string) string { return "tiktok.com/@" + strings.ToUpper(v.Handle) + "/video/" + v.ID },
		func(_ video, short string) string { return "https://vm.tiktok.com/ZMVide" + short + "/" },
	},
	link.Instagram: {
		func(v video, _ string) string { return v.url },
		func(v video, _ string) string { return "https://instagram.com/p/" + v.ID + "/?igsh=MzRlODBiNWFlZA==" },
		func(v video, _ string) string { return "https://www.instagram.com/reels/" + v.ID + "/" },
		func(v video, _ string) string { return "https://www.instagram.com/tv/" + v.ID },
		func(_ video, short string) string { return "https://www.instagram.com/share/reel/Vide" + short },
	},
	link.YouTube: {
		func(v video, _ string) string { return "https://www.youtube.com/shorts/" + v.ID },
		func(v video, _ string) string { return "https://youtu.be/" + v.ID + "?si=AbCdEf" },
		func(v video, _ string) string { return "https://m.youtube.com/watch?app=desktop&v=" + v.ID + "&t=12s" },
		func(v video, _ string) string { return "https://www.youtube.com/embed/" + v.ID },
		func(v video, _ string) string { return "https://www.youtube.com/live/" + v.ID + "?feature=share" },
	},
	link.Facebook: {
		func(v video, _ string) string { return v.url },
		func(v video, _ string) string { return "https://www.facebook.com/watch/?v=" + v.ID },
		func(v video, _ string) string { return "https://m.facebook.com/reel/" + v.ID + "/?s=single_unit" },
		func(v video, _ string) string { return "https://www.facebook.com/someone/videos/" + v.ID + "/" },
		func(_ video, short string) string { return "https://www.facebook.com/share/r/Vide" + short + "/" },
	},
}

// Requirements in docs/coverage.md: 2.2-04, 3-01, 4.3-02
func TestTracking_fetchesVideosOfEveryFormOfLink(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			ids := map[string]bool{}
			for _, p := range link.Platforms {
				for i, v := range s.publicVideos(t, p, len(forms[p]), 1) {
					url := forms[p][i](v, "Abc"+string(rune('d'+i)))
					var made struct{ VideoID, Error string }
					a := requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]any{"link": url})
					require.Equal(t, http.StatusOK, a.status, "%s: %s", url, a.body)
					a.decode(t, &made)
					require.Empty(t, made.Error, url)
					require.NotContains(t, ids, made.VideoID)
					ids[made.VideoID] = true
				}
			}
			for _, v := range s.awaitNumbers(t, 20, fetchTimeout) {
				require.True(t, ids[v.ID])
				require.Positive(t, *v.Views)
				l, err := link.Parse(v.Link)
				require.NoError(t, err)
				truth, ok := s.world.Video(l.Platform, l.ID, time.Now())
				require.True(t, ok)
				require.Equal(t, truth.Title, v.Title, v.Link)
				require.NotNil(t, v.VideoLength, v.Link)
				require.LessOrEqual(t, *v.Views, truth.Views)
				require.Greater(t, *v.Views, truth.Views*9/10)
			}
			log := s.collector.stderr.String()
			for _, source := range []string{"youtube", "instagram", "facebook", "vendor"} {
				require.Contains(t, log, `"path":"/`+source+`/`, "each source must have been called")
			}
			for _, setting := range s.sandboxProcess.env {
				if name, value, _ := strings.Cut(setting, "="); strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") {
					require.NotContains(t, log, value, name)
				}
			}
		})
	}
}

// Requirements in docs/coverage.md: 4.4-12, 4.4-18, 7-08
func TestBulk_tracksValidLinksBesideInvalidLinks(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			bad := map[string]string{
				"not a link":              "invalid_url",
				"https://example.com/v/1": "unsupported_platform",
				"https://www.youtube.com/playlist?list=PLFgquLnL59alCl_2TQvOiD5Vgm1hCaGSI": "unsupported_link",
				"https://www.tiktok.com/@someone":                                          "wrong_kind",
				"https://vm.tiktok.com/ZMGoneabc/":                                         "not_found",
			}
			links := videoLinks(append(s.publicVideos(t, link.TikTok, 25, 2), s.publicVideos(t, link.YouTube, 20, 2)...))
			for url := range bad {
				links = append(links, url)
			}
			a, b := s.trackLinks(t, links)
			require.Equal(t, http.StatusMultiStatus, a.status)
			require.False(t, b.Success)
			require.True(t, b.TrackingEnqueued)
			require.Equal(t, []int{50, 45, 5}, []int{b.Summary.Total, b.Summary.Succeeded, b.Summary.Failed})
			for _, r := range b.Results {
				require.Equal(t, bad[r.URL], r.Code, r.URL)
			}
			for _, v := range s.awaitNumbers(t, 45, fetchTimeout) {
				require.Positive(t, *v.Views)
			}
		})
	}
}
