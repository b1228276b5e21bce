package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// nestedCollections is a caller whose organisation has videos in four nested collections. Some videos are in two of the collections.
type nestedCollections struct {
	*caller
	collections []uuid.UUID          // ids of the collections, the root first
	added       map[uuid.UUID]string // a map from the id of each video to the day on which the video was added
}

// newNestedCollections tracks the given number of videos in four nested collections. It simulates the given
// number of days, and fetches the videos on most days.
func newNestedCollections(t *testing.T, a *app, videos, days int) nestedCollections {
	t.Helper()
	c := nestedCollections{a.newCaller(t, store.TierPremium), nil, map[uuid.UUID]string{}}
	for level := range 4 {
		var parent []uuid.UUID
		if level > 0 {
			parent = c.collections[level-1:]
		}
		c.collections = append(c.collections, c.createNamedCollection(fmt.Sprint("Level ", level), parent...))
	}
	var links []string
	for n := range videos {
		links = append(links, videoURL(n))
	}
	var ids []uuid.UUID
	for _, entry := range c.trackVideos(http.StatusOK, links).Results {
		ids = append(ids, *entry.VideoID)
	}
	add := func(late bool) {
		groups := make([][]uuid.UUID, 4)
		for n, id := range ids {
			if (n >= videos*9/10) != late {
				continue
			}
			groups[n%4] = append(groups[n%4], id)
			if n%3 == 0 { // every third video is in a second collection too
				groups[(n+1)%4] = append(groups[(n+1)%4], id)
			}
			c.added[id] = store.DateOf(a.Clock.Now()).String()
		}
		for level, group := range groups {
			for len(group) > 0 {
				n := min(100, len(group))
				c.addVideos(c.collections[level], group[:n]...)
				group = group[n:]
			}
		}
	}
	add(false)
	for day := range days {
		if day > 0 {
			a.Clock.Advance(24 * time.Hour)
		}
		require.NoError(t, a.PreparePartitions(t.Context()))
		// The last tenth of the videos is added in the middle of the period.
		if day == days/2 {
			add(true)
		}
		// The videos are not fetched on one day in seven.
		if day%7 == 3 && day < days-1 {
			continue
		}
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			n := int64(target.ExternalID[len(target.ExternalID)-1]) + int64(target.ExternalID[len(target.ExternalID)-2])
			f := ingest.VideoFacts{Views: new(n * 100 * int64(day+1)), Likes: new(n + int64(day))}
			// On some days, some videos have unknown or lower views.
			if n%10 == 0 && day%5 == 2 {
				f.Views = nil
			}
			if n%9 == 0 && day%6 == 5 {
				*f.Views -= n * 150
			}
			return f
		})
	}
	return c
}

func (c nestedCollections) path(suffix string) string {
	return "/collections/" + c.collections[0].String() + suffix
}

// Requirements in docs/coverage.md: 11.5-01, 11.5-02
func TestCollectionHistory_equalsTheSumOfTheVideosHistories(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		const videos, days = 300, 60
		c := newNestedCollections(t, a, videos, days)
		from := a.daysAgo(days - 1)
		sums, joined, known := map[string]int64{}, map[string]int64{}, map[string]int64{}
		var gained int64
		for id, added := range c.added {
			points := decode[[]client.VideoHistoryPoint](c.send(http.MethodGet, "/videos/"+id.String()+"/history?start_date="+from, nil).requireStatus(http.StatusOK))
			var end, start *int64
			for n := range points { // the points are ordered by day, the newest first
				p := points[len(points)-1-n]
				day := p.Date.String()
				if p.Views != nil {
					end = p.Views
				}
				if day < added || end == nil {
					continue
				}
				sums[day] += *end // if the views of the day are unknown, the last known views are added
				known[day]++
				if day == added {
					joined[day] += *end
				}
				if start == nil {
					start = end
				}
			}
			if end != nil && start != nil {
				gained += *end - *start
			}
		}
		history := decode[[]client.CollectionHistoryPoint](c.send(http.MethodGet, c.path("/history?include_children=true&start_date="+from), nil).requireStatus(http.StatusOK))
		require.Len(t, history, days)
		for n, p := range history {
			day := p.Date.String()
			require.Equal(t, sums[day], *p.Views, day)
			require.Equal(t, joined[day], *p.ViewsFromAdded, day)
			require.Equal(t, *p.Videos-known[day], *p.UnknownViews, day)
			require.Equal(t, *p.Videos, *p.Measured+*p.Interpolated+*p.Carried+*p.WithoutPoint, day)
			require.Nil(t, p.Shares, "the sum of the shares must be null, because no fetch returned shares")
			if n+1 < len(history) {
				require.Equal(t, *p.Views-*history[n+1].Views, *p.ViewsGained+*p.ViewsFromAdded+*p.ViewsFromKnown, day)
			}
		}
		require.Equal(t, int64(videos), *history[0].Videos, "a video that is in two collections must count once")
		require.Positive(t, *history[days/2-1].VideosAdded)
		statistics := decode[client.CollectionStatistics](c.send(http.MethodGet, c.path("/statistics?include_children=true&start_date="+from), nil).requireStatus(http.StatusOK))
		require.Equal(t, gained, *statistics.ViewsGained)
		require.Equal(t, *history[0].Views, *statistics.Views)
		require.Negative(t, *statistics.ViewsCorrected)
		require.Len(t, statistics.Best, 5)
		require.GreaterOrEqual(t, *statistics.Best[0].ViewsGained, *statistics.Worst[0].ViewsGained)
	})
}

