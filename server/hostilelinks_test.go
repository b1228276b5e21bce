package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/outbound/outboundtest"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// answers to a link of a caller, one at a time and among many, by the words of the table.
var hostileAnswers = map[string]struct {
	status     int
	code       server.Code
	failure    client.TrackFailure
	connection bool
}{
	outboundtest.Parse:        {http.StatusBadRequest, server.CodeInvalidURL, "invalid_url", false},
	outboundtest.Name:         {http.StatusBadRequest, server.CodeUnsupportedPlatform, "unsupported_platform", false},
	outboundtest.Path:         {http.StatusBadRequest, server.CodeUnsupportedLink, "unsupported_link", false},
	outboundtest.Address:      {http.StatusServiceUnavailable, server.CodeLinkUnresolved, "link_unresolved", false},
	outboundtest.Unresolvable: {http.StatusServiceUnavailable, server.CodeLinkUnresolved, "platform_unavailable", false},
	outboundtest.Platform:     {http.StatusNotFound, server.CodeNotFound, "not_found", true},
}

// TestHostileLinks_reachNoInternalAddress hands in each hostile link as a caller would, with the resolver as it is in production but for
// the internet around it.
func TestHostileLinks_reachNoInternalAddress(t *testing.T) {
	t.Parallel()
	isPlatforms := func(host string) bool {
		_, ok := link.HostPlatform(host)
		return ok
	}
	world := outboundtest.NewInternet(t, isPlatforms, http.NotFoundHandler())
	links := outboundtest.Links(t, world.Inside)
	resolver, err := shortlink.New(shortlink.Options{Lookup: world.Lookup, Dial: world.Dial, RootCAs: world.Authority.Roots})
	require.NoError(t, err)
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = resolver })
	c := a.newCaller(t, store.TierPremium)

	var raw []string
	callers := map[string]outboundtest.Link{}
	for _, l := range links {
		callers[l.URL] = l
		if !strings.Contains(l.URL, "\x00") { // which fails the whole request that holds it
			raw = append(raw, l.URL)
		}
	}
	require.Len(t, raw, len(links)-1)
	for _, path := range []string{"/videos", "/accounts"} {
		for _, l := range links {
			before := world.Connections()
			want := hostileAnswers[l.Caller]
			if strings.Contains(l.URL, "\x00") {
				want.code = server.CodeInvalidRequest
			}
			p := c.send(http.MethodPost, path, map[string]any{"link": l.URL}).problem(want.status)
			require.Equal(t, string(want.code), p.Code, "%q: %s", l.URL, p.Detail)
			require.Equal(t, want.connection, world.Connections() > before, "%q", l.URL)
		}
	}
	for _, path := range []string{"/videos/bulk", "/accounts/bulk"} {
		got := decode[client.TrackVideosResult](c.send(http.MethodPost, path, map[string]any{"links": raw}).is(http.StatusUnprocessableEntity))
		require.Len(t, got.Results, len(raw))
		for i, e := range got.Results {
			require.Equal(t, raw[i], e.URL)
			require.Equal(t, hostileAnswers[callers[e.URL].Caller].failure, *e.Code, "%q: %s", e.URL, *e.Error)
		}
	}
	world.RequireUntouched(t, isPlatforms)
}
