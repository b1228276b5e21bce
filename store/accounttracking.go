package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// DefaultPreview is how many videos of each tracked account are fetched for an organisation without a paid subscription. The operator can
// set another number.
const DefaultPreview = 5

// targetExternalID returns the external id that the target of an account has in the fetch queue. It prefers the platform's own id, then a source's id, then
// the handle.
func targetExternalID(a *Account) string {
	switch {
	case a.ExternalID != nil:
		return *a.ExternalID
	case a.SourceID != nil:
		return SourceIDMark + *a.SourceID
	}
	return "@" + a.Username
}

// IsAccountID returns true if the external id of an account in the fetch queue is the platform's own id of the
// account. For the other forms, see targetExternalID.
func IsAccountID(target string) bool {
	return !strings.HasPrefix(target, "@") && !strings.HasPrefix(target, SourceIDMark)
}

// ListDepths has, for each tracking type, how many of an account's newest videos are tracked when tracking begins.
var ListDepths = map[TrackingType]int{TrackLatest30: 30, TrackLatest200: 200, TrackNewOnly: 0, TrackAll: 5000}

// TrackAccounts tracks accounts in one transaction. The results are in the order of the links. Already tracked accounts keep their tracking type. If an
// id in r.CollectionIDs is unknown, TrackAccounts returns a *NotFoundError.
func (o *Org) TrackAccounts(ctx context.Context, r TrackRequest) ([]Tracked, error) {
	var out []Tracked
	err := db.RetryOnDuplicate(func() (err error) {
		out, err = o.trackAccounts(ctx, r)
		return err
	})
	return out, err
}

// trackAccounts runs one attempt of TrackAccounts. It returns ErrDuplicate if a concurrent transaction created one of the accounts.
func (o *Org) trackAccounts(ctx context.Context, r TrackRequest) ([]Tracked, error) {
	var out []Tracked
	err := o.changeData(ctx, func(t OrgTx) error {
		collections, err := t.collectionIDs(collectionRefs{r.CollectionIDs, r.CollectionNames, r.CreatedBy})
		if err != nil {
			return err
		}
		accounts, err := t.AccountRecords(r.Links)
		if err != nil {
			return err
		}
		org, err := ReadOrganisation(t.Tx, o.id)
		if err != nil {
			return err
		}
		plan := newAccountPlan(r, accounts, org, t.Now)
		out = plan.results
		if org.hasNoSubscription() { // with a subscription, no account is pending
			if err := t.markPendingAccounts(out, plan.already); err != nil {
				return err
			}
		}
		if err := t.saveCoveredDepths(plan.restarted); err != nil {
			return err
		}
		if err := t.markAccountsTracked(plan.start, plan.trackingType, int64(len(plan.restarted))); err != nil {
			return err
		}
		entries, err := t.enqueueAccounts(plan.entries, LaneOf(org))
		if err != nil {
			return err
		}
		markDeferred(out, entries)
		if !org.hasNoSubscription() {
			if err := t.resumeVideosOf(plan.recent, plan.trackingType, LaneOf(org)); err != nil {
				return err
			}
		}
		switch {
		case len(plan.restarted) > 0:
			err = t.updateSums(accountKeys(o.id, plan.restarted))
		case len(plan.start) > 0:
			err = db.RunWrites(t.Tx, t.statementsForToday(0)...)
		}
		if err != nil {
			return err
		}
		_, err = t.addMembers("account", collections, trackedIDs(out), nil)
		return err
	})
	return out, err
}

// accountPlan says what TrackAccounts does with each account of a request. An account that two links name is in results twice, and in no other
// list more than once.
type accountPlan struct {
	trackingType TrackingType  // that of the accounts whose tracking starts
	results      []Tracked     // in the order of the links; markPendingAccounts sets Pending of accounts that are already tracked
	already      []uuid.UUID   // accounts that are already tracked; they do not change
	start        []uuid.UUID   // accounts whose tracking starts
	restarted    []*Account    // the accounts of the list "start" that were tracked before
	entries      []queue.Entry // entries in the fetch queue, of the accounts of the list "start" that are fetched
	recent       []*Account    // restarted accounts that were fetched less than queue.RefreshPause ago
}

