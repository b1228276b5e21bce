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

// addVideos adds videos to a collection and returns videos_added, the number of videos that were not in the collection before.
func (c *caller) addVideos(collection uuid.UUID, videos ...uuid.UUID) int32 {
	c.t.Helper()
	got := c.changeMembers(http.MethodPost, collection, "videos", videos).requireStatus(http.StatusOK)
	return decode[client.AddedVideos](got).VideosAdded
}

// addAccounts adds accounts to a collection and returns accounts_added, the number of accounts that were not in the collection before.
func (c *caller) addAccounts(collection uuid.UUID, accounts ...uuid.UUID) int32 {
	c.t.Helper()
	got := c.changeMembers(http.MethodPost, collection, "accounts", accounts).requireStatus(http.StatusOK)
	return decode[client.AddedAccounts](got).AccountsAdded
}

// changeMembers sends a POST or DELETE request to /collections/{collection_id}/{kind}. The kind is "videos" or "accounts".
func (c *caller) changeMembers(method string, collection uuid.UUID, kind string, ids any) response {
	c.t.Helper()
	return c.send(method, "/collections/"+collection.String()+"/"+kind, map[string]any{strings.TrimSuffix(kind, "s") + "_ids": ids})
}

// listCollectionVideos returns the decoded response of GET /collections/{collection_id}/videos.
func (c *caller) listCollectionVideos(collection uuid.UUID, query string) client.CollectionVideoPage {
	c.t.Helper()
	return decode[client.CollectionVideoPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/videos?"+query, nil).requireStatus(http.StatusOK))
}

// videoIDs returns the ids of the videos of a collection, in ascending order.
func (c *caller) videoIDs(collection uuid.UUID, query string) []uuid.UUID {
	c.t.Helper()
	ids := []uuid.UUID{}
	for _, v := range c.listCollectionVideos(collection, query).Data {
		ids = append(ids, v.AdID)
	}
	return sortedIDs(ids)
}

// Requirements in docs/coverage.md: 4.1-31, 4.1-33, 4.1-36, 4.1-38
func TestCollectionMembers_canBeAddedAndRemoved(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		one, two := c.track(videoURL(1)), c.track(videoURL(2))
		account := *c.video(one.String()).LinkedAccountID
		id := c.createNamedCollection("Launch")
		for _, kind := range []string{"videos", "accounts"} {
			ids := map[string][]uuid.UUID{"videos": {one, two}, "accounts": {account}}[kind]
			step := func(method, member string, sent any, want int) {
				t.Helper()
				got := c.changeMembers(method, id, kind, sent).requireStatus(http.StatusOK)
				require.JSONEq(t, fmt.Sprintf(`{"success":true,"collection_id":%q,"%s_%s":%d}`, id, kind, member, want), string(got.body))
			}
			step(http.MethodPost, "added", ids[:1], 1)
			step(http.MethodPost, "added", ids, len(ids)-1)
			step(http.MethodPost, "added", ids, 0)
			step(http.MethodDelete, "removed", []uuid.UUID{ids[0], ids[0], uuid.MustParse(unknownID)}, 1)
			step(http.MethodDelete, "removed", ids, len(ids)-1)
			step(http.MethodPost, "added", []uuid.UUID{ids[0], ids[0]}, 1)
			step(http.MethodDelete, "removed", []string{strings.ToUpper(ids[0].String())}, 1)
			step(http.MethodDelete, "removed", ids, 0)
		}
		require.False(t, c.video(one.String()).Removed, "a video that is removed from a collection must stay tracked")
	})
}

func TestAddCollectionMembers_reportsUnknownIDsAndAddsNoMember(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, other := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
		video, otherVideo := c.track(videoURL(1)), other.track(videoURL(1))
		account, otherAccount := *c.video(video.String()).LinkedAccountID, *other.video(otherVideo.String()).LinkedAccountID
		id := c.createNamedCollection("Launch")
		for kind, ids := range map[string][]string{
			"videos":   {video.String(), otherVideo.String(), unknownID, account.String()},
			"accounts": {account.String(), otherAccount.String(), unknownID, video.String()},
		} {
			p := c.changeMembers(http.MethodPost, id, kind, ids).requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Len(t, p.Errors, 3)
			for i, fault := range p.Errors {
				require.Equal(t, fmt.Sprintf("/%s_ids/%d", strings.TrimSuffix(kind, "s"), i+1), *fault.Pointer)
				require.Contains(t, fault.Detail, ids[i+1])
				require.Contains(t, p.Detail, ids[i+1])
			}
			for _, method := range []string{http.MethodPost, http.MethodDelete} {
				p = c.changeMembers(method, uuid.MustParse(unknownID), kind, ids[:1]).requireProblem(http.StatusNotFound, server.CodeNotFound)
				require.Contains(t, p.Detail, "Your organisation has no collection "+unknownID)
				require.Empty(t, p.Errors)
			}
		}
		require.Equal(t, int64(0), c.readCollection(id).VideoCount.MustGet()+c.readCollection(id).AccountCount.MustGet())
		c.send(http.MethodGet, "/collections/"+unknownID+"/videos", nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
		c.send(http.MethodGet, "/collections/"+unknownID+"/accounts", nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
	})
}

