package server_test

import (
	"context"
	"database/sql/driver"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestRoutes_headReturnsTheHeadersOfGetWithoutABody(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.track(tiktokLink).String()
	for _, target := range []string{"/authenticate", "/videos", "/videos?limit=0", "/videos/" + id, "/videos/" + id + "/history", "/livez", "/readyz", "/openapi.yaml"} {
		get, head := c.send(http.MethodGet, target, nil), c.send(http.MethodHead, target, nil)
		require.Equal(t, get.StatusCode, head.StatusCode, target)
		require.Equal(t, get.Header.Get("Content-Type"), head.Header.Get("Content-Type"))
		require.Empty(t, head.body)
	}
}

func TestRoutes_securityTextNamesTheContactAndItsEnd(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	text := a.send(t, http.MethodGet, "/.well-known/security.txt", nil).requireStatus(http.StatusOK)
	require.Equal(t, "text/plain; charset=UTF-8", text.Header.Get("Content-Type"))
	lines := strings.Split(string(text.body), "\n")
	require.Len(t, lines, 3)
	page, err := os.ReadFile("../SECURITY.md")
	require.NoError(t, err)
	require.Contains(t, string(page), strings.TrimPrefix(lines[0], "Contact: "))
	expires, err := time.Parse(time.RFC3339, strings.TrimPrefix(lines[1], "Expires: "))
	require.NoError(t, err)
	require.True(t, expires.After(a.Clock.Now()))
}

func TestRoutes_unsupportedMethodsGetStatus405AndAnAllowHeader(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for path, allowed := range map[string][]string{
		"/videos":                              {"DELETE", "GET", "HEAD", "OPTIONS", "POST"},
		"/videos/" + unknownID:                 {"DELETE", "GET", "HEAD", "OPTIONS"},
		"/videos/" + unknownID + "/history":    {"GET", "HEAD", "OPTIONS"},
		"/videos/https%3A%2F%2Fx.y%2F/history": {"GET", "HEAD", "OPTIONS"},
		"/authenticate":                        {"GET", "HEAD", "OPTIONS"},
		"/videos/bulk":                         {"DELETE", "OPTIONS", "POST"},
		"/accounts/bulk":                       {"DELETE", "OPTIONS", "POST"},
	} {
		options := c.send(http.MethodOptions, path, nil).requireStatus(http.StatusNoContent)
		require.ElementsMatch(t, allowed, strings.Split(options.Header.Get("Allow"), ", "), path)
		for _, method := range []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} {
			if slices.Contains(allowed, method) {
				continue
			}
			got := c.send(method, path, nil).requireStatus(http.StatusMethodNotAllowed)
			require.ElementsMatch(t, allowed, strings.Split(got.Header.Get("Allow"), ", "), "%s %s", method, path)
			if method != http.MethodHead {
				got.requireProblem(http.StatusMethodNotAllowed, server.CodeMethodNotAllowed)
			}
		}
	}
	c.send("BREW", "/videos", nil).requireProblem(http.StatusMethodNotAllowed, server.CodeMethodNotAllowed)
}

func TestRoutes_allowCrossOriginRequests(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	h := a.send(t, http.MethodOptions, "/videos", nil, "Origin", "https://elsewhere.example.test", "Access-Control-Request-Method", "DELETE",
		"Access-Control-Request-Headers", "authorization,content-type").requireStatus(http.StatusNoContent).Header
	require.Equal(t, "*", h.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "DELETE, GET, POST", h.Get("Access-Control-Allow-Methods"))
	require.Contains(t, h.Get("Access-Control-Allow-Headers"), "Authorization")
	require.Empty(t, h.Get("Access-Control-Allow-Credentials"), "the server must not allow browsers to send cookies with cross-origin requests")
	h = a.newCaller(t, store.TierPremium).send(http.MethodGet, "/videos", nil, "Origin", "https://elsewhere.example.test").Header
	exposed := strings.Split(h.Get("Access-Control-Expose-Headers"), ", ")
	for name := range sharedContract().doc.Components.Headers {
		if name != "Access-Control-Allow-Origin" { // only browsers use this header
			require.Contains(t, exposed, name)
		}
	}
	require.Empty(t, a.send(t, http.MethodGet, "/readyz", nil).Header.Get("Access-Control-Allow-Origin"))
}

func TestRoutes_unknownPathsReturn404(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	for _, path := range []string{"/videos/", "/Videos", "/videos/x/y", "/videos/bulk/x", "/.git/config", "//videos", "/videos/..%2f..%2fetc"} {
		got := a.send(t, http.MethodGet, path, nil)
		require.Contains(t, []int{http.StatusNotFound, http.StatusUnauthorized}, got.StatusCode, path)
	}
}

