package shortlink_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tiktokID   = "7106594312292453675"
	tiktokLink = "https://www.tiktok.com/@user/video/" + tiktokID
	reelLink   = "https://www.instagram.com/reel/DCXkB8LpR2q/"
	facebookID = "1139247764231866"
)

// parseLink parses the URL raw as a link. The test fails if raw is not a link.
func parseLink(t *testing.T, raw string) link.Link {
	t.Helper()
	l, err := link.Parse(raw)
	require.NoError(t, err)
	return l
}

func TestResolver_returnsVideoOrAccountOfShortLink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		short    string
		sites    routes
		want     string
		requests []string
	}{
		"a short link to a video": {
			short:    "https://vm.tiktok.com/ZMabc1234/",
			sites:    routes{"vm.tiktok.com/ZMabc1234/": redirect301(tiktokLink + "?_r=1&_t=8abc")},
			want:     tiktokLink,
			requests: []string{"HEAD vm.tiktok.com/ZMabc1234/"},
		},
		"a short link to an account": {
			short: "vt.tiktok.com/ZSabc1234",
			sites: routes{"vt.tiktok.com/ZSabc1234/": redirect301("https://www.tiktok.com/@User?_t=8abc&_r=1")},
			want:  "https://www.tiktok.com/@user",
		},
		"a short link to a slideshow": {
			short: "https://www.tiktok.com/t/ZTabc1234/",
			sites: routes{"www.tiktok.com/t/ZTabc1234/": redirect302("https://www.tiktok.com/@user/photo/" + tiktokID)},
			want:  "https://www.tiktok.com/@user/photo/" + tiktokID,
		},
		"a redirect to the mobile URL of a video": {
			short: "https://vm.tiktok.com/ZMabc1234/",
			sites: routes{"vm.tiktok.com/ZMabc1234/": redirect301("https://m.tiktok.com/v/" + tiktokID + ".html?u_code=d")},
			want:  "https://www.tiktok.com/@/video/" + tiktokID,
		},
		"a short link that redirects to other short links, some of them with a query": {
			short: "https://vm.tiktok.com/ZMabc1234/",
			sites: routes{
				"vm.tiktok.com/ZMabc1234/":        redirect301("https://www.tiktok.com/t/ZTabc1234/?k=1#top"),
				"www.tiktok.com/t/ZTabc1234/?k=1": redirect301("/t/ZTabc9999/"),
				"www.tiktok.com/t/ZTabc9999/":     redirect301("//vt.tiktok.com/ZSabc1234/"),
				"vt.tiktok.com/ZSabc1234/":        redirect301("http://vt.tiktok.com:80/ZSabc1235/"),
				"vt.tiktok.com/ZSabc1235/":        redirect301(tiktokLink),
			},
			want: tiktokLink,
			requests: []string{
				"HEAD vm.tiktok.com/ZMabc1234/", "HEAD www.tiktok.com/t/ZTabc1234/?k=1", "HEAD www.tiktok.com/t/ZTabc9999/",
				"HEAD vt.tiktok.com/ZSabc1234/", "HEAD vt.tiktok.com/ZSabc1235/",
			},
		},
		"a short link of a server that refuses HEAD with 405": {
			short:    "https://fb.watch/3zYsXdnxjf/",
			sites:    routes{"fb.watch/3zYsXdnxjf/": {status: 302, location: "https://www.facebook.com/watch/?v=" + facebookID, head: 405}},
			want:     "https://www.facebook.com/reel/" + facebookID,
			requests: []string{"HEAD fb.watch/3zYsXdnxjf/", "GET fb.watch/3zYsXdnxjf/"},
		},
		"a short link of a server that answers HEAD with 404": {
			short: "https://fb.watch/3zYsXdnxjf/",
			sites: routes{"fb.watch/3zYsXdnxjf/": {status: 302, location: "https://www.facebook.com/reel/" + facebookID, head: 404}},
			want:  "https://www.facebook.com/reel/" + facebookID,
		},
		"a short link of a server that answers HEAD with 500": {
			short: "https://fb.watch/3zYsXdnxjf/",
			sites: routes{"fb.watch/3zYsXdnxjf/": {status: 302, location: "https://www.facebook.com/reel/" + facebookID, head: 500}},
			want:  "https://www.facebook.com/reel/" + facebookID,
		},
		"a short link of a server that answers HEAD with 200": {
			short: "https://www.instagram.com/share/reel/BALvq0iKYQ",
			sites: routes{"www.instagram.com/share/reel/BALvq0iKYQ/": {status: 302, location: reelLink + "?igsh=x", head: 200}},
			want:  reelLink,
		},
		"a redirect to a Facebook login URL that contains a video link": {
			short: "https://www.facebook.com/share/v/1AbCdEfGhI/",
			sites: routes{"www.facebook.com/share/v/1AbCdEfGhI/": redirect302(
				"https://www.facebook.com/login/?next=https%3A%2F%2Fwww.facebook.com%2Fwatch%2F%3Fv%3D" + facebookID)},
			want:     "https://www.facebook.com/reel/" + facebookID,
			requests: []string{"HEAD www.facebook.com/share/v/1AbCdEfGhI/"},
		},
		"a redirect to an Instagram login URL that contains a reel link": {
			short: "https://www.instagram.com/share/BAFg0zXyZ1",
			sites: routes{"www.instagram.com/share/BAFg0zXyZ1/": redirect302("/accounts/login/?next=%2Freel%2FDCXkB8LpR2q%2F")},
			want:  reelLink,
		},
		"a redirect to a login URL that contains another short link": {
			short: "https://fb.watch/3zYsXdnxjf/",
			sites: routes{
				"fb.watch/3zYsXdnxjf/":                 redirect302("https://www.facebook.com/login/?next=https%3A%2F%2Fwww.facebook.com%2Fshare%2Fv%2F1AbCdEfGhI%2F"),
				"www.facebook.com/share/v/1AbCdEfGhI/": redirect302("https://www.facebook.com/reel/" + facebookID),
			},
			want: "https://www.facebook.com/reel/" + facebookID,
		},
		"a redirect to a TikTok login URL that contains a video link": {
			short: "https://vm.tiktok.com/ZMabc1234/",
			sites: routes{"vm.tiktok.com/ZMabc1234/": redirect302("https://www.tiktok.com/login?redirect_url=https%3A%2F%2Fwww.tiktok.com%2F%40user%2Fvideo%2F" + tiktokID)},
			want:  tiktokLink,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newInternet(t, c.sites)
			got, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), parseLink(t, c.short))
			require.NoError(t, err)
			require.Equal(t, c.want, got.Canonical)
			require.NotEqual(t, link.Short, got.Kind)
			if c.requests != nil {
				require.Equal(t, c.requests, w.receivedRequests())
			}
		})
	}
}

