package graph_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
)

const (
	appSecret = "app/s3cret+"
	// proof is the expected appsecret_proof: the hexadecimal HMAC-SHA256 of sourcetest.Credential with the key appSecret. It was computed
	// with another program.
	proof = "1be9ef300edcf801563a4591b07f5a30b642c902c5b0dd8176b5939f970b7032"
)

// newClient returns a client with an app secret. The client calls a server that sends the given answers.
func newClient(t *testing.T, answer func(path string, q url.Values) (status int, body string)) *graph.Client {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answer(r.URL.Path, r.URL.Query())
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(web.Close)
	client := fetch.New(fetch.Options{})
	t.Cleanup(client.Close)
	c, err := graph.New(graph.Options{Source: "test", BaseURL: web.URL + "/v25.0", Token: sourcetest.Credential, AppSecret: appSecret, Client: client,
		Now: func() time.Time { return sourcetest.Now }})
	require.NoError(t, err)
	return c
}

func TestClient_sendsAppSecretProof(t *testing.T) {
	t.Parallel()
	var query url.Values
	c := newClient(t, func(_ string, q url.Values) (int, string) { query = q; return http.StatusOK, `{"id":"1"}` })
	_, err := c.Get(t.Context(), nil, "1", nil, "fields", "id")
	require.NoError(t, err)
	require.Equal(t, url.Values{"fields": {"id"}, "access_token": {sourcetest.Credential}, "appsecret_proof": {proof}}, query)
}

func TestClient_returnsFailureIfAppSecretProofIsRefused(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"Invalid appsecret_proof provided in the API argument", "API calls from the server require an appsecret_proof argument"} {
		c := newClient(t, func(_ string, q url.Values) (int, string) {
			return http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":"%s (%s) appsecret_proof=abc %s %s","type":"GraphMethodException","code":100}}`,
				message, q.Get("appsecret_proof"), q.Get("access_token"), appSecret)
		})
		_, err := c.Get(t.Context(), nil, "1", graph.ErrorClasses{{Main: 100}: source.Gone})
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.AuthFailed, f.Class)
		require.Contains(t, f.Detail, message)
		for _, secret := range []string{proof, sourcetest.Credential, appSecret, "=abc"} {
			require.NotContains(t, f.Detail, secret)
		}
	}
}

// pageTokenServer is a test server for the access tokens of two Facebook pages. It accepts only the newest
// token of each page.
type pageTokenServer struct {
	mu    sync.Mutex
	round int
	lists int
}

func (p *pageTokenServer) answerRequest(path string, q url.Values) (int, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	token := func(id string) string { return fmt.Sprintf("page-%s-%d", id, p.round) }
	switch path {
	case "/v25.0/me/accounts":
		p.lists++
		switch q.Get("after") {
		case "":
			return http.StatusOK, `{"data":[{"id":"1","name":"One","access_token":"` + token("1") + `"},{"id":"9","name":"No role"}],
				"paging":{"cursors":{"after":"more"},"next":"https://graph.facebook.com/next"}}`
		case "more":
			return http.StatusOK, `{"data":[{"id":2,"name":"Two","access_token":"` + token("2") + `"}],"paging":{"cursors":{"after":"end"}}}`
		}
	case "/v25.0/video":
		for _, id := range []string{"1", "2"} {
			if q.Get("access_token") == token(id) {
				return http.StatusOK, `{"id":"` + id + `"}`
			}
		}
		if q.Get("access_token") == sourcetest.Credential {
			return http.StatusBadRequest, `{"error":{"message":"(#190) This method must be called with a Page Access Token","type":"OAuthException","code":190}}`
		}
	}
	return http.StatusBadRequest, `{"error":{"message":"Error validating access token ` + q.Get("access_token") + `","type":"OAuthException","code":190,"error_subcode":460}}`
}

func TestClient_requestsPageTokensAndReplacesRefusedPageTokens(t *testing.T) {
	t.Parallel()
	p := &pageTokenServer{}
	c := newClient(t, p.answerRequest)
	get := func(page string) (string, error) {
		res, err := c.GetWithPageToken(t.Context(), nil, page, "video", nil)
		return string(res.Body), err
	}
	for _, id := range []string{"1", "2", "1"} {
		body, err := get(id)
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"`+id+`"}`, body)
	}
	require.Equal(t, 2, p.lists, "each of the two parts of the list must be requested only once")

	p.mu.Lock()
	p.round++ // from now on, the server refuses the page tokens that it has returned so far
	p.mu.Unlock()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			body, err := get("2")
			if err == nil && body != `{"id":"2"}` {
				err = errors.New(body)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 4, p.lists, "eight concurrent calls must together request the list of pages only once")

	_, err := get("9")
	require.ErrorIs(t, err, graph.ErrPageToken, "a page without a page token must be requested with the client's token, which Meta refuses")
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.AuthFailed, f.Class)
}

func TestClient_removesPageTokensFromErrors(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(path string, q url.Values) (int, string) {
		if path == "/v25.0/me/accounts" {
			return http.StatusOK, `{"data":[{"id":"1","access_token":"pages0wn"}]}`
		}
		return http.StatusBadRequest, `{"error":{"message":"Error validating ` + q.Get("access_token") + ` ` + q.Get("appsecret_proof") + `","code":190}}`
	})
	_, err := c.GetWithPageToken(t.Context(), nil, "1", "video", nil)
	require.ErrorContains(t, err, "Error validating REDACTED REDACTED") //nolint:dupword // the text contains two tokens
}

func TestClient_usesClientTokenIfPagesCannotBeListed(t *testing.T) {
	t.Parallel()
	lists := 0
	c := newClient(t, func(path string, q url.Values) (int, string) {
		if path == "/v25.0/me/accounts" {
			lists++
			return http.StatusBadRequest, `{"error":{"message":"(#100) Tried accessing nonexisting field (accounts) on node type (Page)","type":"OAuthException","code":100}}`
		}
		return http.StatusOK, `{"id":"` + q.Get("access_token") + `"}`
	})
	for range 2 {
		res, err := c.GetWithPageToken(t.Context(), nil, "1", "video", nil)
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"`+sourcetest.Credential+`"}`, string(res.Body))
	}
	require.Equal(t, 1, lists)
}
