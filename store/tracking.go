package store

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// TrackRequest is a request to track videos with Track, or accounts with TrackAccounts. "Items" are these videos or accounts.
type TrackRequest struct {
	// Links are the links of the items. Two links must not name the same video. Two links can name the same account, one by id and one by
	// handle.
	Links []link.Link
	// CollectionIDs are existing collections. All items of the request are added to each of them, including items that are already
	// tracked.
	CollectionIDs []uuid.UUID
	// CollectionNames are names of root collections to which the items are added. A missing collection is created.
	CollectionNames []string
	// CreatedBy is the id of the API token that is stored as the creator of new collections.
	CreatedBy uuid.UUID
	// Immediate is how many of the items get the highest priority in the fetch queue: the lane "interactive". They are the first different items
	// in Links. All other items get the lane of the organisation.
	Immediate int
	// Allowance is the number of items that are fetched if the organisation has no subscription: the first ones in Links, where equal items count
	// once. All other items are saved but not fetched. An item that is already tracked uses up a part of the allowance, but does not change.
	Allowance int
	// Unsupported is a function that returns why no configured source can fetch an item. It returns
	// "" for other items. If it is nil, all items are fetchable.
	Unsupported func(link.Link) string

	// Type says which existing videos of new accounts are tracked. "" means TrackLatest30. Only TrackAccounts uses it.
	Type TrackingType
	// Preview is how many videos of each account are fetched while the organisation has no paid subscription. 0 means DefaultPreview. Only
	// TrackAccounts uses it.
	Preview int

	// Scheduled is for Track only. If it is true, the first fetch of each video waits for the video's time of day (queue.SlotAfter), and Immediate
	// is ignored. Otherwise, the videos are fetched as soon as possible.
	Scheduled bool
	// Imported is for Track only. It is true if an import tracks the videos. The import changes the organisation's points itself: a new video counts from the day of
	// its first point, or from today if it has no points.
	Imported bool
	// Known are for Track only. They are the counts of the videos before their first fetch, in the order of Links. Known is nil if a request has no counts.
	// Counts of a video that the organisation already had are ignored.
	Known []db.Counts
}

// Tracked is the result of Track or TrackAccounts for one link.
type Tracked struct {
	ID                  uuid.UUID
	Existing            bool // the organisation already had the item, tracked or stopped
	Already             bool // the organisation already tracked the item
	Pending             bool // the item is saved but not fetched, because the organisation has no subscription
	Deferred            bool // the item was stopped and was fetched less than queue.RefreshPause ago, so it waits for its next scheduled fetch
	WithoutSubscription bool // the organisation has no subscription, so at most Allowance items of the request are fetched; equal in all results of a request
	// KeptType is the tracking type of an account that was tracked already, if the request names another type. It is "" otherwise.
	KeptType TrackingType
}

// trackedIDs returns the ids of the results.
func trackedIDs(results []Tracked) []uuid.UUID {
	ids := make([]uuid.UUID, len(results))
	for i := range results {
		ids[i] = results[i].ID
	}
	return ids
}

// Track tracks videos and returns one result for each link, in the same order. After an error, no video is tracked. If an id in r.CollectionIDs is
// unknown, Track returns a *NotFoundError.
func (o *Org) Track(ctx context.Context, r TrackRequest) ([]Tracked, error) {
	named := collectionRefs{r.CollectionIDs, r.CollectionNames, r.CreatedBy}
	raise := db.RaiseVersions
	if named.isEmpty() {
		raise = db.RaiseDataVersions // the request does not change collections, so the version of the labels can stay the same
	}
	var tracked []Tracked
	err := o.s.db.Tx(ctx, func(tx *gorm.DB) error {
		t := OrgTx{Org: o, Tx: tx, Now: o.s.db.Now()}
		// raise locks the organisation, so concurrent equal requests track each video once.
		if err := raise(tx, t.Now, o.id); err != nil {
			return err
		}
		collections, err := t.collectionIDs(named)
		if err != nil {
			return err
		}
		if tracked, err = t.TrackVideos(r); err != nil {
			return err
		}
		_, err = t.addMembers("video", collections, trackedIDs(tracked), nil)
		return err
	})
	return tracked, err
}

