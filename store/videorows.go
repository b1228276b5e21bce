package store

import (
	"context"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// videoColumn is a column of videos, and how its value is set in a Video.
type videoColumn struct {
	name string
	set  func(v *Video, row *db.Values, i int)
}

// videoColumns are the columns that lists of videos read.
var videoColumns = []videoColumn{
	{"organisation_id", func(v *Video, row *db.Values, i int) { v.OrganisationID, _ = row.UUID(i) }},
	{"id", func(v *Video, row *db.Values, i int) { v.ID, _ = row.UUID(i) }},
	{"platform", func(v *Video, row *db.Values, i int) { v.Platform = link.Platform(text(row, i)) }},
	{"external_id", func(v *Video, row *db.Values, i int) { v.ExternalID = text(row, i) }},
	{"link", func(v *Video, row *db.Values, i int) { v.Link = text(row, i) }},
	{"username", func(v *Video, row *db.Values, i int) { v.Username = text(row, i) }},
	{"linked_account_id", func(v *Video, row *db.Values, i int) { v.LinkedAccountID = known(row.UUID(i)) }},
	{"created_at", func(v *Video, row *db.Values, i int) { n, _ := row.Int(i); v.CreatedAt = db.Instant(n) }},
	{"removed", func(v *Video, row *db.Values, i int) { v.Removed, _ = row.Bool(i) }},
	{"pending", func(v *Video, row *db.Values, i int) { v.Pending, _ = row.Bool(i) }},
	{"direct", func(v *Video, row *db.Values, i int) { v.Direct, _ = row.Bool(i) }},
	{"uploaded_at", func(v *Video, row *db.Values, i int) { v.UploadedAt = known(row.Date(i)) }},
	{"song_name", func(v *Video, row *db.Values, i int) { v.SongName = known(row.Text(i)) }},
	{"song_link", func(v *Video, row *db.Values, i int) { v.SongLink = known(row.Text(i)) }},
	{"video_length", func(v *Video, row *db.Values, i int) { v.VideoLength = known(row.Text(i)) }},
	{"title", func(v *Video, row *db.Values, i int) { v.Title = text(row, i) }},
	{"title_folded", func(v *Video, row *db.Values, i int) { v.TitleFolded = text(row, i) }},
	{"not_safe", func(v *Video, row *db.Values, i int) { v.NotSafe, _ = row.Bool(i) }},
	{"private", func(v *Video, row *db.Values, i int) { v.Private, _ = row.Bool(i) }},
	{"hidden_stats", func(v *Video, row *db.Values, i int) { v.HiddenStats, _ = row.Bool(i) }},
	{"ad_info_shop", func(v *Video, row *db.Values, i int) { v.AdInfoShop, _ = row.Bool(i) }},
	{"ad_is_ad", func(v *Video, row *db.Values, i int) { v.AdIsAd, _ = row.Bool(i) }},
	{"ad_product_id_shop", func(v *Video, row *db.Values, i int) { v.AdProductIDShop = known(row.Text(i)) }},
	{"latest_views", func(v *Video, row *db.Values, i int) { v.LatestViews = known(row.Int(i)) }},
	{"latest_likes", func(v *Video, row *db.Values, i int) { v.LatestLikes = known(row.Int(i)) }},
	{"latest_comments", func(v *Video, row *db.Values, i int) { v.LatestComments = known(row.Int(i)) }},
	{"latest_bookmarks", func(v *Video, row *db.Values, i int) { v.LatestBookmarks = known(row.Int(i)) }},
	{"latest_shares", func(v *Video, row *db.Values, i int) { v.LatestShares = known(row.Int(i)) }},
	{"latest_engagement", func(v *Video, row *db.Values, i int) { v.LatestEngagement = known(row.Int(i)) }},
	{"latest_updated_at", func(v *Video, row *db.Values, i int) { v.LatestUpdatedAt = instant(row, i) }},
	{"outlier_multiplier", func(v *Video, row *db.Values, i int) { v.OutlierMultiplier = known(row.Float(i)) }},
	{"increase_1d", func(v *Video, row *db.Values, i int) { v.Increase1d = known(row.Float(i)) }},
	{"increase_7d", func(v *Video, row *db.Values, i int) { v.Increase7d = known(row.Float(i)) }},
	{"increase_14d", func(v *Video, row *db.Values, i int) { v.Increase14d = known(row.Float(i)) }},
	{"increase_30d", func(v *Video, row *db.Values, i int) { v.Increase30d = known(row.Float(i)) }},
	{"views_gained_7d", func(v *Video, row *db.Values, i int) { v.ViewsGained7d = known(row.Int(i)) }},
	{"fetch_status", func(v *Video, row *db.Values, i int) { v.FetchStatus = queue.FetchStatus(text(row, i)) }},
	{"fetch_reason", func(v *Video, row *db.Values, i int) { v.FetchReason = text(row, i) }},
	{"last_attempt_at", func(v *Video, row *db.Values, i int) { v.LastAttemptAt = instant(row, i) }},
	{"next_fetch_at", func(v *Video, row *db.Values, i int) { v.NextFetchAt = instant(row, i) }},
}

// text returns the text at an index, or "" for NULL.
func text(row *db.Values, i int) string {
	s, _ := row.Text(i)
	return s
}

// instant returns the time at an index, or nil for NULL.
func instant(row *db.Values, i int) *db.Instant {
	n, ok := row.Int(i)
	return known(db.Instant(n), ok)
}

// known returns a pointer to value, or nil if ok is false.
func known[T any](value T, ok bool) *T {
	if !ok {
		return nil
	}
	return &value
}

// readVideos returns the videos that the query q selects, without their labels.
func (o *Org) readVideos(ctx context.Context, q *gorm.DB) ([]Video, error) {
	names := make([]string, len(videoColumns))
	for i, c := range videoColumns {
		names[i] = "videos." + c.name
	}
	var videos []Video
	err := o.s.db.EachRow(ctx, q.Select(names), func(row *db.Values) error {
		videos = append(videos, Video{})
		v := &videos[len(videos)-1]
		for i, c := range videoColumns {
			c.set(v, row, i)
		}
		return nil
	})
	return videos, err
}
