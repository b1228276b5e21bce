package queue

import (
	"cmp"
	"context"
	"database/sql"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// The queue: one target for each video of a platform, whoever tracks it, and one subscription for each organisation
// that does. A target is due when its next_at has come. Claiming it moves next_at ahead by the lease, so that a lease
// that is never acknowledged is simply due again.

// Lane is where a target waits; the collector draws from the lanes by weight.
type Lane int

// The lanes. A target takes the best lane of those who ask for it.
const (
	LaneInteractive Lane = iota // somebody is waiting
	LanePremium
	LaneBasic
	LaneFree
)

// String is the lane's name, for operators.
func (l Lane) String() string {
	switch l {
	case LaneInteractive:
		return "interactive"
	case LanePremium:
		return "premium"
	case LaneBasic:
		return "basic"
	case LaneFree:
		return "free"
	}
	return strconv.Itoa(int(l))
}

// Lanes lists all lanes, the first to be served first.
var Lanes = []Lane{LaneInteractive, LanePremium, LaneBasic, LaneFree}

// Pace is how a target's numbers move, which decides how often it is asked for.
type Pace int

// The paces.
const (
	PaceSteady Pace = iota
	PaceFast        // young, or moving: several times a day
	PaceStill       // old, and hardly moving: the first to be asked for less often when a budget is short
)

// KindVideo is the kind of videos in the queue.
const KindVideo = "video"

// Bucket is the only bucket: the queue is one piece until it is sharded.
const Bucket = 0

// TargetKey returns a map key for a target of a platform.
func TargetKey(p link.Platform, externalID string) string { return string(p) + "/" + externalID }

// slotMargin is the end of the day that has no slots, so that a turn that comes a little late still falls into its day.
const slotMargin = 10 * 60

// SlotOf returns the second of the day at which a target is fetched by the schedule: spread evenly by hash, the same
// every day.
func SlotOf(p link.Platform, externalID string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(TargetKey(p, externalID)))
	return time.Duration(h.Sum32()%(db.SecondsPerDay-slotMargin)) * time.Second
}

// SlotAfter returns the target's next slot after now.
func SlotAfter(now db.Instant, p link.Platform, externalID string) db.Instant {
	at := db.InstantOf(now.Day().Time()).Add(SlotOf(p, externalID))
	if at <= now {
		at = at.Add(24 * time.Hour)
	}
	return at
}

type fetchTarget struct {
	Bucket      int           `gorm:"primaryKey"`
	Source      link.Platform `gorm:"primaryKey"`
	Kind        string        `gorm:"primaryKey"`
	ExternalID  string        `gorm:"primaryKey"`
	Handle      string
	Link        string
	Lane        Lane
	BaseLane    Lane
	NextAt      db.Instant
	RequestedAt db.Instant
	Attempts    int
	RefusedAs   string
	Refusals    int
	State       string
	Detail      string
	Depth       int
	Turn        int64
	FetchedAt   *db.Instant
}

// FetchSubscription is a row of fetch_subscriptions: an organisation that tracks a target.
type FetchSubscription struct {
	Bucket         int           `gorm:"primaryKey"`
	Source         link.Platform `gorm:"primaryKey"`
	Kind           string        `gorm:"primaryKey"`
	ExternalID     string        `gorm:"primaryKey"`
	OrganisationID uuid.UUID     `gorm:"primaryKey"`
	SubjectID      uuid.UUID
	Handle         string     // the handle in the organisation's link; not confirmed by a source
	HandleAt       db.Instant // when the handle was claimed or last tried
	Preview        int        // as TrackAccountsRequest.Preview
}

// The states of a target.
const (
	StateActive = "active" // fetched by the schedule
	stateGone   = "gone"   // its source says that it is not there; asked rarely
	stateParked = "parked" // failed too often; asked rarely
)