// eventRecorder returns the recorder for the events of t. If t.WithoutEvents is true, the recorder ignores all events.
func (t OrgTx) eventRecorder() (*EventRecorder, error) {
	if t.WithoutEvents {
		return NewEventRecorder(t.Tx, t.Now)
	}
	return NewEventRecorder(t.Tx, t.Now, t.id)
}

// AccountIDs returns the ids of the links' accounts, with AccountKey as the key. It creates missing
// accounts and skips links without a handle.
func (t OrgTx) AccountIDs(links []link.Link) (map[string]uuid.UUID, error) {
	_, ids, _, err := t.storedVideos(links)
	if err != nil {
		return nil, err
	}
	return ids, db.RunWrites(t.Tx, t.statementsForMissingAccounts(links, ids, false)...)
}

// statementsForMissingAccounts returns the statements that insert missing accounts of the links. It adds the new ids
// to the map "ids", which has AccountKey as the key. If tracked is true, each link is a new tracked video of its account.
func (t OrgTx) statementsForMissingAccounts(links []link.Link, ids map[string]uuid.UUID, tracked bool) []db.Write {
	videos := map[string]int64{} // the number of new tracked videos of each account
	for _, l := range links {
		if key := AccountKey(l.Platform, l.Handle); tracked {
			videos[key]++
		} else {
			videos[key] = 0
		}
	}
	var missing []Account
	var existing [][]any
	for _, l := range links {
		key := AccountKey(l.Platform, l.Handle)
		added, isFirst := videos[key]
		if delete(videos, key); !isFirst || l.Handle == "" {
			continue
		}
		if id, ok := ids[key]; ok {
			existing = append(existing, []any{t.id, id, added})
			continue
		}
		ids[key] = db.NewID()
		missing = append(missing, Account{OrganisationID: t.id, ID: ids[key], Platform: l.Platform, Username: l.Handle,
			HandleCurrent: true, Link: link.AccountURL(l.Platform, l.Handle), CreatedAt: t.Now, TotalVideosTracked: added})
	}
	var writes []db.Write
	if len(missing) > 0 {
		writes = statementsForNewAccounts(t.Tx, missing)
	}
	if tracked && len(existing) > 0 {
		list := db.OrgRows{Name: "e", Columns: []string{"organisation_id uuid", "id uuid", "added bigint"}, Rows: existing}
		writes = append(writes, list.StatementsForExec(t.Tx, `UPDATE accounts SET total_videos_tracked = total_videos_tracked + e.added
 FROM e WHERE accounts.organisation_id = {org} AND accounts.id = e.id`)...)
	}
	return writes
}

// videoPlan says which videos of a request are fetched, and with which priority.
type videoPlan struct {
	TrackRequest
	lane                queue.Lane // the organisation's lane
	withoutSubscription bool       // the organisation has no subscription
	fetched             int        // how many videos, the first in Links, are fetched
}

// TrackVideos saves the videos of a request, and adds them to the queue. It returns a result for each link.
func (t OrgTx) TrackVideos(r TrackRequest) ([]Tracked, error) {
	before, accounts, org, err := t.storedVideos(r.Links)
	if err != nil {
		return nil, err
	}
	p := videoPlan{TrackRequest: r, lane: LaneOf(org), withoutSubscription: org.hasNoSubscription(), fetched: org.fetchedItems(len(r.Links), r.Allowance)}
	tracked, restarted, err := t.trackStoredVideos(p, before)
	if err != nil {
		return nil, err
	}
	var missing []link.Link
	for i, l := range r.Links {
		tracked[i].WithoutSubscription = p.withoutSubscription
		if !tracked[i].Existing {
			missing = append(missing, l)
		}
	}
	writes := t.statementsForMissingAccounts(missing, accounts, true)
	if len(missing) > 0 {
		// In two cases, other functions write the organisation's point of today: updateSums if stopped videos are tracked again, and the import if it
		// tracks the videos.
		if len(restarted) == 0 && !r.Imported {
			writes = append(writes, t.statementsForToday(len(missing))...)
		}
		videos := make([]Video, 0, len(missing))
		for i := range r.Links {
			if !tracked[i].Existing {
				v := t.newVideo(p, i, accounts)
				videos = append(videos, v)
				tracked[i].ID, tracked[i].Pending = v.ID, v.Pending
			}
		}
		writes = append(writes, statementsForNewVideos(t.Tx, videos)...)
	}
	if started := len(missing) + len(restarted); started > 0 {
		writes = append(writes, db.Write{Statement: `UPDATE organisation_totals SET videos = videos + ?, videos_removed = videos_removed - ? WHERE organisation_id = ?`,
			Args: []any{started, len(restarted), t.id}})
	}
	entries := t.queueEntries(p, tracked, before)
	enqueue, err := queue.StatementsForEnqueue(t.Tx, t.id, entries, t.Now)
	if err != nil {
		return nil, err
	}
	markDeferred(tracked, entries)
	if err := db.RunWrites(t.Tx, append(writes, enqueue...)...); err != nil || len(restarted) == 0 {
		return tracked, err
	}
	ids := make([]uuid.UUID, len(restarted))
	for i, v := range restarted {
		ids[i] = v.ID
	}
	if err := t.recordRestart(ids); err != nil {
		return nil, err
	}
	return tracked, t.updateSums(t.accountsOf(restarted))
}