func TestRoutes_errorResponseDoesNotContainAVeryLongPath(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	long := strings.Repeat("x", 10_001)
	require.Equal(t, "/", c.send(http.MethodGet, "/videos/"+long+"/nowhere", nil).requireProblem(http.StatusNotFound, server.CodeNotFound).Instance)
	require.Equal(t, "/videos/:ad_id", c.send(http.MethodGet, "/videos/"+long, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest).Instance)
}

func TestRoutes_docsRedirectToSwaggerUI(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	require.Equal(t, "docs/", a.send(t, http.MethodGet, "/docs", nil).requireStatus(http.StatusTemporaryRedirect).Header.Get("Location"))
	page := a.send(t, http.MethodGet, "/docs/", nil).requireStatus(http.StatusOK)
	require.Contains(t, page.Header.Get("Content-Type"), "text/html")
	require.Contains(t, page.Header.Get("Content-Security-Policy"), "script-src 'self'")
}

func TestRoutes_returnAValidRequestIDUnchanged(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	for sent, kept := range map[string]bool{ // true if the response must have the same X-Request-Id as the request
		"abc": true, "a.b-c_1": true, strings.Repeat("a", 128): true,
		strings.Repeat("a", 129): false, "a b": false, "é": false, "a\"b": false, "<x>": false,
	} {
		got := a.send(t, http.MethodGet, "/authenticate", nil, "X-Request-Id", sent)
		require.Equal(t, kept, got.Header.Get("X-Request-Id") == sent, "%q", sent)
		require.Len(t, got.Header.Values("X-Request-Id"), 1)
	}
	first, second := a.send(t, http.MethodGet, "/livez", nil), a.send(t, http.MethodGet, "/livez", nil)
	require.NotEqual(t, first.Header.Get("X-Request-Id"), second.Header.Get("X-Request-Id"))
}

func TestRoutes_setStandardHeadersInEveryResponse(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Sandbox = true })
	for _, path := range []string{"/videos", "/livez", "/nowhere"} {
		h := a.send(t, http.MethodGet, path, nil).Header
		require.Equal(t, strings.ReplaceAll(sharedContract().doc.Info.Version, ".", "-"), h.Get("API-Version"))
		require.Equal(t, "true", h.Get("ReelTally-Sandbox"))
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "default-src 'none'; frame-ancestors 'none'", h.Get("Content-Security-Policy"))
		require.NotEmpty(t, h.Get("Strict-Transport-Security"), "Strict-Transport-Security must be set if AppURL starts with https")
	}
	plain := newApp(t, newSQLite(t), func(o *server.Options) { o.AppURL = "http://127.0.0.1:8080" })
	h := plain.newCaller(t, store.TierPremium).send(http.MethodGet, "/videos", nil).Header
	require.Empty(t, h.Get("Strict-Transport-Security"))
	require.Empty(t, h.Get("ReelTally-Sandbox"))
	require.Equal(t, "private, no-cache", h.Get("Cache-Control"))
	require.Contains(t, h.Get("Vary"), "Authorization")
}

// Requirements in docs/coverage.md: 11.3-04
func TestSandboxHeader_isSentOnlyIfTheNumbersInTheDatabaseAreMadeUp(t *testing.T) {
	t.Parallel()
	for kind, header := range map[store.DataKind]string{store.MadeUpData: "true", store.RealData: ""} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, a *app) {
				c := a.newCaller(t, store.TierPremium)
				require.Empty(t, c.send(http.MethodGet, "/videos", nil).Header.Get("ReelTally-Sandbox"), "the header must be missing while the database contains no numbers")
				storetest.SetDataKind(t, a.DB, kind)
				require.Equal(t, header, c.send(http.MethodGet, "/videos", nil).Header.Get("ReelTally-Sandbox"))
				require.Equal(t, header, a.send(t, http.MethodGet, "/livez", nil).Header.Get("ReelTally-Sandbox"))
			})
		})
	}
}

func TestRoutes_healthEndpointsReturn200(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		a.send(t, http.MethodGet, "/livez", nil).requireStatus(http.StatusOK)
		a.send(t, http.MethodGet, "/readyz", nil).requireStatus(http.StatusOK)
	})
}

func TestRoutes_requestGets500IfTheHandlerPanics(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	a.panicAt.Store(new("videos"))
	for _, target := range []string{"/videos", "/videos/" + unknownID} {
		c.send(http.MethodGet, target, nil).requireProblem(http.StatusInternalServerError, server.CodeInternal)
	}
	c.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink}).requireProblem(http.StatusInternalServerError, server.CodeInternal)
	require.Contains(t, a.log.String(), "made-up panic in /usr/src")
	a.panicAt.Store(nil)
	require.Empty(t, c.listVideos("").Data)
}

