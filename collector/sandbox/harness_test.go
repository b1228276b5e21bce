package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
)

// testServer is a running sandbox whose clock is stopped at testNow.
type testServer struct {
	*Sandbox
	base string
}

func newTestServer(t *testing.T) testServer {
	t.Helper()
	s := New(Options{Now: func() time.Time { return testNow }})
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return testServer{s, server.URL}
}

// answer is a response of the sandbox. The field text has the body of the response.
type answer struct {
	*http.Response
	text string
	err  error // error of the request or of reading the body
}

func (a answer) decodeJSON(t *testing.T) object {
	t.Helper()
	require.NoError(t, a.err)
	require.True(t, json.Valid([]byte(a.text)), a.text)
	out, ok := decodeJSON([]byte(a.text)).(object)
	require.True(t, ok, a.text)
	return out
}

// valueAt returns a part of a decoded JSON value. The path to the part consists of names of members and indexes in lists.
func valueAt(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, ok := value.(object)
			require.True(t, ok, "%v of %v", step, value)
			value = o[step]
		case int:
			list, ok := value.([]any)
			require.True(t, ok, "%v of %v", step, value)
			require.Greater(t, len(list), step)
			value = list[step]
		}
	}
	return value
}

func (r testServer) mustSend(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	a := r.send(context.Background(), method, path, body, headers...)
	require.NotNil(t, a.Response, "%v", a.err)
	require.Equal(t, "true", a.Header.Get(reeltally.SandboxHeader), "every response must have the header of the sandbox")
	return a
}

// send sends a request to the sandbox. The headers are alternately names and values. send never fails the test, so that it can run in any
// goroutine.
func (r testServer) send(ctx context.Context, method, path, body string, headers ...string) answer {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req) // http.Client is not used, because it would parse the Location of a redirect
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res, string(text), err}
}

func (r testServer) getYouTube(t *testing.T, method string, pairs ...string) answer {
	t.Helper()
	return r.mustSend(t, http.MethodGet, "/youtube/youtube/v3/"+method+"?"+encodeQuery(append(pairs, "key", YouTubeAPIKey)...), "")
}

func (r testServer) getEnsembleData(t *testing.T, path string, pairs ...string) answer {
	t.Helper()
	return r.mustSend(t, http.MethodGet, "/vendor/"+path+"?"+encodeQuery(append(pairs, "token", VendorKey)...), "")
}

func (r testServer) getScrapeCreators(t *testing.T, path string, pairs ...string) answer {
	t.Helper()
	return r.mustSend(t, http.MethodGet, "/vendor/"+path+"?"+encodeQuery(pairs...), "", "x-api-key", VendorKey)
}

func (r testServer) runApify(t *testing.T, input string) answer {
	t.Helper()
	return r.mustSend(t, http.MethodPost, "/vendor/acts/clockworks~tiktok-scraper/run-sync-get-dataset-items", input,
		"Authorization", "Bearer "+VendorKey, "Content-Type", "application/json")
}

func (r testServer) setFault(t *testing.T, body string) {
	t.Helper()
	require.Equal(t, http.StatusOK, r.mustSend(t, http.MethodPut, "/_control/faults", body).StatusCode)
}

func encodeQuery(pairs ...string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return values.Encode()
}