// newAccountPlan returns the plan for a request. The list "accounts" has the account of each link of the request.
func newAccountPlan(r TrackRequest, accounts []*Account, org Organisation, now db.Instant) accountPlan {
	p := accountPlan{results: make([]Tracked, len(accounts)), trackingType: cmp.Or(r.Type, TrackLatest30)}
	fetched := org.fetchedItems(len(accounts), r.Allowance)
	seen := make(map[uuid.UUID]bool, len(accounts))
	for i, a := range accounts {
		p.results[i] = Tracked{ID: a.ID, Existing: a.Tracked || a.Removed, Already: a.Tracked, WithoutSubscription: org.hasNoSubscription()}
		if kind := a.TypeOrDefault(); a.Tracked && r.Type != "" && kind != r.Type {
			p.results[i].KeptType = kind
		}
		if seen[a.ID] {
			continue // two links name this account, and the caller uses only the result of the first link
		}
		n := len(seen) // n counts also the accounts that are already tracked
		seen[a.ID] = true
		if a.Tracked {
			p.already = append(p.already, a.ID)
			continue
		}
		p.start = append(p.start, a.ID)
		if a.Removed {
			p.restarted = append(p.restarted, a)
		}
		if n >= fetched {
			p.results[i].Pending = true
			continue
		}
		e := AccountEntry(a, &p.trackingType, r.Preview, LaneOf(org), now)
		e.NeedsOlderVideos = a.Removed && e.Depth > a.coveredDepth()
		if n < r.Immediate {
			e.Lane = queue.LaneInteractive
		}
		if r.Unsupported != nil {
			e.Unsupported = r.Unsupported(r.Links[i])
		}
		p.entries = append(p.entries, e)
		// Usually, the next fetch of the account tracks its stopped videos again, if the tracking type includes them. If the last fetch was recent, the
		// next one can be hours away, and a fetch does not resume a video that was already resumed today. So TrackAccounts then resumes the videos itself.
		if a.Removed && a.CheckedAt != nil && now < a.CheckedAt.Add(queue.RefreshPause) {
			p.recent = append(p.recent, a)
		}
	}
	return p
}

// coveredDepth returns how many of the account's newest existing videos were already requested for the organisation: the largest number of all tracking
// periods. ListedDepth has the largest number of the ended periods. The present or last period counts only if the account was fetched since it began.
func (a *Account) coveredDepth() int {
	var depth int
	db.Assign(&depth, a.ListedDepth)
	if a.CheckedAt != nil && (a.TrackedAt == nil || *a.CheckedAt >= *a.TrackedAt) {
		depth = max(depth, ListDepths[a.TypeOrDefault()])
	}
	return depth
}

// saveCoveredDepths saves the coveredDepth of accounts that are tracked again, because their tracking type and their time of tracking are then
// replaced. So a caller cannot cause additional fetches by changing between a small and a large tracking type.
func (t OrgTx) saveCoveredDepths(accounts []*Account) error {
	changed := map[int][]uuid.UUID{}
	for _, a := range accounts {
		if depth := a.coveredDepth(); a.ListedDepth == nil || *a.ListedDepth < depth {
			changed[depth] = append(changed[depth], a.ID)
		}
	}
	for _, depth := range slices.Sorted(maps.Keys(changed)) {
		if err := db.Scoped(t.Tx, "accounts", t.id).Where("accounts.id IN ?", changed[depth]).Update("listed_depth", depth).Error; err != nil {
			return err
		}
	}
	return nil
}

// maxResumed is the maximum number of stopped videos that one call of TrackAccounts tracks again. The next fetch of an account tracks the others again.
const maxResumed = 5000

