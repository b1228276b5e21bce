package queue

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Queue is the fetch queue. Its methods can be called concurrently.
type Queue struct {
	db       *db.DB
	observed observedHeartbeats // the heartbeats that Heartbeat has read
	exported observedHeartbeats // the heartbeats that OldestFetch has read
}

// New returns the queue of a database. Package store calls it; other packages use the field Store.Queue.
func New(d *db.DB) *Queue { return &Queue{db: d} }

// A target is due at its next_at. Claim sets next_at to the end of the lease, so a target that is
// never acknowledged becomes due again.

// Pace is how fast a target's counts change. It decides how often the target is fetched.
type Pace int

// The paces of targets. The interval of the lane and the call budgets also decide how often a target is fetched.
const (
	PaceSteady Pace = iota
	PaceFast        // new or changing fast: fetched several times a day if the lane has an interval of at most a day and the budgets suffice
	PaceSlow        // old and hardly changing: throttled first if a budget is short
)

// Kind says whether a target is a video or an account.
type Kind string

// The kinds of target.
const (
	KindVideo   Kind = "video"
	KindAccount Kind = "account"
)

// Bucket is the value of the column "bucket" in all rows of the queue. Decision 90 says why the
// queue is not divided into several buckets.
const Bucket = 0

// Key identifies a target.
type Key struct {
	Platform   link.Platform `gorm:"column:source"` // see Target.Platform
	Kind       Kind
	ExternalID string
}

// Compare orders targets by platform, kind and external id. Transactions that lock targets in this order cannot deadlock.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Platform, other.Platform), cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.ExternalID, other.ExternalID))
}

// SameTarget returns the SQL condition that the rows of two tables of the queue, or of lists with the same columns, belong to the same target.
func SameTarget(a, b string) string {
	return fmt.Sprintf("%[1]s.bucket = %[2]s.bucket AND %[1]s.source = %[2]s.source AND %[1]s.kind = %[2]s.kind AND %[1]s.external_id = %[2]s.external_id", a, b)
}

// TargetKey returns a text that identifies a video among all videos of all platforms, or an account among all accounts.
func TargetKey(p link.Platform, externalID string) string { return string(p) + "/" + externalID }

// slotMargin is a number of seconds at the end of each UTC day. The first fetch of a target on a day is never scheduled in this time. Otherwise, if it
// started a little late, it would fall on the next day, and a target that is fetched once a day would get no counts for its day.
const slotMargin = 10 * 60

// SlotOf returns the time since midnight UTC of the first fetch of a target on each day that has a fetch. A hash spreads the fetches evenly over the
// day.
func SlotOf(p link.Platform, externalID string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(TargetKey(p, externalID)))
	return time.Duration(h.Sum32()%(db.SecondsPerDay-slotMargin)) * time.Second
}

// SlotAfter returns the next time after now that has the target's time of day: see SlotOf.
func SlotAfter(now db.Instant, p link.Platform, externalID string) db.Instant {
	at := db.InstantOf(now.Day().Time()).Add(SlotOf(p, externalID))
	if at <= now {
		at = at.Add(24 * time.Hour)
	}
	return at
}

// FetchSubscription records that an organisation tracks a target.
type FetchSubscription struct {
	Bucket         int           `gorm:"primaryKey"`               // always the constant Bucket
	Platform       link.Platform `gorm:"primaryKey;column:source"` // see Target.Platform
	Kind           Kind          `gorm:"primaryKey"`
	ExternalID     string        `gorm:"primaryKey"`
	OrganisationID uuid.UUID     `gorm:"primaryKey"`
	SubjectID      uuid.UUID
	Handle         string     // the account's handle in the link that the organisation sent; no source has confirmed it
	HandleAt       db.Instant // the time when the organisation sent the handle; after a fetch that tried the handle in vain, the time of this fetch
	Preview        int        // for an account: how many of its videos are fetched if the organisation does not pay; 0 means the default
}

// Key returns the key of the target.
func (s *FetchSubscription) Key() Key { return Key{s.Platform, s.Kind, s.ExternalID} }

// The states of a target.
const (
	StateActive = "active" // active: fetched at the scheduled times
	StateGone   = "gone"   // gone: tried rarely, because the sources report that the video or account does not exist
	StateParked = "parked" // parked: tried rarely, because the fetches failed too often or no source can fetch the target
)

