package fetch_test

import (
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/outbound/outboundtest"
)

const graph = "https://graph.facebook.com/v25.0/"

func TestEndpoint_refusesHostileLinksToOtherServers(t *testing.T) {
	t.Parallel()
	world := outboundtest.NewInternet(t, outboundtest.InDomains("graph.facebook.com"), http.NotFoundHandler())
	client := fetch.New(fetch.Options{Lookup: world.Lookup, Dial: world.Dial, RootCAs: world.Authority.Roots})
	t.Cleanup(client.Close)
	e, err := client.Endpoint("", graph)
	require.NoError(t, err)
	dialer := 0
	for _, l := range outboundtest.Links(t, world.Listener) {
		_, err := e.Do(t.Context(), fetch.Request{URL: l.URL})
		var f *source.Failure
		require.ErrorAs(t, err, &f, l.URL)
		require.Equal(t, source.BadRequest, f.Class, "%q: %s", l.URL, f.Detail)

		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL, http.NoBody)
		if err != nil {
			continue
		}
		_, err = e.DoUnchecked(request)
		require.Error(t, err, l.URL)
		var refused *outbound.RefusedError
		if l.DialCheck != outboundtest.Parse {
			require.ErrorAs(t, err, &refused, l.URL)
			require.False(t, refused.Addr.IsValid(), "the host must be refused before a DNS lookup: %v", refused)
			dialer++
		}
	}
	require.Greater(t, dialer, 200)
	require.Zero(t, world.Connections())
	require.Empty(t, world.LookedUpHosts(), "the names of hostile hosts must not be looked up")
	require.Zero(t, world.Listener.CountConnections(t))

	res, err := e.Do(t.Context(), fetch.Request{URL: graph + "me"})
	require.NoError(t, err, "the endpoint must still get answers from its own server")
	require.Equal(t, http.StatusNotFound, res.Status)
}

// TestEndpoint_resistsDNSRebinding uses a DNS server that alternates between a public and a loopback address for the same host.
func TestEndpoint_resistsDNSRebinding(t *testing.T) {
	t.Parallel()
	const rounds = 1000
	var questions atomic.Int64
	names := outboundtest.NewNameServer(t, func(string) outboundtest.Answer {
		if questions.Add(1)/2%2 == 0 {
			return outboundtest.Answer{Addrs: []netip.Addr{outboundtest.Public}}
		}
		return outboundtest.Answer{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}}
	})
	world := outboundtest.NewInternet(t, outboundtest.InDomains("graph.facebook.com"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // makes the next request open a new connection and look up the host again
	}))
	client := fetch.New(fetch.Options{Lookup: names.Lookup, Dial: world.Dial, RootCAs: world.Authority.Roots})
	t.Cleanup(client.Close)
	e, err := client.Endpoint("https://graph.facebook.com:"+world.Listener.Port+"/v25.0/", graph)
	require.NoError(t, err)
	standard, err := client.Endpoint("", graph)
	require.NoError(t, err)
	answered, refused := 0, 0
	for i := range rounds {
		_, err := e.Do(t.Context(), fetch.Request{URL: e.Address()})
		require.Error(t, err, "the request must fail, because there is no server at this port of the public address")
		if _, err = standard.Do(t.Context(), fetch.Request{URL: standard.Address()}); err == nil {
			answered++
			client.Close()
			continue
		}
		require.ErrorIs(t, err, fetch.ErrUnreachable, i)
		refused++
	}
	require.Positive(t, answered)
	require.Positive(t, refused)
	for _, address := range world.DialedAddresses() {
		host, _, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.Equal(t, outboundtest.Public.String(), host)
	}
	require.Zero(t, world.Listener.CountConnections(t))
}
