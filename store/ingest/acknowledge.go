package ingest

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// maxInteractiveWait limits how long a failed target waits in the interactive lane. If its next
// attempt is later, the target returns to its base lane.
const maxInteractiveWait = 5 * time.Minute

// acknowledgeTargets ends the leases of the targets and stores their next due times. A target that
// was requested after its claim is due again immediately, with the state that the request gave to the target: see queue.Enqueue.
func acknowledgeTargets(tx *gorm.DB, c queue.Claim, now, fetchedAt db.Instant, outcomes []Outcome) error {
	sorted := slices.SortedFunc(slices.Values(outcomes), func(a, b Outcome) int { return a.Target.Key().Compare(b.Target.Key()) })
	turns, err := reserveInteractiveTurns(tx, now, sorted)
	if err != nil {
		return err
	}
	rows := make([][]any, len(sorted))
	for i, o := range sorted {
		var fetched, details *db.Instant
		var counts db.Counts
		handle := o.Handle
		if o.Facts != nil {
			db.Assign(&handle, o.Facts.Username)
			if o.hasCounts() {
				fetched, counts = &fetchedAt, o.Facts.reportedCounts()
			}
			if o.Details {
				details = &fetchedAt
			}
		}
		if o.Account != nil { // for an account, the number of followers is stored in the column "views"
			fetched, counts.Views = &fetchedAt, o.Account.Followers
		}
		rows[i] = slices.Concat([]any{
			queue.Bucket, o.Target.Platform, o.Target.Kind, o.Target.ExternalID, o.Target.RequestedAt, o.NextAt,
			o.Attempts, o.RefusedAs, o.Refusals, o.State, o.Target.State != queue.StateActive, o.Detail, o.Suspect, fetched, details,
		}, counts.Values(), []any{
			o.Pace, handle, o.Route, o.Answers, o.Onward, turns[i], o.targetStatus(fetched != nil), c.Token,
		})
	}
	list, args := db.WithRows(tx, "u", slices.Concat([]string{ // each line has the columns of the values in the same line above
		"bucket smallint", "source text", "kind text", "external_id text", "requested_at bigint", "next_at bigint",
		"attempts integer", "refused_as text", "refusals integer", "state text", "was_inactive boolean", "detail text", "suspect text", "fetched_at bigint", "details_at bigint",
	}, db.MetricDefinitions(""), []string{
		"pace integer", "handle text", "route text", "answers text", "onward boolean", "turn bigint", "status text", "token uuid",
	}), rows)
	// The bucket and the token of the claim are repeated in each row of the list u. If they were parameters of
	// the statement, PostgreSQL and SQLite would choose slow query plans.
	// requested is an SQL condition: the target was requested since its claim.
	const requested = "fetch_targets.requested_at > u.requested_at"
	// restarted is an SQL condition: a request has made the target active during the fetch, and the fetch gave no numbers. The target must then stay
	// active.
	const restarted = "(" + requested + " AND u.fetched_at IS NULL)"
	// rerouted is an SQL condition: the request has also set the route of the target to the first source.
	const rerouted = "(" + restarted + " AND u.was_inactive)"
	err = tx.Exec(list+`UPDATE fetch_targets SET claimed_by = NULL, token = NULL, pace = u.pace, detail = u.detail, suspect = u.suspect,
  attempts = CASE WHEN `+restarted+` THEN fetch_targets.attempts ELSE u.attempts END,
  refused_as = CASE WHEN `+restarted+` THEN fetch_targets.refused_as ELSE u.refused_as END,
  refusals = CASE WHEN `+restarted+` THEN fetch_targets.refusals ELSE u.refusals END,
  state = CASE WHEN `+restarted+` THEN fetch_targets.state ELSE u.state END,
  status = CASE WHEN u.status = '' THEN fetch_targets.status ELSE u.status END,
  fetched_at = COALESCE(u.fetched_at, fetch_targets.fetched_at),
  details_at = CASE WHEN `+requested+` THEN fetch_targets.details_at ELSE COALESCE(u.details_at, fetch_targets.details_at) END,
  `+db.MetricColumns("{m} = COALESCE(u.{m}, fetch_targets.{m})")+`,
  handle = CASE WHEN u.handle = '' THEN fetch_targets.handle ELSE u.handle END,
  route = CASE WHEN u.route = '' OR `+rerouted+` THEN fetch_targets.route ELSE u.route END,
  answers = CASE WHEN `+rerouted+` THEN fetch_targets.answers ELSE u.answers END,
  turn = CASE WHEN u.turn > 0 THEN u.turn ELSE fetch_targets.turn END,
  next_at = CASE WHEN `+requested+` THEN ? ELSE u.next_at END,
  lane = CASE WHEN NOT (`+requested+`) AND NOT u.onward AND (u.fetched_at IS NOT NULL OR u.next_at > ?) THEN fetch_targets.base_lane ELSE fetch_targets.lane END
 FROM u WHERE `+queue.SameTarget("fetch_targets", "u")+` AND fetch_targets.token = u.token`, append(args, now, now.Add(maxInteractiveWait))...).Error
	if err != nil {
		return err
	}
	return saveTriedHandles(tx, now, sorted)
}

// targetStatus returns the new fetch status of the target, or "" if the status does not change. hasCounts is true if the outcome has counts.
func (o *Outcome) targetStatus(hasCounts bool) queue.FetchStatus {
	c := o.statusChange()
	switch {
	case c == nil:
		return ""
	case c.Status == queue.FetchOK && !hasCounts && o.Target.FetchedAt == nil:
		return queue.FetchPending
	}
	return c.Status
}

// reserveInteractiveTurns returns the new turn of each outcome. The turn is 0 unless the fetch was requested in
// the interactive lane and continues with another source.
func reserveInteractiveTurns(tx *gorm.DB, now db.Instant, outcomes []Outcome) ([]int64, error) {
	var onward []queue.Target
	for _, o := range outcomes {
		if o.Onward && o.Target.Lane == queue.LaneInteractive && o.Target.AskedBy != nil {
			onward = append(onward, o.Target)
		}
	}
	// The organisation in Target.AskedBy can have been deleted since the claim.
	askedBy, err := queue.LockAskedBy(tx, onward)
	if err != nil {
		return nil, err
	}
	keys := make([]queue.TurnKey, len(outcomes))
	for i, o := range outcomes {
		keys[i] = queue.TurnKey{Route: o.Route, Organisation: askedBy[o.Target.Key()]}
	}
	return queue.TakeTurns(tx, keys, now)
}

// saveTriedHandles stores the present time in each subscription whose link has one of the handles in Outcome.TriedHandles. The next fetches then try
// other handles first.
func saveTriedHandles(tx *gorm.DB, now db.Instant, outcomes []Outcome) error {
	var tried [][]any
	for _, o := range outcomes {
		for _, handle := range o.TriedHandles {
			tried = append(tried, []any{queue.Bucket, o.Target.Platform, o.Target.Kind, o.Target.ExternalID, handle})
		}
	}
	if len(tried) == 0 {
		return nil
	}
	list, args := db.WithRows(tx, "tried", []string{"bucket smallint", "source text", "kind text", "external_id text", "handle text"}, tried)
	return tx.Exec(list+`UPDATE fetch_subscriptions SET handle_at = ? FROM tried WHERE `+queue.SameTarget("fetch_subscriptions", "tried")+`
 AND fetch_subscriptions.handle = tried.handle`, append(args, now)...).Error
}
