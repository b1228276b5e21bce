package server

import (
	"net/http"
	"strconv"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// videoMember is a member of the JSON of a video, with the function that writes its value.
type videoMember struct {
	name  string
	write func(out []byte, v *store.Video, view View) []byte
}

// videoKeys has, for each of videoMembers, the JSON that precedes the value, such as `,"title":`. For the first member, this JSON begins
// with { instead of a comma.
var videoKeys = func() []string {
	keys := make([]string, len(videoMembers))
	for i, m := range videoMembers {
		keys[i] = `,"` + m.name + `":`
	}
	keys[0] = "{" + keys[0][1:]
	return keys
}()

// videoMembers are the members of a video in the API contract, in alphabetical order. The server
// writes this JSON itself, because encoding/json takes ten times as long.
var videoMembers = []videoMember{
	{"ad_id", func(out []byte, v *store.Video, _ View) []byte { return appendID(out, v.ID) }},
	{"ad_info_shop", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.AdInfoShop) }},
	{"ad_is_ad", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.AdIsAd) }},
	{"ad_link", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, v.Link) }},
	{"ad_product_id_shop", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, orEmpty(v.AdProductIDShop)) }},
	{"created_at", func(out []byte, v *store.Video, _ View) []byte { return appendTime(out, v.CreatedAt) }},
	{"display_username", func(out []byte, v *store.Video, _ View) []byte {
		return appendText(out, link.DisplayUsername(v.Username))
	}},
	{"fetch_detail", func(out []byte, v *store.Video, view View) []byte {
		return appendOrNull(out, view.ExplainFetchStatus(&v.FetchState, link.Video), appendText)
	}},
	{"fetch_status", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, string(v.FetchStatus)) }},
	{"hidden_stats", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.HiddenStats) }},
	{"increase_14d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase14d)) }},
	{"increase_1d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase1d)) }},
	{"increase_30d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase30d)) }},
	{"increase_7d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase7d)) }},
	{"label_ids", func(out []byte, v *store.Video, _ View) []byte {
		return appendArray(out, v.Labels, func(out []byte, l *store.Label) []byte { return appendID(out, l.ID) })
	}},
	{"label_names", func(out []byte, v *store.Video, _ View) []byte {
		return appendArray(out, v.Labels, func(out []byte, l *store.Label) []byte { return appendText(out, l.Name) })
	}},
	{"last_attempt_at", func(out []byte, v *store.Video, view View) []byte {
		return appendMaskedTime(out, v.LastAttemptAt, view)
	}},
	{"latest_bookmarks", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.Latest.Bookmarks))
	}},
	{"latest_comments", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.Latest.Comments))
	}},
	{"latest_engagement", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.LatestEngagement))
	}},
	{"latest_likes", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.Latest.Likes))
	}},
	{"latest_shares", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.Latest.Shares))
	}},
	{"latest_updated_at", func(out []byte, v *store.Video, view View) []byte {
		return appendMaskedTime(out, v.LatestUpdatedAt, view)
	}},
	{"latest_views", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.Latest.Views))
	}},
	{"linked_account_id", func(out []byte, v *store.Video, _ View) []byte { return appendOrNull(out, v.LinkedAccountID, appendID) }},
	{"metrics_masked", nil}, // nil, because appendVideo writes this member itself
	{"next_fetch_at", func(out []byte, v *store.Video, view View) []byte { return appendMaskedTime(out, v.NextFetchAt, view) }},
	{"not_safe", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.NotSafe) }},
	{"organisation_id", func(out []byte, v *store.Video, _ View) []byte { return appendID(out, v.OrganisationID) }},
	{"outlier_multiplier", func(out []byte, v *store.Video, view View) []byte {
		return appendRatio(out, view.Ratio(v.OutlierMultiplier))
	}},
	{"platform", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, string(v.Platform)) }},
	{"private", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.Private) }},
	{"removed", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.Removed) }},
	{"song_link", func(out []byte, v *store.Video, _ View) []byte { return appendOrNull(out, v.SongLink, appendText) }},
	{"song_name", func(out []byte, v *store.Video, _ View) []byte { return appendOrNull(out, v.SongName, appendText) }},
	{"thumbnail_url", func(out []byte, v *store.Video, _ View) []byte { return appendOrNull(out, v.ThumbnailURL, appendText) }},
	{"title", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, v.Title) }},
	{"uploaded_at", func(out []byte, v *store.Video, _ View) []byte { return appendOrNull(out, v.UploadedAt, appendDate) }},
	{"username", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, v.Username) }},
	{"video_length", func(out []byte, v *store.Video, _ View) []byte { return appendOrNull(out, v.VideoLength, appendText) }},
	{"views_gained_7d", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.ViewsGained7d))
	}},
}

// videoResponse is the response of getVideo.
type videoResponse struct {
	video store.Video
	view  View
}

// VisitGetVideoResponse implements the generated response interface of getVideo.
func (r videoResponse) VisitGetVideoResponse(w http.ResponseWriter) error {
	body, err := appendVideo(nil, &r.video, r.view)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, body)
}

// appendVideo appends the JSON of a video. If view masks metrics, the metrics are null.
func appendVideo(out []byte, v *store.Video, view View) ([]byte, error) {
	for i := range videoMembers {
		switch write := videoMembers[i].write; {
		case write != nil:
			out = write(append(out, videoKeys[i]...), v, view)
		case view.masked:
			out = append(append(out, videoKeys[i]...), "true"...)
		}
	}
	return append(out, '}'), nil
}
