package store

import (
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// LinkedAccounts returns the keys of the accounts to which the videos are linked, sorted and without duplicates.
func LinkedAccounts(videos []Video) []db.RowKey {
	accounts := map[db.RowKey]bool{}
	for i := range videos {
		if id := videos[i].LinkedAccountID; id != nil {
			accounts[db.RowKey{Org: videos[i].OrganisationID, ID: *id}] = true
		}
	}
	return db.SortedKeys(accounts)
}

// AccountVideo is a video with the values from which the statistics of its account are computed.
type AccountVideo struct {
	OrganisationID  uuid.UUID
	ID              uuid.UUID
	LinkedAccountID uuid.UUID
	db.Counts       // the latest counts of the video
	UploadedAt      *db.Date

	multiplier *float64 // the stored outlier multiplier; only ReadStatistics needs it
}

// accountVideoColumns lists the columns that are read from the table "videos" into an AccountVideo.
var accountVideoColumns = func() []db.Column[AccountVideo] {
	columns := []db.Column[AccountVideo]{
		{Name: "organisation_id", Set: func(v *AccountVideo, row *db.Values, i int) { v.OrganisationID = row.ID(i) }},
		{Name: "id", Set: func(v *AccountVideo, row *db.Values, i int) { v.ID = row.ID(i) }},
		{Name: "linked_account_id", Set: func(v *AccountVideo, row *db.Values, i int) { v.LinkedAccountID = row.ID(i) }},
	}
	for n, name := range db.MetricNames("") {
		columns = append(columns, db.Column[AccountVideo]{Name: name, Set: func(v *AccountVideo, row *db.Values, i int) { *v.Fields()[n] = row.OptionalInt(i) }})
	}
	return append(columns,
		db.Column[AccountVideo]{Name: "uploaded_at", Set: func(v *AccountVideo, row *db.Values, i int) { v.UploadedAt = row.OptionalDate(i) }},
		db.Column[AccountVideo]{Name: "outlier_multiplier", Set: func(v *AccountVideo, row *db.Values, i int) { v.multiplier = row.OptionalFloat(i) }})
}()

// RefreshAccounts recomputes the statistics of accounts. It also stores them in the table account_days, for the day in stamp.Day, and adds
// events about new outliers.
func RefreshAccounts(tx *gorm.DB, accounts []db.RowKey, stamp DayStamp, events *EventRecorder) error {
	stats, err := ReadStatistics(tx, accounts, nil)
	if err != nil {
		return err
	}
	if err := events.AddOutliers(stats); err != nil {
		return err
	}
	if err := db.RunWrites(tx, stats.StatementsForStatistics(tx, stamp.Day)...); err != nil {
		return err
	}
	return db.RunWrites(tx, StatementsForAccountDays(tx, accounts, stamp)...)
}

// RefreshStatistics recomputes the statistics of accounts, and the outlier multipliers of their tracked videos. It adds no events, and does not change
// the gained views of accounts that have rows in account_days.
func RefreshStatistics(tx *gorm.DB, accounts []db.RowKey) error {
	stats, err := ReadStatistics(tx, accounts, nil)
	if err != nil {
		return err
	}
	return db.RunWrites(tx, stats.StatementsForStatistics(tx, 0)...)
}

// AccountsStats has the statistics of several accounts.
type AccountsStats struct {
	Of map[db.RowKey]AccountStats // the map key identifies the account
	// Gained has the views that the account's videos gained by the answers that are being stored. ReadStatistics does not set it.
	Gained map[db.RowKey]int64
	// newMultipliers has the videos whose outlier multiplier is wrong in the database.
	newMultipliers []newMultiplier
}

// newMultiplier is a change of a video's outlier multiplier. A multiplier is nil if it is unknown.
type newMultiplier struct {
	video            db.RowKey
	stored, computed *float64
}

// ReadStatistics computes the statistics of accounts from their tracked videos. It also finds the videos whose stored outlier multiplier is
// wrong, except those in changedVideos. The values in changedVideos replace the stored values of these videos.
func ReadStatistics(tx *gorm.DB, accounts []db.RowKey, changedVideos []Video) (AccountsStats, error) {
	s := AccountsStats{Of: make(map[db.RowKey]AccountStats, len(accounts))}
	if len(accounts) == 0 {
		return s, nil
	}
	videos, changed := make(map[db.RowKey][]AccountVideo, len(accounts)), make(map[db.RowKey]bool, len(changedVideos))
	for i := range changedVideos {
		v := &changedVideos[i]
		changed[v.Key()] = true
		if v.LinkedAccountID != nil {
			of := AccountVideo{OrganisationID: v.OrganisationID, ID: v.ID, LinkedAccountID: *v.LinkedAccountID, Counts: v.Latest, UploadedAt: v.UploadedAt}
			videos[of.accountKey()] = append(videos[of.accountKey()], of)
		}
	}
	stored, err := db.FindColumns(tx, db.Keys(accounts), accountVideoColumns, `SELECT v.organisation_id, v.id, v.linked_account_id, `+db.MetricColumns("v.latest_{m} AS {m}")+`, v.uploaded_at, v.outlier_multiplier
  FROM wanted CROSS JOIN videos v WHERE v.organisation_id = {org} AND v.linked_account_id = wanted.id AND NOT v.removed`)
	if err != nil {
		return s, err
	}
	stored = slices.DeleteFunc(stored, func(v AccountVideo) bool { return changed[db.RowKey{Org: v.OrganisationID, ID: v.ID}] })
	for _, v := range stored {
		videos[v.accountKey()] = append(videos[v.accountKey()], v)
	}
	for _, account := range accounts {
		s.Of[account] = StatsOf(videos[account])
	}
	for _, v := range stored {
		of := s.Of[v.accountKey()]
		computed := of.OutlierMultiplier(v.Views)
		if (computed == nil) != (v.multiplier == nil) || computed != nil && *computed != *v.multiplier {
			s.newMultipliers = append(s.newMultipliers, newMultiplier{db.RowKey{Org: v.OrganisationID, ID: v.ID}, v.multiplier, computed})
		}
	}
	return s, nil
}

// accountKey returns the key of the row of the video's account.
func (v *AccountVideo) accountKey() db.RowKey {
	return db.RowKey{Org: v.OrganisationID, ID: v.LinkedAccountID}
}

// AccountStats are the statistics of an account's tracked videos.
type AccountStats struct {
	Videos                                     int64
	MeanViews, MedianViews, MedianViewsNonZero *float64
	MostViewed                                 *int64
	PercentOutperform10x, PercentOutperform25x *float64
	db.Counts                                  // sums of the latest counts of the videos
	LastUploadedAt                             *db.Date
}

// StatsOf computes the statistics of an account's tracked videos.
func StatsOf(videos []AccountVideo) AccountStats {
	s := AccountStats{Videos: int64(len(videos))}
	var views []int64
	for _, v := range videos {
		s.Add(v.Counts)
		if v.Views != nil {
			views = append(views, *v.Views)
		}
		if v.UploadedAt != nil && (s.LastUploadedAt == nil || *v.UploadedAt > *s.LastUploadedAt) {
			s.LastUploadedAt = v.UploadedAt
		}
	}
	if len(views) == 0 {
		return s
	}
	slices.Sort(views)
	n := float64(len(views))
	median, mean, most := Median(views), float64(*s.Views)/n, views[len(views)-1]
	s.MedianViews, s.MeanViews, s.MostViewed = &median, &mean, &most
	firstNonZero, _ := slices.BinarySearch(views, 1)
	if nonZero := views[firstNonZero:]; len(nonZero) > 0 {
		m := Median(nonZero)
		s.MedianViewsNonZero = &m
	}
	share := func(times float64) *float64 {
		above := 0
		for _, v := range views {
			if median > 0 && float64(v) >= times*median {
				above++
			}
		}
		percent := float64(above) / n * 100
		return &percent
	}
	s.PercentOutperform10x, s.PercentOutperform25x = share(10), share(25)
	return s
}

// OutlierMultiplier returns a video's views divided by the account's median views. It returns nil
// if either number is unknown or the median is 0.
func (s *AccountStats) OutlierMultiplier(views *int64) *float64 {
	if views == nil || s.MedianViews == nil || *s.MedianViews <= 0 {
		return nil
	}
	return new(float64(*views) / *s.MedianViews)
}

// Median returns the median of values in ascending order. It returns 0 if there are no values.
func Median(sorted []int64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return float64(sorted[n/2])
	}
	return (float64(sorted[n/2-1]) + float64(sorted[n/2])) / 2
}

