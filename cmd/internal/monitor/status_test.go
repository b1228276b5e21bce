package monitor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// describeSource returns one source with two budgets. The window of the budget "common" ends at the next full hour; the budget "free" has no limit.
func describeSource(now time.Time) []queue.Source {
	return []queue.Source{{Name: "test", Budgets: []queue.Budget{
		{Name: "common", Limit: 100, Window: "today", Ends: now.Truncate(time.Hour).Add(time.Hour)},
		{Name: "free"},
	}}}
}

func TestMonitor_servesTheStatusAsJSONAndAsMetrics(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		org, err := db.CreateOrganisation(t.Context(), "Northwind", store.TierPremium, store.SubscriptionActive)
		require.NoError(t, err)
		l, err := link.Parse("https://www.tiktok.com/@northwind.studio/video/7338812345678901234")
		require.NoError(t, err)
		_, err = db.Org(org.ID).Track(t.Context(), store.TrackRequest{Links: []link.Link{l}})
		require.NoError(t, err)
		db.Clock.Advance(24 * time.Hour)
		now := store.InstantOf(db.Clock.Now())
		db.Exec(t, "UPDATE fetch_targets SET next_at = ?, fetched_at = ?", now.Add(-90*time.Second), now.Add(-5*time.Hour))
		_, err = db.Heartbeat(t.Context(), store.NewID(), time.Minute, nil)
		require.NoError(t, err)
		_, err = db.ReserveUnits(t.Context(), "test/common", "today", 30, 100)
		require.NoError(t, err)
		_, err = db.ReserveUnits(t.Context(), "test/common", "yesterday", 99, 100)
		require.NoError(t, err)
		for name, until := range map[string]time.Duration{"test/common": time.Hour, "test": -time.Hour} {
			require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: name, Class: "quota_spent", Detail: "used up", BlockedUntil: now.Add(until), PausesSinceSuccess: 2}))
		}

		registry := prometheus.NewRegistry()
		results := func() map[string]map[string]int64 { return map[string]map[string]int64{"test": {"gone": 1}} }
		m := monitor.New(db.Store, describeSource, results, registry, slog.New(slog.DiscardHandler))

		response := httptest.NewRecorder()
		m.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", nil))
		require.Equal(t, http.StatusOK, response.Code)
		var s monitor.Status
		require.NoError(t, json.Unmarshal(response.Body.Bytes(), &s))
		resets := db.Clock.Now().UTC().Truncate(time.Hour).Add(time.Hour)
		require.Equal(t, monitor.Status{
			At: now.Time(), Collectors: 1,
			Queue: []monitor.QueueStatus{{Platform: "tiktok", Kind: "video", Lane: "premium", Targets: map[string]int64{"active": 1}, Due: 1, OldestDueSeconds: new(90.0)}},
			Freshness: []monitor.Freshness{{Platform: "tiktok", Kind: "video", Targets: 1,
				Within: map[string]int64{"1h": 0, "3h": 0, "6h": 1, "12h": 1, "24h": 1, "36h": 1, "48h": 1, "168h": 1},
				P50:    new(21600.0), P95: new(21600.0), P99: new(21600.0)}},
			Platforms: []monitor.Platform{{Platform: "tiktok", Targets: 1, Due: 1, Fresh: 1}},
			Sources: []monitor.SourceStatus{{Source: "test", Results: map[string]int64{"gone": 1}, Budgets: []monitor.BudgetStatus{
				{Budget: "common", Window: "today", Used: 30, Limit: new(int64(100)), Left: new(int64(70)), ResetsAt: resets,
					Pause: &monitor.PauseStatus{Until: now.Add(time.Hour).Time(), Class: "quota_spent", Detail: "used up", InARow: 2, Since: new(now.Time())}},
				{Budget: "free"},
			}}},
			Statuses:    []monitor.StatusCount{{Platform: "tiktok", Kind: "video", Status: queue.FetchPending, Targets: 1}},
			LastFetches: []queue.LastFetches{},
			Webhooks:    &monitor.WebhookStatus{},
		}, s)
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP reeltally_queue_oldest_due_seconds Seconds since the oldest due target became due; 0 if no target is due.
# TYPE reeltally_queue_oldest_due_seconds gauge
reeltally_queue_oldest_due_seconds{kind="video",lane="premium",platform="tiktok"} 90
# HELP reeltally_quota_used Units of the budget that are reserved in the current window.
# TYPE reeltally_quota_used gauge
reeltally_quota_used{budget="common",source="test"} 30
reeltally_quota_used{budget="free",source="test"} 0
# HELP reeltally_collectors Collectors that sent a heartbeat in the last ten seconds.
# TYPE reeltally_collectors gauge
reeltally_collectors 1
`), "reeltally_queue_oldest_due_seconds", "reeltally_quota_used", "reeltally_collectors"))
	})
}

func TestReadStatus_listsTheSourcesOfCollectorsInOtherProcesses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		published := describeSource(db.Clock.Now())
		for _, cause := range []string{"", "a fault"} { // two collectors with the same source
			published[0].HeldBack = cause
			_, err := db.Heartbeat(t.Context(), store.NewID(), time.Minute, published)
			require.NoError(t, err)
		}
		_, err := db.ReserveUnits(t.Context(), "test/common", "today", 30, 100)
		require.NoError(t, err)
		own, err := monitor.ReadStatus(t.Context(), db.Store, describeSource)
		require.NoError(t, err)
		others, err := monitor.ReadStatus(t.Context(), db.Store, nil)
		require.NoError(t, err)
		require.Equal(t, own.Sources, others.Sources)
		require.Len(t, others.Sources, 1)
		require.EqualValues(t, 70, *others.Sources[0].Budgets[0].Left)
		require.Equal(t, "a fault", others.Sources[0].HeldBack, "one of the collectors holds back answers")

		db.Clock.Advance(time.Minute)
		others, err = monitor.ReadStatus(t.Context(), db.Store, nil)
		require.NoError(t, err)
		require.Empty(t, others.Sources, "sources must not be listed if their collector has sent no heartbeat for ten seconds")
	})
}

func TestReadStatus_showsTheOtherPartsIfAPartCannotBeRead(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	st, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: time.Now, Inspect: func(statement string, _ []any) error {
		for _, table := range []string{"webhook_queue", "organisation_totals", "settings"} {
			if strings.Contains(statement, table) {
				return errors.New("no answer about " + table) //nolint:err113 // no caller checks for this error
			}
		}
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	_, err = db.Heartbeat(t.Context(), store.NewID(), time.Minute, describeSource(db.Clock.Now()))
	require.NoError(t, err)
	s, err := monitor.ReadStatus(t.Context(), st, describeSource)
	require.NoError(t, err)
	require.Len(t, s.Sources, 1)
	require.Nil(t, s.Webhooks)
	require.Nil(t, s.LastBackup)
	require.Len(t, s.Unknown, 3)
	for i, want := range []struct{ part, table string }{{"stopped", "organisation_totals"}, {"webhooks", "webhook_queue"}, {"last_backup", "settings"}} {
		require.Equal(t, want.part, s.Unknown[i].Part)
		require.Contains(t, s.Unknown[i].Reason, "no answer about "+want.table)
	}
	registry := prometheus.NewRegistry()
	monitor.New(st, nil, nil, registry, slog.New(slog.DiscardHandler))
	families, err := registry.Gather()
	require.NoError(t, err)
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.GetName()
	}
	require.Contains(t, names, "reeltally_collectors")
	require.NotContains(t, names, "reeltally_webhooks", "an unknown number must not be exported as 0")
}

func TestReadStatus_saysWhenTheCollectorsCatchUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		now := store.InstantOf(db.Clock.Now())
		added := 0
		add := func(n int, state string, next, fetched time.Duration) {
			for range n {
				added++
				db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail, fetched_at, route, status)
 VALUES (0, 'tiktok', 'video', ?, '', '', 1, 1, ?, ?, 0, ?, '', ?, 'vendor:a', 'ok')`, strconv.Itoa(added), now.Add(next), now, state, now.Add(-fetched))
			}
		}
		backlog := func() string {
			s, err := monitor.ReadStatus(t.Context(), db.Store, nil)
			require.NoError(t, err)
			require.Len(t, s.Platforms, 1)
			return s.Platforms[0].Backlog
		}
		add(6, "active", -5*time.Minute, 24*time.Hour)
		add(4, "active", 30*time.Minute, 23*time.Hour)
		add(3, "parked", -2*time.Hour, 48*time.Hour)
		require.Empty(t, backlog(), "targets that are due for five minutes, or that are parked, are no backlog")
		add(2, "active", -2*time.Hour, 26*time.Hour)
		require.Equal(t, "8 fetches of videos and accounts are late, the first by 2h. In the last hour, 0 succeeded, and 4 more become due in the next hour. At this rate, the collectors do not catch up within a week.", backlog())
		add(8, "active", 23*time.Hour, 30*time.Minute)
		require.Equal(t, "8 fetches of videos and accounts are late, the first by 2h. In the last hour, 8 succeeded, and 4 more become due in the next hour. At this rate, the collectors catch up in about 2h.", backlog())
	})
}

