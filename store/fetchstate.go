package store

import (
	"cmp"
	"fmt"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// FetchStatus says whether a video or account can be fetched.
type FetchStatus = queue.FetchStatus

// FetchState is the fetch status of an organisation's video or account. It is reset when the organisation
// begins to track the video or account.
type FetchState struct {
	FetchStatus   FetchStatus // "" for an untracked account to which videos are linked
	FetchReason   string      // the stored reason for the status; if it is "", FetchDetail uses the default reason for the status
	LastAttemptAt *db.Instant // time of the last request to a source; reset to nil when tracking begins
	NextFetchAt   *db.Instant // when the next fetch is due; nil if no fetch is planned
	HasNumbers    bool        `gorm:"-"` // true if numbers of the video or account are stored; set by setStatusAt
	isDue         bool        // true if NextFetchAt is in the past; set by setStatusAt
}

// setStatusAt replaces the stored status by the status that the video or account has now. If the next fetch is late, the new status can be "delayed".
// It also sets isDue and HasNumbers. lastFetch is the time of the last successful fetch; nil if no numbers are stored.
func (s *FetchState) setStatusAt(now db.Instant, lastFetch *db.Instant) {
	s.HasNumbers = lastFetch != nil
	s.isDue = s.NextFetchAt != nil && *s.NextFetchAt < now
	if status := queue.StatusOf(s.FetchStatus, s.NextFetchAt, now); status != s.FetchStatus {
		s.FetchStatus, s.FetchReason = status, ""
	}
}

// ApplyChange updates the state with a fetch at fetchedAt, unless the state has a later attempt. hasNumbers is true if the organisation has numbers of the
// video or account. nextAt is when the target is due next. It is used only if c.NextAt is 0.
func (s *FetchState) ApplyChange(c queue.FetchChange, hasNumbers bool, fetchedAt, nextAt db.Instant) {
	if s.LastAttemptAt != nil && *s.LastAttemptAt > fetchedAt {
		return
	}
	answered := queue.FetchPending
	if hasNumbers {
		answered = queue.FetchOK
	}
	switch {
	case c.Status == queue.FetchOK, c.Status == "" && c.Attempted && s.FetchStatus == queue.FetchDelayed:
		s.FetchStatus, s.FetchReason = answered, c.Reason
	case c.Status == queue.FetchDelayed && s.FetchStatus != queue.FetchOK && s.FetchStatus != queue.FetchPending && s.FetchStatus != queue.FetchDelayed:
		// Keep the stored status and reason. They say why there are no new numbers, for example that the video is private. The status "delayed" would
		// say nothing about that.
	case c.Status != "":
		s.FetchStatus, s.FetchReason = c.Status, c.Reason
	case c.Attempted && (s.FetchStatus == queue.FetchOK || s.FetchStatus == queue.FetchPending):
		s.FetchReason = c.Reason
	}
	next := cmp.Or(c.NextAt, nextAt)
	if s.NextFetchAt = &next; c.Attempted {
		s.LastAttemptAt = &fetchedAt
	}
}

// setPendingStatus adds the fetch state to the columns of an UPDATE that starts tracking, and
// returns all columns. The video or account must not be in the queue yet.
func setPendingStatus(columns map[string]any) map[string]any {
	columns["fetch_status"], columns["fetch_reason"], columns["last_attempt_at"], columns["next_fetch_at"] = queue.FetchPending, "", nil, nil
	return columns
}

// setStoppedStatus adds the fetch state to the columns of an UPDATE that stops the tracking of a video or
// account. It returns all columns.
func setStoppedStatus(columns map[string]any) map[string]any {
	columns["fetch_status"], columns["fetch_reason"], columns["next_fetch_at"] = queue.FetchStopped, "", nil
	return columns
}

// defaultReasons has the reason of each status for which no reason is stored. %s stands for "video" or "account".
var defaultReasons = map[FetchStatus]string{
	queue.FetchPending:     "The %s has not been fetched since tracking began",
	queue.FetchDelayed:     "No collector has fetched the %s in time",
	queue.FetchFailing:     "The last attempts to fetch the %s failed",
	queue.FetchPrivate:     "The platform says that the %s is private",
	queue.FetchRestricted:  "The platform shows the %s only to viewers of certain ages or regions",
	queue.FetchGone:        "The platform says that the %s does not exist",
	queue.FetchUnsupported: "No configured source can fetch the %s",
	queue.FetchStopped:     "The organisation stopped tracking the %s",
}

// notQueued is the reason of a pending video or account that is not in the queue.
const notQueued = "The %s is saved but not fetched, because the organisation has no active subscription. It is fetched when a subscription begins"

// olderNumbersText is added to the reason of a pending video or account whose numbers are stored, for example because it was stopped and is tracked again.
const olderNumbersText = ", so its numbers are older"

// noCollectorText is added to the reason of a video or account that waits for a fetch while no collector is running.
const noCollectorText = ", and no collector is running"

// FetchDetail returns one sentence that explains the status to people, or nil. The kind is "video" or
// "account". The parameter noCollector is true if no collector is running. FetchDetail must be called only for a state that a method of Org has read.
func (s *FetchState) FetchDetail(kind string, noCollector bool) *string {
	reason := s.fetchReason(kind, noCollector)
	if reason == "" || s.NextFetchAt == nil {
		return s.FetchDetailWithoutTime(kind, noCollector)
	}
	// This sentence must be true before and after the due time, because no field of Version changes at this time, except Version.Due for a first fetch.
	format := "%s; the next fetch is due from %s UTC on."
	switch waits := s.FetchReason == ""; {
	case waits && s.FetchStatus == queue.FetchPending && !s.isDue:
		format = "%s; it is due on %s UTC."
	case waits && s.FetchStatus == queue.FetchPending && !noCollector:
		format = "%s; it has been due since %s UTC and waits for a collector, or for a source that is paused."
	case waits && (s.FetchStatus == queue.FetchPending || s.FetchStatus == queue.FetchDelayed):
		format = "%s; it has been due since %s UTC."
	}
	return new(fmt.Sprintf(format, reason, s.NextFetchAt.Time().UTC().Format("2006-01-02 15:04")))
}

// FetchDetailWithoutTime returns the same sentence as FetchDetail, but without the time of the next fetch.
func (s *FetchState) FetchDetailWithoutTime(kind string, noCollector bool) *string {
	reason := s.fetchReason(kind, noCollector)
	if reason == "" {
		return nil
	}
	return new(reason + ".")
}

// fetchReason returns the stored reason for the status, or the default reason. It returns "" if the status needs no explanation.
// If noCollector is true, the default reasons of videos and accounts that wait for a fetch also say that no collector is running.
func (s *FetchState) fetchReason(kind string, noCollector bool) string {
	if s.FetchReason != "" {
		return s.FetchReason
	}
	known := defaultReasons[s.FetchStatus]
	switch {
	case s.FetchStatus == queue.FetchPending && s.NextFetchAt == nil:
		known = notQueued
	case s.FetchStatus == queue.FetchPending && s.HasNumbers:
		known += olderNumbersText
		if noCollector {
			known += noCollectorText
		}
	case noCollector && (s.FetchStatus == queue.FetchPending || s.FetchStatus == queue.FetchDelayed):
		known += noCollectorText
	}
	if known == "" {
		return ""
	}
	return fmt.Sprintf(known, kind)
}

// isStopped returns true if the status is that of a video or account whose tracking was stopped.
func isStopped(status *FetchStatus) bool { return status != nil && *status == queue.FetchStopped }

// filterByStatus adds a condition to a query: the row of the table must have the given fetch status at the time now.
func filterByStatus(q *gorm.DB, table string, status FetchStatus, now db.Instant) *gorm.DB {
	late := lateCutoff(now)
	switch status {
	case queue.FetchDelayed:
		return q.Where("("+table+".fetch_status = ? OR ("+table+".fetch_status IN ? AND "+table+".next_fetch_at < ?))",
			queue.FetchDelayed, queue.DelayableStatuses, late)
	case queue.FetchOK, queue.FetchPending:
		return q.Where(table+".fetch_status = ? AND ("+table+".next_fetch_at IS NULL OR "+table+".next_fetch_at >= ?)", status, late)
	default:
		return q.Where(table+".fetch_status = ?", status)
	}
}

// statusSQL is a SQL expression for the fetch status of a row. Its parameters are
// queue.DelayableStatuses, the result of lateCutoff, and queue.FetchDelayed.
const statusSQL = "CASE WHEN fetch_status IN ? AND next_fetch_at < ? THEN ? ELSE fetch_status END"

// lateCutoff returns now minus queue.DelayedAfter. A fetch is late if it was due before this time and has not run yet.
func lateCutoff(now db.Instant) db.Instant { return now.Add(-queue.DelayedAfter) }
