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
// SeedVideo.Points says.
func (s *seedState) newVideo(in *SeedVideo, account uuid.UUID) (store.Video, error) {
	v := in.Video
	v.OrganisationID, v.LinkedAccountID, v.TitleFolded = s.ID(), &account, db.FoldText(v.Title)
	for i, p := range in.Points {
		if (i > 0 && p.At.Day() <= in.Points[i-1].At.Day()) || p.At > s.now {
			return v, fmt.Errorf("point %d of video %s is at %s: points must be in the order of time, at most one on each day, and not in the future", i, v.ID, p.At.Time())
		}
		v.LatestUpdatedAt = &in.Points[i].At
		if v.FirstViews == nil {
			v.FirstViews = p.Views
		}
		for n, latest := range v.Latest.Fields() {
			db.AssignPointer(latest, p.All()[n])
		}
	}
	v.LatestEngagement = v.Latest.Engagement()
	if n := len(in.Points); n > 0 {
		day := in.Points[n-1].At.Day()
		ingest.SetGrowth(&v, day, lastDayWithViews(in.Points), viewsBefore(in.Points, day))
	}
	return v, nil
}

// viewsBefore returns, for each of ingest.GrowthPeriods, the last known views of a video so many days before the given day. The points are ordered by
// time.
func viewsBefore(points []Point, day db.Date) (before ingest.ViewsBefore) {
	for n, days := range ingest.GrowthPeriods {
		for _, p := range slices.Backward(points) {
			if p.At.Day() <= day-days && p.Views != nil {
				before[n] = p.Views
				break
			}
		}
	}
	return before
}

// lastDayWithViews returns the day of the last point that has views, or nil if no point has views.
func lastDayWithViews(points []Point) *db.Date {
	for _, p := range slices.Backward(points) {
		if p.Views != nil {
			return new(p.At.Day())
		}
	}
	return nil
}

// videoColumns has the names of the columns of videos that Seed fills. Each row of seedState.videos has its values in this order.
var videoColumns = slices.Concat([]string{"organisation_id", "id", "platform", "external_id", "link", "username", "linked_account_id", "created_at", "removed",
	"pending", "direct", "uploaded_at", "song_name", "song_link", "thumbnail_url", "video_length", "title", "title_folded", "not_safe", "private", "hidden_stats",
	"ad_info_shop", "ad_is_ad", "ad_product_id_shop", "fetch_status", "last_attempt_at",
	"first_views", "latest_engagement", "latest_updated_at", "outlier_multiplier"}, store.GrowthColumns, db.MetricNames("latest_"))

// addVideo adds the rows and counts of the video v to s. If v is tracked and not pending, addVideo
// also adds a target for the queue.
func (s *seedState) addVideo(v *store.Video, in *SeedVideo) {
	// The caller has already set the latest counts and the growth of v.
	latest := v.Latest
	status, attemptedAt := seededStatus(!v.Removed, v.Removed, v.LatestUpdatedAt), v.LatestUpdatedAt
	if in.Refused != nil && status == queue.FetchOK {
		status, attemptedAt = in.Refused.Status, &in.Refused.At
	}
	s.videos = append(s.videos, slices.Concat([]any{s.ID(), v.ID, v.Platform, v.ExternalID, v.Link, v.Username, v.LinkedAccountID, v.CreatedAt, v.Removed,
		v.Pending, v.Direct, v.UploadedAt, v.SongName, v.SongLink, v.ThumbnailURL, v.VideoLength, v.Title, v.TitleFolded, v.NotSafe, v.Private, v.HiddenStats,
		v.AdInfoShop, v.AdIsAd, v.AdProductIDShop, status, attemptedAt,
		v.FirstViews, v.LatestEngagement, v.LatestUpdatedAt, v.OutlierMultiplier}, v.Growth.Values(), latest.Values()))
	for _, tag := range store.Hashtags(v.Title) {
		s.hashtags = append(s.hashtags, []any{s.ID(), tag, v.ID})
	}
	for _, c := range in.Collections {
		s.inCollections = append(s.inCollections, []any{s.ID(), c, v.ID, v.CreatedAt})
	}
	s.addPoints(v.ID, in.Points)
	s.totals.AddVideo(v)
	if v.UploadedAt != nil {
		if s.uploads == nil {
			s.uploads = map[db.Date]int64{}
		}
		s.uploads[*v.UploadedAt]++
	}
	if v.Removed {
		s.totals.VideosRemoved++
		return
	}
	s.totals.Videos++
	if v.Pending {
		return
	}
	s.entries = append(s.entries, queue.Entry{Platform: v.Platform, Kind: queue.KindVideo, ExternalID: v.ExternalID, Handle: v.Username, Link: v.Link,
		Lane: s.lane, BaseLane: s.lane, NextAt: s.nextFetch(v.Platform, v.ExternalID), Subject: v.ID})
	if v.LatestUpdatedAt != nil {
		s.fetched = append(s.fetched, fetchedTarget{v.Platform, queue.KindVideo, v.ExternalID, *v.LatestUpdatedAt, v.Latest.Views, in.Refused})
	}
}

// addPoints adds the rows of a video's points to s.
func (s *seedState) addPoints(video uuid.UUID, points []Point) {
	weekly, daily := rollUp(points, firstDayForDailyPoints(s.Org, s.now.Day()))
	for _, w := range weekly {
		s.weekly = append(s.weekly, weeklyRow(s.ID(), video, w, s.source))
	}
	for _, p := range daily {
		s.daily = append(s.daily, dailyRow(s.ID(), video, p, s.source))
	}
}
