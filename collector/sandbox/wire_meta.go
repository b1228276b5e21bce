package sandbox

import (
	"strconv"
	"strings"
)

// instagramSitePost returns a post in the format "xdt_shortcode_media" of Instagram's site. If the
// creator hides the likes, the number of likes is -1.
func instagramSitePost(t VideoTruth) object {
	likes := int64(-1)
	if t.Likes != nil {
		likes = *t.Likes
	}
	// video_play_count counts all views. video_view_count counts only views of at least three
	// seconds.
	media := object{
		"__typename": "XDTGraphVideo", "id": mediaID(t.ID), "shortcode": t.ID, "is_video": true, "product_type": "clips",
		"taken_at_timestamp": t.UploadedAt.Unix(), "video_duration": t.LengthSeconds, "video_play_count": t.Views, "video_view_count": 1 + t.Views*3/4,
		"edge_media_preview_like": object{"count": likes, "edges": []object{}}, "edge_media_to_comment": object{"count": t.Comments},
		"edge_media_to_parent_comment": object{"count": t.Comments}, "display_url": t.ThumbnailURL(),
		"edge_media_to_caption": object{"edges": []object{{"node": object{"text": t.Title}}}},
		"comments_disabled":     t.Category == CommentsOff, "like_and_view_counts_disabled": t.HiddenStats,
		"is_ad": t.ShopAd, "is_paid_partnership": false, "dimensions": object{"height": 1920, "width": 1080},
		"owner":                        object{"id": t.Account.ID, "username": t.Account.Handle, "full_name": t.Account.Name, "is_private": false, "is_verified": false},
		"clips_music_attribution_info": object{"artist_name": t.Song.Artist, "song_name": t.Song.Title, "audio_id": t.Song.ID, "uses_original_audio": false},
	}
	return media
}

// instagramAppReel returns a reel in the format of Instagram's mobile app. If the creator hides the likes,
// like_count is always 3, whatever the real number is.
func instagramAppReel(t VideoTruth) object {
	// play_count is the sum of the plays on Instagram (ig_play_count) and on Facebook
	// (fb_play_count).
	onFacebook := t.Views / 4
	media := object{
		"pk": mediaID(t.ID), "id": mediaID(t.ID) + "_" + t.Account.ID, "code": t.ID, "media_type": 2, "product_type": "clips",
		"taken_at": t.UploadedAt.Unix(), "video_duration": t.LengthSeconds, "play_count": t.Views + onFacebook, "fb_play_count": onFacebook, "comment_count": t.Comments,
		"comments_disabled": t.Category == CommentsOff, "like_and_view_counts_disabled": t.HiddenStats, "caption": object{"text": t.Title, "created_at": t.UploadedAt.Unix()},
		"user": object{"pk": t.Account.ID, "id": t.Account.ID, "username": t.Account.Handle, "full_name": t.Account.Name, "is_private": false, "is_verified": false},
	}
	// Half of the posts lack ig_play_count.
	if t.UploadedAt.Unix()%2 == 0 {
		media["ig_play_count"] = t.Views
	}
	media["like_count"] = int64(3)
	if t.Likes != nil {
		media["like_count"] = *t.Likes
	}
	clips := object{"music_info": nil, "original_sound_info": nil}
	if strings.HasPrefix(t.Song.Title, "original sound") {
		clips["audio_type"] = "original_sounds"
		clips["original_sound_info"] = object{"audio_asset_id": t.Song.ID, "original_audio_title": t.Song.Title, "ig_artist": object{"username": t.Account.Handle}}
	} else {
		clips["audio_type"] = "licensed_music"
		clips["music_info"] = object{"music_asset_info": object{"audio_cluster_id": t.Song.ID, "title": t.Song.Title, "display_artist": t.Song.Artist}}
	}
	media["clips_metadata"] = clips
	return media
}