// StatementsForStatistics returns statements that store the accounts' new statistics and correct the outlier
// multipliers of videos. The caller itself must store the videos that it passed to ReadStatistics. After these statements, the caller must write the
// rows of account_days for the given day. With day 0, it need not do so: the gains of accounts that have rows then do not change.
func (s AccountsStats) StatementsForStatistics(tx *gorm.DB, day db.Date) []db.Write {
	if len(s.Of) == 0 {
		return nil
	}
	accounts := db.SortedKeys(s.Of)
	stats := make([][]any, len(accounts))
	for i, account := range accounts {
		a := s.Of[account]
		stats[i] = append([]any{account.Org, account.ID, a.Videos, a.MeanViews, a.MedianViews, a.MedianViewsNonZero, a.MostViewed, a.PercentOutperform10x,
			a.PercentOutperform25x, a.LastUploadedAt, s.Gained[account]}, a.Counts.Values()...)
	}
	columns := append([]string{"organisation_id uuid", "id uuid", "videos bigint", "mean double precision", "median double precision", "median_non_zero double precision",
		"most bigint", "over10 double precision", "over25 double precision", "last_uploaded date", "gained bigint"}, db.MetricDefinitions("")...)
	// If the account has a row of a later day, the gain belongs to that row. The period of the seven days then stays the same.
	writes := db.OrgRows{Name: "s", Columns: columns, Rows: stats}.StatementsForExec(tx, `UPDATE accounts SET total_videos_tracked = s.videos, mean_views = s.mean, median_views = s.median, median_views_non_zero = s.median_non_zero,
 most_viewed = s.most, percent_outperform_10x = s.over10, percent_outperform_25x = s.over25, last_uploaded_at = s.last_uploaded,
 `+db.MetricColumns("total_{m} = s.{m}")+`,
 views_gained = CASE WHEN s.views IS NULL THEN accounts.views_gained ELSE COALESCE(accounts.views_gained, 0) + s.gained END,
 views_gained_7d = CASE WHEN (SELECT MAX(l.day) FROM account_days l WHERE l.organisation_id = {org} AND l.account_id = s.id) > ? THEN accounts.views_gained_7d + s.gained
  ELSE COALESCE(accounts.views_gained, 0) + s.gained - (SELECT d.views_gained FROM account_days d
   WHERE d.organisation_id = {org} AND d.account_id = s.id AND d.day <= ? AND d.views_gained IS NOT NULL ORDER BY d.day DESC LIMIT 1) END
 FROM s WHERE accounts.organisation_id = {org} AND accounts.id = s.id`, day, day-7)
	if len(s.newMultipliers) == 0 {
		return writes
	}
	videos := make([][]any, len(s.newMultipliers))
	for i, m := range s.newMultipliers {
		videos[i] = []any{m.video.Org, m.video.ID, m.computed}
	}
	list := db.OrgRows{Name: "m", Columns: []string{"organisation_id uuid", "id uuid", "multiplier double precision"}, Rows: videos}
	return append(writes, list.StatementsForExec(tx, `UPDATE videos SET outlier_multiplier = m.multiplier FROM m WHERE videos.organisation_id = {org} AND videos.id = m.id`)...)
}

