package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// This file reads the statistics of the queue for operators. The statistics contain no names of organisations, videos or accounts. Only OrganisationLoads
// has ids of organisations.

// FreshWithin has durations in rising order. For each duration, QueueCounts.Fresh has the number of targets that were fetched within this
// duration before now.
var FreshWithin = [...]time.Duration{time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 36 * time.Hour,
	2 * 24 * time.Hour, 7 * 24 * time.Hour}

// CatchUpWindow is the time for which the rates of fetched targets and of targets that become due are measured. It is the first duration in FreshWithin.
const CatchUpWindow = time.Hour

// FirstFetchLimit is how long a new target may wait for its first fetch. The first fetch is scheduled within a day (see SlotAfter), and
// FirstFetchLimit allows half a day more.
const FirstFetchLimit = 36 * time.Hour

// QueueCounts counts the targets of one platform, kind, lane and state.
type QueueCounts struct {
	Platform     link.Platform
	Kind         Kind
	Lane         Lane
	State        string
	Targets      int64
	Failing      int64       // number of active targets whose last fetch failed; 0 for the other states, although their targets still have the number of failed attempts
	Due          int64       // number of targets that are due
	DueSoon      int64       // number of targets that become due within CatchUpWindow
	OldestDue    *db.Instant // due time of the target that has been due longest; nil if no target is due
	NeverFetched int64       // number of targets that were never fetched
	Overdue      int64       // number of targets that have waited for their first fetch for longer than FirstFetchLimit
	// Fresh has one number for each duration in FreshWithin. This is the number of targets whose last successful fetch was not longer ago
	// than the duration.
	Fresh [len(FreshWithin)]int64
}

// QuotaUse says how many units of a source's budget are reserved or spent in one window of time.
type QuotaUse struct {
	Source string // the name of the source, a slash, and the name of the budget
	Window string `gorm:"column:win"`
	Used   int64
}

// StatusCount is the number of targets of one platform and kind with one fetch status. StoppedCounts sets Platform to "" and Status to FetchStopped.
type StatusCount struct {
	Platform link.Platform `gorm:"column:source"`
	Kind     Kind
	Status   FetchStatus
	Targets  int64
}

// CollectingState is the state of the queue and of the collectors at one moment.
type CollectingState struct {
	At db.Instant
	// Queue has one entry for each combination of platform, kind, lane and state that occurs among the targets.
	Queue []QueueCounts
	// Pauses has the pauses of sources and budgets by name. A pause that is over is still listed
	// until a call to the source succeeds.
	Pauses map[string]Pause
	Quotas []QuotaUse
	// Statuses counts the targets by fetch status. Stopped videos and accounts have no target: see StoppedCounts.
	Statuses []StatusCount
	// Collectors has the time of the last heartbeat of each collector, the latest first.
	Collectors []db.Instant
	// Sources are the sources of the running collectors.
	Sources []Source
}

// CollectingState reads the state of the queue and of the collectors. It reads the whole queue, so
// callers should keep the result for a while.
func (s *Queue) CollectingState(ctx context.Context) (CollectingState, error) {
	c := CollectingState{At: s.db.Now()}
	var err error
	// For a million targets, this takes some tenths of a second.
	if c.Queue, c.Statuses, err = countTargets(s.db.Read(ctx), c.At); err != nil {
		return c, db.Translate(err)
	}
	if c.Pauses, err = s.Pauses(ctx); err != nil {
		return c, err
	}
	if err := s.db.Read(ctx).Raw(`SELECT source, win, used FROM quota_windows ORDER BY source, win`).Scan(&c.Quotas).Error; err != nil {
		return c, db.Translate(err)
	}
	if c.Sources, err = s.publishedSources(ctx); err != nil {
		return c, db.Translate(err)
	}
	err = s.db.Read(ctx).Raw(`SELECT seen_at FROM collectors ORDER BY seen_at DESC`).Scan(&c.Collectors).Error
	return c, db.Translate(err)
}

// targetStatusSQL is a SQL expression for the fetch status of a target. Its parameters are DelayableStatuses,
// the present time minus DelayedAfter, and FetchDelayed.
const targetStatusSQL = "CASE WHEN status = 'pending' AND route = '' AND EXISTS (SELECT 1 FROM fetch_routes) THEN 'unsupported' WHEN status IN ? AND next_at < ? THEN ? ELSE status END"