// Requirements in docs/coverage.md: 4.1-27, 4.1-30, 4.1-32, 4.1-35, 4.1-37, 8-05, 8-09
func TestCollectionMembers_refusesInvalidIDLists(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.trackVideos(http.StatusOK, videoURLs(1, 101))
	var ids []uuid.UUID
	for _, v := range c.listVideos("").Data {
		ids = append(ids, v.AdID)
	}
	id := c.createNamedCollection("Launch")
	for _, kind := range []string{"videos", "accounts"} {
		member := "/" + strings.TrimSuffix(kind, "s") + "_ids"
		for _, method := range []string{http.MethodPost, http.MethodDelete} {
			for want, sent := range map[string]any{
				" min_items": []string{}, " max_items": ids, " nullable": nil, " type": ids[0], "/0 format": []string{tiktokLink}, "/1 nullable": []any{unknownID, nil},
				"/0 type": []int{1},
			} {
				p := c.changeMembers(method, id, kind, sent).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
				require.Len(t, p.Errors, 1, p.Detail)
				require.Equal(t, member+want, *p.Errors[0].Pointer+" "+p.Errors[0].Code)
			}
			p := c.send(method, "/collections/"+id.String()+"/"+kind, "{}").requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Equal(t, "required", p.Errors[0].Code)
		}
	}
	require.Equal(t, int32(100), c.addVideos(id, ids[:100]...))
	require.Equal(t, int32(1), c.addVideos(id, ids[100]))
	t.Run("the default limit", func(t *testing.T) {
		page := c.listCollectionVideos(id, "")
		require.Len(t, page.Data, 100)
		require.Equal(t, int64(101), page.Pagination.Total)
		require.Equal(t, int64(2), page.Pagination.TotalPages)
		require.Equal(t, int32(100), page.Pagination.Limit)
		require.Len(t, c.listCollectionVideos(id, "page=2").Data, 1)
		require.Len(t, c.listCollectionVideos(id, "cursor="+*page.Pagination.NextCursor).Data, 1)
		require.Len(t, c.listCollectionVideos(id, "limit=5000").Data, 101)
		require.Empty(t, c.listCollectionVideos(id, "page=3").Data)
	})
}

