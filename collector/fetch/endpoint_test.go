package fetch_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/outbound"
)

func TestEndpoint_refusesInvalidBaseURL(t *testing.T) {
	t.Parallel()
	c := fetch.New(fetch.Options{})
	for _, base := range []string{"", "127.0.0.1:9090", "/vendor", "ftp://127.0.0.1/", "http://", "http://:80/", "http://127.0.0.1/?x=1", "http://127.0.0.1/#x", "http://user:pass@127.0.0.1/", "http://%zz/"} {
		_, err := c.Endpoint(base, "")
		require.ErrorContains(t, err, "must be an http or https address without credentials, query and fragment", base)
	}
	for base, want := range map[string]string{
		"": "https://youtube.googleapis.com/", "http://127.0.0.1:9090/vendor": "http://127.0.0.1:9090/vendor/", "https://sandbox/": "https://sandbox/", "http://[::1]:9090": "http://[::1]:9090/",
	} {
		e, err := c.Endpoint(base, "https://youtube.googleapis.com/")
		require.NoError(t, err, base)
		require.Equal(t, want, e.Address())
	}
}

func TestEndpointDo_refusesURLsOnOtherServers(t *testing.T) {
	t.Parallel()
	other := startServer(t, func(http.ResponseWriter, *http.Request) {
		t.Error("only the endpoint's server may get a request")
	})
	base := startServer(t, func(http.ResponseWriter, *http.Request) {})
	e := newEndpoint(t, base+"/prefix", fetch.Options{})
	for _, mine := range []string{base, base + "/prefix/x", base + "/other", strings.ToUpper(base[:4]) + base[4:]} {
		_, err := e.Do(t.Context(), fetch.Request{URL: mine})
		require.NoError(t, err, mine)
	}
	for _, elsewhere := range []string{other, "https" + base[4:], "http://127.0.0.1/", "http://user@" + base[7:], "http://localhost" + base[len("http://127.0.0.1"):], "http://x.example/"} {
		_, err := e.Do(t.Context(), fetch.Request{URL: elsewhere})
		var f *source.Failure
		require.ErrorAs(t, err, &f, elsewhere)
		require.Equal(t, source.BadRequest, f.Class)
		var refused *outbound.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "requests go to "+base+" only")
	}
}

// TestEndpoint_allowsPrivateAddressesForConfiguredHosts checks the decision in docs/decisions/0015: a host that the operator configures may
// resolve to a private address, but a platform's public host may not.
func TestEndpoint_allowsPrivateAddressesForConfiguredHosts(t *testing.T) {
	t.Parallel()
	const standard = "https://youtube.googleapis.com/"
	for name, c := range map[string]struct {
		base, standard, answer string
		dialed                 string // expected address of the connection; "" if the connection must be refused
	}{
		"the platform's host, resolved to a public address":                         {"", standard, "93.184.215.14", "93.184.215.14:443"},
		"the platform's host, resolved to a private address":                        {"", standard, "10.0.0.1", ""},
		"the platform's host, resolved to a loopback address":                       {"", standard, "127.0.0.1", ""},
		"the platform's host, resolved to the address of a cloud's metadata server": {"", standard, "169.254.169.254", ""},
		"the platform's host with upper-case letters, configured by the operator":   {"https://YouTube.googleapis.com:8443/x", standard, "10.0.0.1", ""},
		"the platform's host with a trailing dot, configured by the operator":       {"https://youtube.googleapis.com./", standard, "10.0.0.1", ""},
		"the operator's host, resolved to an address in a container network":        {"http://sandbox:9090", standard, "172.18.0.3", "172.18.0.3:9090"},
		"the operator's host, resolved to an address in a private network":          {"https://gateway.corp.example", standard, "10.1.2.3", "10.1.2.3:443"},
		"the operator's host, resolved to a loopback address":                       {"http://localhost:9090", standard, "127.0.0.1", "127.0.0.1:9090"},
		"the operator's host, resolved to a public address":                         {"https://gateway.example", standard, "93.184.215.14", "93.184.215.14:443"},
		"the operator's host, resolved to the address of a cloud's metadata server": {"https://gateway.example", standard, "169.254.169.254", ""},
		"an operator's URL with a loopback address":                                 {"http://127.0.0.1:9090", standard, "", "127.0.0.1:9090"},
		"a platform's URL with a loopback address":                                  {"", "http://127.0.0.1:9090/vendor", "", "127.0.0.1:9090"},
		"an operator's URL with the address of a cloud's metadata server":           {"http://169.254.169.254", standard, "", "169.254.169.254:80"},
		"an operator's URL for a vendor that has no public URL":                     {"http://vendor:8000", "", "192.168.1.2", "192.168.1.2:8000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dialed string
			stop := errors.New("dialled")
			client := fetch.New(fetch.Options{
				Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr(c.answer)}, nil
				},
				Dial: func(_ context.Context, _, address string) (net.Conn, error) {
					dialed = address
					return nil, stop
				},
			})
			e, err := client.Endpoint(c.base, c.standard)
			require.NoError(t, err)
			_, err = e.Do(t.Context(), fetch.Request{URL: e.Address()})
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, source.Temporary, f.Class)
			require.ErrorIs(t, err, fetch.ErrUnreachable)
			require.Equal(t, c.dialed, dialed, f.Detail)
			if c.dialed == "" {
				require.Contains(t, f.Detail, "refused", "the failure's detail must say that the connection was refused")
			}
		})
	}
}

func TestEndpoint_returnsTimeOfServer(t *testing.T) {
	t.Parallel()
	base := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			t.Error(r.Method)
		}
		w.Header().Set("Date", "Fri, 31 Dec 2027 23:59:59 GMT")
		w.WriteHeader(http.StatusNotFound)
	})
	at, err := newEndpoint(t, base, fetch.Options{}).Clock(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Date(2027, 12, 31, 23, 59, 59, 0, time.UTC), at)

	base = startServer(t, func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil })
	at, err = newEndpoint(t, base, fetch.Options{}).Clock(t.Context())
	require.NoError(t, err)
	require.Zero(t, at)
}
