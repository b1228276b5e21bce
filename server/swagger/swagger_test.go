package swagger_test

import (
	"compress/gzip"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/server/swagger"
)

// requestFile sends a request to swagger.Handler and returns the response. The headers are given as pairs: a name and its value.
func requestFile(t *testing.T, method, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, http.NoBody)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	swagger.Handler("/openapi.json").ServeHTTP(w, r)
	return w
}

// iterateOverTags calls handleTag for each start tag of an HTML page, in order.
func iterateOverTags(t *testing.T, page string, handleTag func(name string, attributes map[string]string)) {
	t.Helper()
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			require.ErrorIs(t, z.Err(), io.EOF)
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			token, attributes := z.Token(), map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Key] = a.Val
			}
			handleTag(token.Data, attributes)
		default:
		}
	}
}

// loadedFiles returns the names of the files that the page of Swagger UI loads.
func loadedFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	iterateOverTags(t, requestFile(t, http.MethodGet, "/docs/").Body.String(), func(name string, attributes map[string]string) {
		switch name {
		case "script":
			found = append(found, attributes["src"])
		case "link", "img":
			found = append(found, attributes["href"]+attributes["src"])
		}
	})
	return found
}

func TestSwaggerUI_servesAllFilesOfThePage(t *testing.T) {
	t.Parallel()

	t.Run("the Content-Type of the page and its files", func(t *testing.T) {
		t.Parallel()
		types := map[string]string{}
		for _, name := range append(loadedFiles(t), "", "LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt") {
			resp := requestFile(t, http.MethodGet, "/docs/"+name)
			require.Equal(t, http.StatusOK, resp.Code, name)
			require.NotEmpty(t, resp.Body.String(), name)
			types[name] = resp.Header().Get("Content-Type")
		}
		require.Equal(t, map[string]string{
			"":                                 "text/html; charset=utf-8",
			"favicon-16x16.png":                "image/png",
			"favicon-32x32.png":                "image/png",
			"swagger-ui.css":                   "text/css; charset=utf-8",
			"page.css":                         "text/css; charset=utf-8",
			"swagger-ui-bundle.js":             "text/javascript; charset=utf-8",
			"initializer.js":                   "text/javascript; charset=utf-8",
			"samples.mjs":                      "text/javascript; charset=utf-8",
			"LICENSE":                          "text/plain; charset=utf-8",
			"NOTICE":                           "text/plain; charset=utf-8",
			"swagger-ui-bundle.js.LICENSE.txt": "text/plain; charset=utf-8",
		}, types)
	})

	t.Run("the security headers of all responses, including errors", func(t *testing.T) {
		t.Parallel()
		for _, target := range []string{"/docs", "/docs/", "/docs/initializer.js", "/docs/nothing"} {
			resp := requestFile(t, http.MethodGet, target)
			require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "+
				"frame-ancestors 'none'; base-uri 'none'; form-action 'none'", resp.Header().Get("Content-Security-Policy"), target)
			require.Equal(t, "nosniff", resp.Header().Get("X-Content-Type-Options"), target)
			require.Equal(t, "no-referrer", resp.Header().Get("Referrer-Policy"), target)
		}
	})

	t.Run("unknown paths inside and outside of /docs", func(t *testing.T) {
		t.Parallel()
		for _, target := range []string{
			"/", "/docs/index.html", "/docs/swagger-ui.css.gz", "/docs/dist/LICENSE", "/docs//", "/docs/../docs/", "/docsLICENSE", "/LICENSE", "/docs/LICENSE/",
		} {
			require.Equal(t, http.StatusNotFound, requestFile(t, http.MethodGet, target).Code, target)
		}
	})

	t.Run("methods other than GET and HEAD", func(t *testing.T) {
		t.Parallel()
		resp := requestFile(t, http.MethodPost, "/docs/")
		require.Equal(t, http.StatusMethodNotAllowed, resp.Code)
		require.Equal(t, "GET, HEAD", resp.Header().Get("Allow"))

		resp = requestFile(t, http.MethodHead, "/docs/")
		require.Equal(t, http.StatusOK, resp.Code)
		require.Equal(t, requestFile(t, http.MethodGet, "/docs/").Header(), resp.Header())
	})

	t.Run("/docs without a slash at the end", func(t *testing.T) {
		t.Parallel()
		resp := requestFile(t, http.MethodGet, "/docs")
		require.Equal(t, http.StatusTemporaryRedirect, resp.Code)
		require.Equal(t, "docs/", resp.Header().Get("Location"))
	})
}