// AccountDay is a row of the table account_days: the statistics of an account at the end of one day.
type AccountDay struct {
	OrganisationID, AccountID uuid.UUID
	Day                       db.Date
	Followers, Following      *int64
	Videos                    int64
	db.Counts
	// ViewsGained is a running total: the views that the account's videos have gained until the end of the day, while they were tracked and linked to
	// the account. Only the difference between two days has a meaning, because the total of an account can begin at any time. It is nil if no views
	// were known yet, and in the rows that HasUnknownGain describes.
	ViewsGained *int64
	FetchedAt   *db.Instant // time of the fetch that changed the statistics last; nil if there was none on this day
	Source      *string     // source of this fetch
}

// HasUnknownGain returns true if the row has views, but not the views gained until the end of the day. An earlier release wrote such rows, and a merge
// with the record of an account that has such rows makes them.
func (d AccountDay) HasUnknownGain() bool { return d.Views != nil && d.ViewsGained == nil }

// GainedIn7Days returns the views that an account gained in the seven days that end with the day of its last row. It subtracts the ViewsGained of the
// newest row that is at least seven days older and has ViewsGained. It returns nil if there is no such row, or if the last row has no ViewsGained. The
// rows must be ordered by day.
func GainedIn7Days(days []AccountDay) *int64 {
	if len(days) == 0 || days[len(days)-1].ViewsGained == nil {
		return nil
	}
	last := days[len(days)-1]
	for _, d := range slices.Backward(days) {
		if d.Day <= last.Day-7 && d.ViewsGained != nil {
			return new(*last.ViewsGained - *d.ViewsGained)
		}
	}
	return nil
}

