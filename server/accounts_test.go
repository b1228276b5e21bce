package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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

const accountLink = "https://www.tiktok.com/@northwind.studio"

// account sends GET /accounts/{account_id} and returns the decoded account.
func (c *caller) account(idOrLink string) client.Account {
	c.t.Helper()
	return decode[client.Account](c.send(http.MethodGet, "/accounts/"+url.PathEscape(idOrLink), nil).requireStatus(http.StatusOK))
}

// accounts returns the response of GET /accounts without paginated=true, which is an array.
func (c *caller) accounts(query string) []client.Account {
	c.t.Helper()
	return decode[[]client.Account](c.send(http.MethodGet, "/accounts?"+query, nil).requireStatus(http.StatusOK))
}

// accountPage returns the response of GET /accounts?paginated=true.
func (c *caller) accountPage(query string) client.AccountPage {
	c.t.Helper()
	return decode[client.AccountPage](c.send(http.MethodGet, "/accounts?paginated=true&"+query, nil).requireStatus(http.StatusOK))
}

// joinHandles returns the handles of the accounts, separated by commas, in the order of the slice.
func joinHandles(accounts []client.Account) string {
	names := make([]string, len(accounts))
	for i, a := range accounts {
		names[i] = a.Username
	}
	return strings.Join(names, ",")
}

// fetchedAccount returns made-up data of a fetched account. The account has one TikTok video for each
// number in videoNumbers. The first video is the newest.
func fetchedAccount(a *app, id string, followers int64, videoNumbers ...int) ingest.AccountFacts {
	f := ingest.AccountFacts{ID: &id, Followers: &followers, Listed: true}
	for i, n := range videoNumbers {
		f.Videos = append(f.Videos, ingest.FoundVideo{ID: fmt.Sprint(7300000000000000000 + n), Link: videoURL(n),
			UploadedAt: new(store.InstantOf(a.Clock.Now().AddDate(0, 0, -i-1)))})
	}
	return f
}

// Requirements in docs/coverage.md: 2.6-01, 4-10
func TestGetAccount_returnsNullCountsBeforeTheFirstFetch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.trackAccount(map[string]any{"link": "https://www.facebook.com/northwind"}).AccountID
		got := c.send(http.MethodGet, "/accounts/"+id.String(), nil).requireStatus(http.StatusOK)
		created := a.Clock.Now().Format("2006-01-02T15:04:05.000000+00:00")
		require.JSONEq(t, fmt.Sprintf(`{"organisation_id":%q,"account_id":%q,"account_link":"https://www.facebook.com/northwind","username":"northwind",
			"display_username":"northwind","platform":"facebook","created_at":%q,"checked_at":null,"removed":false,"private":false,"empty":false,
			"bio":null,"link":null,"latest_followers_count":null,"latest_following_count":null,"tracking_type":"latest_30","mean_views":null,
			"median_views":null,"median_views_non_zero":null,"most_viewed":null,"percent_outperform_10x":null,"percent_outperform_25x":null,
			"total_videos_tracked":0,"total_views":null,"total_likes":null,"total_comments":null,"total_bookmarks":null,"total_shares":null,
			"last_uploaded_at":null,"views_gained_7d":null,"label_ids":[],"label_names":[],"fetch_status":"pending","fetch_detail":%q,"last_attempt_at":null,"next_fetch_at":%q}`,
			c.org.ID, id, created, "The account has not been fetched since tracking began, and no collector is running; it is due on "+a.Clock.Now().Format("2006-01-02 15:04")+" UTC.",
			created), string(got.body))
	})
}

