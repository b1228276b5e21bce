package sandbox

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

// ensembleMethod describes one path of EnsembleData's API. A request without a required parameter is refused. Like the real API, the
// sandbox ignores unknown parameters.
type ensembleMethod struct {
	platform link.Platform
	required []string
	answer   func(*Sandbox, *call, url.Values) reply
}

// ensembleMethods maps the paths below EnsembleData's base URL to their methods. The facebook paths
// exist only in the sandbox. They return the format of ScrapeCreators.
var ensembleMethods = map[string]ensembleMethod{
	"tt/post/info":                 {link.TikTok, []string{"url"}, (*Sandbox).serveEnsembleTikTokPost},
	"tt/post/multi-info":           {link.TikTok, []string{"ids"}, (*Sandbox).serveEnsembleTikTokPosts},
	"tt/user/info":                 {link.TikTok, []string{"username"}, (*Sandbox).serveEnsembleTikTokProfile},
	"tt/user/posts":                {link.TikTok, []string{"username", "depth"}, (*Sandbox).serveEnsembleTikTokVideoList},
	"instagram/post/details":       {link.Instagram, []string{"code"}, (*Sandbox).serveEnsembleInstagramPost},
	"instagram/user/info":          {link.Instagram, []string{"username"}, (*Sandbox).serveEnsembleInstagramUser},
	"instagram/user/detailed-info": {link.Instagram, []string{"username"}, (*Sandbox).serveEnsembleInstagramProfile},
	"instagram/user/reels":         {link.Instagram, []string{"user_id", "depth"}, (*Sandbox).serveEnsembleInstagramReels},
	"facebook/post/info":           {link.Facebook, []string{"url"}, (*Sandbox).serveEnsembleFacebookPost},
	"facebook/user/info":           {link.Facebook, []string{"username"}, (*Sandbox).serveEnsembleFacebookProfile},
	"facebook/user/reels":          {link.Facebook, []string{"username", "depth"}, (*Sandbox).serveEnsembleFacebookReels},
}

// These are HTTP status codes that only EnsembleData uses, and limits of its API.
const (
	statusBadLink    = 462
	statusTooManyIDs = 464
	statusRestricted = 471
	statusPrivate    = 472
	statusNoUser     = 473
	statusBadToken   = 491
	statusUnitsSpent = 495
	ensembleChunk    = 10  // number of list entries that a request with depth=1 returns; depth=2 returns twice as many
	ensembleMaxIDs   = 100 // maximum number of ids in a call of multi-info
	ensembleMaxDepth = 100 // maximum value of the query parameter depth
)

// serveEnsembleData answers the paths in ensembleMethods as EnsembleData does.
func (s *Sandbox) serveEnsembleData(w http.ResponseWriter, c *call, path string) {
	m, known := ensembleMethods[path]
	c.platform = string(m.platform)
	s.serveCall(w, c, errorRepliesForEnsembleData(), func(c *call) reply {
		// EnsembleData accepts an unencoded semicolon as part of a value. url.ParseQuery would return an error for it.
		q, err := url.ParseQuery(strings.ReplaceAll(c.r.URL.RawQuery, ";", "%3B"))
		switch {
		case !known:
			return markRefused(ensembleError(http.StatusNotFound, "Not Found"))
		case c.r.Method != http.MethodGet:
			return markRefused(ensembleError(http.StatusMethodNotAllowed, "Method Not Allowed")).withHeader("Allow", http.MethodGet)
		case q.Get("token") != VendorKey:
			return markRefused(ensembleError(statusBadToken, "Token not found"))
		case err != nil:
			return ensembleError(http.StatusBadRequest, "Malformed query")
		}
		for _, name := range m.required {
			if q.Get(name) == "" {
				return ensembleInvalidParameter(name, "field required", "value_error.missing")
			}
		}
		if _, err := strconv.Atoi(q.Get("depth")); q.Has("depth") && err != nil {
			return ensembleInvalidParameter("depth", "value is not a valid integer", "type_error.integer")
		}
		return m.answer(s, c, q)
	})
}

// ensembleInvalidParameter returns the error of EnsembleData's web framework for an invalid parameter. The member "detail" of this error
// is a list.
func ensembleInvalidParameter(name, message, kind string) reply {
	rep := ensembleError(http.StatusUnprocessableEntity, "")
	rep.body = object{"detail": []object{{"loc": []string{"query", name}, "msg": message, "type": kind}}}
	return rep
}

// ensembleError returns a reply with an error in EnsembleData's format.
func ensembleError(status int, detail string) reply {
	return reply{status: status, body: object{"detail": detail}}.withHeader("units_charged", "0")
}

// ensembleSuccess returns a successful reply in EnsembleData's format. The price of the call is in EnsembleData's units.
func ensembleSuccess(data any, price int) reply {
	return reply{status: http.StatusOK, body: object{"data": data}}.withHeader("units_charged", strconv.Itoa(price))
}

