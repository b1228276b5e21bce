package sandbox

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/reeltally/reeltally/store/link"
)

// scrapeCreatorsMethod describes one path of ScrapeCreators' API. A request must have at least one of the parameters in oneOf.
type scrapeCreatorsMethod struct {
	platform link.Platform
	oneOf    []string
	answer   func(*Sandbox, *call, url.Values) reply
}

// scrapeCreatorsMethods maps paths to the methods of ScrapeCreators' API.
var scrapeCreatorsMethods = map[string]scrapeCreatorsMethod{
	"v2/tiktok/video":           {link.TikTok, []string{"url"}, (*Sandbox).serveScrapeCreatorsTikTokVideo},
	"v1/tiktok/profile":         {link.TikTok, []string{"handle"}, (*Sandbox).serveScrapeCreatorsTikTokProfile},
	"v3/tiktok/profile/videos":  {link.TikTok, []string{"handle"}, (*Sandbox).serveScrapeCreatorsTikTokVideos},
	"v1/instagram/post":         {link.Instagram, []string{"url"}, (*Sandbox).serveScrapeCreatorsInstagramPost},
	"v1/instagram/profile":      {link.Instagram, []string{"handle"}, (*Sandbox).serveScrapeCreatorsInstagramProfile},
	"v1/instagram/user/reels":   {link.Instagram, []string{"handle", "user_id"}, (*Sandbox).serveScrapeCreatorsInstagramReels},
	"v1/facebook/post":          {link.Facebook, []string{"url"}, (*Sandbox).serveScrapeCreatorsFacebookPost},
	"v1/facebook/profile":       {link.Facebook, []string{"url"}, (*Sandbox).serveScrapeCreatorsFacebookProfile},
	"v1/facebook/profile/reels": {link.Facebook, []string{"url"}, (*Sandbox).serveScrapeCreatorsFacebookReels},
	"v1/youtube/video":          {link.YouTube, []string{"url"}, (*Sandbox).serveScrapeCreatorsYouTubeVideo},
}

const (
	// scrapeCreatorsPageSize is the number of entries on a page of a list.
	scrapeCreatorsPageSize = 10
	// scrapeCreatorsShortPageSize is the page size of TikTok lists. It is smaller than usual, so
	// that tests cover short pages before the last page.
	scrapeCreatorsShortPageSize = 9
)

// serveScrapeCreators answers the paths in scrapeCreatorsMethods as ScrapeCreators does.
func (s *Sandbox) serveScrapeCreators(w http.ResponseWriter, c *call, path string) {
	m, known := scrapeCreatorsMethods[path]
	if m.platform != link.YouTube { // "youtube" is the name of YouTube's own API in the call log, so a vendor's call must not use it
		c.platform = string(m.platform)
	}
	s.serveCall(w, c, errorRepliesForScrapeCreators(), func(c *call) reply {
		q, err := url.ParseQuery(c.r.URL.RawQuery)
		switch {
		case !known || c.r.Method != http.MethodGet:
			return markRefused(scrapeCreatorsError(http.StatusNotFound, "Route not found"))
		case c.r.Header.Get("x-api-key") == "":
			return markRefused(scrapeCreatorsError(http.StatusUnauthorized, "Missing API key"))
		case c.r.Header.Get("x-api-key") != VendorKey:
			return markRefused(scrapeCreatorsError(http.StatusUnauthorized, "Invalid API key"))
		case err != nil:
			return scrapeCreatorsError(http.StatusBadRequest, "Malformed query")
		}
		for _, name := range m.oneOf {
			if given := q.Get(name); given != "" {
				c.ids = []string{given}
				return m.answer(s, c, q)
			}
		}
		return scrapeCreatorsError(http.StatusBadRequest, m.oneOf[0]+" is required")
	})
}

// scrapeCreatorsError returns a reply with an error in ScrapeCreators' format.
func scrapeCreatorsError(status int, message string) reply {
	return reply{status: status, body: object{"success": false, "error": message, "message": message}}
}

// scrapeCreatorsSuccess returns a successful reply of ScrapeCreators with additional members.
func scrapeCreatorsSuccess(members object) reply {
	body := object{"success": true, "credits_remaining": 1_000_000}
	maps.Copy(body, members)
	return reply{status: http.StatusOK, body: body}
}

// scrapeCreatorsVideo returns the video to which the query parameter "url" leads, or an error reply
// if the video is not available.
func (s *Sandbox) scrapeCreatorsVideo(c *call, p link.Platform, q url.Values) (VideoTruth, *reply) {
	var rep reply
	id, err := s.linkedVideo(p, q.Get("url"))
	if err != nil {
		rep = scrapeCreatorsError(http.StatusBadRequest, "Invalid url")
		return VideoTruth{}, &rep
	}
	c.ids = []string{id}
	t, ok := s.world.Video(p, id, c.now)
	switch {
	case !ok || t.State == Deleted:
		rep = scrapeCreatorsError(http.StatusNotFound, "Video not found")
	case t.State == Private:
		// The reply for a private or age-restricted video has status 200, but "success" is false.
		rep = scrapeCreatorsError(http.StatusOK, "This video is private")
	case t.State == Restricted && p != link.YouTube:
		rep = scrapeCreatorsError(http.StatusOK, "This video is age restricted")
	default:
		return t, nil
	}
	return t, &rep
}

