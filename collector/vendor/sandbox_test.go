package vendor_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

func TestSource_usesLinkToRequestDetailsAndIDToRequestCounts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ensembledata", "sandbox"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, world, base := startSandbox(t, name)
			const id = "7301234567890123456"
			detailed := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: id, Handle: "a.real.person",
				Link: "https://www.tiktok.com/@a.real.person/video/" + id}
			size, ok := s.Serves(detailed)
			require.True(t, ok)
			require.Equal(t, 50, size)
			detailed.NeedDetails = true
			size, ok = s.Serves(detailed)
			require.True(t, ok)
			require.Equal(t, 1, size)
			size, ok = s.Serves(queue.Target{Platform: link.TikTok, Kind: queue.KindVideo})
			require.True(t, ok)
			require.Equal(t, 50, size, "for a target without an id, Serves must return the largest batch size")

			counts, _ := batchOfAllCategories(t, world, link.TikTok)
			batch := []queue.Target{detailed, counts[0]}
			require.Equal(t, int64(2), s.Plan(batch)[0][0].Units)
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			require.Equal(t, "a.real.person", *results[0].Facts.Username, "the author must be the account in the link")
			require.Equal(t, source.OK, results[1].Class)
			require.Equal(t, map[string]int{"tt/post/info": 1, "tt/post/multi-info": 1}, requestsByPath(t, base))
		})
	}
}

// requestsByPath returns a map from paths to the numbers of requests that the sandbox received.
func requestsByPath(t *testing.T, base string) map[string]int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/_control/calls", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { require.NoError(t, res.Body.Close()) }()
	var calls map[string]struct {
		ByMethod map[string]int `json:"by_method"`
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&calls))
	return calls["vendor"].ByMethod
}

// startSandbox starts a sandbox, and creates a source for the vendor with the given name. The source sends its requests to the sandbox.
func startSandbox(t *testing.T, name string) (*vendor.Source, *sandbox.World, string) {
	t.Helper()
	box := sourcetest.StartSandbox(t)
	now := func() time.Time { return sourcetest.Now }
	config, err := vendor.Load(name)
	require.NoError(t, err)
	s, err := vendor.New(config, vendor.Options{
		BaseURL: box.Env["REELTALLY_VENDOR_BASE_URL"], Key: box.Env["REELTALLY_VENDOR_KEY"], Client: box.Client, Now: now,
	})
	require.NoError(t, err)
	return s, box.World(), box.URL
}

// batchOfAllCategories returns a batch and the true data of its videos. The batch has one video of each category of the sandbox, such as deleted
// or private.
func batchOfAllCategories(t *testing.T, world *sandbox.World, platform link.Platform) ([]queue.Target, []sandbox.VideoTruth) {
	t.Helper()
	var targets []queue.Target
	var truths []sandbox.VideoTruth
	for _, category := range sandbox.Categories(platform) {
		id := world.Find(platform, category)
		truth, ok := world.Video(platform, id, sourcetest.Now)
		require.True(t, ok, category)
		truths = append(truths, truth)
		targets = append(targets, queue.Target{
			Platform: platform, Kind: queue.KindVideo, ExternalID: id, Handle: truth.Account.Handle, Link: truth.Link,
		})
	}
	return targets, truths
}