// Requirements in docs/coverage.md: 2.6-01
func TestGetAccount_returnsTheFetchedCountsAndStatistics(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		made := c.trackAccount(map[string]any{"link": accountLink, "collection_names": []string{"Launch", "Été 🌞"}})
		a.fetchProfiles(func(queue.Target) ingest.AccountFacts {
			f := fetchedAccount(a, "42", 51200, 1, 2, 3)
			f.Following, f.Bio, f.ProfileLink, f.Private = new(int64(0)), new("Handmade & 👩🏽‍🚀"), new("northwind.example"), new(true)
			return f
		})
		checked := a.Clock.Now()
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			n := int64(target.ExternalID[len(target.ExternalID)-1] - '1')
			return ingest.VideoFacts{Views: new(100 * n), Likes: new(n), Comments: new(int64(1)), UploadedAt: new(january(10 + int(n)))}
		})
		got := c.account(made.AccountID.String())
		require.Equal(t, int64(51200), *got.LatestFollowersCount)
		require.Equal(t, int64(0), *got.LatestFollowingCount)
		require.Equal(t, "Handmade & 👩🏽‍🚀", *got.Bio)
		require.Equal(t, "northwind.example", *got.Link)
		require.True(t, got.Private)
		require.True(t, got.CheckedAt.Equal(checked))
		require.Equal(t, []float64{100, 100, 150}, []float64{*got.MeanViews, *got.MedianViews, *got.MedianViewsNonZero})
		require.Equal(t, []int64{3, 200, 300, 3, 3}, []int64{*got.TotalVideosTracked, *got.MostViewed, *got.TotalViews, *got.TotalLikes, *got.TotalComments})
		require.Equal(t, []float64{0, 0}, []float64{*got.PercentOutperform10X, *got.PercentOutperform25X})
		require.Nil(t, got.TotalShares, "a count that was never fetched must be null, not 0")
		require.Equal(t, "2026-01-12", got.LastUploadedAt.String())
		require.Equal(t, []string{"Launch", "Été 🌞"}, got.LabelNames)
		require.Len(t, got.LabelIds, 2)
	})
}

func TestGetAccount_reportsAnAccountWithoutVideosAsEmpty(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.trackAccountLink(accountLink).String()
	a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Listed: true} })
	require.True(t, c.account(id).Empty)
}

// Requirements in docs/coverage.md: 4-10, 4.2-28
func TestGetAccount_acceptsEveryFormOfTheLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		ids := map[string]string{}
		for _, forms := range [][]string{
			{accountLink, "m.tiktok.com/@Northwind.Studio?lang=en&x=%2F", accountLink + "/", "https://vm.tiktok.com/ZMaccount1/"},
			{"https://www.instagram.com/northwind.studio/", "instagram.com/northwind.studio/reels/?igsh=1"},
			{"https://www.youtube.com/@northwindstudio", "https://www.youtube.com/c/NorthwindStudio", "youtube.com/northwindstudio", "https://m.youtube.com/@NorthwindStudio/shorts"},
			{"https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q", "youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q/videos"},
			{"https://www.facebook.com/northwind", "https://m.facebook.com/Northwind/videos"},
		} {
			a.platforms.redirect("https://vm.tiktok.com/ZMaccount1/", accountLink+"?_t=8")
			id := c.trackAccountLink(forms[0])
			for _, form := range forms {
				require.Equal(t, id, c.account(form).AccountID, form)
				require.Equal(t, id, c.account(strings.ToUpper(id.String())).AccountID)
				require.Equal(t, id, c.accounts("link=" + url.QueryEscape(form))[0].AccountID, form)
				require.Empty(t, c.accountVideos(form, ""))
				require.Equal(t, "already", map[bool]string{true: "already"}[c.trackAccount(map[string]any{"link": form}).Error != nil], form)
			}
			require.NotContains(t, ids, id.String(), "accounts with the same handle on two platforms must be different accounts")
			ids[id.String()] = forms[0]
		}
	})
}

