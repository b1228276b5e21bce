package queue

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Target is a video or account that a collector has claimed from the queue. Until the lease of the claim ends, no other collector can claim
// it.
type Target struct {
	// In the tables fetch_targets, fetch_subscriptions and fetch_routes, the column "source" has the platform, and not a source as in docs/glossary.md.
	Platform   link.Platform `gorm:"column:source"`
	Kind       Kind
	ExternalID string // the platform's own id of the video or account; for an Instagram video the shortcode
	// Handle is the account's handle. For a video, Claim sets it only if a source has confirmed the
	// handle.
	Handle string
	// HandleClaimed is true if Handle is an unconfirmed handle, which the collector tries in this fetch.
	HandleClaimed bool `gorm:"-"`
	// NeedDetails is true if the fetch must also return details, such as title, account and upload date, and not only counts.
	NeedDetails bool `gorm:"-"`
	// Handles are unconfirmed handles of the video's account, sorted by FetchSubscription.HandleAt.
	// The handle "" stands for a link without a handle. If there are other handles, "" is not the first.
	Handles   []string `gorm:"-"`
	Link      string
	Lane      Lane
	BaseLane  Lane // lane of the target while no organisation waits for a fetch
	Pace      Pace
	Attempts  int         // number of failed fetches since the last successful fetch
	RefusedAs string      // kind of the last refusal: "gone", "unconfirmed" or "refused"; a temporary failure is not a refusal
	Refusals  int         // number of consecutive refusals of the kind RefusedAs
	FetchedAt *db.Instant // time of the last successful fetch
	DetailsAt *db.Instant // time of the last successful fetch with details
	State     string
	Detail    string  // reason why the last attempt gave no numbers, as text for operators
	Suspect   *string // the collector's note on a count that it has not stored, because the count is suspicious
	// Counts are the last stored counts of a video. Before its first fetch, these are the known counts: see Entry.Known. For an account, Views are the
	// last stored number of followers, and the other counts are nil.
	db.Counts
	// RequestedAt is the time of the last request to fetch the target. Each request raises it by at least a microsecond.
	RequestedAt db.Instant
	// AccountID is the platform's own id of an account, or "" if the id is unknown.
	AccountID string `gorm:"column:native_id"`
	SourceID  string // id that the source uses for the account; "" if unknown or if the source has no own ids
	Depth     int    // for an account: the minimum number of newest videos to request from the source
	// Route is the source to ask next.
	Route   string
	Answers *string // what other sources have already answered in this attempt, in the collector's format; nil if no source was asked before Route
	// AskedBy is the organisation whose request put the target into the interactive lane.
	AskedBy *uuid.UUID
}

// Key returns the key of the target.
func (t *Target) Key() Key { return Key{t.Platform, t.Kind, t.ExternalID} }

// Claim is a set of targets that one collector has leased.
type Claim struct {
	Token   uuid.UUID
	At      db.Instant
	Targets []Target
}

// ClaimRequest says which targets a collector claims.
type ClaimRequest struct {
	Collector uuid.UUID
	// Route is the name of a source. The claim takes only targets whose next fetch uses this source.
	Route string
	// Kinds are the kinds of targets to claim.
	Kinds []Kind
	// Lanes are the lanes to claim from. A later lane is used only if the earlier lanes have fewer
	// than Candidates due targets.
	Lanes []Lane
	// If OnlyIdleOrganisations is true, the claim skips organisations for which this source is already fetching a target of the
	// interactive lane. Lanes must then contain only this lane.
	OnlyIdleOrganisations bool
	// Candidates is the maximum number of due targets among which Pick chooses.
	Candidates int
	// Ahead is how long before its due time a target can be claimed. Claim uses it only if the number of due
	// targets is at least one and less than Candidates.
	Ahead time.Duration
	// Pick chooses the targets for the next call to the source, all of one platform and kind. It
	// also chooses the duration of the lease.
	Pick func(due []Target) (batch []Target, lease time.Duration)
}

