package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// trackVideoAndAccount tracks a video and an account. For the path of each refresh operation, the
// returned map contains an id and two links.
func trackVideoAndAccount(c *caller) map[string][]string {
	video, account := c.track(tiktokLink), c.trackAccount(map[string]any{"link": accountLink}).AccountID
	return map[string][]string{
		"/refresh/videos":   {video.String(), tiktokLink, "m.tiktok.com/@Northwind.Studio/video/7338812345678901234?x=1"},
		"/refresh/accounts": {account.String(), accountLink, "tiktok.com/@Northwind.Studio/?x=1"},
	}
}

// fetchDueItems does the work of a collector: it takes all due videos and accounts from the queue, and stores made-up counts for them.
func fetchDueItems(a *app) {
	a.t.Helper()
	a.fetch(factsWithViews(5))
	a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Followers: new(int64(1))} })
}

// Requirements in docs/coverage.md: 4-14
func TestRefresh_schedulesAFetchOnlyIfTheLastFetchIsFourHoursOld(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		for _, path := range []string{"/refresh/videos", "/refresh/accounts"} {
			c := a.newCaller(t, store.TierPremium)
			for i, name := range trackVideoAndAccount(c)[path] {
				refresh := func() response {
					return c.send(http.MethodPost, path+[]string{"", "/"}[i%2], map[string]any{"link": name})
				}
				fetchDueItems(a)
				at := a.Clock.Now()
				a.Clock.Advance(4*time.Hour - time.Second)
				got := decode[client.RefreshNotDue](refresh().requireStatus(http.StatusOK))
				require.NotEmpty(t, got.Message)
				require.True(t, got.LatestUpdatedAt.Equal(at), "latest_updated_at is %s, but must be %s", got.LatestUpdatedAt, at)
				require.True(t, got.RefreshAfter.Equal(at.Add(4*time.Hour)))

				a.Clock.Advance(time.Second)
				for range 2 { // the second request gets the same response as the first, because there was no fetch between them
					scheduled := refresh().requireStatus(http.StatusAccepted)
					require.Empty(t, scheduled.body)
					require.Empty(t, scheduled.Header.Get("Content-Type"))
				}
			}
		}
	})
}

// TestRefresh_hidesTheFetchTimeFromLowerTiers requires that the response to a refresh hides the exact time of the last fetch from callers of
// the tiers "limited" and "basic".
func TestRefresh_hidesTheFetchTimeFromLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		for _, tier := range []store.Tier{store.TierLimited, store.TierBasic} {
			for _, path := range []string{"/refresh/videos", "/refresh/accounts"} {
				c := a.newCaller(t, tier)
				names := trackVideoAndAccount(c)[path]
				fetchDueItems(a)
				at := a.Clock.Now()
				a.Clock.Advance(17 * time.Minute)
				got := decode[client.RefreshNotDue](c.send(http.MethodPost, path, map[string]any{"link": names[0]}).requireStatus(http.StatusOK))
				require.Nil(t, got.LatestUpdatedAt)
				require.Equal(t, got.RefreshAfter.Truncate(time.Hour), got.RefreshAfter, "refresh_after must be rounded to a full hour")
				require.False(t, got.RefreshAfter.Before(at.Add(4*time.Hour)))
				require.Less(t, got.RefreshAfter.Sub(at), 5*time.Hour)
				a.Clock.Advance(got.RefreshAfter.Sub(a.Clock.Now()))
				c.send(http.MethodPost, path, map[string]any{"link": names[0]}).requireStatus(http.StatusAccepted)
			}
		}
	})
}

func TestRefresh_givesTheRefreshedItemTheHighestPriority(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		trackVideoAndAccount(c)
		c.track(videoURL(1))
		c.trackAccount(map[string]any{"link": "https://www.tiktok.com/@other"})
		fetchDueItems(a)
		a.Clock.Advance(5 * time.Hour)
		c.send(http.MethodPost, "/refresh/videos", map[string]any{"link": tiktokLink}).requireStatus(http.StatusAccepted)
		c.send(http.MethodPost, "/refresh/accounts", map[string]any{"link": accountLink}).requireStatus(http.StatusAccepted)
		for kind, want := range map[queue.Kind]string{"video": tiktokLink, "account": accountLink} {
			claim, err := a.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, kind, 10, time.Minute, queue.LaneInteractive))
			require.NoError(t, err)
			require.Len(t, claim.Targets, 1, "the interactive lane must contain one item, the refreshed one")
			require.Equal(t, want, claim.Targets[0].Link)
		}
	})
}