func TestGetAccount_returnsTheUntrackedAuthorOfATrackedVideo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		v := c.video(c.track(tiktokLink).String())
		a.fetch(factsWithViews(5))
		linked := c.account(v.LinkedAccountID.String())
		require.Equal(t, linked, c.account(accountLink))
		require.Nil(t, linked.TrackingType)
		require.Nil(t, linked.CheckedAt)
		require.Equal(t, int64(1), *linked.TotalVideosTracked)
		require.False(t, linked.Removed)
		require.Empty(t, c.accounts("include_removed=true"))
		require.Empty(t, c.accounts("link="+url.QueryEscape(accountLink)))
		require.Len(t, c.accounts("include_linked=true&link="+url.QueryEscape(accountLink)), 1)

		require.Equal(t, linked.AccountID, c.trackAccount(map[string]any{"link": accountLink}).AccountID, "the account of a tracked video must keep its id when tracking of the account begins")
		require.Len(t, c.accounts(""), 1)
	})
}

func TestGetAccount_findsAChannelByItsUserNameBeforeAndAfterTheFirstFetch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		const byUser, byHandle = "https://www.youtube.com/user/Northwind", "https://www.youtube.com/@northwind"
		c := a.newCaller(t, store.TierPremium)
		id := c.trackAccount(map[string]any{"link": byUser}).AccountID
		before := c.account(byUser)
		require.Equal(t, id, before.AccountID)
		require.Equal(t, []string{"northwind~user", "northwind", "https://www.youtube.com/user/northwind"}, []string{before.Username, before.DisplayUsername, before.AccountLink})
		require.Len(t, c.accounts("username=Northwind~user"), 1)
		require.Empty(t, c.accounts("username=northwind"))
		require.Empty(t, c.accounts("link="+url.QueryEscape(byHandle)))
		require.NotEqual(t, id, c.trackAccount(map[string]any{"link": byHandle}).AccountID)
		require.Len(t, c.accounts(""), 2)
		c.stopAccounts(http.StatusOK, byHandle)

		a.fetchProfiles(func(queue.Target) ingest.AccountFacts {
			f := fetchedAccount(a, "UCLqxVugv74EIW3VWh2NOa3Q", 5)
			f.Username = new("studio")
			return f
		})
		require.Len(t, c.accounts(""), 1)
		for _, ref := range []string{byUser, "https://www.youtube.com/@studio", "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q"} {
			after := c.account(ref)
			require.Equal(t, id, after.AccountID)
			require.Equal(t, []string{"studio", "studio", "https://www.youtube.com/@studio"}, []string{after.Username, after.DisplayUsername, after.AccountLink})
			require.Len(t, c.accounts("link="+url.QueryEscape(ref)), 1)
		}
		require.Equal(t, id, c.trackAccount(map[string]any{"link": byUser}).AccountID)
		require.Equal(t, "studio", c.account(byUser).Username)
		a.Clock.Advance(5 * time.Hour)
		c.send(http.MethodPost, "/refresh/accounts", map[string]any{"link": byUser}).requireStatus(http.StatusAccepted)
		c.stopAccounts(http.StatusOK, byUser)
		require.Empty(t, c.accounts(""))
	})
}

func TestGetAccount_returns404ForUnknownAccounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, ref := range []string{unknownID, "00000000-0000-0000-0000-000000000000", "{" + unknownID + "}", tiktokLink, accountLink,
		"https://example.com/", "https://vm.tiktok.com/ZMdead0001/", "null", "a b"} {
		for _, suffix := range []string{"", "/videos", "/history"} {
			p := c.send(http.MethodGet, "/accounts/"+url.PathEscape(ref)+suffix, nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Contains(t, p.Detail, "no account")
		}
	}
	p := c.send(http.MethodGet, "/accounts/"+accountLink, nil).requireProblem(http.StatusBadRequest, server.CodeURLNotEncoded)
	require.Contains(t, p.Detail, "GET /accounts?link=")
	a.platforms.redirect("https://vm.tiktok.com/ZMdown0001/", "")
	for _, path := range []string{"/accounts/https%3A%2F%2Fvm.tiktok.com%2FZMdown0001%2F", "/accounts?link=https://vm.tiktok.com/ZMdown0001/"} {
		c.send(http.MethodGet, path, nil).requireProblem(http.StatusServiceUnavailable, server.CodeLinkUnresolved)
	}
	require.Empty(t, c.accounts("link=https://vm.tiktok.com/ZMdead0001/"))
}

