package sandbox

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// serveYouTubeVideos answers videos.list. It leaves out private, deleted and unknown videos without an error.
func (s *Sandbox) serveYouTubeVideos(c *call, q youtubeRequest) reply {
	filter, bad := findFilter(q.values, "id", "chart", "myRating")
	if bad != nil {
		return *bad
	}
	switch {
	case filter == "chart":
		return googleError(http.StatusBadRequest, "The requested video chart is not supported or is not available.", "videoChartNotFound", "youtube.video", "chart", "parameter", "")
	case filter == "myRating":
		return googleError(http.StatusUnauthorized, "Login Required.", "authError", "global", "Authorization", "header", "UNAUTHENTICATED")
	case q.values.Has("maxResults") || q.values.Has("pageToken"):
		return youtubeInvalidRequest("incompatibleParameters", "Incompatible parameters specified in the request: id, maxResults, pageToken", "parameters.", "other")
	}
	items := []object{}
	for _, id := range q.ids {
		if t, ok := s.visibleVideo(link.YouTube, id, c.now); ok {
			items = append(items, youtubeVideo(t, q))
		}
	}
	return reply{status: http.StatusOK, body: object{
		"kind": "youtube#videoListResponse", "items": items,
		"pageInfo": object{"totalResults": len(items), "resultsPerPage": len(items)},
	}}
}

// visibleVideo returns the data of a video at the given time. It returns false if the video is private, deleted or unknown at that time.
func (s *Sandbox) visibleVideo(p link.Platform, id string, at time.Time) (VideoTruth, bool) {
	t, ok := s.world.Video(p, id, at)
	return t, ok && (t.State == Public || t.State == Restricted)
}

// youtubeVideo returns a video as an item of videos.list.
func youtubeVideo(t VideoTruth, q youtubeRequest) object {
	item := object{"kind": "youtube#video", "id": t.ID}
	live := t.Category == Live
	if q.wantsPart("snippet") {
		broadcast := "none"
		if live {
			broadcast = "live"
		}
		description := t.Title + "\n\nMade up by the ReelTally sandbox."
		item["snippet"] = object{
			"publishedAt": t.UploadedAt.Format(time.RFC3339), "channelId": t.Account.ID, "title": t.Title,
			"description": description, "thumbnails": youtubeThumbnails(t.ID), "channelTitle": t.Account.Name,
			"tags": hashtagsIn(t.Title), "categoryId": "22", "liveBroadcastContent": broadcast,
			"localized": object{"title": t.Title, "description": description}, "defaultAudioLanguage": "en",
		}
	}
	if q.wantsPart("contentDetails") {
		rating := object{}
		if t.NotSafe {
			rating["ytRating"] = "ytAgeRestricted"
		}
		item["contentDetails"] = object{
			"duration": isoDuration(int64(t.LengthSeconds)), "dimension": "2d", "definition": "hd", "caption": "false",
			"licensedContent": true, "contentRating": rating, "projection": "rectangular",
		}
	}
	if q.wantsPart("statistics") {
		statistics := youtubeStatistics(t)
		statistics["favoriteCount"] = "0"
		item["statistics"] = statistics
	}
	if q.wantsPart("status") {
		item["status"] = object{
			"uploadStatus": "processed", "privacyStatus": "public", "license": "youtube", "embeddable": true, "publicStatsViewable": true, "madeForKids": false,
		}
	}
	if q.wantsPart("player") {
		item["player"] = object{"embedHtml": fmt.Sprintf(`<iframe width="480" height="270" src="//www.youtube.com/embed/%s"></iframe>`, t.ID)}
	}
	if q.wantsPart("liveStreamingDetails") && live {
		item["liveStreamingDetails"] = object{"actualStartTime": t.UploadedAt.Format(time.RFC3339), "concurrentViewers": decimalText(1 + t.Views/100)}
	}
	if q.wantsPart("recordingDetails") {
		item["recordingDetails"] = object{}
	}
	if q.wantsPart("topicDetails") {
		item["topicDetails"] = object{"topicCategories": []string{"https://en.wikipedia.org/wiki/Lifestyle_(sociology)"}}
	}
	if q.wantsPart("paidProductPlacementDetails") {
		item["paidProductPlacementDetails"] = object{"hasPaidProductPlacement": false}
	}
	item["etag"] = etag(item)
	return item
}

