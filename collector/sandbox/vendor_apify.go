package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

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

// apifyRun is a run of an actor. Runs in the sandbox take no time: the items exist from the start.
type apifyRun struct {
	platform link.Platform
	started  time.Time
	items    []object
}

// maxApifyRuns is the maximum number of runs that the sandbox keeps.
const maxApifyRuns = 1000

// apifyRuns are the newest runs.
type apifyRuns struct {
	mu   sync.Mutex
	byID map[string]apifyRun
	ids  []string // the ids of the runs, oldest first
	last int      // number of runs since the start of the sandbox
}

// add stores a run and returns its id.
func (r *apifyRuns) add(run apifyRun) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]apifyRun{}
	}
	r.last++
	id = fmt.Sprintf("sandboxrun%07d", r.last)
	r.byID[id], r.ids = run, append(r.ids, id)
	if len(r.ids) > maxApifyRuns {
		delete(r.byID, r.ids[0])
		r.ids = r.ids[1:]
	}
	return id
}

// find returns the run with the given id, or false if the sandbox does not know it.
func (r *apifyRuns) find(id string) (apifyRun, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, ok := r.byID[id]
	return run, ok
}

// serveApify answers these requests:
//
//   - POST /acts/ACTOR/run-sync-get-dataset-items runs an actor and returns its results.
//   - POST /acts/ACTOR/runs starts a run of an actor.
//   - GET /actor-runs/RUN returns the state of a run, and GET /actor-runs/RUN/dataset/items its results.
//   - POST /actor-runs/RUN/abort also returns the state. It does nothing, like Apify for a run that has ended.
func (s *Sandbox) serveApify(w http.ResponseWriter, c *call, path string) {
	area, rest, _ := strings.Cut(path, "/")
	name, verb, _ := strings.Cut(rest, "/")
	c.method = name
	var serve func(*call) reply
	method, known := http.MethodPost, false
	if area == "actor-runs" {
		run, ok := s.runs.find(name)
		c.platform, c.method = string(run.platform), strings.TrimSuffix("actor-runs/"+verb, "/")
		known = ok
		if verb != "abort" {
			method = http.MethodGet
		}
		state := func(*call) reply { return apifyRunReply(http.StatusOK, name, "SUCCEEDED", run.started) }
		serve = map[string]func(*call) reply{
			"":              state,
			"abort":         state,
			"dataset/items": func(*call) reply { return apifyItemsReply(http.StatusOK, run.items) },
		}[verb]
	} else {
		actor, ok := findApifyActor(name)
		c.platform = string(actor.platform)
		known = ok
		serve = map[string]func(*call) reply{
			"run-sync-get-dataset-items": func(c *call) reply {
				return s.runApifyActor(c, actor, func(items []object) reply { return apifyItemsReply(http.StatusCreated, items) })
			},
			"runs": func(c *call) reply {
				return s.runApifyActor(c, actor, func(items []object) reply {
					id := s.runs.add(apifyRun{actor.platform, c.now, items})
					return apifyRunReply(http.StatusCreated, id, "READY", c.now)
				})
			},
		}[verb]
	}
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
		case serve == nil:
			return markRefused(apifyError(http.StatusNotFound, "page-not-found", "We have bad news: there is no API endpoint at this URL."))
		case c.r.Method != method:
			return markRefused(apifyError(http.StatusMethodNotAllowed, "method-not-allowed", "This API endpoint supports only the "+method+" method.")).withHeader("Allow", method)
		case !known:
			return markRefused(apifyError(http.StatusNotFound, "record-not-found", "Actor or run was not found"))
		}
		return serve(c)
	})
}

// runApifyActor runs an actor with the input in the request. It returns answer(items) with the items of the run, or an
// error reply if the input is not valid.
func (s *Sandbox) runApifyActor(c *call, actor apifyActor, answer func(items []object) reply) reply {
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
	return answer(items)
}

// apifyRunReply returns the reply with the state of a run.
func apifyRunReply(status int, id, state string, started time.Time) reply {
	run := object{"id": id, "status": state, "startedAt": started.UTC().Format(time.RFC3339), "finishedAt": nil, "defaultDatasetId": "dataset" + id}
	if state == "SUCCEEDED" {
		run["finishedAt"] = run["startedAt"]
	}
	return reply{status: status, body: object{"data": run}}
}

// apifyItemsReply returns the reply with the results of a run.
func apifyItemsReply(status int, items []object) reply {
	total := strconv.Itoa(len(items))
	return reply{status: status, body: items}.
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