// Entry is a request of one organisation to fetch a target.
type Entry struct {
	Platform       link.Platform
	Kind           Kind
	ExternalID     string
	Handle, Link   string
	Lane, BaseLane Lane
	NextAt         db.Instant
	Subject        uuid.UUID
	Depth          int // for an account: the number of newest videos to request from the source; 0 for a video
	Preview        int // for an account: how many of its videos are fetched if the organisation does not pay; 0 means the default
	// TrackedAt is when the organisation first tracked the target. FetchedAt is when the
	// organisation last got the target's counts. Zero means: not before this entry.
	TrackedAt, FetchedAt db.Instant
	// NeedsOlderVideos is true if Depth is larger than every list of the account that was fetched for the organisation before. Enqueue then does not delay
	// the entry, although the account was fetched recently.
	NeedsOlderVideos bool
	// Unsupported says why no configured source can fetch the video or account. It is "" if a source can fetch it, or if that is not known.
	Unsupported string
	// Known are the last counts that the organisation has of the video or account, for example from an import or from an earlier time of tracking. For an
	// account, Views are the followers. A new target begins with these counts. An existing target keeps its own counts. But if it was never fetched,
	// those of its counts that differ from Known are removed, because they came from another organisation.
	//
	// The collector only compares the answers for a new target with these counts, to recognise suspicious counts. Imported counts can be invented, so
	// they must not affect other organisations. The known counts never become numbers of another organisation that tracks the target, and never
	// delay the first numbers of the other organisation: a target keeps known counts only while a single organisation tracks it, until its first fetch.
	Known db.Counts
	// Saved is true if the row of the video or account already has the values of NextAt and Unsupported. They are then not written again.
	Saved bool

	route    string     // the first source to ask; set by routeEntries
	turn     int64      // number that orders the targets of the interactive lane: see orgTurn; set by routeEntries
	servedAt db.Instant // time of the last fetch, if deferRecentlyFetched delayed the entry; otherwise 0
}

// Key returns the key of the entry's target.
func (e Entry) Key() Key { return Key{e.Platform, e.Kind, e.ExternalID} }

// IsDeferred returns true if Enqueue has delayed the entry, because its target was fetched for the organisation less than RefreshPause ago.
func (e Entry) IsDeferred() bool { return e.servedAt > 0 }

// targetRow returns the values with which the entry's target is inserted into fetch_targets, in the order of newTargetColumns.
func (e Entry) targetRow(org uuid.UUID, now db.Instant) []any {
	var askedBy *uuid.UUID
	var fetchedAt *db.Instant
	var handle string
	if e.Lane == LaneInteractive {
		askedBy = &org
	}
	if e.servedAt > 0 {
		fetchedAt = &e.servedAt
	}
	// The handle of a video is unconfirmed, and is stored with the subscription instead.
	if e.Kind != KindVideo {
		handle = e.Handle
	}
	return append([]any{
		Bucket, e.Platform, e.Kind, e.ExternalID, handle, e.Link, e.Lane, e.BaseLane, e.NextAt, now,
		0, StateActive, "", e.Depth, e.turn, askedBy, e.route, fetchedAt, FetchPending,
	}, e.Known.Values()...)
}

// newTargetColumns are the columns of targetRow, with their SQL types. Each line has the columns of the values in the same line of targetRow.
var newTargetColumns = append([]string{
	"bucket smallint", "source text", "kind text", "external_id text", "handle text", "link text", "lane smallint", "base_lane smallint", "next_at bigint", "requested_at bigint",
	"attempts integer", "state text", "detail text", "depth integer", "turn bigint", "asked_by uuid", "route text", "fetched_at bigint", "status text",
}, db.MetricDefinitions("")...)

// canBeDeferred returns true if the entry is due, its organisation has tracked the target before, and the earlier fetches cover what the organisation wants.
func (e Entry) canBeDeferred(now db.Instant) bool {
	return e.TrackedAt > 0 && e.NextAt <= now && !e.NeedsOlderVideos
}

