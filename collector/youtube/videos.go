package youtube

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// The kinds that the two methods write into their answers. Only such an answer is believed when it leaves a video out.
const (
	kindList  = "youtube#videoListResponse"
	kindStats = "youtube#batchGetStatsResponse"
)

// videos is what an answer says, by video id.
type videos struct {
	byID map[string]source.Result // without Target
	// doubtful is why a video that is left out may still exist, "" when the answer can be believed.
	doubtful string
	sandbox  bool
}

func (v videos) result(t source.Target) source.Result {
	r, ok := v.byID[t.ExternalID]
	switch {
	case ok:
		if r.Facts != nil {
			own := *r.Facts // a target may stand in a batch twice
			r.Facts = &own
		}
	case v.doubtful != "":
		r = source.Result{Class: source.Temporary, Detail: v.doubtful}
	default:
		r = source.Result{Class: source.Gone, Detail: "left out of YouTube's answer: deleted, private or terminated"}
	}
	r.Target, r.Sandbox = t, v.sandbox
	return r
}

// askVideos asks for distinct well-formed ids in the way that the budget pays for.
func (s *Source) askVideos(ctx context.Context, budget *source.CallBudget, bucket string, ids []string) (videos, error) {
	method, part, kind := "videos", "snippet,statistics,contentDetails,status", kindList
	if bucket == BudgetStats {
		method, part, kind = "videos:batchGetStats", "id,snippet,statistics,contentDetails", kindStats
	}
	res, err := s.call(ctx, budget, bucket, method, "part="+part+"&id="+strings.Join(ids, ","))
	if err != nil {
		return videos{}, err
	}
	answer, err := decodeVideos(res.Body, kind, ids, s.now())
	if err != nil {
		return videos{}, &source.Failure{Class: source.Temporary, Detail: err.Error()}
	}
	if answer.sandbox = res.Sandbox; kind == kindStats && answer.doubtful == "" {
		answer.doubtful = "left out of batchGetStats, which does not answer for every video that is there: videos.list is asked next"
	}
	return answer, nil
}

// video is an item of either method: batchGetStats says publishTime for publishedAt, writes the duration in another
// format, and leaves out most of the rest.
type video struct {
	Snippet *struct {
		Title        *string  `json:"title"`
		PublishedAt  *string  `json:"publishedAt"`
		PublishTime  *string  `json:"publishTime"`
		ChannelID    fetch.ID `json:"channelId"`
		ChannelTitle *string  `json:"channelTitle"`
	} `json:"snippet"`
	Statistics *struct {
		Views    fetch.Count `json:"viewCount"`
		Likes    fetch.Count `json:"likeCount"`
		Comments fetch.Count `json:"commentCount"`
	} `json:"statistics"`
	ContentDetails *struct {
		Duration       *string     `json:"duration"`
		DurationMillis fetch.Count `json:"durationMillis"`
		ContentRating  *struct {
			YouTube *string `json:"ytRating"`
		} `json:"contentRating"`
	} `json:"contentDetails"`
	Status *struct {
		Privacy *string `json:"privacyStatus"`
	} `json:"status"`
}

// decodeVideos reads an answer that CheckJSON has passed. A broken item costs that item alone; an item without an id, or
// with one that was not asked for, casts doubt on what is left out.
func decodeVideos(body []byte, kind string, asked []string, now time.Time) (videos, error) {
	var answer struct {
		Kind  string      `json:"kind"`
		Items fetch.Items `json:"items"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return videos{}, errShape
	}
	out := videos{byID: make(map[string]source.Result, len(answer.Items))}
	if answer.Kind != kind {
		out.doubtful = "left out of an answer that does not say that it is YouTube's"
	}
	for _, raw := range answer.Items {
		var item struct {
			ID fetch.ID `json:"id"`
		}
		if json.Unmarshal(raw, &item) != nil || !slices.Contains(asked, string(item.ID)) {
			out.doubtful = "left out of an answer with an item that nobody asked for"
			continue
		}
		if _, twice := out.byID[string(item.ID)]; !twice {
			out.byID[string(item.ID)] = decodeVideo(raw, now)
		}
	}
	return out, nil
}

func decodeVideo(raw []byte, now time.Time) source.Result {
	var v video
	if json.Unmarshal(raw, &v) != nil {
		return source.Result{Class: source.Temporary, Detail: "the item has a member of the wrong type"}
	}
	if v.Statistics == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no statistics"}
	}
	if v.Statistics.Views.Wrong() || v.Statistics.Likes.Wrong() || v.Statistics.Comments.Wrong() {
		return source.Result{Class: source.Temporary, Detail: "the item has a count that is no whole number"}
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
			return source.Result{Class: source.Private, Detail: "YouTube says that the video is private"}
		case "public", "unlisted":
			f.Private = new(bool)
		}
	}
	if f.Views == nil && f.Likes == nil && f.Comments == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no counts"}
	}
	v.describe(f, now)
	return source.Result{Class: source.OK, Facts: f}
}

// describe fills in what is no count. What cannot be understood stays nil: a title is not worth losing the counts.
func (v video) describe(f *source.Facts, now time.Time) {
	if s := v.Snippet; s != nil {
		f.Title = fetch.Text(s.Title)
		f.AccountName = fetch.Name(s.ChannelTitle)
		if s.ChannelID != "" {
			id := string(s.ChannelID)
			f.AccountID = &id
		}
		for _, published := range []*string{s.PublishedAt, s.PublishTime} {
			if published == nil || f.UploadedAt != nil {
				continue
			}
			if at, err := time.Parse(time.RFC3339, *published); err == nil {
				f.UploadedAt = fetch.UploadTime(at, now)
			}
		}
	}
	if d := v.ContentDetails; d != nil {
		if d.Duration != nil {
			if seconds, ok := parseDuration(*d.Duration); ok {
				f.LengthSeconds = fetch.Length(seconds)
			}
		}
		if ms := d.DurationMillis.Value(); ms != nil && f.LengthSeconds == nil {
			f.LengthSeconds = fetch.Length(float64(*ms) / 1000)
		}
		if d.ContentRating != nil {
			restricted := d.ContentRating.YouTube != nil && *d.ContentRating.YouTube == "ytAgeRestricted"
			f.NotSafe = &restricted
		}
	}
}
