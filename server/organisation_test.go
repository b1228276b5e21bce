package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// accountHistory returns the decoded response of GET /accounts/{account_id}/history. The account has the given id or link.
func (c *caller) accountHistory(idOrLink, query string) []client.AccountHistoryPoint {
	c.t.Helper()
	return decode[[]client.AccountHistoryPoint](c.send(http.MethodGet, "/accounts/"+url.PathEscape(idOrLink)+"/history?"+query, nil).requireStatus(http.StatusOK))
}

// organisationHistory returns the decoded response of GET /organisation/history.
func (c *caller) organisationHistory(query string) []client.OrganisationHistoryPoint {
	c.t.Helper()
	return decode[[]client.OrganisationHistoryPoint](c.send(http.MethodGet, "/organisation/history?"+query, nil).requireStatus(http.StatusOK))
}

// statistics returns the decoded response of GET /statistics/{kind}. The kind is "videos" or "accounts".
func (c *caller) statistics(kind string) client.Statistics {
	c.t.Helper()
	return decode[client.Statistics](c.send(http.MethodGet, "/statistics/"+kind, nil).requireStatus(http.StatusOK))
}

// newCallerWithDailyHistory creates an organisation that tracks an account with two videos. The account and the videos were fetched
// fetchCount times, once a day, and the last fetch was today.
func newCallerWithDailyHistory(t *testing.T, a *app, tier store.Tier, fetchCount int) *caller {
	t.Helper()
	c := a.newCaller(t, tier)
	c.trackAccount(map[string]any{"link": accountLink})
	for n := range fetchCount {
		if n > 0 {
			a.Clock.Advance(24 * time.Hour)
			c.send(http.MethodPost, "/refresh/accounts", map[string]any{"link": accountLink}).requireStatus(http.StatusAccepted)
		}
		a.fetchProfiles(func(queue.Target) ingest.AccountFacts {
			f := fetchedAccount(a, "42", int64(1000+n), 1, 2)
			f.Following = new(int64(7))
			return f
		})
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(int64(100 * (n + 1))), Likes: new(int64(n)), Shares: new(int64(1)), UploadedAt: new(a.Clock.Now().AddDate(0, 0, -n))}
		})
	}
	return c
}

// Requirements in docs/coverage.md: 4-11
func TestAccountHistory_returnsOnePointPerDayNewestFirst(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithDailyHistory(t, a, store.TierPremium, 33)
		points := c.accountHistory(accountLink, "")
		require.Len(t, points, 31, "by default, the history must contain today and the 30 days before")
		for i, p := range points {
			require.Equal(t, a.daysAgo(i), p.Date.String())
			require.Equal(t, []int64{1032 - int64(i), 7, 6600 - 200*int64(i), 64 - 2*int64(i), 2, 66 - 2*int64(i), 2},
				[]int64{*p.Followers, *p.Following, *p.Views, *p.Likes, *p.Shares, *p.Engagements, *p.Videos})
			require.Nil(t, p.Comments, "a count that was never fetched must be null, not 0")
			require.Nil(t, p.MetricsMasked)
		}
		require.Equal(t, points, c.accountHistory(c.account(accountLink).AccountID.String(), ""))
		t.Run("a range of two days and a range of one day", func(t *testing.T) {
			got := c.accountHistory(accountLink, fmt.Sprintf("start_date=%s&end_date=%s", a.daysAgo(32), a.daysAgo(31)))
			require.Equal(t, []string{a.daysAgo(31), a.daysAgo(32)}, []string{got[0].Date.String(), got[1].Date.String()})
			require.Len(t, c.accountHistory(accountLink, fmt.Sprintf("start_date=%[1]s&end_date=%[1]s", a.daysAgo(5))), 1)
		})
		t.Run("days before the first fetch and after the last fetch", func(t *testing.T) {
			require.Len(t, c.accountHistory(accountLink, "start_date="+a.daysAgo(700)), 33)
			require.Empty(t, c.accountHistory(accountLink, fmt.Sprintf("start_date=%s&end_date=%s", a.daysAgo(89), a.daysAgo(60))))
			require.Equal(t, "[]\n", string(c.send(http.MethodGet, "/accounts/"+url.PathEscape(accountLink)+"/history?start_date="+a.daysAgo(-3), nil).requireStatus(http.StatusOK).body))
		})
	})
}

// Requirements in docs/coverage.md: 4-12
func TestOrganisationHistory_returnsTheSumOfAllAccountsPerDay(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithDailyHistory(t, a, store.TierPremium, 33)
		points := c.organisationHistory("")
		require.Len(t, points, 31)
		for i, p := range points {
			n := int64(32 - i)
			require.Equal(t, a.daysAgo(i), p.Date.String())
			require.Equal(t, []int64{1, 2, 1000 + n, 7, 200 * (n + 1), 2 * n, 2, 2*n + 2},
				[]int64{*p.Accounts, *p.Videos, *p.Followers, *p.Following, *p.Views, *p.Likes, *p.Shares, *p.Engagements})
			require.Equal(t, []*int64{nil, nil}, []*int64{p.Comments, p.Bookmarks})
			require.Zero(t, *p.Uploads)
		}
		first := c.organisationHistory(fmt.Sprintf("start_date=%[1]s&end_date=%[1]s", a.daysAgo(32)))
		require.Len(t, first, 1)
		require.Equal(t, int64(2), *first[0].Uploads, "the upload date of both videos must be the day of the first fetch")
		require.Empty(t, a.newCaller(t, store.TierPremium).organisationHistory(""))
	})
}

