package facebook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	pageSize = 50
	maxPages = 100
	// minListed is the number of videos that a list has at least, unless it ends. A shorter list counts as the complete list of the account.
	minListed = 10
)

// videoLists are the names of the two lists of the Graph API that contain the videos of a Facebook page.
var videoLists = []string{"videos", "video_reels"}

// maxListRequests returns how many requests may be sent to find the given number of videos in one list.
func maxListRequests(videoCount int) int {
	// Four times the number of full pages is allowed, because Facebook leaves out some entries, so an answer
	// can have fewer than pageSize videos.
	return min(4*max(1, (videoCount+pageSize-1)/pageSize), maxPages)
}

// page is the profile of a Facebook page in the format of the Graph API.
type page struct {
	ID        fetch.ID               `json:"id"`
	Name      fetch.Optional[string] `json:"name"`
	Username  fetch.Optional[string] `json:"username"`
	About     fetch.Optional[string] `json:"about"`
	Website   fetch.Optional[string] `json:"website"`
	Followers fetch.Count            `json:"followers_count"`
}

// fetchAccount requests the profile of a Facebook page and its two lists of videos.
func (s *Source) fetchAccount(ctx context.Context, budget *source.CallBudget, t queue.Target) (source.Result, error) {
	path := accountPath(t)
	res, err := s.getObject(ctx, budget, path, "fields", "id,name,username,about,website,followers_count")
	err = asTypeError(err, "Page")
	if e, ok := graph.AsTargetError(err); ok {
		return e.Result(), nil
	}
	if err != nil {
		return source.Result{}, err
	}
	temporary := func(why string) (source.Result, error) {
		return source.Result{Class: source.Temporary, Detail: why, Sandbox: res.Sandbox}, nil
	}
	var p page
	if json.Unmarshal(res.Body, &p) != nil {
		return temporary("the answer about the Facebook page has a field of the wrong type")
	}
	id := string(p.ID)
	switch name := fetch.ParseHandle(p.Username.Value()); {
	case !pageID.MatchString(id):
		return temporary("the page has no id")
	case path == t.AccountID && id != path, path != t.AccountID && (name == nil || !link.IsSameHandle(link.Facebook, *name, path)):
		return temporary("the answer has a page that was not requested")
	case p.Followers.Invalid():
		return temporary("the page has an invalid count")
	}
	a := &source.AccountFacts{
		ID: &id, Username: fetch.ParseHandle(p.Username.Value()), Name: fetch.CleanName(p.Name.Value()), Bio: fetch.CleanName(p.About.Value()), ProfileLink: fetch.ParseLink(p.Website.Value()),
		Followers: p.Followers.Value(), Private: new(false),
	}
	if a.Username == nil {
		a.Username = &id // the page has no handle, so its id is used as the handle
	}
	s.cacheHandle(id, *a.Username)
	r := source.Result{Class: source.OK, Account: a, Sandbox: res.Sandbox}
	for _, list := range videoLists {
		found, err := s.fetchList(ctx, budget, id, list, t.Depth)
		if e, ok := graph.AsTargetError(err); ok {
			r.Detail = "no list of " + list + ": " + e.Detail // the profile is returned even if a list of videos cannot be requested
			continue
		}
		if errors.Is(err, graph.ErrTooMuchData) {
			// Without the list, the fetch would end the search for existing videos, and videos that are only in this list would never be found.
			return temporary("no list of " + list + ": " + err.Error())
		}
		if err != nil {
			return source.Result{}, err
		}
		a.Listed = true
		a.Videos = append(a.Videos, found...)
	}
	a.Videos = mergeVideoLists(a.Videos)
	return r, nil
}

