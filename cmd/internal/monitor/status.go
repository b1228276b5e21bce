// Package monitor reports to operators how well the collectors work. ReadStatus reads the state of the queue, the ages of the numbers, and the
// budgets and pauses of sources. Monitor serves this state at /status and /metrics. The server uses this package too, so it must not import the
// collector.
package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Status shows operators how well all collectors of a database work. Its JSON is the response of /status. Missing
// values are null.
type Status struct {
	// All times in a Status are in UTC.
	At         time.Time      `json:"at"`
	Collectors int            `json:"collectors"` // number of collectors that sent a heartbeat in the last ten seconds
	Queue      []QueueStatus  `json:"queue"`
	Freshness  []Freshness    `json:"freshness"`
	Platforms  []Platform     `json:"platforms"`
	Sources    []SourceStatus `json:"sources"`
	Statuses   []StatusCount  `json:"statuses"`
	// LastFetches counts the targets of each source by the result of their last fetch. It is absent if it was not read.
	LastFetches []queue.LastFetches `json:"last_fetches,omitzero"`
	Webhooks    *WebhookStatus      `json:"webhooks"`    // null if it could not be read
	LastBackup  *time.Time          `json:"last_backup"` // end of the last backup that `reeltally backup` wrote; null if none is known
	// Unknown lists the parts of the status that could not be read. It is absent if all parts were read.
	Unknown []UnknownPart `json:"unknown,omitempty"`

	pauses map[string]PauseStatus // current pauses of the sources of all collectors; the key is "SOURCE" or "SOURCE/BUDGET"
}

// UnknownPart is a part of the status that could not be read, and why.
type UnknownPart struct {
	Part   string `json:"part"` // "stopped" (the counts of the fetch status stopped), "webhooks" or "last_backup"
	Reason string `json:"reason"`
}

// WebhookStatus describes the enabled webhooks of all organisations: see store.WebhookStatus.
type WebhookStatus struct {
	Enabled                  int64   `json:"enabled"`
	Organisations            int64   `json:"organisations"`
	Unreachable              int64   `json:"unreachable"`
	UnreachableOrganisations int64   `json:"unreachable_organisations"`
	DelaySeconds             float64 `json:"delay_seconds"`
}

// QueueStatus counts the targets in the queue that have the same platform, kind and lane.
type QueueStatus struct {
	Platform         string           `json:"platform"`
	Kind             queue.Kind       `json:"kind"`               // video or account
	Lane             string           `json:"lane"`               // priority of the targets: interactive, premium, basic or free
	Targets          map[string]int64 `json:"targets"`            // number of targets by state: active, gone, parked (see Platform.Parked)
	Failing          int64            `json:"failing"`            // number of active targets whose last fetch failed
	Due              int64            `json:"due"`                // number of targets whose next fetch is due
	OldestDueSeconds *float64         `json:"oldest_due_seconds"` // seconds since the oldest due target became due; null if no target is due
}

// StatusCount is the number of videos or accounts that have the same platform and fetch status.
type StatusCount struct {
	// Platform is "" for videos and accounts whose tracking was stopped. They are counted for all platforms together.
	Platform string            `json:"platform"`
	Kind     queue.Kind        `json:"kind"`
	Status   store.FetchStatus `json:"status"`
	Targets  int64             `json:"targets"`
}

// Freshness says how old the numbers of active targets are. It covers the targets of one platform and kind.
type Freshness struct {
	Platform     string           `json:"platform"`
	Kind         queue.Kind       `json:"kind"`
	Targets      int64            `json:"targets"`
	NeverFetched int64            `json:"never_fetched"`
	Within       map[string]int64 `json:"within"` // the key is an age, such as "24h"; the value is the number of targets with counts not older than this age
	// P50, P95 and P99 are upper bounds, in seconds, for percentiles of the ages of the fetched targets. A bound is null if no target was fetched, or if
	// the bound is above the last age in queue.FreshWithin.
	P50 *float64 `json:"p50_seconds_at_most"`
	P95 *float64 `json:"p95_seconds_at_most"`
	P99 *float64 `json:"p99_seconds_at_most"`
}