// ensembleVideoError returns EnsembleData's error for a video that does not exist or is not public. It returns nil for a public video.
func ensembleVideoError(t VideoTruth, exists bool) *reply {
	var rep reply
	switch {
	case !exists || t.State == Deleted:
		rep = ensembleError(http.StatusNotFound, "Post not found")
	case t.State == Private:
		rep = ensembleError(statusPrivate, "Private post")
	case t.State == Restricted:
		rep = ensembleError(statusRestricted, "Post is age restricted")
	default:
		return nil
	}
	return &rep
}

// serveEnsembleTikTokPost answers tt/post/info.
func (s *Sandbox) serveEnsembleTikTokPost(c *call, q url.Values) reply {
	id, err := s.linkedVideo(link.TikTok, q.Get("url"))
	c.ids = []string{q.Get("url")}
	if err != nil {
		return ensembleError(statusBadLink, "Invalid post url")
	}
	c.ids = []string{id}
	t, ok := s.world.Video(link.TikTok, id, c.now)
	if bad := ensembleVideoError(t, ok); bad != nil {
		return *bad
	}
	return ensembleSuccess([]object{s.tiktokVideoWithFollowers(c, t)}, 1)
}

// tiktokVideoWithFollowers returns a video in the format of TikTok's mobile API, including the number of followers of its author.
func (s *Sandbox) tiktokVideoWithFollowers(c *call, t VideoTruth) object {
	author, _ := s.world.Account(link.TikTok, t.Account.Handle, c.now)
	return s.tiktokMobileVideo(t, author)
}

// serveEnsembleTikTokPosts answers tt/post/multi-info with the requested videos. Like the real API, it leaves out unavailable videos without an
// error.
func (s *Sandbox) serveEnsembleTikTokPosts(c *call, q url.Values) reply {
	for id := range strings.SplitSeq(q.Get("ids"), ";") {
		if id = strings.TrimSpace(id); id != "" {
			c.ids = append(c.ids, id)
		}
	}
	if len(c.ids) > ensembleMaxIDs {
		return ensembleError(statusTooManyIDs, fmt.Sprintf("Too many ids: %d, at most %d", len(c.ids), ensembleMaxIDs))
	}
	found, seen := []object{}, map[string]bool{}
	for _, id := range c.ids {
		t, ok := s.world.Video(link.TikTok, id, c.now)
		if !seen[id] && ensembleVideoError(t, ok) == nil {
			found = append(found, s.tiktokVideoWithFollowers(c, t))
		}
		seen[id] = true
	}
	return ensembleSuccess(found, 1)
}

// ensembleAccount returns the account with the given username, or an error. A private account is returned, because its profile is public.
func (s *Sandbox) ensembleAccount(c *call, p link.Platform, username string) (AccountTruth, *reply) {
	c.ids = []string{username}
	t, ok := s.world.Account(p, username, c.now)
	if !ok || t.State == Deleted {
		rep := ensembleError(statusNoUser, "User not found")
		return t, &rep
	}
	return t, nil
}

// serveEnsembleTikTokProfile answers tt/user/info.
func (s *Sandbox) serveEnsembleTikTokProfile(c *call, q url.Values) reply {
	t, bad := s.ensembleAccount(c, link.TikTok, q.Get("username"))
	if bad != nil {
		return *bad
	}
	return ensembleSuccess(object{"user": tiktokWebUser(t), "stats": tiktokWebStats(t)}, 1)
}

// ensembleListPage returns a page of an account's video ids, and the price of the call. nextStart
// is 0 if the page is the last.
func (s *Sandbox) ensembleListPage(c *call, q url.Values, t AccountTruth, cursorName string) (ids []string, nextStart, price int, bad *reply) {
	if t.State == Private {
		rep := ensembleError(statusPrivate, "Private user")
		return nil, 0, 0, &rep
	}
	depth := parseNumber(q.Get("depth"))
	if depth < 1 || depth > ensembleMaxDepth {
		rep := ensembleInvalidParameter("depth", fmt.Sprintf("ensure this value is between 1 and %d", ensembleMaxDepth), "value_error.number")
		return nil, 0, 0, &rep
	}
	// The query parameter cursorName has the index at which the page begins.
	ids, nextStart = partOfList(s.world.listedVideos(t.self, c.now), parseNumber(q.Get(cursorName)), depth*ensembleChunk)
	return ids, nextStart, depth, nil
}

// serveEnsembleTikTokVideoList answers tt/user/posts. The answer is {"data": list, "nextCursor": cursor}. All other methods with a list return
// {"data": {"reels": list, "nextCursor": cursor}}.
func (s *Sandbox) serveEnsembleTikTokVideoList(c *call, q url.Values) reply {
	t, bad := s.ensembleAccount(c, link.TikTok, q.Get("username"))
	if bad != nil {
		return *bad
	}
	ids, next, units, bad := s.ensembleListPage(c, q, t, "start_cursor")
	if bad != nil {
		return *bad
	}
	rep := ensembleSuccess(s.encodeVideos(c, link.TikTok, ids, func(v VideoTruth) object { return s.tiktokMobileVideo(v, t) }), units)
	if next > 0 {
		rep.body.(object)["nextCursor"] = next
	}
	return rep
}

