package ingest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// VideoFacts are what a source reported about a video. A nil pointer means that the source did not report the value. It does not mean zero
// or empty.
type VideoFacts struct {
	Views, Likes, Comments, Shares, Bookmarks *int64

	Title     *string
	Username  *string // handle without "@", in lower case; for Facebook followed by "~" and the account's id, if the id is known
	AccountID *string // the platform's own id of the account that posted the video
	// AccountSourceID is the source's own id of the account: see AccountFacts.SourceID.
	AccountSourceID *string
	AccountName     *string
	UploadedAt      *time.Time
	LengthSeconds   *float64 // 0 if the source says that the video has no length, such as a live broadcast or a slideshow; 0 is never stored
	SongName        *string
	SongLink        *string
	ThumbnailURL    *string
	NotSafe         *bool
	Private         *bool
	HiddenStats     *bool // true if the platform hides a count of the video that the source normally reports
	IsAd            *bool
	ShopAd          *bool
	ShopProductID   *string
	// RoundedFrom has an entry for each count that the source has probably rounded: the smallest number that the source rounds. The entry of an
	// exact count is nil.
	RoundedFrom db.Counts `json:",omitzero"`
}

// IsRounded returns true if the source has probably rounded one of the counts.
func (f *VideoFacts) IsRounded() bool { return f.RoundedFrom != db.Counts{} }

// Outcome is the result of fetching one claimed target. It also says when the target is due next.
type Outcome struct {
	Target queue.Target
	// Facts are written to the data of every organisation that subscribes to the target. If Facts is nil, no count is written.
	Facts *VideoFacts
	// Details is true if the call to the source returned details, such as the title, and not only counts.
	Details bool
	// DetailsOnly is true if Facts add details to the answer of an earlier call. The counts in Facts are then not written.
	DetailsOnly bool
	// Private and NotSafe are written to the video or account if they are not nil, even if Facts is nil. Without Facts, they say why a
	// source refused the fetch.
	Private, NotSafe *bool
	// Source is the name of the source that reported Facts. It is stored with each point.
	Source string
	// NextAt is when the target is due next. Pace, Attempts, RefusedAs, Refusals, State, Suspect and Detail are the target's new values.
	NextAt    db.Instant
	Pace      queue.Pace
	Attempts  int
	RefusedAs string
	Refusals  int
	State     string
	Suspect   *string
	Detail    string
	// Route is the source that is asked next. If it is "", the target keeps its present Route.
	Route string
	// Answers has the answers of all sources that were asked in this attempt. It is stored with the target. It is nil if the attempt has ended.
	Answers *string
	// Onward is true if the attempt is not finished, but continues with the source in Route. The target then
	// stays in its lane.
	Onward bool
	// HandleLost is true if the handle of the fetched account now belongs to another account.
	HandleLost bool
	// Handle is the handle of the video's account if a source has confirmed it, and "" otherwise. If Facts has a username, the username is
	// stored in place of Handle.
	Handle string
	// TriedHandles are the handles from Target.Handles with which the source did not find the
	// video. The next fetch tries other handles first.
	TriedHandles []string
	// Account are the facts of a fetched account; nil for a video, and if the fetch failed.
	Account *AccountFacts
	// Fetch is the change of the fetch status. If Fetch is nil, an outcome with counts or account
	// facts changes the status to queue.FetchOK.
	Fetch *queue.FetchChange
}

