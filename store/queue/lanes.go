package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Lane is the priority of a target. The collector divides its calls between the lanes by weight.
type Lane int

// The lanes, the most urgent first. If several organisations track a target, they can need it in different lanes. It is then in the most urgent
// of these.
const (
	LaneInteractive Lane = iota // interactive: an organisation waits for the fetch
	LanePremium
	LaneBasic
	LaneFree
)

// String returns the lane's name.
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

// Lanes lists all lanes, the most urgent first.
var Lanes = []Lane{LaneInteractive, LanePremium, LaneBasic, LaneFree}

// A target's base lane is the lane of its scheduled fetches: the most urgent lane of its
// subscribers. Enqueue and UpdateLanes keep the base lane up to date.

// RefreshPause is how long an organisation must wait after a fetch of a target before it can request the next fetch.
const RefreshPause = 4 * time.Hour

// These stored values decide the lane of an organisation: see LaneOf.
const (
	PremiumTier    = "premium" // tier of organisations whose targets get LanePremium
	NoSubscription = "none"    // subscription of organisations that do not pay
)

// LaneOf returns the lane of the scheduled fetches of an organisation with the given tier and subscription. laneSQL is the same rule in
// SQL.
func LaneOf(tier, subscription string) Lane {
	switch {
	case subscription == NoSubscription:
		return LaneFree
	case tier == PremiumTier:
		return LanePremium
	}
	return LaneBasic
}

// laneSQL is the rule of LaneOf as a SQL expression for a row of organisations with the alias o. If a LEFT JOIN finds no organisation, the lane is
// LaneFree.
var laneSQL = fmt.Sprintf("CASE WHEN o.id IS NULL OR o.subscription = '%s' THEN %d WHEN o.tier = '%s' THEN %d ELSE %d END",
	NoSubscription, LaneFree, PremiumTier, LanePremium, LaneBasic)

// UpdateLanes gives each target the most urgent lane among its current subscribers, or LaneFree if it has none. A target in the interactive
// lane stays there until its fetch ends.
func UpdateLanes(tx *gorm.DB, targets []FetchSubscription) error {
	if len(targets) == 0 {
		return nil
	}
	// First lock the targets in a separate statement. It waits for the end of each transaction that holds one of these locks, so the UPDATE sees the
	// changes of these transactions.
	list, args, err := lockTargets(tx, targets)
	if err != nil {
		return err
	}
	organisations, tiers, tierArgs, err := subscriberTable(tx, list, args)
	if err != nil {
		return err
	}
	// Claim deletes targets without a subscription later. Until then, an organisation can subscribe to them, and Enqueue can only make their
	// lanes more urgent. So they get the least urgent lane here.
	return tx.Exec(list+tiers+`, best AS (
  SELECT u.bucket, u.source, u.kind, u.external_id, MIN(`+laneSQL+`) AS lane FROM u
   LEFT JOIN fetch_subscriptions s ON `+SameTarget("s", "u")+`
   LEFT JOIN `+organisations+` o ON o.id = s.organisation_id
   GROUP BY u.bucket, u.source, u.kind, u.external_id)
UPDATE fetch_targets SET base_lane = best.lane, lane = CASE WHEN fetch_targets.lane = ? THEN fetch_targets.lane ELSE best.lane END FROM best
 WHERE `+SameTarget("fetch_targets", "best")+`
   AND (fetch_targets.base_lane <> best.lane OR fetch_targets.lane NOT IN (?, best.lane))`,
		slices.Concat(args, tierArgs, []any{LaneInteractive, LaneInteractive})...).Error
}

// lockTargets sorts the subscriptions and locks their targets, in the same order as Enqueue does, so that concurrent transactions cannot deadlock.
// It returns a WITH clause with the list "u" of the targets, and its arguments.
func lockTargets(tx *gorm.DB, targets []FetchSubscription) (list string, args []any, err error) {
	slices.SortFunc(targets, func(a, b FetchSubscription) int { return a.Key().Compare(b.Key()) })
	rows := make([][]any, len(targets))
	for i, t := range targets {
		rows[i] = []any{Bucket, t.Platform, t.Kind, t.ExternalID, i}
	}
	list, args = db.WithRows(tx, "u", []string{"bucket smallint", "source text", "kind text", "external_id text", "place integer"}, rows)
	return list, args, db.LockRows(tx, list+`SELECT u.place FROM u CROSS JOIN fetch_targets t
 WHERE `+SameTarget("t", "u")+` ORDER BY u.place`, "t", args...)
}

