package youtube

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
)

const (
	pageSize     = 50 // of playlistItems.list
	kindUploads  = "youtube#playlistItemListResponse"
	noUploads    = "playlistNotFound" // a channel that never uploaded anything has no list either
	maxPageToken = 512
)

// addUploads adds the account's newest videos to what is known of it, as many pages as the depth takes.
func (s *Source) addUploads(ctx context.Context, t collector.Target, r collector.Result) (collector.Result, error) {
	suffix, ok := strings.CutPrefix(*r.Account.ID, "UC")
	if !ok {
		return r, nil // an id of a shape of which it is not known how its uploads are called
	}
	seen := map[string]bool{}
	token := ""
	for range pages(t) {
		query := "part=contentDetails&maxResults=50&playlistId=UU" + suffix
		if token != "" {
			query += "&pageToken=" + url.QueryEscape(token)
		}
		page, err := s.askUploads(ctx, query)
		if e, ok := errors.AsType[*refusal](err); ok {
			switch {
			case e.reason == noUploads && token == "":
				r.Account.Listed = true
				return r, nil
			case e.class == collector.Private:
				return r, nil // the channel is to be seen, its uploads are not
			}
			return e.result(), nil
		}
		if err != nil {
			return collector.Result{}, err
		}
		for _, v := range page.videos {
			if !seen[v.ID] {
				seen[v.ID] = true
				r.Account.Videos = append(r.Account.Videos, v)
			}
		}
		if page.next == "" || page.next == token || collector.SpentUp(ctx) {
			break
		}
		token = page.next
	}
	r.Account.Listed = true
	return r, nil
}

// uploads is a page of a channel's uploads.
type uploads struct {
	videos []ingest.FoundVideo
	next   string // "" on the last page
}

func (s *Source) askUploads(ctx context.Context, query string) (uploads, error) {
	res, err := s.call(ctx, BudgetCommon, methodUploads, query)
	if err != nil {
		return uploads{}, err
	}
	page, err := decodeUploads(res.Body, s.now())
	if err != nil {
		return uploads{}, &collector.Failure{Class: collector.Temporary, Detail: err.Error()}
	}
	return page, nil
}

// decodeUploads reads an answer that CheckJSON has passed. What is not published has no date, and is left out; so is a
// broken item. When all items are broken, the answer is.
func decodeUploads(body []byte, now time.Time) (uploads, error) {
	var answer struct {
		Kind  string      `json:"kind"`
		Items fetch.Items `json:"items"`
		Next  *string     `json:"nextPageToken"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Kind != kindUploads || answer.Items == nil {
		return uploads{}, errShape
	}
	var page uploads
	understood := 0
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
		understood++
		if item.ContentDetails.PublishedAt == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, *item.ContentDetails.PublishedAt)
		if err != nil {
			continue
		}
		if uploaded := fetch.UploadTime(at, now); uploaded != nil {
			id := string(item.ContentDetails.VideoID)
			instant := store.InstantOf(*uploaded)
			page.videos = append(page.videos, ingest.FoundVideo{ID: id, Link: "https://www.youtube.com/watch?v=" + id, UploadedAt: &instant})
		}
	}
	if understood == 0 && len(answer.Items) > 0 {
		return uploads{}, errShape
	}
	if answer.Next != nil && len(*answer.Next) <= maxPageToken {
		page.next = *answer.Next
	}
	return page, nil
}
