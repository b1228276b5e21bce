package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// videoHistory returns the decoded response of GET /videos/{ad_id}/history. The video has the given id or link.
func (c *caller) videoHistory(idOrLink, query string) []client.VideoHistoryPoint {
	c.t.Helper()
	return decode[[]client.VideoHistoryPoint](c.send(http.MethodGet, "/videos/"+idOrLink+"/history?"+query, nil).requireStatus(http.StatusOK))
}

// daysAgo returns the date n days before the current time of the test clock, as YYYY-MM-DD.
func (a *app) daysAgo(n int) string { return a.Clock.Now().AddDate(0, 0, -n).Format(time.DateOnly) }

// newCallerWithVideoHistory creates an organisation that tracks one video. The video was fetched fetchCount times, once a day, and the last
// fetch was today. The second result is the video id.
func newCallerWithVideoHistory(t *testing.T, a *app, tier store.Tier, fetchCount int) (*caller, string) {
	t.Helper()
	c := a.newCaller(t, tier)
	id := c.track(tiktokLink)
	for n := range fetchCount {
		if n > 0 {
			a.Clock.Advance(24 * time.Hour)
		}
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(int64(100 * (n + 1))), Likes: new(int64(n)), Shares: new(int64(1))}
		})
	}
	return c, id.String()
}

// Requirements in docs/coverage.md: 2.4-01, 2.4-02, 4.2-23, 4.2-25, 4.2-26, 8-11
func TestVideoHistory_returnsOnePointPerDayNewestFirst(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, id := newCallerWithVideoHistory(t, a, store.TierPremium, 40)
		points := c.videoHistory(id, "")
		require.Len(t, points, 31, "by default, the history must contain today and the 30 days before")
		for i, p := range points {
			require.Equal(t, a.daysAgo(i), p.Date.String())
			require.Equal(t, int64(4000-100*i), *p.Views)
			require.Equal(t, int64(40-i), *p.Engagements)
			require.Nil(t, p.Comments, "a count that was never fetched must be null, not 0")
			require.Nil(t, p.Interpolated)
			require.Nil(t, p.MetricsMasked)
		}
		t.Run("the history must include the days start_date and end_date", func(t *testing.T) {
			got := c.videoHistory(id, fmt.Sprintf("start_date=%s&end_date=%s", a.daysAgo(35), a.daysAgo(33)))
			require.Equal(t, []string{a.daysAgo(33), a.daysAgo(34), a.daysAgo(35)}, []string{got[0].Date.String(), got[1].Date.String(), got[2].Date.String()})
			require.Len(t, c.videoHistory(id, fmt.Sprintf("start_date=%[1]s&end_date=%[1]s", a.daysAgo(5))), 1)
		})
		t.Run("days before the first fetch and after the last fetch", func(t *testing.T) {
			require.Len(t, c.videoHistory(id, "start_date="+a.daysAgo(89)), 40)
			require.Empty(t, c.videoHistory(id, fmt.Sprintf("start_date=%s&end_date=%s", a.daysAgo(89), a.daysAgo(60))))
			require.Equal(t, "[]\n", string(c.send(http.MethodGet, "/videos/"+id+"/history?start_date="+a.daysAgo(-3), nil).requireStatus(http.StatusOK).body))
		})
		t.Run("a day with several fetches", func(t *testing.T) {
			a.Clock.Advance(time.Hour)
			a.fetch(factsWithViews(9999))
			require.Equal(t, int64(9999), *c.videoHistory(id, "")[0].Views)
			require.Len(t, c.videoHistory(id, ""), 31)
		})
	})
}

// Requirements in docs/coverage.md: 4.2-27
func TestVideoHistory_interpolatesDaysWithoutAFetch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track(tiktokLink).String()
		a.fetch(factsWithViews(100))
		a.Clock.Advance(7 * 24 * time.Hour)
		a.fetch(factsWithViews(800))
		a.Clock.Advance(95 * 24 * time.Hour)
		points := c.videoHistory(id, "start_date="+a.daysAgo(110))
		require.Len(t, points, 8, "the history must have no points before the first fetch and after the last fetch")
		for i, p := range points {
			require.Equal(t, a.daysAgo(95+i), p.Date.String())
			require.Equal(t, int64(800-100*i), *p.Views)
			require.Equal(t, i > 0 && i < 7, p.Interpolated != nil && *p.Interpolated, "'interpolated' must be true for days without a fetch, and absent for days with a fetch: %d days ago", 95+i)
		}
	})
}

func TestVideoHistory_marksInterpolatedDaysInTables(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.track(tiktokLink).String()
	a.fetch(factsWithViews(100))
	a.Clock.Advance(3 * 24 * time.Hour)
	a.fetch(factsWithViews(400))
	history := "/videos/" + id + "/history?include=quality"
	for query, want := range map[string][]string{
		"":                             {"interpolated", "", "true", "true", ""},
		"&end_date=" + a.daysAgo(1):    {"interpolated", "true", "true", ""},
		"&start_date=" + a.daysAgo(0):  {"interpolated", ""},
		"&start_date=" + a.daysAgo(-3): {"interpolated"},
	} {
		_, _, sheet := openWorkbook(t, c.send(http.MethodGet, history+query, nil, "Accept", xlsx).requireStatus(http.StatusOK).body)
		rows := c.requestCSV(history + query)
		require.Equal(t, rows[0], sheet[0])
		column := slices.Index(rows[0], "interpolated")
		require.GreaterOrEqual(t, column, 0, "%q: the table must have the column 'interpolated', even if the first point has no member 'interpolated'", query)
		var got []string
		for i, row := range rows {
			got = append(got, row[column])
			if i > 0 {
				require.Contains(t, rows[0], "quality")
				measured := row[slices.Index(rows[0], "quality")] == "measured"
				require.Equal(t, measured, row[slices.Index(rows[0], "source")] != "", "%q: a point must have a source if it was measured, and no source otherwise", query)
				require.Equal(t, measured, row[slices.Index(rows[0], "fetched_at")] != "", "%q: a point must have fetched_at if it was measured, and no fetched_at otherwise", query)
			}
		}
		require.Equal(t, want, got, query)
	}
	plain := c.requestCSV("/videos/" + id + "/history")
	require.Equal(t, []string{"bookmarks", "comments", "date", "engagements", "interpolated", "likes", "shares", "views"}, plain[0])
}

