package store

import (
	"slices"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// videoColumns lists the columns that are read from the table "videos" into a Video. Most methods that change
// videos read the videos with GORM, without this list.
var videoColumns = []db.Column[Video]{
	{Name: "organisation_id", Set: func(v *Video, row *db.Values, i int) { v.OrganisationID = row.ID(i) }},
	{Name: "id", Set: func(v *Video, row *db.Values, i int) { v.ID = row.ID(i) }},
	{Name: "platform", Set: func(v *Video, row *db.Values, i int) { v.Platform = link.Platform(row.String(i)) }},
	{Name: "external_id", Set: func(v *Video, row *db.Values, i int) { v.ExternalID = row.String(i) }},
	{Name: "link", Set: func(v *Video, row *db.Values, i int) { v.Link = row.String(i) }},
	{Name: "username", Set: func(v *Video, row *db.Values, i int) { v.Username = row.String(i) }},
	{Name: "linked_account_id", Set: func(v *Video, row *db.Values, i int) { v.LinkedAccountID = row.OptionalUUID(i) }},
	{Name: "created_at", Set: func(v *Video, row *db.Values, i int) { v.CreatedAt = row.Instant(i) }},
	{Name: "removed", Set: func(v *Video, row *db.Values, i int) { v.Removed = row.IsTrue(i) }},
	{Name: "pending", Set: func(v *Video, row *db.Values, i int) { v.Pending = row.IsTrue(i) }},
	{Name: "direct", Set: func(v *Video, row *db.Values, i int) { v.Direct = row.IsTrue(i) }},
	{Name: "uploaded_at", Set: func(v *Video, row *db.Values, i int) { v.UploadedAt = row.OptionalDate(i) }},
	{Name: "song_name", Set: func(v *Video, row *db.Values, i int) { v.SongName = row.OptionalText(i) }},
	{Name: "song_link", Set: func(v *Video, row *db.Values, i int) { v.SongLink = row.OptionalText(i) }},
	{Name: "thumbnail_url", Set: func(v *Video, row *db.Values, i int) { v.ThumbnailURL = row.OptionalText(i) }},
	{Name: "video_length", Set: func(v *Video, row *db.Values, i int) { v.VideoLength = row.OptionalText(i) }},
	{Name: "title", Set: func(v *Video, row *db.Values, i int) { v.Title = row.String(i) }},
	{Name: "not_safe", Set: func(v *Video, row *db.Values, i int) { v.NotSafe = row.IsTrue(i) }},
	{Name: "private", Set: func(v *Video, row *db.Values, i int) { v.Private = row.IsTrue(i) }},
	{Name: "hidden_stats", Set: func(v *Video, row *db.Values, i int) { v.HiddenStats = row.IsTrue(i) }},
	{Name: "ad_info_shop", Set: func(v *Video, row *db.Values, i int) { v.AdInfoShop = row.IsTrue(i) }},
	{Name: "ad_is_ad", Set: func(v *Video, row *db.Values, i int) { v.AdIsAd = row.IsTrue(i) }},
	{Name: "ad_product_id_shop", Set: func(v *Video, row *db.Values, i int) { v.AdProductIDShop = row.OptionalText(i) }},
	{Name: "latest_views", Set: func(v *Video, row *db.Values, i int) { v.Latest.Views = row.OptionalInt(i) }},
	{Name: "latest_likes", Set: func(v *Video, row *db.Values, i int) { v.Latest.Likes = row.OptionalInt(i) }},
	{Name: "latest_comments", Set: func(v *Video, row *db.Values, i int) { v.Latest.Comments = row.OptionalInt(i) }},
	{Name: "latest_bookmarks", Set: func(v *Video, row *db.Values, i int) { v.Latest.Bookmarks = row.OptionalInt(i) }},
	{Name: "latest_shares", Set: func(v *Video, row *db.Values, i int) { v.Latest.Shares = row.OptionalInt(i) }},
	{Name: "latest_engagement", Set: func(v *Video, row *db.Values, i int) { v.LatestEngagement = row.OptionalInt(i) }},
	{Name: "latest_updated_at", Set: func(v *Video, row *db.Values, i int) { v.LatestUpdatedAt = row.OptionalInstant(i) }},
	{Name: "outlier_multiplier", Set: func(v *Video, row *db.Values, i int) { v.OutlierMultiplier = row.OptionalFloat(i) }},
	{Name: "increase_1d", Set: func(v *Video, row *db.Values, i int) { v.Increase1d = row.OptionalFloat(i) }},
	{Name: "increase_7d", Set: func(v *Video, row *db.Values, i int) { v.Increase7d = row.OptionalFloat(i) }},
	{Name: "increase_14d", Set: func(v *Video, row *db.Values, i int) { v.Increase14d = row.OptionalFloat(i) }},
	{Name: "increase_30d", Set: func(v *Video, row *db.Values, i int) { v.Increase30d = row.OptionalFloat(i) }},
	{Name: "views_gained_7d", Set: func(v *Video, row *db.Values, i int) { v.ViewsGained7d = row.OptionalInt(i) }},
	{Name: "fetch_status", Set: func(v *Video, row *db.Values, i int) { v.FetchStatus = queue.FetchStatus(row.String(i)) }},
	{Name: "fetch_reason", Set: func(v *Video, row *db.Values, i int) { v.FetchReason = row.String(i) }},
	{Name: "last_attempt_at", Set: func(v *Video, row *db.Values, i int) { v.LastAttemptAt = row.OptionalInstant(i) }},
	{Name: "next_fetch_at", Set: func(v *Video, row *db.Values, i int) { v.NextFetchAt = row.OptionalInstant(i) }},
}

// VideoColumns returns the columns of the table videos that are read into a Video: all columns except title_folded, counted_since
// and first_views.
func VideoColumns() []db.Column[Video] { return slices.Clone(videoColumns) }

// accountColumns lists the columns that are read from the table "accounts" into an Account.
var accountColumns = []db.Column[Account]{
	{Name: "organisation_id", Set: func(a *Account, row *db.Values, i int) { a.OrganisationID = row.ID(i) }},
	{Name: "id", Set: func(a *Account, row *db.Values, i int) { a.ID = row.ID(i) }},
	{Name: "platform", Set: func(a *Account, row *db.Values, i int) { a.Platform = link.Platform(row.String(i)) }},
	{Name: "external_id", Set: func(a *Account, row *db.Values, i int) { a.ExternalID = row.OptionalText(i) }},
	{Name: "source_id", Set: func(a *Account, row *db.Values, i int) { a.SourceID = row.OptionalText(i) }},
	{Name: "username", Set: func(a *Account, row *db.Values, i int) { a.Username = row.String(i) }},
	{Name: "handle_current", Set: func(a *Account, row *db.Values, i int) { a.HandleCurrent = row.IsTrue(i) }},
	{Name: "name", Set: func(a *Account, row *db.Values, i int) { a.Name = row.OptionalText(i) }},
	{Name: "link", Set: func(a *Account, row *db.Values, i int) { a.Link = row.String(i) }},
	{Name: "created_at", Set: func(a *Account, row *db.Values, i int) { a.CreatedAt = row.Instant(i) }},
	{Name: "tracked", Set: func(a *Account, row *db.Values, i int) { a.Tracked = row.IsTrue(i) }},
	{Name: "removed", Set: func(a *Account, row *db.Values, i int) { a.Removed = row.IsTrue(i) }},
	{Name: "tracking_type", Set: func(a *Account, row *db.Values, i int) { a.TrackingType = (*TrackingType)(row.OptionalText(i)) }},
	{Name: "tracked_at", Set: func(a *Account, row *db.Values, i int) { a.TrackedAt = row.OptionalInstant(i) }},
	{Name: "discovered_at", Set: func(a *Account, row *db.Values, i int) { a.DiscoveredAt = row.OptionalInstant(i) }},
	{Name: "checked_at", Set: func(a *Account, row *db.Values, i int) { a.CheckedAt = row.OptionalInstant(i) }},
	{Name: "private", Set: func(a *Account, row *db.Values, i int) { a.Private = row.IsTrue(i) }},
	{Name: "empty", Set: func(a *Account, row *db.Values, i int) { a.Empty = row.IsTrue(i) }},
	{Name: "bio", Set: func(a *Account, row *db.Values, i int) { a.Bio = row.OptionalText(i) }},
	{Name: "profile_link", Set: func(a *Account, row *db.Values, i int) { a.ProfileLink = row.OptionalText(i) }},
	{Name: "latest_followers_count", Set: func(a *Account, row *db.Values, i int) { a.LatestFollowersCount = row.OptionalInt(i) }},
	{Name: "latest_following_count", Set: func(a *Account, row *db.Values, i int) { a.LatestFollowingCount = row.OptionalInt(i) }},
	{Name: "mean_views", Set: func(a *Account, row *db.Values, i int) { a.MeanViews = row.OptionalFloat(i) }},
	{Name: "median_views", Set: func(a *Account, row *db.Values, i int) { a.MedianViews = row.OptionalFloat(i) }},
	{Name: "median_views_non_zero", Set: func(a *Account, row *db.Values, i int) { a.MedianViewsNonZero = row.OptionalFloat(i) }},
	{Name: "most_viewed", Set: func(a *Account, row *db.Values, i int) { a.MostViewed = row.OptionalInt(i) }},
	{Name: "percent_outperform_10x", Set: func(a *Account, row *db.Values, i int) { a.PercentOutperform10x = row.OptionalFloat(i) }},
	{Name: "percent_outperform_25x", Set: func(a *Account, row *db.Values, i int) { a.PercentOutperform25x = row.OptionalFloat(i) }},
	{Name: "total_videos_tracked", Set: func(a *Account, row *db.Values, i int) { a.TotalVideosTracked = row.Count(i) }},
	{Name: "total_views", Set: func(a *Account, row *db.Values, i int) { a.Total.Views = row.OptionalInt(i) }},
	{Name: "total_likes", Set: func(a *Account, row *db.Values, i int) { a.Total.Likes = row.OptionalInt(i) }},
	{Name: "total_comments", Set: func(a *Account, row *db.Values, i int) { a.Total.Comments = row.OptionalInt(i) }},
	{Name: "total_bookmarks", Set: func(a *Account, row *db.Values, i int) { a.Total.Bookmarks = row.OptionalInt(i) }},
	{Name: "total_shares", Set: func(a *Account, row *db.Values, i int) { a.Total.Shares = row.OptionalInt(i) }},
	{Name: "last_uploaded_at", Set: func(a *Account, row *db.Values, i int) { a.LastUploadedAt = row.OptionalDate(i) }},
	{Name: "views_gained_7d", Set: func(a *Account, row *db.Values, i int) { a.ViewsGained7d = row.OptionalInt(i) }},
	{Name: "fetch_status", Set: func(a *Account, row *db.Values, i int) { a.FetchStatus = FetchStatus(row.String(i)) }},
	{Name: "fetch_reason", Set: func(a *Account, row *db.Values, i int) { a.FetchReason = row.String(i) }},
	{Name: "last_attempt_at", Set: func(a *Account, row *db.Values, i int) { a.LastAttemptAt = row.OptionalInstant(i) }},
	{Name: "next_fetch_at", Set: func(a *Account, row *db.Values, i int) { a.NextFetchAt = row.OptionalInstant(i) }},
}

// collectionColumns lists the columns that are read from the table "collections" for lists of collections.
var collectionColumns = []db.Column[Collection]{
	{Name: "organisation_id", Set: func(c *Collection, row *db.Values, i int) { c.OrganisationID = row.ID(i) }},
	{Name: "id", Set: func(c *Collection, row *db.Values, i int) { c.ID = row.ID(i) }},
	{Name: "parent_id", Set: func(c *Collection, row *db.Values, i int) { c.ParentID = row.OptionalUUID(i) }},
	{Name: "name", Set: func(c *Collection, row *db.Values, i int) { c.Name = row.String(i) }},
	{Name: "access", Set: func(c *Collection, row *db.Values, i int) { c.Access = Access(row.String(i)) }},
	{Name: "password_hash", Set: func(c *Collection, row *db.Values, i int) { c.PasswordHash = row.OptionalText(i) }},
	{Name: "hash", Set: func(c *Collection, row *db.Values, i int) { c.Hash = row.OptionalText(i) }},
	{Name: "share_expires_at", Set: func(c *Collection, row *db.Values, i int) { c.ShareExpiresAt = row.OptionalInstant(i) }},
	{Name: "display_settings", Set: func(c *Collection, row *db.Values, i int) { c.DisplaySettings = row.OptionalText(i) }},
	{Name: "created_by", Set: func(c *Collection, row *db.Values, i int) { c.CreatedBy = row.ID(i) }},
	{Name: "created_at", Set: func(c *Collection, row *db.Values, i int) { c.CreatedAt = row.Instant(i) }},
	{Name: "updated_at", Set: func(c *Collection, row *db.Values, i int) { c.UpdatedAt = row.Instant(i) }},
}

// reportColumns lists the columns that are read from the table "reports" for lists of reports. The columns of the document and of the gained days are not among them.
var reportColumns = []db.Column[Report]{
	{Name: "organisation_id", Set: func(r *Report, row *db.Values, i int) { r.OrganisationID = row.ID(i) }},
	{Name: "id", Set: func(r *Report, row *db.Values, i int) { r.ID = row.ID(i) }},
	{Name: "number", Set: func(r *Report, row *db.Values, i int) { r.Number = row.Count(i) }},
	{Name: "collection_id", Set: func(r *Report, row *db.Values, i int) { r.CollectionID = row.ID(i) }},
	{Name: "collection_name", Set: func(r *Report, row *db.Values, i int) { r.CollectionName = row.String(i) }},
	{Name: "include_children", Set: func(r *Report, row *db.Values, i int) { r.IncludeChildren = row.IsTrue(i) }},
	{Name: "start_date", Set: func(r *Report, row *db.Values, i int) { r.StartDate = row.Day(i) }},
	{Name: "end_date", Set: func(r *Report, row *db.Values, i int) { r.EndDate = row.Day(i) }},
	{Name: "continues_report_id", Set: func(r *Report, row *db.Values, i int) { r.ContinuesReportID = row.OptionalUUID(i) }},
	{Name: "overlaps_json", Set: func(r *Report, row *db.Values, i int) { r.OverlapsJSON = row.OptionalText(i) }},
	{Name: "created_by", Set: func(r *Report, row *db.Values, i int) { r.CreatedBy = row.ID(i) }},
	{Name: "created_at", Set: func(r *Report, row *db.Values, i int) { r.CreatedAt = row.Instant(i) }},
	{Name: "access", Set: func(r *Report, row *db.Values, i int) { r.Access = Access(row.String(i)) }},
	{Name: "password_hash", Set: func(r *Report, row *db.Values, i int) { r.PasswordHash = row.OptionalText(i) }},
	{Name: "hash", Set: func(r *Report, row *db.Values, i int) { r.Hash = row.OptionalText(i) }},
	{Name: "share_expires_at", Set: func(r *Report, row *db.Values, i int) { r.ShareExpiresAt = row.OptionalInstant(i) }},
	{Name: "display_settings", Set: func(r *Report, row *db.Values, i int) { r.DisplaySettings = row.OptionalText(i) }},
	{Name: "checksum", Set: func(r *Report, row *db.Values, i int) { r.Checksum = row.String(i) }},
	{Name: "bytes", Set: func(r *Report, row *db.Values, i int) { r.Bytes = row.Count(i) }},
}
