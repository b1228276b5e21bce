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

// hostileResponses has the expected responses to hostile links, by the name of the check that refuses the link.
var hostileResponses = map[string]struct {
	status     int                 // status of the response to a request with one link
	code       server.Code         // error code in the response to a request with one link
	failure    client.TrackFailure // code of the link in the response to a bulk request
	connection bool                // true if the server connects to a platform before it refuses the link
}{
	outboundtest.Parse:        {http.StatusBadRequest, server.CodeInvalidURL, "invalid_url", false},
	outboundtest.Name:         {http.StatusBadRequest, server.CodeUnsupportedPlatform, "unsupported_platform", false},
	outboundtest.Path:         {http.StatusBadRequest, server.CodeUnsupportedLink, "unsupported_link", false},
	outboundtest.Address:      {http.StatusServiceUnavailable, server.CodeLinkUnresolved, "link_unresolved", false},
	outboundtest.Unresolvable: {http.StatusServiceUnavailable, server.CodeLinkUnresolved, "platform_unavailable", false},
	outboundtest.Platform:     {http.StatusNotFound, server.CodeNotFound, "not_found", true},
}

// TestHostileLinks_causeNoConnectionToInternalAddresses sends each hostile link to the operations that track videos and accounts. The
// server uses the real resolver of short links. DNS and the network are simulated.
func TestHostileLinks_causeNoConnectionToInternalAddresses(t *testing.T) {
	t.Parallel()
	isPlatforms := func(host string) bool {
		_, ok := link.PlatformOfHost(host)
		return ok
	}
	internet := outboundtest.NewInternet(t, isPlatforms, http.NotFoundHandler())
	links := outboundtest.Links(t, internet.Listener)
	resolver, err := shortlink.New(shortlink.Options{Lookup: internet.Lookup, Dial: internet.Dial, RootCAs: internet.Authority.Roots})
	require.NoError(t, err)
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = resolver })
	c := a.newCaller(t, store.TierPremium)

	var raw []string
	callers := map[string]outboundtest.Link{}
	for _, l := range links {
		callers[l.URL] = l
		if !strings.Contains(l.URL, "\x00") { // the server refuses a whole bulk request if one link contains a NUL byte
			raw = append(raw, l.URL)
		}
	}
	require.Len(t, raw, len(links)-1)
	for _, path := range []string{"/videos", "/accounts"} {
		for _, l := range links {
			before := internet.Connections()
			want := hostileResponses[l.RequestCheck]
			if strings.Contains(l.URL, "\x00") {
				want.code = server.CodeInvalidRequest
			}
			p := c.send(http.MethodPost, path, map[string]any{"link": l.URL}).problem(want.status)
			require.Equal(t, string(want.code), p.Code, "%q: %s", l.URL, p.Detail)
			require.Equal(t, want.connection, internet.Connections() > before, "%q", l.URL)
		}
	}
	for _, path := range []string{"/videos/bulk", "/accounts/bulk"} {
		got := decode[client.TrackVideosResult](c.send(http.MethodPost, path, map[string]any{"links": raw}).requireStatus(http.StatusUnprocessableEntity))
		require.Len(t, got.Results, len(raw))
		for i, e := range got.Results {
			require.Equal(t, raw[i], e.URL)
			require.Equal(t, hostileResponses[callers[e.URL].RequestCheck].failure, *e.Code, "%q: %s", e.URL, *e.Error)
		}
	}
	internet.RequireNoForbiddenConnection(t, isPlatforms)
}
