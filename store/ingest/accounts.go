package ingest

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// AccountFacts are what a source reported about an account. A nil pointer means that the source did not report the value.
type AccountFacts struct {
	ID          *string // the platform's own id of the account
	SourceID    *string // the source's own id of the account, in the form ISSUER/ID; nil if the source uses the platform's ids
	Username    *string // handle without "@", in lower case
	Name        *string
	Bio         *string
	ProfileLink *string
	Followers   *int64
	Following   *int64
	Private     *bool
	// Videos are the newest videos of the account, the newest first, at most as many as were requested. Up to MaxPinned older videos that the
	// account has pinned can come before them.
	Videos []FoundVideo
	// Listed is true if the source was asked for the account's videos and listed them. If it is false, Videos is empty although the account
	// may have videos.
	Listed bool
	// ListContinues is true if the source says that the account's list has further entries after Videos. It is false if the list has ended, or if
	// the source does not know this.
	ListContinues bool
	// Unfinished is true if the call budget ended the list, and a later call can get more units. New videos can then be missing from Videos.
	Unfinished bool
	// CompleteSince is a time after which no uploaded video is missing from Videos. It is nil if the source does not know such a time.
	CompleteSince *db.Instant
}

// FoundVideo is a video in an account's list of videos.
type FoundVideo struct {
	ID         string      // the platform's own id of the video
	Link       string      // canonical link of the video
	UploadedAt *db.Instant // nil if the source did not report the upload time
}

