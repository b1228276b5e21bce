package monitor_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

var (
	alertExpression = regexp.MustCompile("(?m)^ +expr: (.*)$")
	alertMetric     = regexp.MustCompile(`reeltally_\w+`)
	alertLabels     = regexp.MustCompile(`by \(([^)]*)\) \((reeltally_\w+)`)
	labelName       = regexp.MustCompile(`\w+`)
)

// The alerts in docs/alerts.yml must not use metrics that only collectors export. A stopped collector exports no metrics, so such an alert
// would not fire if all collectors have stopped.
func TestDocs_alertsUseMetricsThatServerExports(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "alerts.yml"))
	require.NoError(t, err)
	var expressions string
	for _, match := range alertExpression.FindAllSubmatch(text, -1) {
		expressions += string(match[1]) + "\n"
	}
	require.NotEmpty(t, expressions)

	db := storetest.New(t, "sqlite")
	now := store.InstantOf(db.Clock.Now())
	db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail)
 VALUES (0, 'tiktok', 'video', '1', '', '', 1, 1, ?, ?, 0, 'active', '')`, now, now)
	require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "youtube", Class: "auth_failed", BlockedUntil: now.Add(time.Hour)}))
	require.NoError(t, db.RecordBackup(t.Context()))
	registry := prometheus.NewRegistry()
	monitor.New(db.Store, nil, nil, registry, slog.New(slog.DiscardHandler))
	families, err := registry.Gather()
	require.NoError(t, err)
	labels := map[string][]string{}
	for _, f := range families {
		labels[f.GetName()] = []string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[f.GetName()] = append(labels[f.GetName()], l.GetName())
		}
	}
	for _, metric := range alertMetric.FindAllString(expressions, -1) {
		require.Contains(t, labels, metric)
	}
	for _, by := range alertLabels.FindAllStringSubmatch(expressions, -1) {
		require.Subset(t, labels[by[2]], labelName.FindAllString(by[1], -1), by[2])
	}
}
