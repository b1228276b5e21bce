package sandbox

import (
	"fmt"

	"github.com/reeltally/reeltally/store/link"
)

// tiktokVideoFields are the fields of a video that the Display API supports.
var tiktokVideoFields = []string{
	"id", "create_time", "cover_image_url", "share_url", "video_description", "duration", "height", "width", "title", "embed_html", "embed_link",
	"like_count", "comment_count", "share_count", "view_count",
}

// These are the limits of requests to the Display API.
const (
	maxTikTokIDs  = 20 // largest number of ids in a request
	tiktokPage    = 10 // number of videos on a page if the request has no max_count
	maxTikTokPage = 20 // largest max_count
	// shortPages is the fraction of pages that have fewer videos than max_count although more pages follow, as in the real API.
	shortPages = 0.15
)

// serveDisplayUserInfo answers user/info with the logged-in account.
func (s *Sandbox) serveDisplayUserInfo(c *call, wants func(string) bool) reply {
	i := s.tiktokAccount()
	t := s.world.accountData(i, c.now)
	c.ids = []string{i.handle}
	return tiktokSuccess(object{"user": selectMembers(object{
		"open_id": tiktokOpenID, "union_id": "c9c60f44-a68e-4f5d-84dd-ce22faeb0ba1", "display_name": t.Name, "username": t.Handle, "bio_description": t.Bio,
		"avatar_url": "https://p19-sign.tiktokcdn-us.com/sandbox/" + t.ID + ".webp", "profile_deep_link": "https://vm.tiktok.com/sandbox", "is_verified": false,
		"follower_count": untypedCount(t.Followers), "following_count": t.Following, "likes_count": t.Likes, "video_count": t.Videos,
	}, wants)})
}

// serveDisplayVideoQuery answers video/query with those of the requested videos that belong to the logged-in account. It leaves out other videos
// without an error.
func (s *Sandbox) serveDisplayVideoQuery(c *call, wants func(string) bool) reply {
	var in struct {
		Filters struct {
			VideoIDs []string `json:"video_ids"`
		} `json:"filters"`
	}
	if err := decodeStrictJSON(c.r.Body, &in); err != nil {
		return tiktokInvalidRequest("the request body is malformed: " + err.Error())
	}
	c.ids = in.Filters.VideoIDs
	if n := len(c.ids); n == 0 || n > maxTikTokIDs {
		return tiktokInvalidRequest(fmt.Sprintf("filters.video_ids has %d ids; it must have 1 to %d", n, maxTikTokIDs))
	}
	own := s.tiktokAccount()
	videos := []object{}
	for _, id := range c.ids {
		if t, ok := s.visibleVideo(link.TikTok, id, c.now); ok && t.Account.ID == own.id {
			videos = append(videos, displayAPIVideo(t, wants))
		}
	}
	return tiktokSuccess(object{"videos": videos})
}

// serveDisplayVideoList answers video/list with a page of the logged-in account's videos, newest
// first. The page has only videos older than the cursor.
func (s *Sandbox) serveDisplayVideoList(c *call, wants func(string) bool) reply {
	var in struct {
		Cursor   *int64 `json:"cursor"` // Unix time in milliseconds
		MaxCount *int   `json:"max_count"`
	}
	if err := decodeStrictJSON(c.r.Body, &in); err != nil {
		return tiktokInvalidRequest("the request body is malformed: " + err.Error())
	}
	size := tiktokPage
	if in.MaxCount != nil {
		size = *in.MaxCount
	}
	if size < 1 || size > maxTikTokPage {
		return tiktokInvalidRequest(fmt.Sprintf("max_count is %d; it must be from 1 to %d", size, maxTikTokPage))
	}
	own := s.tiktokAccount()
	c.ids = []string{own.handle}
	cursor := c.now.UnixMilli() + 1
	if in.Cursor != nil {
		cursor = *in.Cursor
	}
	if d := (rng{hashTexts(s.world.seed, "page", own.id, fmt.Sprint(cursor))}); d.fraction() < shortPages {
		size = d.intBelow(size)
	}
	videos, more, next := []object{}, false, cursor-1 // the next cursor of an empty page is one millisecond before the requested cursor
	for _, id := range s.world.listedVideos(own, c.now) {
		t, _ := s.world.Video(link.TikTok, id, c.now)
		at := t.UploadedAt.UnixMilli()
		if at >= cursor {
			continue
		}
		if len(videos) >= size {
			more = true
			break
		}
		videos, next = append(videos, displayAPIVideo(t, wants)), at
	}
	return tiktokSuccess(object{"videos": videos, "cursor": next, "has_more": more})
}

// displayAPIVideo returns the wanted members of a video in the format of the Display API. A title has at most 150 characters.
func displayAPIVideo(t VideoTruth, wants func(string) bool) object {
	title := t.Title
	if runes := []rune(title); len(runes) > 150 {
		title = string(runes[:150])
	}
	return selectMembers(object{
		"id": t.ID, "create_time": t.UploadedAt.Unix(), "title": title, "video_description": title, "duration": int64(t.LengthSeconds), "height": 1024, "width": 576,
		"share_url":       t.Link + "?utm_campaign=tt4d_open_api&utm_source=" + TikTokClientKey,
		"cover_image_url": t.ThumbnailURL(), "embed_link": "https://www.tiktok.com/player/v1/" + t.ID,
		"embed_html": `<blockquote class="tiktok-embed" data-video-id="` + t.ID + `"></blockquote>`,
		"view_count": t.Views, "like_count": untypedCount(t.Likes), "comment_count": untypedCount(t.Comments), "share_count": untypedCount(t.Shares),
	}, wants)
}