// trackStoredVideos tracks the videos of a request that are already stored, and returns a result for each link. Links without a stored video have a zero
// result. restarted has the videos that were stopped and are now tracked again.
func (t OrgTx) trackStoredVideos(p videoPlan, before map[string]storedVideo) (tracked []Tracked, restarted []storedVideo, err error) {
	tracked = make([]Tracked, len(p.Links))
	changed := map[videoChange][]uuid.UUID{}
	for i, l := range p.Links {
		v, known := before[queue.TargetKey(l.Platform, l.ID)]
		if !known {
			continue
		}
		// Shortly after a subscription has begun, the column "pending" of a tracked video can still be true, although the video will be fetched soon.
		tracked[i] = Tracked{ID: v.ID, Existing: true, Already: !v.Removed, Pending: !v.Removed && v.Pending && p.withoutSubscription || v.Removed && i >= p.fetched}
		switch {
		case v.Removed:
			// The video was stopped and is now tracked again.
			restarted = append(restarted, v)
			change := videoChange{resumed: true, pending: tracked[i].Pending, today: t.Now.Day()}
			changed[change] = append(changed[change], v.ID)
		case !v.Direct:
			changed[videoChange{}] = append(changed[videoChange{}], v.ID)
		}
	}
	for change, ids := range changed {
		if err := db.Scoped(t.Tx, "videos", t.id).Where("videos.id IN ?", ids).Updates(change.changedColumns()).Error; err != nil {
			return nil, nil, err
		}
	}
	return tracked, restarted, nil
}

// newVideo returns the video to insert for the link with the index i. The map accountIDs has the ids of accounts, with AccountKey as the key.
func (t OrgTx) newVideo(p videoPlan, i int, accountIDs map[string]uuid.UUID) Video {
	v := NewVideo(t.id, p.Links[i], accountIDs, t.Now)
	v.Direct, v.Pending = true, i >= p.fetched
	if v.Pending {
		return v
	}
	next, unsupported := p.firstFetch(i, t.Now)
	if v.NextFetchAt = &next; unsupported != "" {
		v.FetchStatus, v.FetchReason, v.NextFetchAt = queue.FetchUnsupported, unsupported, nil
	}
	return v
}

// videoChange says how the row of a stored video changes if a request tracks the video by its own
// link.
type videoChange struct {
	resumed bool    // the video was stopped before and is now tracked again
	pending bool    // the resumed video is saved but not fetched, because it is not in the fetch queue; always false if resumed is false
	today   db.Date // the present day; 0 if resumed is false
}

// changedColumns returns the new value of each column that changes, with the name of the column as the key.
func (c videoChange) changedColumns() map[string]any {
	// "direct" says that a caller has tracked the video itself, by its link.
	columns := map[string]any{"direct": true}
	if c.resumed {
		columns["pending"] = c.pending
		columns = setResumed(columns, c.today)
	}
	return columns
}