// serveScrapeCreatorsTikTokVideo answers v2/tiktok/video.
func (s *Sandbox) serveScrapeCreatorsTikTokVideo(c *call, q url.Values) reply {
	t, bad := s.scrapeCreatorsVideo(c, link.TikTok, q)
	if bad != nil {
		return *bad
	}
	return scrapeCreatorsSuccess(object{"aweme_detail": toScrapeCreatorsFormat(s.tiktokVideoWithFollowers(c, t), t), "status_code": 0})
}

// toScrapeCreatorsFormat changes a TikTok video from the format of TikTok's mobile API to the format of ScrapeCreators, and returns it. The
// formats differ in the members for ads and products.
func toScrapeCreatorsFormat(aweme object, t VideoTruth) object {
	delete(aweme, "is_ads")
	aweme["anchors"] = nil
	aweme["is_ad"], aweme["is_eligible_for_commission"], aweme["shop_product_url"] = t.ShopAd, t.ShopAd, nil
	if t.ShopAd {
		aweme["shop_product_url"] = "https://www.tiktok.com/shop/pdp/sandbox-product-2/" + t.ShopProductID + "?source=video"
	}
	return aweme
}

// serveScrapeCreatorsInstagramPost answers v1/instagram/post.
func (s *Sandbox) serveScrapeCreatorsInstagramPost(c *call, q url.Values) reply {
	t, bad := s.scrapeCreatorsVideo(c, link.Instagram, q)
	if bad != nil {
		return *bad
	}
	return scrapeCreatorsSuccess(object{"data": object{"xdt_shortcode_media": instagramSitePost(t)}, "status": "ok"})
}

// serveScrapeCreatorsFacebookPost answers v1/facebook/post.
func (s *Sandbox) serveScrapeCreatorsFacebookPost(c *call, q url.Values) reply {
	t, bad := s.scrapeCreatorsVideo(c, link.Facebook, q)
	if bad != nil {
		return *bad
	}
	return scrapeCreatorsSuccess(facebookPost(t))
}

// serveScrapeCreatorsYouTubeVideo answers v1/youtube/video. If the creator hides the likes, likeCountInt is null.
func (s *Sandbox) serveScrapeCreatorsYouTubeVideo(c *call, q url.Values) reply {
	t, bad := s.scrapeCreatorsVideo(c, link.YouTube, q)
	if bad != nil {
		return *bad
	}
	members := object{
		"id": t.ID, "url": t.Link, "title": t.Title, "description": t.Title, "publishDate": isoTime(t.UploadedAt), "type": "video",
		"viewCountInt": t.Views, "likeCountInt": t.Likes, "durationMs": int64(t.LengthSeconds) * 1000, "isPaidPromotion": t.ShopAd,
		"thumbnail": t.ThumbnailURL(),
		"channel":   object{"id": t.Account.ID, "handle": t.Account.Handle, "title": t.Account.Name, "url": "https://www.youtube.com/@" + t.Account.Handle},
	}
	if t.Comments != nil {
		members["commentCountInt"] = *t.Comments
	}
	return scrapeCreatorsSuccess(members)
}

// scrapeCreatorsAccountError returns ScrapeCreators' error for an account, or nil if there is no
// error. isList is true if the request is for the account's videos.
func scrapeCreatorsAccountError(t AccountTruth, exists, isList bool) *reply {
	var rep reply
	switch {
	case !exists || t.State == Deleted:
		rep = scrapeCreatorsError(http.StatusNotFound, "User not found")
	// A request for the profile of a private account gets no error.
	case isList && t.State == Private:
		rep = reply{status: http.StatusOK, body: object{"success": false, "message": "This account is private"}} // unlike ScrapeCreators' other errors, this error has no member "error"
	default:
		return nil
	}
	return &rep
}

// serveScrapeCreatorsTikTokProfile answers v1/tiktok/profile.
func (s *Sandbox) serveScrapeCreatorsTikTokProfile(c *call, q url.Values) reply {
	t, ok := s.world.Account(link.TikTok, q.Get("handle"), c.now)
	if bad := scrapeCreatorsAccountError(t, ok, false); bad != nil {
		return *bad
	}
	stats, text := tiktokWebStats(t), object{}
	for name := range stats {
		text[name] = "0"
	}
	text["followerCount"], text["followingCount"] = decimalText(*t.Followers), decimalText(t.Following)
	text["heart"], text["heartCount"], text["videoCount"] = decimalText(t.Likes), decimalText(t.Likes), decimalText(t.Videos)
	return scrapeCreatorsSuccess(object{"user": tiktokWebUser(t), "stats": stats, "statsV2": text})
}

