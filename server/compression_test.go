package server_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// decodedBody returns the decompressed body of a response. It fails the test if the response has a Content-Encoding other than gzip and
// zstd.
func (a response) decodedBody() string {
	a.t.Helper()
	var reader io.Reader = strings.NewReader(string(a.body))
	switch encoding := a.Header.Get("Content-Encoding"); encoding {
	case "":
	case "gzip":
		gzipReader, err := gzip.NewReader(reader)
		require.NoError(a.t, err)
		reader = gzipReader
	case "zstd":
		decoder, err := zstd.NewReader(reader)
		require.NoError(a.t, err)
		defer decoder.Close()
		reader = decoder
	default:
		require.Fail(a.t, "Content-Encoding is neither gzip nor zstd", encoding)
	}
	text, err := io.ReadAll(reader)
	require.NoError(a.t, err)
	return string(text)
}

func TestCompression_usesTheEncodingOfAcceptEncoding(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for n := range 5 {
		c.track(videoURL(n))
	}
	// get sends a GET request. It does not check the response against the contract, because the check cannot read compressed bodies.
	get := func(path, accept string, headers ...string) response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.http.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Accept-Encoding", accept)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := a.http.Client().Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return response{t, resp, body}
	}
	const list = "/videos?order_by=created_at"
	identity := get(list, "identity").requireStatus(http.StatusOK)
	require.Empty(t, identity.Header.Get("Content-Encoding"))
	tag := identity.Header.Get("ETag")
	for accept, want := range map[string]string{
		"gzip": "gzip", "zstd": "zstd", "gzip, deflate, br, zstd": "zstd", "gzip;q=1.0, zstd;q=0": "gzip", "br": "", "gzip;q=0": "", "": "",
	} {
		got := get(list, accept).requireStatus(http.StatusOK)
		require.Equal(t, want, got.Header.Get("Content-Encoding"), accept)
		require.Equal(t, string(identity.body), got.decodedBody(), accept)
		require.Equal(t, []string{"Authorization, Accept, Accept-Encoding"}, got.Header.Values("Vary"))
		if want == "" {
			require.Equal(t, tag, got.Header.Get("ETag"), accept)
			continue
		}
		require.Less(t, len(got.body), len(identity.body)/2, accept)
		encoded := strings.TrimSuffix(tag, `"`) + "-" + want + `"`
		require.Equal(t, encoded, got.Header.Get("ETag"))
		unchanged := get(list, accept, "If-None-Match", encoded).requireStatus(http.StatusNotModified)
		require.Equal(t, encoded, unchanged.Header.Get("ETag"))
		require.Empty(t, unchanged.body)
		require.Empty(t, unchanged.Header.Get("Content-Encoding"))
	}
	require.Empty(t, get("/statistics/videos", "gzip").requireStatus(http.StatusOK).Header.Get("Content-Encoding"), "a response below the minimum size must not be compressed")
	long := get("/videos?"+strings.Repeat("nothing=1&", 60)+"x=2", "gzip").requireStatus(http.StatusBadRequest)
	require.Equal(t, "gzip", long.Header.Get("Content-Encoding"), "an error response must be compressed too")
	require.Contains(t, long.decodedBody(), "nothing")
	require.Equal(t, "gzip", get("/docs/swagger-ui-bundle.js", "gzip, zstd").Header.Get("Content-Encoding"), "the file must be sent as gzip and not as zstd, because it is stored as gzip")
	require.Equal(t, "zstd", get("/openapi.yaml", "zstd").Header.Get("Content-Encoding"))
}
