package backfill

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// newVideo returns the row of a video, with the latest counts and the growth that follow from its points. It fails if the points are not in order, as
// LoadVideo.Points says.
func (l *loadState) newVideo(in *LoadVideo, account uuid.UUID) (store.Video, error) {
	v := in.Video
	v.OrganisationID, v.LinkedAccountID, v.TitleFolded = l.ID(), &account, db.FoldText(v.Title)
	for i, p := range in.Points {
		if (i > 0 && p.At.Day() <= in.Points[i-1].At.Day()) || p.At > l.now {
			return v, fmt.Errorf("point %d of video %s is at %s: points must be in the order of time, at most one on each day, and not in the future", i, v.ID, p.At.Time())
		}
		v.LatestUpdatedAt = &in.Points[i].At
		if v.FirstViews == nil {
			v.FirstViews = p.Views
		}
		for n, latest := range v.LatestFields() {
			db.AssignPointer(latest, p.All()[n])
		}
	}
	v.LatestEngagement = v.LatestCounts().Engagement()
	if n := len(in.Points); n > 0 {
		day := in.Points[n-1].At.Day()
		ingest.SetGrowth(&v, day, lastDayWithViews(in.Points), func(d db.Date) *int64 { return viewsOn(in.Points, d) })
	}
	return v, nil
}

// viewsOn returns the last known views at the end of the given day, or nil if no point up to this
// day has views.
func viewsOn(points []LoadPoint, day db.Date) *int64 {
	for _, p := range slices.Backward(points) {
		if p.At.Day() <= day && p.Views != nil {
			return p.Views
		}
	}
	return nil
}

// lastDayWithViews returns the day of the last point that has views, or nil if no point has views.
func lastDayWithViews(points []LoadPoint) *db.Date {
	for _, p := range slices.Backward(points) {
		if p.Views != nil {
			return new(p.At.Day())
		}
	}
	return nil
}

// videoColumns has the names of the columns of videos that the seed fills. Each row of loadState.videos has its values in this order.
var videoColumns = slices.Concat([]string{"organisation_id", "id", "platform", "external_id", "link", "username", "linked_account_id", "created_at", "removed",
	"pending", "direct", "uploaded_at", "song_name", "song_link", "thumbnail_url", "video_length", "title", "title_folded", "not_safe", "private", "hidden_stats",
	"ad_info_shop", "ad_is_ad", "ad_product_id_shop", "fetch_status", "last_attempt_at",
	"first_views", "latest_engagement", "latest_updated_at", "outlier_multiplier"}, store.GrowthColumns, store.MetricNames("latest_"))

// addVideo adds the rows and counts of the video v to l. If v is tracked and not pending, addVideo
// also adds a target for the queue.
func (l *loadState) addVideo(v *store.Video, in *LoadVideo) {
	// The caller has already set the latest counts and the growth of v.
	latest := v.LatestCounts()
	status, attemptedAt := loadedStatus(!v.Removed, v.Removed, v.LatestUpdatedAt), v.LatestUpdatedAt
	if in.Refused != nil && status == queue.FetchOK {
		status, attemptedAt = in.Refused.Status, &in.Refused.At
	}
	l.videos = append(l.videos, slices.Concat([]any{l.ID(), v.ID, v.Platform, v.ExternalID, v.Link, v.Username, v.LinkedAccountID, v.CreatedAt, v.Removed,
		v.Pending, v.Direct, v.UploadedAt, v.SongName, v.SongLink, v.ThumbnailURL, v.VideoLength, v.Title, v.TitleFolded, v.NotSafe, v.Private, v.HiddenStats,
		v.AdInfoShop, v.AdIsAd, v.AdProductIDShop, status, attemptedAt,
		v.FirstViews, v.LatestEngagement, v.LatestUpdatedAt, v.OutlierMultiplier}, v.Growth.Values(), latest.Values()))
	for _, tag := range store.Hashtags(v.Title) {
		l.hashtags = append(l.hashtags, []any{l.ID(), tag, v.ID})
	}
	for _, c := range in.Collections {
		l.inCollections = append(l.inCollections, []any{l.ID(), c, v.ID, v.CreatedAt})
	}
	l.addPoints(v.ID, in.Points)
	l.totals.AddVideo(v)
	if v.UploadedAt != nil {
		if l.uploads == nil {
			l.uploads = map[db.Date]int64{}
		}
		l.uploads[*v.UploadedAt]++
	}
	if v.Removed {
		l.totals.VideosRemoved++
		return
	}
	l.totals.Videos++
	if v.Pending {
		return
	}
	l.entries = append(l.entries, queue.Entry{Platform: v.Platform, Kind: queue.KindVideo, ExternalID: v.ExternalID, Handle: v.Username, Link: v.Link,
		Lane: l.lane, BaseLane: l.lane, NextAt: l.nextFetch(v.Platform, v.ExternalID), Subject: v.ID})
	if v.LatestUpdatedAt != nil {
		l.fetched = append(l.fetched, fetchedTarget{v.Platform, queue.KindVideo, v.ExternalID, *v.LatestUpdatedAt, v.LatestViews, in.Refused})
	}
}

// addPoints adds the rows of a video's points to l.
func (l *loadState) addPoints(video uuid.UUID, points []LoadPoint) {
	weekly, daily := rollUp(points, firstDayForDailyPoints(l.Org, l.now.Day()))
	for _, w := range weekly {
		l.weekly = append(l.weekly, weeklyRow(l.ID(), video, w, l.source))
	}
	for _, p := range daily {
		l.daily = append(l.daily, dailyRow(l.ID(), video, p, l.source))
	}
}
