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

// mergeRecords merges two records of one account into one tracked record, and returns it. The
// parameter `fetched` is the record of the fetched target.
func (d accountWriter) mergeRecords(fetched, other *store.Account) (*store.Account, error) {
	into, from := fetched, other
	if compareForMerge(other, fetched) < 0 {
		into, from = other, fetched
	}
	// Tracking began with the record that was tracked first. The tracking type is the one that tracks more existing videos, because the
	// organisation was told that these videos are tracked. DiscoveredAt says whether these videos were found, so it comes from the record that gives the
	// tracking type.
	trackedAt, typed := fetched.TrackedAt, *fetched
	if other.Tracked {
		var began, otherBegan db.Instant
		db.Assign(&began, fetched.TrackedAt)
		db.Assign(&otherBegan, other.TrackedAt)
		if otherBegan < began {
			trackedAt = other.TrackedAt
		}
		depth, otherDepth := store.ListDepths[fetched.TypeOrDefault()], store.ListDepths[other.TypeOrDefault()]
		if otherDepth > depth || otherDepth == depth && otherBegan < began {
			typed = *other
		}
	}
	if err := d.correctTotals(fetched, other); err != nil {
		return nil, err
	}
	if err := d.moveRows(from.ID, into.ID); err != nil {
		return nil, err
	}
	before := *into
	into.Tracked, into.Removed = true, false
	into.TrackingType, into.TrackedAt, into.DiscoveredAt = typed.TrackingType, trackedAt, typed.DiscoveredAt
	into.FetchState = fetched.FetchState
	mergeValues(into, from)
	err := db.Scoped(d.tx, "accounts", d.org).Where("accounts.id = ?", into.ID).Updates(map[string]any{
		"tracked": true, "removed": false, "tracking_type": into.TrackingType, "tracked_at": into.TrackedAt,
		"external_id": into.ExternalID, "source_id": into.SourceID, "name": into.Name, "listed_depth": into.ListedDepth, "fetch_status": into.FetchStatus}).Error
	if err != nil {
		return nil, err
	}
	if err := d.addFollowers(*from, store.Account{}); err != nil {
		return nil, err
	}
	return into, d.addFollowers(before, *into)
}