// Claim leases the due targets that r.Pick chooses: until the lease ends, no other collector can claim
// them. It also deletes due targets that no organisation tracks any more. The claim is empty if no target is due. r.Pick
// gets the most urgent targets first.
func (s *Queue) Claim(ctx context.Context, r ClaimRequest) (Claim, error) {
	c := Claim{Token: db.NewID(), At: s.db.Now()}
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		c.Targets = nil
		due, err := s.lockCandidates(tx, r, c.At)
		if err != nil || len(due) == 0 {
			return err
		}
		batch, lease := r.Pick(due)
		if len(batch) == 0 {
			return nil
		}
		for _, g := range GroupByKind(batch) {
			err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = ?, token = ? WHERE ?`, c.At.Add(lease), r.Collector, c.Token, g.Condition()).Error
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

// Extend prolongs the lease of targets of a claim, before the collector makes another call for the targets. It returns ErrLeaseLost if one of
// the targets does not belong to the claim any more.
func (s *Queue) Extend(ctx context.Context, c Claim, targets []Target, lease time.Duration) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		for _, g := range GroupByKind(targets) {
			done := tx.Exec(`UPDATE fetch_targets SET next_at = ? WHERE ? AND token = ?`, s.db.Now().Add(lease), g.Condition(), c.Token)
			if done.Error != nil {
				return done.Error
			}
			if done.RowsAffected < int64(len(g.IDs)) {
				return ErrLeaseLost
			}
		}
		return nil
	})
}

// lockCandidates finds and locks up to r.Candidates targets that may be claimed. Due targets that no organisation tracks are deleted instead.
// lockCandidates sets the field Handles of each video in the result.
func (s *Queue) lockCandidates(tx *gorm.DB, r ClaimRequest, now db.Instant) ([]Target, error) {
	var due []Target
	add := func(lane Lane, after, by db.Instant) error {
		for len(due) < r.Candidates {
			found, err := s.dueTargets(tx, r, lane, after, by, r.Candidates-len(due))
			if err != nil || len(found) == 0 {
				return err
			}
			subscribed, err := dropOrphans(tx, found)
			due = append(due, subscribed...)
			if err != nil || len(subscribed) > 0 {
				return err
			}
			// All targets that were found were deleted, because no organisation tracks them. Continue the loop, because more targets may be due.
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
	// A target is claimed early only if it becomes due on the current UTC day. The interactive lane has no
	// early targets.
	endOfDay := db.InstantOf((now.Day() + 1).Time()) - 1
	for _, lane := range Lanes[LanePremium:] {
		if err := add(lane, now, min(now.Add(r.Ahead), endOfDay)); err != nil {
			return nil, err
		}
	}
	return due, nil
}

// targetColumns are the SQL columns that are read into a Target. In these columns, t is the alias of fetch_targets.
var targetColumns = "t.source, t.kind, t.external_id, t.handle, t.link, t.lane, t.base_lane, t.pace, t.attempts, t.refused_as, t.refusals, t.fetched_at, t.details_at, " +
	db.MetricColumns("t.{m}") + ", t.state, t.detail, t.suspect, t.requested_at, t.native_id, t.source_id, t.depth, t.route, t.answers, t.asked_by"

// comparedTargets is the number of due targets that an interactive claim compares: those with the lowest turns.
// It compares more if further targets have the same turn as the last of them.
const comparedTargets = 1000

// dueTargets returns targets of a lane whose due time is later than dueAfter and not later than
// dueBy.
func (s *Queue) dueTargets(tx *gorm.DB, r ClaimRequest, lane Lane, dueAfter, dueBy db.Instant, limit int) ([]Target, error) {
	var found []Target
	if lane == LaneInteractive {
		// Targets of the organisation with the fewest claimed targets come first. Among equals, the
		// lowest turn comes first.
		idle := ""
		if r.OnlyIdleOrganisations {
			idle = " AND held.targets IS NULL"
		}
		// The plus sign in "+t.next_at <= ?" prevents SQLite from using the index on next_at. That
		// index is not in the order of the column "turn".
		err := tx.Raw(`SELECT `+targetColumns+` FROM fetch_targets t
 LEFT JOIN (SELECT asked_by, COUNT(*) AS targets FROM fetch_targets WHERE claimed_by IS NOT NULL AND bucket = ? AND route = ? AND lane = 0 GROUP BY asked_by) held
   ON held.asked_by = t.asked_by
 WHERE t.bucket = ? AND t.route = ? AND t.lane = 0 AND +t.next_at <= ? AND t.kind IN ?
   AND t.turn <= COALESCE((SELECT f.turn FROM fetch_targets f WHERE f.bucket = ? AND f.route = ? AND f.lane = 0 AND +f.next_at <= ? AND f.kind IN ?
     ORDER BY f.turn LIMIT 1 OFFSET ?), ?)`+idle+`
 ORDER BY COALESCE(held.targets, 0), t.turn, t.next_at LIMIT ?`+db.ForUpdateSkipLocked(tx, "t"),
			Bucket, r.Route, Bucket, r.Route, dueBy, r.Kinds, Bucket, r.Route, dueBy, r.Kinds, comparedTargets-1, int64(math.MaxInt64), limit).Scan(&found).Error
		return found, err
	}
	early := ""
	// Leave out claimed targets, and targets whose last fetch failed or returned a suspicious
	// count.
	if dueAfter > 0 {
		early = " AND t.claimed_by IS NULL AND t.attempts = 0 AND t.suspect IS NULL"
	}
	err := tx.Raw(`SELECT `+targetColumns+` FROM fetch_targets t
 WHERE t.bucket = ? AND t.route = ? AND t.lane = ? AND t.next_at > ? AND t.next_at <= ? AND t.kind IN ?`+early+`
 ORDER BY t.next_at LIMIT ?`+db.ForUpdateSkipLocked(tx, "t"),
		Bucket, r.Route, lane, dueAfter, dueBy, r.Kinds, limit).Scan(&found).Error
	return found, err
}

// maxUnconfirmedHandles is the maximum number of unconfirmed handles to try in one fetch of a video. The
// next fetch tries further handles.
const maxUnconfirmedHandles = 30

// unconfirmedHandle is the account handle in a link with which an organisation tracks a target. No source has confirmed the handle.
type unconfirmedHandle struct {
	ExternalID string
	Handle     string
}

// dropOrphans deletes a target from the queue if no organisation tracks it any more. It returns the other
// targets, and sets the field Handles of videos.
func dropOrphans(tx *gorm.DB, targets []Target) ([]Target, error) {
	var latestRequest db.Instant
	for _, t := range targets {
		latestRequest = max(latestRequest, t.RequestedAt)
	}
	handles := map[Key][]unconfirmedHandle{} // a target with a subscription has at least one handle, which can be ""
	for _, g := range GroupByKind(targets) {
		var found []unconfirmedHandle
		err := tx.Raw(`SELECT external_id, handle FROM fetch_subscriptions
 WHERE ? GROUP BY external_id, handle
 ORDER BY external_id, MIN(handle_at), COUNT(*) DESC, handle`, g.Condition()).Scan(&found).Error
		if err != nil {
			return targets, err
		}
		for _, f := range found {
			key := Key{g.Platform, g.Kind, f.ExternalID}
			handles[key] = append(handles[key], f)
		}
	}
	var orphans []Target
	kept := slices.DeleteFunc(slices.Clone(targets), func(t Target) bool {
		orphan := len(handles[t.Key()]) == 0
		if orphan {
			orphans = append(orphans, t)
		}
		return orphan
	})
	for i := range kept {
		kept[i].setHandles(handles[kept[i].Key()])
	}
	// Keep an orphan that was requested meanwhile, because the request may have added a
	// subscription.
	for _, g := range GroupByKind(orphans) {
		if err := tx.Exec(`DELETE FROM fetch_targets WHERE ? AND requested_at <= ?`, g.Condition(), latestRequest).Error; err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// setHandles sets t.Handles of a video to at most maxUnconfirmedHandles of the given handles. It leaves
// out the confirmed handle t.Handle.
func (t *Target) setHandles(all []unconfirmedHandle) {
	if t.Kind != KindVideo {
		return
	}
	for _, c := range all {
		if (c.Handle == "" || c.Handle != t.Handle) && len(t.Handles) < maxUnconfirmedHandles {
			t.Handles = append(t.Handles, c.Handle)
		}
	}
	switch {
	case len(t.Handles) == 1 && t.Handles[0] == "" && t.Handle == "":
		t.Handles = nil
	case len(t.Handles) > 1 && t.Handles[0] == "": // swap the first two handles, because the first one is empty and some sources cannot use an empty handle
		t.Handles[0], t.Handles[1] = t.Handles[1], t.Handles[0]
	}
}

// DueLanes returns the lanes in which a target is due for the given source, the most urgent lane
// first.
func (s *Queue) DueLanes(ctx context.Context, sourceName string) ([]Lane, error) {
	// Read only one index entry for each lane, so that a longer queue takes no more time.
	const earliest = "(SELECT MIN(next_at) FROM fetch_targets WHERE bucket = ? AND route = ? AND lane = ?)"
	columns, args := make([]string, len(Lanes)), []any{}
	for i, lane := range Lanes {
		columns[i] = earliest
		args = append(args, Bucket, sourceName, lane)
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

// Release ends the lease of claimed targets early. The token is that of the claim. The targets become due at nextAt, and their numbers of
// failed attempts do not change.
func (s *Queue) Release(ctx context.Context, token uuid.UUID, targets []Target, nextAt time.Time) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		for _, g := range GroupByKind(targets) {
			err := tx.Exec(`UPDATE fetch_targets SET next_at = ?, claimed_by = NULL, token = NULL WHERE ? AND token = ?`,
				db.InstantOf(nextAt), g.Condition(), token).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}
