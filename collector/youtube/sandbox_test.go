package youtube_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

func startSandbox(t *testing.T) (*youtube.Source, *sandbox.World, string) {
	t.Helper()
	box := sourcetest.StartSandbox(t)
	now := func() time.Time { return sourcetest.Now }
	s, err := youtube.New(youtube.Options{
		BaseURL: box.Env["REELTALLY_YOUTUBE_BASE_URL"], APIKey: box.Env["REELTALLY_YOUTUBE_API_KEY"], Client: box.Client, Now: now,
	})
	require.NoError(t, err)
	return s, box.World(), box.URL
}

// batchOfAllCategories returns a batch and the true data of its videos. The batch has one video of each category of the sandbox, such as deleted
// or private.
func batchOfAllCategories(t *testing.T, world *sandbox.World, details bool) ([]queue.Target, []sandbox.VideoTruth) {
	t.Helper()
	var batch []queue.Target
	var truths []sandbox.VideoTruth
	for _, category := range sandbox.Categories(link.YouTube) {
		id := world.Find(link.YouTube, category)
		truth, ok := world.Video(link.YouTube, id, sourcetest.Now)
		require.True(t, ok, category)
		batch, truths = append(batch, videoTarget(id, details)), append(truths, truth)
	}
	return batch, truths
}

// requireTrueData checks that a result agrees with the parameter "truth": the data that the sandbox has generated for a video.
func requireTrueData(t *testing.T, truth sandbox.VideoTruth, r source.Result, details bool) {
	t.Helper()
	require.True(t, r.Sandbox)
	require.Equal(t, source.OK, r.Class, "%s: %s", truth.Category, r.Detail)
	f := r.Facts
	require.Equal(t, truth.Views, *f.Views)
	require.Equal(t, truth.Likes, f.Likes)
	require.Equal(t, truth.Comments, f.Comments)
	require.Equal(t, truth.HiddenStats, *f.HiddenStats)
	require.Equal(t, truth.UploadedAt, *f.UploadedAt)
	require.InDelta(t, truth.LengthSeconds, *f.LengthSeconds, 1)
	require.Nil(t, f.Shares)
	require.Nil(t, f.Bookmarks)
	require.Nil(t, f.SongName)
	if !details {
		return
	}
	require.Equal(t, truth.Title, *f.Title)
	require.Equal(t, truth.Account.ID, *f.AccountID)
	require.Equal(t, truth.Account.Name, *f.AccountName)
	require.Equal(t, truth.Account.Handle, *f.Username)
	require.Equal(t, truth.NotSafe, *f.NotSafe)
	require.False(t, *f.Private)
}

func TestSource_fetchesVideosFromSandbox(t *testing.T) {
	t.Parallel()
	for name, details := range map[string]bool{"with details": true, "counts only": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, world, _ := startSandbox(t)
			batch, truths := batchOfAllCategories(t, world, details)
			for _, plan := range s.Plan(batch) {
				results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plan))
				require.NoError(t, err)
				for i, r := range results {
					requireTrueData(t, truths[i], r, details && plan[0].Units == 2)
				}
			}
		})
	}
	t.Run("classifies deleted and private videos", func(t *testing.T) {
		t.Parallel()
		s, world, base := startSandbox(t)
		batch := []queue.Target{
			videoTarget(world.Find(link.YouTube, sandbox.BecomesDeleted), true), videoTarget(world.Find(link.YouTube, sandbox.BecomesPrivate), true),
			videoTarget(world.Find(link.YouTube, sandbox.Normal), true),
		}
		sourcetest.SendControlRequest(t, base, "clock", `{"now":"2028-01-01T00:00:00Z"}`)
		for _, plan := range s.Plan(batch) {
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plan))
			require.NoError(t, err)
			want := source.Gone // YouTube leaves out a private video in the same way as a deleted video
			if plan[0].Budget == youtube.BudgetStats {
				want = source.Temporary // batchGetStats leaves out some existing videos, so a missing video may still exist
			}
			require.Equal(t, want, results[0].Class)
			require.Equal(t, want, results[1].Class)
			require.Equal(t, source.OK, results[2].Class)
		}
	})
}

func TestSource_classifiesFaultsOfSandbox(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault   string
		class   source.Class
		retryAt time.Time
	}{
		"rate limit with Retry-After":    {`"rate_limited","retry_after":30`, source.RateLimited, sourcetest.Now.Add(30 * time.Second)},
		"rate limit without Retry-After": {`"rate_limited"`, source.RateLimited, time.Time{}},
		"quota spent":                    {`"quota_spent"`, source.QuotaSpent, midnight},
		"server error":                   {`"server_error"`, source.Temporary, time.Time{}},
		"truncated":                      {`"truncated"`, source.Temporary, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, world, base := startSandbox(t)
			batch, _ := batchOfAllCategories(t, world, true)
			sourcetest.SendControlRequest(t, base, "faults", `{"source":"youtube","fault":`+tt.fault+`}`)
			for _, plan := range s.Plan(batch) {
				for range 2 {
					_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plan))
					var f *source.Failure
					require.ErrorAs(t, err, &f)
					require.Equal(t, tt.class, f.Class, f.Detail)
					require.True(t, tt.retryAt.Equal(f.RetryAt), "got %s", f.RetryAt)
				}
			}
		})
	}
	t.Run("hostile answers", func(t *testing.T) {
		t.Parallel()
		s, world, base := startSandbox(t)
		batch, truths := batchOfAllCategories(t, world, false)
		batch = batch[:1] // with only one video, each returned count must be a true count of this video
		sourcetest.SendControlRequest(t, base, "faults", `{"source":"youtube","fault":"hostile"}`)
		for range sandbox.HostileVariants {
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[1]))
			var f *source.Failure
			if err != nil {
				require.ErrorAs(t, err, &f)
				require.Equal(t, source.Temporary, f.Class, f.Detail)
				continue
			}
			r := results[0]
			require.Contains(t, []source.Class{source.OK, source.Temporary}, r.Class, r.Detail)
			if r.Facts != nil {
				requireTrueCounts(t, truths[0], r.Facts.Views, r.Facts.Likes, r.Facts.Comments)
			}
		}
	})
	t.Run("wrong key", func(t *testing.T) {
		t.Parallel()
		_, world, base := startSandbox(t)
		batch, _ := batchOfAllCategories(t, world, true)
		s := newSource(t, base+"/youtube/", nil)
		_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.AuthFailed, f.Class)
	})
}

// requireTrueCounts checks that each count is one of the video's true counts. Swapped counts are
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