// requireTrueData checks that a result agrees with the parameter "truth": the data that the sandbox has generated for a video.
func requireTrueData(t *testing.T, vendor string, truth sandbox.VideoTruth, r source.Result) {
	t.Helper()
	require.Equal(t, source.OK, r.Class, "%s: %s", truth.Category, r.Detail)
	f := r.Facts
	if vendor == "apify" && truth.Platform == link.TikTok {
		exact := truth.Views
		truth = reduceToApifyData(truth)
		require.Equal(t, exact >= 10_000, f.IsRounded())
	} else {
		require.False(t, f.IsRounded())
	}
	require.Equal(t, truth.Views, *f.Views)
	require.Equal(t, truth.Likes, f.Likes)
	require.Equal(t, truth.Comments, f.Comments)
	require.Equal(t, truth.Title, *f.Title)
	require.Equal(t, truth.Account.ID, *f.AccountID)
	require.Equal(t, truth.Account.Name, *f.AccountName)
	require.Equal(t, truth.UploadedAt, *f.UploadedAt)
	if f.Username != nil {
		require.Equal(t, truth.Account.Handle, *f.Username)
	}
	if f.LengthSeconds != nil {
		require.InDelta(t, truth.LengthSeconds, *f.LengthSeconds, 1)
	}
	if f.HiddenStats != nil {
		require.Equal(t, truth.HiddenStats, *f.HiddenStats)
	}
	if f.SongName != nil {
		require.Equal(t, truth.Song.Title, *f.SongName)
	}
	if truth.Platform == link.TikTok {
		require.Equal(t, truth.Shares, f.Shares)
		require.Equal(t, truth.Bookmarks, f.Bookmarks)
		if truth.Song.Link == "" {
			require.Nil(t, f.SongLink)
		} else {
			require.Equal(t, truth.Song.Link, *f.SongLink)
		}
		require.Equal(t, truth.ShopAd, *f.IsAd)
	}
	if f.ShopAd != nil {
		require.Equal(t, truth.ShopAd, *f.ShopAd)
	}
	if truth.ShopAd && f.ShopAd != nil {
		require.Equal(t, truth.ShopProductID, *f.ShopProductID)
	} else {
		require.Nil(t, f.ShopProductID)
	}
}

// reduceToApifyData returns the data that Apify gives about a TikTok video. Apify rounds the counts, and leaves out the song link of a
// slideshow.
func reduceToApifyData(truth sandbox.VideoTruth) sandbox.VideoTruth {
	truth.Views = sandbox.RoundTikTokCount(truth.Views)
	for _, count := range []**int64{&truth.Likes, &truth.Comments, &truth.Shares, &truth.Bookmarks} {
		if *count != nil {
			*count = new(sandbox.RoundTikTokCount(**count))
		}
	}
	if truth.Category == sandbox.Photo {
		song := *truth.Song
		song.Link = ""
		truth.Song = &song
	}
	return truth
}

func TestSource_fetchesVideosFromSandbox(t *testing.T) {
	t.Parallel()
	for name, platforms := range map[string][]link.Platform{
		"ensembledata":   {link.TikTok, link.Instagram},
		"sandbox":        {link.TikTok, link.Instagram, link.Facebook},
		"scrapecreators": {link.TikTok, link.Instagram, link.YouTube, link.Facebook},
		"apify":          {link.TikTok, link.Instagram},
	} {
		for _, platform := range platforms {
			t.Run(name+" for "+string(platform), func(t *testing.T) {
				t.Parallel()
				s, world, _ := startSandbox(t, name)
				targets, truths := batchOfAllCategories(t, world, platform)
				size, ok := s.Serves(targets[0])
				require.True(t, ok)
				for len(targets) > 0 {
					n := min(size, len(targets))
					results, err := s.Fetch(t.Context(), targets[:n], source.NewCallBudget(nil))
					require.NoError(t, err)
					for i, r := range results {
						require.True(t, r.Sandbox)
						if truths[i].State == sandbox.Restricted && r.Class != source.OK {
							// The class of an age-restricted video depends on the vendor.
							require.Contains(t, []source.Class{source.AgeLimited, source.Gone}, r.Class, r.Detail)
							continue
						}
						requireTrueData(t, name, truths[i], r)
					}
					targets, truths = targets[n:], truths[n:]
				}
			})
		}
	}
}

