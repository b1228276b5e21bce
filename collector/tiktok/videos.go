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
)

// videoID is the shape of an id: 19 digits today.
var videoID = regexp.MustCompile(`^[1-9][0-9]{14,19}$`)

func isVideo(t source.Target) bool {
	return t.Platform == link.TikTok && t.Kind == source.KindVideo && videoID.MatchString(t.ExternalID)
}

// handleOf is the handle by which an account can be asked for, "" when there is none.
func handleOf(t source.Target) string {
	handle := fetch.Handle(&t.Handle) // which may be a later one than the target is called by
	if handle == nil && strings.HasPrefix(t.ExternalID, "@") {
		handle = fetch.Handle(&t.ExternalID)
	}
	if handle == nil {
		return ""
	}
	return *handle
}

// videos is what an answer says, by video id.
type videos struct {
	byID map[string]source.Result // without Target
	// strange is why what is left out says nothing at all, "" when the answer can be believed.
	strange string
	// unlisted is true for an answer without a list, not even an empty one.
	unlisted bool
	more     bool // there are more rows than the answer holds
	sandbox  bool
}

// add puts in what a further page says.
func (v *videos) add(page videos) {
	for id, r := range page.byID {
		if _, twice := v.byID[id]; !twice {
			v.byID[id] = r
		}
	}
	v.strange = cmp.Or(v.strange, page.strange)
	v.unlisted, v.more = v.unlisted || page.unlisted, page.more
}

// result is what the answer says of a target; false when it leaves the target out.
func (v videos) result(t source.Target) (source.Result, bool) {
	r, ok := v.byID[t.ExternalID]
	if r.Facts != nil {
		own := *r.Facts // a target may stand in a batch twice
		r.Facts = &own
	}
	r.Target, r.Sandbox = t, v.sandbox
	return r, ok
}

// video is an item of either interface. Display says title, duration and share_url, Research video_duration, username,
// favorites_count and music_id. Research's ids are numbers beyond 2^53. One page of its documentation spells favourites.
type video struct {
	Views         fetch.Count `json:"view_count"`
	Likes         fetch.Count `json:"like_count"`
	Comments      fetch.Count `json:"comment_count"`
	Shares        fetch.Count `json:"share_count"`
	Favorites     fetch.Count `json:"favorites_count"`
	Favourites    fetch.Count `json:"favourites_count"`
	CreateTime    fetch.Count `json:"create_time"`
	Duration      fetch.Count `json:"duration"`
	VideoDuration fetch.Count `json:"video_duration"`
	Title         *string     `json:"title"`
	Description   *string     `json:"video_description"`
	ShareURL      *string     `json:"share_url"`
	Username      *string     `json:"username"`
	MusicID       fetch.ID    `json:"music_id"`
}

// decodeVideos reads a list of videos of which asked were asked for. A broken item costs that item alone; an item
// without an id, or with one that was not asked for, makes what is left out say nothing.
func decodeVideos(a answer, asked []string, now time.Time) (videos, error) {
	var data struct {
		Videos *fetch.Items `json:"videos"` // nil when there is none, not even an empty one
		More   bool         `json:"has_more"`
	}
	if json.Unmarshal(a.data, &data) != nil {
		return videos{}, &source.Failure{Class: source.Temporary, Detail: errShape.Error()}
	}
	out := videos{byID: map[string]source.Result{}, unlisted: data.Videos == nil, more: data.More, sandbox: a.sandbox}
	if out.unlisted {
		return out, nil
	}
	for _, raw := range *data.Videos {
		var item struct {
			ID fetch.ID `json:"id"`
		}
		id := ""
		if json.Unmarshal(raw, &item) == nil {
			id = string(item.ID)
		}
		if !slices.Contains(asked, id) {
			out.strange = "left out of an answer with an item that nobody asked for"
			continue
		}
		if _, twice := out.byID[id]; !twice {
			out.byID[id] = decodeVideo(raw, id, now)
		}
	}
	return out, nil
}

func decodeVideo(raw []byte, id string, now time.Time) source.Result {
	var v video
	if json.Unmarshal(raw, &v) != nil {
		return source.Result{Class: source.Temporary, Detail: "the item has a member of the wrong type"}
	}
	for _, c := range []fetch.Count{v.Views, v.Likes, v.Comments, v.Shares, v.Favorites, v.Favourites} {
		if c.Invalid() {
			return source.Result{Class: source.Temporary, Detail: "the item has a count that is no whole number"}
		}
	}
	if l, ok := v.shared(); ok && l.ID != id {
		return source.Result{Class: source.Temporary, Detail: "the item's link is another video's"}
	}
	f := &source.Facts{
		Views: v.Views.Value(), Likes: v.Likes.Value(), Comments: v.Comments.Value(), Shares: v.Shares.Value(), Bookmarks: v.Favorites.Value(),
	}
	if f.Bookmarks == nil {
		f.Bookmarks = v.Favourites.Value()
	}
	if f.Views == nil && f.Likes == nil && f.Comments == nil && f.Shares == nil && f.Bookmarks == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no counts"}
	}
	if f.Views != nil {
		hidden := f.Likes == nil
		f.HiddenStats = &hidden
	}
	v.describe(f, now)
	return source.Result{Class: source.OK, Facts: f}
}

// describe fills in what is no count. What cannot be understood stays nil.
func (v video) describe(f *source.Facts, now time.Time) {
	f.Title = fetch.Name(v.Title)
	if f.Title == nil {
		if f.Title = fetch.Text(v.Description); f.Title == nil {
			f.Title = fetch.Text(v.Title)
		}
	}
	if at := v.CreateTime.Value(); at != nil {
		f.UploadedAt = fetch.UploadTime(time.Unix(*at, 0), now)
	}
	for _, d := range []fetch.Count{v.Duration, v.VideoDuration} {
		if s := d.Value(); s != nil && f.LengthSeconds == nil {
			f.LengthSeconds = fetch.Length(float64(*s))
		}
	}
	if f.Username = fetch.Handle(v.Username); f.Username == nil {
		if l, ok := v.shared(); ok && l.Handle != "" {
			f.Username = &l.Handle
		}
	}
	if v.MusicID != "" && v.MusicID != "0" {
		song := "https://www.tiktok.com/music/x-" + string(v.MusicID)
		f.SongLink = fetch.Link(&song)
	}
}

// shared is the link that TikTok gives for sharing, when it is one of a video.
func (v video) shared() (link.Link, bool) {
	if v.ShareURL == nil {
		return link.Link{}, false
	}
	l, err := link.Parse(*v.ShareURL)
	return l, err == nil && l.Platform == link.TikTok && l.Kind == link.Video
}