// Requirements in docs/coverage.md: 11.5-01
func TestCollectionHistory_addsVideosWhenTheirAccountOrHashtagIsAdded(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.createNamedCollection("Launch")
		byAccount := c.track("https://www.tiktok.com/@one/video/7300000000000000001")
		c.track("https://www.tiktok.com/@two/video/7300000000000000002")
		fetch := func(day int64) {
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				n := int64(target.ExternalID[len(target.ExternalID)-1] - '0')
				return ingest.VideoFacts{Views: new(n*1000 + day), Username: new(map[int64]string{1: "one", 2: "two", 3: "one"}[n]), Title: new(map[int64]string{2: "#sun"}[n])}
			})
		}
		account := decode[client.TrackAccountResult](c.send(http.MethodPost, "/accounts", map[string]any{"link": "https://www.tiktok.com/@one"}).requireStatus(http.StatusOK)).AccountID
		fetch(0)
		a.Clock.Advance(24 * time.Hour)
		fetch(1)
		c.send(http.MethodPost, "/collections/"+id.String()+"/accounts", map[string]any{"account_ids": []uuid.UUID{account}}).requireStatus(http.StatusOK)
		a.Clock.Advance(24 * time.Hour)
		c.patchCollection(id, map[string]any{"hashtags": []string{"sun"}}).requireStatus(http.StatusNoContent)
		fetch(2)
		a.Clock.Advance(24 * time.Hour)
		late := c.track("https://www.tiktok.com/@one/video/7300000000000000003")
		c.addVideos(id, byAccount) // this does not change the history, because the account of the video is already in the collection
		fetch(3)

		type day struct {
			Videos, Added, Views, FromAdded int64
			Gained                          *int64
		}
		var got []day
		for _, p := range decode[[]client.CollectionHistoryPoint](c.send(http.MethodGet, "/collections/"+id.String()+"/history", nil).requireStatus(http.StatusOK)) {
			got = append(got, day{*p.Videos, *p.VideosAdded, *p.Views, *p.ViewsFromAdded, p.ViewsGained})
		}
		require.Equal(t, []day{
			{Videos: 3, Added: 1, Views: 1003 + 2003 + 3003, FromAdded: 3003, Gained: new(int64(2))}, // history point of today, when the account in the collection got a new video
			{Videos: 2, Added: 1, Views: 1002 + 2002, FromAdded: 2002, Gained: new(int64(1))},        // history point of yesterday, when a hashtag was added to the collection
			{Videos: 1, Added: 1, Views: 1001, FromAdded: 1001},                                      // history point of the day before yesterday, when the account was added to the collection: no gain is known
		}, got)
		statistics := decode[client.CollectionStatistics](c.send(http.MethodGet, "/collections/"+id.String()+"/statistics", nil).requireStatus(http.StatusOK))
		require.Equal(t, int64(3), *statistics.ViewsGained)
		require.Equal(t, byAccount, statistics.Best[0].AdID)
		require.Len(t, statistics.Worst, 2)
		require.EqualValues(t, 1, *statistics.UnknownGains, "the gain of a video with views of only one day must be unknown")
		require.False(t, slices.ContainsFunc(statistics.Worst, func(g client.CollectionGain) bool { return g.AdID == late }))
	})
}