// panickingResolver is a resolver of short links whose method Resolve panics.
type panickingResolver struct{}

func (panickingResolver) Resolve(context.Context, link.Link) (link.Link, error) {
	panic("a bug in /usr/src")
}

// Requirements in docs/coverage.md: 4.4-12, 7-08
func TestBulkTrackVideos_onlyOneLinkFailsIfTheResolverPanics(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = panickingResolver{} })
	c := a.newCaller(t, store.TierPremium)
	const short = "https://vm.tiktok.com/ZMabcdef1/"
	got := c.trackVideos(http.StatusMultiStatus, []string{short, videoURL(1)})
	require.Equal(t, client.TrackSummary{Total: 2, Succeeded: 1, Failed: 1, Retryable: 1}, got.Summary)
	require.Equal(t, client.TrackFailure("internal"), *got.Results[0].Code)
	require.Contains(t, a.log.String(), "a bug in /usr/src")
	p := c.send(http.MethodPost, "/videos", map[string]any{"link": short}).requireProblem(http.StatusInternalServerError, server.CodeInternal)
	require.Contains(t, a.log.String(), p.RequestID)
}

func TestRoutes_useForwardedAddressesOnlyFromTrustedProxies(t *testing.T) {
	t.Parallel()
	countUntilLimited := func(a *app, address string) int {
		n := 0
		for a.send(t, http.MethodGet, "/videos", nil, "X-Forwarded-For", address).StatusCode == http.StatusUnauthorized {
			n++
		}
		return n
	}
	direct := newRateLimitedApp(t)
	require.Equal(t, 60, countUntilLimited(direct, "203.0.113.1"))
	require.Equal(t, 0, countUntilLimited(direct, "203.0.113.2"), "without a trusted proxy, requests must be limited by the address of the connection")

	proxied := newRateLimitedApp(t, func(o *server.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	require.Equal(t, 60, countUntilLimited(proxied, "203.0.113.1"))
	require.Equal(t, 60, countUntilLimited(proxied, "203.0.113.2"))
	require.Equal(t, 60, countUntilLimited(proxied, "2001:db8:1:2::1"))
	require.Equal(t, 0, countUntilLimited(proxied, "2001:db8:1:2::ffff"), "all IPv6 addresses of a /64 network must share a limit")
	require.Equal(t, 0, countUntilLimited(proxied, "198.51.100.9, 203.0.113.1"), "the last untrusted address must be used, because a client can forge the addresses before it")
}

func TestNew_refusesInvalidOptions(t *testing.T) {
	t.Parallel()
	base := newApp(t, newSQLite(t))
	var options server.Options
	newApp(t, base.DB, func(o *server.Options) { options = *o })
	for name, invalidate := range map[string]func(*server.Options){
		"Store":             func(o *server.Options) { o.Store = nil },
		"Now":               func(o *server.Options) { o.Now = nil },
		"URL":               func(o *server.Options) { o.AppURL = "app.example.test" },
		"ftp":               func(o *server.Options) { o.AppURL = "ftp://app.example.test" },
		"cursor key":        func(o *server.Options) { o.CursorKey = []byte("short") },
		"preview allowance": func(o *server.Options) { o.PreviewAllowance = -1 },
	} {
		o := options
		invalidate(&o)
		_, err := server.New(o)
		require.ErrorContains(t, err, name)
	}
}

func TestDatabaseFailure_returns503WithRateLimitHeaders(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.listVideos("")
	a.databaseError.Store(new(driver.ErrBadConn))
	got := c.send(http.MethodGet, "/videos", nil) // the server finds the token in its cache and counts the request, and then the query for the videos fails
	got.requireProblem(http.StatusServiceUnavailable, server.CodeUnavailable)
	require.NotEmpty(t, got.Header.Get("RateLimit-Limit"))
}

func TestDrain_serverIsNotReadyButAnswersRequests(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	require.False(t, c.send(http.MethodGet, "/readyz", nil).requireStatus(http.StatusOK).Close)
	a.server.Drain()
	c.send(http.MethodGet, "/readyz", nil).requireProblem(http.StatusServiceUnavailable, server.CodeUnavailable)
	require.NotContains(t, a.log.String(), "request failed", "a server that shuts down must not log an error")
	require.True(t, c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK).Close)
	c.track(tiktokLink)
	c.send(http.MethodGet, "/livez", nil).requireStatus(http.StatusOK)
}