// DayStamp has the day for which the statistics of accounts are stored. It also says which fetch changed these statistics, if a fetch changed them.
type DayStamp struct {
	Day       db.Date
	FetchedAt *db.Instant // time of the fetch; nil if the statistics changed without a fetch
	Source    *string     // source of the fetch; nil if the statistics changed without a fetch
}

// StatementsForAccountDays returns statements that write the current statistics of accounts to account_days.
// The row is that of stamp.Day or, if the account already has later rows, the last one.
func StatementsForAccountDays(tx *gorm.DB, accounts []db.RowKey, stamp DayStamp) []db.Write {
	if len(accounts) == 0 {
		return nil
	}
	// An updated row keeps the source of its newest fetch.
	const newest = `CASE WHEN account_days.fetched_at IS NULL OR excluded.fetched_at >= account_days.fetched_at THEN `
	return db.Keys(accounts).StatementsForExec(tx, `INSERT INTO account_days (organisation_id, account_id, day, followers, following, videos, views_gained, `+db.MetricColumns("{m}")+`, fetched_at, source)
SELECT a.organisation_id, a.id,
  COALESCE((SELECT MAX(d.day) FROM account_days d WHERE d.organisation_id = {org} AND d.account_id = a.id AND d.day > ?), CAST(? AS `+db.DateType(tx)+`)),
  a.latest_followers_count, a.latest_following_count, a.total_videos_tracked, a.views_gained, `+db.MetricColumns("a.total_{m}")+`,
  CAST(? AS bigint), CAST(? AS text)
  FROM wanted CROSS JOIN accounts a WHERE a.organisation_id = {org} AND a.id = wanted.id
ON CONFLICT (organisation_id, account_id, day) DO UPDATE SET followers = excluded.followers, following = excluded.following, videos = excluded.videos,
  views_gained = excluded.views_gained, `+db.MetricColumns("{m} = excluded.{m}")+`,
  source = `+newest+`excluded.source ELSE account_days.source END, fetched_at = `+newest+`excluded.fetched_at ELSE account_days.fetched_at END`,
		stamp.Day, stamp.Day, stamp.FetchedAt, stamp.Source)
}
