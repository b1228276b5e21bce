package youtube

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	pageSize     = 50 // page size of playlistItems.list
	kindUploads  = "youtube#playlistItemListResponse"
	noUploads    = "playlistNotFound" // the error reason for a channel that never uploaded a video
	maxPageToken = 512
)

// addUploads adds an account's newest videos to r, which already has the profile. It stops early if
// the reserved quota units are spent.
func (s *Source) addUploads(ctx context.Context, budget *source.CallBudget, t queue.Target, r source.Result) (source.Result, error) {
	suffix, ok := strings.CutPrefix(*r.Account.ID, "UC")
	if !ok {
		return r, nil // the id of the uploads list can only be derived from a channel id that begins with UC
	}
	seen := map[string]bool{}
	token := ""
	pages := wantedPages(t)
	for n := range pages {
		query := "part=contentDetails&maxResults=50&playlistId=UU" + suffix
		if token != "" {
			query += "&pageToken=" + url.QueryEscape(token)
		}
		page, err := s.fetchUploads(ctx, budget, query)
		if e, ok := errors.AsType[*targetError](err); ok {
			switch {
			case e.reason == noUploads && token == "":
				r.Account.Listed = true
				return r, nil
			case e.class == source.Private:
				return r, nil // the list of uploads is private, so the result has the profile but no videos
			}
			return e.asResult(), nil
		}
		if err != nil {
			return source.Result{}, err
		}
		for _, v := range page.videos {
			if !seen[v.ID] {
				seen[v.ID] = true
				r.Account.Videos = append(r.Account.Videos, v)
			}
		}
		r.Account.ListContinues = page.next != "" && page.next != token
		if !r.Account.ListContinues || budget.Exhausted() {
			r.Account.Unfinished = r.Account.ListContinues && n+1 < pages && budget.EndedEarly(s.Budgets())
			break
		}
		token = page.next
	}
	r.Account.Listed = true
	return r, nil
}

// uploads is one page of a channel's list of uploads.
type uploads struct {
	videos []ingest.FoundVideo
	next   string // token of the next page; "" on the last page
}

// fetchUploads requests one page of a channel's uploads with playlistItems.list and decodes it.
func (s *Source) fetchUploads(ctx context.Context, budget *source.CallBudget, queryParameters string) (uploads, error) {
	res, err := s.callMethod(ctx, budget, BudgetCommon, methodUploads, queryParameters)
	if err != nil {
		return uploads{}, err
	}
	page, err := decodeUploads(res.Body, s.now())
	if err != nil {
		return uploads{}, &source.Failure{Class: source.Temporary, Detail: err.Error()}
	}
	return page, nil
}

// decodeUploads decodes an answer of playlistItems.list that fetch.CheckJSON has accepted. It
// leaves out malformed and unpublished videos.
func decodeUploads(body []byte, now time.Time) (uploads, error) {
	var answer struct {
		Kind  string      `json:"kind"`
		Items fetch.Items `json:"items"`
		Next  *string     `json:"nextPageToken"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Kind != kindUploads || answer.Items == nil {
		return uploads{}, errFormat
	}
	var page uploads
	valid := 0
	for _, raw := range answer.Items {
		var item struct {
			ContentDetails *struct {
				VideoID     fetch.ID `json:"videoId"`
				PublishedAt *string  `json:"videoPublishedAt"`
			} `json:"contentDetails"`
		}
		if json.Unmarshal(raw, &item) != nil || item.ContentDetails == nil || !videoID.MatchString(string(item.ContentDetails.VideoID)) {
			continue
		}
		valid++
		if item.ContentDetails.PublishedAt == nil {
			// An unpublished video has no publishing date.
			continue
		}
		at, err := time.Parse(time.RFC3339, *item.ContentDetails.PublishedAt)
		if err != nil {
			continue
		}
		if uploaded := fetch.CheckUploadTime(at, now); uploaded != nil {
			id := string(item.ContentDetails.VideoID)
			instant := store.InstantOf(*uploaded)
			page.videos = append(page.videos, ingest.FoundVideo{ID: id, Link: "https://www.youtube.com/watch?v=" + id, UploadedAt: &instant})
		}
	}
	if valid == 0 && len(answer.Items) > 0 {
		return uploads{}, errFormat
	}
	if answer.Next != nil && len(*answer.Next) <= maxPageToken {
		page.next = *answer.Next
	}
	return page, nil
}