func TestResolver_failsIfShortLinkLeadsToNoVideoOrAccount(t *testing.T) {
	t.Parallel()
	const short = "https://vm.tiktok.com/ZMabc1234/"
	at := func(a pageResponse) routes { return routes{"vm.tiktok.com/ZMabc1234/": a} }
	for name, c := range map[string]struct {
		short string
		sites routes
		code  string
	}{
		"the front page":                                      {short, at(redirect301("https://www.tiktok.com/?_r=1")), shortlink.CodeNotFound},
		"a redirect to the front page, /":                     {short, at(redirect301("/")), shortlink.CodeNotFound},
		"a login page":                                        {short, at(redirect301("https://www.tiktok.com/login?lang=en")), shortlink.CodeNotFound},
		"a login page that leads to the front page":           {short, at(redirect301("https://www.tiktok.com/login?redirect_url=https%3A%2F%2Fwww.tiktok.com%2F")), shortlink.CodeNotFound},
		"the page that a platform shows for missing pages":    {short, at(redirect301("https://www.tiktok.com/404?fromUrl=/t/ZTabc1234/")), shortlink.CodeNotFound},
		"status 404":                                          {short, at(pageResponse{status: 404}), shortlink.CodeNotFound},
		"status 410":                                          {short, at(pageResponse{status: 410}), shortlink.CodeNotFound},
		"a login page of Instagram":                           {"https://www.instagram.com/share/BAFg0zXyZ1", routes{"www.instagram.com/share/BAFg0zXyZ1/": redirect302("/accounts/login/")}, shortlink.CodeNotFound},
		"a login page of Facebook":                            {"https://fb.watch/3zYsXdnxjf/", routes{"fb.watch/3zYsXdnxjf/": redirect302("https://www.facebook.com/login/")}, shortlink.CodeNotFound},
		"a login page that leads to a Facebook group":         {"https://fb.watch/3zYsXdnxjf/", routes{"fb.watch/3zYsXdnxjf/": redirect302("https://www.facebook.com/login/?next=https%3A%2F%2Fwww.facebook.com%2Fgroups%2F1%2F")}, shortlink.CodeUnsupportedLink},
		"a live room":                                         {short, at(redirect301("https://www.tiktok.com/@user/live?_r=1")), shortlink.CodeUnsupportedLink},
		"a sound":                                             {short, at(redirect301("https://www.tiktok.com/music/x-" + tiktokID)), shortlink.CodeUnsupportedLink},
		"a group":                                             {"https://www.facebook.com/share/1AbCdEfGhI/", routes{"www.facebook.com/share/1AbCdEfGhI/": redirect302("https://www.facebook.com/groups/1/permalink/2/")}, shortlink.CodeUnsupportedLink},
		"a host that belongs to no platform":                  {short, at(redirect301("https://evil.net/@user/video/" + tiktokID)), shortlink.CodeUnsupportedLink},
		"another platform":                                    {short, at(redirect301("https://www.youtube.com/watch?v=dQw4w9WgXcQ")), shortlink.CodeUnsupportedLink},
		"a Facebook redirect page with a YouTube link":        {"https://fb.me/5aBcDeFgH", routes{"fb.me/5aBcDeFgH": redirect302("https://l.facebook.com/l.php?u=https%3A%2F%2Fyoutu.be%2FdQw4w9WgXcQ")}, shortlink.CodeUnsupportedLink},
		"an app store":                                        {short, at(redirect301("itms-apps://itunes.apple.com/app/id835599320")), shortlink.CodeUnsupportedLink},
		"an address with the URL scheme of an app":            {short, at(redirect301("snssdk1233://aweme/detail/" + tiktokID)), shortlink.CodeUnsupportedLink},
		"an address with another port":                        {short, at(redirect301("https://vm.tiktok.com:8443/ZMabc1235/")), shortlink.CodeUnsupportedLink},
		"an address with a user name":                         {short, at(redirect301("https://user@vm.tiktok.com/ZMabc1235/")), shortlink.CodeUnsupportedLink},
		"a page without a redirect":                           {short, at(pageResponse{status: 200}), shortlink.CodeLinkUnresolved},
		"a redirect without an address":                       {short, at(pageResponse{status: 302}), shortlink.CodeLinkUnresolved},
		"a redirect to an invalid address":                    {short, at(redirect301("https://vm.tiktok.com/%zz")), shortlink.CodeLinkUnresolved},
		"status 403":                                          {short, at(pageResponse{status: 403}), shortlink.CodeLinkUnresolved},
		"too many requests":                                   {short, at(pageResponse{status: 429}), shortlink.CodeRateLimited},
		"a server error":                                      {short, at(pageResponse{status: 500}), shortlink.CodePlatformUnavailable},
		"a gateway error":                                     {short, at(pageResponse{status: 503}), shortlink.CodePlatformUnavailable},
		"a redirect to itself":                                {short, at(redirect301(short)), shortlink.CodeLinkUnresolved},
		"a redirect loop of two links":                        {short, routes{"vm.tiktok.com/ZMabc1234/": redirect301("/ZMabc1235/"), "vm.tiktok.com/ZMabc1235/": redirect301("/ZMabc1234/")}, shortlink.CodeLinkUnresolved},
		"a login page that leads back to the same short link": {"https://fb.watch/3zYsXdnxjf/", routes{"fb.watch/3zYsXdnxjf/": redirect302("https://www.facebook.com/login/?next=https%3A%2F%2Ffb.watch%2F3zYsXdnxjf%2F")}, shortlink.CodeLinkUnresolved},
		"six redirects": {short, routes{
			"vm.tiktok.com/ZMabc1234/": redirect301("/ZMabc0001/"), "vm.tiktok.com/ZMabc0001/": redirect301("/ZMabc0002/"), "vm.tiktok.com/ZMabc0002/": redirect301("/ZMabc0003/"),
			"vm.tiktok.com/ZMabc0003/": redirect301("/ZMabc0004/"), "vm.tiktok.com/ZMabc0004/": redirect301("/ZMabc0005/"), "vm.tiktok.com/ZMabc0005/": redirect301(tiktokLink),
		}, shortlink.CodeLinkUnresolved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newInternet(t, c.sites)
			got, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), parseLink(t, c.short))
			requireCode(t, err, c.code)
			require.Equal(t, link.Link{}, got)
			require.LessOrEqual(t, len(w.receivedRequests()), 6, "the resolver may send HEAD to five addresses, and GET to the last one")
		})
	}
}

