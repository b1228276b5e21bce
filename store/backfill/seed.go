package backfill

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// SeedBatch is the argument of Seed. All times must be in the past. Seed skips rows whose ids
// exist, so a repeated call must use the same ids.
type SeedBatch struct {
	// Collections are created first, in this order, so a parent must come before its children. Accounts and
	// videos can also be members of collections of earlier batches.
	Collections []SeedCollection
	Accounts    []SeedAccount
	// Source is the name of the source that is stored with each point.
	Source string
}

// SeedCollection is a private collection. Its members are the accounts and videos that have its id in their field Collections.
type SeedCollection struct {
	ID        uuid.UUID
	ParentID  *uuid.UUID
	Name      string
	Hashtags  []string
	CreatedAt db.Instant
	CreatedBy uuid.UUID // id of the API token that is stored as the creator of the collection
}

// SeedAccount is an account with its videos. Seed takes identity, profile and tracking from Account, and the latest followers from Days.
// Seed computes the statistics from Videos.
type SeedAccount struct {
	store.Account
	Collections []uuid.UUID      // ids of the collections that contain the account
	Days        []FollowerCounts // numbers of followers, the oldest day first
	Videos      []SeedVideo
}

// FollowerCounts contains two counts of an account on one day: how many followers it has, and how many accounts it follows.
type FollowerCounts struct {
	Day                  db.Date
	Followers, Following *int64
}

// SeedVideo is a video of a SeedAccount. Seed computes its latest counts, and all values that depend on counts, from Points.
type SeedVideo struct {
	store.Video
	Collections []uuid.UUID // ids of the collections to which the video itself was added
	Points      []Point     // the points by time, the oldest first; at most one point on each UTC day, none in the future
	// Refused says why the last fetch failed; nil means that it succeeded. Seed does not use Refused for a
	// video that is stopped or without points.
	Refused *FetchRefusal
}

// FetchRefusal describes why the latest fetches of a video failed: the video is private, or it no longer exists.
type FetchRefusal struct {
	Status    store.FetchStatus // queue.FetchPrivate or queue.FetchGone
	At        db.Instant        // time of the last attempt
	State     string            // state of the target in the queue: queue.StateParked or queue.StateGone
	RefusedAs string            // kind of the refusals, as in queue.Target.RefusedAs
	Refusals  int               // number of failed fetches since the last successful one
	Detail    string            // why the last fetch failed, as text for operators
}

// Point contains the counts of a video at the time At.
type Point struct {
	At db.Instant
	db.Counts
	Rounded bool // at least one of the counts is rounded; Seed ignores this field
}

// Seed writes a batch in one transaction. It skips existing collections, existing accounts and
// their videos. It returns ErrDuplicate if a video or account exists with another id. The daily
// sums are correct only if Seed wrote all data.
func Seed(ctx context.Context, o *store.Org, b SeedBatch) error {
	s := seedState{Org: o, source: b.Source, now: store.DatabaseOf(o).Now()}
	if err := s.ensurePartitions(ctx, b); err != nil {
		return err
	}
	return store.DatabaseOf(o).ChangeInBulk(ctx, o.ID(), func(tx *gorm.DB, insert db.InsertRows) error {
		s := s // each run of the transaction gets a copy, because a failed transaction is run again
		s.tx, s.insert = tx, insert
		org, err := store.ReadOrganisation(tx, o.ID())
		if err != nil {
			return err
		}
		s.lane = store.LaneOf(org)
		if err := store.RequireDataKind(tx, store.KindOfSource(b.Source)); err != nil {
			return err
		}
		if err := s.insertCollections(b.Collections); err != nil {
			return err
		}
		accounts, err := s.newAccounts(b.Accounts)
		if err != nil || len(accounts) == 0 {
			return err
		}
		for i := range accounts {
			if err := s.addAccount(&accounts[i]); err != nil {
				return err
			}
		}
		return s.writeRows()
	})
}

// seedState is the state of Seed during one run of its transaction. It collects rows and totals, which writeRows writes at the end.
type seedState struct {
	*store.Org
	tx     *gorm.DB
	insert db.InsertRows
	lane   queue.Lane
	source string
	now    db.Instant

	accounts, accountDays, videos, hashtags, daily, weekly, inCollections, accountsInCollections [][]any
	entries                                                                                      []queue.Entry
	fetched                                                                                      []fetchedTarget
	totals                                                                                       store.OrganisationTotals
	trackedAccounts, stoppedAccounts, followers, following                                       int64
	days                                                                                         map[db.Date]*daySums
	uploads                                                                                      map[db.Date]int64
}