// mergeVideoLists returns the videos without duplicates, newest first. Videos without an upload
// time come last. A reel can be in both lists.
func mergeVideoLists(videos []ingest.FoundVideo) []ingest.FoundVideo {
	seen := make(map[string]bool, len(videos))
	videos = slices.DeleteFunc(videos, func(v ingest.FoundVideo) bool {
		twice := seen[v.ID]
		seen[v.ID] = true
		return twice
	})
	uploadedAt := func(v ingest.FoundVideo) store.Instant {
		if v.UploadedAt == nil {
			return 0
		}
		return *v.UploadedAt
	}
	slices.SortStableFunc(videos, func(a, b ingest.FoundVideo) int { return cmp.Compare(uploadedAt(b), uploadedAt(a)) })
	return videos
}

// fetchList returns the newest videos in one of the two lists of a Facebook page. It stops when it has found maxVideos videos of the page, and at
// least minListed, or when the list ends. If it finds fewer in the allowed requests, counted in full pages, it returns a failure, because the collector would take
// the videos as the complete list. With the largest number of requests, maxPages, it returns the found videos, because the collector never requests
// a longer list.
func (s *Source) fetchList(ctx context.Context, budget *source.CallBudget, pageID, listName string, maxVideos int) ([]ingest.FoundVideo, error) {
	var found []ingest.FoundVideo
	ids := map[string]bool{} // ids of the found videos
	after := ""
	requests := maxListRequests(maxVideos)
	size := pageSize
	for requested := 0; requested < requests*pageSize; requested += size {
		path := pageID + "/" + listName
		res, err := s.graph.GetPage(path, pageSize, func(limit int) (graph.Answer, error) {
			size = limit
			parameters := []string{"fields", "id,created_time,from", "limit", strconv.Itoa(limit)}
			if after != "" {
				parameters = append(parameters, "after", after)
			}
			return s.getWithPageToken(ctx, budget, pageID, path, parameters...)
		})
		err = asTargetError(err)
		if e, ok := graph.AsTargetError(err); ok && after != "" {
			return nil, &source.Failure{Class: source.Temporary, Detail: "a later page of the list failed: " + e.Detail}
		}
		if err != nil {
			return nil, err
		}
		var answer graph.List
		if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
			return nil, graph.ErrFormat
		}
		valid := 0
		for _, raw := range *answer.Data {
			v, owner, ok := s.decodeEntry(raw)
			if !ok {
				continue
			}
			valid++
			if owner == "" || owner == pageID { // the list can have videos of other pages, which do not belong to this account
				ids[v.ID] = true
				found = append(found, v)
			}
		}
		if valid == 0 && len(*answer.Data) > 0 {
			return nil, &source.Failure{Class: source.Temporary, Detail: "no entry of the list is a video with an id"}
		}
		next := answer.NextCursor(true)
		if next == "" || next == after || len(ids) >= max(maxVideos, minListed) {
			return found, nil
		}
		after = next
	}
	if requests < maxPages {
		return nil, &source.Failure{Class: source.Temporary, Detail: fmt.Sprintf("the first %d requests for the list of %s returned too few videos of the page, and the list goes on", requests, listName)}
	}
	return found, nil
}

// decodeEntry decodes a video in a list. If the publishing page is unknown, pageID is "". If the
// entry is not valid, ok is false.
func (s *Source) decodeEntry(raw json.RawMessage) (v ingest.FoundVideo, pageID string, ok bool) {
	var item struct {
		ID          fetch.ID               `json:"id"`
		CreatedTime fetch.Optional[string] `json:"created_time"`
		From        fetch.Optional[owner]  `json:"from"`
	}
	if json.Unmarshal(raw, &item) != nil || !videoID.MatchString(string(item.ID)) {
		return ingest.FoundVideo{}, "", false
	}
	l, err := link.Parse("https://www.facebook.com/reel/" + string(item.ID))
	if err != nil {
		return ingest.FoundVideo{}, "", false
	}
	v = ingest.FoundVideo{ID: l.ID, Link: l.Canonical}
	if at := graph.ParseTime(item.CreatedTime.Value(), s.now()); at != nil {
		v.UploadedAt = new(store.InstantOf(*at))
	}
	if from := item.From.Value(); from != nil {
		pageID = string(from.ID)
	}
	return v, pageID, true
}