func TestLists_areEmptyIfTheFilterIsADeadShortLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(tiktokLink)
		c.trackAccountLink(accountLink)
		// An account can have no handle, and the zero value of a link has no handle either.
		a.Exec(t, "UPDATE accounts SET username = '', handle_current = ? WHERE organisation_id = ?", true, c.org.ID)
		require.NotEmpty(t, c.listVideos("").Data)
		require.NotEmpty(t, c.accounts(""))
		const dead = "https://vm.tiktok.com/ZMdead0001/"
		page := c.listVideos("link=" + dead)
		require.Empty(t, page.Data)
		require.Equal(t, dead, *page.Filters.Link)
		require.Empty(t, c.accounts("include_linked=true&link="+dead))
	})
}

// newCallerWithFiveAccounts creates an organisation that tracks five accounts. Four of them were fetched, and two of these have equal counts. The
// Instagram account was never fetched.
func newCallerWithFiveAccounts(t *testing.T, a *app) *caller {
	t.Helper()
	c := a.newCaller(t, store.TierPremium)
	for n, raw := range []string{"https://www.tiktok.com/@cora", "https://www.tiktok.com/@anna", "https://www.tiktok.com/@bert", "https://www.tiktok.com/@dora"} {
		body := map[string]any{"link": raw, "collection_names": []string{map[int]string{0: "Even", 1: "Odd, so"}[n%2]}}
		c.trackAccount(body)
		a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccount(a, fmt.Sprint(n), int64(10*(n%3)), n) })
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(int64(100 * (4 - n))), UploadedAt: new(january(10 + (n*3)%4))}
		})
	}
	c.trackAccountLink("https://www.instagram.com/emil/")
	return c
}

// Requirements in docs/coverage.md: 4-05, 11.6-04
func TestListAccounts_sortsByTheParameterOrderBy(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithFiveAccounts(t, a)
		require.Equal(t, "emil,dora,bert,anna,cora", joinHandles(c.accounts("")), "newest first")
		a.Exec(t, "UPDATE accounts SET views_gained_7d = CASE username WHEN 'anna' THEN 900 WHEN 'bert' THEN 20 WHEN 'dora' THEN -5 END")
		for query, want := range map[string]string{
			"order_by=created_at&order_direction=asc":             "cora,anna,bert,dora,emil",
			"order_by=username&order_direction=asc":               "anna,bert,cora,dora,emil",
			"order_by=username":                                   "emil,dora,cora,bert,anna",
			"order_by=latest_followers_count":                     "bert,anna,dora,cora,emil", // accounts with equal counts are sorted by id, and an account without a count comes last
			"order_by=latest_followers_count&order_direction=asc": "cora,dora,anna,bert,emil",
			"order_by=total_views":                                "cora,anna,bert,dora,emil",
			"order_by=median_views&order_direction=asc":           "dora,bert,anna,cora,emil",
			"order_by=last_uploaded_at":                           "anna,bert,dora,cora,emil",
			"order_by=views_gained_7d":                            "anna,bert,dora,emil,cora",
			"order_by=views_gained_7d&order_direction=asc":        "dora,bert,anna,cora,emil",
		} {
			require.Equal(t, want, joinHandles(c.accounts(query)), query)
			t.Run("reading all accounts by page number and by cursor: "+query, func(t *testing.T) {
				var paged, followed []client.Account
				cursor := ""
				for n := 1; ; n++ {
					page := c.accountPage(fmt.Sprintf("%s&limit=2&page=%d", query, n))
					require.Equal(t, []int64{5, 3, int64(n)}, []int64{page.Pagination.Total, page.Pagination.TotalPages, int64(page.Pagination.Page)})
					paged = append(paged, page.Data...)
					next := c.accountPage(query + "&limit=2" + cursor)
					followed = append(followed, next.Data...)
					require.Equal(t, int32(n), next.Pagination.Page)
					if next.Pagination.NextCursor == nil {
						require.Nil(t, page.Pagination.NextCursor)
						break
					}
					cursor = "&cursor=" + *next.Pagination.NextCursor
				}
				require.Equal(t, want, joinHandles(paged))
				require.Equal(t, want, joinHandles(followed))
			})
		}
	})
}

