package facebook_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/facebook"
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
	*facebook.Source
	world *sandbox.World
	base  string
	own   string // the id of the operator's page
}

func startSandbox(t *testing.T) sandboxTest { return startSandboxWith(t, nil) }

// startSandboxWith starts a sandbox and returns a source for it. The function `change` can modify the source's options and the sandbox's data. The
// function can be nil.
func startSandboxWith(t *testing.T, change func(*facebook.Options, *sandbox.World)) sandboxTest {
	t.Helper()
	box := sourcetest.StartSandbox(t)
	now := func() time.Time { return sourcetest.Now }
	o := facebook.Options{BaseURL: box.Env["REELTALLY_FACEBOOK_BASE_URL"], Token: box.Env["REELTALLY_FACEBOOK_ACCESS_TOKEN"],
		AppSecret: box.Env["REELTALLY_FACEBOOK_APP_SECRET"], PageIDs: []string{box.Env["REELTALLY_FACEBOOK_PAGE_ID"]}, Client: box.Client, Now: now}
	if change != nil {
		change(&o, box.World())
	}
	s, err := facebook.New(o)
	require.NoError(t, err)
	return sandboxTest{Source: s, world: box.World(), base: box.URL, own: box.Env["REELTALLY_FACEBOOK_PAGE_ID"]}
}

func (s sandboxTest) fetch(t *testing.T, target queue.Target) (source.Result, error) {
	t.Helper()
	batch := []queue.Target{target}
	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	if err != nil {
		return source.Result{}, err
	}
	return results[0], nil
}

func TestSource_fetchesVideosFromSandbox(t *testing.T) {
	t.Parallel()
	s := startSandbox(t)
	requireTruth := func(t *testing.T, id string, shares bool) {
		t.Helper()
		truth, ok := s.world.Video(link.Facebook, id, sourcetest.Now)
		require.True(t, ok)
		r, err := s.fetch(t, videoTarget(id))
		require.NoError(t, err)
		require.True(t, r.Sandbox)
		require.Equal(t, source.OK, r.Class, "%s: %s", truth.Category, r.Detail)
		want := &source.Facts{
			Views: &truth.Views, Likes: truth.Likes, Comments: truth.Comments, Title: &truth.Title, Username: &truth.Account.Handle, AccountID: &truth.Account.ID,
			AccountName: &truth.Account.Name, UploadedAt: &truth.UploadedAt, LengthSeconds: &truth.LengthSeconds, Private: new(false), HiddenStats: &truth.HiddenStats,
		}
		if shares {
			want.Shares = truth.Shares
		}
		require.Equal(t, want, r.Facts, truth.Category)
	}
	for _, category := range sandbox.Categories(link.Facebook) {
		requireTruth(t, s.world.Find(link.Facebook, category), false)
	}
	for _, id := range s.world.Uploads(link.Facebook, s.own, sourcetest.Now)[:5] {
		requireTruth(t, id, true) // the source returns the number of shares only for videos of the operator's page
	}
	requireTruth(t, "1139247764231866", false)
	t.Run("classifies deleted and private videos", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		sourcetest.SendControlRequest(t, s.base, "clock", `{"now":"2028-01-01T00:00:00Z"}`)
		for _, category := range []sandbox.Category{sandbox.BecomesDeleted, sandbox.BecomesPrivate} {
			r, err := s.fetch(t, videoTarget(s.world.Find(link.Facebook, category)))
			require.NoError(t, err)
			require.Equal(t, source.Missing, r.Class, r.Detail)
		}
	})
}

// useSystemUserToken sets the token to that of a system user with a role on three pages. It sets the page ids to the ids of these pages.
func useSystemUserToken(o *facebook.Options, w *sandbox.World) {
	o.Token, o.PageIDs = sandbox.FacebookUserToken, w.FacebookPages()
}

func TestSource_fetchesConfiguredPagesWithTokenOfSystemUser(t *testing.T) {
	t.Parallel()
	s := startSandboxWith(t, useSystemUserToken)
	check := func() {
		t.Helper()
		for _, page := range s.world.FacebookPages() {
			for _, id := range s.world.Uploads(link.Facebook, page, sourcetest.Now)[:3] {
				truth, ok := s.world.Video(link.Facebook, id, sourcetest.Now)
				require.True(t, ok)
				r, err := s.fetch(t, videoTarget(id))
				require.NoError(t, err)
				require.Equal(t, source.OK, r.Class, r.Detail)
				require.Equal(t, truth.Views, *r.Facts.Views)
				require.Equal(t, truth.Shares, r.Facts.Shares)
				require.Equal(t, page, *r.Facts.AccountID)
			}
			truth, ok := s.world.Account(link.Facebook, page, sourcetest.Now)
			require.True(t, ok)
			r, err := s.fetch(t, accountTarget(truth.Handle, 500))
			require.NoError(t, err)
			require.Equal(t, source.OK, r.Class, r.Detail)
			require.True(t, r.Account.Listed, r.Detail)
			require.Len(t, r.Account.Videos, len(s.world.Uploads(link.Facebook, page, sourcetest.Now)))
		}
	}
	check()
	sourcetest.SendControlRequest(t, s.base, "meta", `{"expire_page_tokens":true}`)
	check()
	r, err := s.fetch(t, videoTarget(s.world.Find(link.Facebook, sandbox.Normal)))
	require.NoError(t, err)
	require.Equal(t, source.OK, r.Class, "videos of other pages must be readable too")

	without := startSandboxWith(t, func(o *facebook.Options, w *sandbox.World) { useSystemUserToken(o, w); o.PageIDs = nil })
	r, err = without.fetch(t, videoTarget(without.world.Uploads(link.Facebook, without.world.FacebookPages()[2], sourcetest.Now)[0]))
	require.NoError(t, err)
	require.Equal(t, source.Unsupported, r.Class, "the failure must concern only one video")
	require.Contains(t, r.Detail, "A page access token is required")
}