// Requirements in docs/coverage.md: 4-14
func TestRefresh_refusesUntrackedItems(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for path, names := range trackVideoAndAccount(c) {
		resource := path[len("/refresh"):]
		c.send(http.MethodDelete, resource, map[string]any{"id": names[0]}).requireStatus(http.StatusOK)
		untracked := map[string]string{"/videos": videoURL(9), "/accounts": "https://www.tiktok.com/@nobody"}[resource]
		for _, name := range append(names, unknownID, "00000000-0000-0000-0000-000000000000", "nonsense", "https://example.com/", untracked,
			"https://vm.tiktok.com/ZMdead0001/") {
			p := c.send(http.MethodPost, path, map[string]any{"link": name}).requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Contains(t, p.Detail, name)
		}
		a.platforms.redirect("https://vm.tiktok.com/ZMdown0001/", "")
		c.send(http.MethodPost, path, map[string]any{"link": "https://vm.tiktok.com/ZMdown0001/"}).requireProblem(http.StatusServiceUnavailable, server.CodeLinkUnresolved)
		for name, body := range map[string]any{"a body without a link": map[string]any{}, "an empty link": map[string]any{"link": ""}, "a number as a link": map[string]any{"link": 7}, "an id instead of a link": map[string]any{"id": names[0]}} {
			require.NotEmpty(t, c.send(http.MethodPost, path, body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest).Errors, name)
		}
		for _, wrong := range []string{path + "//", path + "/x", "/refresh/", "/refresh"} {
			c.send(http.MethodPost, wrong, map[string]any{"link": names[0]}).requireStatus(http.StatusNotFound)
		}
		c.send(http.MethodGet, path+"/", nil).requireProblem(http.StatusMethodNotAllowed, server.CodeMethodNotAllowed)
	}
}

func TestRefresh_refusesItemsThatAreOnlySavedUntilASubscriptionBegins(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionNone))
		accounts := make([]string, 6)
		for i := range accounts {
			accounts[i] = fmt.Sprintf("https://www.tiktok.com/@saved%d", i)
		}
		c.trackVideos(http.StatusOK, videoURLs(1, 6))
		c.send(http.MethodPost, "/accounts/bulk", map[string]any{"links": accounts}).requireStatus(http.StatusOK)
		saved := map[string]string{"/refresh/videos": videoURLs(6, 6)[0], "/refresh/accounts": accounts[5]}
		for path, l := range saved {
			require.Contains(t, c.send(http.MethodPost, path, map[string]any{"link": l}).requireProblem(http.StatusConflict, server.CodeConflict).Detail, "subscription")
		}
		const targets = "SELECT COUNT(*) FROM fetch_targets"
		require.Equal(t, []int64{10}, storetest.Column[int64](t, a.DB, targets))

		// The subscription has begun, but the saved items are not in the queue yet.
		a.Exec(t, "UPDATE organisations SET subscription = ?", store.SubscriptionActive)
		for path, l := range saved {
			c.send(http.MethodPost, path, map[string]any{"link": l}).requireStatus(http.StatusAccepted)
		}
		require.Equal(t, []int64{12}, storetest.Column[int64](t, a.DB, targets))
		require.Equal(t, []int64{0}, storetest.Column[int64](t, a.DB, "SELECT COUNT(*) FROM videos WHERE pending"))
	})
}

func TestRefresh_refusesLinksOfTheWrongKind(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		trackVideoAndAccount(c)
		for path, wrong := range map[string]string{"/refresh/videos": accountLink, "/refresh/accounts": tiktokLink} {
			c.send(http.MethodPost, path, map[string]any{"link": wrong}).requireProblem(http.StatusBadRequest, server.CodeWrongKind)
			require.Contains(t, sharedContract().doc.Paths.Value(path).Post.Description, "`wrong_kind`")
		}
	})
}