// youtubeStatistics returns the counts of a video as the member "statistics", without hidden counts.
func youtubeStatistics(t VideoTruth) object {
	statistics := object{"viewCount": decimalText(t.Views)}
	if t.Likes != nil {
		statistics["likeCount"] = decimalText(*t.Likes)
	}
	if t.Comments != nil {
		statistics["commentCount"] = decimalText(*t.Comments)
	}
	return statistics
}

// serveYouTubeStats answers videos.batchGetStats.
func (s *Sandbox) serveYouTubeStats(c *call, q youtubeRequest) reply {
	if _, bad := findFilter(q.values, "id"); bad != nil {
		return *bad
	}
	items := []object{}
	for _, id := range q.ids {
		t, ok := s.visibleVideo(link.YouTube, id, c.now)
		if !ok {
			continue
		}
		item := object{"kind": "youtube#videoStat", "id": t.ID}
		if q.wantsPart("snippet") {
			item["snippet"] = object{"publishTime": t.UploadedAt.Format(time.RFC3339)}
		}
		if q.wantsPart("statistics") {
			item["statistics"] = youtubeStatistics(t)
		}
		if q.wantsPart("contentDetails") {
			item["contentDetails"] = object{"duration": protobufDuration(t)}
		}
		item["etag"] = etag(item)
		items = append(items, item)
	}
	return reply{status: http.StatusOK, body: object{"kind": "youtube#batchGetStatsResponse", "items": items}}
}

// protobufDuration returns the length of a video as a google.protobuf.Duration in JSON, such as "58s"
// or "58.500s".
func protobufDuration(t VideoTruth) string {
	// The length of one video in ten has a random fraction of a second. The answers of videos.list show only
	// whole seconds.
	d := rng{hashTexts(0, "fraction", t.ID)}
	if t.LengthSeconds > 0 && d.fraction() < 0.1 {
		return fmt.Sprintf("%d.%03ds", int64(t.LengthSeconds), 1+d.intBelow(999))
	}
	return fmt.Sprintf("%ds", int64(t.LengthSeconds))
}

// isoDuration returns a number of seconds as an ISO 8601 duration, such as PT58S, PT15M51S, PT1H or P1DT2H3S. It returns P0D for 0.
func isoDuration(seconds int64) string {
	if seconds == 0 {
		return "P0D"
	}
	out := "P"
	if days := seconds / day; days > 0 {
		out += fmt.Sprintf("%dD", days)
	}
	rest := seconds % day
	if rest == 0 {
		return out
	}
	out += "T"
	for _, unit := range []struct {
		seconds int64
		letter  string
	}{{3600, "H"}, {60, "M"}, {1, "S"}} {
		if n := rest / unit.seconds; n > 0 {
			out += fmt.Sprintf("%d%s", n, unit.letter)
		}
		rest %= unit.seconds
	}
	return out
}

// youtubeThumbnails returns the preview images of a video.
func youtubeThumbnails(id string) object {
	medium := VideoTruth{Platform: link.YouTube, ID: id}.ThumbnailURL()
	return object{
		"default": object{"url": strings.Replace(medium, "mqdefault", "default", 1), "width": 120, "height": 90},
		"medium":  object{"url": medium, "width": 320, "height": 180},
	}
}

// hashtagsIn returns the hashtags in a title, without "#".
func hashtagsIn(title string) []string {
	out := []string{}
	for word := range strings.FieldsSeq(title) {
		if tag, ok := strings.CutPrefix(word, "#"); ok {
			out = append(out, tag)
		}
	}
	return out
}
