package store

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

// LaneOf returns the lane of an organisation's scheduled fetches; laneOf says the same in SQL.
func LaneOf(o Organisation) Lane {
	switch {
	case o.Subscription == SubscriptionNone:
		return LaneFree
	case o.Tier == TierPremium:
		return LanePremium
	}
	return LaneBasic
}

// Pace is how a target's numbers move, which decides how often it is asked for.
type Pace int

// The paces.
const (
	PaceSteady Pace = iota
	PaceFast        // young, or moving: several times a day
	PaceStill       // old, and hardly moving: the first to be asked for less often when a budget is short
)

// Kind is the kind of a target.
type Kind string

// The kinds of target.
const (
	KindVideo   Kind = "video"
	KindAccount Kind = "account"
)

const targetVideo = KindVideo

// Bucket is the only bucket: the queue is one piece until it is sharded.
const bucket = 0

func targetKey(p link.Platform, externalID string) string { return string(p) + "/" + externalID }

// slotMargin is the end of the day that has no slots, so that a turn that comes a little late still falls into its day.
const slotMargin = 10 * 60

// SlotOf returns the second of the day at which a target is fetched by the schedule: spread evenly by hash, the same
// every day.
func SlotOf(p link.Platform, externalID string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(targetKey(p, externalID)))
	return time.Duration(h.Sum32()%(secondsPerDay-slotMargin)) * time.Second
}

// slotAfter returns the target's next slot after now.
func slotAfter(now Instant, p link.Platform, externalID string) Instant {
	at := InstantOf(now.Day().Time()).Add(SlotOf(p, externalID))
	if at <= now {
		at = at.Add(24 * time.Hour)
	}
	return at
}

type fetchTarget struct {
	Bucket      int           `gorm:"primaryKey"`
	Source      link.Platform `gorm:"primaryKey"`
	Kind        Kind          `gorm:"primaryKey"`
	ExternalID  string        `gorm:"primaryKey"`
	Handle      string
	Link        string
	Lane        Lane
	BaseLane    Lane
	NextAt      Instant
	RequestedAt Instant
	Attempts    int
	RefusedAs   string
	Refusals    int
	State       string
	Detail      string
	Depth       int
	Turn        int64
	AskedBy     *uuid.UUID
	Route       string
	FetchedAt   *Instant
}

type fetchSubscription struct {
	Bucket         int           `gorm:"primaryKey"`
	Source         link.Platform `gorm:"primaryKey"`
	Kind           Kind          `gorm:"primaryKey"`
	ExternalID     string        `gorm:"primaryKey"`
	OrganisationID uuid.UUID     `gorm:"primaryKey"`
	SubjectID      uuid.UUID
	Handle         string  // the handle in the organisation's link; not confirmed by a source
	HandleAt       Instant // when the handle was claimed or last tried
	Preview        int     // as TrackAccountsRequest.Preview
}

// The states of a target.
const (
	StateActive = "active" // fetched by the schedule
	StateGone   = "gone"   // the sources say that it does not exist; fetched rarely
	StateParked = "parked" // failed too often, or no source can fetch it; fetched rarely
)

// queueEntry is one organisation's wish to have a target fetched.
type queueEntry struct {
	Source         link.Platform
	Kind           Kind
	ExternalID     string
	Handle, Link   string
	Lane, BaseLane Lane
	NextAt         Instant
	Subject        uuid.UUID
	Depth          int // of an account: how many of its newest videos are wanted
	Preview        int // see TrackAccountsRequest.Preview
	// TrackedAt is when the organisation first tracked the subject. FetchedAt is when the subject last got numbers. Both are zero if the
	// organisation has never tracked the subject before.
	TrackedAt, FetchedAt Instant

	route    string  // the first source for such targets, see takeTurns
	turn     int64   // position in the interactive lane, see takeTurns
	servedAt Instant // see deferServed
}