// Acknowledge writes the outcomes of a claim in one transaction. It can be called late or twice.
// Counts that are newer than fetchedAt stay unchanged.
func (s *Writer) Acknowledge(ctx context.Context, c queue.Claim, fetchedAt db.Instant, outcomes []Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	if outcomes[0].Target.Kind == queue.KindAccount {
		return s.acknowledgeAccounts(ctx, c, fetchedAt, outcomes)
	}
	// The source was called at fetchedAt. The points get the UTC day of this time.
	if err := s.db.EnsurePartitions(ctx, fetchedAt.Day(), fetchedAt.Day()); err != nil {
		return err
	}
	return db.RetryOnDuplicate(func() error {
		return s.db.Tx(ctx, func(tx *gorm.DB) error {
			for _, o := range outcomes {
				if o.Facts == nil {
					continue
				}
				// Made-up data and real data must not be mixed. The error is a *store.DataKindError.
				if err := store.RequireDataKind(tx, store.KindOfSource(o.Source)); err != nil {
					return err
				}
				break // all outcomes of a claim have the same source
			}
			if err := writeOutcomes(tx, fetchedAt, outcomes); err != nil {
				return err
			}
			// A target that another collector has claimed since keeps its lease and due time.
			return acknowledgeTargets(tx, c, s.db.Now(), fetchedAt, outcomes)
		})
	})
}

// writeOutcomes writes the facts, flags and fetch statuses of outcomes to the videos of all organisations that subscribe to the targets.
func writeOutcomes(tx *gorm.DB, fetchedAt db.Instant, outcomes []Outcome) error {
	byKey := make(map[string]*Outcome, len(outcomes))
	written := make([]queue.Target, 0, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if o.changesVideo() || o.statusChange() != nil {
			byKey[queue.TargetKey(o.Target.Platform, o.Target.ExternalID)] = o
			written = append(written, o.Target)
		}
	}
	w := videoWriter{tx: tx, fetchedAt: fetchedAt, outcomes: map[db.RowKey]*Outcome{}}
	subs, err := queue.SubscriptionsOf(tx, written)
	if err != nil {
		return err
	}
	for _, sub := range subs {
		w.outcomes[db.RowKey{Org: sub.OrganisationID, ID: sub.SubjectID}] = byKey[queue.TargetKey(sub.Platform, sub.ExternalID)]
	}
	keys := db.SortedKeys(w.outcomes)
	subscribers := db.OrgsOf(keys)
	orgs, err := db.RaiseDataVersionsOfAll(tx, fetchedAt, subscribers)
	if err != nil {
		return err
	}
	if len(orgs) < len(subscribers) { // organisations that are being deleted get no outcomes
		keys = slices.DeleteFunc(keys, func(key db.RowKey) bool { return !slices.Contains(orgs, key.Org) })
	}
	if w.events, err = store.NewEventRecorder(tx, fetchedAt, orgs...); err != nil {
		return err
	}
	var changed, others []db.RowKey
	for _, key := range keys {
		if w.outcomes[key].changesVideo() {
			changed = append(changed, key)
		} else {
			others = append(others, key)
		}
	}
	if err := w.writeVideos(changed); err != nil {
		return err
	}
	if err := w.writeStates(others); err != nil {
		return err
	}
	return w.events.Save()
}

// changesVideo returns true if the outcome has something to write to a video besides the fetch status.
func (o *Outcome) changesVideo() bool { return o.Facts != nil || o.Private != nil || o.NotSafe != nil }

// changeState updates the fetch state of a video or account of one organisation with the outcome. hasNumbers is true if the organisation has counts of
// this video or account.
func (o *Outcome) changeState(s *store.FetchState, hasNumbers bool, fetchedAt db.Instant) {
	if c := o.statusChange(); c != nil {
		s.ApplyChange(*c, hasNumbers, fetchedAt, o.NextAt)
	}
}

// statusChange returns the change of the fetch status. It returns nil if the outcome changes neither the status nor the time of the next fetch.
func (o *Outcome) statusChange() *queue.FetchChange {
	if o.Fetch == nil && (o.hasCounts() || o.Account != nil) {
		return &queue.FetchChange{Status: queue.FetchOK, Attempted: true}
	}
	return o.Fetch
}

// videoWriter stores the outcomes of one claim. It writes to the videos of every organisation that tracks one of the targets.
type videoWriter struct {
	tx        *gorm.DB
	fetchedAt db.Instant
	outcomes  map[db.RowKey]*Outcome // the outcome of each video, by Video.Key
	events    *store.EventRecorder
}

// measuredVideo is a video whose counts are written, and its latest views before the write, which are nil if they were unknown.
type measuredVideo struct {
	*store.Video
	viewsBefore *int64
}

