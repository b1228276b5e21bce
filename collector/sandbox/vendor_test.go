package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
)

const scoutVideo = "https://www.tiktok.com/@scout2015/video/6718335390845095173"

// requireAweme requires that an aweme, which is TikTok's JSON object for a video, has the true data of the video.
func requireAweme(t *testing.T, truth VideoTruth, aweme any) {
	t.Helper()
	number := func(n int64) json.Number { return json.Number(decimalText(n)) }
	require.Equal(t, truth.ID, valueAt(t, aweme, "aweme_id"))
	require.Equal(t, truth.Title, valueAt(t, aweme, "desc"))
	require.Equal(t, number(truth.UploadedAt.Unix()), valueAt(t, aweme, "create_time"))
	require.Equal(t, number(truth.Views), valueAt(t, aweme, "statistics", "play_count"))
	require.Equal(t, number(*truth.Likes), valueAt(t, aweme, "statistics", "digg_count"))
	require.Equal(t, number(*truth.Comments), valueAt(t, aweme, "statistics", "comment_count"))
	require.Equal(t, number(*truth.Shares), valueAt(t, aweme, "statistics", "share_count"))
	require.Equal(t, number(*truth.Bookmarks), valueAt(t, aweme, "statistics", "collect_count"))
	require.Equal(t, truth.Account.Handle, valueAt(t, aweme, "author", "unique_id"))
	require.Equal(t, truth.Account.ID, valueAt(t, aweme, "author", "uid"))
	require.Equal(t, truth.Account.SecUID, valueAt(t, aweme, "author", "sec_uid"))
	require.Len(t, truth.Account.SecUID, 76)
	require.Equal(t, truth.Song.ID, valueAt(t, aweme, "music", "mid"))
	require.Equal(t, truth.Song.Title, valueAt(t, aweme, "music", "title"))
	ms, err := valueAt(t, aweme, "video", "duration").(json.Number).Int64()
	require.NoError(t, err)
	require.InDelta(t, truth.LengthSeconds*1000, float64(ms), 0.6)
}

func TestEnsembleData_returnsTikTokVideos(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	t.Run("a link with the handle of the author", func(t *testing.T) {
		t.Parallel()
		a := r.getEnsembleData(t, "tt/post/info", "url", scoutVideo+"?lang=en")
		require.Equal(t, "1", a.Header.Get("units_charged"))
		truth, _ := r.World().Video(link.TikTok, "6718335390845095173", testNow)
		require.Equal(t, "scout2015", truth.Account.Handle)
		requireAweme(t, truth, valueAt(t, a.decodeJSON(t), "data", 0))
		// The sandbox has stored the author from this link, so a call with only the video id returns the same author.
		requireAweme(t, truth, valueAt(t, r.getEnsembleData(t, "tt/post/multi-info", "ids", "6718335390845095173").decodeJSON(t), "data", 0))
	})
	t.Run("a batch with unavailable videos", func(t *testing.T) {
		t.Parallel()
		restricted := r.World().Find(link.TikTok, AgeRestricted)
		list := valueAt(t, r.getEnsembleData(t, "tt/post/multi-info", "ids", "7106594312292453675;"+restricted+";7106594312292453675;123;7004270927972852994").decodeJSON(t), "data").([]any)
		require.Len(t, list, 2)
		truth, _ := r.World().Video(link.TikTok, "7004270927972852994", testNow)
		requireAweme(t, truth, list[1])
	})
	t.Run("a batch with unencoded semicolons", func(t *testing.T) {
		t.Parallel()
		a := r.mustSend(t, http.MethodGet, "/vendor/tt/post/multi-info?ids=7106594312292453675;7004270927972852994&token="+VendorKey, "")
		require.Len(t, valueAt(t, a.decodeJSON(t), "data"), 2)
	})
	t.Run("a shop ad", func(t *testing.T) {
		t.Parallel()
		id := r.World().Find(link.TikTok, ShopAd)
		truth, _ := r.World().Video(link.TikTok, id, testNow)
		item := valueAt(t, r.getEnsembleData(t, "tt/post/multi-info", "ids", id).decodeJSON(t), "data", 0)
		require.Equal(t, true, valueAt(t, item, "is_ads"))
		require.Equal(t, "anchor_complex_shop", valueAt(t, item, "anchors", 0, "component_key"))
		inner := decodeJSON([]byte(valueAt(t, item, "anchors", 0, "extra").(string)))
		require.Equal(t, truth.ShopProductID, valueAt(t, inner, 0, "id"))
	})
	t.Run("a slideshow", func(t *testing.T) {
		t.Parallel()
		item := valueAt(t, r.getEnsembleData(t, "tt/post/multi-info", "ids", r.World().Find(link.TikTok, Photo)).decodeJSON(t), "data", 0)
		require.Equal(t, json.Number("0"), valueAt(t, item, "video", "duration"))
	})
	t.Run("a video with comments turned off", func(t *testing.T) {
		t.Parallel()
		item := valueAt(t, r.getEnsembleData(t, "tt/post/multi-info", "ids", r.World().Find(link.TikTok, CommentsOff)).decodeJSON(t), "data", 0)
		require.Equal(t, json.Number("0"), valueAt(t, item, "statistics", "comment_count"))
		require.Equal(t, false, valueAt(t, item, "status", "allow_comment"))
	})
}