func TestSwaggerUI_compressesFilesIfClientAcceptsGzip(t *testing.T) {
	t.Parallel()
	plain := requestFile(t, http.MethodGet, "/docs/swagger-ui-bundle.js")
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	content := plain.Body.String()

	for acceptEncoding, compressed := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "*": true, "gzip;q=1.0, *;q=0": true,
		"br": false, "gzip;q=0": false, "gzip; q=0.000, *": false, "*;q=0": false, "identity": false,
	} {
		t.Run(acceptEncoding, func(t *testing.T) {
			t.Parallel()
			resp := requestFile(t, http.MethodGet, "/docs/swagger-ui-bundle.js", "Accept-Encoding", acceptEncoding)
			require.Equal(t, http.StatusOK, resp.Code)
			require.Equal(t, "Accept-Encoding", resp.Header().Get("Vary"))
			if !compressed {
				require.Empty(t, resp.Header().Get("Content-Encoding"))
				require.Equal(t, plain.Header().Get("ETag"), resp.Header().Get("ETag"))
				return
			}
			require.Equal(t, "gzip", resp.Header().Get("Content-Encoding"))
			require.NotEqual(t, plain.Header().Get("ETag"), resp.Header().Get("ETag"), "the compressed and the uncompressed file must have different ETags")
			z, err := gzip.NewReader(resp.Body)
			require.NoError(t, err)
			decoded, err := io.ReadAll(z)
			require.NoError(t, err)
			require.Equal(t, sha256.Sum256([]byte(content)), sha256.Sum256(decoded))
		})
	}
}

func TestSwaggerUI_answers304IfETagMatches(t *testing.T) {
	t.Parallel()
	for _, name := range append(loadedFiles(t), "") {
		first := requestFile(t, http.MethodGet, "/docs/"+name, "Accept-Encoding", "gzip")
		require.Equal(t, "no-cache", first.Header().Get("Cache-Control"), name)
		again := requestFile(t, http.MethodGet, "/docs/"+name, "Accept-Encoding", "gzip", "If-None-Match", first.Header().Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.Code, name)
		require.Empty(t, again.Body.String(), name)
	}
	elsewhere := httptest.NewRecorder()
	swagger.Handler("../openapi.json").ServeHTTP(elsewhere, httptest.NewRequest(http.MethodGet, "/docs/", http.NoBody))
	require.NotEqual(t, requestFile(t, http.MethodGet, "/docs/").Header().Get("ETag"), elsewhere.Header().Get("ETag"), "two pages that load the contract from different URLs must have different ETags")
}

func TestSwaggerUI_loadsNoFilesFromOtherHosts(t *testing.T) {
	t.Parallel()

	t.Run("inline scripts and inline styles of the page", func(t *testing.T) {
		t.Parallel()
		iterateOverTags(t, requestFile(t, http.MethodGet, "/docs/").Body.String(), func(name string, attributes map[string]string) {
			require.NotEqual(t, "style", name)
			if name == "script" {
				require.NotEmpty(t, attributes["src"])
			}
			for attribute, value := range attributes {
				require.False(t, strings.HasPrefix(attribute, "on") || attribute == "style", attribute)
				require.NotContains(t, value, "javascript:")
			}
		})
	})

	t.Run("URLs of other hosts in the files of the page", func(t *testing.T) {
		t.Parallel()
		host := regexp.MustCompile(`(?i)(?:\b[a-z][a-z0-9+.-]*:|["'(\s=])//[^\s"')\\]+`)
		for _, name := range loadedFiles(t) {
			if name == "swagger-ui-bundle.js" || strings.HasSuffix(name, ".png") {
				continue // texts of Swagger UI may contain URLs of other hosts, because the page cannot request them: the Content-Security-Policy blocks such requests
			}
			for _, found := range host.FindAllString(requestFile(t, http.MethodGet, "/docs/"+name).Body.String(), -1) {
				require.Equal(t, "http://www.w3.org/2000/svg", found, "%s must contain no address of another host except this XML namespace", name)
			}
		}
		require.Empty(t, host.FindAllString(requestFile(t, http.MethodGet, "/docs/").Body.String(), -1))
	})

	t.Run("a URL of the contract with special characters", func(t *testing.T) {
		t.Parallel()
		const hostile = `/a"><script>alert(1)</script>&`
		w := httptest.NewRecorder()
		swagger.Handler(hostile).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/", http.NoBody))
		var places []string
		iterateOverTags(t, w.Body.String(), func(_ string, attributes map[string]string) {
			if place, ok := attributes["data-contract"]; ok {
				places = append(places, place)
			}
		})
		require.Equal(t, []string{hostile}, places)
	})
}