// Requirements in docs/coverage.md: 4-05
func TestListAccounts_appliesFilters(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithFiveAccounts(t, a)
		c.send(http.MethodDelete, "/accounts", map[string]any{"id": "https://www.tiktok.com/@dora"}).requireStatus(http.StatusOK)
		c.track(tiktokLink)
		odd := c.account("https://www.tiktok.com/@anna").LabelIds[0].String()
		for query, want := range map[string]string{
			"":                                     "anna,bert,cora,emil",
			"include_removed=true":                 "anna,bert,cora,dora,emil",
			"include_linked=true":                  "anna,bert,cora,emil,northwind.studio",
			"platform=instagram":                   "emil",
			"platform=youtube":                     "",
			"username=%20@ANNA%20":                 "anna",
			"username=ann":                         "",
			"collections=Even":                     "bert,cora",
			"collections=even":                     "",
			"collections=" + odd:                   "anna",
			"collections=Even," + odd + ",unknown": "anna,bert,cora",
			"collections=Even&username=bert":       "bert",
			"collections=" + odd + "&include_removed=true":       "anna,dora",
			"link=https://www.tiktok.com/@dora":                  "",
			"link=https://tiktok.com/@DORA&include_removed=true": "dora",
			"link=https://www.tiktok.com/@nobody":                "",
			"link=https://www.tiktok.com/@anna&platform=youtube": "",
			"limit=2": "anna,bert",
		} {
			require.Equal(t, want, joinHandles(c.accounts("order_by=username&order_direction=asc&"+query)), query)
		}
	})
}

// Requirements in docs/coverage.md: 4-05
func TestListAccounts_returnsAPageOnlyIfPaginatedIsTrue(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithFiveAccounts(t, a)
		require.Equal(t, byte('['), c.send(http.MethodGet, "/accounts", nil).requireStatus(http.StatusOK).body[0])
		require.Equal(t, byte('['), c.send(http.MethodGet, "/accounts?paginated=false&page=1", nil).requireStatus(http.StatusOK).body[0])
		require.Equal(t, "[]\n", string(c.send(http.MethodGet, "/accounts?username=nobody", nil).requireStatus(http.StatusOK).body))
		past := c.accountPage("page=9&limit=3")
		require.Empty(t, past.Data)
		require.Equal(t, client.Pagination{Total: 5, Page: 9, Limit: 3, TotalPages: 2}, past.Pagination)
		require.Equal(t, client.Pagination{Page: 1, Limit: 5000}, c.accountPage("username=nobody").Pagination)

		t.Run("the generated client can decode both forms of the response: an array and a page", func(t *testing.T) {
			array, err := decode[client.AccountList](c.send(http.MethodGet, "/accounts", nil).requireStatus(http.StatusOK)).AsAccountArray()
			require.NoError(t, err)
			require.Len(t, array, 5)
			page, err := c.ListAccounts(t.Context(), client.ListAccountsOptions{})
			require.NoError(t, err)
			require.Len(t, page.Data, 5)
		})
	})
}