// resumeVideosOf restarts the tracking of stopped videos. For each account, it restarts the newest stopped videos, as many as the tracking type
// includes. resumeVideosOf leaves out videos that were tracked by their own links.
//
// The caller, TrackAccounts, passes only accounts that were fetched less than queue.RefreshPause ago. For an organisation without a subscription,
// resumeVideosOf is not called: only a few videos of each account are fetched, and the next fetch of the account chooses them.
func (t OrgTx) resumeVideosOf(accounts []*Account, kind TrackingType, lane queue.Lane) error {
	var resumed []Video
	for _, a := range accounts {
		var stopped []Video
		err := db.Scoped(t.Tx, "videos", t.id).Where("videos.linked_account_id = ? AND videos.removed AND NOT videos.direct", a.ID).
			Order("videos.uploaded_at DESC NULLS LAST, videos.id DESC").Limit(min(ListDepths[kind], maxResumed-len(resumed))).Find(&stopped).Error
		if err != nil {
			return err
		}
		resumed = append(resumed, stopped...)
	}
	if len(resumed) == 0 {
		return nil
	}
	if err := ResumeVideos(t.Tx, t.id, resumed, t.Now.Day()); err != nil {
		return err
	}
	entries, ids := make([]queue.Entry, len(resumed)), make([]uuid.UUID, len(resumed))
	for i := range resumed {
		entries[i], ids[i] = VideoEntry(&resumed[i], lane, t.Now), resumed[i].ID
	}
	if err := queue.Enqueue(t.Tx, t.id, entries, t.Now); err != nil {
		return err
	}
	return t.recordRestart(ids)
}

// accountKeys returns the keys of the rows of accounts, in the order of accounts.
func accountKeys(org uuid.UUID, accounts []*Account) []db.RowKey {
	ids := make([]uuid.UUID, len(accounts))
	for i, a := range accounts {
		ids[i] = a.ID
	}
	return db.KeysOf(org, ids)
}

// AccountEntry returns the entry with which an account is added to the fetch queue, due now. kind decides how many videos the next fetch lists; nil
// means none. For preview, see TrackRequest.
func AccountEntry(a *Account, kind *TrackingType, preview int, lane queue.Lane, now db.Instant) queue.Entry {
	e := queue.Entry{Platform: a.Platform, Kind: queue.KindAccount, ExternalID: targetExternalID(a), Handle: a.Username, Link: a.Link,
		Lane: lane, BaseLane: lane, NextAt: now, Subject: a.ID, Preview: preview, Known: db.Counts{Views: a.LatestFollowersCount}}
	if kind != nil {
		e.Depth = ListDepths[*kind]
	}
	if a.Removed { // the organisation has tracked the account before
		db.Assign(&e.TrackedAt, a.TrackedAt)
		db.Assign(&e.FetchedAt, a.CheckedAt)
	}
	return e
}

// enqueueAccounts adds the entries to the fetch queue. If the id of an account is unknown, the name of its target is its handle. Another
// account of the organisation that had this handle before can still have a subscription to this target. enqueueAccounts moves this subscription to the
// target of the other account's id. If the id of the other account is unknown, markUnreachable marks the other account.
//
// enqueueAccounts returns the added entries, including those of such other accounts.
func (t OrgTx) enqueueAccounts(entries []queue.Entry, lane queue.Lane) ([]queue.Entry, error) {
	subjects, platforms, names := map[string]uuid.UUID{}, []link.Platform{}, []string{}
	for _, e := range entries {
		if e.Kind == queue.KindAccount && !IsAccountID(e.ExternalID) {
			subjects[queue.TargetKey(e.Platform, e.ExternalID)] = e.Subject
			platforms, names = append(platforms, e.Platform), append(names, e.ExternalID)
		}
	}
	if len(names) == 0 {
		return entries, queue.Enqueue(t.Tx, t.id, entries, t.Now)
	}
	var found []queue.FetchSubscription
	err := t.Tx.Raw(`SELECT source, external_id, subject_id, preview FROM fetch_subscriptions
 WHERE organisation_id = ? AND bucket = ? AND source IN ? AND kind = ? AND external_id IN ?`, t.id, queue.Bucket, slices.Compact(slices.Sorted(slices.Values(platforms))), queue.KindAccount, names).Scan(&found).Error
	if err != nil {
		return nil, err
	}
	previews := map[uuid.UUID]int{}
	for _, s := range found {
		if subject, ok := subjects[queue.TargetKey(s.Platform, s.ExternalID)]; ok && subject != s.SubjectID {
			previews[s.SubjectID] = s.Preview
		}
	}
	if len(previews) == 0 {
		return entries, queue.Enqueue(t.Tx, t.id, entries, t.Now)
	}
	var earlier []Account
	err = db.Scoped(t.Tx, "accounts", t.id).Where("accounts.id IN ? AND accounts.tracked", slices.Collect(maps.Keys(previews))).Order("accounts.id").Find(&earlier).Error
	if err != nil {
		return nil, err
	}
	var lost []uuid.UUID
	for i := range earlier {
		a := &earlier[i]
		if a.ExternalID == nil && a.SourceID == nil {
			lost = append(lost, a.ID)
			continue
		}
		entries = append(entries, AccountEntry(a, a.TrackingType, previews[a.ID], lane, t.Now))
	}
	if err := t.markUnreachable(lost); err != nil {
		return nil, err
	}
	return entries, queue.Enqueue(t.Tx, t.id, entries, t.Now)
}

