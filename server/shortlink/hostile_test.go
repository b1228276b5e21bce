package shortlink_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/outbound/outboundtest"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store/link"
)

// isPlatformHost returns true if a host belongs to a platform.
func isPlatformHost(host string) bool {
	_, ok := link.PlatformOfHost(host)
	return ok
}

// redirectToLinks returns the handler of a simulated platform. The short link PREFIX/ZMcodeN/
// redirects to the link with the index N.
func redirectToLinks(links *[]outboundtest.Link, prefix string) http.Handler {
	// `links` is a pointer, because the test fills the slice after the server has started.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, prefix+"/ZMcode%d/", &n); err != nil || n >= len(*links) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Location", strings.ToValidUTF8((*links)[n].URL, ""))
		w.WriteHeader(http.StatusFound)
	})
}

// shortLinkTo returns the short link for the link with the index n. The handler of redirectToLinks sends the redirect.
func shortLinkTo(t *testing.T, n int) link.Link {
	t.Helper()
	return parseLink(t, fmt.Sprintf("https://vm.tiktok.com/ZMcode%d/", n))
}

// nameOfFailedCheck returns the name of the check that refused a link. The result is
// outboundtest.Platform if no check refused the link.
func nameOfFailedCheck(err error) string {
	refused, _ := errors.AsType[*outbound.RefusedError](err)
	dnsErr, _ := errors.AsType[*net.DNSError](err)
	resolveErr, _ := errors.AsType[*shortlink.Error](err)
	_, isLinkErr := errors.AsType[*link.Error](err)
	switch {
	case err == nil:
		return outboundtest.Platform
	case refused != nil && refused.Addr.IsValid():
		return outboundtest.Address
	case refused != nil:
		return outboundtest.Name
	case dnsErr != nil:
		return outboundtest.Unresolvable
	case isLinkErr:
		return outboundtest.Path
	case resolveErr != nil && resolveErr.Code == shortlink.CodeUnsupportedLink:
		return outboundtest.Name
	case resolveErr != nil && resolveErr.Code == shortlink.CodeNotFound:
		// The platform does not know the link, so no check has refused the link.
		return outboundtest.Platform
	default:
		return outboundtest.Parse
	}
}

func TestResolver_neverConnectsToInternalAddress(t *testing.T) {
	t.Parallel()
	var links []outboundtest.Link
	var requests atomic.Int64
	platform := redirectToLinks(&links, "")
	internet := outboundtest.NewInternet(t, isPlatformHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		platform.ServeHTTP(w, r)
	}))
	links = outboundtest.Links(t, internet.Listener)
	r, err := shortlink.New(shortlink.Options{Lookup: internet.Lookup, Dial: internet.Dial, RootCAs: internet.Authority.Roots})
	require.NoError(t, err)

	t.Run("Resolve must refuse a redirect to a hostile link", func(t *testing.T) {
		for i, l := range links {
			_, err := r.Resolve(t.Context(), shortLinkTo(t, i))
			require.Error(t, err, l.URL)
			require.Equal(t, l.RedirectCheck, nameOfFailedCheck(err), "%q: %v", l.URL, err)
		}
		require.GreaterOrEqual(t, int(requests.Load()), len(links), "the platform must get at least one request for each link")
	})
	t.Run("the dialer must refuse a hostile link", func(t *testing.T) {
		for _, l := range links {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, l.URL, http.NoBody)
			if err == nil {
				var response *http.Response
				if response, err = r.SendUnchecked(request); err == nil {
					require.NoError(t, response.Body.Close())
				}
			}
			require.Equal(t, l.DialCheck, nameOfFailedCheck(err), "%q: %v", l.URL, err)
		}
	})
	internet.RequireNoForbiddenConnection(t, isPlatformHost)
}

func TestResolver_withBaseURLConnectsToNoOtherServer(t *testing.T) {
	t.Parallel()
	var links []outboundtest.Link
	internet := outboundtest.NewInternet(t, isPlatformHost, http.NotFoundHandler())
	links = outboundtest.Links(t, internet.Listener)
	baseAddress := httptest.NewServer(redirectToLinks(&links, "/shortlinks/vm.tiktok.com"))
	t.Cleanup(baseAddress.Close)
	r, err := shortlink.New(shortlink.Options{BaseURL: baseAddress.URL + "/shortlinks", Lookup: internet.Lookup, Dial: internet.Dial})
	require.NoError(t, err)
	for i, l := range links {
		_, err := r.Resolve(t.Context(), shortLinkTo(t, i))
		require.Error(t, err, l.URL)
		if request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, l.URL, http.NoBody); err == nil {
			_, err = r.SendUnchecked(request)
			require.Error(t, err, l.URL)
		}
	}
	require.Equal(t, []string{baseAddress.Listener.Addr().String()}, internet.DialedAddresses())
	require.Empty(t, internet.LookedUpHosts(), "looked-up names")
	require.Zero(t, internet.Listener.CountConnections(t))
}