func TestSource_classifiesUnavailableVideosOfSandbox(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]source.Class{ // maps a vendor to the expected classes of a deleted video and of a private video
		"ensembledata":   {source.Gone, source.Private},
		"scrapecreators": {source.Gone, source.Private},
		"apify":          {source.Gone, source.Gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, world, base := startSandbox(t, name)
			sourcetest.SendControlRequest(t, base, "clock", `{"now":"2028-01-01T00:00:00Z"}`)
			for i, category := range []sandbox.Category{sandbox.BecomesDeleted, sandbox.BecomesPrivate} {
				id := world.Find(link.Instagram, category)
				results, err := s.Fetch(t.Context(), []queue.Target{instagramTarget(id)}, source.NewCallBudget(nil))
				require.NoError(t, err)
				require.Equal(t, want[i], results[0].Class, results[0].Detail)
			}
		})
	}
}

func TestSource_classifiesFaultsOfSandbox(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ensembledata", "scrapecreators", "apify"} {
		for fault, class := range map[string]source.Class{
			"rate_limited": source.RateLimited, "quota_spent": source.QuotaSpent, "server_error": source.Temporary, "truncated": source.Temporary,
		} {
			t.Run(name+" "+fault, func(t *testing.T) {
				t.Parallel()
				s, world, base := startSandbox(t, name)
				targets, _ := batchOfAllCategories(t, world, link.TikTok)
				sourcetest.SendControlRequest(t, base, "faults", `{"source":"vendor","fault":"`+fault+`","retry_after":30}`)
				for range 2 {
					_, err := s.Fetch(t.Context(), targets[:1], source.NewCallBudget(nil))
					var f *source.Failure
					require.ErrorAs(t, err, &f)
					require.Equal(t, class, f.Class, f.Detail)
					if class == source.RateLimited {
						require.True(t, sourcetest.Now.Add(30*time.Second).Equal(f.RetryAt), "got %s", f.RetryAt)
					}
				}
			})
		}
		t.Run(name+" hostile answers", func(t *testing.T) {
			t.Parallel()
			s, world, base := startSandbox(t, name)
			targets, truths := batchOfAllCategories(t, world, link.TikTok)
			targets = targets[:1] // with only one video, each returned count must be a true count of this video
			sourcetest.SendControlRequest(t, base, "faults", `{"source":"vendor","fault":"hostile"}`)
			for range sandbox.HostileVariants {
				results, err := s.Fetch(t.Context(), targets, source.NewCallBudget(nil))
				var f *source.Failure
				if err != nil {
					require.ErrorAs(t, err, &f)
					require.Equal(t, source.Temporary, f.Class, f.Detail)
					continue
				}
				r := results[0]
				require.Contains(t, []source.Class{source.OK, source.Temporary}, r.Class, r.Detail)
				if name == "apify" {
					truths[0] = reduceToApifyData(truths[0])
				}
				if r.Facts != nil {
					requireTrueCounts(t, truths[0], r.Facts.Views, r.Facts.Likes, r.Facts.Comments, r.Facts.Shares, r.Facts.Bookmarks)
				}
			}
		})
		t.Run(name+" wrong key", func(t *testing.T) {
			t.Parallel()
			_, world, base := startSandbox(t, name)
			targets, _ := batchOfAllCategories(t, world, link.TikTok)
			_, err := newSource(t, name, base+"/vendor", nil).Fetch(t.Context(), targets[:1], source.NewCallBudget(nil))
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, source.AuthFailed, f.Class, f.Detail)
		})
	}
}

// requireTrueCounts checks that each given count is one of the video's true counts. Swapped counts are
// accepted, because a source cannot detect them.
func requireTrueCounts(t *testing.T, truth sandbox.VideoTruth, counts ...*int64) {
	t.Helper()
	known := []int64{truth.Views}
	for _, count := range []*int64{truth.Likes, truth.Comments, truth.Shares, truth.Bookmarks} {
		if count != nil {
			known = append(known, *count)
		}
	}
	for _, count := range counts {
		if count != nil {
			require.Contains(t, known, *count)
		}
	}
}
