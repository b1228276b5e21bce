package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// awaitMetricsAddress waits until a program serves its metrics, and returns their address as HOST:PORT.
func awaitMetricsAddress(t *testing.T, p *process) string {
	t.Helper()
	return strings.TrimSuffix(strings.TrimPrefix(loggedAddress(t, p, "serving metrics"), "http://"), "/metrics")
}

// startPrometheus starts Prometheus with docs/alerts.yml, and returns its base URL. The alerts fire
// without their delays. The targets are HOST:PORT addresses that serve metrics.
func startPrometheus(t *testing.T, targets ...string) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	require.NoError(t, err, "this test needs Prometheus: apt-get install prometheus")
	dir := t.TempDir()
	rules, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.yml"))
	require.NoError(t, err)
	rules = regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAll(rules, nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "alerts.yml"), rules, 0o600))
	config := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [alerts.yml]\nscrape_configs:\n"+
		"  - job_name: reeltally\n    static_configs: [{targets: [%q]}]\n", strings.Join(targets, `","`))
	config = strings.ReplaceAll(config, `\"`, `"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	p := startInFolder(t, dir, path, nil, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0")
	line := p.stderr.Await(t, waitTimeout, `msg="Listening on" address=`)
	p.stderr.Await(t, waitTimeout, `msg="Server is ready to receive web requests."`)
	return "http://" + regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(line)[1]
}

// firingAlerts returns the number of firing alerts, by the name of the alert.
func firingAlerts(t *testing.T, base string) map[string]int {
	t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	requireResponse(t, http.MethodGet, base+"/api/v1/alerts", "", nil).decode(t, &answer)
	names := map[string]int{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			names[a.Labels["alertname"]]++
		}
	}
	return names
}

// numberOfSeries returns the number of time series in the result of a PromQL expression.
func numberOfSeries(t *testing.T, base, expression string) int {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct{ Result []struct{} }
	}
	requireResponse(t, http.MethodGet, base+"/api/v1/query?query="+url.QueryEscape(expression), "", nil).decode(t, &answer)
	require.Equal(t, "success", answer.Status, "%s: %s", expression, answer.Error)
	return len(answer.Data.Result)
}

func TestPrometheus_alertsFireAndDashboardPanelsHaveData(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	s := &stack{sandboxProcess: startSandbox(t)}
	s.env = append(s.sandboxProcess.env, "REELTALLY_DATABASE_URL="+storetest.CreateDatabase(t, "postgres"), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_METRICS_LISTEN=127.0.0.1:0")
	s.token = s.newOrganisation(t)
	s.startServer(t)
	collector := s.startCollector(t)
	for _, p := range []link.Platform{link.YouTube, link.TikTok} {
		require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]string{"link": s.publicVideos(t, p, 1, 1)[0].url}).status)
	}
	base := startPrometheus(t, awaitMetricsAddress(t, s.server), awaitMetricsAddress(t, collector))
	s.setFault(t, "instagram", "rate_limited", 600) // without a paused source, the panel about pauses would have no data
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]string{"link": s.publicVideos(t, link.Instagram, 1, 1)[0].url}).status)

	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "grafana.json"))
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	require.Greater(t, len(board.Panels), 10)
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			await(t, waitTimeout, 200*time.Millisecond, func() string {
				if numberOfSeries(t, base, target.Expr) == 0 {
					return fmt.Sprintf("the panel %s has no data: %s", panel.Title, target.Expr)
				}
				return ""
			})
		}
	}

	firing := func(name string) func() string {
		return func() string {
			if names := firingAlerts(t, base); names[name] == 0 {
				return fmt.Sprintf("the alert %s does not fire; only these alerts fire: %v", name, names)
			}
			return ""
		}
	}
	require.NotContains(t, firingAlerts(t, base), "ReelTallyNoCollector")
	collector.kill()
	await(t, waitTimeout, 200*time.Millisecond, firing("ReelTallyNoCollector"))
	require.NotContains(t, firingAlerts(t, base), "ReelTallyNoMetrics")
	s.server.kill()
	await(t, waitTimeout, 200*time.Millisecond, firing("ReelTallyNoMetrics"))
}
