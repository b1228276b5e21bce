package tiktok

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// videoID matches the ids of videos, which currently have 19 digits.
var videoID = regexp.MustCompile(`^[1-9][0-9]{14,19}$`)

// isVideo returns true if a target is a TikTok video with a valid id.
func isVideo(t queue.Target) bool {
	return t.Platform == link.TikTok && t.Kind == queue.KindVideo && videoID.MatchString(t.ExternalID)
}

// handleOf returns the handle of an account target in lower case without "@", or "" if the target has no valid handle.
func handleOf(t queue.Target) string {
	handle := fetch.ParseHandle(&t.Handle) // t.Handle may be newer than the handle in ExternalID
	if handle == nil && strings.HasPrefix(t.ExternalID, "@") {
		handle = fetch.ParseHandle(&t.ExternalID)
	}
	if handle == nil {
		return ""
	}
	return *handle
}

// videos is the decoded answer of a call for videos.
type videos struct {
	byID map[string]source.Result // maps a video id to the result for the video; Result.Target is not set
	// incomplete says why the answer may lack existing videos. It is "" if the answer is complete.
	incomplete string
	noList     bool // true if the answer has no list of videos
	more       bool // true if more pages follow this page
	sandbox    bool
}

// addPage adds the videos of another page of the query.
func (v *videos) addPage(page videos) {
	for id, r := range page.byID {
		source.AddResult(v.byID, id, r)
	}
	v.incomplete = cmp.Or(v.incomplete, page.incomplete)
	v.noList, v.more = v.noList || page.noList, page.more
}

// resultFor returns the result for a video, and false if the video is missing from the answer.
func (v videos) resultFor(t queue.Target) (source.Result, bool) {
	r, ok := v.byID[t.ExternalID]
	r.Sandbox = v.sandbox
	return r.ForTarget(t), ok
}

// video is a video in an answer of the Display or Research API. Each API returns only some of the
// fields; see displayFields and researchFields.
type video struct {
	ID            fetch.ID               `json:"id"`
	Views         fetch.Count            `json:"view_count"`
	Likes         fetch.Count            `json:"like_count"`
	Comments      fetch.Count            `json:"comment_count"`
	Shares        fetch.Count            `json:"share_count"`
	Favorites     fetch.Count            `json:"favorites_count"`
	Favourites    fetch.Count            `json:"favourites_count"`
	CreateTime    fetch.Count            `json:"create_time"`
	Duration      fetch.Count            `json:"duration"`
	VideoDuration fetch.Count            `json:"video_duration"`
	Title         fetch.Optional[string] `json:"title"`
	Description   fetch.Optional[string] `json:"video_description"`
	ShareURL      fetch.Optional[string] `json:"share_url"`
	Username      fetch.Optional[string] `json:"username"`
	MusicID       fetch.ID               `json:"music_id"`
	CoverURL      fetch.Optional[string] `json:"cover_image_url"`
}

// decodeVideos decodes a list of videos. A malformed video does not affect the others. A video that
// was not requested makes the result incomplete.
func decodeVideos(a answer, requested []string, now time.Time) (videos, error) {
	var data struct {
		Videos *fetch.Items `json:"videos"` // nil if the answer has no list
		More   bool         `json:"has_more"`
	}
	if json.Unmarshal(a.data, &data) != nil {
		return videos{}, &source.Failure{Class: source.Temporary, Detail: errFormat.Error()}
	}
	out := videos{byID: map[string]source.Result{}, noList: data.Videos == nil, more: data.More, sandbox: a.sandbox}
	if out.noList {
		return out, nil
	}
	for _, raw := range *data.Videos {
		var v video
		_ = json.Unmarshal(raw, &v) // fails only if the item is no object, and then v.ID is ""
		if !slices.Contains(requested, string(v.ID)) {
			// TikTok may have mixed up the videos, so a missing video may still exist.
			out.incomplete = "missing from the answer; the answer has an item that was not requested"
			continue
		}
		source.AddResult(out.byID, string(v.ID), v.result(now))
	}
	return out, nil
}

// result returns the result for the video. It has the class Temporary if the video has no counts, an invalid count, or the link of another video.
func (v video) result(now time.Time) source.Result {
	for _, c := range []fetch.Count{v.Views, v.Likes, v.Comments, v.Shares, v.Favorites, v.Favourites} {
		if c.Invalid() {
			return source.Result{Class: source.Temporary, Detail: "the item has an invalid count"}
		}
	}
	if l, ok := v.shareLink(); ok && l.ID != string(v.ID) {
		return source.Result{Class: source.Temporary, Detail: "the link in the item belongs to another video"}
	}
	f := &source.Facts{
		Views: v.Views.Value(), Likes: v.Likes.Value(), Comments: v.Comments.Value(), Shares: v.Shares.Value(), Bookmarks: v.Favorites.Value(),
	}
	if f.Bookmarks == nil {
		// TikTok's documentation has the spelling favourites_count in one place.
		f.Bookmarks = v.Favourites.Value()
	}
	if f.Views == nil && f.Likes == nil && f.Comments == nil && f.Shares == nil && f.Bookmarks == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no counts"}
	}
	if f.Views != nil {
		hidden := f.Likes == nil
		f.HiddenStats = &hidden
	}
	v.setDetails(f, now)
	return source.Result{Class: source.OK, Facts: f}
}

// setDetails sets all facts of a video except the counts, such as the title and the upload time. A malformed member becomes nil and does
// not affect other members.
func (v video) setDetails(f *source.Facts, now time.Time) {
	f.Title = fetch.CleanName(v.Title.Value())
	if f.Title == nil {
		if f.Title = fetch.CleanText(v.Description.Value()); f.Title == nil {
			f.Title = fetch.CleanText(v.Title.Value())
		}
	}
	if at := v.CreateTime.Value(); at != nil {
		f.UploadedAt = fetch.CheckUploadTime(time.Unix(*at, 0), now)
	}
	for _, d := range []fetch.Count{v.Duration, v.VideoDuration} {
		if s := d.Value(); s != nil && f.LengthSeconds == nil {
			f.LengthSeconds = fetch.CheckLength(float64(*s))
		}
	}
	if f.Username = fetch.ParseHandle(v.Username.Value()); f.Username == nil {
		if l, ok := v.shareLink(); ok && l.Handle != "" {
			f.Username = &l.Handle
		}
	}
	if v.MusicID != "" && v.MusicID != "0" {
		song := "https://www.tiktok.com/music/x-" + string(v.MusicID)
		f.SongLink = fetch.ParseLink(&song)
	}
	f.ThumbnailURL = fetch.ParseLink(v.CoverURL.Value())
}

// shareLink parses the link in share_url. It returns false if share_url is missing or is not a link to a TikTok video.
func (v video) shareLink() (link.Link, bool) {
	shareURL := v.ShareURL.Value()
	if shareURL == nil {
		return link.Link{}, false
	}
	l, err := link.Parse(*shareURL)
	return l, err == nil && l.Platform == link.TikTok && l.Kind == link.Video
}