// Requirements in docs/coverage.md: 4.2-24, 5-02, 8-11
func TestVideoHistory_refusesAStartDateOlderThanTheTierAllows(t *testing.T) {
	t.Parallel()
	for tier, days := range map[store.Tier]int{store.TierLimited: 90, store.TierBasic: 90, store.TierPremium: 730} {
		a := newApp(t, newSQLite(t))
		c := a.newCaller(t, tier)
		id := c.track(tiktokLink).String()
		require.Empty(t, c.videoHistory(id, "start_date="+a.daysAgo(days)))
		p := c.send(http.MethodGet, "/videos/"+id+"/history?start_date="+a.daysAgo(days+1), nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Contains(t, p.Detail, a.daysAgo(days), "the detail must contain the oldest allowed date")
		require.Equal(t, "start_date", *p.Errors[0].Name)

		p = c.send(http.MethodGet, fmt.Sprintf("/videos/%s/history?start_date=%s&end_date=%s", id, a.daysAgo(3), a.daysAgo(4)), nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "end_date", *p.Errors[0].Name)
		c.send(http.MethodGet, "/videos/"+id+"/history?end_date="+a.daysAgo(31), nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		for _, bad := range []string{"start_date=2026-02-30", "start_date=yesterday", "end_date=", "start_date=2026-01-01&start_date=2026-01-02"} {
			c.send(http.MethodGet, "/videos/"+id+"/history?"+bad, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		}
	}
}

// Requirements in docs/coverage.md: 4-02, 4.2-22
func TestVideoHistory_returnsOneMaskedPointToLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		for _, tier := range []store.Tier{store.TierLimited, store.TierBasic} {
			c, id := newCallerWithVideoHistory(t, a, tier, 3)
			got := c.videoHistory(id, "")
			require.Len(t, got, 1)
			require.Equal(t, a.daysAgo(0), got[0].Date.String())
			require.True(t, *got[0].MetricsMasked)
			require.Nil(t, got[0].Views)
			require.Nil(t, got[0].Engagements)
		}
	})
}

func TestVideoHistory_includesTheQualityOfEachPointIfRequested(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track(tiktokLink).String()
		var times []time.Time
		for _, n := range []int64{100, 90, 120} {
			a.fetch(factsWithViews(n))
			times = append(times, a.Clock.Now())
			a.Clock.Advance(48 * time.Hour)
		}
		got := c.videoHistory(id, "include=quality")
		require.Len(t, got, 5)
		for i, want := range []client.HistoryQuality{client.HistoryQualityMeasured, client.HistoryQualityInterpolated, client.HistoryQualityCorrected,
			client.HistoryQualityInterpolated, client.HistoryQualityMeasured} {
			p := got[i]
			require.Equal(t, want, *p.Quality, p.Date)
			require.Equal(t, want == client.HistoryQualityInterpolated, p.Interpolated != nil, p.Date)
			if want == client.HistoryQualityInterpolated {
				require.Nil(t, p.Source)
				require.Nil(t, p.FetchedAt)
				continue
			}
			require.Equal(t, "test", *p.Source)
			require.WithinDuration(t, times[2-i/2], *p.FetchedAt, 0)
		}
		require.Equal(t, []int64{120, 105, 90, 95, 100}, []int64{*got[0].Views, *got[1].Views, *got[2].Views, *got[3].Views, *got[4].Views})
		corrected := c.videoHistory(id, fmt.Sprintf("include=quality&start_date=%[1]s&end_date=%[1]s", a.daysAgo(4)))
		require.Equal(t, client.HistoryQualityCorrected, *corrected[0].Quality, "a decrease must be detected although the previous point is before start_date")

		for _, p := range c.videoHistory(id, "") {
			require.Nil(t, p.Quality)
			require.Nil(t, p.Source)
			require.Nil(t, p.FetchedAt)
		}
		account := c.accountHistory("https://www.tiktok.com/@northwind.studio", "include=quality")
		require.Len(t, account, 3)
		for i, want := range []client.HistoryQuality{client.HistoryQualityMeasured, client.HistoryQualityCorrected, client.HistoryQualityMeasured} {
			require.Equal(t, want, *account[i].Quality)
			require.Equal(t, "test", *account[i].Source)
			require.WithinDuration(t, times[2-i], *account[i].FetchedAt, 0)
		}
		require.Nil(t, c.accountHistory("https://www.tiktok.com/@northwind.studio", "")[0].Quality)
		for _, bad := range []string{"include=", "include=counts", "include=quality,quality", "include=quality&include=quality"} {
			c.send(http.MethodGet, "/videos/"+id+"/history?"+bad, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		}
	})
}

func TestVideoHistory_omitsTheQualityOfEachPointForLowerTiers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c, id := newCallerWithVideoHistory(t, a, store.TierBasic, 3)
	withoutQuality, withQuality := c.videoHistory(id, ""), c.videoHistory(id, "include=quality")
	require.Equal(t, withoutQuality, withQuality)
	require.True(t, *withQuality[0].MetricsMasked)
}
