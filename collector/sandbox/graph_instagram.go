package sandbox

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// These are the lowest ids of accounts and posts in the Graph API for Instagram. The ids have 17 digits and
// differ from the ids on Instagram's site.
const (
	instagramUserBase  = 17_841_400_000_000_000
	instagramMediaBase = 17_900_000_000_000_000
)

// instagramUserID returns the id that the Graph API uses for an Instagram account.
func instagramUserID(number uint32) string {
	return strconv.FormatUint(instagramUserBase+uint64(number), 10)
}

// instagramMediaID returns the id that the Graph API uses for the Instagram post with the given shortcode.
func (w *World) instagramMediaID(code string) string {
	return strconv.FormatUint(instagramMediaBase+hashTexts(w.seed, "graph media", code)%99_999_999_999_999, 10)
}

// accountOfInstagramToken returns the account to which InstagramToken belongs. The account has the category AccountNormal. Find never
// returns a post of this account.
func (w *World) accountOfInstagramToken() identity {
	number := uint32(1_000_000)
	for w.accountCategory(link.Instagram, number) != AccountNormal {
		number++
	}
	return w.accountByNumber(link.Instagram, number)
}

// InstagramAccount returns the handle of the professional account to which InstagramToken belongs.
func (s *Sandbox) InstagramAccount() string { return s.world.accountOfInstagramToken().handle }

// serveInstagram answers requests about the account of InstagramToken, its posts and their insights.
// Other accounts are served only through the edge business_discovery.
func (s *Sandbox) serveInstagram(w http.ResponseWriter, r *http.Request, path string) {
	s.serveGraph(w, r, sourceInstagram, func(token string) bool { return token == InstagramToken }, path, func(c *call, q graphRequest) reply {
		own := s.world.accountOfInstagramToken()
		id := q.path[0]
		switch {
		case id == instagramUserID(own.number) && len(q.path) == 1:
			return s.instagramTokenOwner(c, own).replyWithFields(q.fields)
		case id == instagramUserID(own.number) && len(q.path) == 2 && q.path[1] == "media":
			next := "https://" + c.r.Host + c.r.URL.Path + "?limit=" + q.values.Get("limit")
			list, bad := graphPage(s.world.listedVideos(own, c.now), q.values.Get("limit"), q.values.Get("after"), next, q.fields, nil, func(code string) graphNode { return s.instagramMediaNode(c, code, false) })
			if bad != nil {
				return *bad
			}
			return reply{status: http.StatusOK, body: list}
		}
		for _, code := range s.world.listedVideos(own, c.now) {
			switch {
			case s.world.instagramMediaID(code) != id:
			case len(q.path) == 1:
				c.ids = append(c.ids, code)
				return s.instagramMediaNode(c, code, false).replyWithFields(q.fields)
			case len(q.path) == 2 && q.path[1] == "insights":
				c.ids = append(c.ids, code)
				return s.serveInstagramInsights(c, id, code, q.values.Get("metric"))
			}
		}
		return graphNotFoundError(id)
	})
}

// instagramTokenOwner returns the account of InstagramToken as a node of the Graph API. Only this
// node can return other accounts, through its edge business_discovery.
func (s *Sandbox) instagramTokenOwner(c *call, own identity) graphNode {
	n := s.instagramUserNode(c, own, false)
	n.edges["business_discovery"] = func(f graphField) (any, *reply) {
		name, given := f.modifiers["username"]
		if !given || len(f.modifiers) != 1 || len(f.fields) == 0 {
			bad := graphError(http.StatusBadRequest, 100, 0, "(#100) The parameter username is required")
			return nil, &bad
		}
		c.ids = append(c.ids, name)
		account, ok := s.world.accountByHandle(link.Instagram, name)
		if !ok || s.world.accountData(account, c.now).State != Public {
			bad := graphError(http.StatusBadRequest, 110, 2207013, "Invalid user id")
			return nil, &bad
		}
		found, bad := s.instagramUserNode(c, account, true).selectFields(f.fields)
		return found, bad
	}
	return n
}

