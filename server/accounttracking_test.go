package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

const latest30Kept = "An account that is already tracked keeps its tracking type latest_30. To change the type, stop the account and track it again."

// Requirements in docs/coverage.md: 4-06
func TestTrackAccount_returnsTheSameAccountForEveryFormOfTheLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		first := c.trackAccount(map[string]any{"link": accountLink})
		require.Nil(t, first.Error)
		require.Equal(t, "https://app.example.test/account/tiktok/"+first.AccountID.String(), first.DirectURL)
		got := c.account(first.AccountID.String())
		require.Equal(t, "latest_30", *got.TrackingType)
		require.Equal(t, accountLink, got.AccountLink)

		t.Run("the second request has another tracking type", func(t *testing.T) {
			again := c.trackAccount(map[string]any{"link": "m.tiktok.com/@Northwind.Studio?lang=de", "tracking_type": "all"})
			require.Equal(t, first.AccountID, again.AccountID)
			require.Equal(t, first.DirectURL, again.DirectURL)
			require.Contains(t, *again.Error, "already")
			require.Equal(t, "latest_30", *c.account(accountLink).TrackingType)
			require.Equal(t, []string{latest30Kept}, again.Warnings)
			require.Empty(t, c.trackAccount(map[string]any{"link": accountLink, "tracking_type": "latest_30"}).Warnings)
			require.Empty(t, c.trackAccount(map[string]any{"link": accountLink}).Warnings)
		})
		t.Run("one of collection_ids and collection_names is null, and the other is empty", func(t *testing.T) {
			c.send(http.MethodPost, "/accounts", `{"link":"https://www.tiktok.com/@one","collection_ids":null,"collection_names":[]}`).requireStatus(http.StatusOK)
			c.send(http.MethodPost, "/accounts", `{"link":"https://www.tiktok.com/@two","collection_ids":[],"collection_names":null}`).requireStatus(http.StatusOK)
		})
	})
}

// fetchedAccountWithVideos returns made-up data of a fetched account with n videos. On each of the n
// days before today, one video was uploaded.
func fetchedAccountWithVideos(a *app, n int) ingest.AccountFacts {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = n - i
	}
	return fetchedAccount(a, "42", 1, numbers...)
}

// Requirements in docs/coverage.md: 4-06
func TestTrackAccount_trackingTypeLimitsTheTrackedVideos(t *testing.T) {
	t.Parallel()
	for kind, found := range map[string]int{"latest_30": 30, "latest_200": 200, "new_only": 0, "all": 220, "": 30} {
		eachDatabase(t, func(t *testing.T, a *app) {
			c := a.newCaller(t, store.TierPremium)
			body := map[string]any{"link": accountLink}
			if kind != "" {
				body["tracking_type"] = kind
			}
			c.trackAccount(body)
			a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccountWithVideos(a, 220) })
			require.Len(t, c.accountVideos(accountLink, ""), found, kind)
			require.Equal(t, int64(found), *c.account(accountLink).TotalVideosTracked)

			a.Clock.Advance(36 * time.Hour)
			c.send(http.MethodPost, "/refresh/accounts", map[string]any{"link": accountLink}).requireStatus(http.StatusAccepted)
			a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccountWithVideos(a, 221) })
			require.Len(t, c.accountVideos(accountLink, ""), found+1, "tracking type %q: a video that was uploaded later must be tracked", kind)
		})
	}
}

func TestTrackAccount_addsTheAccountToTheGivenCollections(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.trackAccount(map[string]any{"link": accountLink, "collection_names": []string{"Launch"}})
		got := c.account(accountLink)
		require.Equal(t, []string{"Launch"}, got.LabelNames)
		id := c.track(tiktokLink)
		require.Equal(t, []string{"Launch"}, c.video(id.String()).LabelNames, "the collection of an account must contain the videos of the account")

		c.trackAccount(map[string]any{"link": "https://www.tiktok.com/@other", "collection_ids": got.LabelIds, "collection_names": []string{"Launch"}})
		require.Len(t, c.accounts("collections=Launch"), 2)

		p := c.send(http.MethodPost, "/accounts", map[string]any{"link": "https://www.tiktok.com/@third", "collection_ids": []string{got.LabelIds[0].String(), unknownID}}).
			requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Contains(t, p.Detail, unknownID)
		require.Len(t, p.Errors, 1)
		require.Equal(t, "/collection_ids/1", *p.Errors[0].Pointer)
		require.Len(t, c.accounts("include_linked=true"), 2, "if a collection is unknown, the server must track none of the links")
	})
}

