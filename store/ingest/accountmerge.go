package ingest

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// merge combines two records of the same account. a is the record that was fetched. It returns the record that stays: see compareForMerge.
// The other record's videos, days and memberships move to it. The account keeps the tracking of the record that was tracked first: the
// tracking type of a tracked account does not change, and a stopped account is tracked again.
func (d discovery) merge(a, other *store.Account) (*store.Account, error) {
	into, from, tracking := a, other, *a
	if compareForMerge(other, a) < 0 {
		into, from = other, a
	}
	var began, otherBegan db.Instant
	db.Assign(&began, a.TrackedAt)
	db.Assign(&otherBegan, other.TrackedAt)
	if other.Tracked && otherBegan < began {
		tracking = *other
	}
	if err := d.countMerged(a, other); err != nil {
		return nil, err
	}
	if err := d.moveAll(from.ID, into.ID); err != nil {
		return nil, err
	}
	before := *into
	into.Tracked, into.Removed = true, false
	into.TrackingType, into.TrackedAt, into.DiscoveredAt = tracking.TrackingType, tracking.TrackedAt, tracking.DiscoveredAt
	adopt(into, from)
	err := db.Scoped(d.tx, "accounts", d.org).Where("accounts.id = ?", into.ID).Updates(map[string]any{
		"tracked": true, "removed": false, "tracking_type": into.TrackingType, "tracked_at": into.TrackedAt,
		"external_id": into.ExternalID, "source_id": into.SourceID, "name": into.Name}).Error
	if err != nil {
		return nil, err
	}
	if err := d.addFollowers(*from, store.Account{}); err != nil {
		return nil, err
	}
	return into, d.addFollowers(before, *into)
}

// compareForMerge orders duplicate records so that the one to keep comes first: tracked before untracked, fetched before unfetched, older
// before newer.
func compareForMerge(a, b *store.Account) int {
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	return cmp.Or(first(a.Tracked || a.Removed, b.Tracked || b.Removed), first(a.CheckedAt != nil, b.CheckedAt != nil),
		cmp.Compare(a.CreatedAt, b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
}

// adopt copies into a what the record from knows. If from was fetched later, its whole profile is copied. Otherwise only missing values
// are.
func adopt(a, from *store.Account) {
	older, newer := *from, *a
	if from.CheckedAt != nil && (a.CheckedAt == nil || *from.CheckedAt > *a.CheckedAt) {
		older, newer = *a, *from
		a.CheckedAt, a.Private, a.Empty = from.CheckedAt, from.Private, from.Empty
	}
	a.ExternalID = cmp.Or(a.ExternalID, from.ExternalID)
	a.SourceID = cmp.Or(a.SourceID, from.SourceID)
	a.Name = cmp.Or(newer.Name, older.Name)
	a.Bio = cmp.Or(newer.Bio, older.Bio)
	a.ProfileLink = cmp.Or(newer.ProfileLink, older.ProfileLink)
	a.LatestFollowersCount = cmp.Or(newer.LatestFollowersCount, older.LatestFollowersCount)
	a.LatestFollowingCount = cmp.Or(newer.LatestFollowingCount, older.LatestFollowingCount)
}

// countMerged updates the totals: the records now count as one tracked account.
func (d discovery) countMerged(records ...*store.Account) error {
	tracked, removed := 0, 0
	for _, r := range records {
		switch {
		case r.Tracked:
			tracked++
		case r.Removed:
			removed++
		}
	}
	return d.tx.Exec("UPDATE organisation_totals SET accounts = accounts - ?, accounts_removed = accounts_removed - ? WHERE organisation_id = ?",
		tracked-1, removed, d.org).Error
}

// moveAll moves everything that refers to the record from to the record to, and deletes from. If both have a row for a day, the row of to
// stays, and gets the followers of from if it has none. One subscription remains.
func (d discovery) moveAll(from, to uuid.UUID) error {
	// If both have a subscription, delete one, and recompute the lane of its target.
	err := queue.Unsubscribe(d.tx, d.org, `kind = ? AND subject_id = ?
 AND EXISTS (SELECT 1 FROM fetch_subscriptions k WHERE k.organisation_id = ? AND k.kind = ? AND k.subject_id = ?)`, store.KindAccount, from, d.org, store.KindAccount, to)
	if err != nil {
		return err
	}
	named := map[string]any{"org": d.org, "from": from, "to": gorm.Expr("CAST(? AS "+db.UUIDType(d.tx)+")", to)}
	for _, statement := range []string{
		`UPDATE fetch_subscriptions SET subject_id = @to WHERE organisation_id = @org AND kind = 'account' AND subject_id = @from`,
		`UPDATE videos SET linked_account_id = @to WHERE organisation_id = @org AND linked_account_id = @from`,
		`INSERT INTO collection_accounts (organisation_id, collection_id, account_id, added_at)
SELECT m.organisation_id, m.collection_id, @to, m.added_at FROM collection_accounts m WHERE m.organisation_id = @org AND m.account_id = @from
ON CONFLICT (organisation_id, collection_id, account_id) DO NOTHING`,
		`INSERT INTO account_days (organisation_id, account_id, day, followers, following, videos, ` + store.MetricColumns("{m}") + `, fetched_at, source)
SELECT d.organisation_id, @to, d.day, d.followers, d.following, d.videos, ` + store.MetricColumns("d.{m}") + `, d.fetched_at, d.source
  FROM account_days d WHERE d.organisation_id = @org AND d.account_id = @from
ON CONFLICT (organisation_id, account_id, day) DO UPDATE SET followers = COALESCE(account_days.followers, excluded.followers),
  following = COALESCE(account_days.following, excluded.following)`,
		`DELETE FROM accounts WHERE organisation_id = @org AND id = @from`,
	} {
		if err := d.tx.Exec(statement, named).Error; err != nil {
			return err
		}
	}
	return nil
}
