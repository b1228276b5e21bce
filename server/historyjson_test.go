package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// toAPIVideoHistoryPoint converts a history point of a video to the generated JSON type. The test
// requires that appendVideoHistoryPoint writes the same JSON.
func toAPIVideoHistoryPoint(p store.Point, view View, quality bool) api.VideoHistoryPoint {
	out := api.VideoHistoryPoint{
		Date: toAPIDate(p.Day), Views: view.Count(p.Views), Likes: view.Count(p.Likes), Comments: view.Count(p.Comments),
		Shares: view.Count(p.Shares), Bookmarks: view.Count(p.Bookmarks), Engagements: view.Count(p.Engagement()),
		MetricsMasked: view.MetricsMasked(),
	}
	if quality {
		out.Quality, out.Source, out.FetchedAt = toAPIProvenance(p.Provenance, view)
	}
	if p.Quality == store.QualityInterpolated {
		out.Interpolated = new(true)
	}
	return out
}

func TestAppendVideoHistoryPoint_writesTheSameBytesAsJSONMarshal(t *testing.T) {
	t.Parallel()
	counts := nilOrValue(rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		p := store.Point{Day: store.Date(rapid.Int32Range(0, int32(store.MaxDate)).Draw(t, "day")),
			Counts: store.Counts{Views: counts.Draw(t, "views"), Likes: counts.Draw(t, "likes"), Comments: counts.Draw(t, "comments"), Shares: counts.Draw(t, "shares"), Bookmarks: counts.Draw(t, "bookmarks")},
			Provenance: store.Provenance{
				Quality:   rapid.SampledFrom([]store.Quality{store.QualityMeasured, store.QualityCorrected, store.QualityRounded, store.QualityInterpolated}).Draw(t, "quality"),
				Source:    nilOrValue(rapid.String()).Draw(t, "source"),
				FetchedAt: nilOrValue(rapid.Map(rapid.Int64Range(-1e15, 2e17), func(n int64) store.Instant { return store.Instant(n) })).Draw(t, "fetched"),
			}}
		quality := rapid.Bool().Draw(t, "with quality")
		for _, view := range []View{FullView, MaskedView} {
			want, err := json.Marshal(toAPIVideoHistoryPoint(p, view, quality))
			require.NoError(t, err)
			require.Equal(t, string(want), string(appendVideoHistoryPoint(nil, &p, view, quality)))
		}
	})
}
