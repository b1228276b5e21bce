package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// statusSystem is a server and a collector that share a database, and a sandbox that imitates the platforms. All run in the process of the
// test.
type statusSystem struct {
	t       *testing.T
	db      *storetest.DB
	box     *sandbox.Sandbox
	boxURL  string
	api     string
	token   string
	sources []source.Source
}

// noKeepAliveTransport is an HTTP transport that opens a new connection for each request and closes it afterwards. So no connection is still open
// when a test ends.
type noKeepAliveTransport struct{}

func (noKeepAliveTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Close = true
	return http.DefaultTransport.RoundTrip(r)
}

// newStatusSystem starts the sandbox and the server. The collector's sources are the YouTube API, Instagram's Graph API, and a vendor that
// supports only TikTok.
func newStatusSystem(t *testing.T, db *storetest.DB) *statusSystem {
	t.Helper()
	s := &statusSystem{t: t, db: db, box: sandbox.New(sandbox.Options{Now: db.Clock.Now})}
	platforms := httptest.NewServer(s.box.Handler())
	t.Cleanup(platforms.Close)
	s.boxURL = platforms.URL
	settings := s.box.Settings(s.boxURL)
	client := fetch.New(fetch.Options{Timeout: 5 * time.Second, Transport: noKeepAliveTransport{}})
	yt, err := youtube.New(youtube.Options{BaseURL: s.boxURL + "/youtube/", APIKey: sandbox.YouTubeAPIKey, Client: client, Now: db.Clock.Now})
	require.NoError(t, err)
	ig, err := instagram.New(instagram.Options{BaseURL: settings["REELTALLY_INSTAGRAM_BASE_URL"], Token: settings["REELTALLY_INSTAGRAM_ACCESS_TOKEN"],
		AppSecret: settings["REELTALLY_INSTAGRAM_APP_SECRET"], AccountID: settings["REELTALLY_INSTAGRAM_ACCOUNT_ID"], Client: client, Now: db.Clock.Now})
	require.NoError(t, err)
	config, err := vendor.Load("sandbox")
	require.NoError(t, err)
	config.Calls = slices.DeleteFunc(config.Calls, func(c vendor.Call) bool { return c.Platform != link.TikTok })
	v, err := vendor.New(config, vendor.Options{BaseURL: s.boxURL + "/vendor", Key: sandbox.VendorKey, Client: client, Now: db.Clock.Now})
	require.NoError(t, err)
	s.sources = []source.Source{yt, ig, v}

	key, err := db.Secret(t.Context(), "cursor")
	require.NoError(t, err)
	resolver, err := shortlink.New(shortlink.Options{BaseURL: s.boxURL})
	require.NoError(t, err)
	srv, err := server.New(server.Options{Store: db.Store, Resolver: resolver, AppURL: "https://app.example.test", CursorKey: key, Now: db.Clock.Now,
		Logger: slog.New(slog.DiscardHandler), RateStore: server.Unlimited{}})
	require.NoError(t, err)
	api := httptest.NewServer(srv.Handler())
	t.Cleanup(func() { api.Close(); srv.Close() })
	s.api = api.URL
	org, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	_, s.token, err = db.CreateToken(t.Context(), org.ID, "test", []store.Scope{store.ScopeRead, store.ScopeWrite}, 0)
	require.NoError(t, err)
	return s
}

// startCollector starts a collector, and returns a function that stops it.
func (s *statusSystem) startCollector() (stop func()) {
	s.t.Helper()
	c, err := collector.New(collector.Options{Store: s.db.Store, Sources: s.sources, Now: s.db.Clock.Now, Logger: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(s.t, <-done)
	}
}

// callAPI sends a request to the API and returns the decoded JSON response. It fails the test if the status is not 200.
func (s *statusSystem) callAPI(method, path string, body any) map[string]any {
	s.t.Helper()
	content, err := json.Marshal(body)
	require.NoError(s.t, err)
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.api+path, bytes.NewReader(content))
	require.NoError(s.t, err)
	r.Close = true
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode, "%s %s: %s", method, path, text)
	if at := strings.Index(string(text), "{"); at > 0 { // the response can be an event stream, in which the name of the event precedes the JSON object
		text = text[at:]
	}
	var decoded map[string]any
	require.NoError(s.t, json.NewDecoder(bytes.NewReader(text)).Decode(&decoded), "%s", text)
	return decoded
}

// trackVideo tracks a video and returns its id and the warnings in the response.
func (s *statusSystem) trackVideo(link string) (id string, warnings []any) {
	s.t.Helper()
	response := s.callAPI(http.MethodPost, "/videos", map[string]any{"link": link})
	return response["videoId"].(string), response["warnings"].([]any)
}

