package queue

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// FetchStatus says whether a video or account can be fetched.
type FetchStatus string

// The fetch statuses.
const (
	FetchPending     FetchStatus = "pending"     // no fetch has succeeded since tracking began
	FetchOK          FetchStatus = "ok"          // the last fetch succeeded
	FetchDelayed     FetchStatus = "delayed"     // the next fetch has been due for longer than DelayedAfter
	FetchFailing     FetchStatus = "failing"     // at least FailingAfter consecutive attempts failed
	FetchPrivate     FetchStatus = "private"     // a source says that the video or account is private
	FetchRestricted  FetchStatus = "restricted"  // a source refuses the video or account, because only viewers of certain ages or regions may see it
	FetchGone        FetchStatus = "gone"        // several consecutive answers of sources said that the video or account does not exist
	FetchUnsupported FetchStatus = "unsupported" // no configured source can fetch the video or account
	FetchStopped     FetchStatus = "stopped"     // the organisation stopped tracking the video or account
)

// FetchStatuses lists all fetch statuses.
var FetchStatuses = []FetchStatus{FetchPending, FetchOK, FetchDelayed, FetchFailing, FetchPrivate, FetchRestricted, FetchGone,
	FetchUnsupported, FetchStopped}

const (
	// DelayedAfter is how long a fetch may be due before the video or account counts as delayed.
	DelayedAfter = time.Hour
	// FailingAfter is the number of consecutive failed attempts after which a video or account counts as failing. One failed attempt is common
	// and is repeated within seconds.
	FailingAfter = 2
)

// DelayableStatuses has the stored statuses that StatusOf can replace by FetchDelayed. It does so if a fetch
// has been due for longer than DelayedAfter.
var DelayableStatuses = []FetchStatus{FetchPending, FetchOK}

// FetchChange is the change of the fetch status that follows from one outcome.
type FetchChange struct {
	// Status is the new status, or "" if the status does not change. If it is FetchOK, an organisation without
	// counts of the video or account gets FetchPending instead.
	Status FetchStatus
	// Reason is the start of a sentence that explains the status. It contains no credentials. If Status
	// is "", Reason is stored only in rows whose status is FetchPending or FetchOK.
	Reason string
	// Attempted is true if a source was asked.
	Attempted bool
	// NextAt is when the next fetch is expected. If NextAt is 0, the due time of the target is used instead.
	NextAt db.Instant
}

// statementsForNextFetch returns statements that store the next fetch times of videos and accounts.
// An unsupported video or account gets FetchUnsupported and the reason instead.
func statementsForNextFetch(tx *gorm.DB, org uuid.UUID, entries []Entry) (writes []db.Write) {
	for _, of := range []struct {
		kind  Kind
		table string
	}{{KindVideo, "videos"}, {KindAccount, "accounts"}} {
		var rows [][]any
		for _, e := range entries {
			if e.Kind == of.kind && !e.Saved {
				rows = append(rows, []any{org, e.Subject, e.NextAt, e.Unsupported})
			}
		}
		if len(rows) == 0 {
			continue
		}
		list := db.OrgRows{Name: "u", Columns: []string{"organisation_id uuid", "id uuid", "next_at bigint", "unsupported text"}, Rows: rows}
		writes = append(writes, list.StatementsForExec(tx, strings.ReplaceAll(`UPDATE {table} SET next_fetch_at = CASE WHEN u.unsupported = '' THEN u.next_at END,
  fetch_status = CASE WHEN u.unsupported = '' THEN {table}.fetch_status ELSE ? END,
  fetch_reason = CASE WHEN u.unsupported = '' THEN {table}.fetch_reason ELSE u.unsupported END
 FROM u WHERE {table}.organisation_id = {org} AND {table}.id = u.id`, "{table}", of.table), FetchUnsupported)...)
	}
	return writes
}

// StatusOf returns the stored status, or FetchDelayed for a late fetch: see DelayableStatuses. If
// no fetch is scheduled, nextAt is nil.
func StatusOf(stored FetchStatus, nextAt *db.Instant, now db.Instant) FetchStatus {
	if nextAt != nil && *nextAt < now.Add(-DelayedAfter) && slices.Contains(DelayableStatuses, stored) {
		return FetchDelayed
	}
	return stored
}
