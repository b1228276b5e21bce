package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// This file is about videos and accounts that are saved but not fetched, because the organisation did not pay when it tracked them.

// enqueuePending adds the organisation's pending videos, which are saved but not fetched, to the fetch queue. It also adds the tracked
// accounts that are not in the queue yet. It does nothing if the organisation does not pay.
func (o *Org) enqueuePending(ctx context.Context) error {
	return o.changeData(ctx, func(t OrgTx) error {
		org, err := ReadOrganisation(t.Tx, o.id)
		if err != nil || org.hasNoSubscription() { // the organisation can have stopped paying meanwhile
			return err
		}
		// One statement both returns the pending videos and ends their waiting. If one statement read them and another one updated them, a video
		// that becomes pending in between would be updated, but not added to the queue.
		var videos []Video
		err = db.Scoped(t.Tx.Model(&videos).Clauses(clause.Returning{}), "videos", o.id).Where("videos.pending").Update("pending", false).Error
		if err != nil {
			return err
		}
		entries := make([]queue.Entry, 0, len(videos))
		lane := LaneOf(org)
		for i := range videos {
			entries = append(entries, VideoEntry(&videos[i], lane, t.Now))
		}
		accounts, unreachable, err := t.unsubscribedAccounts()
		if err != nil {
			return err
		}
		if err := t.markUnreachable(unreachable); err != nil {
			return err
		}
		for i := range accounts {
			entries = append(entries, AccountEntry(&accounts[i], accounts[i].TrackingType, 0, lane, t.Now))
		}
		_, err = t.enqueueAccounts(entries, lane)
		return err
	})
}

// markPendingAccounts sets Pending in the results of those accounts that were tracked before the request and are not in the fetch queue. The
// parameter ids has the accounts that were tracked before.
func (t OrgTx) markPendingAccounts(results []Tracked, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	fetched, err := t.subscribedAccounts("AND subject_id IN ?", ids)
	for i, r := range results {
		if r.Already {
			results[i].Pending = !fetched[r.ID]
		}
	}
	return err
}

// subscribedAccounts returns the accounts for which the organisation has a subscription in the fetch queue. The parameter condition is an
// additional condition on fetch_subscriptions with its arguments, or "".
func (t OrgTx) subscribedAccounts(condition string, args ...any) (map[uuid.UUID]bool, error) {
	var ids []uuid.UUID
	err := t.Tx.Raw(`SELECT subject_id FROM fetch_subscriptions WHERE organisation_id = ? AND kind = ? `+condition, append([]any{t.id, queue.KindAccount}, args...)...).Scan(&ids).Error
	subscribed := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		subscribed[id] = true
	}
	return subscribed, err
}

// unsubscribedAccounts returns the tracked accounts that the organisation does not have in the fetch queue. An account is unreachable if neither the
// platform's own id nor a source's id is known for it, and another tracked account of the organisation owns the target with its handle. "unreachable" has
// the ids of these accounts, and "accounts" has all others.
func (t OrgTx) unsubscribedAccounts() (accounts []Account, unreachable []uuid.UUID, err error) {
	fetched, err := t.subscribedAccounts("")
	if err != nil {
		return nil, nil, err
	}
	// The account that has the handle now comes last, so the target belongs to it, even if an earlier account with this handle has a subscription.
	err = db.Scoped(t.Tx, "accounts", t.id).Where("accounts.tracked").Order("accounts.handle_current, accounts.id").Find(&accounts).Error
	owners := make(map[string]uuid.UUID, len(accounts))
	key := func(a *Account) string { return queue.TargetKey(a.Platform, targetExternalID(a)) }
	for i := range accounts {
		a := &accounts[i]
		if _, owned := owners[key(a)]; !owned || fetched[a.ID] || a.HandleCurrent {
			owners[key(a)] = a.ID
		}
	}
	accounts = slices.DeleteFunc(accounts, func(a Account) bool {
		lost := !fetched[a.ID] && owners[key(&a)] != a.ID
		if lost {
			unreachable = append(unreachable, a.ID)
		}
		return lost || fetched[a.ID]
	})
	return accounts, unreachable, err
}