// waitForStatus waits until the video has the given fetch status, such as "ok".
func (s *statusSystem) waitForStatus(id, status string) {
	s.t.Helper()
	s.advanceClockUntil(id, status, 0)
}

// advanceClockUntil waits until the video has the given fetch status. While it waits, it repeatedly advances the clock of the test by the interval.
func (s *statusSystem) advanceClockUntil(id, status string, interval time.Duration) {
	s.t.Helper()
	s.waitUntil(func() (done bool, state any) {
		v := s.getVideo(id)
		if v["fetch_status"] != status {
			s.db.Clock.Advance(interval)
		}
		return v["fetch_status"] == status, v
	})
}

// waitUntil calls check every 50 ms until done is true. After two minutes, which are long enough for a busy machine, waitUntil fails the test and
// prints the last state.
func (s *statusSystem) waitUntil(check func() (done bool, state any)) {
	s.t.Helper()
	ticks, tooLong := time.NewTicker(50*time.Millisecond), time.After(2*time.Minute)
	defer ticks.Stop()
	for {
		done, state := check()
		if done {
			return
		}
		select {
		case <-ticks.C:
		case <-tooLong:
			require.Fail(s.t, "the fetch status did not change in time", "%v", state)
		}
	}
}

// trackAccount tracks an account and returns its id.
func (s *statusSystem) trackAccount(link string) string {
	s.t.Helper()
	return s.callAPI(http.MethodPost, "/accounts", map[string]any{"link": link, "tracking_type": "new_only"})["accountId"].(string)
}

// waitForAccount waits until the account has the given fetch status, such as "ok", and returns the account.
func (s *statusSystem) waitForAccount(id, status string) map[string]any {
	s.t.Helper()
	var account map[string]any
	s.waitUntil(func() (done bool, state any) {
		account = s.callAPI(http.MethodGet, "/accounts/"+id, nil)
		return account["fetch_status"] == status, account
	})
	return account
}

func (s *statusSystem) getVideo(id string) map[string]any {
	s.t.Helper()
	return s.callAPI(http.MethodGet, "/videos/"+id, nil)
}

// setFault makes all calls to a source fail in the sandbox. The parameter kind says how they fail, such as "server_error". If kind is "", all
// sources work normally again.
func (s *statusSystem) setFault(source, kind string) {
	s.t.Helper()
	method, body := http.MethodPut, `{"source":"`+source+`","fault":"`+kind+`"}`
	if kind == "" {
		method, body = http.MethodDelete, ""
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, "/_control/faults", strings.NewReader(body))
	w := httptest.NewRecorder()
	s.box.Handler().ServeHTTP(w, r)
	require.Less(s.t, w.Code, 300, w.Body.String())
}