// requireCode requires that err is a *shortlink.Error with the given code and the matching value of
// Retryable. The Detail must be a sentence without IP addresses.
func requireCode(t *testing.T, err error, code string) {
	t.Helper()
	var failed *shortlink.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, code, failed.Code, failed.Detail)
	retryable := []string{shortlink.CodeLinkUnresolved, shortlink.CodePlatformUnavailable, shortlink.CodeRateLimited}
	require.Equal(t, slices.Contains(retryable, code), failed.Retryable)
	require.True(t, strings.HasSuffix(failed.Detail, "."), failed.Detail)
	require.NotContains(t, failed.Detail, "127.0.0.1")
	require.NotContains(t, failed.Detail, publicAddress)
}

func TestResolver_doesNotReadResponseBodies(t *testing.T) {
	t.Parallel()
	connectionClosed := make(chan struct{})
	w := newInternet(t, routes{"vm.tiktok.com/ZMabc1234/": {status: 302, location: tiktokLink, head: 405, endless: connectionClosed}})
	got, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), parseLink(t, "https://vm.tiktok.com/ZMabc1234/"))
	require.NoError(t, err)
	require.Equal(t, tiktokLink, got.Canonical)
	<-connectionClosed // the client must close the connection without reading the endless body
	for _, header := range w.receivedHeaders() {
		for _, name := range []string{"Cookie", "Authorization", "Referer", "Proxy-Authorization", "Accept-Encoding"} {
			require.Empty(t, header.Get(name), name)
		}
		require.Contains(t, header.Get("User-Agent"), "ReelTally")
	}
}

