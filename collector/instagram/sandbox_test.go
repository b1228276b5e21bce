package instagram_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// sandboxTest is a running sandbox, and a source that sends its requests to the sandbox.
type sandboxTest struct {
	*instagram.Source
	world *sandbox.World
	base  string
	own   string // handle of the account that owns the token
}

func startSandbox(t *testing.T) sandboxTest {
	t.Helper()
	box := sourcetest.StartSandbox(t)
	now := func() time.Time { return sourcetest.Now }
	s, err := instagram.New(instagram.Options{BaseURL: box.Env["REELTALLY_INSTAGRAM_BASE_URL"], Token: box.Env["REELTALLY_INSTAGRAM_ACCESS_TOKEN"],
		AccountID: box.Env["REELTALLY_INSTAGRAM_ACCOUNT_ID"], Client: box.Client, Now: now})
	require.NoError(t, err)
	return sandboxTest{Source: s, world: box.World(), base: box.URL, own: ownHandle(t, box.World(), box.Env["REELTALLY_INSTAGRAM_ACCOUNT_ID"])}
}

// ownHandle returns the handle of the sandbox's account with the given Graph API id. The last digits of the id are the number of the
// account in the sandbox.
func ownHandle(t *testing.T, world *sandbox.World, id string) string {
	t.Helper()
	number, err := strconv.ParseUint(strings.TrimPrefix(id, "178414"), 10, 32)
	require.NoError(t, err)
	return world.Handle(link.Instagram, uint32(number))
}

// batchOfAllCategories returns a batch and the true data of its videos. The batch has one video of each category of the sandbox, such as deleted
// or private.
func (s sandboxTest) batchOfAllCategories(t *testing.T) (batch []queue.Target, truths []sandbox.VideoTruth) {
	t.Helper()
	for _, category := range sandbox.Categories(link.Instagram) {
		truth, ok := s.world.Video(link.Instagram, s.world.Find(link.Instagram, category), sourcetest.Now)
		require.True(t, ok, category)
		batch, truths = append(batch, videoTarget(truth.ID, truth.Account.Handle)), append(truths, truth)
	}
	return batch, truths
}

func (s sandboxTest) fetch(t *testing.T, batch ...queue.Target) ([]source.Result, error) {
	t.Helper()
	return s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
}

func TestSource_fetchesVideosFromSandbox(t *testing.T) {
	t.Parallel()
	s := startSandbox(t)
	batch, truths := s.batchOfAllCategories(t)
	results, err := s.fetch(t, batch...)
	require.NoError(t, err)
	for i, r := range results {
		truth := truths[i]
		require.True(t, r.Sandbox)
		require.Equal(t, source.OK, r.Class, "%s: %s", truth.Category, r.Detail)
		require.Regexp(t, `^instagram/178414\d{11}$`, *r.Facts.AccountSourceID)
		require.Equal(t, &source.Facts{
			AccountSourceID: r.Facts.AccountSourceID, Views: &truth.Views, Likes: truth.Likes, Comments: truth.Comments, Title: &truth.Title, Username: &truth.Account.Handle,
			AccountName: &truth.Account.Name, UploadedAt: &truth.UploadedAt, Private: new(false), HiddenStats: &truth.HiddenStats,
		}, r.Facts, truth.Category)
	}
	t.Run("classifies deleted and private videos", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		batch, truths := s.batchOfAllCategories(t)
		sourcetest.SendControlRequest(t, s.base, "clock", `{"now":"2028-01-01T00:00:00Z"}`)
		results, err := s.fetch(t, batch...)
		require.NoError(t, err)
		for i, r := range results {
			want := source.OK
			if c := truths[i].Category; c == sandbox.BecomesDeleted || c == sandbox.BecomesPrivate {
				want = source.Missing
			}
			require.Equal(t, want, r.Class, "%s: %s", truths[i].Category, r.Detail)
		}
	})
	t.Run("returns insights of the configured account's videos", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		codes := s.world.Uploads(link.Instagram, s.own, sourcetest.Now)
		results, err := s.fetch(t, videoTarget(codes[3], s.own), videoTarget(codes[1], ""))
		require.NoError(t, err)
		for i, r := range results {
			truth, _ := s.world.Video(link.Instagram, codes[3-2*i], sourcetest.Now)
			require.Equal(t, source.OK, r.Class, r.Detail)
			require.Equal(t, truth.Views, *r.Facts.Views)
			require.Equal(t, truth.Likes, r.Facts.Likes)
			require.Equal(t, truth.Views/200, *r.Facts.Shares)
			require.Equal(t, truth.Views/150, *r.Facts.Bookmarks)
			require.Equal(t, s.own, *r.Facts.Username)
		}
	})
	t.Run("classifies videos that the API cannot find", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		private := s.world.FindAccount(link.Instagram, sandbox.AccountPrivate)
		other := s.world.Find(link.Instagram, sandbox.Normal)
		results, err := s.fetch(t, videoTarget(other, private), videoTarget(other, ""), videoTarget("DCXkB8LpR2q", "natgeo"))
		require.NoError(t, err)
		require.Equal(t, source.Unsupported, results[0].Class)
		require.Contains(t, results[0].Detail, "Invalid user id")
		require.Equal(t, source.Unsupported, results[1].Class)
		require.Contains(t, results[1].Detail, "instagram.com/USER/reel/CODE/")
		require.Equal(t, source.Missing, results[2].Class)
	})
}

