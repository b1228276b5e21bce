package sandbox

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// pageOfFacebookToken returns the page to which FacebookToken belongs. The page has the category AccountNormal. Find never returns a
// video of this page.
func (w *World) pageOfFacebookToken() identity {
	number := uint32(1_000_000)
	for w.accountCategory(link.Facebook, number) != AccountNormal {
		number++
	}
	return w.accountByNumber(link.Facebook, number)
}

// serveFacebook answers requests for /facebook/VERSION/…. Every public account is a page, and any
// valid token may read it, except that the system user's token may not read the videos of two
// pages: see requirePageToken. No token may read private accounts.
func (s *Sandbox) serveFacebook(w http.ResponseWriter, r *http.Request, path string) {
	known := func(token string) bool {
		_, ok := s.facebookTokenOwner(token)
		return ok
	}
	s.serveGraph(w, r, sourceFacebook, known, path, func(c *call, q graphRequest) reply {
		owner, _ := s.facebookTokenOwner(q.values.Get("access_token"))
		id := q.path[0]
		c.ids = append(c.ids, id)
		edge := ""
		if len(q.path) > 1 {
			edge = q.path[1]
		}
		switch {
		case isPathOfTokenOwner(q.path) && edge == "accounts" && len(q.path) == 2:
			return s.serveFacebookPagesOfUser(c, q, owner)
		case len(q.path) > 2:
			return graphError(http.StatusBadRequest, 2500, 0, "Unknown path components: /"+strings.Join(q.path[1:], "/"))
		case edge == "video_insights":
			// Insights need the token of the video's page.
			return s.serveFacebookInsights(c, owner, id, q.values.Get("metric"))
		case edge == "videos", edge == "video_reels":
			page, bad := s.findFacebookPage(c, id)
			if bad != nil {
				return *bad
			}
			if bad := s.requirePageToken(owner, page.id); bad != nil {
				return *bad
			}
			next := "https://" + c.r.Host + c.r.URL.Path + "?limit=" + q.values.Get("limit")
			inList := func(id string) bool { return s.isReel(id) == (edge == "video_reels") }
			list, bad := graphPage(s.world.listedVideos(page, c.now), q.values.Get("limit"), q.values.Get("after"), next, q.fields, inList,
				func(id string) graphNode { return s.facebookVideoNode(c, id) })
			if bad != nil {
				return *bad
			}
			return reply{status: http.StatusOK, body: list}
		case edge != "":
			return graphError(http.StatusBadRequest, 2500, 0, "Unknown path components: /"+edge)
		}
		// An id can belong both to a page and to a video. The requested fields decide which of the two is returned.
		asksPage := slices.ContainsFunc(q.fields, func(f graphField) bool { return f.name == "username" || f.name == "followers_count" })
		_, own := s.world.accountNumberFromID(link.Facebook, id)
		if asksPage || own || !validID(link.Facebook, id) {
			page, bad := s.findFacebookPage(c, id)
			if bad != nil {
				return *bad
			}
			return s.facebookPageNode(c, page).replyWithFields(q.fields)
		}
		t, ok := s.world.Video(link.Facebook, id, c.now)
		if !ok || t.State == Deleted || t.State == Private {
			return graphNotFoundError(id)
		}
		if bad := s.requirePageToken(owner, t.Account.ID); bad != nil {
			return *bad
		}
		return s.facebookVideoNode(c, id).replyWithFields(q.fields)
	})
}

// findFacebookPage returns the page with the given id or handle. If the account is private, deleted or unknown, it returns an error reply.
func (s *Sandbox) findFacebookPage(c *call, ref string) (identity, *reply) {
	i, ok := s.world.accountByHandleOrID(link.Facebook, ref)
	state := Deleted
	if ok {
		state = s.world.accountData(i, c.now).State
	}
	switch {
	case state == Public:
		return i, nil
	case digits.MatchString(ref) || state == Private:
		bad := graphNotFoundError(ref)
		return identity{}, &bad
	}
	bad := graphError(http.StatusNotFound, 803, 0, "(#803) Some of the aliases you requested do not exist: "+ref)
	return identity{}, &bad
}

// facebookPageNode returns the node of a page in the Graph API. The field website is absent if the page has none.
func (s *Sandbox) facebookPageNode(c *call, i identity) graphNode {
	t := s.world.accountData(i, c.now)
	n := graphNode{kind: "Page", fields: object{
		"id": t.ID, "name": t.Name, "username": t.Handle, "about": t.Bio, "website": absent{}, "link": t.Link, "followers_count": *t.Followers,
		"fan_count": *t.Followers,
	}}
	if t.BioLink != "" {
		n.fields["website"] = t.BioLink
	}
	return n
}

