package server

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// videoMember is a member of the JSON of a video, and how its value is written.
type videoMember struct {
	name  string
	write func(out []byte, v *store.Video, view View) []byte
}

// videoMembers are the members of a video in the contract, in alphabetical order. Lists of videos can be long, so their JSON is written without
// encoding/json, which takes ten times as long. If the View is MaskedView, the metrics are null.
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
		return orNull(out, view.FetchDetail(&v.FetchState, link.Video), appendText)
	}},
	{"fetch_status", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, string(v.FetchStatus)) }},
	{"hidden_stats", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.HiddenStats) }},
	{"increase_14d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase14d)) }},
	{"increase_1d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase1d)) }},
	{"increase_30d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase30d)) }},
	{"increase_7d", func(out []byte, v *store.Video, view View) []byte { return appendRatio(out, view.Ratio(v.Increase7d)) }},
	{"label_ids", func(out []byte, v *store.Video, _ View) []byte {
		return appendArray(out, v.Labels, func(out []byte, l store.Label) []byte { return appendID(out, l.ID) })
	}},
	{"label_names", func(out []byte, v *store.Video, _ View) []byte {
		return appendArray(out, v.Labels, func(out []byte, l store.Label) []byte { return appendText(out, l.Name) })
	}},
	{"last_attempt_at", func(out []byte, v *store.Video, view View) []byte {
		return appendMaskedTime(out, v.LastAttemptAt, view)
	}},
	{"latest_bookmarks", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.LatestBookmarks))
	}},
	{"latest_comments", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.LatestComments))
	}},
	{"latest_engagement", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.LatestEngagement))
	}},
	{"latest_likes", func(out []byte, v *store.Video, view View) []byte { return appendCount(out, view.Count(v.LatestLikes)) }},
	{"latest_shares", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.LatestShares))
	}},
	{"latest_updated_at", func(out []byte, v *store.Video, view View) []byte {
		return appendMaskedTime(out, v.LatestUpdatedAt, view)
	}},
	{"latest_views", func(out []byte, v *store.Video, view View) []byte { return appendCount(out, view.Count(v.LatestViews)) }},
	{"linked_account_id", func(out []byte, v *store.Video, _ View) []byte { return orNull(out, v.LinkedAccountID, appendID) }},
	{"metrics_masked", nil}, // only in the JSON of a masked video
	{"next_fetch_at", func(out []byte, v *store.Video, view View) []byte { return appendMaskedTime(out, v.NextFetchAt, view) }},
	{"not_safe", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.NotSafe) }},
	{"organisation_id", func(out []byte, v *store.Video, _ View) []byte { return appendID(out, v.OrganisationID) }},
	{"outlier_multiplier", func(out []byte, v *store.Video, view View) []byte {
		return appendRatio(out, view.Ratio(v.OutlierMultiplier))
	}},
	{"platform", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, string(v.Platform)) }},
	{"private", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.Private) }},
	{"removed", func(out []byte, v *store.Video, _ View) []byte { return strconv.AppendBool(out, v.Removed) }},
	{"song_link", func(out []byte, v *store.Video, _ View) []byte { return orNull(out, v.SongLink, appendText) }},
	{"song_name", func(out []byte, v *store.Video, _ View) []byte { return orNull(out, v.SongName, appendText) }},
	{"title", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, v.Title) }},
	{"uploaded_at", func(out []byte, v *store.Video, _ View) []byte { return orNull(out, v.UploadedAt, appendDate) }},
	{"username", func(out []byte, v *store.Video, _ View) []byte { return appendText(out, v.Username) }},
	{"video_length", func(out []byte, v *store.Video, _ View) []byte { return orNull(out, v.VideoLength, appendText) }},
	{"views_gained_7d", func(out []byte, v *store.Video, view View) []byte {
		return appendCount(out, view.Count(v.ViewsGained7d))
	}},
}

// appendVideo appends the JSON of a video to out. If view is MaskedView, the metrics are null.
func appendVideo(out []byte, v store.Video, view View) ([]byte, error) {
	separator := byte('{')
	for _, m := range videoMembers {
		write := m.write
		if write == nil {
			if !view.masked {
				continue
			}
			write = func(out []byte, _ *store.Video, _ View) []byte { return append(out, "true"...) }
		}
		out = append(out, separator, '"')
		out = append(out, m.name...)
		out = append(out, '"', ':')
		out = write(out, &v, view)
		separator = ','
	}
	return append(out, '}'), nil
}

// videoResponse is the response of getVideo.
type videoResponse struct {
	video store.Video
	view  View
}

// VisitGetVideoResponse implements the generated response interface of getVideo.
func (r videoResponse) VisitGetVideoResponse(w http.ResponseWriter) error {
	body, err := appendVideo(nil, r.video, r.view)
	if err != nil {
		return err
	}
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	_, err = w.Write(append(body, '\n'))
	return err
}

// orEmpty returns the text, or "" if s is nil.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// orNull appends null if value is nil, and otherwise the JSON that write writes for the value.
func orNull[T any](out []byte, value *T, write func([]byte, T) []byte) []byte {
	if value == nil {
		return append(out, "null"...)
	}
	return write(out, *value)
}

// appendArray appends a JSON array.
func appendArray[T any](out []byte, items []T, write func([]byte, T) []byte) []byte {
	out = append(out, '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = write(out, item)
	}
	return append(out, ']')
}

// appendID appends an id as JSON.
func appendID(out []byte, id uuid.UUID) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, digits[b>>4], digits[b&15])
	}
	return append(out, '"')
}

// appendCount appends a count as JSON. If n is nil, it appends null.
func appendCount(out []byte, n *int64) []byte {
	return orNull(out, n, func(out []byte, n int64) []byte { return strconv.AppendInt(out, n, 10) })
}

// appendRatio appends a number as JSON, with the same digits as encoding/json. If f is nil, it appends null.
func appendRatio(out []byte, f *float64) []byte {
	return orNull(out, f, func(out []byte, f float64) []byte {
		// encoding/json writes very small and very large numbers with an exponent.
		if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
			return appendMarshalled(out, f)
		}
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	})
}

// appendTime appends a time as JSON.
func appendTime(out []byte, i store.Instant) []byte {
	out = append(out, '"')
	out = i.Time().AppendFormat(out, timeLayout)
	return append(out, '"')
}

// appendMaskedTime appends a time as JSON. It appends null if i is nil or if view is MaskedView.
func appendMaskedTime(out []byte, i *store.Instant, view View) []byte {
	if view.masked {
		i = nil
	}
	return orNull(out, i, appendTime)
}

// appendDate appends a day as JSON.
func appendDate(out []byte, d store.Date) []byte {
	out = append(out, '"')
	out = d.Time().AppendFormat(out, "2006-01-02")
	return append(out, '"')
}

// appendText appends a text as a JSON string, with the same escapes as encoding/json.
func appendText(out []byte, s string) []byte {
	for i := 0; i < len(s); {
		switch b := s[i]; {
		case b < ' ', b == '"', b == '\\', b == '<', b == '>', b == '&', b == 0x7f:
			return appendMarshalled(out, s)
		case b < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
				return appendMarshalled(out, s)
			}
			i += size
		}
	}
	out = append(out, '"')
	out = append(out, s...)
	return append(out, '"')
}

// appendMarshalled appends the JSON that encoding/json writes for a text or a number.
func appendMarshalled[T string | float64](out []byte, value T) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // the database stores no infinite numbers
	}
	return append(out, encoded...)
}