// A failed read of the status can take as long as a successful read. So the monitor must also cache the error of a failed read.
func TestMonitor_waitsAfterAFailedReadBeforeItReadsAgain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	var reads, countsOfFetches atomic.Int64
	st, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: time.Now, Inspect: func(statement string, _ []any) error {
		if !strings.Contains(statement, "FROM fetch_targets") {
			return nil
		}
		if strings.Contains(statement, "AS succeeded") {
			countsOfFetches.Add(1)
		} else {
			reads.Add(1)
		}
		return context.DeadlineExceeded
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	m := monitor.New(st, nil, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	for range 3 {
		response := httptest.NewRecorder()
		m.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", nil))
		require.Equal(t, http.StatusServiceUnavailable, response.Code)
	}
	require.EqualValues(t, 1, reads.Load())
	require.LessOrEqual(t, countsOfFetches.Load(), int64(1))
}

// Counting the last fetches scans the whole queue. So it must not happen at every view of the page Operations, and not for the metrics.
func TestMonitor_countsTheLastFetchesOnceForSeveralRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const targets = 20_000
		series := fmt.Sprintf("WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) SELECT n FROM numbers", targets)
		now := store.InstantOf(db.Clock.Now())
		db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail, fetched_at, route, status)
SELECT 0, 'tiktok', 'video', CAST(7000000000000000000 + n AS text), '', '', 1, 1, ?, ?, CASE WHEN n % 100 = 0 THEN 2 ELSE 0 END, 'active', CASE WHEN n % 100 = 0 THEN 'HTTP 500' ELSE '' END, ?, 'vendor:a', 'ok' FROM (`+series+`) AS s`, now, now, now)
		registry := prometheus.NewRegistry()
		m := monitor.New(db.Store, nil, nil, registry, slog.New(slog.DiscardHandler))
		counts := func() (n int) {
			for _, statement := range db.Guard.Statements() {
				if strings.Contains(statement, "AS succeeded") || strings.Contains(statement, "AS reason_targets") {
					n++
				}
			}
			return n
		}
		_, err := registry.Gather()
		require.NoError(t, err)
		require.Zero(t, counts(), "the metrics do not need the last fetches")
		get := func() (s monitor.Status) {
			response := httptest.NewRecorder()
			m.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", nil))
			require.Equal(t, http.StatusOK, response.Code)
			require.NoError(t, json.Unmarshal(response.Body.Bytes(), &s))
			return s
		}
		require.Eventually(t, func() bool { return get().LastFetches != nil }, time.Minute, 10*time.Millisecond)
		for range 3 {
			require.Equal(t, []queue.LastFetches{{Platform: "tiktok", Source: "vendor:a", Succeeded: 19_800, Failed: 200, Reason: "HTTP 500", ReasonTargets: 200}}, get().LastFetches)
		}
		require.Equal(t, 2, counts(), "one statement counts the results, and one counts the reasons")
	})
}

func TestMonitor_reportsThatTheDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	st, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: time.Now})
	require.NoError(t, err)
	require.NoError(t, st.Close())
	registry := prometheus.NewRegistry()
	m := monitor.New(st, nil, nil, registry, slog.New(slog.DiscardHandler))
	response := httptest.NewRecorder()
	m.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", nil))
	require.Equal(t, http.StatusServiceUnavailable, response.Code)
	require.Equal(t, "the database does not answer\n", response.Body.String())
	families, err := registry.Gather()
	require.NoError(t, err, "the registry must return metrics without an error while the database is unreachable")
	require.Len(t, families, 1)
	require.Equal(t, "reeltally_database_up", families[0].GetName())
	require.Zero(t, families[0].GetMetric()[0].GetGauge().GetValue())
}

// /status and /metrics must respond even while the database does not respond.
func TestMonitor_respondsWhileDatabaseHangs(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	hang, blocked := make(chan struct{}), atomic.Bool{}
	st, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: time.Now, Inspect: func(statement string, _ []any) error {
		if blocked.Load() && strings.Contains(statement, "FROM fetch_targets") {
			<-hang
		}
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	getStatus := func(m *monitor.Monitor) *httptest.ResponseRecorder {
		answered := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			response := httptest.NewRecorder()
			m.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", nil))
			answered <- response
		}()
		select {
		case response := <-answered:
			return response
		case <-time.After(10 * time.Second):
			require.Fail(t, "the monitor must respond while the database hangs")
			return nil
		}
	}
	registry := prometheus.NewRegistry()
	m := monitor.New(st, nil, nil, registry, slog.New(slog.DiscardHandler))
	blocked.Store(true)
	require.Equal(t, http.StatusServiceUnavailable, getStatus(m).Code, "/status must respond with 503 until a status was read")
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1, "while the database hangs, the monitor must export only the metric reeltally_database_up")
	blocked.Store(false)
	close(hang)
	require.Eventually(t, func() bool { return getStatus(m).Code == http.StatusOK }, 30*time.Second, 50*time.Millisecond)
}