// serveEnsembleInstagramPost answers instagram/post/details. Posts with hidden likes have the format of Instagram's app. All others have the format
// of Instagram's site.
func (s *Sandbox) serveEnsembleInstagramPost(c *call, q url.Values) reply {
	c.ids = []string{q.Get("code")}
	if !validID(link.Instagram, q.Get("code")) {
		return ensembleError(statusBadLink, "Invalid shortcode")
	}
	t, ok := s.world.Video(link.Instagram, q.Get("code"), c.now)
	if bad := ensembleVideoError(t, ok); bad != nil {
		return *bad
	}
	if t.HiddenStats {
		return ensembleSuccess(instagramAppReel(t), 1)
	}
	return ensembleSuccess(instagramSitePost(t), 1)
}

// serveEnsembleInstagramUser answers instagram/user/info, which has no counts.
func (s *Sandbox) serveEnsembleInstagramUser(c *call, q url.Values) reply {
	t, bad := s.ensembleAccount(c, link.Instagram, q.Get("username"))
	if bad != nil {
		return *bad
	}
	return ensembleSuccess(instagramSearchUser(t), 1)
}

// serveEnsembleInstagramProfile answers instagram/user/detailed-info, which has the counts.
func (s *Sandbox) serveEnsembleInstagramProfile(c *call, q url.Values) reply {
	t, bad := s.ensembleAccount(c, link.Instagram, q.Get("username"))
	if bad != nil {
		return *bad
	}
	return ensembleSuccess(instagramProfile(t), 1)
}

// serveEnsembleInstagramReels answers instagram/user/reels. The query parameter user_id must be a numeric account id, not a username.
func (s *Sandbox) serveEnsembleInstagramReels(c *call, q url.Values) reply {
	c.ids = []string{q.Get("user_id")}
	i, ok := s.world.accountByID(link.Instagram, q.Get("user_id"))
	if !ok {
		return ensembleInvalidParameter("user_id", "value is not a valid integer", "type_error.integer")
	}
	t := s.world.accountData(i, c.now)
	if t.State == Deleted {
		return ensembleError(statusNoUser, "User not found")
	}
	ids, next, units, bad := s.ensembleListPage(c, q, t, "start_cursor")
	if bad != nil {
		return *bad
	}
	data := object{"reels": s.encodeVideos(c, link.Instagram, ids, func(v VideoTruth) object { return object{"media": instagramAppReel(v)} })}
	if next > 0 {
		data["nextCursor"] = strconv.Itoa(next)
	}
	return ensembleSuccess(data, units)
}

// serveEnsembleFacebookPost answers facebook/post/info.
func (s *Sandbox) serveEnsembleFacebookPost(c *call, q url.Values) reply {
	id, err := s.linkedVideo(link.Facebook, q.Get("url"))
	c.ids = []string{q.Get("url")}
	if err != nil {
		return ensembleError(statusBadLink, "Invalid post url")
	}
	c.ids = []string{id}
	t, ok := s.world.Video(link.Facebook, id, c.now)
	if bad := ensembleVideoError(t, ok); bad != nil {
		return *bad
	}
	return ensembleSuccess(facebookPost(t), 1)
}

// serveEnsembleFacebookProfile answers facebook/user/info.
func (s *Sandbox) serveEnsembleFacebookProfile(c *call, q url.Values) reply {
	t, bad := s.ensembleAccount(c, link.Facebook, q.Get("username"))
	if bad != nil {
		return *bad
	}
	return ensembleSuccess(facebookProfile(t), 1)
}

// serveEnsembleFacebookReels answers facebook/user/reels.
func (s *Sandbox) serveEnsembleFacebookReels(c *call, q url.Values) reply {
	t, bad := s.ensembleAccount(c, link.Facebook, q.Get("username"))
	if bad != nil {
		return *bad
	}
	ids, next, units, bad := s.ensembleListPage(c, q, t, "start_cursor")
	if bad != nil {
		return *bad
	}
	data := object{"reels": s.encodeVideos(c, link.Facebook, ids, facebookReel)}
	if next > 0 {
		data["nextCursor"] = strconv.Itoa(next)
	}
	return ensembleSuccess(data, units)
}

// errorRepliesForEnsembleData returns the replies that simulate a failure of EnsembleData, such as a spent quota.
func errorRepliesForEnsembleData() errorReplies {
	return errorReplies{
		rateLimited: func() reply { return ensembleError(http.StatusTooManyRequests, "Too many requests") },
		quotaSpent: func() reply {
			return ensembleError(statusUnitsSpent, "Reached max units limit for today")
		},
		serverError: func() reply { return ensembleError(http.StatusInternalServerError, "Internal Server Error") },
		hostile:     hostileJSON,
	}
}
