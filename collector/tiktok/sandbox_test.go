package tiktok_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// sandboxTest has a running sandbox and two sources that send their requests to it: a Display source and a Research source.
type sandboxTest struct {
	box      sourcetest.Sandbox
	display  *tiktok.Display
	research *tiktok.Research
}

func startSandbox(t *testing.T) sandboxTest {
	t.Helper()
	box := sourcetest.StartSandbox(t)
	now := func() time.Time { return sourcetest.Now }
	display, err := tiktok.NewDisplay(tiktok.DisplayOptions{BaseURL: box.Env["REELTALLY_TIKTOK_BASE_URL"], ClientKey: box.Env["REELTALLY_TIKTOK_CLIENT_KEY"],
		ClientSecret: box.Env["REELTALLY_TIKTOK_CLIENT_SECRET"], RefreshToken: box.Env["REELTALLY_TIKTOK_REFRESH_TOKEN"],
		Client: box.Client, Tokens: storetest.New(t, "sqlite").Queue, Now: now})
	require.NoError(t, err)
	research, err := tiktok.NewResearch(tiktok.ResearchOptions{BaseURL: box.Env["REELTALLY_TIKTOK_BASE_URL"], ClientKey: sandbox.TikTokResearchClientKey,
		ClientSecret: sandbox.TikTokResearchClientSecret, Client: box.Client, Now: now})
	require.NoError(t, err)
	return sandboxTest{box, display, research}
}

// fetchBatch fetches a batch with the calls that the source prefers (the first element of Plan), as the collector does.
func fetchBatch(t *testing.T, s source.Source, batch []queue.Target) []source.Result {
	t.Helper()
	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	require.NoError(t, err)
	require.Len(t, results, len(batch))
	return results
}

func TestDisplay_fetchesVideosOfLoggedInAccountFromSandbox(t *testing.T) {
	t.Parallel()
	s := startSandbox(t)
	handle, world := s.box.TikTokAccount(), s.box.World()
	uploads := world.Uploads(link.TikTok, handle, sourcetest.Now)
	require.Greater(t, len(uploads), 3)
	foreign := world.Find(link.TikTok, sandbox.Normal)
	batch := []queue.Target{videoTarget(foreign, "", true)}
	for _, id := range uploads[:min(19, len(uploads))] {
		batch = append(batch, videoTarget(id, handle, true))
	}
	results := fetchBatch(t, s.display, batch)
	require.Equal(t, source.Unsupported, results[0].Class)
	for i, r := range results[1:] {
		truth, ok := world.Video(link.TikTok, batch[i+1].ExternalID, sourcetest.Now)
		require.True(t, ok)
		require.Equal(t, source.OK, r.Class, r.Detail)
		require.True(t, r.Sandbox)
		f := r.Facts
		require.Equal(t, truth.Views, *f.Views)
		require.Equal(t, []*int64{truth.Likes, truth.Comments, truth.Shares, nil}, []*int64{f.Likes, f.Comments, f.Shares, f.Bookmarks})
		require.Equal(t, truth.Title, *f.Title)
		require.Equal(t, truth.UploadedAt, *f.UploadedAt)
		require.InDelta(t, truth.LengthSeconds, *f.LengthSeconds, 1)
		require.Equal(t, handle, *f.Username)
		require.Nil(t, f.SongLink)
		require.Nil(t, f.NotSafe)
		require.Nil(t, f.Private)
	}

	account := fetchBatch(t, s.display, []queue.Target{accountTarget(handle, 5000)})[0]
	require.Equal(t, source.OK, account.Class, account.Detail)
	truth, ok := world.Account(link.TikTok, handle, sourcetest.Now)
	require.True(t, ok)
	require.Equal(t, truth.Followers, account.Account.Followers)
	require.Equal(t, truth.Following, *account.Account.Following)
	require.Equal(t, truth.Name, *account.Account.Name)
	require.Equal(t, truth.Bio, *account.Account.Bio)
	require.True(t, account.Account.Listed)
	var listed []string
	for _, v := range account.Account.Videos {
		known, _ := world.Video(link.TikTok, v.ID, sourcetest.Now)
		require.Equal(t, known.Link, v.Link)
		require.Equal(t, known.UploadedAt, v.UploadedAt.Time())
		listed = append(listed, v.ID)
	}
	require.Equal(t, uploads, listed, "the list must be complete, although some pages are short")
	other := fetchBatch(t, s.display, []queue.Target{accountTarget(world.Handle(link.TikTok, 7), 30)})[0]
	require.Equal(t, source.Unsupported, other.Class)

	sourcetest.SendControlRequest(t, s.box.URL, "clock", `{"now":"2030-01-01T00:00:00Z"}`)
	batch = nil
	for _, id := range uploads {
		if v, _ := world.Video(link.TikTok, id, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)); v.State == sandbox.Public {
			batch = []queue.Target{videoTarget(id, handle, true)}
		}
	}
	require.Equal(t, source.OK, fetchBatch(t, s.display, batch)[0].Class, "Fetch must get a new token, because the old one has expired in the sandbox")
}

