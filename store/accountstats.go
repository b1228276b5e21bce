package store

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// linkedAccounts returns the accounts of videos, each once, sorted.
func linkedAccounts(videos []Video) []uuid.UUID {
	var ids []uuid.UUID
	for _, v := range videos {
		if v.LinkedAccountID != nil && !slices.Contains(ids, *v.LinkedAccountID) {
			ids = append(ids, *v.LinkedAccountID)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// accountVideo is what an account's statistics are made from.
type accountVideo struct {
	LinkedAccountID uuid.UUID
	LatestViews     *int64
	LatestLikes     *int64
	LatestComments  *int64
	LatestBookmarks *int64
	LatestShares    *int64
	UploadedAt      *Date
}

// refreshAccounts recomputes the statistics of accounts and notes them as the accounts' point of the day.
func refreshAccounts(tx *gorm.DB, org uuid.UUID, accounts []uuid.UUID, of stamp) error {
	if len(accounts) == 0 {
		return nil
	}
	if err := refreshStatistics(tx, org, accounts); err != nil {
		return err
	}
	return saveAccountDays(tx, org, accounts, of)
}

// refreshStatistics recomputes the statistics of accounts from their tracked videos, and how each of these compares with
// the account's median.
func refreshStatistics(tx *gorm.DB, org uuid.UUID, accounts []uuid.UUID) error {
	if len(accounts) == 0 {
		return nil
	}
	var rows []accountVideo
	err := scoped(tx, "videos", org).
		Select("linked_account_id, latest_views, latest_likes, latest_comments, latest_bookmarks, latest_shares, uploaded_at").
		Where("videos.linked_account_id IN ? AND NOT videos.removed", accounts).Find(&rows).Error
	if err != nil {
		return err
	}
	byAccount := map[uuid.UUID][]accountVideo{}
	for _, r := range rows {
		byAccount[r.LinkedAccountID] = append(byAccount[r.LinkedAccountID], r)
	}
	for chunk := range slices.Chunk(accounts, insertChunk) {
		if err := saveAccountStats(tx, org, chunk, byAccount); err != nil {
			return err
		}
	}
	return nil
}

// AccountStats are an account's statistics over its tracked videos.
type AccountStats struct {
	Videos                                     int64
	MeanViews, MedianViews, MedianViewsNonZero *float64
	MostViewed                                 *int64
	PercentOutperform10x, PercentOutperform25x *float64
	Views, Likes, Comments, Bookmarks, Shares  *int64
	LastUploadedAt                             *Date
}

func statsOf(videos []accountVideo) AccountStats {
	s := AccountStats{Videos: int64(len(videos))}
	var views []int64
	for _, v := range videos {
		addTo(&s.Views, v.LatestViews)
		addTo(&s.Likes, v.LatestLikes)
		addTo(&s.Comments, v.LatestComments)
		addTo(&s.Bookmarks, v.LatestBookmarks)
		addTo(&s.Shares, v.LatestShares)
		if v.LatestViews != nil {
			views = append(views, *v.LatestViews)
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

func addTo(sum **int64, n *int64) {
	if n == nil {
		return
	}
	total := *n
	if *sum != nil {
		total += **sum
	}
	*sum = &total
}

// Median returns the middle of sorted numbers, or the mean of the middle two; 0 of none.
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

// saveAccountStats writes the statistics and the outlier multipliers that follow from them, in one statement each.
func saveAccountStats(tx *gorm.DB, org uuid.UUID, accounts []uuid.UUID, videos map[uuid.UUID][]accountVideo) error {
	values, args := make([]string, len(accounts)), []any{}
	medians, medianArgs := make([]string, len(accounts)), []any{}
	id := "CAST(? AS " + uuidType(tx) + ")"
	for i, account := range accounts {
		s := statsOf(videos[account])
		values[i] = "(" + id + ", CAST(? AS bigint), CAST(? AS double precision), CAST(? AS double precision), CAST(? AS double precision), CAST(? AS bigint)," +
			" CAST(? AS double precision), CAST(? AS double precision), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS " + dateType(tx) + "))"
		args = append(args, account, s.Videos, s.MeanViews, s.MedianViews, s.MedianViewsNonZero, s.MostViewed, s.PercentOutperform10x, s.PercentOutperform25x,
			s.Views, s.Likes, s.Comments, s.Bookmarks, s.Shares, s.LastUploadedAt)
		medians[i] = "(" + id + ", CAST(? AS double precision))"
		medianArgs = append(medianArgs, account, s.MedianViews)
	}
	err := tx.Exec(`WITH s(id, videos, mean, median, median_non_zero, most, over10, over25, views, likes, comments, bookmarks, shares, last_uploaded) AS (VALUES `+strings.Join(values, ", ")+`)
UPDATE accounts SET total_videos_tracked = s.videos, mean_views = s.mean, median_views = s.median, median_views_non_zero = s.median_non_zero,
 most_viewed = s.most, percent_outperform_10x = s.over10, percent_outperform_25x = s.over25, total_views = s.views, total_likes = s.likes,
 total_comments = s.comments, total_bookmarks = s.bookmarks, total_shares = s.shares, last_uploaded_at = s.last_uploaded
 FROM s WHERE accounts.organisation_id = ? AND accounts.id = s.id`, append(args, org)...).Error
	if err != nil {
		return err
	}
	return tx.Exec(`WITH m(account_id, median) AS (VALUES `+strings.Join(medians, ", ")+`)
UPDATE videos SET outlier_multiplier = CASE WHEN m.median > 0 AND videos.latest_views IS NOT NULL THEN videos.latest_views / m.median ELSE 0 END
  FROM m WHERE videos.organisation_id = ? AND videos.linked_account_id = m.account_id AND NOT videos.removed`, append(medianArgs, org)...).Error
}

// stamp is the day for which numbers are noted, and where they come from; nil when nothing was fetched.
type stamp struct {
	day       Date
	fetchedAt *Instant
	source    *string
}

// saveAccountDays notes the accounts' numbers as the day's.
func saveAccountDays(tx *gorm.DB, org uuid.UUID, accounts []uuid.UUID, of stamp) error {
	return tx.Exec(`INSERT INTO account_days (organisation_id, account_id, day, followers, following, videos, views, likes, comments, shares, bookmarks, fetched_at, source)
SELECT a.organisation_id, a.id, CAST(? AS `+dateType(tx)+`), a.latest_followers_count, a.latest_following_count, a.total_videos_tracked, a.total_views,
  a.total_likes, a.total_comments, a.total_shares, a.total_bookmarks, CAST(? AS bigint), CAST(? AS text) FROM accounts a WHERE a.organisation_id = ? AND a.id IN ?
ON CONFLICT (organisation_id, account_id, day) DO UPDATE SET followers = excluded.followers, following = excluded.following, videos = excluded.videos,
  views = excluded.views, likes = excluded.likes, comments = excluded.comments, shares = excluded.shares, bookmarks = excluded.bookmarks,
  fetched_at = COALESCE(excluded.fetched_at, account_days.fetched_at), source = COALESCE(excluded.source, account_days.source)`,
		of.day, of.fetchedAt, of.source, org, accounts).Error
}

// countUploads adds the videos whose upload date has just become known to the day's uploads.
func (w writer) countUploads(videos []Video) error {
	type uploads struct {
		OrganisationID uuid.UUID
		Day            Date
		Uploads        int64
	}
	counts := map[Date]int64{}
	for _, v := range videos {
		if w.undated[v.ID] && v.UploadedAt != nil {
			counts[*v.UploadedAt]++
		}
	}
	rows := make([]uploads, 0, len(counts))
	for day, n := range counts {
		rows = append(rows, uploads{w.org, day, n})
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b uploads) int { return int(a.Day - b.Day) })
	return w.tx.Table("organisation_uploads").Clauses(clause.OnConflict{
		Columns:   columns([]string{"organisation_id", "day"}),
		DoUpdates: clause.Assignments(map[string]any{"uploads": gorm.Expr("organisation_uploads.uploads + excluded.uploads")}),
	}).Create(&rows).Error
}
