package collector_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store/link"
)

// testedSource describes a source of counts for one platform. A vendor has one testedSource for each platform that it serves.
type testedSource struct {
	name     string
	platform link.Platform
	source   func(h *hostileTest) source.Source
	// counts has the JSON paths of each count in an item of the answer. The keys are names of counts, such as "views".
	counts map[string][]string
	// singleCalls is true if each call to the source fetches only one video.
	singleCalls bool
	// countsOnly is true if the tested calls request only counts. Such calls are made only for videos that were fetched before.
	countsOnly bool
	ownVideos  bool          // the source serves only the videos of the authorized account
	lag        time.Duration // age of the counts that the source returns
	rounds     bool          // the source rounds large counts, as sandbox.RoundTikTokCount does
	// listCalls is true if the source gets the video list of an account by separate calls. noAccounts is true if the source fetches no
	// accounts.
	listCalls, noAccounts bool
}

var (
	awemeCounts = map[string][]string{"views": {"statistics.play_count"}, "likes": {"statistics.digg_count"}, "comments": {"statistics.comment_count"},
		"shares": {"statistics.share_count"}, "bookmarks": {"statistics.collect_count"}}
	shortcodeCounts = map[string][]string{"views": {"video_play_count"}, "likes": {"edge_media_preview_like.count"},
		"comments": {"edge_media_to_parent_comment.count", "edge_media_to_comment.count"}}
	youtubeCounts = map[string][]string{"views": {"statistics.viewCount"}, "likes": {"statistics.likeCount"}, "comments": {"statistics.commentCount"}}
	tiktokCounts  = map[string][]string{"views": {"view_count"}, "likes": {"like_count"}, "comments": {"comment_count"}, "shares": {"share_count"}}
)

// testedSources returns all sources for the tests of hostile answers.
func testedSources() []testedSource {
	research := map[string][]string{"bookmarks": {"favorites_count"}}
	maps.Copy(research, tiktokCounts)
	return []testedSource{
		{name: "youtube", platform: link.YouTube, source: youtubeSource, counts: youtubeCounts, listCalls: true},
		{name: "youtube counts", platform: link.YouTube, source: youtubeSource, counts: youtubeCounts, countsOnly: true},
		{name: "tiktok display", platform: link.TikTok, source: (*hostileTest).displayAPISource, counts: tiktokCounts, ownVideos: true, listCalls: true},
		{name: "tiktok research", platform: link.TikTok, source: (*hostileTest).researchAPISource, counts: research, lag: sandbox.ResearchLag},
		{name: "instagram", platform: link.Instagram, source: (*hostileTest).instagramSource,
			counts: map[string][]string{"views": {"view_count"}, "likes": {"like_count"}, "comments": {"comments_count"}}},
		{name: "facebook", platform: link.Facebook, source: (*hostileTest).facebookSource, singleCalls: true, listCalls: true,
			counts: map[string][]string{"views": {"views"}, "likes": {"likes.summary.total_count"}, "comments": {"comments.summary.total_count"}}},
		{name: "ensembledata tiktok", platform: link.TikTok, source: vendorConstructor("ensembledata"), counts: awemeCounts, listCalls: true},
		{name: "ensembledata instagram", platform: link.Instagram, source: vendorConstructor("ensembledata"), counts: shortcodeCounts, singleCalls: true, listCalls: true},
		{name: "scrapecreators tiktok", platform: link.TikTok, source: vendorConstructor("scrapecreators"), counts: awemeCounts, singleCalls: true, listCalls: true},
		{name: "scrapecreators instagram", platform: link.Instagram, source: vendorConstructor("scrapecreators"), counts: shortcodeCounts, singleCalls: true, listCalls: true},
		{name: "scrapecreators facebook", platform: link.Facebook, source: vendorConstructor("scrapecreators"), singleCalls: true, listCalls: true,
			counts: map[string][]string{"views": {"view_count"}, "likes": {"like_count"}, "comments": {"comment_count"}, "shares": {"share_count"}}},
		{name: "apify tiktok", platform: link.TikTok, source: vendorConstructor("apify"), rounds: true,
			counts: map[string][]string{"views": {"playCount"}, "likes": {"diggCount"}, "comments": {"commentCount"}, "shares": {"shareCount"}, "bookmarks": {"collectCount"}}},
		{name: "apify instagram", platform: link.Instagram, source: vendorConstructor("apify"), noAccounts: true,
			counts: map[string][]string{"views": {"videoPlayCount"}, "likes": {"likesCount"}, "comments": {"commentsCount"}}},
	}
}

func youtubeSource(h *hostileTest) source.Source {
	s, err := youtube.New(youtube.Options{BaseURL: h.url + "/youtube/", APIKey: sandbox.YouTubeAPIKey, Client: h.client, Now: h.db.Clock.Now})
	require.NoError(h.t, err)
	return s
}

func (h *hostileTest) displayAPISource() source.Source {
	s, err := tiktok.NewDisplay(tiktok.DisplayOptions{BaseURL: h.url + "/tiktok", ClientKey: sandbox.TikTokClientKey, ClientSecret: sandbox.TikTokClientSecret,
		RefreshToken: sandbox.TikTokRefreshToken, Client: h.client, Tokens: h.fast.Queue, Now: h.db.Clock.Now})
	require.NoError(h.t, err)
	return s
}