func TestEnsembleData_returnsDocumentedStatusCodes(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	tiktok := func(c Category) string {
		return "https://www.tiktok.com/@/video/" + r.World().Find(link.TikTok, c)
	}
	handle := func(c AccountCategory) string { return r.World().FindAccount(link.TikTok, c) }
	r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"2028-01-01T00:00:00Z"}`)
	for _, c := range []struct {
		name, path string
		pairs      []string
		status     int
	}{
		{"an unknown path", "tt/post", nil, 404},
		{"a missing parameter", "tt/post/info", nil, 422},
		{"a missing depth", "tt/user/posts", []string{"username", "zachking"}, 422},
		{"a wrong depth", "tt/user/posts", []string{"username", "zachking", "depth", "x"}, 422},
		{"a depth of zero", "tt/user/posts", []string{"username", "zachking", "depth", "0"}, 422},
		{"a text that is not a link", "tt/post/info", []string{"url", "hello"}, 462},
		{"a link of another platform", "tt/post/info", []string{"url", "https://youtu.be/dQw4w9WgXcQ"}, 462},
		{"a link to an account", "tt/post/info", []string{"url", "https://www.tiktok.com/@zachking"}, 462},
		{"too many ids", "tt/post/multi-info", []string{"ids", strings.Repeat("7106594312292453675;", 101)}, 464},
		{"a deleted video", "tt/post/info", []string{"url", tiktok(BecomesDeleted)}, 404},
		{"a private video", "tt/post/info", []string{"url", tiktok(BecomesPrivate)}, 472},
		{"an age-restricted video", "tt/post/info", []string{"url", tiktok(AgeRestricted)}, 471},
		{"an unknown user", "tt/user/info", []string{"username", handle(AccountGone)}, 473},
		{"an unknown user", "tt/user/info", []string{"username", "not a user"}, 473},
		{"the profile of a private user", "tt/user/info", []string{"username", handle(AccountPrivate)}, 200},
		{"the list of a private user", "tt/user/posts", []string{"username", handle(AccountPrivate), "depth", "1"}, 472},
		{"the list of a user without videos", "tt/user/posts", []string{"username", handle(AccountEmpty), "depth", "1"}, 200},
		{"an invalid shortcode", "instagram/post/details", []string{"code", "a b"}, 462},
		{"a shortcode of a private account's post", "instagram/post/details", []string{"code", "DOq6eV6iIgD" + strings.Repeat("x", 28)}, 472},
		{"a username instead of an id", "instagram/user/reels", []string{"user_id", "nike", "depth", "1"}, 422},
		{"a link to a Facebook account", "facebook/post/info", []string{"url", "https://www.facebook.com/nasa"}, 462},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := r.getEnsembleData(t, c.path, c.pairs...)
			require.Equal(t, c.status, a.StatusCode, a.text)
			if c.status != http.StatusOK {
				require.NotEmpty(t, a.decodeJSON(t)["detail"])
			}
		})
	}
	t.Run("a wrong token", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, 491, r.mustSend(t, http.MethodGet, "/vendor/tt/post/info?token=wrong&url=x", "").StatusCode)
	})
	t.Run("a wrong HTTP method", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, 405, r.mustSend(t, http.MethodPost, "/vendor/tt/post/info?token="+VendorKey, "").StatusCode)
	})
}

func TestEnsembleData_returnsVideosOfAccounts(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	t.Run("TikTok accounts", func(t *testing.T) {
		t.Parallel()
		truth, _ := r.World().Account(link.TikTok, "zachking", testNow)
		profile := r.getEnsembleData(t, "tt/user/info", "username", "zachking").decodeJSON(t)
		require.Equal(t, truth.ID, valueAt(t, profile, "data", "user", "id"))
		require.Equal(t, json.Number(decimalText(*truth.Followers)), valueAt(t, profile, "data", "stats", "followerCount"))
		var ids []string
		cursor := "0"
		for cursor != "" {
			a := r.getEnsembleData(t, "tt/user/posts", "username", "zachking", "depth", "1", "start_cursor", cursor)
			for _, item := range a.decodeJSON(t)["data"].([]any) {
				require.Equal(t, "zachking", valueAt(t, item, "author", "unique_id"))
				ids = append(ids, valueAt(t, item, "aweme_id").(string))
			}
			cursor = ""
			if next, ok := a.decodeJSON(t)["nextCursor"]; ok {
				cursor = next.(json.Number).String()
			}
		}
		require.Equal(t, r.World().Uploads(link.TikTok, "zachking", testNow), ids)
		require.Equal(t, "6", r.getEnsembleData(t, "tt/user/posts", "username", "zachking", "depth", "6").Header.Get("units_charged"))
	})
	t.Run("Instagram accounts", func(t *testing.T) {
		t.Parallel()
		brief := r.getEnsembleData(t, "instagram/user/info", "username", "nike").decodeJSON(t)
		profile := r.getEnsembleData(t, "instagram/user/detailed-info", "username", "nike").decodeJSON(t)
		truth, _ := r.World().Account(link.Instagram, "nike", testNow)
		require.Equal(t, truth.ID, valueAt(t, brief, "data", "pk"))
		require.Equal(t, json.Number(decimalText(*truth.Followers)), valueAt(t, profile, "data", "edge_followed_by", "count"))
		reels := r.getEnsembleData(t, "instagram/user/reels", "user_id", truth.ID, "depth", "20").decodeJSON(t)
		var ids []string
		for _, reel := range valueAt(t, reels, "data", "reels").([]any) {
			require.Equal(t, "nike", valueAt(t, reel, "media", "user", "username"))
			ids = append(ids, valueAt(t, reel, "media", "code").(string))
		}
		require.Equal(t, r.World().Uploads(link.Instagram, "nike", testNow), ids)
	})
	t.Run("Facebook accounts by handle, by id, and by both", func(t *testing.T) {
		t.Parallel()
		truth, _ := r.World().Account(link.Facebook, "nasa", testNow)
		for _, username := range []string{"nasa", "nasa~" + truth.ID, truth.ID} {
			profile := r.getEnsembleData(t, "facebook/user/info", "username", username).decodeJSON(t)
			require.Equal(t, truth.ID, valueAt(t, profile, "data", "id"))
			require.Equal(t, "nasa", valueAt(t, profile, "data", "username"))
		}
		reels := r.getEnsembleData(t, "facebook/user/reels", "username", "nasa", "depth", "20").decodeJSON(t)
		require.Len(t, valueAt(t, reels, "data", "reels"), int(truth.Videos))
	})
}

func TestEnsembleData_returnsInstagramPosts(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	truth, _ := r.World().Video(link.Instagram, "DOq6eV6iIgD", testNow)
	post := r.getEnsembleData(t, "instagram/post/details", "code", "DOq6eV6iIgD").decodeJSON(t)["data"]
	require.Equal(t, "DOq6eV6iIgD", valueAt(t, post, "shortcode"))
	require.Equal(t, json.Number(decimalText(truth.Views)), valueAt(t, post, "video_play_count"))
	require.Equal(t, json.Number(decimalText(*truth.Likes)), valueAt(t, post, "edge_media_preview_like", "count"))
	require.Equal(t, json.Number(decimalText(*truth.Comments)), valueAt(t, post, "edge_media_to_comment", "count"))
	require.Equal(t, truth.Title, valueAt(t, post, "edge_media_to_caption", "edges", 0, "node", "text"))
	require.Equal(t, json.Number(decimalText(truth.UploadedAt.Unix())), valueAt(t, post, "taken_at_timestamp"))
	require.Equal(t, truth.Account.Handle, valueAt(t, post, "owner", "username"))
	code := r.World().Find(link.Instagram, HiddenLikes)
	hidden := r.getScrapeCreators(t, "v1/instagram/post", "url", "https://www.instagram.com/reel/"+code+"/").decodeJSON(t)
	require.Equal(t, json.Number("-1"), valueAt(t, hidden, "data", "xdt_shortcode_media", "edge_media_preview_like", "count"))
	require.Equal(t, true, valueAt(t, hidden, "data", "xdt_shortcode_media", "like_and_view_counts_disabled"))
}

func TestEnsembleData_returnsInstagramPostsInFormatOfApp(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	truth, _ := r.World().Video(link.Instagram, r.World().Find(link.Instagram, HiddenLikes), testNow)
	post := r.getEnsembleData(t, "instagram/post/details", "code", truth.ID).decodeJSON(t)["data"]
	require.Equal(t, truth.ID, valueAt(t, post, "code"))
	require.Equal(t, json.Number(decimalText(truth.Views+truth.Views/4)), valueAt(t, post, "play_count"), "play_count must include plays on Facebook")
	require.Equal(t, json.Number(decimalText(truth.Views/4)), valueAt(t, post, "fb_play_count"))
	require.Equal(t, json.Number("3"), valueAt(t, post, "like_count"), "like_count must be 3 if the likes are hidden")
	require.Equal(t, true, valueAt(t, post, "like_and_view_counts_disabled"))
	clips := valueAt(t, post, "clips_metadata").(map[string]any)
	titles := 0
	for _, path := range [][]string{{"music_info", "music_asset_info", "title"}, {"original_sound_info", "original_audio_title"}} {
		if clips[path[0]] == nil {
			continue
		}
		var found any = clips
		for _, key := range path {
			found = valueAt(t, found, key)
		}
		require.Equal(t, truth.Song.Title, found)
		titles++
	}
	require.Equal(t, 1, titles)
}

func TestScrapeCreators_returnsVideosOfEveryPlatform(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	t.Run("TikTok videos by link and by short link", func(t *testing.T) {
		t.Parallel()
		a := r.getScrapeCreators(t, "v2/tiktok/video", "url", scoutVideo).decodeJSON(t)
		require.Equal(t, true, a["success"])
		truth, _ := r.World().Video(link.TikTok, "6718335390845095173", testNow)
		requireAweme(t, truth, a["aweme_detail"])
		short := r.getScrapeCreators(t, "v2/tiktok/video", "url", "https://vm.tiktok.com/ZMVidetest/").decodeJSON(t)
		require.Contains(t, r.shortLinkTarget(link.TikTok, "ZMVidetest").location, valueAt(t, short, "aweme_detail", "aweme_id"))
	})
	t.Run("Instagram videos", func(t *testing.T) {
		t.Parallel()
		a := r.getScrapeCreators(t, "v1/instagram/post", "url", "https://www.instagram.com/somebody/reel/DOq6eV6iIgD/").decodeJSON(t)
		require.Equal(t, "DOq6eV6iIgD", valueAt(t, a, "data", "xdt_shortcode_media", "shortcode"))
		require.Equal(t, "somebody", valueAt(t, a, "data", "xdt_shortcode_media", "owner", "username"))
	})
	t.Run("Facebook videos", func(t *testing.T) {
		t.Parallel()
		truth, _ := r.World().Video(link.Facebook, "1535656380759655", testNow)
		a := r.getScrapeCreators(t, "v1/facebook/post", "url", "https://www.facebook.com/reel/1535656380759655").decodeJSON(t)
		require.Equal(t, json.Number(decimalText(truth.Views)), a["view_count"])
		require.Equal(t, json.Number(decimalText(*truth.Shares)), a["share_count"])
		require.Equal(t, truth.Account.ID, valueAt(t, a, "author", "id"))
		hidden := r.getScrapeCreators(t, "v1/facebook/post", "url", "https://www.facebook.com/reel/"+r.World().Find(link.Facebook, HiddenLikes)).decodeJSON(t)
		require.Nil(t, hidden["like_count"])
	})
	t.Run("YouTube videos", func(t *testing.T) {
		t.Parallel()
		truth, _ := r.World().Video(link.YouTube, "dQw4w9WgXcQ", testNow)
		a := r.getScrapeCreators(t, "v1/youtube/video", "url", "https://youtu.be/dQw4w9WgXcQ").decodeJSON(t)
		require.Equal(t, json.Number(decimalText(truth.Views)), a["viewCountInt"])
	})
}

func TestScrapeCreators_returnsDocumentedStatusCodes(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	tiktok := func(c Category) string {
		return "https://www.tiktok.com/@/video/" + r.World().Find(link.TikTok, c)
	}
	r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"2028-01-01T00:00:00Z"}`)
	for _, c := range []struct {
		name, path string
		pairs      []string
		status     int
	}{
		{"an unknown path", "v1/tiktok", nil, 404},
		{"a missing parameter", "v2/tiktok/video", nil, 400},
		{"a bad link", "v2/tiktok/video", []string{"url", "x"}, 400},
		{"a deleted video", "v2/tiktok/video", []string{"url", tiktok(BecomesDeleted)}, 404},
		{"a private video", "v2/tiktok/video", []string{"url", tiktok(BecomesPrivate)}, 200},
		{"an age-restricted video", "v2/tiktok/video", []string{"url", tiktok(AgeRestricted)}, 200},
		{"an unknown user", "v1/tiktok/profile", []string{"handle", r.World().FindAccount(link.TikTok, AccountGone)}, 404},
		{"the list of a private user", "v3/tiktok/profile/videos", []string{"handle", r.World().FindAccount(link.TikTok, AccountPrivate)}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := r.getScrapeCreators(t, c.path, c.pairs...)
			require.Equal(t, c.status, a.StatusCode, a.text)
			require.Equal(t, false, a.decodeJSON(t)["success"])
			require.NotEmpty(t, a.decodeJSON(t)["message"])
		})
	}
	require.Equal(t, 401, r.mustSend(t, http.MethodGet, "/vendor/v2/tiktok/video?url=x", "").StatusCode)
	require.Equal(t, 401, r.mustSend(t, http.MethodGet, "/vendor/v2/tiktok/video?url=x", "", "x-api-key", "wrong").StatusCode)
}

