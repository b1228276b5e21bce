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
	// minListed is the smallest number of videos with which fetchList ends before the end of Facebook's list. If a list has fewer videos, the
	// collector assumes that the account has no other videos.
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
	res, err := s.getObject(ctx, budget, accountPath(t), "fields", "id,name,username,about,website,followers_count")
	err = asTypeError(err, "Page")
	if e, ok := graph.AsTargetError(err); ok {
		return e.Result(), nil
	}
	if err != nil {
		return source.Result{}, err
	}
	a, problem := decodePage(res.Body, t)
	if problem != "" {
		return source.Result{Class: source.Temporary, Detail: problem, Sandbox: res.Sandbox}, nil
	}
	s.handles.Put(*a.ID, *a.Username)
	r := source.Result{Class: source.OK, Account: a, Sandbox: res.Sandbox}
	for _, list := range videoLists {
		found, err := s.fetchList(ctx, budget, *a.ID, list, t.Depth)
		if e, ok := graph.AsTargetError(err); ok {
			r.Detail = "no list of " + list + ": " + e.Detail // the profile is returned even if a list of videos cannot be requested
			continue
		}
		if errors.Is(err, graph.ErrTooMuchData) {
			// Fail the fetch instead of returning the profile with only the other list. Otherwise the account's existing videos would count as completely
			// listed, and videos that are only in this list would never be tracked.
			return source.Result{Class: source.Temporary, Detail: "no list of " + list + ": " + err.Error(), Sandbox: res.Sandbox}, nil
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

// decodePage decodes the profile of a Facebook page that was requested for the target. If the profile is not valid, "problem" says why.
func decodePage(body []byte, t queue.Target) (a *source.AccountFacts, problem string) {
	var p page
	if json.Unmarshal(body, &p) != nil {
		return nil, "the answer about the Facebook page has a field of the wrong type"
	}
	id, handle := string(p.ID), fetch.ParseHandle(p.Username.Value())
	path := accountPath(t)
	isRequested := handle != nil && link.IsSameHandle(link.Facebook, *handle, path)
	if path == t.AccountID {
		isRequested = id == path
	}
	switch {
	case !pageID.MatchString(id):
		return nil, "the page has no id"
	case !isRequested:
		return nil, "the answer has a page that was not requested"
	case p.Followers.Invalid():
		return nil, "the page has an invalid count"
	case handle == nil:
		handle = &id // the page has no handle, so its id is used as the handle
	}
	return &source.AccountFacts{
		ID: &id, Username: handle, Name: fetch.CleanName(p.Name.Value()), Bio: fetch.CleanName(p.About.Value()), ProfileLink: fetch.ParseLink(p.Website.Value()),
		Followers: p.Followers.Value(), Private: new(false),
	}, ""
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

// fetchList returns the newest videos in one of the two lists of a Facebook page: at least maxVideos and minListed, unless the list ends.
//
// It sends at most maxListRequests requests for full pages, or more requests for smaller pages. If these find too few videos, fetchList
// returns a failure, because the collector would take the found videos for the complete list. If maxListRequests returns maxPages, fetchList
// returns the found videos instead of a failure, because no later fetch could find more.
func (s *Source) fetchList(ctx context.Context, budget *source.CallBudget, pageID, listName string, maxVideos int) ([]ingest.FoundVideo, error) {
	var found []ingest.FoundVideo
	seen := map[string]bool{}
	cursor := ""
	requests := maxListRequests(maxVideos)
	for requested := 0; requested < requests*pageSize; {
		page, err := s.fetchListPage(ctx, budget, pageID, listName, cursor)
		if e, ok := graph.AsTargetError(err); ok && cursor != "" {
			return nil, &source.Failure{Class: source.Temporary, Detail: "a later page of the list failed: " + e.Detail}
		}
		if err != nil {
			return nil, err
		}
		for _, v := range page.videos {
			if !seen[v.ID] {
				seen[v.ID] = true
				found = append(found, v)
			}
		}
		if page.next == "" || page.next == cursor || len(found) >= max(maxVideos, minListed) {
			return found, nil
		}
		cursor = page.next
		requested += page.size
	}
	if requests < maxPages {
		return nil, &source.Failure{Class: source.Temporary, Detail: fmt.Sprintf("the first %d requests for the list of %s returned too few videos of the page, and the list goes on", requests, listName)}
	}
	return found, nil
}

// listPage is one page of a list of videos.
type listPage struct {
	videos []ingest.FoundVideo
	next   string // cursor of the next page; "" on the last page
	size   int    // number of entries that were requested
}

// fetchListPage requests one page of a list of videos and decodes it. It leaves out malformed entries and videos of other Facebook pages.
// The cursor selects the page; "" is the cursor of the first page.
func (s *Source) fetchListPage(ctx context.Context, budget *source.CallBudget, pageID, listName, cursor string) (listPage, error) {
	path := pageID + "/" + listName
	res, size, err := s.Client.GetPage(path, pageSize, func(limit int) (graph.Answer, error) {
		parameters := []string{"fields", "id,created_time,from", "limit", strconv.Itoa(limit)}
		if cursor != "" {
			parameters = append(parameters, "after", cursor)
		}
		return s.getWithPageToken(ctx, budget, pageID, path, parameters...)
	})
	if err != nil {
		return listPage{}, asTargetError(err)
	}
	var answer graph.List
	if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
		return listPage{}, graph.ErrFormat
	}
	page := listPage{next: answer.NextCursor(true), size: size}
	valid := 0 // number of entries that are videos of any Facebook page
	for _, raw := range *answer.Data {
		v, owner, ok := s.decodeEntry(raw)
		if !ok {
			continue
		}
		valid++
		if owner == "" || owner == pageID {
			page.videos = append(page.videos, v)
		}
	}
	if valid == 0 && len(*answer.Data) > 0 {
		return listPage{}, &source.Failure{Class: source.Temporary, Detail: "no entry of the list is a video with an id"}
	}
	return page, nil
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