// TestCollectionMembers_areTheSameInEveryResponse adds videos to a collection directly, through
// their account and through a hashtag. Four responses must show the same videos.
//
// Requirements in docs/coverage.md: 2.1-11, 2.2-25, 2.2-26, 4.1-26, 4.2-16
func TestCollectionMembers_areTheSameInEveryResponse(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		caption := map[string]string{}
		track := func(n int, handle, title string) uuid.UUID {
			l := fmt.Sprintf("https://www.tiktok.com/@%s/video/%d", handle, 7300000000000000000+n)
			caption[fmt.Sprint(7300000000000000000+n)] = title
			return c.track(l)
		}
		fetch := func() {
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				return ingest.VideoFacts{Views: new(int64(10)), Title: new(caption[target.ExternalID])}
			})
		}
		added, byAccount, tagged := track(1, "anna", "plain"), track(2, "bert", "plain too"), track(3, "carl", "A #Summer day")
		all, none := track(4, "bert", "#summer #beach"), track(5, "dora", "summer without a hashtag")
		fetch()
		bert := *c.video(byAccount.String()).LinkedAccountID
		id := c.createCollection(map[string]any{"name": "Launch", "hashtags": []string{"SUMMER"}})
		require.Equal(t, int32(2), c.addVideos(id, added, all))
		require.Equal(t, int32(1), c.addAccounts(id, bert))

		requireVideos := func(want ...uuid.UUID) {
			t.Helper()
			want = sortedIDs(want)
			require.Equal(t, want, c.videoIDs(id, ""), "GET /collections/{collection_id}/videos must return the expected videos")
			require.Equal(t, int64(len(want)), c.listCollectionVideos(id, "").Pagination.Total, "pagination.total must be the number of expected videos")
			require.Equal(t, int64(len(want)), c.readCollection(id).VideoCount.MustGet(), "video_count must be the number of expected videos")
			for _, name := range []string{"Launch", id.String()} {
				ids := []uuid.UUID{}
				for _, v := range c.listVideos("collections=" + name).Data {
					ids = append(ids, v.AdID)
				}
				require.Equal(t, want, sortedIDs(ids), "GET /videos?collections= must return the expected videos")
			}
			labelled := []uuid.UUID{}
			for _, v := range c.listVideos("").Data {
				if len(v.LabelIds) > 0 {
					require.Equal(t, []uuid.UUID{id}, v.LabelIds, "label_ids must contain the collection only once, even if a video belongs to the collection for two reasons")
					require.Equal(t, []string{"Launch"}, v.LabelNames)
					labelled = append(labelled, v.AdID)
				}
			}
			require.Equal(t, want, sortedIDs(labelled), "the videos whose label_ids contain the collection must be the expected videos")
		}
		requireVideos(added, byAccount, tagged, all)
		require.Equal(t, int64(1), c.readCollection(id).AccountCount.MustGet())

		t.Run("a new video of a member account, and a new video with a hashtag of the collection", func(t *testing.T) {
			later, laterTagged := track(6, "bert", "later"), track(7, "dora", "more #summer")
			requireVideos(added, byAccount, tagged, all, later)
			fetch()
			requireVideos(added, byAccount, tagged, all, later, laterTagged)
			c.stopVideos(http.StatusOK, later.String(), laterTagged.String())
			requireVideos(added, byAccount, tagged, all)
			require.Len(t, c.listCollectionVideos(id, "include_removed=true").Data, 6)
			require.Equal(t, []uuid.UUID{id}, c.video(later.String()).LabelIds, "a stopped video must keep its labels")
		})
		t.Run("DELETE of videos that were not added directly", func(t *testing.T) {
			got := c.changeMembers(http.MethodDelete, id, "videos", []uuid.UUID{byAccount, tagged, all}).requireStatus(http.StatusOK)
			require.Equal(t, int32(1), decode[client.RemovedVideos](got).VideosRemoved)
			requireVideos(added, byAccount, tagged, all)
			c.changeMembers(http.MethodDelete, id, "accounts", []uuid.UUID{bert}).requireStatus(http.StatusOK)
			requireVideos(added, tagged, all)
			c.patchCollection(id, map[string]any{"hashtags": []string{"beach"}}).requireStatus(http.StatusNoContent)
			requireVideos(added, all)
			c.patchCollection(id, map[string]any{"hashtags": []string{}}).requireStatus(http.StatusNoContent)
			requireVideos(added)
			c.changeMembers(http.MethodDelete, id, "videos", []uuid.UUID{added, none}).requireStatus(http.StatusOK)
			requireVideos()
		})
	})
}

func TestCollectionPath_selectsByIDAndNotByName(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		one, two := c.track(videoURL(1)), c.track(videoURL(2))
		id := c.createNamedCollection("Launch")
		namedLikeID := c.createNamedCollection(id.String())
		c.addVideos(id, one)
		c.addVideos(namedLikeID, two)
		c.addAccounts(namedLikeID, *c.video(two.String()).LinkedAccountID)
		require.Equal(t, []uuid.UUID{one}, c.videoIDs(id, ""))
		require.Equal(t, int64(1), c.readCollection(id).VideoCount.MustGet())
		require.Equal(t, int64(0), c.readCollection(id).AccountCount.MustGet())
	})
}

// newCallerWithCollectionVideos creates an organisation with 18 videos, and a collection with 12 of them. Many videos have equal view counts.
func newCallerWithCollectionVideos(t *testing.T, a *app) (*caller, uuid.UUID) {
	t.Helper()
	c := a.newCaller(t, store.TierPremium)
	id := c.createNamedCollection("Launch")
	for batch := range 3 {
		c.trackVideos(http.StatusOK, videoURLs(batch*4, batch*4+3), id.String())
		if batch < 2 {
			a.fetch(factsWithViews(int64(100 * batch)))
		}
	}
	c.trackVideos(http.StatusOK, videoURLs(50, 55))
	require.Equal(t, int64(12), c.readCollection(id).VideoCount.MustGet())
	return c, id
}