// writeVideos writes the outcomes to the videos with the given keys. It also updates everything
// that is computed from these videos.
func (w videoWriter) writeVideos(keys []db.RowKey) error {
	videos, err := w.loadVideos(keys)
	if err != nil || len(videos) == 0 {
		return err
	}
	accounts, resolvers, err := w.findAccounts(videos)
	if err != nil {
		return err
	}
	before, touched := slices.Clone(videos), map[db.RowKey]bool{}
	w.collectAccounts(touched, videos) // the write can move a video to another account, so also add the accounts that the videos have before the write
	measured, retitled, moved := w.applyOutcomes(videos, accounts)
	if err := w.computeGrowth(measured); err != nil {
		return err
	}
	w.collectAccounts(touched, videos)
	stats, err := store.ReadStatistics(w.tx, db.SortedKeys(touched), videos)
	if err != nil {
		return err
	}
	stats.Gained = gainedByAccount(before, videos)
	for i := range videos {
		if v := &videos[i]; v.LinkedAccountID != nil {
			s := stats.Of[db.RowKey{Org: v.OrganisationID, ID: *v.LinkedAccountID}]
			v.OutlierMultiplier = s.OutlierMultiplier(v.Latest.Views)
		}
	}
	w.addVideoEvents(before, videos)
	if err := w.events.AddOutliers(stats); err != nil {
		return err
	}
	sums := store.SumsByOrganisation(videos)
	err = db.RunWrites(w.tx, slices.Concat(w.statementsForPoints(measured), StatementsForVideos(w.tx, videos),
		stats.StatementsForStatistics(w.tx, w.fetchedAt.Day()), StatementsForTotals(w.tx, store.SumsByOrganisation(before), sums))...)
	if err != nil {
		return err
	}
	if err := resolvers.forEach(func(r *store.AccountResolver) error { return r.UpdateHandles(w.tx) }); err != nil {
		return err
	}
	if err := SaveHashtags(w.tx, retitled); err != nil {
		return err
	}
	if err := CountUploads(w.tx, before, videos); err != nil {
		return err
	}
	// The statements below read the rows that the calls above have written.
	return db.RunWrites(w.tx, slices.Concat(w.statementsForMoved(moved), w.statementsForAccountDays(touched),
		store.StatementsForOrganisationDays(w.tx, slices.Collect(maps.Keys(sums)), w.fetchedAt.Day()))...)
}

// applyOutcomes sets the new values of the videos. It returns the videos whose counts are written, the videos whose titles have changed, and
// the keys of the videos that were fetched before and have moved to another account.
func (w videoWriter) applyOutcomes(videos []store.Video, accounts map[db.RowKey]*store.Account) (measured []measuredVideo, retitled []Retitled, moved []db.RowKey) {
	for i := range videos {
		v := &videos[i]
		before := *v
		if applyOutcome(v, w.outcomes[v.Key()], accounts, w.fetchedAt) {
			measured = append(measured, measuredVideo{v, before.Latest.Views})
		}
		if v.TitleFolded != before.TitleFolded { // this also corrects what an older release, with another FoldText, has stored
			retitled = append(retitled, Retitled{v, before.TitleFolded})
		}
		if before.LatestUpdatedAt != nil && v.LinkedAccountID != nil && (before.LinkedAccountID == nil || *before.LinkedAccountID != *v.LinkedAccountID) {
			moved = append(moved, v.Key())
		}
	}
	return measured, retitled, moved
}

// gainedByAccount adds up the views that videos gained by a write, for each account that has the videos after the write. before[i] and
// after[i] are the same video before and after the write. The first known views of a video are no gain.
func gainedByAccount(before, after []store.Video) map[db.RowKey]int64 {
	gained := map[db.RowKey]int64{}
	for i := range after {
		was, is := &before[i], &after[i]
		if is.LinkedAccountID == nil || was.Latest.Views == nil || is.Latest.Views == nil {
			continue
		}
		n := *is.Latest.Views - *was.Latest.Views
		if was.FirstViews != nil && is.FirstViews != nil {
			n -= *is.FirstViews - *was.FirstViews // a later fetch of the first day replaces the first views
		}
		gained[db.RowKey{Org: is.OrganisationID, ID: *is.LinkedAccountID}] += n
	}
	return gained
}

