package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// trackAccounts sends POST /accounts/bulk and requires the given status. Further members of the request body are given as pairs: a name and
// its value.
func (c *caller) trackAccounts(status int, links []string, otherMembers ...any) client.TrackAccountsResult {
	c.t.Helper()
	body := map[string]any{"links": links}
	for i := 0; i+1 < len(otherMembers); i += 2 {
		body[fmt.Sprint(otherMembers[i])] = otherMembers[i+1]
	}
	return decode[client.TrackAccountsResult](c.send(http.MethodPost, "/accounts/bulk", body).requireStatus(status))
}

// accountURLs returns links of TikTok accounts, one for each number from first to last. The number is part of the handle, such as
// @member001.
func accountURLs(first, last int) []string {
	var links []string
	for n := first; n <= last; n++ {
		links = append(links, fmt.Sprintf("https://www.tiktok.com/@member%03d", n))
	}
	return links
}

// Requirements in docs/coverage.md: 4-08
func TestBulkTrackAccounts_returnsAResultForEachLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		links := accountURLs(1, 9)
		known := c.trackAccountLink(links[1])

		t.Run("status 200 if every link was tracked", func(t *testing.T) {
			got := c.trackAccounts(http.StatusOK, links[1:3], "tracking_type", "all")
			require.True(t, got.Success)
			require.Equal(t, client.TrackSummary{Total: 2, Succeeded: 2, AlreadyExists: 1}, got.Summary)
			require.True(t, got.TrackingEnqueued)
			require.Equal(t, []string{latest30Kept}, got.Warnings)
			require.Nil(t, got.PendingTmvQueue)
			require.Equal(t, client.TrackAccountsEntry{Type: "account", URL: links[1], Status: "already_tracked", Positions: []int32{0}, Success: true, AccountID: &known, WasExisting: true}, got.Results[0])
			require.Equal(t, client.TrackStatusTracked, got.Results[1].Status)
			require.False(t, got.Results[1].WasExisting)
			require.Equal(t, "all", *c.account(got.Results[1].AccountID.String()).TrackingType)
			require.Equal(t, "latest_30", *c.account(known.String()).TrackingType, "a second request must not change the tracking type of a tracked account")
		})

		t.Run("status 207 if some links were tracked", func(t *testing.T) {
			got := c.trackAccounts(http.StatusMultiStatus, []string{"https://example.com/x", links[3], "", tiktokLink, "https://www.tiktok.com/about"})
			require.False(t, got.Success)
			require.Equal(t, client.TrackSummary{Total: 5, Succeeded: 1, Failed: 4}, got.Summary)
			require.True(t, got.TrackingEnqueued)
			for i, code := range map[int]string{0: "unsupported_platform", 2: "invalid_url", 3: "wrong_kind", 4: "unsupported_link"} {
				e := got.Results[i]
				require.Equal(t, client.TrackStatusFailed, e.Status)
				require.Equal(t, code, string(*e.Code))
				require.NotEmpty(t, *e.Error)
				require.False(t, *e.Retryable)
				require.False(t, e.Success)
				require.Nil(t, e.AccountID)
			}
		})

		t.Run("status 422 if no link was tracked", func(t *testing.T) {
			a.platforms.redirect("https://vm.tiktok.com/ZMdown0001/", "")
			got := c.trackAccounts(http.StatusUnprocessableEntity, []string{"nonsense", "https://vm.tiktok.com/ZMdown0001/", "https://vm.tiktok.com/ZMdead0001/"})
			require.Equal(t, client.TrackSummary{Total: 3, Failed: 3, Retryable: 1}, got.Summary)
			require.False(t, got.TrackingEnqueued)
			require.True(t, *got.Results[1].Retryable)
			require.Equal(t, "not_found", string(*got.Results[2].Code))
		})

		t.Run("several links of one account", func(t *testing.T) {
			a.platforms.redirect("https://vm.tiktok.com/ZMsame0001/", links[4])
			got := c.trackAccounts(http.StatusMultiStatus, []string{links[4] + "?lang=en", strings.ToUpper(links[4]), "https://vm.tiktok.com/ZMsame0001/", "bad", "bad"})
			require.Equal(t, client.TrackSummary{Total: 2, Succeeded: 1, Failed: 1}, got.Summary)
			require.Equal(t, links[4]+"?lang=en", got.Results[0].URL, "if several links lead to one account, the result must contain the first link")
			require.Equal(t, []int32{0, 1, 2}, got.Results[0].Positions)
			require.Equal(t, []int32{3, 4}, got.Results[1].Positions)
		})

		t.Run("a link with the channel id and a link with the handle of the same fetched account", func(t *testing.T) {
			const byID, byHandle = "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q", "https://www.youtube.com/@someone"
			c.trackAccountLink(byID)
			a.fetchProfiles(func(target queue.Target) ingest.AccountFacts {
				if target.Platform != link.YouTube {
					return ingest.AccountFacts{}
				}
				return ingest.AccountFacts{ID: new("UCLqxVugv74EIW3VWh2NOa3Q"), Username: new("someone")}
			})
			c.send(http.MethodDelete, "/accounts", map[string]any{"id": byHandle}).requireStatus(http.StatusOK)
			before := c.statistics("accounts")
			got := c.trackAccounts(http.StatusOK, []string{byID, links[8], byHandle, byID})
			require.Equal(t, client.TrackSummary{Total: 2, Succeeded: 2}, got.Summary)
			require.Equal(t, byID, got.Results[0].URL)
			require.Equal(t, []int32{0, 2, 3}, got.Results[0].Positions)
			require.Equal(t, []int32{1}, got.Results[1].Positions)
			require.Equal(t, []string{"1 link was sent more than once. Its entry lists all its positions in the request."}, got.Warnings)
			require.True(t, got.Results[0].WasExisting)
			require.False(t, got.TrackingEnqueued, "the stopped account was fetched less than 4 hours ago, so it waits for its next scheduled fetch")
			after := c.statistics("accounts")
			require.Equal(t, before.Total+2, after.Total)
			require.Equal(t, before.Removed-1, after.Removed)
		})

		t.Run("tracking a recently fetched account again, with more older videos", func(t *testing.T) {
			c.send(http.MethodDelete, "/accounts", map[string]any{"id": "https://www.youtube.com/@someone"}).requireStatus(http.StatusOK)
			got := c.trackAccounts(http.StatusOK, []string{"https://www.youtube.com/@someone"}, "tracking_type", "latest_200")
			require.True(t, got.Results[0].WasExisting)
			require.True(t, got.TrackingEnqueued, "the older videos were never fetched")
		})

		t.Run("tracking a stopped account again", func(t *testing.T) {
			c.send(http.MethodDelete, "/accounts/"+known.String(), nil).requireStatus(http.StatusOK)
			got := c.trackAccounts(http.StatusOK, links[1:2], "tracking_type", "new_only")
			require.Equal(t, client.TrackStatusTracked, got.Results[0].Status)
			require.True(t, got.Results[0].WasExisting)
			require.Equal(t, known, *got.Results[0].AccountID)
			require.Equal(t, "new_only", *c.account(known.String()).TrackingType)
		})

		t.Run("tracking the author of a tracked video", func(t *testing.T) {
			linked := c.video(c.track(tiktokLink).String()).LinkedAccountID
			got := c.trackAccounts(http.StatusOK, []string{accountLink})
			require.False(t, got.Results[0].WasExisting)
			require.Equal(t, linked, got.Results[0].AccountID)
		})
	})
}

