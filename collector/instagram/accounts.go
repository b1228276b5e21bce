package instagram

import (
	"context"
	"encoding/json"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// maxListRequests returns how many pages of posts may be requested to find the given number of videos. It is
// four times the number of pages that would suffice if all posts were videos, because pages also contain
// photos. It is at most 200.
func maxListRequests(videoCount int) int { return min(4*max(1, (videoCount+pageSize-1)/pageSize), 200) }

// fetchAccount requests the profile and the newest videos of an account. Each answer of business
// discovery contains the profile and one page of posts.
func (s *Source) fetchAccount(ctx context.Context, budget *source.CallBudget, t queue.Target) (source.Result, error) {
	p, err := s.fetchDiscovery(ctx, budget, t.Handle, "id,username,name,biography,followers_count,follows_count,media_count", "")
	if e, ok := graph.AsTargetError(err); ok {
		r := e.Result()
		if r.Class == source.Unsupported && t.SourceID != "" { // the target has a SourceID only if this source has found the account before
			r.Class, r.Detail = source.Missing, "no professional account has the handle "+t.Handle+" any more: "+r.Detail
		}
		return r, nil
	}
	if err != nil {
		return source.Result{}, err
	}
	if p.Followers.Invalid() || p.Follows.Invalid() {
		return source.Result{Class: source.Temporary, Detail: "the account has an invalid count"}, nil
	}
	a := &source.AccountFacts{
		SourceID: p.sourceID(), Username: fetch.ParseHandle(p.Username), Name: fetch.CleanName(p.Name.Value()), Bio: fetch.CleanName(p.Biography.Value()),
		Followers: p.Followers.Value(), Following: p.Follows.Value(), Private: new(false), Listed: true,
	}
	r := source.Result{Class: source.OK, Account: a, Sandbox: p.sandbox}
	cursor := "" // the cursor of the page p
	requested := 0
	seen := map[string]bool{}
	for {
		switch id := p.sourceID(); {
		case id == nil && t.SourceID != "":
			return source.Result{Class: source.Temporary, Detail: "the answer has no id, so that the account cannot be verified"}, nil
		case source.IsOtherAccount(t, &source.AccountFacts{SourceID: id}):
			return source.ResultForReusedHandle(t, p.sandbox), nil
		case p.broken && len(p.posts) == 0:
			return source.Result{}, &source.Failure{Class: source.Temporary, Detail: "no entry of the list is a post with a code, or there is no list"}
		}
		for _, item := range p.posts {
			if v, ok := item.asFoundVideo(); ok && !seen[v.ID] {
				seen[v.ID] = true
				a.Videos = append(a.Videos, v)
			}
		}
		a.ListContinues = p.after != "" && p.after != cursor && !p.hasAllPosts()
		a.CompleteSince = p.completeSince()
		requested += p.size
		if !a.ListContinues || len(a.Videos) >= t.Depth || requested >= maxListRequests(t.Depth)*pageSize {
			return r, nil
		}
		cursor = p.after
		p, err = s.fetchDiscovery(ctx, budget, t.Handle, "id,username", cursor)
		if e, ok := graph.AsTargetError(err); ok {
			return source.Result{Class: source.Temporary, Detail: "a later page of the list failed: " + e.Detail, Sandbox: e.Sandbox}, nil
		}
		if err != nil {
			return source.Result{}, err
		}
	}
}

// hasAllPosts returns true if the profile on the first page shows that the page has all posts of the account. Such a page has a cursor too.
func (p page) hasAllPosts() bool {
	count := p.Posts.Value()
	return count != nil && int64(len(p.posts)) >= *count && len(p.posts) < p.size
}

// completeSince returns the upload time of the last post on the page. All newer posts are on this page, or on earlier pages. The result is nil if the
// page is the last one, if the time is unknown, or if all posts on the page may be pinned ones, which can be old.
func (p page) completeSince() *store.Instant {
	if p.after == "" || len(p.posts) <= ingest.MaxPinned {
		return nil
	}
	last := p.posts[len(p.posts)-1].uploaded
	if last == nil {
		return nil
	}
	return new(store.InstantOf(*last))
}

// asFoundVideo returns the post as a video of an account. It returns false if the post is not a video, for example if it is a photo.
func (item post) asFoundVideo() (ingest.FoundVideo, bool) {
	var c struct {
		Type      *string                `json:"media_type"`
		Permalink fetch.Optional[string] `json:"permalink"`
	}
	if json.Unmarshal(item.raw, &c) != nil || c.Type == nil || *c.Type != "VIDEO" {
		return ingest.FoundVideo{}, false
	}
	v := ingest.FoundVideo{ID: item.code, Link: "https://www.instagram.com/reel/" + item.code + "/"}
	if permalink := c.Permalink.Value(); permalink != nil {
		if l, err := link.Parse(*permalink); err == nil && l.Kind == link.Video && l.ID == item.code {
			v.Link = l.Canonical
		}
	}
	if item.uploaded != nil {
		at := store.InstantOf(*item.uploaded)
		v.UploadedAt = &at
	}
	return v, true
}