func TestResolver_ignoresCookiesOfResponses(t *testing.T) {
	t.Parallel()
	w := newInternet(t, routes{
		"vm.tiktok.com/ZMabc1234/": {status: 302, location: "/ZMabc1235/", cookie: "session=1; Path=/"},
		"vm.tiktok.com/ZMabc1235/": redirect301(tiktokLink),
	})
	r := w.newResolver(t, shortlink.Options{})
	for range 2 {
		_, err := r.Resolve(t.Context(), parseLink(t, "https://vm.tiktok.com/ZMabc1234/"))
		require.NoError(t, err)
	}
	require.Len(t, w.receivedHeaders(), 4, "the second call must send the same two requests")
	for _, header := range w.receivedHeaders() {
		require.Empty(t, header.Get("Cookie"))
	}
}

func TestResolver_stopsAtRedirectLoop(t *testing.T) {
	t.Parallel()
	w := newInternet(t, routes{"vm.tiktok.com/ZMabc1234/": redirect301("/ZMabc1235/"), "vm.tiktok.com/ZMabc1235/": redirect301("/ZMabc1234/")})
	_, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), parseLink(t, "https://vm.tiktok.com/ZMabc1234/"))
	require.ErrorContains(t, err, "loop")
	require.Equal(t, []string{"HEAD vm.tiktok.com/ZMabc1234/", "HEAD vm.tiktok.com/ZMabc1235/"}, w.receivedRequests())
}