// storedVideo is a stored video, with only the fields that are needed to track it.
type storedVideo struct {
	ID              uuid.UUID
	LinkedAccountID *uuid.UUID
	Removed, Direct bool
	Pending         bool
	CreatedAt       db.Instant
	LatestUpdatedAt *db.Instant
	Latest          db.Counts `gorm:"embedded;embeddedPrefix:latest_"`
}

// storedVideos returns what is stored about the links: the videos by queue.TargetKey, and the accounts by AccountKey. It also returns the tier and
// subscription of the organisation. If there are no links, it reads nothing, and all results are empty.
func (t OrgTx) storedVideos(links []link.Link) (videos map[string]storedVideo, accounts map[string]uuid.UUID, org Organisation, err error) {
	videos, accounts = map[string]storedVideo{}, map[string]uuid.UUID{}
	if len(links) == 0 {
		return videos, accounts, org, nil
	}
	wanted := make([][]any, len(links))
	for i, l := range links {
		wanted[i] = []any{t.id, i, l.Platform, l.ID, l.Handle}
	}
	type row struct {
		I         int
		AccountID *uuid.UUID
		Video     storedVideo `gorm:"embedded"`
		// Only the row of the first link has the tier and subscription of the organisation.
		Tier         *Tier
		Subscription *Subscription
	}
	// This transaction has locked the organisation, so no other transaction starts or stops the
	// tracking of these videos, or changes the tier or subscription.
	list := db.OrgRows{Name: "wanted", Columns: []string{"organisation_id uuid", "i integer", "platform text", "external_id text", "handle text"}, Rows: wanted}
	found, err := db.FindRows[row](t.Tx, list, `SELECT wanted.i, a.id AS account_id, v.id, v.linked_account_id, v.removed, v.direct, v.pending, v.created_at, v.latest_updated_at, `+db.MetricColumns("v.latest_{m}")+`, o.tier, o.subscription FROM wanted
 LEFT JOIN organisations o ON o.id = {org} AND wanted.i = 0
 LEFT JOIN videos v ON v.organisation_id = {org} AND v.platform = wanted.platform AND v.external_id = wanted.external_id
 LEFT JOIN accounts a ON a.organisation_id = {org} AND a.platform = wanted.platform AND a.username = wanted.handle AND a.handle_current
 WHERE v.id IS NOT NULL OR a.id IS NOT NULL OR o.id IS NOT NULL`)
	for _, f := range found {
		db.Assign(&org.Tier, f.Tier)
		db.Assign(&org.Subscription, f.Subscription)
		l := links[f.I]
		if f.Video.ID != uuid.Nil {
			videos[queue.TargetKey(l.Platform, l.ID)] = f.Video
		}
		if f.AccountID != nil {
			accounts[AccountKey(l.Platform, l.Handle)] = *f.AccountID
		}
	}
	return videos, accounts, org, err
}

// NewVideo returns a new video for a link. The map accountIDs has the ids of accounts, with AccountKey as the key.
func NewVideo(org uuid.UUID, l link.Link, accountIDs map[string]uuid.UUID, now db.Instant) Video {
	v := Video{OrganisationID: org, ID: db.NewID(), Platform: l.Platform, ExternalID: l.ID, Link: l.Canonical,
		Username: l.Handle, CreatedAt: now, FetchState: FetchState{FetchStatus: queue.FetchPending}}
	if id, ok := accountIDs[AccountKey(l.Platform, l.Handle)]; ok {
		v.LinkedAccountID = &id
	}
	return v
}

// firstFetch returns when the video of r.Links[i] is first fetched, and why no configured source can
// fetch it. The reason is "" if a source can.
func (r TrackRequest) firstFetch(i int, now db.Instant) (next db.Instant, unsupported string) {
	l := r.Links[i]
	if r.Unsupported != nil {
		unsupported = r.Unsupported(l)
	}
	if r.Scheduled {
		return queue.SlotAfter(now, l.Platform, l.ID), unsupported
	}
	return now, unsupported
}