// statementsForMoved returns the statements that set counted_since of videos that got another account to the day of the fetch.
func (w videoWriter) statementsForMoved(videos []db.RowKey) []db.Write {
	if len(videos) == 0 {
		return nil
	}
	return db.Keys(videos).StatementsForExec(w.tx, `UPDATE videos SET counted_since = CAST(? AS `+db.DateType(w.tx)+`) FROM wanted
 WHERE videos.organisation_id = {org} AND videos.id = wanted.id`, w.fetchedAt.Day())
}

// writeStates writes the new fetch statuses of the videos with the given keys, and no other columns. The caller passes only videos whose
// fetch changed nothing but the status.
func (w videoWriter) writeStates(keys []db.RowKey) error {
	if len(keys) == 0 {
		return nil
	}
	videos, err := db.FindRows[store.Video](w.tx, db.Keys(keys), `SELECT videos.organisation_id, videos.id, videos.latest_updated_at, videos.fetch_status, videos.fetch_reason,
  videos.last_attempt_at, videos.next_fetch_at
 FROM wanted CROSS JOIN videos WHERE videos.organisation_id = {org} AND videos.id = wanted.id AND NOT videos.removed
 ORDER BY videos.organisation_id, videos.platform, videos.external_id`)
	if err != nil || len(videos) == 0 {
		return err
	}
	before, rows := slices.Clone(videos), make([][]any, len(videos))
	for i := range videos {
		v := &videos[i]
		w.outcomes[v.Key()].changeState(&v.FetchState, v.LatestUpdatedAt != nil, w.fetchedAt)
		rows[i] = []any{v.OrganisationID, v.ID, v.FetchStatus, v.FetchReason, v.LastAttemptAt, v.NextFetchAt}
	}
	if err := w.addStateEvents(before, videos); err != nil {
		return err
	}
	list := db.OrgRows{Name: "u", Columns: []string{"organisation_id uuid", "id uuid", "status text", "reason text", "attempt bigint", "next bigint"}, Rows: rows}
	return list.Exec(w.tx, `UPDATE videos SET fetch_status = u.status, fetch_reason = u.reason, last_attempt_at = u.attempt, next_fetch_at = u.next
 FROM u WHERE videos.organisation_id = {org} AND videos.id = u.id`)
}

// collectAccounts adds the accounts of the videos to a map. The value of an account is true if at least one of its videos got new counts.
func (w videoWriter) collectAccounts(gotCounts map[db.RowKey]bool, videos []store.Video) {
	for i := range videos {
		v := &videos[i]
		if v.LinkedAccountID != nil {
			account := db.RowKey{Org: v.OrganisationID, ID: *v.LinkedAccountID}
			gotCounts[account] = gotCounts[account] || w.outcomes[v.Key()].hasCounts()
		}
	}
}

// statementsForAccountDays returns the statements that store the present statistics of each account
// for the day of the fetch.
func (w videoWriter) statementsForAccountDays(touched map[db.RowKey]bool) []db.Write {
	measured, others := map[db.RowKey]bool{}, map[db.RowKey]bool{}
	for account, hasCounts := range touched {
		if hasCounts {
			measured[account] = true
		} else {
			others[account] = true
		}
	}
	stamp := store.DayStamp{Day: w.fetchedAt.Day()}
	writes := store.StatementsForAccountDays(w.tx, db.SortedKeys(others), stamp)
	// The time and source of the fetch are stored only with accounts whose videos got counts.
	for _, o := range w.outcomes {
		if o.hasCounts() {
			stamp.FetchedAt, stamp.Source = &w.fetchedAt, &o.Source
		}
	}
	return append(writes, store.StatementsForAccountDays(w.tx, db.SortedKeys(measured), stamp)...)
}