func TestResolver_doesNotChangeLinkThatIsNotShort(t *testing.T) {
	t.Parallel()
	w := newInternet(t, nil)
	video := parseLink(t, tiktokLink)
	got, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), video)
	require.NoError(t, err)
	require.Equal(t, video, got)
	require.Empty(t, w.receivedRequests())
}

func TestResolver_returnsErrorIfPlatformIsUnreachable(t *testing.T) {
	t.Parallel()
	short := parseLink(t, "https://vm.tiktok.com/ZMabc1234/")

	t.Run("a platform that does not answer", func(t *testing.T) {
		t.Parallel()
		w := newInternet(t, routes{"vm.tiktok.com/ZMabc1234/": {silent: true}})
		_, err := w.newResolver(t, shortlink.Options{Timeout: 50 * time.Millisecond}).Resolve(t.Context(), short)
		requireCode(t, err, shortlink.CodePlatformUnavailable)
		require.ErrorContains(t, err, "vm.tiktok.com did not answer within 50ms")
	})
	t.Run("the caller cancels the request", func(t *testing.T) {
		t.Parallel()
		w := newInternet(t, routes{"vm.tiktok.com/ZMabc1234/": {silent: true}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-w.arrived
			cancel()
		}()
		_, err := w.newResolver(t, shortlink.Options{}).Resolve(ctx, short)
		requireCode(t, err, shortlink.CodeLinkUnresolved)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("a refused connection", func(t *testing.T) {
		t.Parallel()
		w := newInternet(t, nil)
		refused := errors.New("connection refused")
		_, err := w.newResolver(t, shortlink.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, refused }}).Resolve(t.Context(), short)
		requireCode(t, err, shortlink.CodePlatformUnavailable)
		require.ErrorIs(t, err, refused)
	})
	t.Run("a host name that does not exist", func(t *testing.T) {
		t.Parallel()
		w := newInternet(t, nil)
		gone := &net.DNSError{Err: "no such host", Name: "vm.tiktok.com", IsNotFound: true}
		_, err := w.newResolver(t, shortlink.Options{Lookup: func(context.Context, string, string) ([]netip.Addr, error) { return nil, gone }}).Resolve(t.Context(), short)
		requireCode(t, err, shortlink.CodePlatformUnavailable)
		require.ErrorIs(t, err, gone)
	})
	t.Run("an untrusted certificate", func(t *testing.T) {
		t.Parallel()
		w := newInternet(t, routes{"vm.tiktok.com/ZMabc1234/": redirect301(tiktokLink)})
		w.roots = newInternet(t, nil).roots
		_, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), short)
		requireCode(t, err, shortlink.CodePlatformUnavailable)
		require.Empty(t, w.receivedRequests())
	})
	t.Run("headers that are too large", func(t *testing.T) {
		t.Parallel()
		w := newInternet(t, routes{"vm.tiktok.com/ZMabc1234/": {status: 302, location: tiktokLink, cookie: strings.Repeat("x", 1<<20)}})
		_, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), short)
		requireCode(t, err, shortlink.CodePlatformUnavailable)
	})
}

func TestResolver_refusesDNSRebinding(t *testing.T) {
	t.Parallel()
	w := newInternet(t, routes{"vm.tiktok.com/ZMabc1234/": redirect301("https://vt.tiktok.com/ZMabc1235/"), "vt.tiktok.com/ZMabc1235/": redirect301(tiktokLink)})
	lookups := 0
	var log bytes.Buffer
	r := w.newResolver(t, shortlink.Options{
		Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			lookups++
			if lookups%2 == 1 {
				return []netip.Addr{netip.MustParseAddr(publicAddress)}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Logger: slog.New(slog.NewJSONHandler(&log, nil)),
	})
	_, err := r.Resolve(t.Context(), parseLink(t, "https://vm.tiktok.com/ZMabc1234/"))
	requireCode(t, err, shortlink.CodeLinkUnresolved)
	var refused *outbound.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []string{"HEAD vm.tiktok.com/ZMabc1234/"}, w.receivedRequests())
	require.Equal(t, []string{publicAddress + ":443"}, w.dialedAddresses())
	require.Contains(t, log.String(), `"level":"WARN"`, "the resolver must log a warning if a platform host resolves to an internal address")
	require.Contains(t, log.String(), `"msg":"cannot resolve a short link"`)
}

