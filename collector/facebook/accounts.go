package facebook

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
)

const (
	pageSize = 50
	maxPages = 100
)

// lists are the lists of a page's videos. Reels have one of their own.
var lists = []string{"videos", "video_reels"}

// listPages is how many pages of a list are asked for at the most to find so many videos: the platform filters a page after cutting
// it, so that it may be short, or empty, though there are more.
func listPages(depth int) int { return min(4*max(1, (depth+pageSize-1)/pageSize), maxPages) }

// page is a page's node.
type page struct {
	ID        fetch.ID    `json:"id"`
	Name      *string     `json:"name"`
	Username  *string     `json:"username"`
	About     *string     `json:"about"`
	Website   *string     `json:"website"`
	Followers fetch.Count `json:"followers_count"`
}

// fetchAccount asks for a page's profile and for both lists of its videos.
func (s *Source) fetchAccount(ctx context.Context, t collector.Target) (collector.Result, error) {
	asked := pathOf(t)
	res, err := s.get(ctx, asked, "fields", "id,name,username,about,website,followers_count")
	if refusal, ok := graph.AsRefusal(err); ok {
		return refusal.Result(), nil
	}
	if err != nil {
		return collector.Result{}, err
	}
	doubt := func(why string) (collector.Result, error) {
		return collector.Result{Class: collector.Temporary, Detail: why, Sandbox: res.Sandbox}, nil
	}
	var p page
	if json.Unmarshal(res.Body, &p) != nil {
		return doubt("the page has a member of the wrong type")
	}
	id := string(p.ID)
	switch name := fetch.Handle(p.Username); {
	case !pageID.MatchString(id):
		return doubt("the page has no id")
	case asked == t.AccountID && id != asked, asked != t.AccountID && (name == nil || *name != asked):
		return doubt("an answer with a page that nobody asked for")
	case p.Followers.Wrong():
		return doubt("the page has a count that is no whole number")
	}
	a := &collector.AccountFacts{
		ID: &id, Username: fetch.Handle(p.Username), Name: fetch.Name(p.Name), Bio: fetch.Name(p.About), ProfileLink: fetch.Link(p.Website),
		Followers: p.Followers.Value(), Private: new(false),
	}
	if a.Username == nil {
		a.Username = &id // as nameOf
	}
	s.keepName(id, *a.Username)
	r := collector.Result{Class: collector.OK, Account: a, Sandbox: res.Sandbox}
	for _, list := range lists {
		found, err := s.list(ctx, id, list, t.Depth)
		if refusal, ok := graph.AsRefusal(err); ok {
			r.Detail = "no list of " + list + ": " + refusal.Detail // the page is there all the same
			continue
		}
		if err != nil {
			return collector.Result{}, err
		}
		a.Listed = true
		a.Videos = append(a.Videos, found...)
	}
	a.Videos = newestFirst(a.Videos)
	return r, nil
}

// newestFirst merges the lists; a reel may stand in both.
func newestFirst(found []ingest.FoundVideo) []ingest.FoundVideo {
	seen := make(map[string]bool, len(found))
	found = slices.DeleteFunc(found, func(v ingest.FoundVideo) bool {
		twice := seen[v.ID]
		seen[v.ID] = true
		return twice
	})
	slices.SortStableFunc(found, func(a, b ingest.FoundVideo) int {
		if a.UploadedAt == nil || b.UploadedAt == nil {
			return 0
		}
		return cmp.Compare(*b.UploadedAt, *a.UploadedAt)
	})
	return found
}

// list gives the newest videos of a list of a page, part by part, until there are as many as the depth or no more.
func (s *Source) list(ctx context.Context, page, list string, depth int) ([]ingest.FoundVideo, error) {
	var found []ingest.FoundVideo
	seen := map[string]bool{}
	after := ""
	for range listPages(depth) {
		parameters := []string{"fields", "id,created_time,permalink_url", "limit", strconv.Itoa(pageSize)}
		if after != "" {
			parameters = append(parameters, "after", after)
		}
		res, err := s.getAs(ctx, page, page+"/"+list, parameters...)
		err = ofPage(err)
		if refusal, ok := graph.AsRefusal(err); ok && after != "" {
			return nil, &collector.Failure{Class: collector.Temporary, Detail: "the list breaks off: " + refusal.Detail}
		}
		if err != nil {
			return nil, err
		}
		var answer graph.List
		if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
			return nil, graph.ErrShape
		}
		understood := 0
		for _, raw := range *answer.Data {
			if v, ok := s.entry(raw); ok {
				understood++
				found = append(found, v)
				seen[v.ID] = true
			}
		}
		if understood == 0 && len(*answer.Data) > 0 {
			return nil, &collector.Failure{Class: collector.Temporary, Detail: "no entry of the list is a video with an id"}
		}
		next := answer.After(true)
		if next == "" || next == after || len(seen) >= max(depth, 1) {
			break
		}
		after = next
	}
	return found, nil
}

// entry reads an entry of a list; false for one that is broken.
func (s *Source) entry(raw json.RawMessage) (ingest.FoundVideo, bool) {
	var item struct {
		ID          fetch.ID `json:"id"`
		CreatedTime *string  `json:"created_time"`
	}
	if json.Unmarshal(raw, &item) != nil || !videoID.MatchString(string(item.ID)) {
		return ingest.FoundVideo{}, false
	}
	l, err := link.Parse("https://www.facebook.com/reel/" + string(item.ID))
	if err != nil {
		return ingest.FoundVideo{}, false
	}
	v := ingest.FoundVideo{ID: l.ID, Link: l.Canonical}
	if at := graph.Time(item.CreatedTime, s.now()); at != nil {
		v.UploadedAt = new(store.InstantOf(*at))
	}
	return v, true
}