// Entry is one organisation's wish to have a target fetched.
type Entry struct {
	Source         link.Platform
	Kind           string
	ExternalID     string
	Handle, Link   string
	Lane, BaseLane Lane
	NextAt         db.Instant
	Subject        uuid.UUID
	Depth          int // of an account: how many of its newest videos are wanted
	Preview        int // see TrackAccountsRequest.Preview
	// TrackedAt is when the organisation first tracked the subject. FetchedAt is when the subject last got numbers. Both are zero if the
	// organisation has never tracked the subject before.
	TrackedAt, FetchedAt db.Instant

	turn     int64      // position in the interactive lane, see takeTurns
	servedAt db.Instant // see deferServed
}

// target returns the row for a target that is not in the queue yet. Until a source confirms the handle of a
// video, it is only a claim and is stored with the subscription instead.
func (e Entry) target(now db.Instant) fetchTarget {
	t := fetchTarget{Bucket: Bucket, Source: e.Source, Kind: e.Kind, ExternalID: e.ExternalID, Link: e.Link, Lane: e.Lane, BaseLane: e.BaseLane,
		NextAt: e.NextAt, RequestedAt: now, State: StateActive, Depth: e.Depth, Turn: e.turn}
	if e.Kind != KindVideo {
		t.Handle = e.Handle
	}
	if e.servedAt > 0 {
		t.FetchedAt = &e.servedAt
	}
	return t
}

