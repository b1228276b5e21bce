package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store/storetest"
)

// runningReelTally is a running `reeltally up`, with the address and the token that it has printed.
type runningReelTally struct {
	*boottest.Program
	base, token string
}

// startReelTally starts `reeltally up` with the environment variables env, and waits until it has printed the address and the token.
func startReelTally(t *testing.T, env map[string]string) runningReelTally {
	t.Helper()
	env["REELTALLY_LISTEN"] = "127.0.0.1:0"
	p := boottest.Start(t, run, nil, env, "up")
	p.Stdout.Await(t, startTimeout, "Ctrl-C stops.")
	_, base, _ := strings.Cut(p.Stdout.Await(t, startTimeout, "ReelTally runs at "), " at ")
	return runningReelTally{p, base, strings.TrimSpace(p.Stdout.Await(t, startTimeout, "  rt_"))}
}

func TestUp_keepsTokenAndDataAcrossRestarts(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, engine)
			url := db.URL
			if engine == "sqlite" {
				url = storetest.CreateEmptyDatabase(t, engine)
			}
			dir := t.TempDir()
			u := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": url, "REELTALLY_DATA_DIR": dir})
			require.Contains(t, u.Stdout.String(), "MADE UP by the sandbox")
			countVideos := func(u runningReelTally) int {
				var list struct{ Pagination struct{ Total int } }
				require.NoError(t, json.Unmarshal([]byte(getText(t, u.base+"/videos?limit=1", u.token)), &list))
				return list.Pagination.Total
			}
			require.Equal(t, 60, countVideos(u))
			require.Zero(t, u.Stop())
			u.Stdout.Await(t, startTimeout, "Stopped.")
			require.Empty(t, u.Stderr.String(), "`reeltally up` must log no warnings")

			start := time.Now()
			again := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": url, "REELTALLY_DATA_DIR": dir})
			require.Less(t, time.Since(start), 30*time.Second)
			require.Equal(t, u.token, again.token)
			require.Equal(t, 60, countVideos(again))
			require.Zero(t, again.Stop())
		})
	}
}

func TestUp_printsALoginLinkThatWorksOnce(t *testing.T) {
	t.Parallel()
	u := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite"), "REELTALLY_DATA_DIR": t.TempDir()})
	link := strings.TrimSpace(u.Stdout.Await(t, startTimeout, "  "+u.base+"/login/"))
	require.Contains(t, getText(t, link, ""), "Sign in to Demo")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	use := func() (status int, cookies []*http.Cookie) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, link, nil)
		require.NoError(t, err)
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Cookies()
	}
	status, cookies := use()
	require.Equal(t, http.StatusSeeOther, status)
	require.Len(t, cookies, 1)
	status, cookies = use()
	require.Equal(t, http.StatusUnauthorized, status)
	require.Empty(t, cookies)
	require.Zero(t, u.Stop())
}

func TestUp_keepsTokenFilePrivateAndReplacesInvalidToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "data", "reeltally.db")
	first := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": url})
	require.Zero(t, first.Stop())
	path := filepath.Join(dir, "data", demoTokenFile)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	operator := newCommandRunner(t, url)
	var tokens []tokenJSON
	require.NoError(t, json.Unmarshal([]byte(operator("token", "list", "--org", demoOrganisationID().String(), "--json")), &tokens))
	require.Len(t, tokens, 1)
	operator("token", "revoke", tokens[0].ID.String())
	second := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": url})
	require.NotEqual(t, first.token, second.token, "`reeltally up` must replace a revoked token")
	require.Contains(t, getText(t, second.base+"/authenticate", second.token), "Demo")
	require.Zero(t, second.Stop())

	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o600))
	third := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": url})
	require.NotEqual(t, second.token, third.token, "`reeltally up` must replace an invalid token")
	require.Zero(t, third.Stop())
}

// realSources has, for each source, settings that configure it. With such settings, `reeltally up` must not use the sandbox. The sources
// are not called, because the tests track nothing.
var realSources = map[string]map[string]string{
	"youtube": {"REELTALLY_YOUTUBE_API_KEY": "a-real-key"},
	"tiktok": {"REELTALLY_TIKTOK_CLIENT_KEY": "a-real-key", "REELTALLY_TIKTOK_CLIENT_SECRET": "another",
		"REELTALLY_TIKTOK_REFRESH_TOKEN": "a-third"},
	"instagram": {"REELTALLY_INSTAGRAM_ACCESS_TOKEN": "a-real-key", "REELTALLY_INSTAGRAM_ACCOUNT_ID": "17841405822304914"},
	"vendor":    {"REELTALLY_VENDOR": "apify", "REELTALLY_VENDOR_KEY": "a-real-key"},
}

// Requirements in docs/coverage.md: 11.3-03
func TestUp_usesNoSandboxIfASourceIsConfigured(t *testing.T) {
	t.Parallel()
	for name, settings := range realSources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := maps.Clone(settings)
			env["REELTALLY_DATABASE_URL"] = storetest.CreateEmptyDatabase(t, "sqlite")
			env["REELTALLY_TIKTOK_BASE_URL"] = "http://127.0.0.1:1" // the TikTok source renews its token as soon as it starts
			u := startReelTally(t, env)
			require.NotContains(t, u.Stdout.String(), "MADE UP")
			require.Contains(t, u.Stdout.String(), `{"link": "LINK"}`)
			require.Contains(t, getText(t, u.base+"/videos", u.token), `"data":[]`, "if a source is configured, the organisation that `reeltally up` creates must have no made-up videos")
			require.Zero(t, u.Stop())
			require.NotContains(t, u.Stderr.String(), "a-real-key")
		})
	}
}

func TestUp_failsIfPortIsInUse(t *testing.T) {
	t.Parallel()
	u := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")})
	addressInUse := strings.TrimPrefix(u.base, "http://")
	dir := filepath.Join(t.TempDir(), "data")
	status, stdout, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": "sqlite:" + filepath.Join(dir, "demo.db")}, "up", "--listen", addressInUse)
	require.Equal(t, 1, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, addressInUse+" is in use by another program: choose another address with --listen or REELTALLY_LISTEN")
	require.NoDirExists(t, dir, "`reeltally up` must create no database if it cannot serve requests")
	require.Zero(t, u.Stop())
}

func TestUp_demoFetchesVideosOfEveryPlatform(t *testing.T) {
	t.Parallel()
	u := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite"), "REELTALLY_DATA_DIR": t.TempDir()})
	c, err := client.New(u.base, u.token)
	require.NoError(t, err)
	for _, link := range []string{
		"https://www.tiktok.com/@nasa/video/7306132438047116586",
		"https://www.instagram.com/reel/C1a2b3c4d5e/",
		"https://www.youtube.com/shorts/dQw4w9WgXcQ",
		"https://www.facebook.com/reel/1535656380759655",
	} {
		_, err := c.TrackVideo(t.Context(), client.TrackVideoOptions{Link: link})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			v, err := c.GetVideo(t.Context(), link)
			return err == nil && v.LatestViews != nil
		}, startTimeout, 500*time.Millisecond, link) // requests at shorter intervals would exceed the rate limit
	}
	require.Zero(t, u.Stop())
}