func TestListAccounts_refusesInvalidParameters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := newCallerWithFiveAccounts(t, a)
	cursor := *c.accountPage("limit=1&order_by=username").Pagination.NextCursor
	for query, name := range map[string]string{
		"page=2":                      "page",
		"cursor=" + cursor:            "cursor",
		"paginated=true&page=0":       "page",
		"paginated=maybe":             "paginated",
		"limit=0":                     "limit",
		"limit=5001":                  "limit",
		"order_by=bio":                "order_by",
		"order_direction=up":          "order_direction",
		"platform=myspace":            "platform",
		"username=@":                  "username",
		"collections=":                "collections",
		"link=nonsense":               "link",
		"link=" + tiktokLink:          "link",
		"link=https://example.com/@a": "link",
		"paginated=true&page=2&order_by=username&cursor=" + cursor:          "page",
		"paginated=true&cursor=" + cursor:                                   "cursor", // the cursor is invalid, because it was returned for order_by=username
		"paginated=true&order_by=username&platform=tiktok&cursor=" + cursor: "cursor",
		"paginated=true&order_by=username&cursor=A" + cursor:                "cursor",
	} {
		p := c.send(http.MethodGet, "/accounts?"+query, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, name, *p.Errors[0].Name, query)
	}
	p := c.send(http.MethodGet, "/accounts?page=3&cursor=x&link=nonsense", nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	require.Len(t, p.Errors, 4, "the response must list every fault, but its detail is: %s", p.Detail)
	require.Len(t, c.accountPage("limit=4&order_by=username&cursor="+cursor).Data, 4, "a cursor must be valid with a different limit")
}

func TestListAccounts_returnsOneMaskedAccountToLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithFiveAccounts(t, a)
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(time.Second)
		got := c.accounts("order_by=username&order_direction=asc&limit=3")
		require.Equal(t, "anna", joinHandles(got), "the response must contain only the first account of the requested order")
		require.True(t, *got[0].MetricsMasked)
		require.NotNil(t, got[0].CheckedAt)
		page := c.accountPage("order_by=username&limit=2")
		require.Equal(t, "emil", joinHandles(page.Data))
		require.Equal(t, client.Pagination{Total: 1, Page: 1, Limit: 2, TotalPages: 1}, page.Pagination)
		require.Empty(t, c.accountPage("page=2&limit=1").Data)
		require.Len(t, c.accountVideos("https://www.tiktok.com/@anna", ""), 1)
	})
}

// accountVideos sends GET /accounts/{account_id}/videos and returns the decoded array. idOrLink is the id or the link of the account.
func (c *caller) accountVideos(idOrLink, query string) []client.Video {
	c.t.Helper()
	return decode[[]client.Video](c.send(http.MethodGet, "/accounts/"+url.PathEscape(idOrLink)+"/videos?"+query, nil).requireStatus(http.StatusOK))
}