// StoppedCounts returns two counts over all organisations: of the videos and of the accounts whose tracking was stopped. Both have the status FetchStopped
// and the platform "". A count of 0 is left out. StoppedCounts adds up the stored totals of the organisations, so it reads no videos. On Citus, it fails if a worker does not answer.
func (s *Queue) StoppedCounts(ctx context.Context) (counts []StatusCount, err error) {
	var organisations []uuid.UUID
	if err := s.db.Read(ctx).Raw(`SELECT id FROM organisations ORDER BY id`).Scan(&organisations).Error; err != nil {
		return nil, db.Translate(err)
	}
	type removed struct{ Videos, Accounts int64 }
	sums, err := db.FindRows[removed](s.db.Read(ctx), db.Orgs(organisations), `SELECT COALESCE(SUM(t.videos_removed), 0) AS videos, COALESCE(SUM(t.accounts_removed), 0) AS accounts
 FROM wanted CROSS JOIN organisation_totals t WHERE t.organisation_id = {org}`)
	if err != nil {
		return nil, db.Translate(err)
	}
	var stopped removed
	for _, sum := range sums {
		stopped.Videos, stopped.Accounts = stopped.Videos+sum.Videos, stopped.Accounts+sum.Accounts
	}
	if stopped.Videos > 0 {
		counts = append(counts, StatusCount{Kind: KindVideo, Status: FetchStopped, Targets: stopped.Videos})
	}
	if stopped.Accounts > 0 {
		counts = append(counts, StatusCount{Kind: KindAccount, Status: FetchStopped, Targets: stopped.Accounts})
	}
	return counts, nil
}

// OrganisationLoad counts the targets of one organisation that one source fetches. A target that several organisations track is counted for each of
// them.
type OrganisationLoad struct {
	OrganisationID uuid.UUID
	Source         string `gorm:"column:route"` // name of the source that is called next for the targets; "" if no source is known
	Targets        int64
	Due            int64 // number of targets that are due
	Waiting        int64 // number of due targets in LaneInteractive: new or refreshed
}

// OrganisationLoads counts the targets of all organisations by source, sorted by organisation and source. It reads the whole queue.
func (s *Queue) OrganisationLoads(ctx context.Context) ([]OrganisationLoad, error) {
	now := s.db.Now()
	var loads []OrganisationLoad
	err := s.db.Read(ctx).Raw(`SELECT s.organisation_id, t.route, COUNT(*) AS targets, COUNT(CASE WHEN t.next_at <= ? THEN 1 END) AS due,
 COUNT(CASE WHEN t.next_at <= ? AND t.lane = ? THEN 1 END) AS waiting
 FROM fetch_subscriptions s JOIN fetch_targets t ON `+SameTarget("t", "s")+`
 GROUP BY s.organisation_id, t.route ORDER BY s.organisation_id, t.route`, now, now, LaneInteractive).Scan(&loads).Error
	return loads, db.Translate(err)
}

// TargetStatus is the fetch state of one target, for operators.
type TargetStatus struct {
	Platform  link.Platform `gorm:"column:source"`
	Kind      Kind
	Link      string
	Status    FetchStatus
	Attempts  int
	FetchedAt *db.Instant
	NextAt    db.Instant
	Detail    string // why the last attempt gave no numbers; it never contains a credential
}

// TargetsWithStatus returns at most "limit" targets with the given fetch status, ordered by
// platform, kind and the platform's id. It may read the whole queue.
func (s *Queue) TargetsWithStatus(ctx context.Context, status FetchStatus, limit int) ([]TargetStatus, error) {
	now := s.db.Now()
	found := []TargetStatus{}
	err := s.db.Read(ctx).Raw(`SELECT source, kind, link, attempts, fetched_at, next_at, detail FROM fetch_targets
 WHERE bucket = ? AND `+targetStatusSQL+` = ? ORDER BY source, kind, external_id LIMIT ?`,
		Bucket, DelayableStatuses, now.Add(-DelayedAfter), FetchDelayed, status, limit).Scan(&found).Error
	for i := range found {
		found[i].Status = status
	}
	return found, db.Translate(err)
}

