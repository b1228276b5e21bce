package youtube

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

// These are the values of the member "kind" in the answers of videos.list and batchGetStats.
const (
	kindList  = "youtube#videoListResponse"
	kindStats = "youtube#batchGetStatsResponse"
)

// videos is the decoded answer of videos.list or batchGetStats.
type videos struct {
	byID map[string]source.Result // maps a video id to the result for the video; Result.Target is not set
	// incomplete says why existing videos may be missing from the answer. It is "" if every missing video is deleted or private.
	incomplete string
	sandbox    bool
}

// resultFor returns the result for a video. If the answer is complete but lacks the video, the result has the
// class Gone.
func (v videos) resultFor(t queue.Target) source.Result {
	r, ok := v.byID[t.ExternalID]
	switch {
	case ok:
	case v.incomplete != "":
		// The video may exist.
		r = source.Result{Class: source.Temporary, Detail: v.incomplete}
	default:
		r = source.Result{Class: source.Gone, Detail: "missing from YouTube's answer: the video is deleted or private, or its channel is terminated"}
	}
	r.Sandbox = v.sandbox
	return r.ForTarget(t)
}

// fetchVideos requests the videos with the given ids, which must be valid and without duplicates. It calls batchGetStats if budgetName is
// BudgetStats, and videos.list if budgetName is BudgetCommon.
func (s *Source) fetchVideos(ctx context.Context, budget *source.CallBudget, budgetName string, ids []string) (videos, error) {
	method, part, kind := "videos", "snippet,statistics,contentDetails,status", kindList
	if budgetName == BudgetStats {
		method, part, kind = "videos:batchGetStats", "id,snippet,statistics,contentDetails", kindStats
	}
	res, err := s.callMethod(ctx, budget, budgetName, method, "part="+part+"&id="+strings.Join(ids, ","))
	if err != nil {
		return videos{}, err
	}
	answer, err := decodeVideos(res.Body, kind, ids, s.now())
	if err != nil {
		return videos{}, &source.Failure{Class: source.Temporary, Detail: err.Error()}
	}
	answer.sandbox = res.Sandbox
	if kind == kindStats && answer.incomplete == "" {
		answer.incomplete = "missing from the answer of batchGetStats, which leaves out some existing videos: the next attempt uses videos.list"
	}
	return answer, nil
}

// video is a video in an answer of videos.list or batchGetStats. batchGetStats uses publishTime instead of publishedAt, writes the duration
// in another format, and leaves out most other members.
type video struct {
	Snippet    fetch.Optional[snippet] `json:"snippet"`
	Statistics *struct {
		Views    fetch.Count `json:"viewCount"`
		Likes    fetch.Count `json:"likeCount"`
		Comments fetch.Count `json:"commentCount"`
	} `json:"statistics"`
	ContentDetails fetch.Optional[contentDetails] `json:"contentDetails"`
	Status         *struct {
		Privacy *string `json:"privacyStatus"`
	} `json:"status"`
}

// snippet has the title, the channel and the upload time of a video.
type snippet struct {
	Title        fetch.Optional[string] `json:"title"`
	PublishedAt  fetch.Optional[string] `json:"publishedAt"`
	PublishTime  fetch.Optional[string] `json:"publishTime"`
	ChannelID    fetch.ID               `json:"channelId"`
	ChannelTitle fetch.Optional[string] `json:"channelTitle"`
	Thumbnails   json.RawMessage        `json:"thumbnails"`
}

// contentDetails has the length and the age rating of a video.
type contentDetails struct {
	Duration       fetch.Optional[string] `json:"duration"`
	DurationMillis fetch.Count            `json:"durationMillis"`
	ContentRating  fetch.Optional[struct {
		YouTube *string `json:"ytRating"`
	}] `json:"contentRating"`
}