// Requirements in docs/coverage.md: 4.2-29, 4.2-30, 4.2-33
func TestListAccountVideos_returnsOnlyVideosOfTheAccount(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.trackAccountLink(accountLink).String()
		a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccount(a, "42", 1, 1, 2, 3) })
		directVideo := c.track(videoURL(4))
		c.track("https://www.youtube.com/shorts/dQw4w9WgXcQ")
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			n := int(target.ExternalID[len(target.ExternalID)-1] - '0')
			f := ingest.VideoFacts{Views: new(int64(10 * (n % 3)))}
			if target.Platform == link.TikTok && n < 4 {
				f.UploadedAt = new(january(10 + n))
			}
			return f
		})
		numbers := func(query string) (out []string) {
			for _, v := range c.accountVideos(id, query) {
				out = append(out, v.AdLink[len(v.AdLink)-1:])
				require.Equal(t, id, v.LinkedAccountID.String())
			}
			return out
		}
		require.Equal(t, []string{"3", "2", "1", "4"}, numbers(""), "the latest uploads must be first, and a video without an upload date must be last")
		require.Equal(t, c.video(directVideo.String()), c.accountVideos(accountLink, "order_by=created_at&limit=1")[0])
		for query, want := range map[string][]string{
			"order_direction=asc":                             {"1", "2", "3", "4"},
			"order_by=latest_views":                           {"2", "4", "1", "3"},
			"start_date=2026-01-12":                           {"3", "2"},
			"end_date=2026-01-12":                             {"2", "1"},
			"start_date=2026-01-12&end_date=2026-01-12":       {"2"},
			"start_date=2026-02-01":                           nil,
			"limit=2&order_by=created_at&order_direction=asc": nil,
		} {
			if strings.Contains(query, "limit") {
				require.Len(t, numbers(query), 2)
				continue
			}
			require.Equal(t, want, numbers(query), query)
		}
		t.Run("reading all videos by page number and by cursor", func(t *testing.T) {
			cursor := ""
			var got []string
			for n := 1; n <= 2; n++ {
				path := "/accounts/" + id + "/videos?paginated=true&limit=3&start_date=2026-01-01"
				byNumber := decode[client.AccountVideoPage](c.send(http.MethodGet, fmt.Sprintf("%s&page=%d", path, n), nil).requireStatus(http.StatusOK))
				byCursor := decode[client.AccountVideoPage](c.send(http.MethodGet, strings.Replace(path, "limit=3", "limit=2", 1)+cursor, nil).requireStatus(http.StatusOK))
				require.Equal(t, int64(3), byNumber.Pagination.Total)
				for _, v := range byCursor.Data {
					got = append(got, v.AdLink[len(v.AdLink)-1:])
				}
				if n == 1 {
					require.Len(t, byNumber.Data, 3)
					cursor = "&cursor=" + *byCursor.Pagination.NextCursor
					c.send(http.MethodGet, "/accounts/"+id+"/videos?paginated=true"+cursor, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
				} else {
					require.Empty(t, byNumber.Data)
				}
			}
			require.Equal(t, []string{"3", "2", "1"}, got)
		})
		t.Run("the list omits stopped videos by default, and contains them with include_removed=true", func(t *testing.T) {
			c.send(http.MethodDelete, "/accounts/"+id, nil).requireStatus(http.StatusOK)
			require.Equal(t, []string{"4"}, numbers(""))
			require.Len(t, numbers("include_removed=true"), 4)
		})
	})
}

// Requirements in docs/coverage.md: 4.2-30, 4.2-31, 4.2-32, 8-09
func TestListAccountVideos_refusesInvalidParameters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.trackAccountLink(accountLink).String()
	for query, name := range map[string]string{
		"page=2": "page", "paginated=true&page=0": "page", "limit=0": "limit", "cursor=AAAA": "cursor", "limit=5001": "limit", "order_by=title": "order_by", "start_date=2026-02-30": "start_date",
		"start_date=2026-02-02&end_date=2026-02-01": "start_date", "paginated=true&cursor=AAAA": "cursor", "username=a": "username",
	} {
		for _, ref := range []string{id, unknownID, url.PathEscape(accountLink)} {
			p := c.send(http.MethodGet, "/accounts/"+ref+"/videos?"+query, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Equal(t, name, *p.Errors[0].Name, query)
		}
	}
	require.Equal(t, "[]\n", string(c.send(http.MethodGet, "/accounts/"+id+"/videos", nil).requireStatus(http.StatusOK).body))
	var page map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(c.send(http.MethodGet, "/accounts/"+id+"/videos?paginated=true", nil).requireStatus(http.StatusOK).body, &page))
	require.JSONEq(t, `{"total":0,"page":1,"limit":5000,"total_pages":0,"next_cursor":null}`, string(page["pagination"]))
}

// trackAccount sends POST /accounts and requires status 200.
func (c *caller) trackAccount(body map[string]any) client.TrackAccountResult {
	c.t.Helper()
	return decode[client.TrackAccountResult](c.send(http.MethodPost, "/accounts", body).requireStatus(http.StatusOK))
}