func TestCollectionStatistics_engagementsAreKnownIfOneOfTheirCountsIsKnown(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		for n := range 2 {
			c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(n), "collection_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
		}
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(int64(5)), Comments: new(int64(3))}
		})
		s := decode[client.CollectionStatistics](c.send(http.MethodGet, "/collections/"+collection.String()+"/statistics", nil).requireStatus(http.StatusOK))
		require.Equal(t, []string{"6", "0", "2"}, []string{digits(s.Engagements), digits(s.UnknownEngagements), digits(s.UnknownLikes)})
	})
}

func TestCollectionStatistics_gainBeginsWithTheFirstKnownViews(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(1), "collection_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
		for _, views := range []int64{1000, 1300} {
			a.Clock.Advance(24 * time.Hour)
			a.fetch(factsWithViews(views))
		}
		for _, of := range []struct{ from, to, unknown, atStart, gained string }{
			{a.daysAgo(2), a.daysAgo(2), "1", "", ""}, // the video has no views yet
			{a.daysAgo(2), a.daysAgo(1), "1", "", ""}, // the video has views of only one day
			{a.daysAgo(1), a.daysAgo(1), "1", "", ""},
			{a.daysAgo(2), a.daysAgo(0), "0", "1000", "300"},
			{a.daysAgo(1), a.daysAgo(0), "0", "1000", "300"}, // the views on the day before the period are unknown
			{a.daysAgo(0), a.daysAgo(0), "0", "1000", "300"},
		} {
			s := decode[client.CollectionStatistics](c.send(http.MethodGet, "/collections/"+collection.String()+"/statistics?start_date="+of.from+"&end_date="+of.to, nil).requireStatus(http.StatusOK))
			require.Equal(t, []string{of.unknown, of.atStart, of.gained}, []string{digits(s.UnknownGains), digits(s.ViewsAtStart), digits(s.ViewsGained)}, "%s to %s", of.from, of.to)
		}
	})
}

func TestCollectionStatistics_useTheLastKnownCountIfAFetchLacksIt(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		id := c.track(videoURL(1))
		c.addVideos(collection, id)
		for _, f := range []ingest.VideoFacts{
			{Views: new(int64(1000)), Likes: new(int64(100)), Shares: new(int64(50))},
			{Views: new(int64(1300)), Likes: new(int64(110)), Shares: new(int64(60))},
			{Likes: new(int64(120))}, // another source gives neither views nor shares
			{Likes: new(int64(130))},
		} {
			a.Clock.Advance(24 * time.Hour)
			a.fetch(func(queue.Target) ingest.VideoFacts { return f })
		}
		v := decode[client.Video](c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK))
		for _, period := range []struct{ from, start, gained string }{
			{a.daysAgo(3), "1000", "300"},
			{a.daysAgo(2), "1000", "300"},
			{a.daysAgo(0), "1300", ""}, // the views have been unknown since before the period
		} {
			path := "/collections/" + collection.String()
			s := decode[client.CollectionStatistics](c.send(http.MethodGet, path+"/statistics?start_date="+period.from, nil).requireStatus(http.StatusOK))
			require.Equal(t, digits(v.LatestViews), digits(s.Views), period.from)
			require.Equal(t, *v.LatestLikes+*v.LatestShares, *s.Engagements, period.from)
			require.Equal(t, []string{"0", "0"}, []string{digits(s.UnknownViews), digits(s.UnknownShares)}, period.from)
			require.Equal(t, period.gained, digits(s.ViewsGained), period.from)
			if period.gained == "" {
				continue
			}
			require.Equal(t, period.start, digits(s.ViewsAtStart), period.from)
			require.Equal(t, a.daysAgo(2), s.Best[0].EndDay.String(), "the gain must end on the last day whose views are known")
			var gained int64
			for n, p := range decode[[]client.CollectionHistoryPoint](c.send(http.MethodGet, path+"/history?start_date="+period.from, nil).requireStatus(http.StatusOK)) {
				if p.ViewsGained != nil { // null on the first day with views
					gained += *p.ViewsGained
				}
				if n == 0 {
					require.Equal(t, []int64{1300, 60, 1}, []int64{*p.Views, *p.Shares, *p.Measured})
				}
			}
			require.Equal(t, *s.ViewsGained, gained, "the gains of the days must add up to the gain of the period")
		}
	})
}