func TestTrackAccount_refusesLinksThatAreNotAccounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for raw, code := range map[string]server.Code{
		"not a link at all":                          server.CodeInvalidURL,
		"https://example.com/studio":                 server.CodeUnsupportedPlatform,
		"https://www.tiktok.com/about":               server.CodeUnsupportedLink,
		tiktokLink:                                   server.CodeWrongKind,
		"https://youtu.be/dQw4w9WgXcQ":               server.CodeWrongKind,
		"https://www.instagram.com/reel/DCXkB8LpR2q": server.CodeWrongKind,
	} {
		p := c.send(http.MethodPost, "/accounts", map[string]any{"link": raw}).requireProblem(http.StatusBadRequest, code)
		require.Equal(t, "/link", *p.Errors[0].Pointer, raw)
		require.Equal(t, string(code), p.Errors[0].Code)
	}
	require.Contains(t, c.send(http.MethodPost, "/accounts", map[string]any{"link": tiktokLink}).problem(http.StatusBadRequest).Detail, "this operation needs the link of an account")
	for name, body := range map[string]any{
		"a body without a link":               map[string]any{},
		"null as the link":                    map[string]any{"link": nil},
		"an empty link":                       map[string]any{"link": ""},
		"a link that is too long":             map[string]any{"link": "https://www.tiktok.com/@" + strings.Repeat("a", 2048)},
		"an unknown tracking type":            map[string]any{"link": accountLink, "tracking_type": "some"},
		"null as the tracking type":           map[string]any{"link": accountLink, "tracking_type": nil},
		"an invalid collection id":            map[string]any{"link": accountLink, "collection_ids": []string{"x"}},
		"a blank collection name":             map[string]any{"link": accountLink, "collection_names": []string{"  "}},
		"label_ids instead of collection_ids": map[string]any{"link": accountLink, "label_ids": []string{}},
	} {
		require.NotEmpty(t, c.send(http.MethodPost, "/accounts", body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest).Errors, name)
	}
	require.Empty(t, c.accounts("include_linked=true&include_removed=true"))
}

func TestTrackAccount_resolvesShortLinks(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		const short = "https://vm.tiktok.com/ZMaccount1/"
		c := a.newCaller(t, store.TierPremium)
		a.platforms.redirect(short, "")
		c.send(http.MethodPost, "/accounts", map[string]any{"link": short}).requireProblem(http.StatusServiceUnavailable, server.CodeLinkUnresolved)
		c.send(http.MethodPost, "/accounts", map[string]any{"link": "https://vm.tiktok.com/ZMdead0001/"}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		a.platforms.redirect("https://vm.tiktok.com/ZMvideo001/", tiktokLink)
		c.send(http.MethodPost, "/accounts", map[string]any{"link": "https://vm.tiktok.com/ZMvideo001/"}).requireProblem(http.StatusBadRequest, server.CodeWrongKind)
		a.platforms.redirect(short, accountLink+"?_t=8")
		id := c.trackAccount(map[string]any{"link": short}).AccountID
		require.Equal(t, id, c.account(accountLink).AccountID)
		c.send(http.MethodDelete, "/accounts", map[string]any{"id": short}).requireStatus(http.StatusOK)
	})
}

// TestTrackAccount_concurrentCallsOfTheGeneratedClientCreateOneAccount sends the same link 64 times concurrently. The requests must create
// one account, and 63 of the responses must report that the account was already tracked.
func TestTrackAccount_concurrentCallsOfTheGeneratedClientCreateOneAccount(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		requireOneCreated(t, func() (uuid.UUID, bool, error) {
			got, err := c.TrackAccount(t.Context(), client.TrackAccountOptions{Link: accountLink, CollectionNames: []string{"Launch"}})
			if err != nil {
				return uuid.Nil, false, err
			}
			return got.AccountID, got.Error == nil, nil
		})
		require.Len(t, c.accounts("include_linked=true"), 1)
		require.Equal(t, []string{"Launch"}, c.account(accountLink).LabelNames)
		require.Equal(t, int64(1), c.statistics("accounts").Total)
	})
}