// Requirements in docs/coverage.md: 4.1-27, 4.1-28, 4.1-29
func TestListCollectionVideos_pagesReturnEveryVideoOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, id := newCallerWithCollectionVideos(t, a)
		for order := range store.VideoOrders {
			for _, direction := range []string{"asc", "desc"} {
				list := "limit=5&order_by=" + order + "&order_direction=" + direction
				all := c.listCollectionVideos(id, "order_by="+order+"&order_direction="+direction).Data
				require.Len(t, all, 12)
				var byPage, byCursor []client.Video
				cursor := ""
				for page := 1; page <= 3; page++ {
					got := c.listCollectionVideos(id, fmt.Sprintf("%s&page=%d", list, page))
					require.Equal(t, int64(12), got.Pagination.Total)
					require.Equal(t, int64(3), got.Pagination.TotalPages)
					require.Equal(t, int32(page), got.Pagination.Page)
					byPage = append(byPage, got.Data...)
					got = c.listCollectionVideos(id, list+cursor)
					require.Equal(t, int32(page), got.Pagination.Page)
					byCursor = append(byCursor, got.Data...)
					require.Equal(t, page == 3, got.Pagination.NextCursor == nil)
					if page < 3 {
						cursor = "&cursor=" + *got.Pagination.NextCursor
					}
				}
				require.Equal(t, all, byPage, list)
				require.Equal(t, all, byCursor, list)
			}
		}
		byDefault := c.listCollectionVideos(id, "").Data
		require.Equal(t, c.listCollectionVideos(id, "order_by=created_at&order_direction=desc").Data, byDefault, "the default order must be created_at, descending")
	})
}

// Requirements in docs/coverage.md: 4.1-27, 4.1-28, 8-09, 8-10
func TestListCollectionVideos_refusesInvalidParameters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c, id := newCallerWithCollectionVideos(t, a)
	another := c.createNamedCollection("Another")
	next := *c.listCollectionVideos(id, "limit=5").Pagination.NextCursor
	for query, want := range map[string]string{
		"limit=0":                              "limit minimum",
		"limit=5001":                           "limit maximum",
		"page=0":                               "page minimum",
		"order_by=name":                        "order_by enum",
		"order_direction=up":                   "order_direction enum",
		"include_removed=some":                 "include_removed type",
		"paginated=true":                       "paginated unknown_parameter",
		"username=a":                           "username unknown_parameter",
		"cursor=abc":                           "cursor invalid_cursor",
		"page=2&cursor=" + next:                "page conflict",
		"order_by=latest_views&cursor=" + next: "cursor invalid_cursor",
		"order_direction=asc&cursor=" + next:   "cursor invalid_cursor",
		"include_removed=true&cursor=" + next:  "cursor invalid_cursor",
	} {
		p := c.send(http.MethodGet, "/collections/"+id.String()+"/videos?"+query, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Len(t, p.Errors, 1, query)
		require.Equal(t, want, *p.Errors[0].Name+" "+p.Errors[0].Code, query)
	}
	for _, target := range []string{"/collections/" + another.String() + "/videos?cursor=", "/videos?order_by=created_at&cursor="} {
		p := c.send(http.MethodGet, target+next, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "invalid_cursor", p.Errors[0].Code, "the cursor of another list must be refused")
	}
}

// Requirements in docs/coverage.md: 4.1-26, 8-12
func TestListCollectionVideos_returnsOneVideoWithNullMetricsToLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, id := newCallerWithCollectionVideos(t, a)
		full := c.listCollectionVideos(id, "order_by=latest_views")
		next := *c.listCollectionVideos(id, "order_by=latest_views&limit=5").Pagination.NextCursor
		for _, tier := range []store.Tier{store.TierLimited, store.TierBasic} {
			require.NoError(t, a.SetTier(t.Context(), c.org.ID, tier))
			a.Clock.Advance(time.Second)
			got := c.listCollectionVideos(id, "order_by=latest_views&limit=10")
			require.Len(t, got.Data, 1)
			require.Equal(t, full.Data[0].AdID, got.Data[0].AdID, "the response must contain only the first video of the requested order")
			require.Nil(t, got.Data[0].LatestViews)
			require.True(t, *got.Data[0].MetricsMasked)
			require.Equal(t, client.Pagination{Total: 1, Page: 1, Limit: 10, TotalPages: 1}, got.Pagination)
			for _, query := range []string{"order_by=latest_views&page=2", "order_by=latest_views&cursor=" + next} {
				got = c.listCollectionVideos(id, query)
				require.Empty(t, got.Data)
				require.Equal(t, int64(1), got.Pagination.Total)
				require.Nil(t, got.Pagination.NextCursor)
			}
			require.Equal(t, int64(0), c.listCollectionVideos(c.createNamedCollection("Empty"), "").Pagination.Total)
		}
	})
}