// target returns the row for a target that is not in the queue yet. Until a source confirms the handle of a
// video, it is only a claim and is stored with the subscription instead.
func (e queueEntry) target(org uuid.UUID, now Instant) fetchTarget {
	t := fetchTarget{Bucket: bucket, Source: e.Source, Kind: e.Kind, ExternalID: e.ExternalID, Link: e.Link, Lane: e.Lane, BaseLane: e.BaseLane,
		NextAt: e.NextAt, RequestedAt: now, State: StateActive, Depth: e.Depth, Turn: e.turn, Route: e.route}
	if e.Lane == LaneInteractive {
		t.AskedBy = &org
	}
	if e.Kind != targetVideo {
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
func deferServed(tx *gorm.DB, entries []queueEntry, now Instant) error {
	var again []Target
	for _, e := range entries {
		if e.TrackedAt > 0 && e.NextAt <= now {
			again = append(again, Target{Platform: e.Source, Kind: e.Kind, ExternalID: e.ExternalID})
		}
	}
	type key struct {
		platform   link.Platform
		kind       Kind
		externalID string
	}
	fetched := map[key]Instant{}
	for chunk := range slices.Chunk(again, insertChunk) {
		for _, g := range byKind(chunk) {
			var rows []Target
			err := tx.Raw(`SELECT external_id, fetched_at FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? AND fetched_at > ?`,
				bucket, g.platform, g.kind, g.ids, now.Add(-RefreshPause)).Scan(&rows).Error
			if err != nil {
				return err
			}
			for _, r := range rows {
				fetched[key{g.platform, g.kind, r.ExternalID}] = *r.FetchedAt
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
		e.servedAt, e.Lane, e.NextAt = served, e.BaseLane, slotAfter(now, e.Source, e.ExternalID)
		if e.FetchedAt < last {
			e.NextAt = min(e.NextAt, last.Add(RefreshPause))
		}
	}
	return nil
}

// enqueue adds targets and subscriptions. If a target exists already and the new entry is more urgent, the target is moved forward. It is
// never delayed. A target that had been given up becomes active again. requested_at tells the collector that holds the target that an
// organisation has joined. It rises with each entry, even if two entries have the same time. An entry that deferServed delayed changes
// none of this.
func enqueue(tx *gorm.DB, org uuid.UUID, entries []queueEntry, now Instant) error {
	slices.SortFunc(entries, func(a, b queueEntry) int {
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
	const sooner = "excluded.lane < fetch_targets.lane OR (excluded.lane = fetch_targets.lane AND excluded.turn < fetch_targets.turn)"
	const restarts = "fetch_targets.route = '' OR (fetch_targets.state <> '" + StateActive + "' AND excluded.fetched_at IS NULL)"
	for chunk := range slices.Chunk(entries, insertChunk) {
		targets, subs := make([]fetchTarget, len(chunk)), make([]fetchSubscription, len(chunk))
		for i, e := range chunk {
			targets[i] = e.target(org, now)
			subs[i] = fetchSubscription{Bucket: bucket, Source: e.Source, Kind: e.Kind, ExternalID: e.ExternalID,
				OrganisationID: org, SubjectID: e.Subject, Handle: e.Handle, HandleAt: now, Preview: e.Preview}
		}
		err := tx.Clauses(clause.OnConflict{
			Columns: columns([]string{"bucket", "source", "kind", "external_id"}),
			DoUpdates: clause.Assignments(map[string]any{
				"turn":         gorm.Expr("CASE WHEN " + sooner + " THEN excluded.turn ELSE fetch_targets.turn END"),
				"asked_by":     gorm.Expr("CASE WHEN " + sooner + " THEN excluded.asked_by ELSE fetch_targets.asked_by END"),
				"route":        gorm.Expr("CASE WHEN " + restarts + " THEN excluded.route ELSE fetch_targets.route END"),
				"answers":      gorm.Expr("CASE WHEN " + restarts + " THEN NULL ELSE fetch_targets.answers END"),
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
			Columns: columns([]string{"bucket", "source", "kind", "external_id", "organisation_id"}),
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
	Kind       Kind
	ExternalID string // the platform's own id (for Instagram the shortcode)
	// Handle is the account's handle. For a video it is a handle that a source has confirmed; "" if there is none. For a fetch it may also be
	// a claimed handle.
	Handle string
	// HandleClaimed is true if Handle comes only from a caller's link and no source has confirmed it.
	HandleClaimed bool `gorm:"-"`
	// NeedDetails is true if the fetch needs title, account, upload date and the like as well as the counts.
	NeedDetails bool `gorm:"-"`
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
	FetchedAt *Instant // the last fetch that succeeded
	DetailsAt *Instant // the last that gave title, account and the like as well
	Views     *int64   // the last views written, of an account the last followers
	State     string
	Suspect   *string // the collector's note on a number held back
	// RequestedAt grows whenever somebody asks for it: about the time of the last wish.
	RequestedAt Instant
	// AccountID is an account's own id on the platform, and SourceID the id that its source uses (AccountFacts.SourceID). Each is "" until it is known.
	AccountID string `gorm:"column:native_id"`
	SourceID  string
	Depth     int // how many of an account's newest videos are wanted at least
	// Route is the source that the target is asked of next, and Answers what the sources before it have said (written by the collector; nil for none).
	Route   string
	Answers *string
	// AskedBy is the organisation that waits for the target in the interactive lane.
	AskedBy *uuid.UUID
}

// Claim is a lease on some targets.
type Claim struct {
	Token   uuid.UUID
	At      Instant
	Targets []Target
}

// ClaimRequest says what a collector claims.
type ClaimRequest struct {
	Collector uuid.UUID
	// Route is the source whose queue is claimed from.
	Route string
	// Kinds are the kinds of targets to claim.
	Kinds []Kind
	// Lanes are served in this order.
	Lanes []Lane
	// Idle limits the claim to waiting organisations that have no claimed target in this queue. Lanes must be the interactive lane.
	Idle bool
	// Candidates is how many due targets Pick may choose from.
	Candidates int
	// Ahead adds targets of the scheduled lanes that are due within this time from now, if there are fewer due targets than Candidates. It
	// never goes beyond the UTC day. Retries are never early. If no target is due, nothing is claimed.
	Ahead time.Duration
	// Pick chooses the targets of one call, all of one platform and kind, and returns the length of their lease.
	Pick func(due []Target) (batch []Target, lease time.Duration)
}

// Claim leases the due targets that Pick chooses: no other collector gets them before the lease ends. In the interactive lane, organisations
// with the fewest claimed targets come first, then the order of turns; in the others, the target that is due longest comes first. Targets
// without a subscription are deleted. The claim is empty if nothing is due.
func (s *Store) Claim(ctx context.Context, r ClaimRequest) (Claim, error) {
	c := Claim{Token: NewID(), At: s.now()}
	err := s.tx(ctx, func(tx *gorm.DB) error {
		c.Targets = nil
		due, err := s.candidates(tx, r, c.At)
		if err != nil || len(due) == 0 {
			return err
		}
		batch, lease := r.Pick(due)
		if len(batch) == 0 {
			return nil
		}
		for _, g := range byKind(batch) {
			err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = ?, token = ? WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ?`,
				c.At.Add(lease), r.Collector, c.Token, bucket, g.platform, g.kind, g.ids).Error
			if err != nil {
				return err
			}
		}
		c.Targets = batch
		return nil
	})
	slices.SortFunc(c.Targets, func(a, b Target) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
	return c, err
}

// Extend prolongs the lease of a claim before another call for its targets. It returns ErrLeaseLost if another collector has claimed one of
// them.
func (s *Store) Extend(ctx context.Context, c Claim, targets []Target, lease time.Duration) error {
	return s.tx(ctx, func(tx *gorm.DB) error {
		for _, g := range byKind(targets) {
			done := tx.Exec(`UPDATE fetch_targets SET next_at = ? WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? AND token = ?`,
				s.now().Add(lease), bucket, g.platform, g.kind, g.ids, c.Token)
			if done.Error != nil {
				return done.Error
			}
			if done.RowsAffected < int64(len(g.ids)) {
				return ErrLeaseLost
			}
		}
		return nil
	})
}

// candidates locks and returns up to r.Candidates targets that may be claimed, with their subscribers' handles.
func (s *Store) candidates(tx *gorm.DB, r ClaimRequest, now Instant) ([]Target, error) {
	var due []Target
	add := func(lane Lane, after, by Instant) error {
		for len(due) < r.Candidates {
			found, err := s.dueIn(tx, r, lane, after, by, r.Candidates-len(due))
			if err != nil || len(found) == 0 {
				return err
			}
			subscribed, err := dropOrphans(tx, found)
			due = append(due, subscribed...)
			if err != nil || len(subscribed) > 0 {
				return err
			}
			// All found targets were orphans. There may be more due targets behind them.
		}
		return nil
	}
	for _, lane := range r.Lanes {
		if err := add(lane, 0, now); err != nil {
			return nil, err
		}
	}
	if len(due) == 0 || r.Ahead == 0 {
		return due, nil
	}
	endOfDay := InstantOf((now.Day() + 1).Time()) - 1
	for _, lane := range Lanes[LanePremium:] {
		if err := add(lane, now, min(now.Add(r.Ahead), endOfDay)); err != nil {
			return nil, err
		}
	}
	return due, nil
}

// targetColumns are the columns of a Target.
const targetColumns = "t.source, t.kind, t.external_id, t.handle, t.link, t.lane, t.base_lane, t.pace, t.attempts, t.refused_as, t.refusals, t.fetched_at, t.details_at, t.views, t.state, t.suspect, t.requested_at, t.native_id, t.source_id, t.depth, t.route, t.answers, t.asked_by"

// waitingFront is how many targets of the interactive lane, in the order of turns, are considered for the fair order. The first target of
// each waiting organisation is among them unless that many organisations wait.
const waitingFront = 1000

// dueIn returns up to limit targets of a lane that are due after one time and by another. If after is not zero, it leaves out targets that are
// claimed or will be retried.
func (s *Store) dueIn(tx *gorm.DB, r ClaimRequest, lane Lane, after, by Instant, limit int) ([]Target, error) {
	var found []Target
	if lane == LaneInteractive {
		// "+next_at" keeps SQLite from an index that is not in the order of turns.
		idle := ""
		if r.Idle {
			idle = " AND held.targets IS NULL"
		}
		err := tx.Raw(`SELECT `+targetColumns+` FROM (
  SELECT source, kind, external_id FROM fetch_targets
   WHERE bucket = ? AND route = ? AND lane = 0 AND +next_at <= ? AND kind IN ? ORDER BY turn LIMIT ?) front
 CROSS JOIN fetch_targets t
 LEFT JOIN (SELECT asked_by, COUNT(*) AS targets FROM fetch_targets WHERE claimed_by IS NOT NULL AND bucket = ? AND route = ? AND lane = 0 GROUP BY asked_by) held
   ON held.asked_by = t.asked_by
 WHERE t.bucket = ? AND t.source = front.source AND t.kind = front.kind AND t.external_id = front.external_id AND t.lane = 0 AND t.next_at <= ?`+idle+`
 ORDER BY COALESCE(held.targets, 0), t.turn, t.next_at LIMIT ?`+forUpdateSkipLocked(s.dialect, "t"),
			bucket, r.Route, by, r.Kinds, waitingFront, bucket, r.Route, bucket, by, limit).Scan(&found).Error
		return found, err
	}
	early := ""
	if after > 0 {
		early = " AND t.claimed_by IS NULL AND t.attempts = 0 AND t.suspect IS NULL"
	}
	err := tx.Raw(`SELECT `+targetColumns+` FROM fetch_targets t
 WHERE t.bucket = ? AND t.route = ? AND t.lane = ? AND t.next_at > ? AND t.next_at <= ? AND t.kind IN ?`+early+`
 ORDER BY t.next_at LIMIT ?`+forUpdateSkipLocked(s.dialect, "t"),
		bucket, r.Route, lane, after, by, r.Kinds, limit).Scan(&found).Error
	return found, err
}

// claimedHandles is how many claimed handles of a video one fetch tries. The next fetch tries others, so two fetches find the right one
// among up to 60 claims.
const claimedHandles = 30

// claimants are the subscribers of a target that claim the same handle.
type claimants struct {
	ExternalID string
	Handle     string
}

// dropOrphans deletes the targets that have no subscription. It returns the other targets, each with the handles that its subscribers claim.
// A target that was requested after it was read is kept, because a subscription may have been added with that request.
func dropOrphans(tx *gorm.DB, targets []Target) ([]Target, error) {
	var readAt Instant
	for _, t := range targets {
		readAt = max(readAt, t.RequestedAt)
	}
	subscribed := map[string]bool{}
	handles := map[string][]claimants{}
	key := func(p link.Platform, kind Kind, id string) string { return string(kind) + "/" + targetKey(p, id) }
	for _, g := range byKind(targets) {
		var found []claimants
		err := tx.Raw(`SELECT external_id, handle FROM fetch_subscriptions
 WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? GROUP BY external_id, handle
 ORDER BY external_id, MIN(handle_at), COUNT(*) DESC, handle`, bucket, g.platform, g.kind, g.ids).Scan(&found).Error
		if err != nil {
			return targets, err
		}
		for _, f := range found {
			k := key(g.platform, g.kind, f.ExternalID)
			subscribed[k], handles[k] = true, append(handles[k], f)
		}
	}
	var orphans []Target
	kept := slices.DeleteFunc(slices.Clone(targets), func(t Target) bool {
		orphan := !subscribed[key(t.Platform, t.Kind, t.ExternalID)]
		if orphan {
			orphans = append(orphans, t)
		}
		return orphan
	})
	for i := range kept {
		kept[i].claimHandles(handles[key(kept[i].Platform, kept[i].Kind, kept[i].ExternalID)])
	}
	for _, g := range byKind(orphans) {
		err := tx.Exec(`DELETE FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? AND requested_at <= ?`,
			bucket, g.platform, g.kind, g.ids, readAt).Error
		if err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// claimHandles sets the Handles of a video.
func (t *Target) claimHandles(all []claimants) {
	if t.Kind != targetVideo {
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

// DueLanes returns the lanes in which a target of a source's queue is due, the most urgent first. It reads one index entry for each
// lane, whatever the size of the queue.
func (s *Store) DueLanes(ctx context.Context, route string) ([]Lane, error) {
	const earliest = "(SELECT MIN(next_at) FROM fetch_targets WHERE bucket = ? AND route = ? AND lane = ?)"
	columns, args := make([]string, len(Lanes)), []any{}
	for i, lane := range Lanes {
		columns[i] = earliest
		args = append(args, bucket, route, lane)
	}
	next := make([]sql.NullInt64, len(Lanes))
	into := make([]any, len(Lanes))
	for i := range next {
		into[i] = &next[i]
	}
	if err := s.read.WithContext(ctx).Raw("SELECT "+strings.Join(columns, ", "), args...).Row().Scan(into...); err != nil {
		return nil, translate(err)
	}
	now, due := s.now(), []Lane(nil)
	for i, lane := range Lanes {
		if next[i].Valid && Instant(next[i].Int64) <= now {
			due = append(due, lane)
		}
	}
	return due, nil
}

// Route is the first source for the targets of a platform and kind.
type Route struct {
	Platform link.Platform `gorm:"column:source;primaryKey"`
	Kind     Kind          `gorm:"primaryKey"`
	Route    string
}

// TableName tells GORM the table.
func (Route) TableName() string { return "fetch_routes" }

// PublishRoutes stores the first source for each platform and kind, for new targets. Targets whose route is none of the given sources start
// again with the first one.
func (s *Store) PublishRoutes(ctx context.Context, routes []Route, sources []string) error {
	for _, r := range routes {
		err := s.tx(ctx, func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{
				Columns: columns([]string{"source", "kind"}), DoUpdates: clause.AssignmentColumns([]string{"route"}),
			}).Create(&r).Error
		})
		for more := true; more && err == nil; {
			err = s.tx(ctx, func(tx *gorm.DB) error {
				done := tx.Exec(`UPDATE fetch_targets SET route = ?, answers = NULL FROM (
  SELECT external_id FROM fetch_targets WHERE bucket = ? AND source = ? AND kind = ? AND route NOT IN ? LIMIT ?) stray
 WHERE fetch_targets.bucket = ? AND fetch_targets.source = ? AND fetch_targets.kind = ? AND fetch_targets.external_id = stray.external_id`,
					r.Route, bucket, r.Platform, r.Kind, sources, reroutedAtOnce, bucket, r.Platform, r.Kind)
				more = done.RowsAffected == reroutedAtOnce
				return done.Error
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AssignRoutes gives the targets that have no route yet their first source. A target has no route if it was tracked while the first collector
// published its routes.
func (s *Store) AssignRoutes(ctx context.Context) error {
	return s.tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE fetch_targets SET route = r.route FROM fetch_routes r
 WHERE fetch_targets.bucket = ? AND fetch_targets.route = '' AND r.source = fetch_targets.source AND r.kind = fetch_targets.kind`, bucket).Error
	})
}

// reroutedAtOnce bounds the rows that one transaction of PublishRoutes locks.
const reroutedAtOnce = 5000

// Release gives a claim's targets back before their lease ends, due again at the time given: the source could not be
// asked. Their attempts do not count.
func (s *Store) Release(ctx context.Context, c Claim, at time.Time) error {
	return s.tx(ctx, func(tx *gorm.DB) error {
		for _, g := range byKind(c.Targets) {
			err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL
 WHERE bucket = ? AND source = ? AND kind = ? AND external_id IN ? AND token = ?`,
				InstantOf(at), bucket, g.platform, g.kind, g.ids, c.Token).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}

type kindGroup struct {
	platform link.Platform
	kind     Kind
	ids      []string
}

func byKind(targets []Target) []kindGroup {
	var groups []kindGroup
	for _, t := range targets {
		i := slices.IndexFunc(groups, func(g kindGroup) bool { return g.platform == t.Platform && g.kind == t.Kind })
		if i < 0 {
			groups, i = append(groups, kindGroup{platform: t.Platform, kind: t.Kind}), len(groups)
		}
		groups[i].ids = append(groups[i].ids, t.ExternalID)
	}
	return groups
}

// Heartbeat says that a collector lives, and makes the targets of collectors that have not said so for the time given
// due at once. It returns how many those were.
func (s *Store) Heartbeat(ctx context.Context, collector uuid.UUID, deadAfter time.Duration) (int64, error) {
	type collectorRow struct {
		ID     uuid.UUID
		SeenAt Instant
	}
	var freed int64
	err := s.tx(ctx, func(tx *gorm.DB) error {
		now := s.now()
		err := tx.Table("collectors").Clauses(clause.OnConflict{
			Columns: columns([]string{"id"}), DoUpdates: clause.AssignmentColumns([]string{"seen_at"}),
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
func (s *Store) Retire(ctx context.Context, collector uuid.UUID) error {
	return s.tx(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL WHERE claimed_by = ?`, s.now(), collector).Error; err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM collectors WHERE id = ?`, collector).Error
	})
}