// acknowledgeAccounts writes the outcomes of claimed accounts in one transaction, even if their
// leases have ended. It also adds new videos for the organisations that track the accounts.
func (s *Writer) acknowledgeAccounts(ctx context.Context, c queue.Claim, fetchedAt db.Instant, outcomes []Outcome) error {
	return db.RetryOnDuplicate(func() error {
		return s.db.Tx(ctx, func(tx *gorm.DB) error {
			orgs, subscribers, err := s.lockSubscribers(tx, outcomes)
			if err != nil {
				return err
			}
			events, err := store.NewEventRecorder(tx, fetchedAt, orgs...)
			if err != nil {
				return err
			}
			for _, o := range outcomes {
				if o.Account != nil {
					if err := store.RequireDataKind(tx, store.KindOfSource(o.Source)); err != nil {
						return err
					}
				}
				if err := s.writeAccount(tx, o, orgs, fetchedAt, events); err != nil {
					return err
				}
			}
			if err := events.Save(); err != nil {
				return err
			}
			// If another collector has claimed an account meanwhile, that collector's lease stays
			// unchanged.
			if err := acknowledgeTargets(tx, c, s.db.Now(), fetchedAt, outcomes); err != nil {
				return err
			}
			for _, o := range outcomes {
				if err := renameTarget(tx, o, orgs, subscribers); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// lockSubscribers locks the organisations that track any of the accounts, by raising the versions of their data. It returns the ids of the
// locked organisations, and the ids of all organisations that track any of the accounts. Organisations that are being deleted are not locked.
func (s *Writer) lockSubscribers(tx *gorm.DB, outcomes []Outcome) (locked, subscribers []uuid.UUID, err error) {
	targets := make([]queue.Target, len(outcomes))
	for i, o := range outcomes {
		targets[i] = o.Target
	}
	subs, err := queue.SubscriptionsOf(tx, targets)
	if err != nil {
		return nil, nil, err
	}
	subscribers = make([]uuid.UUID, len(subs))
	for i, s := range subs {
		subscribers[i] = s.OrganisationID
	}
	locked, err = db.RaiseVersionsOfAll(tx, s.db.Now(), subscribers)
	return locked, subscribers, err
}

// writeAccount stores the outcome of one account's fetch for the subscribed organisations in orgs.
// The transaction has locked these organisations.
func (s *Writer) writeAccount(tx *gorm.DB, o Outcome, orgs []uuid.UUID, fetchedAt db.Instant, events *store.EventRecorder) error {
	if o.Account == nil && o.Private == nil && !o.HandleLost && o.statusChange() == nil {
		return nil
	}
	var subs []queue.FetchSubscription
	err := tx.Where("bucket = ? AND source = ? AND kind = ? AND external_id = ?", queue.Bucket, o.Target.Platform, queue.KindAccount, o.Target.ExternalID).
		Order("organisation_id").Find(&subs).Error
	if err != nil {
		return err
	}
	depth := 0
	for _, sub := range subs {
		if !slices.Contains(orgs, sub.OrganisationID) {
			// Either the organisation is being deleted, or it subscribed after the call of lockSubscribers. In the second case, the account is due again
			// immediately, unless deferRecentlyFetched has delayed it. If the target gets another id, renameTarget starts the transaction again.
			continue
		}
		d := accountWriter{tx: tx, org: sub.OrganisationID, at: fetchedAt, outcome: o, preview: cmp.Or(sub.Preview, store.DefaultPreview), events: events}
		needed, err := d.writeOutcome(sub.SubjectID)
		if err != nil {
			return err
		}
		depth = max(depth, needed)
	}
	return saveIdentity(tx, o, depth)
}

// saveIdentity adds missing ids and a missing handle to the account's target. `depth` is the number of videos
// to request at the next fetch. If it is 0, the next fetch requests one page.
func saveIdentity(tx *gorm.DB, o Outcome, depth int) error {
	if o.Account == nil {
		return nil
	}
	var handle string
	db.Assign(&handle, o.Account.Username)
	statement := `UPDATE fetch_targets SET native_id = COALESCE(native_id, ?), source_id = COALESCE(source_id, ?), handle = CASE WHEN handle = '' THEN ? ELSE handle END, depth = ?`
	// Incrementing requested_at makes the fetch of the longer list due immediately.
	if depth > 0 {
		statement += `, requested_at = requested_at + 1`
	}
	return tx.Exec(statement+` WHERE bucket = ? AND source = ? AND kind = ? AND external_id = ? AND requested_at <= ?`,
		o.Account.ID, o.Account.SourceID, handle, depth, queue.Bucket, o.Target.Platform, queue.KindAccount, o.Target.ExternalID, o.Target.RequestedAt).Error
}

// accountWriter stores what a fetch of an account returned, such as its profile and its new videos, for one organisation that tracks the account.
type accountWriter struct {
	tx      *gorm.DB
	org     uuid.UUID
	at      db.Instant // time of the fetch
	outcome Outcome
	preview int // maximum number of the account's videos that are fetched if the organisation has no paid subscription
	events  *store.EventRecorder
}

// writeOutcome writes the outcome to the organisation's account with the given id. It returns the number of
// videos that the next fetch must request. If the number is 0, the next fetch requests one page.
func (d accountWriter) writeOutcome(id uuid.UUID) (depth int, err error) {
	var found []store.Account
	if err := db.Scoped(d.tx, "accounts", d.org).Where("accounts.id = ? AND accounts.tracked", id).Find(&found).Error; err != nil || len(found) == 0 {
		return 0, err
	}
	a := &found[0]
	switch {
	case d.outcome.HandleLost:
		if err := d.markHandleLost(a); err != nil {
			return 0, err
		}
		return 0, d.writeState(a)
	case d.isOtherAccount(a):
		return 0, d.subscribeToSeparateTarget(a)
	}
	f := d.outcome.Account
	if f == nil && d.outcome.Private == nil {
		return 0, d.writeState(a)
	}
	if f != nil {
		if a, err = d.updateIdentity(a); err != nil {
			return 0, err
		}
	}
	before, outdated := *a, d.isOutdated(a)
	if !outdated {
		d.setProfile(a)
	}
	d.outcome.changeState(&a.FetchState, a.CheckedAt != nil, d.at) // the events about new videos contain the new state
	// Add the listed videos even if the answer is outdated, because the list can include videos
	// that the organisation does not have.
	if f != nil && f.Listed {
		oldIndex, err := d.findUnpinnedOldVideo(a)
		if err != nil {
			return 0, err
		}
		if err := d.trackNewVideos(a, d.videosToTrack(a, oldIndex)); err != nil {
			return 0, err
		}
		var complete bool
		if depth, complete = d.nextDepth(a, oldIndex, before.CheckedAt != nil); complete && (a.DiscoveredAt == nil || *a.DiscoveredAt < d.at) {
			a.DiscoveredAt = &d.at
		}
	}
	err = db.Scoped(d.tx, "accounts", d.org).Where("accounts.id = ?", a.ID).Updates(addFetchState(a, map[string]any{
		"checked_at": a.CheckedAt, "private": a.Private, "empty": a.Empty, "bio": a.Bio, "profile_link": a.ProfileLink,
		"latest_followers_count": a.LatestFollowersCount, "latest_following_count": a.LatestFollowingCount, "discovered_at": a.DiscoveredAt})).Error
	if err != nil {
		return 0, err
	}
	of := store.DayStamp{Day: d.at.Day()}
	if f != nil && !outdated {
		of.FetchedAt, of.Source = &d.at, &d.outcome.Source
	}
	if err := store.RefreshAccounts(d.tx, []db.RowKey{{Org: d.org, ID: a.ID}}, of, d.events); err != nil {
		return 0, err
	}
	d.events.AddAccountFetch(&before, a)
	return depth, d.addFollowers(before, *a)
}

// writeState writes the fetch status, its reason, and the times of the last and next fetch to the record of the account. It changes nothing else
// in the record. It adds an event if the status has changed.
func (d accountWriter) writeState(a *store.Account) error {
	before := *a
	d.outcome.changeState(&a.FetchState, a.CheckedAt != nil, d.at)
	d.events.AddAccountFetch(&before, a)
	return db.Scoped(d.tx, "accounts", d.org).Where("accounts.id = ?", a.ID).Updates(addFetchState(a, map[string]any{})).Error
}

// addFetchState returns the given columns of an UPDATE together with the account's fetch state.
func addFetchState(a *store.Account, columns map[string]any) map[string]any {
	columns["fetch_status"], columns["fetch_reason"] = a.FetchStatus, a.FetchReason
	columns["last_attempt_at"], columns["next_fetch_at"] = a.LastAttemptAt, a.NextFetchAt
	return columns
}

// isOutdated returns true if a newer answer about the account is stored. This can happen if a fetch
// takes longer than its lease.
func (d accountWriter) isOutdated(a *store.Account) bool {
	return a.CheckedAt != nil && *a.CheckedAt > d.at
}

// setProfile copies the profile that the source reported, such as the biography and the follower counts, into the fields of the account.
func (d accountWriter) setProfile(a *store.Account) {
	db.Assign(&a.Private, d.outcome.Private)
	f := d.outcome.Account
	if f == nil {
		return
	}
	a.CheckedAt = &d.at
	db.Assign(&a.Private, f.Private)
	db.AssignPointer(&a.Bio, f.Bio)
	db.AssignPointer(&a.ProfileLink, f.ProfileLink)
	db.AssignPointer(&a.LatestFollowersCount, f.Followers)
	db.AssignPointer(&a.LatestFollowingCount, f.Following)
	if f.Listed {
		a.Empty = len(f.Videos) == 0
	}
}

// updateIdentity updates the account's ids, handle and name with the reported values. It merges
// duplicate records of the account, and returns the account's record.
func (d accountWriter) updateIdentity(a *store.Account) (*store.Account, error) {
	reported, known := d.reportedAuthor(a)
	if !known {
		return a, nil
	}
	// The account can have other records, for example if it was tracked by its old and new handle.
	others := db.Scoped(d.tx, "accounts", d.org).Where("accounts.id <> ? AND accounts.platform = ? AND (accounts.external_id = ? OR accounts.source_id = ? OR (accounts.handle_current AND accounts.username = ?))",
		a.ID, a.Platform, reported.ExternalID, reported.SourceID, reported.Username)
	var rows []*store.Account
	err := others.Find(&rows).Error
	if err != nil {
		return nil, err
	}
	// Merge the records that have a reported id. Also merge those that have the reported handle, have no id,
	// and were never fetched.
	fetched := a
	var handles []string // the handles of the merged records
	rows = slices.DeleteFunc(rows, func(r *store.Account) bool {
		same := r.Matches(reported) || r.ExternalID == nil && r.SourceID == nil && r.CheckedAt == nil
		if same && err == nil {
			handles = append(handles, a.Username, r.Username)
			a, err = d.mergeRecords(a, r)
		}
		return same
	})
	if err != nil {
		return nil, err
	}
	if a != fetched && reported.Username == "" && fetched.HandleCurrent {
		reported.Username = fetched.Username // the source reported no handle, so the account still has the handle that the fetch used
	}
	resolver := store.NewAccountResolver(d.org, d.at, append([]*store.Account{a}, rows...))
	if a.ExternalID == nil && reported.ExternalID != "" {
		id := reported.ExternalID
		a.ExternalID = &id
		resolver.MarkChanged(a)
	}
	if a.SourceID == nil && reported.SourceID != "" {
		id := reported.SourceID
		a.SourceID = &id
		resolver.MarkChanged(a)
	}
	resolver.Resolve(reported)
	for _, handle := range handles {
		resolver.ReplaceHandle(a, handle)
	}
	return a, resolver.Save(d.tx)
}

// reportedAuthor returns the ids, the handle and the name of the account a according to the answer. The ids of the stored record take precedence. If
// the platform's id is neither reported nor stored, and no handle is reported, the fetch used the stored handle, so reportedAuthor returns this handle. It
// returns false if the handle belongs to another account now.
func (d accountWriter) reportedAuthor(a *store.Account) (reported store.Author, known bool) {
	f := d.outcome.Account
	reported = store.Author{Platform: a.Platform, Name: f.Name}
	db.Assign(&reported.ExternalID, f.ID)
	db.Assign(&reported.SourceID, f.SourceID)
	db.Assign(&reported.Username, f.Username)
	if a.ExternalID != nil {
		reported.ExternalID = *a.ExternalID // the fetch used the id of the record, so the answer is about this id
	}
	if a.SourceID != nil {
		reported.SourceID = *a.SourceID
	}
	if reported.ExternalID == "" && reported.Username == "" {
		if !a.HandleCurrent {
			return reported, false // the stored handle now belongs to another account
		}
		reported.Username = a.Username // the fetch used the handle of the record, so the answer is about this handle
	}
	return reported, true
}

// trackNewVideos inserts the found videos that the organisation does not have, and adds them to the
// queue.
func (d accountWriter) trackNewVideos(a *store.Account, found []FoundVideo) error {
	if len(found) == 0 {
		return nil
	}
	org, err := store.ReadOrganisation(d.tx, d.org)
	if err != nil {
		return err
	}
	fresh, err := d.insertVideos(a, found)
	if err != nil {
		return err
	}
	added := len(fresh)
	// If no complete list was stored since tracking began, track again the listed videos that were stopped before tracking began.
	if a.DiscoveredAt == nil {
		resumed, err := d.resumeStopped(a, found)
		if err != nil {
			return err
		}
		fresh = append(fresh, resumed...)
	}
	if len(fresh) == 0 {
		return nil
	}
	listIndex := make(map[string]int, len(found))
	for i, f := range found {
		listIndex[f.ID] = i
	}
	slices.SortFunc(fresh, func(a, b store.Video) int { return cmp.Compare(listIndex[a.ExternalID], listIndex[b.ExternalID]) })
	for _, v := range fresh {
		v.Removed, v.FetchStatus = false, queue.FetchPending // a stopped video is tracked again
		d.events.AddDiscoveredVideo(a, &v)
	}
	fetched, err := d.limitToPreview(a, org, fresh)
	if err != nil {
		return err
	}
	lane := store.LaneOf(org)
	entries := make([]queue.Entry, len(fetched))
	for i := range fetched {
		entries[i] = store.VideoEntry(&fetched[i], lane, d.at)
	}
	if err := queue.Enqueue(d.tx, d.org, entries, d.at); err != nil {
		return err
	}
	return d.tx.Exec("UPDATE organisation_totals SET videos = videos + ? WHERE organisation_id = ?", added, d.org).Error
}

// insertVideos inserts the found videos that the organisation does not have, and returns them.
func (d accountWriter) insertVideos(a *store.Account, found []FoundVideo) ([]store.Video, error) {
	rows := make([]store.Video, len(found))
	for i, f := range found {
		rows[i] = store.NewVideo(d.org, link.Link{Platform: a.Platform, ID: f.ID, Handle: a.Username, Canonical: f.Link}, nil, d.at)
		rows[i].LinkedAccountID, rows[i].Direct = &a.ID, false
	}
	slices.SortFunc(rows, func(a, b store.Video) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	for chunk := range slices.Chunk(rows, db.InsertChunk/2) {
		err := d.tx.Clauses(clause.OnConflict{Columns: db.Columns([]string{"organisation_id", "platform", "external_id"}), DoNothing: true}).Create(&chunk).Error
		if err != nil {
			return nil, err
		}
	}
	var inserted []store.Video
	err := db.Scoped(d.tx, "videos", d.org).Where("videos.id IN ?", ids).Find(&inserted).Error
	return inserted, err
}

// limitToPreview returns the videos to fetch. Without a paid subscription, at most d.preview videos
// of the account are fetched, and the other given videos become pending.
func (d accountWriter) limitToPreview(a *store.Account, org store.Organisation, videos []store.Video) ([]store.Video, error) {
	if org.Subscription != store.SubscriptionNone {
		return videos, nil
	}
	var all int64
	err := db.Scoped(d.tx, "videos", d.org).Where("videos.linked_account_id = ? AND NOT videos.direct AND NOT videos.removed AND NOT videos.pending", a.ID).Count(&all).Error
	if err != nil {
		return nil, err
	}
	left := min(len(videos), max(0, d.preview-int(all)+len(videos)))
	if left == len(videos) {
		return videos, nil
	}
	pending := make([]uuid.UUID, 0, len(videos)-left)
	for _, v := range videos[left:] {
		pending = append(pending, v.ID)
	}
	return videos[:left], db.Scoped(d.tx, "videos", d.org).Where("videos.id IN ?", pending).Update("pending", true).Error
}

// resumeStopped tracks the account's stopped videos again if they are in the list, and returns them. It skips videos that the organisation tracked by
// their own links. It also skips videos that were found or tracked again after the tracking of the account last began: the organisation stopped each of
// these videos directly, not by stopping the account.
func (d accountWriter) resumeStopped(a *store.Account, listed []FoundVideo) ([]store.Video, error) {
	ids := make([]string, len(listed))
	for i, f := range listed {
		ids[i] = f.ID
	}
	since := a.CreatedAt
	db.Assign(&since, a.TrackedAt)
	var stopped []store.Video
	err := db.Scoped(d.tx, "videos", d.org).
		Where("videos.linked_account_id = ? AND videos.external_id IN ? AND videos.removed AND NOT videos.direct", a.ID, ids).
		Where("videos.created_at < ? AND (videos.counted_since IS NULL OR videos.counted_since < ?)", since, since.Day()).Find(&stopped).Error
	if err != nil || len(stopped) == 0 {
		return nil, err
	}
	return stopped, store.ResumeVideos(d.tx, d.org, stopped, d.at.Day())
}

// addFollowers updates the organisation's totals of followers and followed accounts. Its arguments
// are the account before and after the change.
func (d accountWriter) addFollowers(before, after store.Account) error {
	change := func(from, to *int64) int64 {
		var a, b int64
		db.Assign(&a, from)
		db.Assign(&b, to)
		return b - a
	}
	err := d.tx.Exec("UPDATE organisation_totals SET followers = followers + ?, following = following + ? WHERE organisation_id = ?",
		change(before.LatestFollowersCount, after.LatestFollowersCount), change(before.LatestFollowingCount, after.LatestFollowingCount), d.org).Error
	if err != nil {
		return err
	}
	// Store the totals as the organisation's point for the day of the fetch.
	return db.RunWrites(d.tx, store.StatementsForOrganisationDays(d.tx, []uuid.UUID{d.org}, d.at.Day())...)
}
