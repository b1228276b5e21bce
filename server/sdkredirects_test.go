package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store/storetest"
)

// redirectingServer is a server that redirects the requests below /old and /login, and answers all other requests with an empty list.
type redirectingServer struct {
	*httptest.Server
	status     int          // the status of the redirects
	other      string       // an address of another origin, which is also answered by this server
	redirected atomic.Int32 // the number of redirected requests
	followed   atomic.Int32 // the number of all other requests
}

func startRedirectingServer(t *testing.T, status int) *redirectingServer {
	t.Helper()
	s := &redirectingServer{status: status}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	s.other = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	return s
}

func (s *redirectingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	var location string
	switch first {
	case "old": // to the same path without /old, on the same origin
		location = "/" + rest + "?" + r.URL.RawQuery
	case "other": // to another origin
		location = s.other + "/api/" + rest
	case "login": // to a page that gets the token
		location = strings.Replace(s.URL, "://", "://user:password@", 1) + "/sign-in/" + token + "?token=" + token + "&next=/" + rest
	case "same": // to the same address, for example to set a cookie
		location = r.URL.Path
	default:
		s.followed.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data": [], "filters": {}, "pagination": {"next_cursor": null}}`)
		return
	}
	s.redirected.Add(1)
	w.Header().Set("Location", location)
	w.WriteHeader(s.status)
}

// requireRedirectErrors calls five operations with the given function below each path of the server. It requires that each call fails with an
// error that names the target of the redirect, and that no redirect is followed.
func (s *redirectingServer) requireRedirectErrors(t *testing.T, call func(address, token string) []unexpectedOutput) {
	t.Helper()
	for path, want := range map[string]string{
		"/old":   "the server redirects to " + s.URL + "; use this as the address",
		"/other": "the server redirects to " + s.other + "/api; use this as the address",
		"/login": "the server redirects to " + s.URL + "/sign-in/…: is a proxy or a login page in between?",
		"/same":  "the server redirects to " + s.URL + "/same/events: is a proxy or a login page in between?",
	} {
		s.redirected.Store(0)
		got := call(s.URL+path, "rt_secret")
		require.Len(t, got, 5)
		for i, failed := range got {
			require.Equal(t, s.status, failed.Status, "%s, call %d", path, i)
			require.NotContains(t, failed.Message, "rt_secret")
			if path != "/same" || i == 0 {
				require.Equal(t, want, failed.Message, "call %d", i)
			}
		}
		require.EqualValues(t, 5, s.redirected.Load(), "%s: a redirected request must not be repeated", path)
		require.Zero(t, s.followed.Load(), "%s: a redirect must not be followed", path)
	}
}

// redirects are all statuses of redirects that clients may follow.
var redirects = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

func TestSDKs_reportARedirectAndDoNotFollowIt(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range redirects {
				startRedirectingServer(t, status).requireRedirectErrors(t, func(address, token string) (got []unexpectedOutput) {
					require.NoError(t, json.Unmarshal([]byte(s.runProgram(t, address, token, "testdata/sdk/unexpected"+s.extension)), &got))
					return got
				})
			}
		})
	}
}

func TestTypeScriptSDK_worksInABrowserWithAPathAsAddress(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	a, c := newAppWithVideos(t)
	server := startRedirectingServer(t, http.StatusMovedPermanently)
	routes := http.NewServeMux()
	routes.Handle("/reeltally/", http.StripPrefix("/reeltally", a.http.Config.Handler))
	routes.Handle("/", server)
	page := httptest.NewServer(routes)
	t.Cleanup(page.Close)
	var got struct {
		Downloaded, Message string
		Status              int
	}
	require.NoError(t, json.Unmarshal([]byte(sdks[0].runProgram(t, page.URL, c.token, "testdata/sdk/browser.mjs")), &got))
	require.Equal(t, string(c.send(http.MethodGet, "/videos", nil, "Accept", client.CSV).requireStatus(http.StatusOK).body), got.Downloaded,
		"the download must have all three pages")
	require.Equal(t, "the server redirects to an address that the browser does not reveal: open "+page.URL+"/old in a browser, and use the address to which it leads", got.Message)
	require.Zero(t, got.Status)
	require.EqualValues(t, 1, server.redirected.Load(), "a redirected request must not be repeated")
	require.Zero(t, server.followed.Load(), "a redirect must not be followed")
}

func TestGoSDK_reportsARedirectAndDoesNotFollowIt(t *testing.T) {
	t.Parallel()
	own := &http.Client{Timeout: time.Minute}
	for _, options := range [][]client.ClientOption{nil, {client.WithHTTPClient(own)}, {client.WithTimeout(0)}} {
		for _, status := range redirects {
			startRedirectingServer(t, status).requireRedirectErrors(t, func(address, token string) []unexpectedOutput {
				sdk, err := client.New(address, token, options...)
				require.NoError(t, err)
				return collectUnexpected(t, sdk)
			})
		}
	}
	require.Nil(t, own.CheckRedirect, "the http.Client of the caller must not change")
}
