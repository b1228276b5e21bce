package sandbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store/link"
)

// followShortLink requests a short link and follows at most maxRedirects redirects. It returns the
// last URL, the last status, and the number of redirects.
func (r testServer) followShortLink(t *testing.T, address string, maxRedirects int) (last string, status, hops int) {
	t.Helper()
	for {
		a := r.mustSend(t, http.MethodHead, "/shortlinks/"+strings.TrimPrefix(address, "https://"), "")
		location := a.Header.Get("Location")
		if location == "" || hops == maxRedirects {
			return address, a.StatusCode, hops
		}
		hops++
		require.True(t, strings.HasPrefix(location, "https://"), location)
		address = location
	}
}

func TestShortLinks_prefixOfCodeDeterminesTarget(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	for _, c := range []struct {
		short, want string // a short link, and a regular expression for the URL after all redirects
		status      int
		hops        int
	}{
		{"vm.tiktok.com/ZMVideabc/", `^https://www\.tiktok\.com/@\w+/video/\d{19}\?_r=1`, 200, 1},
		{"vt.tiktok.com/ZSAcctabc/", `^https://www\.tiktok\.com/@\w+\?_t=`, 200, 1},
		{"www.tiktok.com/t/ZTDeadabc/", `^https://www\.tiktok\.com/\?_r=1$`, 200, 1},
		{"vm.tiktok.com/ZMWallabc/", `^https://www\.tiktok\.com/login\?redirect_url=`, 200, 1},
		{"vm.tiktok.com/ZMLiveabc/", `^https://www\.tiktok\.com/@\w+/live`, 200, 1},
		{"vm.tiktok.com/ZMFotoabc/", `^https://www\.tiktok\.com/@\w+/photo/\d{19}`, 200, 1},
		{"vm.tiktok.com/ZMGoneabc/", `^https://vm\.tiktok\.com/ZMGoneabc/$`, 404, 0},
		{"vm.tiktok.com/ZMHopsabc/", `^https://www\.tiktok\.com/@\w+/video/\d{19}`, 200, 2},
		{"vm.tiktok.com/ZMLoopabc/", `^https://vm\.tiktok\.com/ZMLoopabc/$`, 301, 5},
		{"www.instagram.com/share/reel/Videabcdef", `^https://www\.instagram\.com/reel/[\w-]{11}/\?igsh=`, 200, 1},
		{"www.instagram.com/share/Acctabcdef/", `^https://www\.instagram\.com/\w+/\?igsh=`, 200, 1},
		{"www.instagram.com/share/p/Wallabcdef", `^https://www\.instagram\.com/accounts/login/\?next=https%3A%2F%2Fwww\.instagram\.com%2Freel%2F`, 200, 1},
		{"www.instagram.com/share/reel/Hopsabcdef", `^https://www\.instagram\.com/reel/`, 200, 2},
		{"fb.watch/Videabcdef/", `^https://www\.facebook\.com/`, 200, 1},
		{"www.facebook.com/share/r/Acctabcdef/", `^https://www\.facebook\.com/[\w.]+\?mibextid=`, 200, 1},
		{"www.facebook.com/share/v/Wallabcdef/", `^https://www\.facebook\.com/login/\?next=https%3A%2F%2Fwww\.facebook\.com%2F`, 200, 1},
		{"www.facebook.com/share/r/Deadabcdef/", `^https://www\.facebook\.com/$`, 200, 1},
		{"fb.watch/Hopsabcdef/", `^https://www\.facebook\.com/`, 200, 2},
	} {
		t.Run(c.short, func(t *testing.T) {
			t.Parallel()
			last, status, hops := r.followShortLink(t, "https://"+c.short, 5)
			require.Regexp(t, c.want, last)
			require.Equal(t, c.status, status)
			require.Equal(t, c.hops, hops)
		})
	}
}

func TestShortLinks_nearlyAllRedirectToVideos(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	for _, p := range []link.Platform{link.TikTok, link.Instagram, link.Facebook} {
		videos := 0
		for i := range 2000 {
			target := s.shortLinkTarget(p, fmt.Sprintf("ZM%dxyz", 100000+i))
			l, err := link.Parse(target.location)
			if err == nil && l.Kind == link.Video {
				videos++
				v, ok := s.World().Video(p, l.ID, testNow)
				require.True(t, ok)
				require.Equal(t, Public, v.State)
				if l.Handle != "" {
					require.Equal(t, v.Account.Handle, l.Handle, "the link must contain the account of the video")
				}
			}
		}
		require.Greater(t, videos, 1900, p)
		require.Less(t, videos, 2000, p)
	}
}

func TestShortLinks_alwaysRedirectToSameTarget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.StringMatching(`Z[A-Za-z0-9]{8}`).Draw(t, "code")
		p := rapid.SampledFrom([]link.Platform{link.TikTok, link.Instagram, link.Facebook}).Draw(t, "platform")
		first := New(Options{}).shortLinkTarget(p, code)
		require.Equal(t, first, New(Options{}).shortLinkTarget(p, code))
	})
}

func TestShortLinks_refuseOtherHostsAndMethods(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	require.Equal(t, 404, r.mustSend(t, http.MethodGet, "/shortlinks/evil.example/ZMabc/", "").StatusCode)
	require.Equal(t, 405, r.mustSend(t, http.MethodPost, "/shortlinks/vm.tiktok.com/ZMabc123/", "").StatusCode)
	require.Equal(t, 200, r.mustSend(t, http.MethodGet, "/shortlinks/www.youtube.com/shorts/dQw4w9WgXcQ", "").StatusCode)
	get := r.mustSend(t, http.MethodGet, "/shortlinks/vm.tiktok.com/ZMVideabc/", "")
	require.Contains(t, get.Header.Get("Content-Type"), "text/html")
}

func TestShortLinks_returnErrorsWhileFaultIsActive(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	request := func() answer { return r.mustSend(t, http.MethodGet, "/shortlinks/vm.tiktok.com/ZMVideabc/", "") }
	r.setFault(t, `{"source":"shortlinks","fault":"rate_limited","count":1,"retry_after":3}`)
	a := request()
	require.Equal(t, 429, a.StatusCode)
	require.Equal(t, "3", a.Header.Get("Retry-After"))
	r.setFault(t, `{"source":"shortlinks","fault":"server_error","count":1}`)
	require.Equal(t, 503, request().StatusCode)
	r.setFault(t, `{"source":"shortlinks","fault":"hostile"}`)
	seen := map[string]bool{}
	for range 12 {
		a = request()
		require.Equal(t, http.StatusFound, a.StatusCode)
		seen[a.Header.Get("Location")] = true
	}
	require.Len(t, seen, 12)
	require.Contains(t, seen, "http://127.0.0.1:22/")
	r.mustSend(t, http.MethodDelete, "/_control/faults", "")
	require.Equal(t, 301, request().StatusCode)
}