// subscriberTable returns the name of a table with the tiers of the organisations that track the targets in listSQL.
// On Citus, this is a table of the WITH clause: the caller must append tiersSQL to listSQL, and tiersArgs to listArgs.
// Otherwise it is the table organisations, and tiersSQL and tiersArgs are empty.
func subscriberTable(tx *gorm.DB, listSQL string, listArgs []any) (name, tiersSQL string, tiersArgs []any, err error) {
	if !db.IsSharded(tx) {
		return "organisations", "", nil, nil
	}
	// On Citus, a join of "organisations" with the queue would not use the indexes of the queue.
	var subscribed []FetchSubscription
	err = tx.Raw(listSQL+`SELECT DISTINCT s.organisation_id FROM u CROSS JOIN fetch_subscriptions s
 WHERE `+SameTarget("s", "u"), listArgs...).Find(&subscribed).Error
	if err != nil {
		return "", "", nil, err
	}
	ids := make([]uuid.UUID, len(subscribed))
	for i, s := range subscribed {
		ids[i] = s.OrganisationID
	}
	var found []struct {
		ID                 uuid.UUID
		Tier, Subscription string
	}
	if len(ids) > 0 {
		if err := tx.Raw("SELECT id, tier, subscription FROM organisations WHERE id IN ?", ids).Find(&found).Error; err != nil {
			return "", "", nil, err
		}
	}
	rows := make([][]any, len(found))
	for i, o := range found {
		rows[i] = []any{o.ID, o.Tier, o.Subscription}
	}
	tiersSQL, tiersArgs = db.WithRows(tx, "tiers", []string{"id uuid", "tier text", "subscription text"}, rows)
	return "tiers", strings.Replace(tiersSQL, "WITH ", ", ", 1), tiersArgs, nil
}

// Unsubscribe deletes the organisation's subscriptions that match a condition, and updates the lanes of their targets.
func Unsubscribe(tx *gorm.DB, org uuid.UUID, condition string, args ...any) error {
	_, err := unsubscribe(tx, org, condition, args...)
	return err
}

// unsubscribe does the work of Unsubscribe and returns the deleted subscriptions.
func unsubscribe(tx *gorm.DB, org uuid.UUID, condition string, args ...any) (deleted []FetchSubscription, err error) {
	err = tx.Raw(`DELETE FROM fetch_subscriptions WHERE organisation_id = ? AND `+condition+` RETURNING source, kind, external_id`,
		append([]any{org}, args...)...).Scan(&deleted).Error
	if err != nil {
		return nil, err
	}
	return deleted, UpdateLanes(tx, deleted)
}

// SubscriptionsAfter returns the next batch of the organisation's subscriptions, ordered by subject id (the id of a video or account). The batch
// begins after the subject id afterID.
func SubscriptionsAfter(tx *gorm.DB, org, afterID uuid.UUID) (next []FetchSubscription, err error) {
	// Batches are ranges of subject ids and not of external ids, because the external id of an account can change between two batches. The subject
	// id never changes.
	return next, tx.Raw(`SELECT source, kind, external_id, subject_id FROM fetch_subscriptions
 WHERE organisation_id = ? AND subject_id > ? AND subject_id <= (
  SELECT p.subject_id FROM (SELECT n.subject_id FROM fetch_subscriptions n WHERE n.organisation_id = ? AND n.subject_id > ? ORDER BY n.subject_id LIMIT ?) p
   ORDER BY p.subject_id DESC LIMIT 1) ORDER BY subject_id`, org, afterID, org, afterID, db.InsertChunk).Scan(&next).Error
}
