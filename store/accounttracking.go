package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/link"
)

// TrackAccountsRequest asks that accounts be tracked: their videos are found and tracked, and go on being found.
type TrackAccountsRequest struct {
	// Links are of kind account. Two may turn out to mean the same account, one by its id and one by its handle.
	Links           []link.Link
	Type            TrackingType
	CollectionIDs   []uuid.UUID
	CollectionNames []string
	CreatedBy       uuid.UUID
	Lane            Lane
	// Immediate and Enqueue are as in TrackRequest, and count accounts.
	Immediate, Enqueue int
	// Preview is how many videos of each account are fetched while the organisation has no subscription; 0 means
	// DefaultPreview.
	Preview int
}

// DefaultPreview is the preview allowance unless the operator sets another one.
const DefaultPreview = 5

// TrackedAccount is what became of one link.
type TrackedAccount struct {
	AccountID uuid.UUID
	Existing  bool // the account was tracked before
	Already   bool // it was being tracked
}

// targetAccount is the queue's kind for accounts.
const targetAccount = KindAccount

// accountTarget is what an account is called in the queue: its own id where it is known, else its source's, else its handle.
func accountTarget(a *Account) string {
	switch {
	case a.ExternalID != nil:
		return *a.ExternalID
	case a.SourceID != nil:
		return sourceIDMark + *a.SourceID
	}
	return "@" + a.Username
}

// IsAccountID says whether an account's target is called by the platform's own id.
func IsAccountID(target string) bool {
	return !strings.HasPrefix(target, "@") && !strings.HasPrefix(target, sourceIDMark)
}

// depths says how many of its newest videos are wanted when an account is first tracked.
var depths = map[TrackingType]int{TrackLatest30: 30, TrackLatest200: 200, TrackNewOnly: 0, TrackAll: 5000}

// TrackAccounts tracks accounts and returns, in the order of the links, what became of each; otherwise as Track. An
// account that is tracked already keeps its tracking type. Of an account that was stopped, those videos are taken up
// again that were found through it alone and that the tracking type wants, once its list has been fetched.
func (o *Org) TrackAccounts(ctx context.Context, r TrackAccountsRequest) ([]TrackedAccount, error) {
	var out []TrackedAccount
	err := o.s.repeatOnDuplicate(func() (err error) {
		out, err = o.trackAccounts(ctx, r)
		return err
	})
	return out, err
}

func (o *Org) trackAccounts(ctx context.Context, r TrackAccountsRequest) ([]TrackedAccount, error) {
	var out []TrackedAccount
	err := o.change(ctx, func(tx *gorm.DB) error {
		t := tracking{Org: o, tx: tx, now: o.s.now()}
		collections, err := t.collections(collectionRefs{r.CollectionIDs, r.CollectionNames, r.CreatedBy})
		if err != nil {
			return err
		}
		accounts, err := t.accountRecords(r.Links)
		if err != nil {
			return err
		}
		out = make([]TrackedAccount, len(accounts))
		var entries []queueEntry
		var start []uuid.UUID
		var again int64
		seen := make(map[uuid.UUID]bool, len(accounts))
		for i, a := range accounts {
			out[i] = TrackedAccount{AccountID: a.ID, Existing: a.Tracked || a.Removed, Already: a.Tracked}
			if seen[a.ID] {
				continue
			}
			n := len(seen)
			seen[a.ID] = true
			if a.Tracked {
				continue
			}
			if a.Removed {
				again++
			}
			start = append(start, a.ID)
			if n < r.Enqueue {
				entries = append(entries, accountEntry(a, r, n < r.Immediate, t.now))
			}
		}
		if err := t.startAccounts(start, r.Type, again); err != nil {
			return err
		}
		if err := enqueue(tx, o.id, entries, t.now); err != nil {
			return err
		}
		return t.addAccountMembers(collections, out)
	})
	return out, err
}

func accountEntry(a *Account, r TrackAccountsRequest, immediate bool, now Instant) queueEntry {
	e := queueEntry{Source: a.Platform, Kind: targetAccount, ExternalID: accountTarget(a), Handle: a.Username, Link: a.Link,
		Lane: r.Lane, BaseLane: r.Lane, NextAt: slotAfter(now, a.Platform, accountTarget(a)), Subject: a.ID, Depth: depths[r.Type], Preview: r.Preview}
	if a.Removed { // it was tracked before
		set(&e.TrackedAt, a.TrackedAt)
		set(&e.FetchedAt, a.CheckedAt)
	}
	if immediate {
		e.Lane, e.NextAt = LaneInteractive, now
	}
	return e
}

// accountRecords returns the account of each link, locked, made where there is none.
func (t tracking) accountRecords(links []link.Link) ([]*Account, error) {
	ids, names := []string{""}, []string{""}
	for _, l := range links {
		ids, names = append(ids, l.ID), append(names, l.Handle, link.FoldUsername(l.ID))
	}
	q := scoped(t.tx, "accounts", t.id).
		Where("(accounts.external_id IN ? OR (accounts.handle_current AND accounts.username IN ?))", ids, names).Order("accounts.id")
	if t.s.dialect.skipLocked() {
		q = q.Clauses(forUpdate)
	}
	book := accountBook{org: t.id, now: t.now, claimed: true}
	if err := q.Find(&book.rows).Error; err != nil {
		return nil, err
	}
	out := make([]*Account, len(links))
	for i, l := range links {
		out[i] = book.enter(author{platform: l.Platform, externalID: l.ID, username: l.Handle})
	}
	return out, book.save(t.tx)
}