// Requirements in docs/coverage.md: 4-07
func TestStopAccount_keepsTheCollectedDataReadable(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for n, stop := range []func(id uuid.UUID) response{
			func(id uuid.UUID) response { return c.send(http.MethodDelete, "/accounts/"+id.String(), nil) },
			func(id uuid.UUID) response {
				return c.send(http.MethodDelete, "/accounts/"+strings.ToUpper(id.String()), nil)
			},
			func(id uuid.UUID) response { return c.send(http.MethodDelete, "/accounts", map[string]any{"id": id}) },
			func(uuid.UUID) response {
				return c.send(http.MethodDelete, "/accounts", map[string]any{"id": accountLink + "?x=1"})
			},
		} {
			made := c.trackAccount(map[string]any{"link": accountLink})
			require.Nil(t, made.Error)
			a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccount(a, "42", int64(n), 1) })
			a.fetch(factsWithViews(5))
			require.NotEmpty(t, decode[client.Message](stop(made.AccountID).requireStatus(http.StatusOK)).Message)

			got := c.account(made.AccountID.String())
			require.True(t, got.Removed)
			require.Equal(t, int64(n), *got.LatestFollowersCount)
			require.NotEmpty(t, c.accountHistory(accountLink, ""))
			require.Empty(t, c.accounts(""))
			require.Len(t, c.accounts("include_removed=true"), 1)
			stop(made.AccountID).requireProblem(http.StatusNotFound, server.CodeNotFound)
			a.Clock.Advance(24 * time.Hour)
		}
		require.False(t, c.account(c.trackAccount(map[string]any{"link": accountLink}).AccountID.String()).Removed, "a stopped account that is tracked again must keep its id")
	})
}

// Requirements in docs/coverage.md: 4-07
func TestStopAccount_stopsVideosThatAreTrackedOnlyThroughTheAccount(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(videoURL(4))
		id := c.trackAccount(map[string]any{"link": accountLink}).AccountID.String()
		a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccount(a, "42", 1, 1, 2, 3, 4) })
		c.track(videoURL(3)) // the video is now tracked twice: by its own link, and as a video of its account
		c.send(http.MethodDelete, "/videos", map[string]any{"id": videoURL(3)}).requireStatus(http.StatusOK)
		stopped := decode[client.StoppedAccount](c.send(http.MethodDelete, "/accounts/"+id, nil).requireStatus(http.StatusOK))
		require.Equal(t, []int64{2, 1}, []int64{*stopped.VideosStopped, *stopped.VideosStillTracked})
		page := mainText(c.newSignedInVisitor(t).visit("/account/tiktok/" + id).requireStatus(http.StatusOK))
		require.Contains(t, page, "1 video of this account stays tracked, because it was added by its link.")
		removed := func() (out []bool) {
			for n := range 4 {
				out = append(out, c.video(videoURL(n+1)).Removed)
			}
			return out
		}
		require.Equal(t, []bool{true, true, true, false}, removed())

		t.Run("the account is tracked again", func(t *testing.T) {
			a.Clock.Advance(24 * time.Hour)
			c.trackAccount(map[string]any{"link": accountLink})
			a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccount(a, "42", 1, 1, 2, 3, 4) })
			require.Equal(t, []bool{false, false, true, false}, removed(), "if DELETE /videos stopped a video, it must stay stopped when its account is tracked again")
			require.Equal(t, int64(3), c.statistics("videos").Total)
			require.Equal(t, int64(3), *c.account(id).TotalVideosTracked)
			require.NotContains(t, mainText(c.newSignedInVisitor(t).visit("/account/tiktok/"+id)), "stays tracked")
			byLink := decode[client.StoppedAccount](c.send(http.MethodDelete, "/accounts", map[string]any{"id": accountLink}).requireStatus(http.StatusOK))
			require.Equal(t, []int64{2, 1}, []int64{*byLink.VideosStopped, *byLink.VideosStillTracked})
		})

		t.Run("the tier shows no metrics", func(t *testing.T) {
			require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
			a.Clock.Advance(24 * time.Hour)
			c.trackAccount(map[string]any{"link": accountLink})
			masked := decode[client.StoppedAccount](c.send(http.MethodDelete, "/accounts", map[string]any{"id": accountLink}).requireStatus(http.StatusOK))
			require.Nil(t, masked.VideosStopped, "the sum of both numbers is total_videos_tracked, which is masked")
			require.Nil(t, masked.VideosStillTracked)
		})
	})
}

func TestStopAccount_refusesUntrackedAccounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	linked := c.video(c.track(tiktokLink).String()).LinkedAccountID.String()
	for _, id := range []string{unknownID, "00000000-0000-0000-0000-000000000000", tiktokLink, accountLink, linked, "https://www.tiktok.com/@nobody", "nonsense", "bulk"} {
		p := c.send(http.MethodDelete, "/accounts", map[string]any{"id": id}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Contains(t, p.Detail, id)
	}
	for _, id := range []string{unknownID, linked} {
		c.send(http.MethodDelete, "/accounts/"+id, nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
	}
	for _, id := range []string{"nonsense", "%7B" + unknownID + "%7D", strings.ReplaceAll(unknownID, "-", "")} {
		p := c.send(http.MethodDelete, "/accounts/"+id, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "account_id", *p.Errors[0].Name)
	}
	c.send(http.MethodDelete, "/accounts", map[string]any{"id": fmt.Sprint(strings.Repeat("a", 2049))}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
}