func TestResolver_sendsRequestsToBaseURL(t *testing.T) {
	t.Parallel()
	w := newInternet(t, routes{
		"simulated.example/shortlinks/vm.tiktok.com/ZMabc1234/":          redirect301("https://www.tiktok.com/t/ZTabc1234/?k=1"),
		"simulated.example/shortlinks/www.tiktok.com/t/ZTabc1234/?k=1":   redirect301(tiktokLink),
		"simulated.example/shortlinks/vm.tiktok.com/ZMabc0001/":          redirect301("https://evil.net/"),
		"simulated.example/shortlinks/vm.tiktok.com/ZMabc0002/":          redirect301("http://127.0.0.1:1/@user/video/" + tiktokID),
		"simulated.example/shortlinks/www.facebook.com/share/1AbCdEfGh/": redirect301("/reel/" + facebookID),
	})
	for _, base := range []string{w.plain.URL + "/shortlinks", w.plain.URL + "/shortlinks/"} {
		r := w.newResolver(t, shortlink.Options{BaseURL: base})
		got, err := r.Resolve(t.Context(), parseLink(t, "https://vm.tiktok.com/ZMabc1234/"))
		require.NoError(t, err)
		require.Equal(t, tiktokLink, got.Canonical)
		got, err = r.Resolve(t.Context(), parseLink(t, "https://www.facebook.com/share/1AbCdEfGh/"))
		require.NoError(t, err, "a relative redirect must be relative to the platform and not to the base URL")
		require.Equal(t, "https://www.facebook.com/reel/"+facebookID, got.Canonical)
		for _, short := range []string{"https://vm.tiktok.com/ZMabc0001/", "https://vm.tiktok.com/ZMabc0002/"} {
			_, err = r.Resolve(t.Context(), parseLink(t, short))
			requireCode(t, err, shortlink.CodeUnsupportedLink)
		}
		_, err = r.Resolve(t.Context(), parseLink(t, "https://vm.tiktok.com/ZMabc0003/"))
		requireCode(t, err, shortlink.CodeNotFound)
	}
	for _, address := range w.dialedAddresses() {
		require.Equal(t, w.plain.Listener.Addr().String(), address, "the resolver must connect only to the base URL")
	}
}

func TestNew_failsIfBaseURLIsInvalid(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"127.0.0.1:9090", "/shortlinks", "ftp://127.0.0.1/", "http://", "http://127.0.0.1/?x=1", "http://127.0.0.1/#x", "http://%zz/"} {
		_, err := shortlink.New(shortlink.Options{BaseURL: base})
		require.ErrorContains(t, err, "it must be http://HOST/PATH", base)
	}
	for _, base := range []string{"", "http://127.0.0.1:9090/shortlinks", "https://sandbox", "http://[::1]:9090"} {
		_, err := shortlink.New(shortlink.Options{BaseURL: base})
		require.NoError(t, err, base)
	}
}

func TestResolver_refusesShortLinkWithAddressOutsideItsPlatform(t *testing.T) {
	t.Parallel()
	w := newInternet(t, nil)
	for _, canonical := range []string{
		"http://vm.tiktok.com/ZMabc1234/", "https://evil.net/ZMabc1234/", "https://user@vm.tiktok.com/", "https://vm.tiktok.com:80/", "%zz", "",
		"https://fb.watch/3zYsXdnxjf/", // an address of Facebook, which is not the platform of the link
	} {
		forged := link.Link{Platform: link.TikTok, Kind: link.Short, ID: "ZMabc1234", Canonical: canonical}
		_, err := w.newResolver(t, shortlink.Options{}).Resolve(t.Context(), forged)
		requireCode(t, err, shortlink.CodeUnsupportedLink)
	}
	require.Empty(t, w.dialedAddresses())
}