func TestScrapeCreators_returnsVideosOfAccounts(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	// fetchAllIDs requests all pages of a list and returns all ids. requestPage returns "" as the
	// next cursor if the page is the last.
	fetchAllIDs := func(requestPage func(cursor string) ([]string, string)) []string {
		var all []string
		for cursor := ""; ; {
			ids, next := requestPage(cursor)
			all = append(all, ids...)
			if next == "" {
				return all
			}
			cursor = next
		}
	}
	idsOf := func(list any, path ...any) []string {
		var ids []string
		for _, item := range list.([]any) {
			ids = append(ids, valueAt(t, item, path...).(string))
		}
		return ids
	}
	require.Equal(t, r.World().Uploads(link.TikTok, "zachking", testNow), fetchAllIDs(func(cursor string) ([]string, string) {
		a := r.getScrapeCreators(t, "v3/tiktok/profile/videos", "handle", "zachking", "max_cursor", cursor).decodeJSON(t)
		next := ""
		if a["has_more"] == json.Number("1") {
			next = a["max_cursor"].(json.Number).String()
		}
		return idsOf(a["aweme_list"], "aweme_id"), next
	}))
	require.Equal(t, r.World().Uploads(link.Instagram, "nike", testNow), fetchAllIDs(func(cursor string) ([]string, string) {
		a := r.getScrapeCreators(t, "v1/instagram/user/reels", "handle", "nike", "max_id", cursor).decodeJSON(t)
		next, _ := valueAt(t, a, "paging_info", "max_id").(string)
		return idsOf(a["items"], "media", "code"), next
	}))
	pageID := ""
	require.Equal(t, r.World().Uploads(link.Facebook, "nasa", testNow), fetchAllIDs(func(cursor string) ([]string, string) {
		a := r.getScrapeCreators(t, "v1/facebook/profile/reels", "url", "https://www.facebook.com/nasa", "next_page_id", pageID, "cursor", cursor).decodeJSON(t)
		next, _ := a["cursor"].(string)
		pageID, _ = a["next_page_id"].(string)
		return idsOf(a["reels"], "video_id"), next
	}))
	require.Equal(t, "zachking", valueAt(t, r.getScrapeCreators(t, "v1/tiktok/profile", "handle", "zachking").decodeJSON(t), "user", "uniqueId"))
	require.Equal(t, "nike", valueAt(t, r.getScrapeCreators(t, "v1/instagram/profile", "handle", "nike").decodeJSON(t), "data", "user", "username"))
	require.Equal(t, "nasa", valueAt(t, r.getScrapeCreators(t, "v1/facebook/profile", "url", "https://www.facebook.com/nasa/").decodeJSON(t), "username"))
}

