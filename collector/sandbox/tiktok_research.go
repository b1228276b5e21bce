package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

const (
	maxResearchPage  = 100                 // largest max_count
	researchPage     = 20                  // page size if the request has no max_count
	researchMost     = 60                  // largest number of videos on a page, even if max_count is larger
	maxResearchSpan  = 30 * 24 * time.Hour // largest time between start_date and end_date
	maxResearchItems = 100                 // largest number of values in a condition
	// ResearchLag is how old the data of the Research API are. Videos that were uploaded less than ResearchLag ago are missing.
	ResearchLag = 48 * time.Hour
)

// researchQuery is the request body of the Research API's video query. The sandbox supports only
// the conditions that ReelTally uses.
type researchQuery struct {
	Query struct {
		And []struct {
			Operation string   `json:"operation"`
			Field     string   `json:"field_name"` // "video_id", or "username" for a handle
			Values    []string `json:"field_values"`
		} `json:"and"`
	} `json:"query"`
	StartDate string    `json:"start_date"`
	EndDate   string    `json:"end_date"`
	MaxCount  *int      `json:"max_count"`
	Cursor    int       `json:"cursor"`
	SearchID  string    `json:"search_id"`
	IsRandom  *bool     `json:"is_random"`
	from, to  time.Time // StartDate and EndDate as times
	size      int       // page size: *MaxCount, or researchPage if MaxCount is nil
}

// validate returns TikTok's error message for an invalid query, or "" if the query is valid. It also parses the dates and the page size
// of the query.
func (q *researchQuery) validate() string {
	var err error
	if q.from, err = time.Parse("20060102", q.StartDate); err != nil {
		return "start_date is invalid"
	}
	if q.to, err = time.Parse("20060102", q.EndDate); err != nil {
		return "end_date is invalid"
	}
	q.size = researchPage
	if q.MaxCount != nil {
		q.size = *q.MaxCount
	}
	switch {
	case q.to.Before(q.from) || q.to.Sub(q.from) > maxResearchSpan:
		return "the end date must be no more than 30 days after the start date"
	case q.size < 1 || q.size > maxResearchPage:
		return fmt.Sprintf("max_count is %d; it must be from 1 to %d", q.size, maxResearchPage)
	case q.Cursor < 0 || q.Cursor > 0 && q.SearchID != tiktokLogID:
		return "cursor needs the search_id from the same answer"
	case len(q.Query.And) == 0:
		return "query is required"
	}
	for _, c := range q.Query.And {
		switch {
		case c.Operation != "EQ" && c.Operation != "IN":
			return "invalid operation " + c.Operation
		case c.Field != "video_id" && c.Field != "username":
			return "invalid field_name " + c.Field
		case len(c.Values) == 0 || len(c.Values) > maxResearchItems || c.Operation == "EQ" && len(c.Values) > 1:
			return fmt.Sprintf("invalid number of field_values: %d", len(c.Values))
		}
	}
	return ""
}

// candidateIDs returns the sorted ids that at least one condition of the query selects. A condition on a handle
// selects the videos that the account's list of videos contains at listTime.
func (s *Sandbox) candidateIDs(q researchQuery, listTime time.Time) []string {
	var ids []string
	for _, c := range q.Query.And {
		for _, value := range c.Values {
			if c.Field == "video_id" {
				ids = append(ids, value)
			} else if owner, ok := s.world.accountByHandle(link.TikTok, value); ok {
				ids = append(ids, s.world.listedVideos(owner, listTime)...)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// matches returns true if a video satisfies every condition of the query and was uploaded between the start date and the end date of the
// query.
func (q *researchQuery) matches(t VideoTruth) bool {
	for _, c := range q.Query.And {
		value := t.ID
		if c.Field == "username" {
			value = t.Account.Handle
		}
		if !slices.Contains(c.Values, value) {
			return false
		}
	}
	return !t.UploadedAt.Before(q.from) && t.UploadedAt.Before(q.to.Add(24*time.Hour))
}

// serveResearchVideoQuery answers research/video/query with one page of the matching videos. As at TikTok, the videos and their counts are as old as
// ResearchLag.
func (s *Sandbox) serveResearchVideoQuery(c *call, wants func(string) bool) reply {
	var q researchQuery
	if err := decodeStrictJSON(c.r.Body, &q); err != nil {
		return tiktokInvalidRequest("the request body is malformed: " + err.Error())
	}
	if wrong := q.validate(); wrong != "" {
		return tiktokInvalidRequest(wrong)
	}
	for _, condition := range q.Query.And {
		c.ids = append(c.ids, condition.Values...)
	}
	at := c.now.Add(-ResearchLag)
	var rows []object
	for _, id := range s.candidateIDs(q, at) {
		if t, ok := s.visibleVideo(link.TikTok, id, at); ok && !t.UploadedAt.After(at) && q.matches(t) {
			rows = append(rows, researchAPIVideo(t, wants))
		}
	}
	start := min(q.Cursor, len(rows))
	end := min(start+min(q.size, researchMost), len(rows))
	return tiktokSuccess(object{
		"videos": append([]object{}, rows[start:end]...), "cursor": end, "has_more": end < len(rows), "search_id": tiktokLogID,
	})
}

// researchAPIVideo returns a video in the format of the Research API. Its ids are JSON numbers.
func researchAPIVideo(t VideoTruth, wants func(string) bool) object {
	return selectMembers(object{
		"id": json.Number(t.ID), "create_time": t.UploadedAt.Unix(), "username": t.Account.Handle, "video_description": t.Title, "region_code": "US",
		"view_count": t.Views, "like_count": untypedCount(t.Likes), "comment_count": untypedCount(t.Comments), "share_count": untypedCount(t.Shares),
		"favorites_count": untypedCount(t.Bookmarks), "video_duration": int64(t.LengthSeconds), "music_id": json.Number(t.Song.ID), "hashtag_names": hashtagsIn(t.Title),
		"effect_ids": []string{}, "voice_to_text": "", "is_stem_verified": false,
	}, wants)
}

// serveResearchUserInfo answers research/user/info.
func (s *Sandbox) serveResearchUserInfo(c *call, wants func(string) bool) reply {
	var in struct {
		Username string `json:"username"`
	}
	if err := decodeStrictJSON(c.r.Body, &in); err != nil {
		return tiktokInvalidRequest("the request body is malformed: " + err.Error())
	}
	c.ids = []string{in.Username}
	i, ok := s.world.accountByHandle(link.TikTok, in.Username)
	if !ok {
		return tiktokInvalidRequest("username is invalid")
	}
	t := s.world.accountData(i, c.now.Add(-ResearchLag))
	if t.State != Public {
		return tiktokError(http.StatusBadRequest, "invalid_params", "username is invalid: cannot find the user")
	}
	return tiktokSuccess(selectMembers(object{
		"display_name": t.Name, "bio_description": t.Bio, "avatar_url": "https://p19-sign.tiktokcdn-us.com/sandbox/" + t.ID + ".webp", "is_verified": false,
		"follower_count": untypedCount(t.Followers), "following_count": t.Following, "likes_count": t.Likes, "video_count": t.Videos, "bio_url": t.BioLink,
	}, wants))
}
