package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// TestLog_containsNoLink sends requests with links of unknown and tracked videos and accounts. The log, at the level debug, must contain neither
// a link nor a handle.
func TestLog_containsNoLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		const (
			account = "https://www.tiktok.com/@private.person"
			video   = account + "/video/7338812345678901234"
			short   = "https://vm.tiktok.com/ZMprivat1/"
		)
		a.platforms.redirect(short, account+":99999x/%zz")
		unknown := func(method, path string, body any, link string) {
			t.Helper()
			p := c.send(method, path, body).requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Contains(t, p.Detail, link, "the response must name the link")
		}
		for _, path := range []string{"/videos/" + url.PathEscape(video), "/videos/" + url.PathEscape(video) + "/history"} {
			unknown(http.MethodGet, path, nil, video)
		}
		unknown(http.MethodPost, "/refresh/videos", map[string]any{"link": video}, video)
		unknown(http.MethodPost, "/refresh/accounts", map[string]any{"link": account}, account)
		unknown(http.MethodGet, "/accounts/"+url.PathEscape(account), nil, account)
		c.send(http.MethodGet, "/videos?link="+url.QueryEscape(video), nil)
		c.send(http.MethodPost, "/videos", map[string]any{"link": short})
		c.send(http.MethodPost, "/videos", map[string]any{"link": account})
		c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": []string{video, short, account, "https://example.com/private.person"}})
		c.send(http.MethodPost, "/accounts", map[string]any{"link": account}).requireStatus(http.StatusOK)
		c.send(http.MethodGet, "/videos/"+video, nil)

		log := a.log.String()
		require.Contains(t, log, `"error":"no such video"`)
		require.Contains(t, log, `"error":"no such account"`)
		require.NotContains(t, log, "private.person")
		require.NotContains(t, log, "ZMprivat1")
		require.NotContains(t, log, "7338812345678901234")
	})
}

// brokenConnection is a response to a caller whose connection is broken. Like net/http, it cancels the request before Write returns the error.
type brokenConnection struct {
	*httptest.ResponseRecorder
	cancel context.CancelFunc
}

func (b brokenConnection) Write([]byte) (int, error) {
	b.cancel()
	return 0, syscall.EPIPE
}

func TestLog_hasNoErrorIfTheCallerClosesTheConnection(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	sendList := func(cancelRequest bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/videos", nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		if !cancelRequest {
			cancel = func() {}
		}
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { a.server.Handler().ServeHTTP(brokenConnection{httptest.NewRecorder(), cancel}, r) })
	}
	sendList(true)
	require.Contains(t, a.log.String(), `"level":"DEBUG","msg":"sending a list failed after the first byte"`)
	require.NotContains(t, a.log.String(), `"level":"ERROR"`)
	sendList(false)
	require.Contains(t, a.log.String(), `"level":"ERROR","msg":"sending a list failed after the first byte"`, "a failure for another reason must be logged as an error")
}