func TestApify_returnsTikTokVideos(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	gone := "https://www.tiktok.com/@x/video/" + r.World().Find(link.TikTok, AgeRestricted)
	a := r.runApify(t, fmt.Sprintf(`{"postURLs":[%q,%q],"profiles":["zachking"],"resultsPerPage":3,"shouldDownloadVideos":false}`, scoutVideo, gone))
	require.Equal(t, http.StatusCreated, a.StatusCode)
	require.Equal(t, "5", a.Header.Get("X-Apify-Pagination-Total"))
	items := decodeJSON([]byte(a.text)).([]any)
	require.Len(t, items, 5)
	truth, _ := r.World().Video(link.TikTok, "6718335390845095173", testNow)
	require.Equal(t, truth.ID, valueAt(t, items, 0, "id"))
	require.Equal(t, truth.Title, valueAt(t, items, 0, "text"))
	require.Equal(t, json.Number(decimalText(RoundTikTokCount(truth.Views))), valueAt(t, items, 0, "playCount"))
	require.NotEqual(t, RoundTikTokCount(truth.Views), truth.Views)
	require.Equal(t, json.Number(decimalText(RoundTikTokCount(*truth.Bookmarks))), valueAt(t, items, 0, "collectCount"))
	require.Equal(t, "scout2015", valueAt(t, items, 0, "authorMeta", "name"))
	require.Equal(t, truth.Song.Title, valueAt(t, items, 0, "musicMeta", "musicName"))
	uploaded, err := time.Parse(time.RFC3339, valueAt(t, items, 0, "createTimeISO").(string))
	require.NoError(t, err)
	require.True(t, truth.UploadedAt.Equal(uploaded))
	require.Equal(t, gone, valueAt(t, items, 1, "url"))
	require.NotEmpty(t, valueAt(t, items, 1, "error"))
	require.Equal(t, r.World().Uploads(link.TikTok, "zachking", testNow)[0], valueAt(t, items, 2, "id"))
}

