package collector_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// metaSources returns the sources of Instagram's and Facebook's Graph API, configured with the settings that the sandbox prints. The
// sources log their calls.
func (w *testSystem) metaSources() []source.Source {
	w.t.Helper()
	settings := w.sandbox.Settings(w.url)
	client := fetch.New(fetch.Options{Timeout: 5 * time.Second, Transport: noKeepAlive{}, Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	ig, err := instagram.New(instagram.Options{BaseURL: settings["REELTALLY_INSTAGRAM_BASE_URL"], Token: settings["REELTALLY_INSTAGRAM_ACCESS_TOKEN"], AppSecret: settings["REELTALLY_INSTAGRAM_APP_SECRET"],
		AccountID: settings["REELTALLY_INSTAGRAM_ACCOUNT_ID"], Client: client, Now: w.db.Clock.Now})
	require.NoError(w.t, err)
	fb, err := facebook.New(facebook.Options{BaseURL: settings["REELTALLY_FACEBOOK_BASE_URL"], Token: settings["REELTALLY_FACEBOOK_ACCESS_TOKEN"], AppSecret: settings["REELTALLY_FACEBOOK_APP_SECRET"],
		PageIDs: []string{settings["REELTALLY_FACEBOOK_PAGE_ID"]}, Client: client, Now: w.db.Clock.Now})
	require.NoError(w.t, err)
	return []source.Source{ig, fb}
}

// requireNoSecretsLogged checks that the log contains calls of the sources, but no token or secret.
func (w *testSystem) requireNoSecretsLogged() {
	w.t.Helper()
	require.Contains(w.t, w.log.String(), "got an answer from a source")
	for _, token := range []string{sandbox.InstagramToken, sandbox.FacebookToken, sandbox.FacebookUserToken, sandbox.MetaAppSecret, "sandbox-facebook-page", "appsecret_proof"} {
		require.NotContains(w.t, w.log.String(), token)
	}
}

func TestMetaSources_countsAndDetailsOfVideosAreStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		platforms := w.sandbox.World()
		ig, ok := platforms.Video(link.Instagram, platforms.Find(link.Instagram, sandbox.Normal), db.Clock.Now())
		require.True(t, ok)
		hidden, ok := platforms.Video(link.Instagram, platforms.Find(link.Instagram, sandbox.HiddenLikes), db.Clock.Now())
		require.True(t, ok)
		fb := platforms.Find(link.Facebook, sandbox.Normal)
		tracked := w.trackVideos("https://www.instagram.com/"+ig.Account.Handle+"/reel/"+ig.ID+"/", "https://www.instagram.com/"+hidden.Account.Handle+"/p/"+hidden.ID+"/",
			"https://www.facebook.com/watch/?v="+fb)
		w.startCollector("meta")
		w.waitForCounts(tracked)
		for i, p := range []link.Platform{link.Instagram, link.Instagram, link.Facebook} {
			v := w.video(tracked[i])
			want, ok := platforms.Video(p, v.ExternalID, v.LatestUpdatedAt.Time())
			require.True(t, ok)
			require.Equal(t, want.Views, *v.Latest.Views)
			require.Equal(t, want.Likes, v.Latest.Likes)
			require.Equal(t, want.Comments, v.Latest.Comments)
			require.Equal(t, want.HiddenStats, v.HiddenStats)
			require.Nil(t, v.Latest.Shares, "the shares must be missing, because only the owner of a video gets them")
			require.Nil(t, v.Latest.Bookmarks)
			require.Equal(t, want.Title, v.Title)
			require.Equal(t, want.Account.Handle, v.Username)
			require.Equal(t, store.DateOf(want.UploadedAt), *v.UploadedAt)
			require.NotNil(t, v.LinkedAccountID)
		}
		w.requireNoSecretsLogged()
	})
}