func (h *hostileTest) researchAPISource() source.Source {
	s, err := tiktok.NewResearch(tiktok.ResearchOptions{BaseURL: h.url + "/tiktok", ClientKey: sandbox.TikTokResearchClientKey,
		ClientSecret: sandbox.TikTokResearchClientSecret, Client: h.client, Now: h.db.Clock.Now})
	require.NoError(h.t, err)
	return s
}

func (h *hostileTest) instagramSource() source.Source {
	settings := h.sandbox.Settings(h.url)
	s, err := instagram.New(instagram.Options{BaseURL: settings["REELTALLY_INSTAGRAM_BASE_URL"], Token: settings["REELTALLY_INSTAGRAM_ACCESS_TOKEN"],
		AccountID: settings["REELTALLY_INSTAGRAM_ACCOUNT_ID"], Client: h.client, Now: h.db.Clock.Now})
	require.NoError(h.t, err)
	return s
}

func (h *hostileTest) facebookSource() source.Source {
	settings := h.sandbox.Settings(h.url)
	s, err := facebook.New(facebook.Options{BaseURL: settings["REELTALLY_FACEBOOK_BASE_URL"], Token: settings["REELTALLY_FACEBOOK_ACCESS_TOKEN"],
		PageIDs: []string{settings["REELTALLY_FACEBOOK_PAGE_ID"]}, Client: h.client, Now: h.db.Clock.Now})
	require.NoError(h.t, err)
	return s
}

func vendorConstructor(name string) func(h *hostileTest) source.Source {
	return func(h *hostileTest) source.Source {
		config, err := vendor.Load(name)
		require.NoError(h.t, err)
		config.Timeout = vendor.Duration(h.timeout) // this timeout replaces the timeout in the description of the vendor
		s, err := vendor.New(config, vendor.Options{BaseURL: h.url + "/vendor", Key: sandbox.VendorKey, Client: h.client, Now: h.db.Clock.Now})
		require.NoError(h.t, err)
		return s
	}
}

// The test videos have at least minViews views. The age limits ensure that the first page of an
// account's list contains them.
const (
	minAge        = 12 * 24 * time.Hour
	maxAge        = 300 * 24 * time.Hour
	minViews      = 10_000
	maxUploadSpan = 26 * 24 * time.Hour
)

// findVideos returns three normal videos of one account, sorted by views. The third video has at
// least twice the views of the first, so that their counts cannot be confused.
func (h *hostileTest) findVideos() [3]sandbox.VideoTruth {
	h.t.Helper()
	for ; h.next < 100_000; h.next++ {
		handle := h.sandbox.World().Handle(h.testedSource.platform, uint32(h.next))
		if h.testedSource.ownVideos {
			handle = h.sandbox.TikTokAccount()
		}
		found := h.normalVideos(handle)
		for len(found) >= 3 {
			some := found
			// If the source returns old counts, the three videos must be uploaded within maxUploadSpan.
			if h.testedSource.lag > 0 {
				some = slices.DeleteFunc(slices.Clone(found), func(v sandbox.VideoTruth) bool { return found[0].UploadedAt.Sub(v.UploadedAt) > maxUploadSpan })
			}
			slices.SortFunc(some, func(a, b sandbox.VideoTruth) int { return cmp.Compare(a.Views, b.Views) })
			if n := len(some); n >= 3 && some[n-1].Views >= 2*some[0].Views {
				h.next++
				return [3]sandbox.VideoTruth{some[0], some[n/2], some[n-1]}
			}
			if h.testedSource.lag == 0 {
				break
			}
			found = found[1:]
		}
		require.False(h.t, h.testedSource.ownVideos, "the authorized account must have enough videos")
	}
	h.t.Fatal("an account must have enough videos")
	return [3]sandbox.VideoTruth{}
}

// normalVideos filters the 40 newest videos of an account. It returns the videos of the category Normal that have at least minViews views and
// an age between minAge and maxAge. It returns nil if the account does not exist or its category is not AccountNormal.
func (h *hostileTest) normalVideos(handle string) []sandbox.VideoTruth {
	now, w := h.db.Clock.Now(), h.sandbox.World()
	if a, ok := w.Account(h.testedSource.platform, handle, now); !ok || a.Category != sandbox.AccountNormal {
		return nil
	}
	var found []sandbox.VideoTruth
	ids := w.Uploads(h.testedSource.platform, handle, now)
	for _, id := range ids[:min(40, len(ids))] {
		v, ok := w.Video(h.testedSource.platform, id, now)
		if ok && v.Category == sandbox.Normal && v.Views >= minViews && now.Sub(v.UploadedAt) > minAge && now.Sub(v.UploadedAt) < maxAge {
			found = append(found, v)
		}
	}
	return found
}

// trackedLink returns the link with which the tests track a video. A link of Instagram also contains the handle.
func (h *hostileTest) trackedLink(v sandbox.VideoTruth) string {
	if v.Platform == link.Instagram {
		// The source of the Graph API needs the handle to find a video.
		return "https://www.instagram.com/" + v.Account.Handle + "/reel/" + v.ID + "/"
	}
	return v.Link
}
