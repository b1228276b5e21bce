package sandbox

import "strconv"

// instagramWeb is a post as Instagram's site has it ("xdt_shortcode_media"), with the counts in edges. A reel's views are
// video_play_count; video_view_count is the older, smaller count of three seconds and more, which some vendors still
// pass on: here three quarters of it. Hidden likes are -1 beside a flag that says why.
func instagramWeb(t VideoTruth) object {
	likes := int64(-1)
	if t.Likes != nil {
		likes = *t.Likes
	}
	media := object{
		"__typename": "XDTGraphVideo", "id": mediaID(t.ID), "shortcode": t.ID, "is_video": true, "product_type": "clips",
		"taken_at_timestamp": t.UploadedAt.Unix(), "video_duration": t.LengthSeconds, "video_play_count": t.Views, "video_view_count": 1 + t.Views*3/4,
		"edge_media_preview_like": object{"count": likes, "edges": []object{}}, "edge_media_to_comment": object{"count": t.Comments},
		"edge_media_to_parent_comment": object{"count": t.Comments},
		"edge_media_to_caption":        object{"edges": []object{{"node": object{"text": t.Title}}}},
		"comments_disabled":            t.Category == CommentsOff, "like_and_view_counts_disabled": t.HiddenStats,
		"is_ad": t.ShopAd, "is_paid_partnership": false, "dimensions": object{"height": 1920, "width": 1080},
		"owner":                        object{"id": t.Account.ID, "username": t.Account.Handle, "full_name": t.Account.Name, "is_private": false, "is_verified": false},
		"clips_music_attribution_info": object{"artist_name": t.Song.Artist, "song_name": t.Song.Title, "audio_id": t.Song.ID, "uses_original_audio": false},
	}
	return media
}

// instagramApp is a reel as Instagram's application has it: what lists of reels are made of. Hidden likes are left out.
func instagramApp(t VideoTruth) object {
	media := object{
		"pk": mediaID(t.ID), "id": mediaID(t.ID) + "_" + t.Account.ID, "code": t.ID, "media_type": 2, "product_type": "clips",
		"taken_at": t.UploadedAt.Unix(), "video_duration": t.LengthSeconds, "play_count": t.Views, "ig_play_count": t.Views, "comment_count": t.Comments,
		"comments_disabled": t.Category == CommentsOff, "like_and_view_counts_disabled": t.HiddenStats, "caption": object{"text": t.Title, "created_at": t.UploadedAt.Unix()},
		"user": object{"pk": t.Account.ID, "id": t.Account.ID, "username": t.Account.Handle, "full_name": t.Account.Name, "is_private": false, "is_verified": false},
	}
	if t.Likes != nil {
		media["like_count"] = *t.Likes
	}
	return media
}

// instagramItem is an item of Apify's instagram-scraper. Hidden likes are -1.
func instagramItem(t VideoTruth) object {
	item := object{
		"id": mediaID(t.ID), "type": "Video", "productType": "clips", "shortCode": t.ID, "url": "https://www.instagram.com/p/" + t.ID + "/", "caption": t.Title,
		"hashtags": tags(t.Title), "likesCount": -1, "commentsCount": t.Comments, "videoPlayCount": t.Views, "videoViewCount": 1 + t.Views*3/4,
		"timestamp": isoTime(t.UploadedAt), "videoDuration": t.LengthSeconds, "ownerId": t.Account.ID, "ownerUsername": t.Account.Handle, "ownerFullName": t.Account.Name,
		"isSponsored": false, "isCommentsDisabled": t.Category == CommentsOff,
		"musicInfo": object{"artist_name": t.Song.Artist, "song_name": t.Song.Title, "audio_id": t.Song.ID, "uses_original_audio": false},
	}
	if t.Likes != nil {
		item["likesCount"] = *t.Likes
	}
	return item
}

// mediaID is the number that a shortcode spells.
func mediaID(code string) string {
	n, _ := shortcodeNumber(publicShortcode(code))
	return strconv.FormatUint(n, 10)
}

// instagramBrief is an account as a search has it: without a single count.
func instagramBrief(t AccountTruth) object {
	return object{"pk": t.ID, "id": t.ID, "username": t.Handle, "full_name": t.Name, "is_private": t.State == Private, "is_verified": false}
}

// instagramProfile is an account as Instagram's site has it.
func instagramProfile(t AccountTruth) object {
	return object{
		"id": t.ID, "username": t.Handle, "full_name": t.Name, "biography": t.Bio, "external_url": t.BioLink,
		"is_private": t.State == Private, "is_verified": false, "is_business_account": false,
		"edge_followed_by": object{"count": t.Followers}, "edge_follow": object{"count": t.Following},
		"edge_owner_to_timeline_media": object{"count": t.Videos, "edges": []object{}},
	}
}

// facebookPost is a video as ScrapeCreators gives it. Hidden reactions are null.
func facebookPost(t VideoTruth) object {
	return object{
		"post_id": t.ID, "url": t.Link, "description": t.Title, "creation_time": isoTime(t.UploadedAt),
		"view_count": t.Views, "like_count": t.Likes, "reaction_count": t.Likes, "comment_count": t.Comments, "share_count": t.Shares,
		"author": object{"id": t.Account.ID, "name": t.Account.Name, "username": t.Account.Handle, "url": "https://www.facebook.com/" + t.Account.Handle},
		"video":  object{"id": t.ID, "length_in_second": t.LengthSeconds, "hd_url": "https://video.xx.fbcdn.net/sandbox/" + t.ID + ".mp4"},
		"music":  object{"id": t.Song.ID, "track_title": t.Song.Title, "artist": t.Song.Artist},
	}
}

// facebookReel is an entry of an account's list of reels: no likes in it, nor comments.
func facebookReel(t VideoTruth) object {
	return object{
		"post_id": t.ID, "video_id": t.ID, "url": t.Link, "description": t.Title, "creation_time": isoTime(t.UploadedAt),
		"view_count": t.Views, "play_time_in_ms": int64(t.LengthSeconds*1000 + 0.5), "music": object{"track_title": t.Song.Title},
	}
}

func facebookProfile(t AccountTruth) object {
	return object{
		"id": t.ID, "name": t.Name, "username": t.Handle, "url": t.Link, "intro": t.Bio, "website": t.BioLink,
		"follower_count": t.Followers, "following_count": t.Following, "video_count": t.Videos,
	}
}
