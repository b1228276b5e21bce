package sandbox

import (
	"encoding/json"
	"strings"
	"time"
)

// tiktokMobileVideo returns a video in the format of TikTok's mobile API, which vendors return unchanged.
func (s *Sandbox) tiktokMobileVideo(t VideoTruth, author AccountTruth) object {
	awemeType := 0
	if t.Category == Photo {
		awemeType = 150
	}
	extra := []object{}
	for _, tag := range hashtagsIn(t.Title) {
		extra = append(extra, object{"hashtag_name": tag, "type": 1, "is_commerce": false})
	}
	aweme := object{
		"aweme_id": t.ID, "desc": t.Title, "create_time": t.UploadedAt.Unix(), "aweme_type": awemeType, "desc_language": "en", "region": "US",
		"author": object{
			"uid": t.Account.ID, "unique_id": t.Account.Handle, "sec_uid": t.Account.SecUID, "nickname": t.Account.Name, "signature": author.Bio,
			"follower_count": author.Followers, "following_count": author.Following, "total_favorited": author.Likes, "aweme_count": author.Videos,
			"region": "US", "verification_type": 0, "secret": 0,
		},
		"statistics": object{
			"aweme_id": t.ID, "play_count": t.Views, "digg_count": t.Likes, "comment_count": t.Comments, "share_count": t.Shares, "collect_count": t.Bookmarks,
			"download_count": *t.Shares / 3, "forward_count": 0, "whatsapp_share_count": *t.Shares / 7,
		},
		"status": object{
			"aweme_id": t.ID, "allow_comment": t.Category != CommentsOff, "allow_share": true, "is_delete": false, "is_prohibited": false, "private_status": 0, "in_reviewing": false,
		},
		"video": object{
			"duration": int64(t.LengthSeconds*1000 + 0.5), "width": 1080, "height": 1920, "ratio": "1080p",
			"cover": object{"uri": "sandbox/" + t.ID, "url_list": []string{t.ThumbnailURL()}},
		},
		"music": object{
			"id": json.Number(t.Song.ID), "id_str": t.Song.ID, "mid": t.Song.ID, "title": t.Song.Title, "author": t.Song.Artist, "album": "", "duration": 60,
		},
		"share_url": t.Link + "?_r=1&u_code=0&sharer_language=en", "is_ads": t.ShopAd, "is_top": 0, "text_extra": extra, "anchors": []object{},
	}
	if t.ShopAd {
		aweme["anchors"] = []object{tiktokShopAnchor(t.ShopProductID)}
		aweme["ecommerce_product_info"] = jsonText(object{"is_ecommerce_video": true})
	}
	return aweme
}

// tiktokShopAnchor returns the link from a TikTok video to a product, in TikTok's format "anchor". In this
// format, the members named "extra" are strings that contain JSON.
func tiktokShopAnchor(product string) object {
	inner := object{
		"type": 33, "component_key": "anchor_shop", "id": product, "keyword": "Shop",
		"extra": jsonText(object{"product_id": json.Number(product), "title": "Sandbox product", "source": "TikTok Shop", "price": 1999, "currency": "USD"}),
	}
	return object{"type": 35, "component_key": "anchor_complex_shop", "keyword": "Shop", "extra": jsonText([]object{inner})}
}

func jsonText(value any) string {
	raw, _ := json.Marshal(value) // Marshal cannot fail: the value has only types that JSON can encode
	return string(raw)
}

// tiktokWebUser returns a TikTok account in the format of TikTok's site. EnsembleData and ScrapeCreators return profiles in the same
// format.
func tiktokWebUser(t AccountTruth) object {
	user := object{
		"id": t.ID, "uniqueId": t.Handle, "nickname": t.Name, "secUid": t.SecUID, "signature": t.Bio, "verified": false,
		"privateAccount": t.State == Private, "secret": t.State == Private, "createTime": t.JoinedAt.Unix(), "region": "US",
	}
	if t.BioLink != "" {
		user["bioLink"] = object{"link": t.BioLink, "risk": 0}
	}
	return user
}

// tiktokWebStats returns the counts of a TikTok account in the format of TikTok's site.
func tiktokWebStats(t AccountTruth) object {
	return object{
		"followerCount": t.Followers, "followingCount": t.Following, "heart": t.Likes, "heartCount": t.Likes, "videoCount": t.Videos, "diggCount": 0, "friendCount": 0,
	}
}

// RoundTikTokCount rounds a count down as TikTok's site does. Counts below 10,000 stay unchanged. Counts from 10,000 to 999,999 become
// multiples of 100. Larger counts become multiples of 100,000.
func RoundTikTokCount(n int64) int64 {
	switch {
	case n >= 1_000_000:
		return n / 100_000 * 100_000
	case n >= 10_000:
		return n / 100 * 100
	}
	return n
}

// roundedOrNil returns a rounded count, or nil for an unknown count.
func roundedOrNil(n *int64) any {
	if n == nil {
		return nil
	}
	return RoundTikTokCount(*n)
}

// clockworksItem returns an item of the TikTok actors that clockworks offers on Apify. The counts are rounded. The song of a slideshow has
// the id "0".
func clockworksItem(t VideoTruth, author AccountTruth) object {
	musicID := t.Song.ID
	if t.Category == Photo {
		musicID = "0"
	}
	item := object{
		"id": t.ID, "text": t.Title, "textLanguage": "en", "createTime": t.UploadedAt.Unix(), "createTimeISO": isoTime(t.UploadedAt),
		"isAd": t.ShopAd, "isPinned": false, "isSponsored": false, "isSlideshow": t.Category == Photo, "webVideoUrl": t.Link,
		"playCount": RoundTikTokCount(t.Views), "diggCount": roundedOrNil(t.Likes), "commentCount": roundedOrNil(t.Comments),
		"shareCount": roundedOrNil(t.Shares), "collectCount": roundedOrNil(t.Bookmarks),
		"authorMeta": object{
			"id": t.Account.ID, "name": t.Account.Handle, "nickName": t.Account.Name, "profileUrl": author.Link, "verified": false, "signature": author.Bio,
			"privateAccount": false, "fans": author.Followers, "following": author.Following, "heart": author.Likes, "video": author.Videos,
		},
		"musicMeta": object{
			"musicId": musicID, "musicName": t.Song.Title, "musicAuthor": t.Song.Artist, "musicOriginal": strings.HasPrefix(t.Song.Title, "original sound"),
		},
		"videoMeta": object{"duration": int64(t.LengthSeconds), "width": 1080, "height": 1920, "definition": "1080p", "format": "mp4", "coverUrl": t.ThumbnailURL()},
		"mentions":  []string{},
	}
	names := []object{}
	for _, tag := range hashtagsIn(t.Title) {
		names = append(names, object{"name": tag})
	}
	item["hashtags"] = names
	return item
}

// isoTime returns a UTC time in ISO 8601 format with milliseconds.
func isoTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