// deferServed delays the entries of an organisation that has stopped and now tracks again, if a fetch within the last RefreshPause has
// already served it. Such an entry gets its place in the regular schedule. A fetch serves an organisation that tracked the target before
// the fetch, even if the organisation had stopped by then. If the organisation does not have the numbers of that fetch, it waits at most
// for the rest of the pause.
func deferServed(tx *gorm.DB, entries []Entry, now db.Instant) error {
	var again []Target
	for _, e := range entries {
		if e.TrackedAt > 0 && e.NextAt <= now {
			again = append(again, Target{Platform: e.Source, Kind: e.Kind, ExternalID: e.ExternalID})
		}
	}
	type key struct {
		platform         link.Platform
		kind, externalID string
	}
	fetched := map[key]db.Instant{}
	for chunk := range slices.Chunk(again, db.InsertChunk) {
		for _, g := range ByKind(chunk) {
			var rows []Target
			err := tx.Raw(`SELECT external_id, fetched_at FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? AND fetched_at > ?`,
				Bucket, g.Platform, g.Kind, g.IDs, now.Add(-RefreshPause)).Scan(&rows).Error
			if err != nil {
				return err
			}
			for _, r := range rows {
				fetched[key{g.Platform, g.Kind, r.ExternalID}] = *r.FetchedAt
			}
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.TrackedAt == 0 || e.NextAt > now {
			continue
		}
		served, last := e.FetchedAt, fetched[key{e.Source, e.Kind, e.ExternalID}]
		if last >= e.TrackedAt {
			served = max(served, last)
		}
		if now >= served.Add(RefreshPause) {
			continue
		}
		e.servedAt, e.Lane, e.NextAt = served, e.BaseLane, SlotAfter(now, e.Source, e.ExternalID)
		if e.FetchedAt < last {
			e.NextAt = min(e.NextAt, last.Add(RefreshPause))
		}
	}
	return nil
}

// Enqueue adds targets and subscriptions. If a target exists already and the new entry is more urgent, the target is moved forward. It is
// never delayed. A target that had been given up becomes active again. requested_at tells the collector that holds the target that an
// organisation has joined. It rises with each entry, even if two entries have the same time. An entry that deferServed delayed changes
// none of this.
func Enqueue(tx *gorm.DB, org uuid.UUID, entries []Entry, now db.Instant) error {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ExternalID, b.ExternalID))
	})
	if err := deferServed(tx, entries, now); err != nil {
		return err
	}
	if err := takeTurns(tx, org, entries, now); err != nil {
		return err
	}
	unlessServed := func(column, value string) any {
		return gorm.Expr("CASE WHEN excluded.fetched_at IS NULL THEN " + value + " ELSE fetch_targets." + column + " END")
	}
	for chunk := range slices.Chunk(entries, db.InsertChunk) {
		targets, subs := make([]fetchTarget, len(chunk)), make([]FetchSubscription, len(chunk))
		for i, e := range chunk {
			targets[i] = e.target(now)
			subs[i] = FetchSubscription{Bucket: Bucket, Source: e.Source, Kind: e.Kind, ExternalID: e.ExternalID,
				OrganisationID: org, SubjectID: e.Subject, Handle: e.Handle, HandleAt: now, Preview: e.Preview}
		}
		err := tx.Clauses(clause.OnConflict{
			Columns: db.Columns([]string{"bucket", "source", "kind", "external_id"}),
			DoUpdates: clause.Assignments(map[string]any{
				"turn":         gorm.Expr("CASE WHEN excluded.lane < fetch_targets.lane OR (excluded.lane = fetch_targets.lane AND excluded.turn < fetch_targets.turn) THEN excluded.turn ELSE fetch_targets.turn END"),
				"lane":         gorm.Expr("CASE WHEN excluded.lane < fetch_targets.lane THEN excluded.lane ELSE fetch_targets.lane END"),
				"base_lane":    gorm.Expr("CASE WHEN excluded.base_lane < fetch_targets.base_lane THEN excluded.base_lane ELSE fetch_targets.base_lane END"),
				"next_at":      gorm.Expr("CASE WHEN fetch_targets.claimed_by IS NULL AND excluded.next_at < fetch_targets.next_at THEN excluded.next_at ELSE fetch_targets.next_at END"),
				"handle":       gorm.Expr("CASE WHEN fetch_targets.handle = '' THEN excluded.handle ELSE fetch_targets.handle END"),
				"depth":        gorm.Expr("CASE WHEN excluded.depth > fetch_targets.depth THEN excluded.depth ELSE fetch_targets.depth END"),
				"requested_at": unlessServed("requested_at", "CASE WHEN excluded.requested_at > fetch_targets.requested_at THEN excluded.requested_at ELSE fetch_targets.requested_at + 1 END"),
				"details_at":   unlessServed("details_at", "NULL"), // the organisation may lack the details that others already have
				"state":        unlessServed("state", "'"+StateActive+"'"),
				"attempts":     unlessServed("attempts", "0"),
				"refused_as":   unlessServed("refused_as", "''"),
				"refusals":     unlessServed("refusals", "0"),
			}),
		}).Create(&targets).Error
		if err != nil {
			return err
		}
		err = tx.Clauses(clause.OnConflict{
			Columns: db.Columns([]string{"bucket", "source", "kind", "external_id", "organisation_id"}),
			DoUpdates: clause.Assignments(map[string]any{
				"subject_id": gorm.Expr("excluded.subject_id"),
				"handle":     gorm.Expr("CASE WHEN excluded.handle = '' THEN fetch_subscriptions.handle ELSE excluded.handle END"),
				"handle_at":  gorm.Expr("CASE WHEN excluded.handle IN ('', fetch_subscriptions.handle) THEN fetch_subscriptions.handle_at ELSE excluded.handle_at END"),
				"preview":    gorm.Expr("CASE WHEN excluded.preview = 0 THEN fetch_subscriptions.preview ELSE excluded.preview END"),
			}),
		}).Create(&subs).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// Target is a claimed target: until its lease ends, no other collector has it.
type Target struct {
	Platform   link.Platform `gorm:"column:source"`
	Kind       string
	ExternalID string
	// Handle is the account's handle. For a video it is a handle that a source has confirmed; "" if there is none.
	Handle string
	// Handles are up to claimedHandles handles that the subscribers of a video claim, without Handle. The one that was claimed or tried least
	// recently comes first. "" stands for links that name no account.
	Handles  []string `gorm:"-"`
	Link     string
	Lane     Lane
	BaseLane Lane // the lane that it returns to when no organisation waits for it any more
	Pace     Pace
	Attempts int // failed fetches since the last successful one
	// RefusedAs is what sources said last that ends asking (gone, refused), and Refusals how often in a row. What failed in between
	// neither counts nor ends it.
	RefusedAs string
	Refusals  int
	FetchedAt *db.Instant // the last fetch that succeeded
	DetailsAt *db.Instant // the last that gave title, account and the like as well
	Views     *int64      // the last views written, of an account the last followers
	State     string
	Suspect   *string // the collector's note on a number held back
	// RequestedAt grows whenever somebody asks for it: about the time of the last wish.
	RequestedAt db.Instant
	// Of an account: the platform's own id and the source's (AccountFacts.SourceID), once they are known, and how many of its
	// newest videos are wanted.
	NativeID *string
	SourceID *string
	Depth    int
	// Organisation is one of those that subscribe.
	Organisation uuid.UUID `gorm:"-"`
}

// Claim is a lease on some targets.
type Claim struct {
	Token   uuid.UUID
	At      db.Instant
	Targets []Target
}

// ClaimRequest says what a collector asks for.
type ClaimRequest struct {
	Collector uuid.UUID
	Platform  link.Platform
	Kind      string
	// Lanes are served in this order until Limit is reached.
	Lanes []Lane
	Limit int
	Lease time.Duration
	// Ahead fills what is then left of Limit with targets that are due within this time from now, but not beyond the UTC
	// day: a call costs the same, however many it asks for. Retries are never early. Nothing is claimed when nothing is due.
	Ahead time.Duration
	// Only, when set, are the external ids of which alone any are claimed.
	Only []string
}

// Claim takes due targets, in each lane the longest due first, in the interactive one by turns, and keeps them from
// others for the length of the lease. Targets to which nobody subscribes any more are deleted instead. An empty claim means
// that nothing is due.
func (s *Queue) Claim(ctx context.Context, r ClaimRequest) (Claim, error) {
	c := Claim{Token: db.NewID(), At: s.db.Now()}
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		c.Targets = nil
		for _, lane := range r.Lanes {
			if err := s.take(tx, &c, r, lane, c.At); err != nil {
				return err
			}
		}
		if len(c.Targets) == 0 || r.Ahead == 0 {
			return nil
		}
		endOfDay := db.InstantOf((c.At.Day() + 1).Time()) - 1
		for _, lane := range Lanes[LanePremium:] {
			if err := s.take(tx, &c, r, lane, min(c.At.Add(r.Ahead), endOfDay)); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(c.Targets, func(a, b Target) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
	return c, err
}

// take adds a lane's targets that are due by the time given to a claim, up to its limit.
func (s *Queue) take(tx *gorm.DB, c *Claim, r ClaimRequest, lane Lane, by db.Instant) error {
	order, only, lock := "next_at", "", db.SkipLocked(tx)
	if lane == LaneInteractive {
		order = "turn, next_at"
	}
	selected := []any{Bucket, r.Platform, r.Kind, lane, by, c.At}
	if len(r.Only) > 0 {
		only, selected = " AND external_id IN ?", append(selected, r.Only)
	}
	// The materialised list is what bounds the claim: with IN (SELECT … LIMIT …) a nested-loop plan runs the subquery
	// again and again, and takes more each time.
	claim := `
WITH due AS MATERIALIZED (
  SELECT bucket, source, kind, external_id FROM fetch_targets
   WHERE bucket = ? AND source = ? AND kind = ? AND lane = ? AND next_at <= ?
     AND (next_at <= ? OR (claimed_by IS NULL AND attempts = 0 AND suspect IS NULL))` + only + ` ORDER BY ` + order + ` LIMIT ?` + lock + `)
UPDATE fetch_targets SET next_at = ?, claimed_by = ?, token = ? FROM due
 WHERE fetch_targets.bucket = ? AND fetch_targets.bucket = due.bucket AND fetch_targets.source = due.source
   AND fetch_targets.kind = due.kind AND fetch_targets.external_id = due.external_id
RETURNING fetch_targets.source, fetch_targets.kind, fetch_targets.external_id, handle, link, lane, base_lane, pace, attempts, refused_as, refusals, fetched_at, details_at, views, state, suspect, requested_at, native_id, source_id, depth`
	for len(c.Targets) < r.Limit {
		var taken []Target
		args := append(slices.Clone(selected), r.Limit-len(c.Targets), c.At.Add(r.Lease), r.Collector, c.Token, Bucket)
		err := tx.Raw(claim, args...).Scan(&taken).Error
		if err != nil || len(taken) == 0 {
			return err
		}
		wanted, err := dropOrphans(tx, r.Platform, r.Kind, c.Token, taken)
		c.Targets = append(c.Targets, wanted...)
		if err != nil || len(wanted) > 0 {
			return err
		}
		// Orphans alone are no reason to say that nothing is due.
	}
	return nil
}

// claimedHandles is how many claimed handles of a video one fetch tries. The next fetch tries others, so two fetches find the right one
// among up to 60 claims.
const claimedHandles = 30

// claimants are the subscribers of a target that claim the same handle.
type claimants struct {
	ExternalID   string
	Handle       string
	Organisation uuid.UUID // one of them
}

// dropOrphans deletes the targets that have no subscription. It returns the other targets, each with one of its organisations and the
// handles that its subscribers claim. A target that was requested after it was claimed is kept, because a subscription may have been
// added with that request.
func dropOrphans(tx *gorm.DB, platform link.Platform, kind string, token uuid.UUID, targets []Target) ([]Target, error) {
	ids := make([]string, len(targets))
	var claimedAt db.Instant
	for i, t := range targets {
		ids[i] = t.ExternalID
		claimedAt = max(claimedAt, t.RequestedAt)
	}
	var wanted []claimants
	err := tx.Raw(`SELECT external_id, handle, MIN(CAST(organisation_id AS text)) AS organisation FROM fetch_subscriptions
 WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? GROUP BY external_id, handle
 ORDER BY external_id, MIN(handle_at), COUNT(*) DESC, handle`, Bucket, platform, kind, ids).Scan(&wanted).Error
	if err != nil {
		return targets, err
	}
	subscribers := make(map[string][]claimants, len(targets))
	for _, w := range wanted {
		subscribers[w.ExternalID] = append(subscribers[w.ExternalID], w)
	}
	var orphans []string
	kept := slices.DeleteFunc(targets, func(t Target) bool {
		if subscribers[t.ExternalID] == nil {
			orphans = append(orphans, t.ExternalID)
			return true
		}
		return false
	})
	for i := range kept {
		kept[i].subscribedBy(subscribers[kept[i].ExternalID])
	}
	if len(orphans) == 0 {
		return kept, nil
	}
	return kept, tx.Exec(`DELETE FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? AND token = ? AND requested_at <= ?`,
		Bucket, platform, kind, orphans, token, claimedAt).Error
}

// subscribedBy sets Organisation and Handles of a target from its subscribers.
func (t *Target) subscribedBy(all []claimants) {
	t.Organisation = all[0].Organisation
	for _, c := range all[1:] {
		if slices.Compare(c.Organisation[:], t.Organisation[:]) < 0 {
			t.Organisation = c.Organisation
		}
	}
	if t.Kind != KindVideo {
		return
	}
	for _, c := range all {
		if (c.Handle == "" || c.Handle != t.Handle) && len(t.Handles) < claimedHandles {
			t.Handles = append(t.Handles, c.Handle)
		}
	}
	switch {
	case len(t.Handles) == 1 && t.Handles[0] == "" && t.Handle == "":
		t.Handles = nil
	case len(t.Handles) > 1 && t.Handles[0] == "": // "" goes second, because a source that needs a handle cannot use it
		t.Handles[0], t.Handles[1] = t.Handles[1], t.Handles[0]
	}
}

// DueLanes returns the lanes in which a target of a platform is due, the first to be served first. It reads one index
// entry a lane, whatever the size of the queue.
func (s *Queue) DueLanes(ctx context.Context, platform link.Platform, kind string) ([]Lane, error) {
	const earliest = "(SELECT MIN(next_at) FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND lane = ?)"
	columns, args := make([]string, len(Lanes)), []any{}
	for i, lane := range Lanes {
		columns[i] = earliest
		args = append(args, Bucket, platform, kind, lane)
	}
	next := make([]sql.NullInt64, len(Lanes))
	into := make([]any, len(Lanes))
	for i := range next {
		into[i] = &next[i]
	}
	if err := s.db.Read(ctx).Raw("SELECT "+strings.Join(columns, ", "), args...).Row().Scan(into...); err != nil {
		return nil, db.Translate(err)
	}
	now, due := s.db.Now(), []Lane(nil)
	for i, lane := range Lanes {
		if next[i].Valid && db.Instant(next[i].Int64) <= now {
			due = append(due, lane)
		}
	}
	return due, nil
}

// Release gives a claim's targets back before their lease ends, due again at the time given: the source could not be
// asked. Their attempts do not count.
func (s *Queue) Release(ctx context.Context, c Claim, at time.Time) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		for _, g := range ByKind(c.Targets) {
			err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL
 WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? AND token = ?`,
				db.InstantOf(at), Bucket, g.Platform, g.Kind, g.IDs, c.Token).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// KindGroup has the external ids of targets of one platform and kind.
type KindGroup struct {
	Platform link.Platform
	Kind     string
	IDs      []string
}

// ByKind groups the external ids of targets by platform and kind.
func ByKind(targets []Target) []KindGroup {
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

// Heartbeat says that a collector lives, and makes the targets of collectors that have not said so for the time given
// due at once. It returns how many those were.
func (s *Queue) Heartbeat(ctx context.Context, collector uuid.UUID, deadAfter time.Duration) (int64, error) {
	type collectorRow struct {
		ID     uuid.UUID
		SeenAt db.Instant
	}
	var freed int64
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		now := s.db.Now()
		err := tx.Table("collectors").Clauses(clause.OnConflict{
			Columns: db.Columns([]string{"id"}), DoUpdates: clause.AssignmentColumns([]string{"seen_at"}),
		}).Create(&collectorRow{collector, now}).Error
		if err != nil {
			return err
		}
		var dead []uuid.UUID
		err = tx.Raw(`SELECT id FROM collectors WHERE seen_at < ? ORDER BY id`, now.Add(-deadAfter)).Scan(&dead).Error
		if err != nil || len(dead) == 0 {
			freed = 0
			return err
		}
		r := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL WHERE claimed_by IN ?`, now, dead)
		if freed = r.RowsAffected; r.Error != nil {
			return r.Error
		}
		return tx.Exec(`DELETE FROM collectors WHERE id IN ?`, dead).Error
	})
	return freed, err
}

// Retire takes a collector that stops out of the list and frees what it still holds.
func (s *Queue) Retire(ctx context.Context, collector uuid.UUID) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL WHERE claimed_by = ?`, s.db.Now(), collector).Error; err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM collectors WHERE id = ?`, collector).Error
	})
}

// Queue is the fetch queue. Its methods may be called concurrently.
type Queue struct{ db *db.DB }

// New returns the queue of a database. Callers outside store use Store.Queue.
func New(d *db.DB) *Queue { return &Queue{db: d} }
