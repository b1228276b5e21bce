package serve_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/cmd/internal/serve"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) {
	// goleak must ignore the cleaner goroutine of the limiter's in-memory counter, which ends only when the counter is garbage-collected.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/ulule/limiter/v3/drivers/store/memory.(*cleaner).Run"))
}

const startTimeout = 2 * time.Minute

// serverAddress waits until the server logs the URL at which it serves, and returns this URL.
func serverAddress(t *testing.T, p *boottest.Program) string {
	t.Helper()
	var line struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(p.Stderr.Await(t, startTimeout, `"serving"`)), &line))
	return line.Address
}

func getStatusAndHeader(t *testing.T, url string) (int, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, response.Header
}

func TestCommand_servesAPIOnAFreePort(t *testing.T) {
	t.Parallel()
	p := boottest.Start(t, serve.Command, nil, map[string]string{
		"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite"), "REELTALLY_LISTEN": "127.0.0.1:0",
		"REELTALLY_METRICS_LISTEN": "127.0.0.1:0", "REELTALLY_SANDBOX": "true"})
	base := serverAddress(t, p)
	status, _ := getStatusAndHeader(t, base+"/readyz")
	require.Equal(t, http.StatusOK, status)
	status, header := getStatusAndHeader(t, base+"/videos")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, "true", header.Get("ReelTally-Sandbox"))
	p.Stderr.Await(t, startTimeout, "serving metrics")
	require.Zero(t, p.Stop())
	p.Stderr.Await(t, startTimeout, "stopped serving")
}

// A killed collector exports no metrics. So the server must report how many collectors run.
func TestCommand_reportsThatNoCollectorRuns(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	now := store.InstantOf(time.Now())
	db.Exec(t, "INSERT INTO collectors (id, seen_at) VALUES (?, ?)", store.NewID(), now.Add(-time.Minute)) // the row of a collector that was killed a minute ago
	require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "youtube", Class: "auth_failed", Detail: "refused", BlockedUntil: now.Add(time.Hour), PausesSinceSuccess: 1}))
	p := boottest.Start(t, serve.Command, nil, map[string]string{
		"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_LISTEN": "127.0.0.1:0", "REELTALLY_METRICS_LISTEN": "127.0.0.1:0"})
	serverAddress(t, p)
	var line struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(p.Stderr.Await(t, startTimeout, "serving metrics")), &line))
	text := requireBody(t, line.Address)
	require.Regexp(t, "(?m)^reeltally_collectors 0$", text)
	require.Regexp(t, `(?m)^reeltally_source_paused_until_timestamp_seconds{budget="",class="auth_failed",source="youtube"}`, text, "the server must also export the pauses of sources that only collectors use")
	var s monitor.Status
	require.NoError(t, json.Unmarshal([]byte(requireBody(t, strings.TrimSuffix(line.Address, "/metrics")+"/status")), &s))
	require.Zero(t, s.Collectors)
}

// requireBody requests a URL and returns the body. It fails the test unless the status is 200.
func requireBody(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	return string(body)
}

func TestCommand_failsIfDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	status, _, stderr := boottest.Run(t, serve.Command, nil, map[string]string{"REELTALLY_LISTEN": "127.0.0.1:0"},
		"--database-url", storetest.CreateEmptyDatabase(t, "postgres"))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "run `reeltally migrate`")
}

func TestCommand_failsIfPortIsInUse(t *testing.T) {
	t.Parallel()
	first := boottest.Start(t, serve.Command, nil, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")}, "--listen=127.0.0.1:0")
	addressInUse := serverAddress(t, first)[len("http://"):]
	status, _, stderr := boottest.Run(t, serve.Command, nil, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")}, "--listen", addressInUse)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, addressInUse+" is in use by another program")
	require.Contains(t, stderr, "REELTALLY_LISTEN")
}

func TestConfig_reportsTheInvalidSetting(t *testing.T) {
	t.Parallel()
	for variable, value := range map[string]string{
		"REELTALLY_LISTEN":             "nowhere",
		"REELTALLY_METRICS_LISTEN":     "127.0.0.1",
		"REELTALLY_APP_URL":            "ftp://example.com",
		"REELTALLY_SHORTLINK_BASE_URL": "example.com",
		"REELTALLY_PREVIEW_ALLOWANCE":  "0",
		"REELTALLY_REQUEST_TIMEOUT":    "900ms",
		"REELTALLY_SHUTDOWN_DELAY":     "61s",
		"REELTALLY_TRUSTED_PROXIES":    "10.0.0.0/8,home",
		"REELTALLY_REDIS_URL":          "https://reeltally:s3cret@redis.example.com:6379",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := boottest.Run(t, serve.Command, nil, map[string]string{variable: value, "REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")})
			require.Equal(t, 2, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, variable)
			require.Contains(t, stderr, "it must be")
			require.NotContains(t, stderr, "s3cret")
		})
	}
}