func TestResearch_fetchesDelayedNumbersFromSandbox(t *testing.T) {
	t.Parallel()
	s := startSandbox(t)
	world, then := s.box.World(), sourcetest.Now.Add(-sandbox.ResearchLag)
	var batch []queue.Target
	for _, category := range sandbox.Categories(link.TikTok) {
		batch = append(batch, videoTarget(world.Find(link.TikTok, category), "", true))
	}
	for i, r := range fetchBatch(t, s.research, batch) {
		truth, ok := world.Video(link.TikTok, batch[i].ExternalID, then)
		require.True(t, ok)
		require.Equal(t, source.OK, r.Class, "%s: %s", truth.Category, r.Detail)
		require.True(t, r.Sandbox)
		require.True(t, r.Lags)
		f := r.Facts
		require.Equal(t, truth.Views, *f.Views)
		require.Equal(t, []*int64{truth.Likes, truth.Comments, truth.Shares, truth.Bookmarks}, []*int64{f.Likes, f.Comments, f.Shares, f.Bookmarks})
		require.Equal(t, truth.Title, *f.Title)
		require.Equal(t, truth.Account.Handle, *f.Username)
		require.Equal(t, truth.Song.Link, *f.SongLink)
		require.Equal(t, truth.UploadedAt, *f.UploadedAt)
	}
	handle := world.Handle(link.TikTok, 7)
	r := fetchBatch(t, s.research, []queue.Target{accountTarget(handle, 30)})[0]
	truth, ok := world.Account(link.TikTok, handle, then)
	require.True(t, ok)
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Equal(t, truth.Followers, r.Account.Followers)
	require.False(t, r.Account.Listed, "the account must have no list, because the Research API does not list videos")
	r = fetchBatch(t, s.research, []queue.Target{accountTarget(world.FindAccount(link.TikTok, sandbox.AccountGone), 30)})[0]
	require.Equal(t, source.Unsupported, r.Class)

	sourcetest.SendControlRequest(t, s.box.URL, "clock", `{"now":"2028-01-01T00:00:00Z"}`)
	gone := []queue.Target{videoTarget(world.Find(link.TikTok, sandbox.BecomesDeleted), "", true), videoTarget(world.Find(link.TikTok, sandbox.BecomesPrivate), "", true)}
	for _, r := range fetchBatch(t, s.research, gone) {
		require.Equal(t, source.Missing, r.Class)
	}
}

func TestSources_classifyFaultsOfSandbox(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault   string
		class   source.Class
		retryAt time.Time
	}{
		"rate limit with Retry-After":    {`"rate_limited","retry_after":30`, source.RateLimited, sourcetest.Now.Add(30 * time.Second)},
		"rate limit without Retry-After": {`"rate_limited"`, source.RateLimited, sourcetest.Now.Add(time.Minute)},
		"quota spent":                    {`"quota_spent"`, source.QuotaSpent, midnight},
		"server error":                   {`"server_error"`, source.Temporary, time.Time{}},
		"truncated":                      {`"truncated"`, source.Temporary, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSandbox(t)
			handle := s.box.TikTokAccount()
			batch := []queue.Target{videoTarget(s.box.World().Uploads(link.TikTok, handle, sourcetest.Now)[0], handle, true)}
			for name, of := range map[string]source.Source{"tiktok_display": s.display, "tiktok_research": s.research} {
				sourcetest.SendControlRequest(t, s.box.URL, "faults", `{"source":"`+name+`","fault":`+tt.fault+`}`)
				for range 2 {
					_, err := of.Fetch(t.Context(), batch, source.NewCallBudget(of.Plan(batch)[0]))
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
		s := startSandbox(t)
		handle := s.box.TikTokAccount()
		batch := []queue.Target{videoTarget(s.box.World().Uploads(link.TikTok, handle, sourcetest.Now)[5], handle, true)}
		sourcetest.SendControlRequest(t, s.box.URL, "faults", `{"source":"","fault":"hostile"}`)
		for at, of := range map[time.Time]source.Source{sourcetest.Now: s.display, sourcetest.Now.Add(-sandbox.ResearchLag): s.research} {
			truth, _ := s.box.World().Video(link.TikTok, batch[0].ExternalID, at)
			for range sandbox.HostileVariants {
				results, err := of.Fetch(t.Context(), batch, source.NewCallBudget(of.Plan(batch)[0]))
				var f *source.Failure
				if err != nil {
					require.ErrorAs(t, err, &f)
					require.Equal(t, source.Temporary, f.Class, f.Detail)
					continue
				}
				r := results[0]
				require.Contains(t, []source.Class{source.OK, source.Temporary}, r.Class, r.Detail)
				if r.Facts == nil {
					continue
				}
				for _, count := range []*int64{r.Facts.Views, r.Facts.Likes, r.Facts.Comments, r.Facts.Shares, r.Facts.Bookmarks} {
					if count != nil { // the server may have swapped the views and the likes; a source cannot detect this, so the value may be any of the true counts
						require.Contains(t, []int64{truth.Views, *truth.Likes, *truth.Comments, *truth.Shares, *truth.Bookmarks}, *count)
					}
				}
			}
		}
	})
}