func (t tracking) startAccounts(ids []uuid.UUID, kind TrackingType, again int64) error {
	if len(ids) == 0 {
		return nil
	}
	err := scoped(t.tx, "accounts", t.id).Where("accounts.id IN ?", ids).Updates(map[string]any{
		"tracked": true, "removed": false, "tracking_type": kind, "tracked_at": t.now, "discovered_at": nil}).Error
	if err != nil {
		return err
	}
	return t.tx.Exec("UPDATE organisation_totals SET accounts = accounts + ?, accounts_removed = accounts_removed - ? WHERE organisation_id = ?",
		len(ids), again, t.id).Error
}

func (t tracking) addAccountMembers(collections []uuid.UUID, accounts []TrackedAccount) error {
	var rows []collectionAccount
	for _, c := range collections {
		for _, a := range accounts {
			rows = append(rows, collectionAccount{OrganisationID: t.id, CollectionID: c, AccountID: a.AccountID, AddedAt: t.now})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b collectionAccount) int {
		return cmp.Or(slices.Compare(a.CollectionID[:], b.CollectionID[:]), slices.Compare(a.AccountID[:], b.AccountID[:]))
	})
	return t.tx.Clauses(doNothing("organisation_id", "collection_id", "account_id")).CreateInBatches(rows, insertChunk).Error
}

// unsubscribedAccounts are those that are being tracked and that nobody fetches for the organisation.
func (o *Org) unsubscribedAccounts(tx *gorm.DB) ([]Account, error) {
	var subscribed []uuid.UUID
	err := tx.Raw(`SELECT subject_id FROM fetch_subscriptions WHERE organisation_id = ? AND kind = ?`, o.id, targetAccount).Scan(&subscribed).Error
	if err != nil {
		return nil, err
	}
	fetched := make(map[uuid.UUID]bool, len(subscribed))
	for _, id := range subscribed {
		fetched[id] = true
	}
	var accounts []Account
	err = scoped(tx, "accounts", o.id).Where("accounts.tracked").Find(&accounts).Error
	return slices.DeleteFunc(accounts, func(a Account) bool { return fetched[a.ID] }), err
}

// StopAccounts ends the tracking of accounts, and of those of their videos that were only found through them; otherwise
// as StopVideos.
func (o *Org) StopAccounts(ctx context.Context, refs []AccountRef, all bool) (unmatched []AccountRef, err error) {
	err = o.change(ctx, func(tx *gorm.DB) error {
		unmatched = nil
		var ids []uuid.UUID
		for _, ref := range refs {
			var found []uuid.UUID
			if err := accountWhere(scoped(tx, "accounts", o.id), ref).Where("accounts.tracked").Pluck("id", &found).Error; err != nil {
				return err
			}
			if len(found) == 0 {
				unmatched = append(unmatched, ref)
			}
			ids = append(ids, found...)
		}
		if len(ids) == 0 || (all && len(unmatched) > 0) {
			return nil
		}
		ids = distinct(ids)
		stopped := scoped(tx, "accounts", o.id).Where("accounts.id IN ? AND accounts.tracked", ids).Updates(map[string]any{"tracked": false, "removed": true})
		if stopped.Error != nil {
			return stopped.Error
		}
		if err := unsubscribe(tx, o.s.dialect, o.id, "subject_id IN ?", ids); err != nil {
			return err
		}
		if err := o.stopDiscovered(tx, ids); err != nil {
			return err
		}
		return tx.Exec("UPDATE organisation_totals SET accounts = accounts - ?, accounts_removed = accounts_removed + ? WHERE organisation_id = ?",
			stopped.RowsAffected, stopped.RowsAffected, o.id).Error
	})
	return unmatched, err
}

// stopDiscovered stops the videos that are tracked for their accounts' sake alone.
func (o *Org) stopDiscovered(tx *gorm.DB, accounts []uuid.UUID) error {
	err := unsubscribe(tx, o.s.dialect, o.id, `subject_id IN
 (SELECT v.id FROM videos v WHERE v.organisation_id = ? AND v.linked_account_id IN ? AND NOT v.direct AND NOT v.removed)`, o.id, accounts)
	if err != nil {
		return err
	}
	stopped := scoped(tx, "videos", o.id).Where("videos.linked_account_id IN ? AND NOT videos.direct AND NOT videos.removed", accounts).
		Updates(map[string]any{"removed": true, "pending": false})
	if stopped.Error != nil {
		return stopped.Error
	}
	if err := refreshAccounts(tx, keysOf(o.id, accounts), stamp{day: o.s.now().Day()}); err != nil {
		return err
	}
	return tx.Exec("UPDATE organisation_totals SET videos = videos - ?, videos_removed = videos_removed + ? WHERE organisation_id = ?",
		stopped.RowsAffected, stopped.RowsAffected, o.id).Error
}