// ensurePartitions creates the partitions of snapshots_daily for all daily points of the batch.
func (s *seedState) ensurePartitions(ctx context.Context, b SeedBatch) error {
	oldest := s.now.Day()
	for _, a := range b.Accounts {
		for _, v := range a.Videos {
			if len(v.Points) > 0 {
				oldest = min(oldest, v.Points[0].At.Day())
			}
		}
	}
	return store.DatabaseOf(s.Org).CreatePartitions(ctx, max(oldest, firstDayForDailyPoints(s.Org, s.now.Day())), s.now.Day())
}

// insertCollections inserts the collections that the organisation does not have yet.
func (s *seedState) insertCollections(collections []SeedCollection) error {
	ids := make([]uuid.UUID, len(collections))
	for i, c := range collections {
		ids[i] = c.ID
	}
	known, err := s.existingIDs("collections", ids)
	if err != nil {
		return err
	}
	var rows []store.Collection
	var tags []store.CollectionHashtag
	for _, c := range collections {
		if known[c.ID] {
			continue
		}
		rows = append(rows, store.Collection{OrganisationID: s.ID(), ID: c.ID, ParentID: c.ParentID, Name: c.Name, Sharing: store.Sharing{Access: store.AccessPrivate},
			CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt, UpdatedAt: c.CreatedAt})
		for _, tag := range c.Hashtags {
			tags = append(tags, store.CollectionHashtag{OrganisationID: s.ID(), CollectionID: c.ID, Tag: store.FoldTag(tag), AddedAt: c.CreatedAt})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := store.CheckCollectionCount(s.Org, s.tx, len(rows)); err != nil {
		return err
	}
	if err := s.tx.CreateInBatches(rows, db.InsertChunk).Error; err != nil || len(tags) == 0 {
		return err
	}
	return s.tx.CreateInBatches(tags, db.InsertChunk).Error
}

// existingIDs returns the ids of the rows of the organisation in a table. It looks only for the given ids.
func (s *seedState) existingIDs(table string, ids []uuid.UUID) (map[uuid.UUID]bool, error) {
	known := map[uuid.UUID]bool{}
	for chunk := range slices.Chunk(ids, db.InsertChunk) {
		var found []uuid.UUID
		if err := db.Scoped(s.tx, table, s.ID()).Where(table+".id IN ?", chunk).Pluck("id", &found).Error; err != nil {
			return nil, err
		}
		for _, id := range found {
			known[id] = true
		}
	}
	return known, nil
}

// newAccounts returns the accounts whose ids the organisation does not have yet.
func (s *seedState) newAccounts(accounts []SeedAccount) ([]SeedAccount, error) {
	ids := make([]uuid.UUID, len(accounts))
	for i, a := range accounts {
		ids[i] = a.ID
	}
	known, err := s.existingIDs("accounts", ids)
	if err != nil {
		return nil, err
	}
	var fresh []SeedAccount
	for _, a := range accounts {
		if !known[a.ID] {
			fresh = append(fresh, a)
		}
	}
	return fresh, nil
}

// addAccount adds the rows of an account and of its videos to s, which collects the rows.
func (s *seedState) addAccount(in *SeedAccount) error {
	a := in.Account
	a.OrganisationID = s.ID()
	if n := len(in.Days); n > 0 {
		a.LatestFollowersCount, a.LatestFollowingCount = in.Days[n-1].Followers, in.Days[n-1].Following
	}
	videos := make([]store.Video, len(in.Videos))
	var measured []store.AccountVideo
	for i := range in.Videos {
		v, err := s.newVideo(&in.Videos[i], a.ID)
		if err != nil {
			return err
		}
		videos[i] = v
		if !v.Removed {
			measured = append(measured, store.AccountVideo{Counts: v.Latest, UploadedAt: v.UploadedAt})
		}
	}
	stats := store.StatsOf(measured)
	for i := range videos {
		v := &videos[i]
		if v.Latest.Views != nil && stats.MedianViews != nil && *stats.MedianViews > 0 && !v.Removed {
			v.OutlierMultiplier = new(float64(*v.Latest.Views) / *stats.MedianViews)
		}
		s.addVideo(v, &in.Videos[i])
	}
	for _, c := range in.Collections {
		s.accountsInCollections = append(s.accountsInCollections, []any{s.ID(), c, a.ID, a.CreatedAt})
	}
	gained := s.addDays(&a, in)
	s.accounts = append(s.accounts, append([]any{s.ID(), a.ID, a.Platform, a.ExternalID, a.Username, a.HandleCurrent, a.Name, a.Link, a.CreatedAt,
		a.Tracked, a.Removed, a.TrackingType, a.TrackedAt, a.DiscoveredAt, a.CheckedAt, a.Private, a.Empty, a.Bio, a.ProfileLink,
		a.LatestFollowersCount, a.LatestFollowingCount, stats.MeanViews, stats.MedianViews, stats.MedianViewsNonZero, stats.MostViewed,
		stats.PercentOutperform10x, stats.PercentOutperform25x, stats.Videos, stats.LastUploadedAt, seededStatus(a.Tracked, a.Removed, a.CheckedAt), a.CheckedAt,
		gained.total, gained.in7Days}, stats.Counts.Values()...))
	s.countAccount(&a)
	return nil
}

// accountColumns are the columns of the table accounts, in the order of the values in each row of seedState.accounts.
var accountColumns = append([]string{"organisation_id", "id", "platform", "external_id", "username", "handle_current", "name", "link", "created_at",
	"tracked", "removed", "tracking_type", "tracked_at", "discovered_at", "checked_at", "private", "empty", "bio", "profile_link",
	"latest_followers_count", "latest_following_count", "mean_views", "median_views", "median_views_non_zero", "most_viewed",
	"percent_outperform_10x", "percent_outperform_25x", "total_videos_tracked", "last_uploaded_at", "fetch_status", "last_attempt_at",
	"views_gained", "views_gained_7d"}, db.MetricNames("total_")...)

// seededStatus returns the fetch status that Seed writes for a video or account. The argument countedAt is the time of the last counts, or nil if
// there are none.
func seededStatus(tracked, removed bool, countedAt *db.Instant) store.FetchStatus {
	switch {
	case removed:
		return queue.FetchStopped
	case !tracked:
		return ""
	case countedAt == nil:
		return queue.FetchPending
	}
	return queue.FetchOK
}

// countAccount adds an account to the totals of the batch. If the account is tracked, countAccount also adds it to the entries for the queue.
func (s *seedState) countAccount(a *store.Account) {
	switch {
	case a.Tracked:
		s.trackedAccounts++
		s.followers, s.following = s.followers+valueOrZero(a.LatestFollowersCount), s.following+valueOrZero(a.LatestFollowingCount)
		e := store.AccountEntry(a, nil, 0, s.lane, s.now)
		if e.NextAt = s.nextFetch(a.Platform, e.ExternalID); a.DiscoveredAt == nil && a.TrackingType != nil {
			e.Depth = store.ListDepths[*a.TrackingType]
		}
		s.entries = append(s.entries, e)
		if a.CheckedAt != nil {
			s.fetched = append(s.fetched, fetchedTarget{e.Platform, queue.KindAccount, e.ExternalID, *a.CheckedAt, nil, nil})
		}
	case a.Removed:
		s.stoppedAccounts++
	}
}

// nextFetch returns the time of a target's first scheduled fetch. This fetch is on the next UTC
// day, because Seed has already written the points of today.
func (s *seedState) nextFetch(p link.Platform, externalID string) db.Instant {
	return db.InstantOf((s.now.Day() + 1).Time()).Add(queue.SlotOf(p, externalID))
}

// valueOrZero returns *n, or 0 if n is nil.
func valueOrZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// fetchedTarget is the last fetch of a seeded video or account. Seed stores this fetch in the
// queue, as if a collector had fetched the target.
type fetchedTarget struct {
	platform   link.Platform
	kind       queue.Kind
	externalID string
	at         db.Instant
	views      *int64 // views that the fetch reported; nil for an account
	refused    *FetchRefusal
}

// writeRows writes all rows that were collected in s. It also updates the organisation's totals and daily statistics, and adds the targets, with
// their last fetches, to the queue.
func (s *seedState) writeRows() error {
	tables := []struct {
		name    string
		columns []string
		rows    [][]any
	}{
		{"accounts", accountColumns, s.accounts},
		{"videos", videoColumns, s.videos},
		{"video_hashtags", []string{"organisation_id", "tag", "video_id"}, s.hashtags},
		{"snapshots_daily", dailyColumns, s.daily},
		{"snapshots_weekly", weeklyColumns, s.weekly},
		{"collection_videos", []string{"organisation_id", "collection_id", "video_id", "added_at"}, s.inCollections},
		{"collection_accounts", []string{"organisation_id", "collection_id", "account_id", "added_at"}, s.accountsInCollections},
		{"account_days", slices.Concat([]string{"organisation_id", "account_id", "day", "followers", "following", "videos", "views_gained"}, pointColumns), s.accountDays},
	}
	var before store.OrganisationTotals
	if err := db.Scoped(s.tx, "organisation_totals", s.ID()).Take(&before).Error; err != nil {
		return err
	}
	for _, t := range tables {
		if err := s.insert(t.name, t.columns, t.rows); err != nil {
			return err
		}
		if t.name == "videos" {
			if err := store.DatabaseOf(s.Org).UpdateStatistics(s.tx, t.name, before.Videos+before.VideosRemoved+int64(len(t.rows))); err != nil {
				return err
			}
		}
	}
	// Update the totals before the queue, as all other transactions do. Otherwise two transactions could deadlock.
	if err := s.addToTotals(); err != nil {
		return err
	}
	if err := s.addToDays(); err != nil {
		return err
	}
	if err := queue.Enqueue(s.tx, s.ID(), s.entries, s.now); err != nil {
		return err
	}
	return s.setLastFetches()
}

// setLastFetches copies the last fetch of each seeded target to the queue. It does not change
// targets that already have a fetch time in the queue.
func (s *seedState) setLastFetches() error {
	slices.SortFunc(s.fetched, func(a, b fetchedTarget) int {
		return cmp.Or(cmp.Compare(a.platform, b.platform), cmp.Compare(a.kind, b.kind), cmp.Compare(a.externalID, b.externalID))
	})
	for chunk := range slices.Chunk(s.fetched, db.InsertChunk) {
		values, args := make([]string, len(chunk)), []any{}
		for i, f := range chunk {
			result := cmp.Or(f.refused, &FetchRefusal{Status: queue.FetchOK, State: queue.StateActive})
			values[i] = "(CAST(? AS text), CAST(? AS text), CAST(? AS text), CAST(? AS bigint), CAST(? AS bigint)" +
				", CAST(? AS text), CAST(? AS text), CAST(? AS text), CAST(? AS integer), CAST(? AS text))"
			args = append(args, f.platform, f.kind, f.externalID, f.at, f.views, result.Status, result.State, result.RefusedAs, result.Refusals, result.Detail)
		}
		err := s.tx.Exec(`WITH u(source, kind, external_id, fetched_at, views, status, state, refused_as, refusals, detail) AS (VALUES `+strings.Join(values, ", ")+`)
UPDATE fetch_targets SET fetched_at = u.fetched_at, details_at = u.fetched_at, views = u.views,
   status = CASE WHEN fetch_targets.status = ? THEN u.status ELSE fetch_targets.status END,
   state = u.state, refused_as = u.refused_as, refusals = u.refusals, attempts = u.refusals, detail = u.detail FROM u
 WHERE fetch_targets.bucket = ? AND fetch_targets.source = u.source AND fetch_targets.kind = u.kind AND fetch_targets.external_id = u.external_id
   AND fetch_targets.fetched_at IS NULL`, append(args, queue.FetchPending, queue.Bucket)...).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// CreateOrganisation creates the organisation o, with the id and creation time that the fields of o contain. If an organisation with the id
// exists, CreateOrganisation changes nothing and returns false.
func CreateOrganisation(ctx context.Context, s *store.Store, o store.Organisation) (added bool, err error) {
	if err := store.CheckName("organisation", o.Name); err != nil {
		return false, err
	}
	err = s.DB().Tx(ctx, func(tx *gorm.DB) error {
		r := tx.Clauses(db.OnConflictDoNothing("id")).Create(&o)
		if added = r.RowsAffected == 1; r.Error != nil || !added {
			return r.Error
		}
		return tx.Create(&store.OrganisationTotals{OrganisationID: o.ID, Version: s.DB().Now()}).Error
	})
	return added, err
}