// handleLost is the reason of the status of an account that markUnreachable marks.
const handleLost = "The handle of the account belongs to another account now, and the id of the account is not known; track the account with its new handle"

// markUnreachable sets the status of accounts to "gone". They can no longer be fetched: another account has their handle now, and their ids are unknown.
func (t OrgTx) markUnreachable(ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return db.Scoped(t.Tx, "accounts", t.id).Where("accounts.id IN ?", ids).
		Updates(map[string]any{"fetch_status": queue.FetchGone, "fetch_reason": handleLost, "next_fetch_at": nil}).Error
}

// filterByLinks adds a condition to a query of accounts: an id or the present handle of the account must occur in one of the links. The query can also find
// accounts that belong to none of the links, because the condition does not compare platforms.
func filterByLinks(q *gorm.DB, links []link.Link) *gorm.DB {
	ids, handles, users := []string{""}, []string{""}, []string{""}
	for _, l := range links {
		ids, handles, users = append(ids, l.ID), append(handles, l.Handle, link.FoldUsername(l.ID)), append(users, userNameID(l.Platform, l.Handle))
	}
	return q.Where("(accounts.external_id IN ? OR (accounts.platform = ? AND accounts.source_id IN ?) OR (accounts.handle_current AND accounts.username IN ?))", ids, link.YouTube, users, handles)
}

// AccountRecords returns the account of each link, in the order of the links. It creates missing accounts.
func (t OrgTx) AccountRecords(links []link.Link) ([]*Account, error) {
	var known []*Account
	err := filterByLinks(db.Scoped(t.Tx, "accounts", t.id), links).Order("accounts.id").Find(&known).Error
	if err != nil {
		return nil, err
	}
	resolver := NewAccountResolver(t.id, t.Now, known)
	resolver.fromRequest = true
	out := make([]*Account, len(links))
	for i, l := range links {
		out[i] = resolver.Resolve(Author{Platform: l.Platform, ExternalID: l.ID, SourceID: userNameID(l.Platform, l.Handle), Username: l.Handle})
	}
	return out, resolver.Save(t.Tx)
}

// markAccountsTracked marks accounts as tracked and adds them to the organisation's totals. The number restartedCount says how many of these accounts
// were stopped before.
func (t OrgTx) markAccountsTracked(ids []uuid.UUID, kind TrackingType, restartedCount int64) error {
	if len(ids) == 0 {
		return nil
	}
	err := db.Scoped(t.Tx, "accounts", t.id).Where("accounts.id IN ?", ids).Updates(setPendingStatus(map[string]any{
		"tracked": true, "removed": false, "tracking_type": kind, "tracked_at": t.Now, "discovered_at": nil})).Error
	if err != nil {
		return err
	}
	return t.Tx.Exec("UPDATE organisation_totals SET accounts = accounts + ?, accounts_removed = accounts_removed - ? WHERE organisation_id = ?",
		len(ids), restartedCount, t.id).Error
}