// loadedColumns are the columns that loadVideos reads. The column counted_since is missing, because storing a fetch does not need it.
var loadedColumns = append(store.VideoColumns(),
	db.Column[store.Video]{Name: "title_folded", Set: func(v *store.Video, row *db.Values, i int) { v.TitleFolded = row.String(i) }},
	db.Column[store.Video]{Name: "first_views", Set: func(v *store.Video, row *db.Values, i int) { v.FirstViews = row.OptionalInt(i) }})

// loadVideos reads the videos with the given keys. It leaves out stopped videos and videos that
// have counts of a later fetch.
func (w videoWriter) loadVideos(keys []db.RowKey) ([]store.Video, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	// No other transaction can change these videos, because this transaction has locked their
	// organisations.
	return db.FindColumns(w.tx, db.Keys(keys), loadedColumns, `SELECT `+db.ColumnNames("videos", loadedColumns)+` FROM wanted CROSS JOIN videos
 WHERE videos.organisation_id = {org} AND videos.id = wanted.id AND NOT videos.removed
   AND (videos.latest_updated_at IS NULL OR videos.latest_updated_at <= ?)
 ORDER BY videos.organisation_id, videos.platform, videos.external_id`, w.fetchedAt)
}

// applyOutcome copies an outcome into the fields of the video, but does not write the video to the database. It returns true if the outcome has
// counts.
func applyOutcome(v *store.Video, o *Outcome, accounts map[db.RowKey]*store.Account, fetchedAt db.Instant) bool {
	o.changeState(&v.FetchState, v.LatestUpdatedAt != nil || o.hasCounts(), fetchedAt)
	db.Assign(&v.Private, o.Private)
	db.Assign(&v.NotSafe, o.NotSafe)
	f := o.Facts
	if f == nil {
		return false
	}
	if o.hasCounts() {
		v.Private = false // a source that reports counts can see the video; the facts can still say that it is private
		applyCounts(v, f, fetchedAt)
	}
	db.Assign(&v.Title, f.Title)
	v.TitleFolded = db.FoldText(v.Title)
	db.Assign(&v.Username, f.Username)
	if a, ok := accounts[v.Key()]; ok {
		v.LinkedAccountID, v.Username = &a.ID, cmp.Or(a.Username, v.Username) // the account record may have a newer handle than the source's answer
	}
	if f.UploadedAt != nil {
		day := db.DateOf(*f.UploadedAt)
		v.UploadedAt = &day
	}
	applyLength(v, f.LengthSeconds)
	db.AssignPointer(&v.SongName, f.SongName)
	db.AssignPointer(&v.SongLink, f.SongLink)
	db.AssignPointer(&v.ThumbnailURL, f.ThumbnailURL)
	db.Assign(&v.NotSafe, f.NotSafe)
	db.Assign(&v.Private, f.Private)
	db.Assign(&v.HiddenStats, f.HiddenStats)
	db.Assign(&v.AdIsAd, f.IsAd)
	db.Assign(&v.AdInfoShop, f.ShopAd)
	db.AssignPointer(&v.AdProductIDShop, f.ShopProductID)
	v.Link = link.WithHandle(v.Platform, v.Link, v.Username)
	return o.hasCounts()
}

func (o *Outcome) hasCounts() bool { return o.Facts != nil && !o.DetailsOnly }

// applyCounts sets the latest counts of a video. A count that the source did not report keeps its value. Only hidden likes become nil. If the
// reported count is rounded and can be the stored count after rounding, the stored, more exact count is kept.
func applyCounts(v *store.Video, f *VideoFacts, fetchedAt db.Instant) {
	v.LatestUpdatedAt = &fetchedAt
	counts, roundedFrom := f.reportedCounts(), f.RoundedFrom.All()
	for i, latest := range v.Latest.Fields() {
		n := counts.All()[i]
		if n != nil && roundedFrom[i] != nil && *latest != nil && canBeRounding(*n, **latest, *roundedFrom[i]) {
			continue
		}
		db.AssignPointer(latest, n)
	}
	if f.HiddenStats != nil && *f.HiddenStats {
		v.Latest.Likes = f.Likes
	}
	v.LatestEngagement = v.Latest.Engagement()
}