// compareForMerge orders duplicate records, so that the record to keep comes first. It prefers, in this order:
//
//   - records that are or were tracked
//   - fetched records
//   - older records
func compareForMerge(a, b *store.Account) int {
	trueFirst := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	return cmp.Or(trueFirst(a.Tracked || a.Removed, b.Tracked || b.Removed), trueFirst(a.CheckedAt != nil, b.CheckedAt != nil),
		cmp.Compare(a.CreatedAt, b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
}

// mergeValues copies values from src to dst if dst does not have them. If src was fetched later,
// its known profile values also replace those of dst.
func mergeValues(dst, src *store.Account) {
	older, newer := *src, *dst
	if src.CheckedAt != nil && (dst.CheckedAt == nil || *src.CheckedAt > *dst.CheckedAt) {
		older, newer = *dst, *src
		dst.CheckedAt, dst.Private, dst.Empty = src.CheckedAt, src.Private, src.Empty
	}
	dst.ExternalID = cmp.Or(dst.ExternalID, src.ExternalID)
	dst.SourceID = cmp.Or(dst.SourceID, src.SourceID)
	dst.Name = cmp.Or(newer.Name, older.Name)
	dst.Bio = cmp.Or(newer.Bio, older.Bio)
	dst.ProfileLink = cmp.Or(newer.ProfileLink, older.ProfileLink)
	dst.LatestFollowersCount = cmp.Or(newer.LatestFollowersCount, older.LatestFollowersCount)
	if dst.ListedDepth == nil || src.ListedDepth != nil && *src.ListedDepth > *dst.ListedDepth {
		dst.ListedDepth = src.ListedDepth
	}
	dst.LatestFollowingCount = cmp.Or(newer.LatestFollowingCount, older.LatestFollowingCount)
}

// correctTotals corrects the organisation's account totals after a merge, so that the given records count as one tracked account.
func (d accountWriter) correctTotals(records ...*store.Account) error {
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

// moveRows moves the rows of the old account to the kept account, and deletes the old account.
func (d accountWriter) moveRows(oldID, keptID uuid.UUID) error {
	// If both accounts have a subscription, delete the subscription of the old account, and update the lane of the old account's target.
	err := queue.Unsubscribe(d.tx, d.org, `kind = ? AND subject_id = ?
 AND EXISTS (SELECT 1 FROM fetch_subscriptions k WHERE k.organisation_id = ? AND k.kind = ? AND k.subject_id = ?)`, queue.KindAccount, oldID, d.org, queue.KindAccount, keptID)
	if err != nil {
		return err
	}
	if err := d.mergeDays(oldID, keptID); err != nil {
		return err
	}
	named := map[string]any{"org": d.org, "from": oldID, "to": gorm.Expr("CAST(? AS "+db.UUIDType(d.tx)+")", keptID)}
	for _, statement := range []string{
		`UPDATE fetch_subscriptions SET subject_id = @to WHERE organisation_id = @org AND kind = 'account' AND subject_id = @from`,
		`UPDATE videos SET linked_account_id = @to WHERE organisation_id = @org AND linked_account_id = @from`,
		// If both accounts are in a collection, the earlier added_at stays: the collection's gains count from this time.
		`INSERT INTO collection_accounts (organisation_id, collection_id, account_id, added_at)
SELECT m.organisation_id, m.collection_id, @to, m.added_at FROM collection_accounts m WHERE m.organisation_id = @org AND m.account_id = @from
ON CONFLICT (organisation_id, collection_id, account_id) DO UPDATE SET added_at = excluded.added_at WHERE excluded.added_at < collection_accounts.added_at`,
		`DELETE FROM accounts WHERE organisation_id = @org AND id = @from`,
	} {
		if err := d.tx.Exec(statement, named).Error; err != nil {
			return err
		}
	}
	return nil
}

// mergeDays gives the kept account a history with the videos of both accounts. Each day of the two histories has the sum of the last known
// values of both.
func (d accountWriter) mergeDays(oldID, keptID uuid.UUID) error {
	var stored []store.AccountDay
	err := db.Scoped(d.tx, "account_days", d.org).Where("account_id IN ?", []uuid.UUID{oldID, keptID}).Order("day").Find(&stored).Error
	if err != nil || len(stored) == 0 {
		return err
	}
	last := map[uuid.UUID]store.AccountDay{} // the last row of each of the two accounts
	var merged []store.AccountDay
	for len(stored) > 0 {
		n := 1
		if len(stored) > 1 && stored[1].Day == stored[0].Day {
			n = 2
		}
		sum := store.AccountDay{OrganisationID: d.org, AccountID: keptID, Day: stored[0].Day}
		for _, row := range stored[:n] {
			last[row.AccountID] = row
			if row.AccountID == keptID { // the followers of the kept account are preferred
				sum.Followers, sum.Following = cmp.Or(row.Followers, sum.Followers), cmp.Or(row.Following, sum.Following)
			} else {
				sum.Followers, sum.Following = cmp.Or(sum.Followers, row.Followers), cmp.Or(sum.Following, row.Following)
			}
			if row.FetchedAt != nil && (sum.FetchedAt == nil || *row.FetchedAt > *sum.FetchedAt) || sum.Source == nil {
				sum.FetchedAt, sum.Source = row.FetchedAt, row.Source
			}
		}
		gained, unknown := (*int64)(nil), false
		for _, row := range last {
			sum.Videos += row.Videos
			sum.Add(row.Counts)
			unknown = unknown || row.HasUnknownGain()
			gained = db.AddKnown(gained, row.ViewsGained)
		}
		if unknown { // earlier gains cannot be compared with later ones
			for k := range merged {
				merged[k].ViewsGained = nil
			}
		} else {
			sum.ViewsGained = gained
		}
		merged, stored = append(merged, sum), stored[n:]
	}
	if err := d.tx.Exec("DELETE FROM account_days WHERE organisation_id = ? AND account_id IN ?", d.org, []uuid.UUID{oldID, keptID}).Error; err != nil {
		return err
	}
	if err := d.tx.Table("account_days").CreateInBatches(merged, db.InsertChunk).Error; err != nil {
		return err
	}
	return d.tx.Exec("UPDATE accounts SET views_gained = ?, views_gained_7d = ? WHERE organisation_id = ? AND id = ?",
		merged[len(merged)-1].ViewsGained, store.GainedIn7Days(merged), d.org, keptID).Error
}