// Requirements in docs/coverage.md: 4-12
func TestOrganisationHistory_hasNullForSumsOfUnknownCounts(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(videoURL(1))
		a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: new(int64(50))} })
		p := c.organisationHistory("")[0]
		require.Equal(t, client.OrganisationHistoryPoint{Date: p.Date, Accounts: new(int64(0)), Videos: new(int64(1)), Uploads: new(int64(0)), Views: new(int64(50))}, p)
		a.Clock.Advance(24 * time.Hour)
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(int64(60)), Likes: new(int64(0)), Comments: new(int64(0))}
		})
		p = c.organisationHistory("")[0]
		require.Equal(t, []*int64{new(int64(0)), new(int64(0)), nil, nil, new(int64(0))}, []*int64{p.Likes, p.Comments, p.Shares, p.Bookmarks, p.Engagements})
	})
}

func TestOrganisationHistory_hasPointsOfDaysWithUploadsBeforeTheFirstFetch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for n, daysAgo := range []int{3, -5} {
			c.track(videoURL(n + 1))
			a.fetch(func(queue.Target) ingest.VideoFacts {
				return ingest.VideoFacts{Views: new(int64(50)), UploadedAt: new(a.Clock.Now().AddDate(0, 0, -daysAgo))}
			})
		}
		points := c.organisationHistory("start_date=" + a.daysAgo(30) + "&end_date=" + a.daysAgo(-30)) // one video has an upload day in the future, which has no point
		require.Len(t, points, 2)
		require.Equal(t, []int64{100, 0}, []int64{*points[0].Views, *points[0].Uploads})
		require.Equal(t, client.OrganisationHistoryPoint{Date: points[1].Date, Uploads: new(int64(1))}, points[1])
		require.Equal(t, a.daysAgo(3), points[1].Date.String())
	})
}

// Requirements in docs/coverage.md: 4-11, 4-12
func TestAccountAndOrganisationHistory_refuseAStartDateOlderThanTheTierAllows(t *testing.T) {
	t.Parallel()
	for tier, days := range map[store.Tier]int{store.TierLimited: 90, store.TierBasic: 90, store.TierPremium: 730} {
		a := newApp(t, newSQLite(t))
		c := a.newCaller(t, tier)
		for _, path := range []string{"/accounts/" + c.trackAccountLink(accountLink).String() + "/history", "/organisation/history"} {
			c.send(http.MethodGet, path+"?start_date="+a.daysAgo(days), nil).requireStatus(http.StatusOK)
			p := c.send(http.MethodGet, path+"?start_date="+a.daysAgo(days+1), nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Contains(t, p.Detail, a.daysAgo(days), "the error message must contain the oldest allowed date")
			require.Equal(t, "start_date", *p.Errors[0].Name)
			p = c.send(http.MethodGet, fmt.Sprintf("%s?start_date=%s&end_date=%s", path, a.daysAgo(3), a.daysAgo(4)), nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Equal(t, "end_date", *p.Errors[0].Name)
			for _, bad := range []string{"start_date=2026-02-30", "end_date=", "start_date=2026-01-01&start_date=2026-01-02", "page=1"} {
				c.send(http.MethodGet, path+"?"+bad, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			}
		}
	}
}

func TestAccountAndOrganisationHistory_returnOneMaskedPointForLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithDailyHistory(t, a, store.TierBasic, 3)
		account, organisation := c.accountHistory(accountLink, ""), c.organisationHistory("")
		require.Equal(t, []client.AccountHistoryPoint{{Date: account[0].Date, MetricsMasked: new(true)}}, account)
		require.Equal(t, []client.OrganisationHistoryPoint{{Date: organisation[0].Date, MetricsMasked: new(true)}}, organisation)
		require.Equal(t, a.daysAgo(0), account[0].Date.String())
		require.Equal(t, a.daysAgo(0), organisation[0].Date.String())
		earlier := "end_date=" + a.daysAgo(1)
		require.Equal(t, a.daysAgo(1), c.accountHistory(accountLink, earlier)[0].Date.String(), "the response must contain the latest point of the date range")
		require.Equal(t, a.daysAgo(1), c.organisationHistory(earlier)[0].Date.String())
	})
}

// Requirements in docs/coverage.md: 4-13
func TestStatistics_countTrackedAndRemovedItems(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierLimited)
		for _, of := range []string{"videos", "accounts"} {
			require.Equal(t, client.Statistics{}, c.statistics(of))
		}
		for _, l := range append(videoURLs(1, 3), "https://youtu.be/dQw4w9WgXcQ") {
			c.track(l)
		}
		c.send(http.MethodDelete, "/videos", map[string]any{"id": videoURL(2)}).requireStatus(http.StatusOK)
		for _, l := range []string{"https://www.instagram.com/one/", "https://www.instagram.com/two/", "https://www.facebook.com/three"} {
			c.trackAccountLink(l)
		}
		c.send(http.MethodDelete, "/accounts", map[string]any{"id": "https://www.instagram.com/two"}).requireStatus(http.StatusOK)

		a.newCaller(t, store.TierPremium).track(videoURL(7))
		require.Equal(t, client.Statistics{Total: 3, Removed: 1, ByPlatform: client.PlatformCounts{Tiktok: 2, Youtube: 1}, ByStatus: client.StatusCounts{Pending: 3, Stopped: 1}}, c.statistics("videos"), "for the tier 'limited', statistics must not be masked")
		require.Equal(t, client.Statistics{Total: 2, Removed: 1, ByPlatform: client.PlatformCounts{Instagram: 1, Facebook: 1}, ByStatus: client.StatusCounts{Pending: 2, Stopped: 1}}, c.statistics("accounts"),
			"the author of a tracked video must not count as a tracked account")
	})
}