// queueEntries returns the entries that add videos to the fetch queue. It skips videos that were
// already tracked, and videos that are saved but not fetched.
func (t OrgTx) queueEntries(p videoPlan, results []Tracked, storedBefore map[string]storedVideo) []queue.Entry {
	var entries []queue.Entry
	for i, l := range p.Links {
		// Only the first p.fetched links are fetched. A link of a video that is already tracked is one of these links, but its target does not change.
		if results[i].Already || i >= p.fetched {
			continue
		}
		e := queue.Entry{Platform: l.Platform, Kind: queue.KindVideo, ExternalID: l.ID, Handle: l.Handle, Link: l.Canonical,
			BaseLane: p.lane, Subject: results[i].ID, Lane: p.lane, Saved: !results[i].Existing}
		e.NextAt, e.Unsupported = p.firstFetch(i, t.Now)
		if v, ok := storedBefore[queue.TargetKey(l.Platform, l.ID)]; ok {
			e.TrackedAt, e.Known = v.CreatedAt, v.Latest
			db.Assign(&e.FetchedAt, v.LatestUpdatedAt)
		} else if p.Known != nil {
			e.Known = p.Known[i]
		}
		if !p.Scheduled && i < p.Immediate {
			e.Lane = queue.LaneInteractive
		}
		entries = append(entries, e)
	}
	return entries
}

// markDeferred sets the Deferred of each result whose entry was delayed when it was added to the fetch queue.
func markDeferred(results []Tracked, entries []queue.Entry) {
	deferred := map[uuid.UUID]bool{}
	for _, e := range entries {
		if e.IsDeferred() {
			deferred[e.Subject] = true
		}
	}
	for i := range results {
		results[i].Deferred = deferred[results[i].ID]
	}
}

// VideoEntry returns the entry that adds a video to the fetch queue. If the caller restarts a stopped
// video, v.Removed must still be true.
func VideoEntry(v *Video, lane queue.Lane, now db.Instant) queue.Entry {
	e := queue.Entry{Platform: v.Platform, Kind: queue.KindVideo, ExternalID: v.ExternalID, Handle: v.Username, Link: v.Link,
		Lane: lane, BaseLane: lane, NextAt: now, Subject: v.ID, Known: v.Latest}
	if v.Removed {
		e.TrackedAt = v.CreatedAt
		db.Assign(&e.FetchedAt, v.LatestUpdatedAt)
	}
	return e
}

// setResumed adds to the map "columns" the new values of a stopped video that is tracked again. It returns the map.
func setResumed(columns map[string]any, today db.Date) map[string]any {
	columns["removed"], columns["counted_since"] = false, today
	return setPendingStatus(columns)
}

// ResumeVideos tracks stopped videos of an organisation again, and corrects the organisation's totals. The caller must then add the videos to the fetch
// queue.
func ResumeVideos(tx *gorm.DB, org uuid.UUID, stopped []Video, today db.Date) error {
	ids := make([]uuid.UUID, len(stopped))
	for i := range stopped {
		ids[i] = stopped[i].ID
	}
	if err := db.Scoped(tx, "videos", org).Where("videos.id IN ?", ids).Updates(setResumed(map[string]any{}, today)).Error; err != nil {
		return err
	}
	return tx.Exec("UPDATE organisation_totals SET videos = videos + ?, videos_removed = videos_removed - ? WHERE organisation_id = ?", len(ids), len(ids), org).Error
}

// accountsOf returns the accounts of stored videos, without duplicates.
func (t OrgTx) accountsOf(videos []storedVideo) []db.RowKey {
	var ids []uuid.UUID
	for _, v := range videos {
		if v.LinkedAccountID != nil {
			ids = append(ids, *v.LinkedAccountID)
		}
	}
	return db.KeysOf(t.id, db.Distinct(ids))
}

// updateSums recomputes the statistics of accounts, and writes today's points of the accounts and of
// the organisation. The caller must correct the organisation's totals first.
func (t OrgTx) updateSums(accounts []db.RowKey) error {
	today := t.Now.Day()
	if len(accounts) > 0 {
		events, err := t.eventRecorder()
		if err != nil {
			return err
		}
		if err := RefreshAccounts(t.Tx, accounts, DayStamp{Day: today}, events); err != nil {
			return err
		}
		if err := events.Save(); err != nil {
			return err
		}
	}
	return db.RunWrites(t.Tx, StatementsForOrganisationDays(t.Tx, []uuid.UUID{t.id}, today)...)
}
