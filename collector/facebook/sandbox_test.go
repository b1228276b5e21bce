package facebook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
)

// hostileTurns is how many calls it takes to meet every hostile answer of the sandbox.
const hostileTurns = 13

// stage is a sandbox and a source made from the settings that it prints.
type stage struct {
	*facebook.Source
	world *sandbox.World
	base  string
	own   string // the own page's id
}

func play(t *testing.T) stage { return playAs(t, nil) }

// playAs lets a test change the options that the settings make.
func playAs(t *testing.T, change func(*facebook.Options, *sandbox.World)) stage {
	t.Helper()
	now := func() time.Time { return sourcetest.Now }
	box := sandbox.New(sandbox.Options{Now: now})
	web := httptest.NewServer(box.Handler())
	t.Cleanup(web.Close)
	settings := map[string]string{}
	for _, line := range box.Settings(web.URL) {
		name, value, _ := strings.Cut(line, "=")
		settings[name] = value
	}
	// Without compression: packing the hostile answers would take most of the test's time.
	client := fetch.New(fetch.Options{Transport: &http.Transport{DisableCompression: true}})
	t.Cleanup(client.Close)
	o := facebook.Options{BaseURL: settings["REELTALLY_FACEBOOK_BASE_URL"], Token: settings["REELTALLY_FACEBOOK_ACCESS_TOKEN"],
		AppSecret: settings["REELTALLY_FACEBOOK_APP_SECRET"], PageIDs: []string{settings["REELTALLY_FACEBOOK_PAGE_ID"]}, Client: client, Now: now}
	if change != nil {
		change(&o, box.World())
	}
	s, err := facebook.New(o)
	require.NoError(t, err)
	return stage{Source: s, world: box.World(), base: web.URL, own: settings["REELTALLY_FACEBOOK_PAGE_ID"]}
}

func (s stage) control(t *testing.T, path, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.base+"/_control/"+path, strings.NewReader(text))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	require.NoError(t, res.Body.Close())
	require.Less(t, res.StatusCode, 300, "%s %s", path, text)
}

func (s stage) fetch(t *testing.T, target collector.Target) (collector.Result, error) {
	t.Helper()
	batch := []collector.Target{target}
	results, err := s.Fetch(t.Context(), batch, s.Plan(batch)[0])
	if err != nil {
		return collector.Result{}, err
	}
	return results[0], nil
}

func TestSandbox_isCollected(t *testing.T) {
	t.Parallel()
	s := play(t)
	requireTrue := func(t *testing.T, id string, shares bool) {
		t.Helper()
		truth, ok := s.world.Video(link.Facebook, id, sourcetest.Now)
		require.True(t, ok)
		r, err := s.fetch(t, video(id))
		require.NoError(t, err)
		require.True(t, r.Sandbox)
		require.Equal(t, collector.OK, r.Class, "%s: %s", truth.Category, r.Detail)
		want := &collector.Facts{
			Views: &truth.Views, Likes: truth.Likes, Comments: truth.Comments, Title: &truth.Title, Username: &truth.Account.Handle, AccountID: &truth.Account.ID,
			AccountName: &truth.Account.Name, UploadedAt: &truth.UploadedAt, LengthSeconds: &truth.LengthSeconds, Private: new(false), HiddenStats: &truth.HiddenStats,
		}
		if shares {
			want.Shares = truth.Shares
		}
		require.Equal(t, want, r.Facts, truth.Category)
	}
	for _, category := range sandbox.Categories(link.Facebook) {
		requireTrue(t, s.world.Find(link.Facebook, category), false)
	}
	for _, id := range s.world.Uploads(link.Facebook, s.own, sourcetest.Now)[:5] {
		requireTrue(t, id, true) // reels and others
	}
	requireTrue(t, "1139247764231866", false)
	t.Run("without what is gone", func(t *testing.T) {
		t.Parallel()
		s := play(t)
		s.control(t, "clock", `{"now":"2028-01-01T00:00:00Z"}`)
		for _, category := range []sandbox.Category{sandbox.TurnsDeleted, sandbox.TurnsPrivate} {
			r, err := s.fetch(t, video(s.world.Find(link.Facebook, category)))
			require.NoError(t, err)
			require.Equal(t, collector.Missing, r.Class, r.Detail)
		}
	})
}

// asSystemUser has a role on three pages, and is given their tokens.
func asSystemUser(o *facebook.Options, w *sandbox.World) {
	o.Token, o.PageIDs = sandbox.FacebookUserToken, w.FacebookPages()
}

func TestSandbox_givesASystemUserThePagesOwnNumbers(t *testing.T) {
	t.Parallel()
	s := playAs(t, asSystemUser)
	check := func() {
		t.Helper()
		for _, page := range s.world.FacebookPages() {
			for _, id := range s.world.Uploads(link.Facebook, page, sourcetest.Now)[:3] {
				truth, ok := s.world.Video(link.Facebook, id, sourcetest.Now)
				require.True(t, ok)
				r, err := s.fetch(t, video(id))
				require.NoError(t, err)
				require.Equal(t, collector.OK, r.Class, r.Detail)
				require.Equal(t, truth.Views, *r.Facts.Views)
				require.Equal(t, truth.Shares, r.Facts.Shares)
				require.Equal(t, page, *r.Facts.AccountID)
			}
			truth, ok := s.world.Account(link.Facebook, page, sourcetest.Now)
			require.True(t, ok)
			r, err := s.fetch(t, account(truth.Handle, 500))
			require.NoError(t, err)
			require.Equal(t, collector.OK, r.Class, r.Detail)
			require.True(t, r.Account.Listed, r.Detail)
			require.Len(t, r.Account.Videos, len(s.world.Uploads(link.Facebook, page, sourcetest.Now)))
		}
	}
	check()
	s.control(t, "meta", `{"expire_page_tokens":true}`)
	check()
	r, err := s.fetch(t, video(s.world.Find(link.Facebook, sandbox.Normal)))
	require.NoError(t, err)
	require.Equal(t, collector.OK, r.Class, "a stranger's is read as well")

	without := playAs(t, func(o *facebook.Options, w *sandbox.World) { asSystemUser(o, w); o.PageIDs = nil })
	r, err = without.fetch(t, video(without.world.Uploads(link.Facebook, without.world.FacebookPages()[2], sourcetest.Now)[0]))
	require.NoError(t, err)
	require.Equal(t, collector.Unsupported, r.Class, "one video stops nobody else's")
	require.Contains(t, r.Detail, "A page access token is required")
}