// fetchGraphID returns the Graph API id of the account with the given handle. It takes the id from the result of one of the account's
// videos. It returns "" if the account has no videos.
func fetchGraphID(t *testing.T, s sandboxTest, handle string) string {
	t.Helper()
	uploads := s.world.Uploads(link.Instagram, handle, sourcetest.Now)
	if len(uploads) == 0 {
		return ""
	}
	results, err := s.fetch(t, videoTarget(uploads[0], handle))
	require.NoError(t, err)
	return *results[0].Facts.AccountSourceID
}

func TestSource_fetchesAccountsFromSandbox(t *testing.T) {
	t.Parallel()
	s := startSandbox(t)
	for number := range uint32(20) {
		name := s.world.Handle(link.Instagram, 1+number)
		truth, ok := s.world.Account(link.Instagram, name, sourcetest.Now)
		require.True(t, ok)
		if truth.State != sandbox.Public {
			continue
		}
		results, err := s.fetch(t, accountTarget(name, 500))
		require.NoError(t, err)
		if id := fetchGraphID(t, s, name); id != "" {
			require.Equal(t, id, *results[0].Account.SourceID)
		}
		want := &source.AccountFacts{SourceID: results[0].Account.SourceID, Username: &truth.Handle, Name: &truth.Name, Bio: &truth.Bio, Followers: truth.Followers,
			Following: &truth.Following, Private: new(false), Listed: true}
		for _, code := range s.world.Uploads(link.Instagram, name, sourcetest.Now) {
			v, _ := s.world.Video(link.Instagram, code, sourcetest.Now)
			want.Videos = append(want.Videos, ingest.FoundVideo{ID: code, Link: v.Link, UploadedAt: new(store.InstantOf(v.UploadedAt))})
		}
		require.Equal(t, want, results[0].Account)
	}
	results, err := s.fetch(t, accountTarget(s.world.FindAccount(link.Instagram, sandbox.AccountGone), 30))
	require.NoError(t, err)
	require.Equal(t, source.Unsupported, results[0].Class)
}

func TestSource_classifiesFaultsOfSandbox(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault   string
		class   source.Class
		retryAt time.Time
	}{
		"rate limit with Retry-After":    {`"rate_limited","retry_after":30`, source.RateLimited, sourcetest.Now.Add(30 * time.Second)},
		"rate limit without Retry-After": {`"rate_limited"`, source.RateLimited, sourcetest.Now.Add(15 * time.Minute)},
		"business limit is used up":      {`"quota_spent"`, source.RateLimited, sourcetest.Now.Add(5 * time.Minute)},
		"server error":                   {`"server_error"`, source.Temporary, time.Time{}},
		"truncated":                      {`"truncated"`, source.Temporary, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSandbox(t)
			batch, _ := s.batchOfAllCategories(t)
			sourcetest.SendControlRequest(t, s.base, "faults", `{"source":"instagram","fault":`+tt.fault+`}`)
			_, err := s.fetch(t, batch...)
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, tt.class, f.Class, f.Detail)
			require.True(t, tt.retryAt.Equal(f.RetryAt), "got %s", f.RetryAt)
		})
	}
	t.Run("hostile answers", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		batch, truths := s.batchOfAllCategories(t)
		_, err := s.fetch(t, batch[0]) // this call caches the profile of the operator's account, so that only requests for the video get malformed answers
		require.NoError(t, err)
		sourcetest.SendControlRequest(t, s.base, "faults", `{"source":"instagram","fault":"hostile"}`)
		for range sandbox.HostileVariants {
			results, err := s.fetch(t, batch[0])
			if err != nil {
				var f *source.Failure
				require.ErrorAs(t, err, &f)
				require.Equal(t, source.Temporary, f.Class, f.Detail)
				continue
			}
			r := results[0]
			require.Contains(t, []source.Class{source.OK, source.Temporary}, r.Class, r.Detail)
			if r.Facts != nil {
				for _, count := range []*int64{r.Facts.Views, r.Facts.Likes, r.Facts.Comments} {
					if count != nil { // the sandbox may have swapped the views and the likes; a source cannot detect this, so the test accepts each true count for each field
						require.Contains(t, []int64{truths[0].Views, *truths[0].Likes, *truths[0].Comments}, *count)
					}
				}
			}
		}
	})
	t.Run("wrong token", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		batch, _ := s.batchOfAllCategories(t)
		s.Source = newSource(t, s.base+"/instagram/v25.0", nil)
		_, err := s.fetch(t, batch...)
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.AuthFailed, f.Class)
	})
}
