package monitor

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/store/queue"
)

// statusMetrics exports the Status of a Monitor as Prometheus metrics. It implements prometheus.Collector.
type statusMetrics struct{ *Monitor }

var (
	targetsDesc  = prometheus.NewDesc("reeltally_queue_targets", "Targets (videos and accounts) in the queue.", []string{"platform", "kind", "lane", "state"}, nil)
	dueDesc      = prometheus.NewDesc("reeltally_queue_due", "Targets that are due.", []string{"platform", "kind", "lane"}, nil)
	oldestDesc   = prometheus.NewDesc("reeltally_queue_oldest_due_seconds", "Seconds since the oldest due target became due; 0 if no target is due.", []string{"platform", "kind", "lane"}, nil)
	failingDesc  = prometheus.NewDesc("reeltally_queue_failing", "Active targets whose last fetch failed.", []string{"platform", "kind", "lane"}, nil)
	withinDesc   = prometheus.NewDesc("reeltally_numbers_within", "Active targets that were fetched successfully in the last N seconds. N is the value of the label le.", []string{"platform", "kind", "le"}, nil)
	neverDesc    = prometheus.NewDesc("reeltally_numbers_never", "Active targets that were never fetched.", []string{"platform", "kind"}, nil)
	usedDesc     = prometheus.NewDesc("reeltally_quota_used", "Units of the budget that are reserved in the current window.", []string{"source", "budget"}, nil)
	limitDesc    = prometheus.NewDesc("reeltally_quota_limit", "Units of the budget in the current window, if limited.", []string{"source", "budget"}, nil)
	resetsDesc   = prometheus.NewDesc("reeltally_quota_resets_timestamp_seconds", "End of the current window of the budget.", []string{"source", "budget"}, nil)
	pausedDesc   = prometheus.NewDesc("reeltally_source_paused_until_timestamp_seconds", "End of the pause of a source or budget; missing if it is not paused.", []string{"source", "budget", "class"}, nil)
	upDesc       = prometheus.NewDesc("reeltally_database_up", "1 if the database answered a read within 1.5 seconds, else 0.", nil, nil)
	replicaDesc  = prometheus.NewDesc("reeltally_replica_up", "1 if the replica for reads answers and applies the log of the database, else 0; missing without a replica.", nil, nil)
	lagDesc      = prometheus.NewDesc("reeltally_replica_lag_seconds", "Age of the last change that the replica has applied; 0 if it has all changes, missing if the replica cannot be used.", nil, nil)
	readsDesc    = prometheus.NewDesc("reeltally_replica_reads_total", "Reads that were sent to the replica, by result. If the replica was behind or failed, the primary answered the read.", []string{"result"}, nil)
	webhooksDesc = prometheus.NewDesc("reeltally_webhooks", "Enabled webhooks of all organisations.", nil, nil)
	hooksOrgDesc = prometheus.NewDesc("reeltally_webhooks_organisations", "Organisations with an enabled webhook.", nil, nil)
	deadDesc     = prometheus.NewDesc("reeltally_webhooks_unreachable", "Enabled webhooks of which the last attempt got no response.", nil, nil)
	deadOrgDesc  = prometheus.NewDesc("reeltally_webhooks_unreachable_organisations", "Organisations with an enabled webhook of which the last attempt got no response.", nil, nil)
	delayDesc    = prometheus.NewDesc("reeltally_webhooks_delay_seconds", "Longest time for which a webhook has waited for a server that sends its due events, without the pauses after failures; 0 if no webhook waits.", nil, nil)
	backupDesc   = prometheus.NewDesc("reeltally_last_backup_timestamp_seconds", "End of the last backup of `reeltally backup`; missing if none is known.", nil, nil)
	aliveDesc    = prometheus.NewDesc("reeltally_collectors", "Collectors that sent a heartbeat in the last ten seconds.", nil, nil)
)