// isReel returns true if the video is in its page's list of reels, and false if it is in the list of videos.
func (s *Sandbox) isReel(id string) bool {
	return hashTexts(s.world.seed, "reel", id)%4 > 0
}

// facebookVideoNode returns a video as a node of the Graph API. If the creator hides the reactions, the node has no likes.
func (s *Sandbox) facebookVideoNode(c *call, id string) graphNode {
	t, _ := s.world.Video(link.Facebook, id, c.now) // the video is always found, because the caller has checked the id
	permalink := "/" + t.Account.Handle + "/videos/" + id + "/"
	if s.isReel(id) {
		permalink = "/reel/" + id + "/"
	}
	n := graphNode{kind: "Video", fields: object{
		"id": id, "title": absent{}, "description": t.Title, "length": t.LengthSeconds, "created_time": t.UploadedAt.Format("2006-01-02T15:04:05-0700"),
		"permalink_url": permalink, "views": t.Views, "from": object{"id": t.Account.ID, "name": t.Account.Name},
	}, edges: map[string]func(graphField) (any, *reply){}}
	for name, count := range map[string]*int64{"likes": t.Likes, "comments": t.Comments} {
		n.edges[name] = func(f graphField) (any, *reply) {
			for modifier := range f.modifiers {
				if modifier != "summary" && modifier != "limit" {
					bad := graphError(http.StatusBadRequest, 100, 0, "(#100) Unknown modifier "+modifier)
					return nil, &bad
				}
			}
			if count == nil {
				return absent{}, nil
			}
			e := object{"data": []object{}}
			if f.modifiers["summary"] == "true" {
				e["summary"] = object{"total_count": *count}
			}
			return e, nil
		}
	}
	return n
}

// facebookMetrics are the supported metrics of a video's insights.
var facebookMetrics = []string{"total_video_views", "fb_reels_total_plays", "blue_reels_play_count", "post_video_social_actions", "post_video_likes_by_reaction_type"}

// minInsightViews is the number of views that a video must have before the API returns its insights.
const minInsightViews = 5

// serveFacebookInsights answers ID/video_insights. tokenPage is the id of the page to which the token belongs, or "" if the token belongs
// to no page. metricNames are separated by commas.
func (s *Sandbox) serveFacebookInsights(c *call, tokenPage, id, metricNames string) reply {
	t, ok := s.world.Video(link.Facebook, id, c.now)
	if !ok || t.State == Deleted || t.State == Private {
		return graphNotFoundError(id)
	}
	if t.Account.ID != tokenPage {
		if tokenPage == "" {
			return graphError(http.StatusBadRequest, 190, 0, "(#190) This method must be called with a Page Access Token")
		}
		return graphError(http.StatusBadRequest, 10, 0, "(#10) This endpoint requires the page's own access token")
	}
	if s.meta.refusesInsights() {
		return graphError(http.StatusForbidden, 200, 0, "(#200) Requires read_insights permission to manage the object")
	}
	if t.Views < minInsightViews {
		return graphError(http.StatusBadRequest, 10, 0, "(#10) Not enough viewers for the media to show insights")
	}
	likes := int64(0)
	if t.Likes != nil {
		likes = *t.Likes
	}
	values := map[string]any{
		"total_video_views": t.Views, "fb_reels_total_plays": t.Views, "blue_reels_play_count": t.Views * 9 / 10,
		"post_video_social_actions": object{"COMMENT": *t.Comments, "SHARE": *t.Shares}, "post_video_likes_by_reaction_type": object{"REACTION_LIKE": likes},
	}
	data := []object{}
	for metric := range strings.SplitSeq(metricNames, ",") {
		value, ok := values[metric]
		if !ok {
			return graphError(http.StatusBadRequest, 100, 0, "(#100) The value must be a valid insights metric: "+strings.Join(facebookMetrics, ", "))
		}
		isReels := strings.Contains(metric, "reels")
		if c.now.Sub(t.UploadedAt) < time.Hour || isReels != s.isReel(id) && !strings.HasPrefix(metric, "post_") {
			continue // a new video has no insights; some metrics exist only for reels, and some only for other videos
		}
		data = append(data, object{"name": metric, "period": "lifetime", "values": []object{{"value": value}}, "id": id + "/video_insights/" + metric + "/" + strconv.Itoa(0)})
	}
	return reply{status: http.StatusOK, body: object{"data": data}}
}