// reportedCounts returns the counts that the source reported. A count that it did not report is nil.
func (f *VideoFacts) reportedCounts() db.Counts {
	return db.Counts{Views: f.Views, Likes: f.Likes, Comments: f.Comments, Shares: f.Shares, Bookmarks: f.Bookmarks}
}

// statementsForPoints returns the statements that store a point of each video for the day of the
// fetch.
func (w videoWriter) statementsForPoints(videos []measuredVideo) []db.Write {
	if len(videos) == 0 {
		return nil
	}
	day := w.fetchedAt.Day()
	rows := make([][]any, len(videos))
	for i, v := range videos {
		o := w.outcomes[v.Key()]
		counts, latest := o.Facts.reportedCounts(), v.Latest
		for j, n := range counts.Fields() {
			if *n != nil {
				*n = latest.All()[j] // the stored count, if it is more exact than the reported count
			}
		}
		rows[i] = append([]any{v.OrganisationID, v.ID, day, day.Week(), w.fetchedAt, store.StoredSource(o.Source, o.Facts.IsRounded())}, counts.Values()...)
	}
	columns := append([]string{"organisation_id uuid", "video_id uuid", "day date", "week date", "fetched_at bigint", "source text"}, db.MetricDefinitions("")...)
	// A count that the source did not report keeps its value from an earlier fetch that day.
	return db.StatementsForInsert(w.tx, "snapshots_daily", columns, rows, `ON CONFLICT (organisation_id, video_id, day) DO UPDATE SET
 fetched_at = excluded.fetched_at, source = excluded.source, `+db.MetricColumns("{m} = COALESCE(excluded.{m}, snapshots_daily.{m})")+`
 WHERE snapshots_daily.fetched_at <= excluded.fetched_at`)
}

// savedColumns are the columns that StatementsForVideos writes for each video. Each has a name and a SQL type.
var savedColumns = slices.Concat([]string{"link text", "username text", "linked_account_id uuid", "uploaded_at date", "song_name text", "song_link text",
	"thumbnail_url text", "video_length text", "title text", "title_folded text", "not_safe boolean", "private boolean", "hidden_stats boolean",
	"ad_info_shop boolean", "ad_is_ad boolean", "ad_product_id_shop text", "first_views bigint", "latest_engagement bigint", "latest_updated_at bigint",
	"outlier_multiplier double precision", "fetch_status text", "fetch_reason text", "last_attempt_at bigint", "next_fetch_at bigint"},
	store.GrowthDefinitions, db.MetricDefinitions("latest_"))

// savedValues returns the values of a video in the order of savedColumns.
func savedValues(v *store.Video) []any {
	return slices.Concat([]any{v.Link, v.Username, v.LinkedAccountID, v.UploadedAt, v.SongName, v.SongLink,
		v.ThumbnailURL, v.VideoLength, v.Title, v.TitleFolded, v.NotSafe, v.Private, v.HiddenStats,
		v.AdInfoShop, v.AdIsAd, v.AdProductIDShop, v.FirstViews, v.LatestEngagement, v.LatestUpdatedAt,
		v.OutlierMultiplier, v.FetchStatus, v.FetchReason, v.LastAttemptAt, v.NextFetchAt},
		v.Growth.Values(), v.Latest.Values())
}

// StatementsForVideos returns the statements that update the rows of videos.
func StatementsForVideos(tx *gorm.DB, videos []store.Video) []db.Write {
	if len(videos) == 0 {
		return nil
	}
	rows := make([][]any, len(videos))
	for i := range videos {
		v := &videos[i]
		rows[i] = append([]any{v.OrganisationID, v.ID}, savedValues(v)...)
	}
	list := db.OrgRows{Name: "u", Columns: append([]string{"organisation_id uuid", "id uuid"}, savedColumns...), Rows: rows}
	return list.StatementsForExec(tx, "UPDATE videos SET "+db.ColumnAssignments("u", savedColumns)+" FROM u WHERE videos.organisation_id = {org} AND videos.id = u.id")
}