// instagramUserNode returns an account as a node of the Graph API. isDiscovery is true if the request uses business discovery.
func (s *Sandbox) instagramUserNode(c *call, i identity, isDiscovery bool) graphNode {
	t := s.world.accountData(i, c.now)
	n := graphNode{kind: "ShadowIGUser", edges: map[string]func(graphField) (any, *reply){}, fields: object{
		"id": instagramUserID(i.number), "username": t.Handle, "name": t.Name, "biography": t.Bio, "followers_count": *t.Followers,
		"follows_count": t.Following, "media_count": t.Videos, "profile_picture_url": "https://scontent.cdninstagram.com/sandbox/" + t.ID + ".jpg",
	}}
	n.edges["media"] = func(f graphField) (any, *reply) {
		codes := s.world.listedVideos(i, c.now)
		if len(codes) == 0 {
			return absent{}, nil
		}
		for name := range f.modifiers {
			if !slices.Contains([]string{"limit", "after", "before"}, name) {
				bad := graphError(http.StatusBadRequest, 100, 0, "(#100) Unknown modifier "+name)
				return nil, &bad
			}
		}
		list, bad := graphPage(codes, f.modifiers["limit"], f.modifiers["after"], "", f.fields, nil, func(code string) graphNode { return s.instagramMediaNode(c, code, isDiscovery) })
		return list, bad
	}
	return n
}

// instagramMediaNode returns a post as a node of the Graph API. In business discovery, the node has views, but
// lacks likes if the creator hides them. In other requests, it always has likes, but no views.
func (s *Sandbox) instagramMediaNode(c *call, code string, isDiscovery bool) graphNode {
	t, _ := s.world.Video(link.Instagram, code, c.now) // the post is always found, because the caller has checked the code
	n := graphNode{kind: "ShadowIGMedia", fields: object{
		"id": s.world.instagramMediaID(code), "shortcode": code, "caption": t.Title, "comments_count": *t.Comments, "like_count": absent{},
		"media_type": "VIDEO", "media_product_type": "REELS", "permalink": t.Link, "username": t.Account.Handle,
		"timestamp": t.UploadedAt.Format("2006-01-02T15:04:05-0700"), "thumbnail_url": t.ThumbnailURL(),
	}}
	switch {
	case t.Likes != nil:
		n.fields["like_count"] = *t.Likes
	case !isDiscovery:
		n.fields["like_count"] = t.hiddenLikes(s.world)
	}
	if isDiscovery {
		n.fields["view_count"] = t.Views
	}
	return n
}

// hiddenLikes returns the number of likes of a video whose creator hides the likes. Only the creator's own token can read this number.
func (t VideoTruth) hiddenLikes(w *World) int64 {
	v, _ := w.fixedVideoData(t.Platform, t.ID, t.UploadedAt)
	return 1 + int64(float64(t.Views-20)*v.curve.likes)
}

// instagramMetrics are the supported metrics of a post's insights.
var instagramMetrics = []string{"views", "likes", "comments", "shares", "saved", "reach", "total_interactions"}

var metricName = regexp.MustCompile(`^[a-z_]+$`)

// serveInstagramInsights answers ID/insights. The post has the given shortcode. metricNames are separated by commas.
func (s *Sandbox) serveInstagramInsights(c *call, id, shortcode, metricNames string) reply {
	t, _ := s.world.Video(link.Instagram, shortcode, c.now)
	shares, saved := t.Views/200, t.Views/150 // the values are derived from the views, because World generates no shares and bookmarks for Instagram
	likes := int64(0)
	if t.Likes != nil {
		likes = *t.Likes
	}
	values := map[string]int64{"views": t.Views, "likes": likes, "comments": *t.Comments, "shares": shares, "saved": saved, "reach": t.Views * 4 / 5,
		"total_interactions": likes + *t.Comments + shares + saved}
	data := []object{}
	for metric := range strings.SplitSeq(metricNames, ",") {
		value, ok := values[metric]
		if !ok || !metricName.MatchString(metric) {
			return graphError(http.StatusBadRequest, 100, 0, "(#100) metric[0] must be one of the following values: "+strings.Join(instagramMetrics, ", "))
		}
		if c.now.Sub(t.UploadedAt) < time.Hour {
			continue // a post that is less than an hour old has no insights
		}
		data = append(data, object{"name": metric, "period": "lifetime", "values": []object{{"value": value}}, "title": metric, "id": id + "/insights/" + metric + "/lifetime"})
	}
	return reply{status: http.StatusOK, body: object{"data": data}}
}