func TestApify_returnsInstagramPosts(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	hidden := "https://www.instagram.com/p/" + r.World().Find(link.Instagram, HiddenLikes) + "/"
	restricted := "https://www.instagram.com/p/" + r.World().Find(link.Instagram, AgeRestricted) + "/"
	a := r.mustSend(t, http.MethodPost, "/vendor/acts/apify~instagram-scraper/run-sync-get-dataset-items",
		fmt.Sprintf(`{"directUrls":["https://www.instagram.com/reel/DOq6eV6iIgD/",%q,%q],"resultsType":"posts"}`, hidden, restricted),
		"Authorization", "Bearer "+VendorKey, "Content-Type", "application/json")
	require.Equal(t, http.StatusCreated, a.StatusCode, a.text)
	items := decodeJSON([]byte(a.text))
	truth, _ := r.World().Video(link.Instagram, "DOq6eV6iIgD", testNow)
	require.Equal(t, "DOq6eV6iIgD", valueAt(t, items, 0, "shortCode"))
	require.Equal(t, json.Number(decimalText(truth.Views)), valueAt(t, items, 0, "videoPlayCount"))
	require.Equal(t, json.Number(decimalText(*truth.Likes)), valueAt(t, items, 0, "likesCount"))
	require.Equal(t, json.Number("-1"), valueAt(t, items, 1, "likesCount"))
	require.Equal(t, "not_found", valueAt(t, items, 2, "error"))
}