func TestMetaSources_profilesAndVideosOfAccountsAreStored(t *testing.T) {
	t.Parallel()
	for _, p := range []link.Platform{link.Instagram, link.Facebook} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				w := newTestSystem(t, db)
				platforms := w.sandbox.World()
				handle := w.accountWithUploads(p, 33)
				ref := w.trackAccount(w.accountLink(p, handle), store.TrackLatest30)
				w.startCollector("meta")
				w.waitForAccountFetch(ref, 0)
				uploads := platforms.Uploads(p, handle, db.Clock.Now())
				w.waitForFetchedVideos(ref, uploads[:30])
				a := w.storedAccount(ref)
				want, ok := platforms.Account(p, handle, a.CheckedAt.Time())
				require.True(t, ok)
				require.Equal(t, want.Handle, a.Username)
				require.Equal(t, want.Name, *a.Name)
				require.Equal(t, want.Bio, *a.Bio)
				require.Equal(t, want.Followers, a.LatestFollowersCount)
				require.False(t, a.Private)

				db.Clock.Advance(untilAllAccountsAreDue)
				w.waitForAccountFetch(ref, store.InstantOf(db.Clock.Now()))
				later := platforms.Uploads(p, handle, db.Clock.Now())
				w.waitForFetchedVideos(ref, append(later[:len(later)-len(uploads):len(later)-len(uploads)], uploads[:30]...))
				w.requireNoSecretsLogged()
			})
		})
	}
}

// A video that the Graph API does not show is fetched from a vendor. If the vendor is paused, the video waits for the end of the pause.
func TestMetaSources_vendorIsAskedForVideosThatTheGraphAPIDoesNotShow(t *testing.T) {
	t.Parallel()
	w := newTestSystem(t, storetest.New(t, "sqlite"))
	w.startFastClock()
	otherAccount := w.sandbox.World().Find(link.Instagram, sandbox.Normal)
	w.startCollector("meta", "sandbox")
	w.callControlInterface(http.MethodPut, "/_control/faults", map[string]any{"source": "vendor", "fault": "rate_limited", "retry_after": 600})
	w.trackVideos("https://www.tiktok.com/@/video/" + w.sandbox.World().Find(link.TikTok, sandbox.Normal))
	w.waitForLog("source paused", "source=vendor:sandbox", "class=rate_limited")
	tracked := w.trackVideos("https://www.instagram.com/reel/"+otherAccount+"/", "https://www.instagram.com/natgeo/reel/DCXkB8LpR2q/")
	w.waitForLog("no numbers stored for the target", "source=instagram", "id="+otherAccount, "class=unsupported", "instagram.com/USER/reel/CODE/")
	w.waitForLog("no numbers stored for the target", "source=instagram", "id=DCXkB8LpR2q", "class=unconfirmed")
	w.callControlInterface(http.MethodDelete, "/_control/faults", nil)
	w.waitForCounts(tracked)
	for _, tr := range tracked {
		v := w.video(tr)
		correct, ok := w.sandbox.World().Video(link.Instagram, v.ExternalID, v.LatestUpdatedAt.Time())
		require.True(t, ok)
		require.Equal(t, correct.Views, *v.Latest.Views)
	}
	w.requireNoSecretsLogged()
}

// If no vendor is configured, a video is gone after the Graph API has answered three times that its confirmed
// account does not have it.
func TestMetaSources_videoIsGoneAfterThreeNotFoundAnswers(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	c := newHandleTest(t, db, link.Instagram, (*testSystem).metaSources)
	c.newTenant("https://www.instagram.com/natgeo/reel/DCXkB8LpR2q/")
	db.Exec(t, "UPDATE fetch_targets SET handle = 'natgeo'")
	for range 2 {
		c.advanceAndFetch()
		require.Equal(t, []string{"active"}, storetest.Column[string](t, db, "SELECT state FROM fetch_targets"), "the video must stay active after the first two answers")
	}
	c.advanceAndFetch()
	require.Equal(t, []string{"gone"}, storetest.Column[string](t, db, "SELECT state FROM fetch_targets"))
}
