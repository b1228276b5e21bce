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

func isPlatforms(host string) bool {
	_, ok := link.HostPlatform(host)
	return ok
}

// redirects is a platform whose every short link leads to one of the hostile ones, by its number.
func redirects(links *[]outboundtest.Link, prefix string) http.Handler {
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

func shortLinkTo(t *testing.T, n int) link.Link {
	t.Helper()
	return parse(t, fmt.Sprintf("https://vm.tiktok.com/ZMcode%d/", n))
}

// stopped is who stopped a link, in the words of the table.
func stopped(err error) string {
	refused, _ := errors.AsType[*outbound.RefusedError](err)
	unknown, _ := errors.AsType[*net.DNSError](err)
	told, _ := errors.AsType[*shortlink.Error](err)
	_, understood := errors.AsType[*link.Error](err)
	switch {
	case err == nil:
		return outboundtest.Platform
	case refused != nil && refused.Addr.IsValid():
		return outboundtest.Address
	case refused != nil:
		return outboundtest.Name
	case unknown != nil:
		return outboundtest.Unresolvable
	case understood:
		return outboundtest.Path
	case told != nil && told.Code == shortlink.CodeUnsupportedLink:
		return outboundtest.Name
	case told != nil && told.Code == shortlink.CodeNotFound:
		return outboundtest.Platform
	default:
		return outboundtest.Parse
	}
}

func TestResolver_reachesNoInternalAddress(t *testing.T) {
	t.Parallel()
	var links []outboundtest.Link
	var asked atomic.Int64
	pages := redirects(&links, "")
	world := outboundtest.NewInternet(t, isPlatforms, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		pages.ServeHTTP(w, r)
	}))
	links = outboundtest.Links(t, world.Inside)
	r, err := shortlink.New(shortlink.Options{Lookup: world.Lookup, Dial: world.Dial, RootCAs: world.Authority.Roots})
	require.NoError(t, err)

	t.Run("as the target of a redirect", func(t *testing.T) {
		for i, l := range links {
			_, err := r.Resolve(t.Context(), shortLinkTo(t, i))
			require.Error(t, err, l.URL)
			require.Equal(t, l.Redirect, stopped(err), "%q: %v", l.URL, err)
		}
		require.GreaterOrEqual(t, int(asked.Load()), len(links), "each was asked for")
	})
	t.Run("past every check but the dialer's", func(t *testing.T) {
		for _, l := range links {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, l.URL, http.NoBody)
			if err == nil {
				var answer *http.Response
				if answer, err = r.Unchecked(request); err == nil {
					require.NoError(t, answer.Body.Close())
				}
			}
			require.Equal(t, l.Dialer, stopped(err), "%q: %v", l.URL, err)
		}
	})
	world.RequireUntouched(t, isPlatforms)
}

func TestResolver_reachesOnlyTheBaseURL(t *testing.T) {
	t.Parallel()
	var links []outboundtest.Link
	world := outboundtest.NewInternet(t, isPlatforms, http.NotFoundHandler())
	links = outboundtest.Links(t, world.Inside)
	baseAddress := httptest.NewServer(redirects(&links, "/shortlinks/vm.tiktok.com"))
	t.Cleanup(baseAddress.Close)
	r, err := shortlink.New(shortlink.Options{BaseURL: baseAddress.URL + "/shortlinks", Lookup: world.Lookup, Dial: world.Dial})
	require.NoError(t, err)
	for i, l := range links {
		_, err := r.Resolve(t.Context(), shortLinkTo(t, i))
		require.Error(t, err, l.URL)
		if request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, l.URL, http.NoBody); err == nil {
			_, err = r.Unchecked(request)
			require.Error(t, err, l.URL)
		}
	}
	require.Equal(t, []string{baseAddress.Listener.Addr().String()}, world.Dialed())
	require.Empty(t, world.Asked(), "no name was looked up")
	require.Zero(t, world.Inside.Visits(t))
}