// Requirements in docs/coverage.md: 11.5-07
func TestAddCollectionVideos_countsFromADayInThePast(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		video, other := c.track(videoURL(1)), c.track(videoURL(2))
		id := c.createNamedCollection("October")
		// Every day, each video gains 10 views. The last of the 40 days is today.
		const days = 40
		for day := range days {
			if day > 0 {
				a.Clock.Advance(24 * time.Hour)
			}
			require.NoError(t, a.PreparePartitions(t.Context()))
			a.fetch(factsWithViews(int64(100 + 10*day)))
		}
		from, to := a.daysAgo(35), a.daysAgo(6) // 30 days
		statistics := fmt.Sprintf("/collections/%s/statistics?start_date=%s&end_date=%s", id, from, to)
		gained := func() int64 {
			t.Helper()
			read := decode[client.CollectionStatistics](c.send(http.MethodGet, statistics, nil).requireStatus(http.StatusOK))
			if read.ViewsGained == nil {
				return 0
			}
			return *read.ViewsGained
		}
		add := func(countsFrom any, ids ...uuid.UUID) response {
			return c.send(http.MethodPost, "/collections/"+id.String()+"/videos", map[string]any{"video_ids": ids, "counts_from": countsFrom})
		}
		added := func(countsFrom any, ids ...uuid.UUID) int32 {
			t.Helper()
			return decode[client.AddedVideos](add(countsFrom, ids...).requireStatus(http.StatusOK)).VideosAdded
		}
		require.EqualValues(t, 1, added(nil, video))
		require.Zero(t, gained(), "null must mean that a video counts from now on")
		require.EqualValues(t, 1, added(from, video, other), "a video that was added before must not count in videos_added")
		require.EqualValues(t, 2*30*10, gained())

		report := c.send(http.MethodGet, "/reports/"+decode[client.ReportSummary](c.send(http.MethodPost, "/collections/"+id.String()+"/reports",
			map[string]any{"start_date": from, "end_date": to}).requireStatus(http.StatusCreated)).ID.String(), nil).requireStatus(http.StatusOK)
		require.EqualValues(t, 600, *decode[client.Report](report).Statistics.ViewsGained)
		tag := c.send(http.MethodGet, statistics, nil).requireStatus(http.StatusOK).Header.Get("ETag")
		c.send(http.MethodGet, statistics, nil, "If-None-Match", tag).requireStatus(http.StatusNotModified)
		require.Zero(t, added(a.daysAgo(25), video))
		require.NotEqual(t, tag, c.send(http.MethodGet, statistics, nil, "If-None-Match", tag).requireStatus(http.StatusOK).Header.Get("ETag"), "the ETag must change if only the day changes")
		require.EqualValues(t, 20*10+30*10, gained(), "a later day must replace an earlier one")
		require.Zero(t, added(a.daysAgo(30), video, other))
		require.EqualValues(t, 2*25*10, gained(), "a day must replace an earlier one and a later one")
		require.Zero(t, added(nil, video, other))
		require.EqualValues(t, 2*25*10, gained(), "without a day, a video must keep its time")
		require.Equal(t, string(report.body), string(c.send(http.MethodGet, "/reports/"+decode[client.Report](report).ID.String(), nil).requireStatus(http.StatusOK).body))

		tomorrow := a.daysAgo(-1)
		for sent, want := range map[string]string{
			tomorrow:     "counts_from is " + tomorrow + "; it must be a day from 2005-01-01 to today, " + a.daysAgo(0) + " (UTC)",
			"2004-12-31": "counts_from is 2004-12-31; it must be a day from 2005-01-01 to today, " + a.daysAgo(0) + " (UTC)",
		} {
			p := add(sent, video).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Equal(t, "/counts_from range "+want, *p.Errors[0].Pointer+" "+p.Errors[0].Code+" "+p.Errors[0].Detail)
		}
		require.Equal(t, "/counts_from format", func() string {
			p := add("2026-02-30", video).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			return *p.Errors[0].Pointer + " " + p.Errors[0].Code
		}())
		add(from, video, uuid.MustParse(unknownID)).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.EqualValues(t, 2*25*10, gained(), "a refused request must change no day")

		require.Zero(t, added(a.daysAgo(0), video))
		require.EqualValues(t, 25*10, gained(), "today must be allowed")
		require.Zero(t, added("2005-01-01", video))
		require.EqualValues(t, 30*10+25*10, gained())
		c.send(http.MethodDelete, "/collections/"+id.String()+"/videos", map[string]any{"video_ids": []uuid.UUID{video}, "counts_from": from}).
			requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	})
}