// Describe sends no descriptions, because the set of metrics depends on the targets and sources. Prometheus
// allows this, and then does not compare the metrics with descriptions.
func (statusMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of the status. If the database does not answer, reeltally_database_up is 0. The metrics of the status are then
// missing, unless the Monitor has an earlier status in its cache.
func (m statusMetrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	var reads sync.WaitGroup // all reads run at the same time, so that together they take at most responseTimeout
	reads.Go(func() { gauge(upDesc, m.databaseUp()) })
	reads.Go(func() { m.collectReplicaMetrics(out) })
	ctx, cancel := context.WithTimeout(context.Background(), responseTimeout)
	defer cancel()
	s, err := m.status.result(ctx)
	reads.Wait()
	if err != nil {
		m.logger.Error("status could not be read", "error", err)
		return
	}
	gauge(aliveDesc, float64(s.Collectors))
	if w := s.Webhooks; w != nil {
		gauge(webhooksDesc, float64(w.Enabled))
		gauge(hooksOrgDesc, float64(w.Organisations))
		gauge(deadDesc, float64(w.Unreachable))
		gauge(deadOrgDesc, float64(w.UnreachableOrganisations))
		gauge(delayDesc, w.DelaySeconds)
	}
	if s.LastBackup != nil {
		gauge(backupDesc, float64(s.LastBackup.Unix()))
	}
	for _, q := range s.Queue {
		for state, n := range q.Targets {
			gauge(targetsDesc, float64(n), q.Platform, string(q.Kind), q.Lane, state)
		}
		gauge(dueDesc, float64(q.Due), q.Platform, string(q.Kind), q.Lane)
		gauge(failingDesc, float64(q.Failing), q.Platform, string(q.Kind), q.Lane)
		gauge(oldestDesc, valueOrZero(q.OldestDueSeconds), q.Platform, string(q.Kind), q.Lane)
	}
	for _, f := range s.Freshness {
		gauge(neverDesc, float64(f.NeverFetched), f.Platform, string(f.Kind))
		for _, age := range queue.FreshWithin {
			gauge(withinDesc, float64(f.Within[ageName(age)]), f.Platform, string(f.Kind), formatSeconds(age))
		}
	}
	for name, p := range s.pauses {
		source, budget, _ := strings.Cut(name, "/")
		gauge(pausedDesc, float64(p.Until.Unix()), source, budget, p.Class)
	}
	for _, source := range s.Sources {
		for _, b := range source.Budgets {
			gauge(usedDesc, float64(b.Used), source.Source, b.Budget)
			if b.Limit != nil {
				gauge(limitDesc, float64(*b.Limit), source.Source, b.Budget)
			}
			if !b.ResetsAt.IsZero() {
				gauge(resetsDesc, float64(b.ResetsAt.Unix()), source.Source, b.Budget)
			}
		}
	}
}

// collectReplicaMetrics sends the metrics of the database replica. It sends none if there is no replica.
func (m *Monitor) collectReplicaMetrics(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), responseTimeout)
	defer cancel()
	s, ok := m.store.Replica(ctx)
	if !ok {
		return
	}
	for result, n := range map[string]int64{"answered": s.Answered, "behind": s.Behind, "failed": s.Failed} {
		out <- prometheus.MustNewConstMetric(readsDesc, prometheus.CounterValue, float64(n), result)
	}
	up := 0.
	if s.Up {
		up = 1
		out <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, s.Lag.Seconds())
	}
	out <- prometheus.MustNewConstMetric(replicaDesc, prometheus.GaugeValue, up)
}

// databaseUp returns 1 if the database answers a read within responseTimeout, else 0.
func (m *Monitor) databaseUp() float64 {
	ctx, cancel := context.WithTimeout(context.Background(), responseTimeout)
	defer cancel()
	if m.store.Ready(ctx) != nil {
		return 0
	}
	return 1
}

// formatSeconds formats a duration as a number of whole seconds, rounded down.
func formatSeconds(d time.Duration) string { return strconv.FormatInt(int64(d.Seconds()), 10) }

// valueOrZero returns the value to which v points, or 0 if v is nil.
func valueOrZero(v *float64) float64 { return *cmp.Or(v, new(0.0)) }