func TestApify_startsRunsAndReturnsTheirItems(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	const input = `{"postURLs":["https://www.tiktok.com/@zachking/video/7561234567890123456"]}`
	headers := []string{"Authorization", "Bearer " + VendorKey, "Content-Type", "application/json"}
	started := r.mustSend(t, http.MethodPost, "/vendor/acts/clockworks~tiktok-scraper/runs?timeout=540", input, headers...)
	require.Equal(t, http.StatusCreated, started.StatusCode, started.text)
	require.Equal(t, "READY", valueAt(t, started.decodeJSON(t), "data", "status"))
	run := "/vendor/actor-runs/" + valueAt(t, started.decodeJSON(t), "data", "id").(string)

	state := r.mustSend(t, http.MethodGet, run+"?waitForFinish=60", "", headers...)
	require.Equal(t, "SUCCEEDED", valueAt(t, state.decodeJSON(t), "data", "status"))
	items := r.mustSend(t, http.MethodGet, run+"/dataset/items", "", headers...)
	require.Equal(t, http.StatusOK, items.StatusCode)
	require.JSONEq(t, r.runApify(t, input).text, items.text, "both ways to run an actor must give the same results")

	aborted := r.mustSend(t, http.MethodPost, run+"/abort", "", headers...)
	require.Equal(t, http.StatusOK, aborted.StatusCode)
	require.Equal(t, "SUCCEEDED", valueAt(t, aborted.decodeJSON(t), "data", "status"), "Apify does not abort a run that has ended")

	for path, status := range map[string]int{run + "/abort": 405, run + "/other": 404, "/vendor/actor-runs/other": 404, "/vendor/actor-runs/other/dataset/items": 404} {
		require.Equal(t, status, r.mustSend(t, http.MethodGet, path, "", headers...).StatusCode, path)
	}
	require.Equal(t, http.StatusUnauthorized, r.mustSend(t, http.MethodGet, run, "").StatusCode)
	require.Equal(t, http.StatusMethodNotAllowed, r.mustSend(t, http.MethodPost, run, "", headers...).StatusCode)
}