func TestCommand_printsASetupLinkUntilThereIsAnOrganisation(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	env := map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_LISTEN": "127.0.0.1:0", "REELTALLY_APP_URL": "https://reeltally.example.com"}
	first := boottest.Start(t, serve.Command, nil, env)
	serverAddress(t, first)
	require.Regexp(t, `https://reeltally\.example\.com/setup/[A-Za-z0-9_-]{43}\n`, first.Stdout.String())
	require.NotContains(t, first.Stderr.String(), "/setup/", "the log must not contain the link")
	_, err := db.CreateOrganisation(t.Context(), "N", store.TierBasic, store.SubscriptionActive)
	require.NoError(t, err)
	second := boottest.Start(t, serve.Command, nil, env)
	serverAddress(t, second)
	require.Empty(t, second.Stdout.String())
}

// Requirements in docs/coverage.md: 11.8-07
func TestCommand_appliesTheConfiguredLimitsOfEachTier(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	org, err := db.CreateOrganisation(t.Context(), "N", store.TierBasic, store.SubscriptionActive)
	require.NoError(t, err)
	_, token, err := db.CreateToken(t.Context(), org.ID, "N", []store.Scope{store.ScopeRead}, 0)
	require.NoError(t, err)
	p := boottest.Start(t, serve.Command, nil, map[string]string{
		"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_LISTEN": "127.0.0.1:0", "REELTALLY_TIER_LIMITS": "basic.read=2,premium.read=9"})
	base := serverAddress(t, p)
	call := func(path string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response, string(body)
	}
	for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		response, body := call("/collections")
		require.Equal(t, want, response.StatusCode, body)
		require.Equal(t, "2", response.Header.Get("RateLimit-Limit"))
	}
	response, body := call("/authenticate")
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	require.Equal(t, "60", response.Header.Get("RateLimit-Limit"), "a limit that is not set must keep its default")
	require.Contains(t, body, `"limit":2,`)
}

func TestConfig_reportsTheInvalidTierLimit(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"gold.read=5":                     `"gold.read" is not a rate limit: write TIER.GROUP; TIER is limited, basic or premium`,
		"basic=5":                         `"basic" is not a rate limit`,
		"basic.delete=5":                  `"basic.delete" is not a rate limit: write TIER.GROUP; TIER is limited, basic or premium, and GROUP is authenticate, read or write`,
		"basic.read=0":                    "basic.read is 0; it must be from 1 to 1000000",
		"premium.read=1000001":            "premium.read is 1000001; it must be from 1 to 1000000",
		"basic.read=many":                 `basic.read: "many" is not a whole number, such as 20`,
		"basic.read":                      `"basic.read" must have the form TIER.GROUP=N`,
		"basic.read=99999999999999999999": `basic.read: "99999999999999999999" is too large`,
		"basic.read=5,basic.read=6":       `"basic.read" occurs twice`,
	} {
		status, _, stderr := boottest.Run(t, serve.Command, nil, map[string]string{"REELTALLY_TIER_LIMITS": value, "REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")})
		require.Equal(t, 2, status, value)
		require.Contains(t, stderr, "--tier-limits (REELTALLY_TIER_LIMITS)")
		require.Contains(t, stderr, want)
	}
}

// The errors of the Redis library contain the whole URL. The error that the program prints must not contain the password.
func TestConfig_errorHidesRedisPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://reeltally:s3cret@host:port/0", "redis://reeltally:s3cret/with/slash@host", "redis://:s3cret%@host", "s3cret", "redis://host/s3cret", "redis://host?dial_timeout=s3cret"} {
		status, stdout, stderr := boottest.Run(t, serve.Command, nil, map[string]string{"REELTALLY_REDIS_URL": url, "REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")})
		require.Equal(t, 2, status, url)
		require.Contains(t, stderr, "REELTALLY_REDIS_URL")
		require.NotContains(t, stdout+stderr, "s3cret")
	}
}

func TestCommand_servesWhileRedisIsUnreachable(t *testing.T) {
	t.Parallel()
	p := boottest.Start(t, serve.Command, nil, map[string]string{
		"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite"), "REELTALLY_LISTEN": "127.0.0.1:0",
		"REELTALLY_REDIS_URL": "redis://reeltally:s3cret@127.0.0.1:1/0"})
	base := serverAddress(t, p)
	p.Stderr.Await(t, startTimeout, "redis is unavailable", "connection refused")
	status, _ := getStatusAndHeader(t, base+"/readyz")
	require.Equal(t, http.StatusOK, status)
	status, _ = getStatusAndHeader(t, base+"/videos")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Zero(t, p.Stop())
	require.NotContains(t, p.Stderr.String(), "s3cret")
}