// deferRecentlyFetched delays an entry if its target was fetched for the organisation less than RefreshPause
// ago. So stopping a target and tracking it again does not shorten this pause. The exception is an entry with NeedsOlderVideos.
func deferRecentlyFetched(tx *gorm.DB, entries []Entry, now db.Instant) error {
	var again []Target
	for _, e := range entries {
		if e.canBeDeferred(now) {
			again = append(again, Target{Platform: e.Platform, Kind: e.Kind, ExternalID: e.ExternalID})
		}
	}
	fetched := map[Key]db.Instant{}
	if len(again) > 0 {
		list, args := withTargets(tx, again)
		var rows []Target
		err := tx.Raw(list+`SELECT t.source, t.kind, t.external_id, t.fetched_at FROM wanted CROSS JOIN fetch_targets t
 WHERE t.bucket = ? AND t.source = wanted.source AND t.kind = wanted.kind AND t.external_id = wanted.external_id AND t.fetched_at > ?`,
			append(args, Bucket, now.Add(-RefreshPause))...).Find(&rows).Error
		if err != nil {
			return err
		}
		for _, r := range rows {
			fetched[r.Key()] = *r.FetchedAt
		}
	}
	for i := range entries {
		e := &entries[i]
		if !e.canBeDeferred(now) {
			continue
		}
		served, last := e.FetchedAt, fetched[e.Key()]
		// A fetch counts even if the organisation had stopped the target before the fetch.
		if last >= e.TrackedAt {
			served = max(served, last)
		}
		if now >= served.Add(RefreshPause) {
			continue
		}
		e.servedAt, e.Lane, e.NextAt = served, e.BaseLane, SlotAfter(now, e.Platform, e.ExternalID)
		// The organisation did not get the counts of the last fetch, so the entry waits for
		// RefreshPause at most.
		if e.FetchedAt < last {
			e.NextAt = min(e.NextAt, last.Add(RefreshPause))
		}
	}
	return nil
}

// Enqueue adds the targets and subscriptions of entries to the queue. An entry can make an existing
// target due earlier, but never later.
func Enqueue(tx *gorm.DB, org uuid.UUID, entries []Entry, now db.Instant) error {
	writes, err := StatementsForEnqueue(tx, org, entries, now)
	if err != nil {
		return err
	}
	return db.RunWrites(tx, writes...)
}

// StatementsForEnqueue returns the statements of Enqueue, to be run together with the caller's own
// statements. But StatementsForEnqueue itself writes the new turns to the table org_turns. It sorts
// entries, and changes the entries that it delays: see IsDeferred.
func StatementsForEnqueue(tx *gorm.DB, org uuid.UUID, entries []Entry, now db.Instant) ([]db.Write, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Key().Compare(b.Key()) })
	if err := deferRecentlyFetched(tx, entries, now); err != nil {
		return nil, err
	}
	if err := routeEntries(tx, org, entries, now); err != nil {
		return nil, err
	}
	return slices.Concat(statementsForTargets(tx, org, entries, now), statementsForSubscriptions(tx, org, entries, now), statementsForNextFetch(tx, org, entries)), nil
}