func TestBulkTrackAccounts_addsEachAccountToTheGivenCollections(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		label := c.createCollection(map[string]any{"name": "Launch"}).String()
		c.trackAccounts(http.StatusOK, accountURLs(1, 3), "label_ids", []string{label})
		require.Len(t, c.accounts("collections=Launch"), 3)
		c.trackAccounts(http.StatusOK, accountURLs(1, 1), "label_ids", nil)

		p := c.send(http.MethodPost, "/accounts/bulk", map[string]any{"links": accountURLs(4, 5), "label_ids": []string{label, unknownID}}).
			requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Contains(t, p.Detail, unknownID)
		require.Equal(t, "/label_ids/1", *p.Errors[0].Pointer)
		require.Len(t, c.accounts(""), 3, "if a collection is unknown, the server must track none of the links")
	})
}

func TestBulkTrackAccounts_fetchesUpTo50AccountsImmediately(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		got := c.trackAccounts(http.StatusOK, append(accountURLs(1, 50), accountURLs(1, 1)...))
		require.Len(t, got.Results, 50)
		require.True(t, got.TrackingEnqueued)
		require.Equal(t, map[queue.Lane]int{queue.LaneInteractive: 50}, a.claimDue(queue.KindAccount))

		got = c.trackAccounts(http.StatusOK, accountURLs(101, 151))
		require.False(t, got.TrackingEnqueued)
		require.Len(t, got.Warnings, 1)
		require.Equal(t, map[queue.Lane]int{queue.LanePremium: 51}, a.claimDue(queue.KindAccount), "the accounts of a request with more than 50 links must not be in the interactive lane")
		a.Clock.Advance(25 * time.Hour)
		require.Equal(t, map[queue.Lane]int{queue.LaneInteractive: 50, queue.LanePremium: 51}, a.claimDue(queue.KindAccount), "the daily schedule must fetch all tracked accounts")
	})
}