// Requirements in docs/coverage.md: 11.1-01, 11.1-02, 11.1-03, 11.1-04, 11.1-05
func TestFetchStatus_isTheSameInTheAPIAndOnTheCommandLine(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newStatusSystem(t, db)
		world := s.box.World()
		hidden := func(c sandbox.Category) string { return world.Find(link.TikTok, c) }
		gone := hidden(sandbox.BecomesDeleted)
		private := hidden(sandbox.BecomesPrivate)
		for _, id := range []string{gone, private} {
			truth, ok := world.Video(link.TikTok, id, db.Clock.Now())
			require.True(t, ok)
			if after := truth.ChangesAt.Add(48 * time.Hour); after.After(db.Clock.Now()) {
				db.Clock.Set(after)
			}
		}
		tiktok := func(id string) string { return "https://www.tiktok.com/@someone/video/" + id }
		ids := map[string]string{}

		_, warnings := s.trackVideo("https://www.youtube.com/watch?v=" + world.Find(link.YouTube, sandbox.CommentsOff))
		require.Empty(t, warnings, "before a collector runs, the server must give no warnings, because it does not know the sources")
		stop := s.startCollector()
		ids["ok"], _ = s.trackVideo("https://www.youtube.com/watch?v=" + world.Find(link.YouTube, sandbox.Normal))
		s.waitForStatus(ids["ok"], "ok")
		db.Clock.Advance(6 * time.Second) // the server reads every five seconds which links the running collectors can fetch
		var warning []any
		ids["unsupported"], warning = s.trackVideo("https://www.facebook.com/reel/" + world.Find(link.Facebook, sandbox.Normal))
		require.Equal(t, []any{"No configured source can fetch videos of Facebook; the operator can configure one."}, warning)
		noAccount, warning := s.trackVideo("https://www.instagram.com/reel/" + world.Find(link.Instagram, sandbox.Normal) + "/")
		require.Len(t, warning, 1)
		require.Contains(t, warning[0], "Track the account, or send a link that contains the account's handle.")
		s.waitForStatus(noAccount, "unsupported")
		ids["private"], warning = s.trackVideo(tiktok(private))
		require.Empty(t, warning)
		s.waitForStatus(ids["private"], "private")
		ids["restricted"], _ = s.trackVideo(tiktok(hidden(sandbox.AgeRestricted)))
		s.waitForStatus(ids["restricted"], "restricted")
		ids["gone"], _ = s.trackVideo(tiktok(gone))
		s.advanceClockUntil(ids["gone"], "gone", 10*time.Minute)
		normal, hiddenAccount := s.trackAccount("https://www.youtube.com/@"+world.FindAccount(link.YouTube, sandbox.AccountEmpty)), s.trackAccount(
			"https://www.tiktok.com/@"+world.FindAccount(link.TikTok, sandbox.AccountPrivate))
		require.Nil(t, s.waitForAccount(normal, "ok")["fetch_detail"])
		require.Contains(t, s.waitForAccount(hiddenAccount, "private")["fetch_detail"], "The vendor sandbox says that the account is private")
		s.setFault("vendor", "server_error")
		ids["failing"], _ = s.trackVideo(tiktok(hidden(sandbox.Normal)))
		s.advanceClockUntil(ids["failing"], "failing", 20*time.Second)
		s.waitForStatus(ids["ok"], "ok")
		stop()
		s.setFault("", "")
		ids["stopped"], _ = s.trackVideo("https://www.youtube.com/watch?v=" + world.Find(link.YouTube, sandbox.HiddenLikes))
		s.callAPI(http.MethodDelete, "/videos/"+ids["stopped"], nil)
		ids["delayed"] = ids["ok"]
		db.Clock.Advance(26 * time.Hour)
		ids["ok"] = ""
		ids["pending"], _ = s.trackVideo("https://www.youtube.com/watch?v=" + world.Find(link.YouTube, sandbox.Viral))

		for status, detail := range map[string]string{
			"pending":     "The video has not been fetched since tracking began, and no collector is running; it ",
			"delayed":     "No collector has fetched the video in time, and no collector is running; it has been due since ",
			"failing":     "attempts failed, because the vendor sandbox gave no usable answer; the next fetch is due from ",
			"private":     "The vendor sandbox says that the video is private; the next fetch is due from ",
			"restricted":  "The vendor sandbox says that the video is shown only to viewers of certain ages or regions; the next fetch is due from ",
			"gone":        "The vendor sandbox did not find the video (3 attempts in a row); the next fetch is due from ",
			"unsupported": "No configured source can fetch videos of Facebook.",
			"stopped":     "The organisation stopped tracking the video.",
		} {
			v := s.getVideo(ids[status])
			require.Equal(t, status, v["fetch_status"], v)
			require.Contains(t, v["fetch_detail"], detail, status)
			require.Equal(t, status != "unsupported" && status != "stopped", v["next_fetch_at"] != nil, status)
			require.NotContains(t, v["fetch_detail"], sandbox.VendorKey)
			require.NotContains(t, v["fetch_detail"], "http", "the sentence must contain no address")

			listed := s.callAPI(http.MethodGet, "/videos?fetch_status="+status, nil)
			var found []string
			for _, row := range listed["data"].([]any) {
				require.Equal(t, status, row.(map[string]any)["fetch_status"])
				found = append(found, row.(map[string]any)["ad_id"].(string))
			}
			require.Contains(t, found, ids[status], status)
			require.InDelta(t, len(found), listed["pagination"].(map[string]any)["total"], 0)

			called := s.callAPI(http.MethodPost, "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
				"params": map[string]any{"name": "get_video", "arguments": map[string]any{"ad_id": ids[status]}}})
			content := called["result"].(map[string]any)["structuredContent"].(map[string]any)
			require.Equal(t, v["fetch_status"], content["fetch_status"])
			require.Equal(t, v["fetch_detail"], content["fetch_detail"])
		}
		counts := s.callAPI(http.MethodGet, "/statistics/videos", nil)["by_status"].(map[string]any)
		require.Len(t, counts, 9)
		for status := range maps.Keys(ids) {
			if ids[status] != "" {
				require.Positive(t, counts[status], status)
			}
		}

		operator := newCommandRunner(t, db.URL)
		printed := operator("status")
		for _, status := range []string{"failing", "private", "restricted", "gone", "unsupported", "stopped", "pending"} {
			require.Regexp(t, `(tiktok|instagram|youtube|all) +video +`+status+` +[1-9]`, printed)
		}
		failing := operator("status", "--list", "failing")
		require.Contains(t, failing, tiktok(hidden(sandbox.Normal)))
		require.NotContains(t, failing, tiktok(private))
		require.NotContains(t, failing, sandbox.VendorKey)
		require.NoError(t, uuid.Validate(ids["failing"]))
	})
}