// statementsForTargets returns the statements that insert the targets of entries, or update those that exist already.
func statementsForTargets(tx *gorm.DB, org uuid.UUID, entries []Entry, now db.Instant) []db.Write {
	rows := make([][]any, len(entries))
	for i, e := range entries {
		rows[i] = e.targetRow(org, now)
	}
	const sooner = "excluded.lane < fetch_targets.lane OR (excluded.lane = fetch_targets.lane AND excluded.turn < fetch_targets.turn)"
	const restarts = "fetch_targets.route = '' OR (fetch_targets.state <> '" + StateActive + "' AND excluded.fetched_at IS NULL)"
	// An entry that deferRecentlyFetched has delayed changes neither the state nor requested_at: a higher
	// requested_at would cause another fetch after a running fetch.
	const served = "excluded.fetched_at IS NOT NULL"
	// This condition is true if the external id of the target is "@" and the handle of the entry. The target can have another handle, if an account that
	// had this handle before was renamed.
	const namedByHandle = "fetch_targets.external_id = '@' || excluded.handle"
	// Before the first fetch, the counts of a target are the known counts of its only organisation. If the entry of another organisation has other known
	// counts, or none, the target forgets them.
	knownCounts := db.MetricColumns("{m} = CASE WHEN fetch_targets.fetched_at IS NOT NULL OR excluded.{m} = fetch_targets.{m} THEN fetch_targets.{m} END")
	// Set details_at to NULL, so that the next fetch also returns details, such as the title. The requesting organisation possibly lacks them.
	return db.StatementsForInsert(tx, "fetch_targets", newTargetColumns, rows, `ON CONFLICT (bucket, source, kind, external_id) DO UPDATE SET
 turn = CASE WHEN `+sooner+` THEN excluded.turn ELSE fetch_targets.turn END,
 asked_by = CASE WHEN `+sooner+` THEN excluded.asked_by ELSE fetch_targets.asked_by END,
 route = CASE WHEN `+restarts+` THEN excluded.route ELSE fetch_targets.route END,
 answers = CASE WHEN `+restarts+` THEN NULL ELSE fetch_targets.answers END,
 lane = CASE WHEN excluded.lane < fetch_targets.lane THEN excluded.lane ELSE fetch_targets.lane END,
 base_lane = CASE WHEN excluded.base_lane < fetch_targets.base_lane THEN excluded.base_lane ELSE fetch_targets.base_lane END,
 next_at = CASE WHEN fetch_targets.claimed_by IS NULL AND excluded.next_at < fetch_targets.next_at THEN excluded.next_at ELSE fetch_targets.next_at END,
 handle = CASE WHEN fetch_targets.handle = '' OR `+namedByHandle+` THEN excluded.handle ELSE fetch_targets.handle END,
 link = CASE WHEN `+namedByHandle+` THEN excluded.link ELSE fetch_targets.link END,
 depth = CASE WHEN excluded.depth > fetch_targets.depth THEN excluded.depth ELSE fetch_targets.depth END,
 requested_at = CASE WHEN `+served+` THEN fetch_targets.requested_at WHEN excluded.requested_at > fetch_targets.requested_at THEN excluded.requested_at
  ELSE fetch_targets.requested_at + 1 END,
 details_at = CASE WHEN `+served+` THEN fetch_targets.details_at END,
 state = CASE WHEN `+served+` THEN fetch_targets.state ELSE '`+StateActive+`' END,
 attempts = CASE WHEN `+served+` THEN fetch_targets.attempts ELSE 0 END,
 refused_as = CASE WHEN `+served+` THEN fetch_targets.refused_as ELSE '' END,
 refusals = CASE WHEN `+served+` THEN fetch_targets.refusals ELSE 0 END,
 `+knownCounts)
}

// statementsForSubscriptions returns the statements that insert the subscriptions of entries, or update those that exist already.
func statementsForSubscriptions(tx *gorm.DB, org uuid.UUID, entries []Entry, now db.Instant) []db.Write {
	rows := make([][]any, len(entries))
	for i, e := range entries {
		rows[i] = []any{Bucket, e.Platform, e.Kind, e.ExternalID, org, e.Subject, e.Handle, now, e.Preview}
	}
	columns := []string{"bucket smallint", "source text", "kind text", "external_id text", "organisation_id uuid", "subject_id uuid", "handle text",
		"handle_at bigint", "preview integer"}
	return db.StatementsForInsert(tx, "fetch_subscriptions", columns, rows, `ON CONFLICT (bucket, source, kind, external_id, organisation_id) DO UPDATE SET
 subject_id = excluded.subject_id,
 handle = CASE WHEN excluded.handle = '' THEN fetch_subscriptions.handle ELSE excluded.handle END,
 handle_at = CASE WHEN excluded.handle IN ('', fetch_subscriptions.handle) THEN fetch_subscriptions.handle_at ELSE excluded.handle_at END,
 preview = CASE WHEN excluded.preview = 0 THEN fetch_subscriptions.preview ELSE excluded.preview END`)
}

// SubscriptionsOf returns the subscriptions of all organisations to targets, with the fields Platform, ExternalID, OrganisationID and SubjectID.
func SubscriptionsOf(tx *gorm.DB, targets []Target) (subs []FetchSubscription, err error) {
	if len(targets) == 0 {
		return nil, nil
	}
	list, args := withTargets(tx, targets)
	return db.AppendRows(tx, subs, subscriptionColumns, list+`SELECT s.source, s.external_id, s.organisation_id, s.subject_id FROM wanted CROSS JOIN fetch_subscriptions s
 WHERE s.bucket = ? AND s.source = wanted.source AND s.kind = wanted.kind AND s.external_id = wanted.external_id`, append(args, Bucket)...)
}