func TestSandbox_takesCallsWithTheRightProofAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		secret string
		says   string
	}{
		"right": {sandbox.MetaAppSecret, ""}, "none": {"", "require an appsecret_proof argument"}, "wrong": {"another", "Invalid appsecret_proof"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := playAs(t, func(o *facebook.Options, w *sandbox.World) { asSystemUser(o, w); o.AppSecret = tt.secret })
			s.control(t, "meta", `{"require_app_secret":true}`)
			r, err := s.fetch(t, video(s.world.Uploads(link.Facebook, s.own, sourcetest.Now)[0]))
			if tt.says == "" {
				require.NoError(t, err)
				require.Equal(t, collector.OK, r.Class, r.Detail)
				return
			}
			var f *collector.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, collector.AuthFailed, f.Class)
			require.Contains(t, f.Detail, tt.says)
		})
	}
}

func TestSandbox_listsAccounts(t *testing.T) {
	t.Parallel()
	s := play(t)
	for number := range uint32(20) {
		name := s.world.Handle(link.Facebook, 1+number)
		truth, ok := s.world.Account(link.Facebook, name, sourcetest.Now)
		require.True(t, ok)
		if truth.State != sandbox.Public {
			continue
		}
		want := &collector.AccountFacts{ID: &truth.ID, Username: &truth.Handle, Name: &truth.Name, Bio: &truth.Bio, Followers: truth.Followers,
			Private: new(false), Listed: true}
		if truth.BioLink != "" {
			want.ProfileLink = &truth.BioLink
		}
		for _, id := range s.world.Uploads(link.Facebook, name, sourcetest.Now) {
			v, _ := s.world.Video(link.Facebook, id, sourcetest.Now)
			want.Videos = append(want.Videos, ingest.FoundVideo{ID: id, Link: v.Link, UploadedAt: new(store.InstantOf(v.UploadedAt))})
		}
		for _, id := range []string{"", truth.ID} { // by its name, and by its id
			target := account(name, 500)
			target.AccountID = id
			r, err := s.fetch(t, target)
			require.NoError(t, err)
			require.Equal(t, collector.OK, r.Class, r.Detail)
			require.Equal(t, want, r.Account)
		}
	}
	for _, category := range []sandbox.AccountCategory{sandbox.AccountGone, sandbox.AccountPrivate} {
		r, err := s.fetch(t, account(s.world.FindAccount(link.Facebook, category), 30))
		require.NoError(t, err)
		require.Equal(t, collector.Missing, r.Class, r.Detail)
	}
}

func TestSandbox_fails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault   string
		class   collector.Class
		retryAt time.Time
	}{
		"rate limited with Retry-After":    {`"rate_limited","retry_after":30`, collector.RateLimited, sourcetest.Now.Add(30 * time.Second)},
		"rate limited without Retry-After": {`"rate_limited"`, collector.RateLimited, sourcetest.Now.Add(15 * time.Minute)},
		"business limit used up":           {`"quota_spent"`, collector.RateLimited, sourcetest.Now.Add(5 * time.Minute)},
		"server error":                     {`"server_error"`, collector.Temporary, time.Time{}},
		"truncated":                        {`"truncated"`, collector.Temporary, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t)
			target := video(s.world.Find(link.Facebook, sandbox.Normal))
			s.control(t, "faults", `{"source":"facebook","fault":`+tt.fault+`}`)
			_, err := s.fetch(t, target)
			var f *collector.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, tt.class, f.Class, f.Detail)
			require.True(t, tt.retryAt.Equal(f.RetryAt), "got %s", f.RetryAt)
		})
	}
	t.Run("hostile", func(t *testing.T) {
		t.Parallel()
		s := play(t)
		target := video(s.world.Find(link.Facebook, sandbox.Normal))
		truth, _ := s.world.Video(link.Facebook, target.ExternalID, sourcetest.Now)
		s.control(t, "faults", `{"source":"facebook","fault":"hostile"}`)
		for range hostileTurns {
			r, err := s.fetch(t, target)
			if err != nil {
				var f *collector.Failure
				require.ErrorAs(t, err, &f)
				require.Equal(t, collector.Temporary, f.Class, f.Detail)
				continue
			}
			require.Contains(t, []collector.Class{collector.OK, collector.Temporary}, r.Class, r.Detail)
			if r.Facts != nil {
				for _, count := range []*int64{r.Facts.Views, r.Facts.Likes, r.Facts.Comments} {
					if count != nil { // though perhaps in each other's place, which no source can see
						require.Contains(t, []int64{truth.Views, *truth.Likes, *truth.Comments}, *count)
					}
				}
			}
		}
	})
	t.Run("wrong token", func(t *testing.T) {
		t.Parallel()
		s := play(t)
		target := video(s.world.Find(link.Facebook, sandbox.Normal))
		s.Source = newSource(t, s.base+"/facebook/v25.0", nil)
		_, err := s.fetch(t, target)
		var f *collector.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, collector.AuthFailed, f.Class)
	})
}