// Platform counts how many targets of a platform have missing, old or recent numbers.
type Platform struct {
	Platform string `json:"platform"`
	Targets  int64  `json:"targets"`
	Gone     int64  `json:"gone"`
	Parked   int64  `json:"parked"`        // number of targets that are fetched only once a day or once a week: see the glossary
	Failing  int64  `json:"failing"`       // number of active targets whose last fetch failed
	Overdue  int64  `json:"never_fetched"` // number of targets requested more than 36 hours ago and never fetched
	Due      int64  `json:"due"`           // number of targets whose next fetch is due, without those that are gone
	Stale    int64  `json:"stale"`         // number of active targets whose numbers are older than 48 hours
	Fresh    int64  `json:"fresh"`         // number of targets fetched within the last 36 hours, without those that are gone
	// Backlog says how many fetches are late and when the collectors will have caught up. It is absent if no active target has been due for longer than
	// maxWait.
	Backlog string `json:"backlog,omitempty"`
}

// SourceStatus is the state of one source, such as "youtube": its results, its current pause, and its budgets.
type SourceStatus struct {
	Source string `json:"source"`
	// Results counts the results since the start of this process, by class, such as "ok". Only a Monitor sets it: in /status, it is empty if this process
	// is not a collector. In the Status that ReadStatus returns, it is null.
	Results map[string]int64 `json:"results"`
	Pause   *PauseStatus     `json:"pause"`
	Budgets []BudgetStatus   `json:"budgets"`
	// If the source answers that videos or accounts do not exist, and these answers are held back, HeldBack says why. Otherwise, it is absent.
	HeldBack string `json:"held_back,omitempty"`
}

// BudgetStatus says how much of a source's budget was used in the current time window, such as a day.
type BudgetStatus struct {
	Budget string `json:"budget"`
	Window string `json:"window"`
	Used   int64  `json:"used"`
	// Limit and Left are null if no limit is known.
	Limit    *int64       `json:"limit"`
	Left     *int64       `json:"left"`
	ResetsAt time.Time    `json:"resets_at"`
	Pause    *PauseStatus `json:"pause"`
}

// PauseStatus is the current pause of a source or budget. If a source is paused, it is not asked before the time Until. If a budget is paused,
// calls that spend units of it wait until then; other calls of the source continue. Class and Detail say why, such as a rate limit.
type PauseStatus struct {
	Until  time.Time `json:"until"`
	Class  string    `json:"class"`
	Detail string    `json:"detail"`
	InARow int       `json:"in_a_row"` // number of pauses of the source since its last successful call
	// Since is when the first of these pauses began. It is null if an older version of ReelTally stored the pause.
	Since *time.Time `json:"since"`
}

// ReadStatus reads the Status from the database. Status.Sources contains the sources that `describe` returns for the time of the status,
// followed by further sources that other running collectors use. If `describe` is nil, it contains only the sources of running collectors.
func ReadStatus(ctx context.Context, st *store.Store, describe func(time.Time) []queue.Source) (Status, error) {
	c, err := st.Queue.CollectingState(ctx)
	if err != nil {
		return Status{}, err
	}
	s := Status{At: c.At.Time(), Queue: queueStatus(c), Freshness: freshness(c), Platforms: platformCounts(c), Sources: []SourceStatus{}, Statuses: []StatusCount{}}
	isRead := func(part string, err error) bool {
		if err != nil {
			s.Unknown = append(s.Unknown, UnknownPart{part, err.Error()})
		}
		return err == nil
	}
	stopped, err := st.Queue.StoppedCounts(ctx)
	isRead("stopped", err)
	for _, n := range append(c.Statuses, stopped...) {
		s.Statuses = append(s.Statuses, StatusCount{Platform: string(n.Platform), Kind: n.Kind, Status: n.Status, Targets: n.Targets})
	}
	webhooks, err := st.WebhookStatus(ctx)
	if isRead("webhooks", err) {
		s.Webhooks = &WebhookStatus{Enabled: webhooks.Enabled, Organisations: webhooks.Organisations, Unreachable: webhooks.Unreachable,
			UnreachableOrganisations: webhooks.UnreachableOrganisations, DelaySeconds: webhooks.Delay.Seconds()}
	}
	s.LastBackup, err = st.LastBackup(ctx)
	isRead("last_backup", err)
	for _, seen := range c.Collectors {
		if c.At.Sub(seen) <= queue.RunningFor {
			s.Collectors++
		}
	}
	var sources []queue.Source
	if describe != nil {
		sources = describe(c.At.Time())
	}
	for _, other := range c.Sources {
		at := slices.IndexFunc(sources, func(source queue.Source) bool { return source.Name == other.Name })
		if at < 0 {
			sources = append(sources, other)
			continue
		}
		sources[at].HeldBack = other.HeldBack
	}
	for _, source := range sources {
		s.Sources = append(s.Sources, sourceStatus(c, source))
	}
	s.pauses = map[string]PauseStatus{}
	for name := range c.Pauses {
		if p := currentPause(c, name); p != nil {
			s.pauses[name] = *p
		}
	}
	return s, nil
}

