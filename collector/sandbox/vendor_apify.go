package sandbox

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

// apifyActor is a simulated actor (a program that customers run) of Apify.
type apifyActor struct {
	platform link.Platform
	// run executes the actor and returns its results, which Apify calls items. It returns false if the input contains neither a post nor a
	// profile.
	run func(s *Sandbox, c *call, in apifyInput) (items []object, ok bool)
}

// findApifyActor returns the actor with the given name. It returns false if the sandbox does not simulate the actor.
func findApifyActor(name string) (apifyActor, bool) {
	switch name {
	case "clockworks~tiktok-scraper", "clockworks~free-tiktok-scraper", "clockworks~tiktok-video-scraper", "clockworks~tiktok-profile-scraper":
		return apifyActor{link.TikTok, (*Sandbox).runApifyTikTok}, true
	case "apify~instagram-scraper":
		return apifyActor{link.Instagram, (*Sandbox).runApifyInstagram}, true
	}
	return apifyActor{}, false
}

// apifyInput is the input of the simulated actors. Like the real actors, they ignore unknown members.
type apifyInput struct {
	PostURLs       []string `json:"postURLs"`       // links of videos, for the TikTok actors
	Profiles       []string `json:"profiles"`       // handles of accounts, for the TikTok actors
	ResultsPerPage *int     `json:"resultsPerPage"` // maximum number of videos to return for each profile; nil means 1
	DirectURLs     []string `json:"directUrls"`     // links of posts, for apify~instagram-scraper
}

// serveApify answers POST /acts/ACTOR/run-sync-get-dataset-items, which runs an actor and returns its results.
func (s *Sandbox) serveApify(w http.ResponseWriter, c *call, path string) {
	name, verb, _ := strings.Cut(strings.TrimPrefix(path, "acts/"), "/")
	actor, known := findApifyActor(name)
	c.platform, c.method = string(actor.platform), name
	s.serveCall(w, c, errorRepliesForApify(), func(c *call) reply {
		token := c.r.URL.Query().Get("token")
		if bearer, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer "); ok {
			token = bearer
		}
		switch {
		case token == "":
			return markRefused(apifyError(http.StatusUnauthorized, "token-not-provided", "Authentication token was not provided"))
		case token != VendorKey:
			return markRefused(apifyError(http.StatusUnauthorized, "user-or-token-not-found", "User was not found or authentication token is not valid"))
		case verb != "run-sync-get-dataset-items":
			return markRefused(apifyError(http.StatusNotFound, "page-not-found", "We have bad news: there is no API endpoint at this URL."))
		case c.r.Method != http.MethodPost:
			return markRefused(apifyError(http.StatusMethodNotAllowed, "method-not-allowed", "This API endpoint supports only the POST method.")).withHeader("Allow", http.MethodPost)
		case !known:
			return markRefused(apifyError(http.StatusNotFound, "record-not-found", "Actor was not found"))
		}
		return s.runApifyActor(c, actor)
	})
}

// runApifyActor runs an actor with the input in the request and returns its results.
func (s *Sandbox) runApifyActor(c *call, actor apifyActor) reply {
	var in apifyInput
	kind, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	raw, err := io.ReadAll(io.LimitReader(c.r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil || kind != "application/json" {
		return apifyError(http.StatusBadRequest, "invalid-input", "Input is not valid: it must be a JSON object sent as application/json")
	}
	items, ok := actor.run(s, c, in)
	if !ok {
		return apifyError(http.StatusBadRequest, "invalid-input", "Input is not valid: it names neither a post nor a profile")
	}
	total := strconv.Itoa(len(items))
	return reply{status: http.StatusCreated, body: items}.
		withHeader("X-Apify-Pagination-Total", total).withHeader("X-Apify-Pagination-Count", total).
		withHeader("X-Apify-Pagination-Offset", "0").withHeader("X-Apify-Pagination-Limit", total)
}

// runApifyTikTok runs the TikTok actors: it returns an item for each video link, and items for the newest videos of each profile.
func (s *Sandbox) runApifyTikTok(c *call, in apifyInput) ([]object, bool) {
	c.ids = append(append(c.ids, in.PostURLs...), in.Profiles...)
	items := []object{}
	for _, raw := range in.PostURLs {
		items = append(items, s.apifyTikTokItem(c, raw))
	}
	perPage := 1
	if in.ResultsPerPage != nil {
		perPage = *in.ResultsPerPage
	}
	for _, handle := range in.Profiles {
		t, ok := s.world.Account(link.TikTok, handle, c.now)
		if !ok || t.State != Public {
			items = append(items, object{"input": handle, "error": "This profile does not exist or is private.", "errorCode": "PROFILE_NOT_FOUND"})
			continue
		}
		ids, _ := partOfList(s.world.listedVideos(t.self, c.now), 0, perPage)
		items = append(items, s.encodeVideos(c, link.TikTok, ids, func(v VideoTruth) object { return clockworksItem(v, t) })...)
	}
	return items, len(c.ids) > 0
}

// apifyTikTokItem returns the item for the link of a video, or an item with an error if the video is not available.
func (s *Sandbox) apifyTikTokItem(c *call, raw string) object {
	id, err := s.linkedVideo(link.TikTok, raw)
	t, ok := s.world.Video(link.TikTok, id, c.now)
	item := object{"url": raw}
	switch {
	case err == nil && ok && t.State == Public:
		author, _ := s.world.Account(link.TikTok, t.Account.Handle, c.now)
		item = clockworksItem(t, author)
	case err == nil && ok && t.State == Restricted:
		item["error"], item["errorCode"] = "Post is sensitive content", "POST_SENSITIVE"
	default:
		item["error"], item["errorCode"] = "Post not found or private", "POST_NOT_FOUND_OR_PRIVATE"
	}
	item["input"], item["submittedVideoUrl"] = raw, raw
	return item
}

// runApifyInstagram runs apify~instagram-scraper: it returns an item for each link.
func (s *Sandbox) runApifyInstagram(c *call, in apifyInput) ([]object, bool) {
	c.ids = append(c.ids, in.DirectURLs...)
	items := []object{}
	for _, raw := range in.DirectURLs {
		id, err := s.linkedVideo(link.Instagram, raw)
		t, ok := s.world.Video(link.Instagram, id, c.now)
		if err != nil || !ok || t.State != Public {
			items = append(items, object{"url": raw, "inputUrl": raw, "error": "not_found", "errorDescription": "Post does not exist"})
			continue
		}
		item := apifyInstagramItem(t)
		item["inputUrl"] = raw
		items = append(items, item)
	}
	return items, len(c.ids) > 0
}

// apifyError returns a reply with an error in Apify's format.
func apifyError(status int, kind, message string) reply {
	return reply{status: status, body: object{"error": object{"type": kind, "message": message}}}
}

// errorRepliesForApify returns the replies that simulate a failure of Apify, such as a spent quota.
func errorRepliesForApify() errorReplies {
	return errorReplies{
		rateLimited: func() reply {
			return apifyError(http.StatusTooManyRequests, "rate-limit-exceeded", "You have exceeded the rate limit of 60 requests per second")
		},
		quotaSpent: func() reply {
			return apifyError(http.StatusPaymentRequired, "not-enough-usage-to-run-paid-actor", "By launching this job you will exceed your remaining usage")
		},
		serverError: func() reply {
			return apifyError(http.StatusInternalServerError, "internal-server-error", "Internal server error")
		},
		hostile: hostileJSON,
	}
}