func TestBulkTrackAccounts_fetchesOnly5AccountsOfARequestIfTheOrganisationHasNoSubscription(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierLimited)
		require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionNone))

		withinAllowance := c.trackAccounts(http.StatusOK, accountURLs(1, 5))
		require.True(t, withinAllowance.TrackingEnqueued)
		require.Equal(t, &client.PendingQueue{Accounts: []client.PendingItem{}, Videos: []client.PendingItem{}}, withinAllowance.PendingTmvQueue)

		beyondAllowance := c.trackAccounts(http.StatusMultiStatus, append([]string{"bad"}, accountURLs(11, 17)...))
		require.False(t, beyondAllowance.TrackingEnqueued)
		require.Len(t, beyondAllowance.Warnings, 1)
		require.Contains(t, beyondAllowance.Warnings[0], "first 5")
		require.Contains(t, beyondAllowance.Warnings[0], "other 2")
		require.Equal(t, []client.PendingItem{{ID: *beyondAllowance.Results[6].AccountID, Platform: "tiktok"}, {ID: *beyondAllowance.Results[7].AccountID, Platform: "tiktok"}},
			beyondAllowance.PendingTmvQueue.Accounts)
		require.Empty(t, beyondAllowance.PendingTmvQueue.Videos)
		require.Equal(t, map[queue.Lane]int{queue.LaneInteractive: 10}, a.claimDue(queue.KindAccount))

		t.Run("the same accounts are sent again", func(t *testing.T) {
			again := c.trackAccounts(http.StatusMultiStatus, append([]string{"bad"}, accountURLs(11, 17)...))
			require.Equal(t, beyondAllowance.PendingTmvQueue, again.PendingTmvQueue)
			require.Equal(t, beyondAllowance.Warnings, again.Warnings)
			require.False(t, again.TrackingEnqueued)
			require.Empty(t, c.trackAccounts(http.StatusOK, accountURLs(1, 5)).PendingTmvQueue.Accounts)
		})
		t.Run("the organisation subscribes later", func(t *testing.T) {
			require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionActive))
			a.Clock.Advance(25 * time.Hour)
			require.Equal(t, map[queue.Lane]int{queue.LaneInteractive: 10, queue.LaneBasic: 2}, a.claimDue(queue.KindAccount))
		})
	})
}

func TestBulkTrackAccounts_refusesTooManyLinks(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	require.Equal(t, int32(500), c.trackAccounts(http.StatusOK, accountURLs(1, 500)).Summary.Total)
	long := "https://www.tiktok.com/@" + strings.Repeat("a", 3000)
	require.Equal(t, "invalid_url", string(*c.trackAccounts(http.StatusUnprocessableEntity, []string{long}).Results[0].Code), "a link that is too long must get the code invalid_url in its result, and the request as a whole must not be refused")
	for name, body := range map[string]any{
		"no links":                             map[string]any{"links": []string{}},
		"501 links":                            map[string]any{"links": accountURLs(1, 501)},
		"a body without links":                 map[string]any{},
		"null as a link":                       map[string]any{"links": []any{nil}},
		"a name instead of an id in label_ids": map[string]any{"links": accountURLs(1, 1), "label_ids": []string{"Launch"}},
		"an unknown tracking type":             map[string]any{"links": accountURLs(1, 1), "tracking_type": "latest_31"},
	} {
		require.NotEmpty(t, c.send(http.MethodPost, "/accounts/bulk", body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest).Errors, name)
	}
}

// stopAccounts sends DELETE /accounts/bulk and requires the given status. idsOrLinks contains ids or links of accounts.
func (c *caller) stopAccounts(status int, idsOrLinks ...string) client.StopResult {
	c.t.Helper()
	return decode[client.StopResult](c.send(http.MethodDelete, "/accounts/bulk", map[string]any{"ids": idsOrLinks}).requireStatus(status))
}

