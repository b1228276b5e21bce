package vendor_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// fetchFacts serves the given file of testdata/wire as the vendor's answer, and calls Fetch for a video. It
// returns the data that Fetch returns.
func fetchFacts(t *testing.T, vendor, file string, target queue.Target) source.Facts {
	t.Helper()
	r := fetchTarget(t, vendor, http.StatusOK, testdataText(t, "wire/"+file), target)
	require.Equal(t, source.OK, r.Class, r.Detail)
	return *r.Facts
}

// Requirements in docs/coverage.md: 11.12-01, 11.12-03, 11.12-05, 11.12-06
func TestVendors_readInstagramPostsInTheFormatsOfTheAppAndTheWebsite(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct {
		views, likes *int64
		hidden       bool
		song         *string
	}{
		"instagram_app":                {new(int64(235383)), new(int64(9021)), false, new("Sunny Side")},
		"instagram_app_original_sound": {new(int64(235383)), new(int64(9021)), false, new("Original audio")}, // the post has no ig_play_count
		"instagram_app_hidden":         {new(int64(235383)), nil, true, new("Sunny Side")},
		"instagram_app_total_only":     {nil, new(int64(9021)), false, new("Sunny Side")},
		"instagram_web_old_video":      {nil, new(int64(120)), false, nil},
	} {
		for _, vendor := range []string{"ensembledata", "sandbox"} {
			t.Run(vendor+" "+file, func(t *testing.T) {
				t.Parallel()
				f := fetchFacts(t, vendor, file, instagramTarget(reel))
				require.Equal(t, want.views, f.Views)
				require.Equal(t, want.likes, f.Likes)
				require.Equal(t, new(want.hidden), f.HiddenStats)
				require.Equal(t, want.song, f.SongName)
				require.Equal(t, new(int64(14)), f.Comments)
				require.Equal(t, "mira_cooks", *f.Username)
			})
		}
	}
}

// Requirements in docs/coverage.md: 11.12-02
func TestScrapeCreators_readsShopAdsAndHiddenLikes(t *testing.T) {
	t.Parallel()
	shop := fetchFacts(t, "scrapecreators", "scrapecreators_tiktok_shop", tiktokTarget(pancakes, "mira.cooks"))
	require.Equal(t, []*bool{new(true), new(true)}, []*bool{shop.IsAd, shop.ShopAd})
	require.Equal(t, new("1729384756012345678"), shop.ShopProductID)
	plain := fetchFacts(t, "scrapecreators", "scrapecreators_tiktok_plain", tiktokTarget(pancakes, "mira.cooks"))
	require.Equal(t, []*bool{new(false), new(false)}, []*bool{plain.IsAd, plain.ShopAd})
	require.Nil(t, plain.ShopProductID)

	youtube := queue.Target{Platform: link.YouTube, Kind: queue.KindVideo, ExternalID: "dQw4w9WgXcQ", Link: "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}
	hidden := fetchFacts(t, "scrapecreators", "scrapecreators_youtube_hidden", youtube)
	require.Nil(t, hidden.Likes)
	require.Equal(t, []*bool{new(true), new(true)}, []*bool{hidden.HiddenStats, hidden.IsAd})
	unknown := fetchFacts(t, "scrapecreators", "scrapecreators_youtube_without_likes", youtube)
	require.Nil(t, unknown.Likes)
	require.Equal(t, []*bool{nil, new(false)}, []*bool{unknown.HiddenStats, unknown.IsAd}, "missing likes must not count as hidden likes")

	facebook := queue.Target{Platform: link.Facebook, Kind: queue.KindVideo, ExternalID: "845589071817523", Link: "https://www.facebook.com/reel/845589071817523"}
	f := fetchFacts(t, "scrapecreators", "scrapecreators_facebook", facebook)
	require.Equal(t, new(58.25), f.LengthSeconds)
	require.Equal(t, new("Sunny Side"), f.SongName)
	const other = `{"success":true,"post_id":"999","url":"https://www.facebook.com/reel/845589071817523","view_count":5,"video":{"id":"2222222222222222"}}`
	require.Equal(t, source.Temporary, fetchTarget(t, "scrapecreators", http.StatusOK, other, facebook).Class, "the id of another video must count, even if the link repeats the request")
}

// Requirements in docs/coverage.md: 11.12-04
func TestApify_marksRoundedCountsAndReadsSlideshows(t *testing.T) {
	t.Parallel()
	f := fetchFacts(t, "apify", "apify_slideshow", tiktokTarget(pancakes, "mira.cooks"))
	require.Equal(t, new(int64(10_000)), f.RoundedFrom.Views)
	require.Equal(t, new(int64(573900)), f.Views)
	require.Nil(t, f.SongLink)
	require.Nil(t, f.SongName)
	for views, rounded := range map[string]bool{"9900": false, "10000": true, "12345": false, "573900": true, "1200000": true, "1234500": false, "2100000000": true, "2123000000": false} {
		text := `[{"id":"` + pancakes + `","playCount":` + views + `}]`
		require.Equal(t, rounded, fetchTarget(t, "apify", http.StatusOK, text, tiktokTarget(pancakes, "mira.cooks")).Facts.IsRounded(), views)
		text = `{"aweme_detail":{"aweme_id":"` + pancakes + `","statistics":{"play_count":` + views + `}}}`
		require.False(t, fetchTarget(t, "scrapecreators", http.StatusOK, text, tiktokTarget(pancakes, "mira.cooks")).Facts.IsRounded(), "counts of other vendors than Apify must not be marked as rounded")
	}
}

// Requirements in docs/coverage.md: 11.12-07
func TestEnsembleData_halvesBatchesWhoseAnswerIsTooLarge(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var items []map[string]any
		for id := range strings.SplitSeq(r.URL.Query().Get("ids"), ";") {
			items = append(items, map[string]any{"aweme_id": id, "statistics": map[string]int{"play_count": 1}, "padding": strings.Repeat("x", 200_000)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": items})
	}))
	t.Cleanup(web.Close)
	s := newSource(t, "ensembledata", web.URL, nil)
	var batch []queue.Target
	for n := range 50 {
		batch = append(batch, tiktokTarget("73829918273645553"+string(rune('0'+n/10))+string(rune('0'+n%10)), ""))
	}
	_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(nil))
	f, ok := errors.AsType[*source.Failure](err)
	require.True(t, ok)
	require.ErrorIs(t, f, fetch.ErrTooLarge)
	require.False(t, f.ConcernsSource())
	size, _ := s.Serves(batch[0])
	require.Equal(t, 25, size)
	results, err := s.Fetch(t.Context(), batch[:size], source.NewCallBudget(nil))
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, source.OK, r.Class, r.Detail)
	}
}