func TestSource_sendsAppSecretProofIfSandboxRequiresIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		secret string
		detail string
	}{
		"right": {sandbox.MetaAppSecret, ""}, "none": {"", "require an appsecret_proof argument"}, "wrong": {"another", "Invalid appsecret_proof"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSandboxWith(t, func(o *facebook.Options, w *sandbox.World) { useSystemUserToken(o, w); o.AppSecret = tt.secret })
			sourcetest.SendControlRequest(t, s.base, "meta", `{"require_app_secret":true}`)
			r, err := s.fetch(t, videoTarget(s.world.Uploads(link.Facebook, s.own, sourcetest.Now)[0]))
			if tt.detail == "" {
				require.NoError(t, err)
				require.Equal(t, source.OK, r.Class, r.Detail)
				return
			}
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, source.AuthFailed, f.Class)
			require.Contains(t, f.Detail, tt.detail)
		})
	}
}

func TestSource_fetchesAccountsFromSandbox(t *testing.T) {
	t.Parallel()
	s := startSandbox(t)
	for number := range uint32(20) {
		name := s.world.Handle(link.Facebook, 1+number)
		truth, ok := s.world.Account(link.Facebook, name, sourcetest.Now)
		require.True(t, ok)
		if truth.State != sandbox.Public {
			continue
		}
		want := &source.AccountFacts{ID: &truth.ID, Username: &truth.Handle, Name: &truth.Name, Bio: &truth.Bio, Followers: truth.Followers,
			Private: new(false), Listed: true}
		if truth.BioLink != "" {
			want.ProfileLink = &truth.BioLink
		}
		for _, id := range s.world.Uploads(link.Facebook, name, sourcetest.Now) {
			v, _ := s.world.Video(link.Facebook, id, sourcetest.Now)
			want.Videos = append(want.Videos, ingest.FoundVideo{ID: id, Link: v.Link, UploadedAt: new(store.InstantOf(v.UploadedAt))})
		}
		for _, id := range []string{"", truth.ID} { // if id is "", the account is requested by its handle
			target := accountTarget(name, 500)
			target.AccountID = id
			r, err := s.fetch(t, target)
			require.NoError(t, err)
			require.Equal(t, source.OK, r.Class, r.Detail)
			require.Equal(t, want, r.Account)
		}
	}
	for _, category := range []sandbox.AccountCategory{sandbox.AccountGone, sandbox.AccountPrivate} {
		r, err := s.fetch(t, accountTarget(s.world.FindAccount(link.Facebook, category), 30))
		require.NoError(t, err)
		require.Equal(t, source.Missing, r.Class, r.Detail)
	}
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
			target := videoTarget(s.world.Find(link.Facebook, sandbox.Normal))
			sourcetest.SendControlRequest(t, s.base, "faults", `{"source":"facebook","fault":`+tt.fault+`}`)
			_, err := s.fetch(t, target)
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, tt.class, f.Class, f.Detail)
			require.True(t, tt.retryAt.Equal(f.RetryAt), "got %s", f.RetryAt)
		})
	}
	t.Run("hostile answers", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		target := videoTarget(s.world.Find(link.Facebook, sandbox.Normal))
		truth, _ := s.world.Video(link.Facebook, target.ExternalID, sourcetest.Now)
		sourcetest.SendControlRequest(t, s.base, "faults", `{"source":"facebook","fault":"hostile"}`)
		for range sandbox.HostileVariants {
			r, err := s.fetch(t, target)
			if err != nil {
				var f *source.Failure
				require.ErrorAs(t, err, &f)
				require.Equal(t, source.Temporary, f.Class, f.Detail)
				continue
			}
			require.Contains(t, []source.Class{source.OK, source.Temporary}, r.Class, r.Detail)
			if r.Facts != nil {
				for _, count := range []*int64{r.Facts.Views, r.Facts.Likes, r.Facts.Comments} {
					// The platform may have swapped the values of two counts, which the source cannot notice. The test accepts such values.
					if count != nil {
						require.Contains(t, []int64{truth.Views, *truth.Likes, *truth.Comments}, *count)
					}
				}
			}
		}
	})
	t.Run("wrong token", func(t *testing.T) {
		t.Parallel()
		s := startSandbox(t)
		target := videoTarget(s.world.Find(link.Facebook, sandbox.Normal))
		s.Source = newSource(t, s.base+"/facebook/v25.0", nil)
		_, err := s.fetch(t, target)
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.AuthFailed, f.Class)
	})
}