// Requirements in docs/coverage.md: 4-09
func TestBulkStopAccounts_acceptsIDsAndLinks(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		links := accountURLs(0, 5)
		ids := make([]string, len(links))
		for n, raw := range links {
			ids[n] = c.trackAccountLink(raw).String()
		}
		c.track(tiktokLink)
		t.Run("status 200 if all entries were stopped; duplicate entries count once", func(t *testing.T) {
			got := c.stopAccounts(http.StatusOK, ids[0], links[0]+"?x=1", links[1], strings.ToUpper(ids[1]))
			require.True(t, got.Success)
			require.Equal(t, client.StopSummary{Total: 2, Succeeded: 2}, got.Summary)
			require.Equal(t, ids[0], got.Results[0].ID.String())
			require.Equal(t, client.EntryTypeAccount, got.Results[0].Type)
			require.Nil(t, got.Results[0].URL)
			require.Equal(t, ids[1], got.Results[1].ID.String())
			require.Equal(t, links[1], *got.Results[1].URL)
		})
		t.Run("status 404 if some links lead to no tracked account", func(t *testing.T) {
			p := c.send(http.MethodDelete, "/accounts/bulk", map[string]any{"ids": []string{ids[2], "https://www.tiktok.com/@nobody", links[3], "nonsense", links[0], accountLink, tiktokLink}}).
				requireProblem(http.StatusNotFound, server.CodeNotFound)
			var pointers []string
			for _, e := range p.Errors {
				pointers = append(pointers, *e.Pointer)
			}
			require.Equal(t, []string{"/ids/1", "/ids/3", "/ids/4", "/ids/5", "/ids/6"}, pointers, "the error must list each id that belongs to no tracked account")
			require.Contains(t, p.Detail, "no account https://www.tiktok.com/@nobody")
			require.Len(t, c.accounts(""), 4)
		})
		t.Run("status 207 if an id is unknown", func(t *testing.T) {
			got := c.stopAccounts(http.StatusMultiStatus, ids[2], unknownID, links[3])
			require.False(t, got.Success)
			require.Equal(t, client.StopSummary{Total: 3, Succeeded: 2, Failed: 1}, got.Summary)
			require.False(t, got.Results[1].Success)
			require.Contains(t, *got.Results[1].Error, "no account")
			require.Len(t, c.accounts(""), 2)
			require.Equal(t, int32(1), c.stopAccounts(http.StatusMultiStatus, unknownID).Summary.Failed)
		})
		t.Run("status 503 if resolving a short link fails temporarily", func(t *testing.T) {
			a.platforms.redirect("https://vm.tiktok.com/ZMdown0001/", "")
			c.send(http.MethodDelete, "/accounts/bulk", map[string]any{"ids": []string{ids[4], "https://vm.tiktok.com/ZMdown0001/"}}).
				requireProblem(http.StatusServiceUnavailable, server.CodeLinkUnresolved)
			require.Len(t, c.accounts(""), 2)
		})
	})
}

func TestBulkStopAccounts_acceptsYouTubeLinksWithTheChannelIDOrTheHandle(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		const byID, byHandle = "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q", "https://www.youtube.com/c/Someone"
		for _, sent := range [][]string{{byID}, {byHandle}, {byHandle, byID}} {
			id := c.trackAccountLink(byID)
			a.fetchProfiles(func(queue.Target) ingest.AccountFacts {
				return ingest.AccountFacts{ID: new("UCLqxVugv74EIW3VWh2NOa3Q"), Username: new("someone")}
			})
			got := c.stopAccounts(http.StatusOK, sent...)
			require.Equal(t, client.StopSummary{Total: 1, Succeeded: 1}, got.Summary)
			require.Equal(t, id, got.Results[0].ID)
			a.Clock.Advance(24 * time.Hour)
		}
	})
}

func TestBulkStopAccounts_refusesTooManyEntries(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.trackAccounts(http.StatusOK, accountURLs(1, 500))
	require.Equal(t, int32(500), c.stopAccounts(http.StatusOK, accountURLs(1, 500)...).Summary.Succeeded)
	for name, ids := range map[string][]string{"no ids": {}, "501 ids": accountURLs(1, 501), "an empty id": {""}, "an id of 2049 characters": {strings.Repeat("a", 2049)}} {
		p := c.send(http.MethodDelete, "/accounts/bulk", map[string]any{"ids": ids}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Contains(t, *p.Errors[0].Pointer, "/ids", name)
	}
}
