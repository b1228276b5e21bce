package server

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// toAPIVideo converts a video to the generated JSON type. The tests compare the JSON of the result with the JSON that appendVideo writes.
func toAPIVideo(v store.Video, view View) api.Video {
	out := api.Video{
		OrganisationID: v.OrganisationID, AdID: v.ID, Username: v.Username, DisplayUsername: link.DisplayUsername(v.Username),
		Platform: api.Platform(v.Platform), AdLink: v.Link, CreatedAt: toAPITime(v.CreatedAt), Removed: v.Removed,
		LinkedAccountID: v.LinkedAccountID, UploadedAt: toAPIDatePtr(v.UploadedAt), SongName: v.SongName, SongLink: v.SongLink, ThumbnailURL: v.ThumbnailURL,
		VideoLength: v.VideoLength, Title: v.Title, NotSafe: v.NotSafe, Private: v.Private, HiddenStats: v.HiddenStats,
		AdInfoShop: v.AdInfoShop, AdIsAd: v.AdIsAd, LabelIds: make([]uuid.UUID, len(v.Labels)), LabelNames: make([]string, len(v.Labels)),

		LatestViews: view.Count(v.Latest.Views), LatestLikes: view.Count(v.Latest.Likes), LatestComments: view.Count(v.Latest.Comments),
		LatestBookmarks: view.Count(v.Latest.Bookmarks), LatestShares: view.Count(v.Latest.Shares),
		LatestEngagement: view.Count(v.LatestEngagement), LatestUpdatedAt: view.Text(toAPITimePtr(v.LatestUpdatedAt)),
		OutlierMultiplier: view.Ratio(v.OutlierMultiplier), Increase1D: view.Ratio(v.Increase1d), Increase7D: view.Ratio(v.Increase7d),
		Increase14D: view.Ratio(v.Increase14d), Increase30D: view.Ratio(v.Increase30d), ViewsGained7D: view.Count(v.ViewsGained7d),
		MetricsMasked: view.MetricsMasked(),

		FetchStatus: api.FetchStatus(v.FetchStatus), FetchDetail: view.ExplainFetchStatus(&v.FetchState, link.Video),
		LastAttemptAt: view.Text(toAPITimePtr(v.LastAttemptAt)), NextFetchAt: view.Text(toAPITimePtr(v.NextFetchAt)),
	}
	if v.AdProductIDShop != nil {
		out.AdProductIDShop = *v.AdProductIDShop
	}
	for i, l := range v.Labels {
		out.LabelIds[i], out.LabelNames[i] = l.ID, l.Name
	}
	return out
}

// nilOrValue returns a generator that generates either nil or a pointer to a value of g.
func nilOrValue[T any](g *rapid.Generator[T]) *rapid.Generator[*T] {
	return rapid.Custom(func(t *rapid.T) *T {
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		v := g.Draw(t, "value")
		return &v
	})
}

func TestAppendVideo_writesTheSameBytesAsJSONMarshal(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "plain", `"quoted" \ <b>&`, "\u2028\u2029", "\x00\x1f\x7f\b\f\n\r\t", "invalid \xff\xc0 UTF-8", "𒐫é", "\ufffd"}))
	counts := nilOrValue(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, math.MaxInt64, math.MinInt64})))
	ratios := nilOrValue(rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-7, 1e-6, 1e20, 1e21, -1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1})))
	times := rapid.Map(rapid.Int64Range(-1e15, 2e17), func(n int64) store.Instant { return store.Instant(n) })
	ids := rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) uuid.UUID { return uuid.UUID(b) })
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return texts.Draw(t, name) }
		optional := func(name string) *string { return nilOrValue(texts).Draw(t, name) }
		truth := func(name string) bool { return rapid.Bool().Draw(t, name) }
		v := store.Video{
			OrganisationID: ids.Draw(t, "organisation"), ID: ids.Draw(t, "id"), Platform: rapid.SampledFrom(link.Platforms).Draw(t, "platform"),
			Link: text("link"), Username: text("username"), LinkedAccountID: nilOrValue(ids).Draw(t, "account"), CreatedAt: times.Draw(t, "created"),
			Removed: truth("removed"), UploadedAt: nilOrValue(rapid.Map(rapid.Int32Range(0, 2932896), func(d int32) store.Date { return store.Date(d) })).Draw(t, "uploaded"),
			SongName: optional("song"), SongLink: optional("song link"), ThumbnailURL: optional("thumbnail"), VideoLength: optional("length"), Title: text("title"),
			NotSafe: truth("not safe"), Private: truth("private"), HiddenStats: truth("hidden"), AdInfoShop: truth("shop"), AdIsAd: truth("ad"),
			AdProductIDShop: optional("product"),
			Latest: store.Counts{Views: counts.Draw(t, "views"), Likes: counts.Draw(t, "likes"), Comments: counts.Draw(t, "comments"),
				Shares: counts.Draw(t, "shares"), Bookmarks: counts.Draw(t, "bookmarks")},
			LatestEngagement: counts.Draw(t, "engagement"), LatestUpdatedAt: nilOrValue(times).Draw(t, "updated"), OutlierMultiplier: ratios.Draw(t, "outlier"),
			Growth: store.Growth{Increase1d: ratios.Draw(t, "1d"), Increase7d: ratios.Draw(t, "7d"), Increase14d: ratios.Draw(t, "14d"),
				Increase30d: ratios.Draw(t, "30d"), ViewsGained7d: counts.Draw(t, "gained")},
			FetchState: store.FetchState{FetchStatus: rapid.SampledFrom([]store.FetchStatus{"ok", "pending", "failing", "stopped", "delayed"}).Draw(t, "status"),
				FetchReason: text("reason"), LastAttemptAt: nilOrValue(times).Draw(t, "attempt"), NextFetchAt: nilOrValue(times).Draw(t, "next")},
			Labels: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *store.Label { return &store.Label{ID: ids.Draw(t, "id"), Name: texts.Draw(t, "name")} }), 0, 3).Draw(t, "labels"),
		}
		for _, view := range []View{FullView, MaskedView} {
			var want strings.Builder
			require.NoError(t, json.NewEncoder(&want).Encode(toAPIVideo(v, view)))
			got, err := appendVideo(nil, &v, view)
			require.NoError(t, err)
			require.Equal(t, strings.TrimSuffix(want.String(), "\n"), string(got))
		}
	})
}

//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestAppendVideo_allocatesAtMostTwoObjects(t *testing.T) {
	v := store.Video{Title: "A day at the harbour", Username: "harbour", Latest: store.Counts{Views: new(int64(5))}, Labels: []*store.Label{{Name: "Launch"}}, FetchState: store.FetchState{FetchStatus: "ok"}}
	out := make([]byte, 0, 4096)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = appendVideo(out, &v, FullView) }), 2.0)
}

func TestVideoMembers_equalTheMembersOfAVideoInTheContract(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(api.Video{MetricsMasked: new(true)})
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(encoded, &members))
	names := make([]string, 0, len(videoMembers))
	for _, m := range videoMembers {
		names = append(names, m.name)
	}
	require.Len(t, names, len(members))
	for _, name := range names {
		require.Contains(t, members, name)
	}
	require.IsIncreasing(t, names)
}