// decodeVideos decodes an answer of videos.list or batchGetStats that fetch.CheckJSON has accepted.
// A malformed video does not affect the other videos.
func decodeVideos(body []byte, wantedKind string, requested []string, now time.Time) (videos, error) {
	var answer struct {
		Kind  string      `json:"kind"`
		Items fetch.Items `json:"items"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return videos{}, errFormat
	}
	out := videos{byID: make(map[string]source.Result, len(answer.Items))}
	if answer.Kind != wantedKind {
		out.incomplete = "missing from the answer; the answer has an unexpected value in its member \"kind\""
	}
	for _, raw := range answer.Items {
		var item struct {
			ID fetch.ID `json:"id"`
		}
		if json.Unmarshal(raw, &item) != nil || !slices.Contains(requested, string(item.ID)) {
			out.incomplete = "missing from the answer; the answer has an item that was not requested"
			continue
		}
		source.AddResult(out.byID, string(item.ID), decodeVideo(raw, now))
	}
	return out, nil
}

// decodeVideo decodes the JSON of one video. The result has the class Temporary if the JSON is malformed, has no counts or an invalid count.
// It has the class Private if the JSON says that the video is private.
func decodeVideo(raw []byte, now time.Time) source.Result {
	var v video
	if json.Unmarshal(raw, &v) != nil {
		return source.Result{Class: source.Temporary, Detail: "the item has a JSON field of the wrong type"}
	}
	if v.Statistics == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no statistics"}
	}
	if v.Statistics.Views.Invalid() || v.Statistics.Likes.Invalid() || v.Statistics.Comments.Invalid() {
		return source.Result{Class: source.Temporary, Detail: "the item has an invalid count"}
	}
	f := &source.Facts{
		Views:    v.Statistics.Views.Value(),
		Likes:    v.Statistics.Likes.Value(),
		Comments: v.Statistics.Comments.Value(),
	}
	if f.Views != nil {
		hidden := f.Likes == nil
		f.HiddenStats = &hidden
	}
	if v.Status != nil && v.Status.Privacy != nil {
		switch *v.Status.Privacy {
		case "private":
			return source.Result{Class: source.Private, Detail: "the video is private"}
		case "public", "unlisted":
			f.Private = new(bool)
		}
	}
	if f.Views == nil && f.Likes == nil && f.Comments == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no counts"}
	}
	v.setDetails(f, now)
	return source.Result{Class: source.OK, Facts: f}
}

// setDetails sets all facts of a video except the counts, such as the title and the upload time. A malformed member becomes nil and does
// not affect other members.
func (v video) setDetails(f *source.Facts, now time.Time) {
	if s := v.Snippet.Value(); s != nil {
		f.Title = fetch.CleanText(s.Title.Value())
		f.AccountName = fetch.CleanName(s.ChannelTitle.Value())
		f.ThumbnailURL = thumbnailURL(s.Thumbnails)
		if s.ChannelID != "" {
			id := string(s.ChannelID)
			f.AccountID = &id
		}
		for _, published := range []*string{s.PublishedAt.Value(), s.PublishTime.Value()} {
			if published == nil || f.UploadedAt != nil {
				continue
			}
			if at, err := time.Parse(time.RFC3339, *published); err == nil {
				f.UploadedAt = fetch.CheckUploadTime(at, now)
			}
		}
	}
	if d := v.ContentDetails.Value(); d != nil {
		if duration := d.Duration.Value(); duration != nil {
			if seconds, ok := parseDuration(*duration); ok {
				f.LengthSeconds = fetch.CheckLength(seconds)
			}
		}
		if ms := d.DurationMillis.Value(); ms != nil && f.LengthSeconds == nil {
			f.LengthSeconds = fetch.CheckLength(float64(*ms) / 1000)
		}
		if rating := d.ContentRating.Value(); rating != nil {
			restricted := rating.YouTube != nil && *rating.YouTube == "ytAgeRestricted"
			f.NotSafe = &restricted
		}
	}
}

// thumbnailURL returns the URL of a video's thumbnail, preferably with 320 by 180 pixels. If the
// thumbnails are missing or malformed, thumbnailURL returns nil.
func thumbnailURL(raw json.RawMessage) *string {
	type picture struct {
		URL fetch.Optional[string] `json:"url"`
	}
	var sizes struct {
		Medium  picture `json:"medium"`
		Default picture `json:"default"`
	}
	if json.Unmarshal(raw, &sizes) != nil {
		return nil
	}
	return cmp.Or(fetch.ParseLink(sizes.Medium.URL.Value()), fetch.ParseLink(sizes.Default.URL.Value()))
}