// subscriptionColumns are the columns that SubscriptionsOf reads.
var subscriptionColumns = []db.Column[FetchSubscription]{
	{Name: "source", Set: func(s *FetchSubscription, row *db.Values, i int) { s.Platform = link.Platform(row.String(i)) }},
	{Name: "external_id", Set: func(s *FetchSubscription, row *db.Values, i int) { s.ExternalID = row.String(i) }},
	{Name: "organisation_id", Set: func(s *FetchSubscription, row *db.Values, i int) { s.OrganisationID = row.ID(i) }},
	{Name: "subject_id", Set: func(s *FetchSubscription, row *db.Values, i int) { s.SubjectID = row.ID(i) }},
}

// SaveKnownCounts stores Entry.Known for those targets that were never fetched, as Enqueue does for new targets. If a
// count in Entry.Known is nil, the target keeps its own. A target that the organisation does not track, or that another organisation tracks too, does not change.
func SaveKnownCounts(tx *gorm.DB, org uuid.UUID, entries []Entry) error {
	columns := append([]string{"source text", "kind text", "external_id text"}, db.MetricDefinitions("")...)
	for chunk := range slices.Chunk(entries, db.InsertChunk) {
		rows := make([][]any, len(chunk))
		for i, e := range chunk {
			rows[i] = append([]any{e.Platform, e.Kind, e.ExternalID}, e.Known.Values()...)
		}
		list, args := db.WithRows(tx, "u", columns, rows)
		err := tx.Exec(list+`UPDATE fetch_targets SET `+db.MetricColumns("{m} = COALESCE(u.{m}, fetch_targets.{m})")+`
 FROM u WHERE fetch_targets.bucket = ? AND fetch_targets.source = u.source AND fetch_targets.kind = u.kind AND fetch_targets.external_id = u.external_id
  AND fetch_targets.fetched_at IS NULL AND EXISTS (SELECT 1 FROM fetch_subscriptions s WHERE s.organisation_id = ? AND `+SameTarget("s", "fetch_targets")+`)
  AND NOT EXISTS (SELECT 1 FROM fetch_subscriptions other WHERE other.organisation_id <> ? AND `+SameTarget("other", "fetch_targets")+`)`,
			append(args, Bucket, org, org)...).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// withTargets returns the SQL text "WITH wanted(source, kind, external_id) AS (…)" for a list of targets, and the parameters of that text.
func withTargets(tx *gorm.DB, targets []Target) (statement string, args []any) {
	rows := make([][]any, len(targets))
	for i, t := range targets {
		rows[i] = []any{t.Platform, t.Kind, t.ExternalID}
	}
	return db.WithRows(tx, "wanted", []string{"source text", "kind text", "external_id text"}, rows)
}

// KindGroup contains the external ids of targets of one platform and kind.
type KindGroup struct {
	Platform link.Platform
	Kind     Kind
	IDs      []string
}

// Condition returns the SQL condition that a row of a table of the queue belongs to one of the targets of the group. It is passed to GORM as the
// argument for a question mark, as in Exec("DELETE FROM fetch_targets WHERE ?", g.Condition()).
func (g KindGroup) Condition() clause.Expr {
	return gorm.Expr("bucket = ? AND source = ? AND kind = ? AND external_id IN ?", Bucket, g.Platform, g.Kind, g.IDs)
}

// GroupByKind groups the external ids of targets by platform and kind.
func GroupByKind(targets []Target) []KindGroup {
	var groups []KindGroup
	for _, t := range targets {
		i := slices.IndexFunc(groups, func(g KindGroup) bool { return g.Platform == t.Platform && g.Kind == t.Kind })
		if i < 0 {
			groups, i = append(groups, KindGroup{Platform: t.Platform, Kind: t.Kind}), len(groups)
		}
		groups[i].IDs = append(groups[i].IDs, t.ExternalID)
	}
	return groups
}

// changeTargets runs the function change once for each platform and kind of the targets, all in one transaction. It returns the number of changed or
// deleted rows.
func (s *Queue) changeTargets(ctx context.Context, targets []Target, change func(tx *gorm.DB, g KindGroup) *gorm.DB) (rows int64, err error) {
	err = s.db.Tx(ctx, func(tx *gorm.DB) error {
		rows = 0
		for _, g := range GroupByKind(targets) {
			done := change(tx, g)
			if done.Error != nil {
				return done.Error
			}
			rows += done.RowsAffected
		}
		return nil
	})
	return rows, err
}
