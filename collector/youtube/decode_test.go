package youtube

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

func TestParseDuration_acceptsISO8601AndProtobufFormat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"PT58S": 58, "PT15M51S": 951, "PT1H": 3600, "P1DT2H3S": 93603, "P0D": 0, "PT0S": 0, "P1W": 604800, "P1W2DT3M": 777780, "PT1.25S": 1.25,
		"58s": 58, "58.5s": 58.5, "0s": 0, "3.000000001s": 3.000000001,
	} {
		got, ok := parseDuration(text)
		require.True(t, ok, text)
		require.InDelta(t, want, got, 1e-9, text)
	}
	for _, text := range []string{
		"", "P", "PT", "P1DT", "1H", "PT5", "PT-5S", "-PT5S", "+PT5S", "P1Y", "P1M", "P1D2D", "PT1S2S", "PT1S1M", "pt5s", " PT5S", "PT5S ", "PT5S\n",
		"PT1e9S", "PTNaNS", "P99999999999999999999D", "s", "-1s", ".5s", "5.s", "5 s", "5m", "1h5s", "infs", "PT١S",
	} {
		_, ok := parseDuration(text)
		require.False(t, ok, "%q", text)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"PT58S", "P1DT2H3S", "P0D", "P1W2DT3H4M5.678S", "58.5s", "P", "-PT5S", "P999999999W"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seconds, ok := parseDuration(text)
		if !ok {
			require.Zero(t, seconds)
			return
		}
		require.False(t, math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds < 0, "%q is %v", text, seconds)
		if length := fetch.CheckLength(seconds); length != nil {
			require.LessOrEqual(t, *length, 366*86400.0)
		}
	})
}

func FuzzDecodeVideos(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte) {
		if fetch.CheckJSON(text) != nil {
			return
		}
		for _, kind := range []string{kindList, kindStats} {
			answer, err := decodeVideos(text, kind, []string{"kJ4_q-Zx9W0", "Tn8bVw2RfQ4"}, now)
			if err != nil {
				require.Empty(t, answer.byID)
				continue
			}
			for id, r := range answer.byID {
				require.NotEmpty(t, id)
				require.Equal(t, r.Class == source.OK, r.Facts != nil)
				if r.Facts != nil {
					checkFacts(t, *r.Facts, now)
				}
			}
		}
	})
}

// checkFacts checks that the data of a video are plausible. Even a malformed answer must not give implausible data.
func checkFacts(t *testing.T, f source.Facts, now time.Time) {
	for _, count := range []*int64{f.Views, f.Likes, f.Comments} {
		require.True(t, count == nil || *count >= 0)
	}
	require.Nil(t, f.Shares)
	require.Nil(t, f.Bookmarks)
	require.Nil(t, f.ShopAd)
	require.Nil(t, f.IsAd)
	require.Equal(t, f.Views != nil, f.HiddenStats != nil)
	if f.Title != nil {
		require.NotContains(t, *f.Title, "\x00")
	}
	if f.UploadedAt != nil {
		require.Equal(t, time.UTC, f.UploadedAt.Location())
		require.True(t, f.UploadedAt.Year() >= 2004 && f.UploadedAt.Before(now.AddDate(0, 0, 3)))
	}
	if f.LengthSeconds != nil {
		require.GreaterOrEqual(t, *f.LengthSeconds, 0.0)
	}
}