// inMinutes formats a duration in minutes, rounded and at least one, for example as "2h5m".
func inMinutes(d time.Duration) string { return words.Duration(max(time.Minute, d.Round(time.Minute))) }

// queueStatus returns one QueueStatus for each platform, kind (video or account) and lane (priority). It adds up the counts of all states of targets,
// such as active and parked.
func queueStatus(c queue.CollectingState) []QueueStatus {
	out := []QueueStatus{}
	for _, q := range c.Queue {
		lane := QueueStatus{Platform: string(q.Platform), Kind: q.Kind, Lane: q.Lane.String(), Targets: map[string]int64{}}
		if n := len(out); n > 0 && out[n-1].Platform == lane.Platform && out[n-1].Kind == lane.Kind && out[n-1].Lane == lane.Lane {
			lane, out = out[n-1], out[:n-1]
		}
		lane.Targets[q.State] += q.Targets
		lane.Failing += q.Failing
		lane.Due += q.Due
		if q.OldestDue != nil {
			if overdue := c.At.Sub(*q.OldestDue).Seconds(); lane.OldestDueSeconds == nil || overdue > *lane.OldestDueSeconds {
				lane.OldestDueSeconds = &overdue
			}
		}
		out = append(out, lane)
	}
	return out
}

// freshness returns one Freshness for each platform and kind, over all lanes. It counts only active targets.
func freshness(c queue.CollectingState) []Freshness {
	out := []Freshness{}
	for _, q := range c.Queue {
		// Gone and parked targets are fetched rarely, so their numbers are expected to be old.
		if q.State != "active" {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Platform != string(q.Platform) || out[n-1].Kind != q.Kind {
			out = append(out, Freshness{Platform: string(q.Platform), Kind: q.Kind, Within: map[string]int64{}})
		}
		f := &out[len(out)-1]
		f.Targets += q.Targets
		f.NeverFetched += q.NeverFetched
		for i, age := range queue.FreshWithin {
			f.Within[ageName(age)] += q.Fresh[i]
		}
	}
	for i := range out {
		f := &out[i]
		f.P50, f.P95, f.P99 = f.percentile(0.5), f.percentile(0.95), f.percentile(0.99)
	}
	return out
}

// These variables are indexes in queue.FreshWithin, and therefore also in QueueCounts.Fresh.
var (
	freshIndex = slices.Index(queue.FreshWithin[:], queue.FirstFetchLimit) // 36 hours: a target is fresh if its last successful fetch was at most so long ago
	staleIndex = slices.Index(queue.FreshWithin[:], 48*time.Hour)          // 48 hours: a target is stale if its last successful fetch was longer ago
)

// platformCounts returns the counts for each platform. They include videos and accounts of all lanes (priorities).
func platformCounts(c queue.CollectingState) []Platform {
	out, active := []Platform{}, []backlog{}
	for _, q := range c.Queue {
		if n := len(out); n == 0 || out[n-1].Platform != string(q.Platform) {
			out, active = append(out, Platform{Platform: string(q.Platform)}), append(active, backlog{})
		}
		p := &out[len(out)-1]
		p.Targets += q.Targets
		p.Overdue += q.Overdue
		if q.State != "gone" {
			p.Fresh += q.Fresh[freshIndex]
			p.Due += q.Due
		}
		switch q.State {
		case "gone":
			p.Gone += q.Targets
		case "parked":
			p.Parked += q.Targets
		default:
			p.Failing += q.Failing
			p.Stale += q.Targets - q.NeverFetched - q.Fresh[staleIndex]
			b := &active[len(active)-1]
			b.due, b.dueSoon, b.fetched = b.due+q.Due, b.dueSoon+q.DueSoon, b.fetched+q.Fresh[0]
			if q.OldestDue != nil {
				b.longestWait = max(b.longestWait, c.At.Sub(*q.OldestDue))
			}
		}
	}
	for i, b := range active {
		out[i].Backlog = b.String()
	}
	return out
}

// maxWait is how long a target may be due before its platform has a backlog.
const maxWait = 10 * time.Minute

// backlog has the numbers of active targets of a platform that are due, that become due within queue.CatchUpWindow, and that were fetched successfully
// within queue.CatchUpWindow.
type backlog struct {
	due, dueSoon, fetched int64
	longestWait           time.Duration // how long the oldest due target has been due
}

// String describes the backlog in sentences for operators. It returns "" if no target has waited for longer than maxWait.
func (b backlog) String() string {
	if b.longestWait <= maxWait {
		return ""
	}
	end := "At this rate, the collectors do not catch up within a week."
	if windows := float64(b.due) / float64(b.fetched-b.dueSoon); b.fetched > b.dueSoon && windows < float64(7*24*time.Hour/queue.CatchUpWindow) {
		end = fmt.Sprintf("At this rate, the collectors catch up in about %s.", inMinutes(time.Duration(windows*float64(queue.CatchUpWindow))))
	}
	return fmt.Sprintf("%s fetches of videos and accounts are late, the first by %s. In the last hour, %s succeeded, and %s more become due in the next hour. %s",
		humanize.Comma(b.due), inMinutes(b.longestWait), humanize.Comma(b.fetched), humanize.Comma(b.dueSoon), end)
}

// percentile returns a number of seconds: at least the share p of the fetched targets were fetched within this
// time. For the 95th percentile, p is 0.95.
func (f *Freshness) percentile(p float64) *float64 {
	fetched := f.Targets - f.NeverFetched
	for _, age := range queue.FreshWithin {
		if fetched > 0 && float64(f.Within[ageName(age)]) >= p*float64(fetched) {
			return new(age.Seconds())
		}
	}
	// No target was fetched, or the percentile is above all ages in queue.FreshWithin.
	return nil
}

// ageName formats a number of whole hours, for example as "24h". The keys of Freshness.Within have this form.
func ageName(age time.Duration) string { return strings.TrimSuffix(age.String(), "0m0s") }

// sourceStatus returns the current pause of a source and how much of its budgets is used. It leaves the field Results empty: addResultCounts fills it
// later.
func sourceStatus(c queue.CollectingState, from queue.Source) SourceStatus {
	s := SourceStatus{Source: from.Name, Pause: currentPause(c, from.Name), Budgets: []BudgetStatus{}, HeldBack: from.HeldBack}
	for _, b := range from.Budgets {
		name := from.Name + "/" + b.Name
		budget := BudgetStatus{Budget: b.Name, Window: b.Window, ResetsAt: b.Ends, Pause: currentPause(c, name)}
		if i := slices.IndexFunc(c.Quotas, func(q queue.QuotaUse) bool { return q.Source == name && q.Window == budget.Window }); i >= 0 {
			budget.Used = c.Quotas[i].Used
		}
		if b.Limit > 0 {
			budget.Limit, budget.Left = new(b.Limit), new(max(0, b.Limit-budget.Used))
		}
		s.Budgets = append(s.Budgets, budget)
	}
	return s
}

// currentPause returns the current pause of a source or budget, or nil if it is not paused. The name of a budget is "SOURCE/BUDGET".
func currentPause(c queue.CollectingState, name string) *PauseStatus {
	p, known := c.Pauses[name]
	if !known || p.BlockedUntil <= c.At {
		return nil
	}
	var since *time.Time
	if p.Since != nil {
		since = new(p.Since.Time())
	}
	return &PauseStatus{Until: p.BlockedUntil.Time(), Class: p.Class, Detail: p.Detail, InARow: p.PausesSinceSuccess, Since: since}
}