// apifyInstagramItem returns a post in the format of Apify's instagram-scraper. If the creator hides the likes, likesCount is -1.
func apifyInstagramItem(t VideoTruth) object {
	item := object{
		"id": mediaID(t.ID), "type": "Video", "productType": "clips", "shortCode": t.ID, "url": "https://www.instagram.com/p/" + t.ID + "/", "caption": t.Title,
		"hashtags": hashtagsIn(t.Title), "likesCount": -1, "commentsCount": t.Comments, "videoPlayCount": t.Views, "videoViewCount": 1 + t.Views*3/4,
		"timestamp": isoTime(t.UploadedAt), "videoDuration": t.LengthSeconds, "displayUrl": t.ThumbnailURL(), "ownerId": t.Account.ID, "ownerUsername": t.Account.Handle, "ownerFullName": t.Account.Name,
		"isSponsored": false, "isCommentsDisabled": t.Category == CommentsOff,
		"musicInfo": object{"artist_name": t.Song.Artist, "song_name": t.Song.Title, "audio_id": t.Song.ID, "uses_original_audio": false},
	}
	if t.Likes != nil {
		item["likesCount"] = *t.Likes
	}
	return item
}

// mediaID returns the numeric media id that a shortcode encodes.
func mediaID(code string) string {
	n, _ := decodeShortcode(publicShortcode(code))
	return strconv.FormatUint(n, 10)
}

// instagramSearchUser returns an account in the format of Instagram's search results, which has no counts.
func instagramSearchUser(t AccountTruth) object {
	return object{"pk": t.ID, "id": t.ID, "username": t.Handle, "full_name": t.Name, "is_private": t.State == Private, "is_verified": false}
}

// instagramProfile returns an account in the format of Instagram's site.
func instagramProfile(t AccountTruth) object {
	return object{
		"id": t.ID, "username": t.Handle, "full_name": t.Name, "biography": t.Bio, "external_url": t.BioLink,
		"is_private": t.State == Private, "is_verified": false, "is_business_account": false,
		"edge_followed_by": object{"count": t.Followers}, "edge_follow": object{"count": t.Following},
		"edge_owner_to_timeline_media": object{"count": t.Videos, "edges": []object{}},
	}
}

// facebookPost returns a Facebook video in the format of ScrapeCreators. If the creator hides the reactions, like_count is null.
func facebookPost(t VideoTruth) object {
	return object{
		"post_id": t.ID, "url": t.Link, "description": t.Title, "creation_time": isoTime(t.UploadedAt), "thumbnail": t.ThumbnailURL(),
		"view_count": t.Views, "like_count": t.Likes, "reaction_count": t.Likes, "comment_count": t.Comments, "share_count": t.Shares,
		"author": object{"id": t.Account.ID, "name": t.Account.Name, "username": t.Account.Handle, "url": "https://www.facebook.com/" + t.Account.Handle},
		"video":  object{"id": t.ID, "length_in_second": t.LengthSeconds, "hd_url": "https://video.xx.fbcdn.net/sandbox/" + t.ID + ".mp4"},
		"music":  object{"id": t.Song.ID, "track_title": t.Song.Title, "artist": t.Song.Artist},
	}
}

// facebookReel returns a Facebook video in the format of ScrapeCreators' lists of reels, which have no likes and comments.
func facebookReel(t VideoTruth) object {
	return object{
		"post_id": t.ID, "video_id": t.ID, "url": t.Link, "description": t.Title, "creation_time": isoTime(t.UploadedAt),
		"view_count": t.Views, "play_time_in_ms": int64(t.LengthSeconds*1000 + 0.5), "music": object{"track_title": t.Song.Title},
	}
}

// facebookProfile returns a Facebook account in the format of ScrapeCreators.
func facebookProfile(t AccountTruth) object {
	return object{
		"id": t.ID, "name": t.Name, "username": t.Handle, "url": t.Link, "intro": t.Bio, "website": t.BioLink,
		"follower_count": t.Followers, "following_count": t.Following, "video_count": t.Videos,
	}
}