// serveScrapeCreatorsTikTokVideos answers v3/tiktok/profile/videos.
func (s *Sandbox) serveScrapeCreatorsTikTokVideos(c *call, q url.Values) reply {
	t, ok := s.world.Account(link.TikTok, q.Get("handle"), c.now)
	if bad := scrapeCreatorsAccountError(t, ok, true); bad != nil {
		return *bad
	}
	ids, next := partOfList(s.world.listedVideos(t.self, c.now), parseNumber(q.Get("max_cursor")), scrapeCreatorsShortPageSize)
	more := 0
	if next > 0 {
		more = 1
	}
	list := s.encodeVideos(c, link.TikTok, ids, func(v VideoTruth) object { return toScrapeCreatorsFormat(s.tiktokMobileVideo(v, t), v) })
	return scrapeCreatorsSuccess(object{"aweme_list": list, "max_cursor": next, "has_more": more, "status_code": 0})
}

// serveScrapeCreatorsInstagramProfile answers v1/instagram/profile.
func (s *Sandbox) serveScrapeCreatorsInstagramProfile(c *call, q url.Values) reply {
	t, ok := s.world.Account(link.Instagram, q.Get("handle"), c.now)
	if bad := scrapeCreatorsAccountError(t, ok, false); bad != nil {
		return *bad
	}
	return scrapeCreatorsSuccess(object{"data": object{"user": instagramProfile(t)}, "status": "ok"})
}

// serveScrapeCreatorsInstagramReels answers v1/instagram/user/reels.
func (s *Sandbox) serveScrapeCreatorsInstagramReels(c *call, q url.Values) reply {
	i, ok := s.world.accountByID(link.Instagram, q.Get("user_id"))
	if !q.Has("user_id") {
		i, ok = s.world.accountByHandle(link.Instagram, q.Get("handle"))
	}
	if !ok {
		return scrapeCreatorsError(http.StatusNotFound, "User not found")
	}
	t := s.world.accountData(i, c.now)
	if bad := scrapeCreatorsAccountError(t, true, true); bad != nil {
		return *bad
	}
	ids, next := partOfList(s.world.listedVideos(i, c.now), parseNumber(q.Get("max_id")), scrapeCreatorsPageSize)
	paging := object{"more_available": next > 0}
	if next > 0 {
		paging["max_id"] = strconv.Itoa(next)
	}
	items := s.encodeVideos(c, link.Instagram, ids, func(v VideoTruth) object { return object{"media": instagramAppReel(v)} })
	return scrapeCreatorsSuccess(object{"items": items, "paging_info": paging})
}

// serveScrapeCreatorsFacebookProfile answers v1/facebook/profile.
func (s *Sandbox) serveScrapeCreatorsFacebookProfile(c *call, q url.Values) reply {
	i, ok := s.linkedAccount(link.Facebook, q.Get("url"))
	if !ok {
		return scrapeCreatorsError(http.StatusBadRequest, "Invalid url")
	}
	t := s.world.accountData(i, c.now)
	if bad := scrapeCreatorsAccountError(t, true, false); bad != nil {
		return *bad
	}
	return scrapeCreatorsSuccess(facebookProfile(t))
}

// serveScrapeCreatorsFacebookReels answers v1/facebook/profile/reels.
func (s *Sandbox) serveScrapeCreatorsFacebookReels(c *call, q url.Values) reply {
	i, ok := s.linkedAccount(link.Facebook, q.Get("url"))
	if !ok {
		return scrapeCreatorsError(http.StatusBadRequest, "Invalid url")
	}
	t := s.world.accountData(i, c.now)
	if bad := scrapeCreatorsAccountError(t, true, true); bad != nil {
		return *bad
	}
	// The vendor ignores a cursor without the id of the page.
	from := 0
	if q.Get("next_page_id") != "" {
		from = parseNumber(q.Get("cursor"))
	}
	ids, next := partOfList(s.world.listedVideos(i, c.now), from, scrapeCreatorsPageSize)
	members := object{"reels": s.encodeVideos(c, link.Facebook, ids, facebookReel)}
	if next > 0 {
		members["cursor"], members["next_page_id"] = strconv.Itoa(next), "page-"+strconv.Itoa(next)
	}
	return scrapeCreatorsSuccess(members)
}

// errorRepliesForScrapeCreators returns the replies that simulate a failure of ScrapeCreators, such as a spent quota.
func errorRepliesForScrapeCreators() errorReplies {
	return errorReplies{
		rateLimited: func() reply { return scrapeCreatorsError(http.StatusTooManyRequests, "Rate limit exceeded") },
		quotaSpent: func() reply {
			return scrapeCreatorsError(http.StatusPaymentRequired, "You are out of credits")
		},
		serverError: func() reply { return scrapeCreatorsError(http.StatusInternalServerError, "Internal server error") },
		hostile:     hostileJSON,
	}
}