func TestApify_refusesInvalidRequests(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	const run = "/vendor/acts/clockworks~tiktok-scraper/run-sync-get-dataset-items"
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"no token", http.MethodPost, run, `{}`, nil, 401},
		{"a wrong token", http.MethodPost, run + "?token=x", `{}`, nil, 401},
		{"an unknown actor", http.MethodPost, "/vendor/acts/me~mine/run-sync-get-dataset-items?token=" + VendorKey, `{}`, nil, 404},
		{"an unknown action", http.MethodPost, "/vendor/acts/clockworks~tiktok-scraper/run?token=" + VendorKey, `{}`, nil, 404},
		{"a wrong HTTP method", http.MethodGet, run + "?token=" + VendorKey, "", nil, 405},
		{"a wrong content type", http.MethodPost, run + "?token=" + VendorKey, `{"postURLs":["x"]}`, []string{"Content-Type", "text/plain"}, 400},
		{"no JSON", http.MethodPost, run + "?token=" + VendorKey, `{`, []string{"Content-Type", "application/json"}, 400},
		{"no input", http.MethodPost, run + "?token=" + VendorKey, `{}`, []string{"Content-Type", "application/json; charset=utf-8"}, 400},
		{"a valid request with the token in the query", http.MethodPost, run + "?token=" + VendorKey, `{"postURLs":["x"]}`, []string{"Content-Type", "application/json"}, 201},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := r.mustSend(t, c.method, c.path, c.body, c.headers...)
			require.Equal(t, c.status, a.StatusCode, a.text)
			if c.status >= 400 {
				require.NotEmpty(t, valueAt(t, a.decodeJSON(t), "error", "type"))
				require.NotEmpty(t, valueAt(t, a.decodeJSON(t), "error", "message"))
			}
		})
	}
}