// countTargets counts the targets by platform, kind, lane and state, and by platform, kind and
// fetch status. Both results are sorted by these columns.
func countTargets(tx *gorm.DB, now db.Instant) (counts []QueueCounts, statuses []StatusCount, err error) {
	query := strings.Builder{}
	query.WriteString(`SELECT source, kind, lane, state, status, COUNT(*), COUNT(CASE WHEN attempts > 0 AND state = 'active' THEN 1 END), COUNT(CASE WHEN next_at <= ? THEN 1 END), COUNT(CASE WHEN next_at > ? AND next_at <= ? THEN 1 END),
 MIN(CASE WHEN next_at <= ? THEN next_at END), COUNT(CASE WHEN fetched_at IS NULL THEN 1 END),
 COUNT(CASE WHEN fetched_at IS NULL AND requested_at < ? THEN 1 END)`)
	args := []any{now, now, now.Add(CatchUpWindow), now, now.Add(-FirstFetchLimit)}
	for _, status := range computedStatuses {
		query.WriteString(`, COUNT(CASE WHEN ` + targetStatusSQL + ` = ? THEN 1 END)`)
		args = append(args, DelayableStatuses, now.Add(-DelayedAfter), FetchDelayed, status)
	}
	for _, age := range FreshWithin {
		query.WriteString(`, COUNT(CASE WHEN fetched_at >= ? THEN 1 END)`)
		args = append(args, now.Add(-age))
	}
	// SQLite reads only the index fetch_targets_counts. It does not sort, because the index has
	// this order.
	query.WriteString(` FROM fetch_targets WHERE bucket = ? GROUP BY source, kind, lane, state, status ORDER BY source, kind, lane, state, status`)
	rows, err := tx.Raw(query.String(), append(args, Bucket)...).Rows()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = rows.Close() }()
	byStatus := map[StatusCount]int64{} // the key has the platform, the kind and the status, and its field Targets is 0; the value is the number of such targets
	for rows.Next() {
		var c QueueCounts
		var stored FetchStatus
		var computed [len(computedStatuses)]int64
		into := []any{&c.Platform, &c.Kind, &c.Lane, &c.State, &stored, &c.Targets, &c.Failing, &c.Due, &c.DueSoon, &c.OldestDue, &c.NeverFetched, &c.Overdue}
		for i := range computed {
			into = append(into, &computed[i])
		}
		for i := range c.Fresh {
			into = append(into, &c.Fresh[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, nil, err
		}
		left := c.Targets
		for i, n := range computed {
			byStatus[StatusCount{Platform: c.Platform, Kind: c.Kind, Status: computedStatuses[i]}] += n
			left -= n
		}
		byStatus[StatusCount{Platform: c.Platform, Kind: c.Kind, Status: stored}] += left
		if n := len(counts); n > 0 && counts[n-1].hasSameGroupAs(&c) {
			counts[n-1].addCounts(&c)
			continue
		}
		counts = append(counts, c)
	}
	for s, n := range byStatus {
		if s.Targets = n; n > 0 {
			statuses = append(statuses, s)
		}
	}
	slices.SortFunc(statuses, func(a, b StatusCount) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Status, b.Status))
	})
	return counts, statuses, rows.Err()
}

// computedStatuses are the fetch statuses that targetStatusSQL can return in place of the stored status of a target.
var computedStatuses = [...]FetchStatus{FetchUnsupported, FetchDelayed}

// hasSameGroupAs returns true if c and o have the same platform, kind, lane and state.
func (c *QueueCounts) hasSameGroupAs(o *QueueCounts) bool {
	return c.Platform == o.Platform && c.Kind == o.Kind && c.Lane == o.Lane && c.State == o.State
}

// addCounts adds the counts of o to the counts of c.
func (c *QueueCounts) addCounts(o *QueueCounts) {
	c.Targets, c.Failing, c.Due, c.DueSoon, c.NeverFetched, c.Overdue = c.Targets+o.Targets, c.Failing+o.Failing, c.Due+o.Due, c.DueSoon+o.DueSoon, c.NeverFetched+o.NeverFetched, c.Overdue+o.Overdue
	if c.OldestDue == nil || o.OldestDue != nil && *o.OldestDue < *c.OldestDue {
		c.OldestDue = o.OldestDue
	}
	for i, n := range o.Fresh {
		c.Fresh[i] += n
	}
}

// LastError returns the last error of any target of the platform p that is in StateParked or whose
// last fetch failed. Without such a target, it returns "".
func (s *Queue) LastError(ctx context.Context, p link.Platform) (detail string, err error) {
	// The query reads targets until it finds a failed target, so it is slow if few targets have failed.
	err = s.db.Read(ctx).Raw(`SELECT detail FROM fetch_targets
 WHERE bucket = ? AND source = ? AND (state = ? OR attempts > 0) AND detail <> '' LIMIT 1`, Bucket, p, StateParked).Scan(&detail).Error
	return detail, db.Translate(err)
}
