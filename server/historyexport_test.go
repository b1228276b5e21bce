package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// readExport reads all pages of an export. It returns the history points, and the member exported_until of the last page.
func (c *caller) readExport(query url.Values) (points []client.ExportedPoint, until string) {
	c.t.Helper()
	for {
		page := decode[client.HistoryExport](c.send(http.MethodGet, "/history/export?"+query.Encode(), nil).requireStatus(http.StatusOK))
		points, until = append(points, page.Data...), page.ExportedUntil.Format(time.RFC3339Nano)
		if page.NextCursor == nil {
			return points, until
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// Requirements in docs/coverage.md: 14.3-01, 14.3-02, 14.3-03
func TestHistoryExport_updatedSinceSelectsOnlyNewPoints(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		const videos, days = 7, 5
		c, other := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
		other.track(videoURL(100))
		want := map[string]int64{} // the expected views, by video id and day
		for n := range videos {
			c.track(videoURL(n))
		}
		fetch := func(views int64) {
			a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: &views, Comments: new(int64(3))} })
		}
		for n := range days {
			fetch(int64(10 * n))
			for v := range videos {
				id := c.track(videoURL(v)).String()
				want[id+a.daysAgo(0)] = int64(10 * n)
			}
			a.Clock.Advance(24 * time.Hour)
		}
		points, until := c.readExport(url.Values{"limit": {"3"}})
		got := map[string]int64{}
		for _, p := range points {
			require.NotContains(t, got, p.AdID.String()+p.Date.String(), "an export must not return a point twice")
			got[p.AdID.String()+p.Date.String()] = *p.Views
			require.Equal(t, int64(3), *p.Comments)
			require.Nil(t, p.Likes, "a count that was never fetched must be null, not 0")
			require.False(t, *p.Rounded)
			require.NotEmpty(t, *p.Source)
			history := c.videoHistory(p.AdID.String(), fmt.Sprintf("start_date=%s&end_date=%[1]s&include=quality", p.Date))
			require.Equal(t, history[0].FetchedAt, p.FetchedAt)
		}
		require.Equal(t, want, got)

		c.stopVideos(http.StatusOK, c.track(videoURL(6)).String()) // stopped videos stay in the export
		stopped, _ := c.readExport(url.Values{})
		require.Len(t, stopped, len(points))

		none, _ := c.readExport(url.Values{"updated_since": {until}})
		require.Empty(t, none)
		fetch(1000)
		tooNew, until := c.readExport(url.Values{"updated_since": {until}})
		require.Empty(t, tooNew, "a point must not be exported in the first two minutes after its fetch")
		a.Clock.Advance(3 * time.Minute)
		fresh, _ := c.readExport(url.Values{"updated_since": {until}})
		require.Len(t, fresh, videos-1)
		for _, p := range fresh {
			require.Equal(t, int64(1000), *p.Views)
			require.Equal(t, a.daysAgo(0), p.Date.String())
		}
	})
}

// TestHistoryExport_losesNoPointsOfVideosThatAreFetchedDuringTheExport fetches one video shortly
// before an export, and a second video between two pages of the export. The export must have the
// older points of both videos.
//
// Requirements in docs/coverage.md: 14.3-02, 14.3-03
func TestHistoryExport_losesNoPointsOfVideosThatAreFetchedDuringTheExport(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		const videos = 4
		c := a.newCaller(t, store.TierPremium)
		for n := range videos {
			c.track(videoURL(n))
		}
		a.fetch(factsWithViews(1))
		yesterday := a.daysAgo(0)
		a.Clock.Advance(24 * time.Hour)
		fetchOne := func() {
			claim, err := a.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 1, time.Minute, queue.Lanes...))
			require.NoError(t, err)
			require.Len(t, claim.Targets, 1)
			require.NoError(t, a.Acknowledge(t.Context(), claim, claim.At, []ingest.Outcome{storetest.Outcome(a.DB, claim.Targets[0], storetest.Views(2))}))
		}
		exported := map[string]int{} // number of different exported points, by day
		seen := map[string]bool{}
		add := func(points []client.ExportedPoint) {
			for _, p := range points {
				if key := p.AdID.String() + p.Date.String(); !seen[key] {
					seen[key] = true
					exported[p.Date.String()]++
				}
			}
		}

		fetchOne()
		first := decode[client.HistoryExport](c.send(http.MethodGet, "/history/export?limit=1", nil).requireStatus(http.StatusOK))
		require.Len(t, first.Data, 1)
		add(first.Data)
		fetchOne()
		a.Clock.Advance(4 * time.Minute)
		rest, until := c.readExport(url.Values{"limit": {"1"}, "cursor": {*first.NextCursor}})
		add(rest)
		require.Equal(t, first.ExportedUntil.Format(time.RFC3339Nano), until, "all pages of an export must have the same exported_until")
		require.Equal(t, map[string]int{yesterday: videos}, exported, "the export must have exactly the points that were fetched before exported_until")

		next, _ := c.readExport(url.Values{"updated_since": {until}})
		require.Len(t, next, 2, "the next export must have exactly the new points")
		add(next)
		require.Equal(t, map[string]int{yesterday: videos, a.daysAgo(0): 2}, exported)
	})
}

// TestHistoryExport_waitsForTheLongestFetchOfTheRunningCollectors requires that an export leaves out the newest points. A point has the time at which
// its fetch began, but it is stored only after the fetch. In this test, a fetch can last ten minutes.
//
// Requirements in docs/coverage.md: 14.3-03
func TestHistoryExport_waitsForTheLongestFetchOfTheRunningCollectors(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, _ := newCallerWithVideoHistory(t, a, store.TierPremium, 1)
		a.Clock.Advance(3 * time.Minute)
		points, _ := c.readExport(url.Values{})
		require.Len(t, points, 1)
		sources := []queue.Source{{Name: "youtube", FetchSeconds: 60}, {Name: "vendor:slow", FetchSeconds: 600}}
		id := store.NewID()
		heartbeat := func() {
			_, err := a.Queue.Heartbeat(t.Context(), id, time.Minute, sources)
			require.NoError(t, err)
		}
		heartbeat()
		points, until := c.readExport(url.Values{})
		require.Empty(t, points)
		require.Equal(t, a.Clock.Now().Add(-11*time.Minute).Truncate(time.Minute).UTC().Format(time.RFC3339Nano), until)
		a.Clock.Advance(9 * time.Minute)
		heartbeat()
		points, _ = c.readExport(url.Values{})
		require.Len(t, points, 1)
	})
}

// TestHistoryExport_losesNoPointsIfHeartbeatsAreMissing stores the point of a fetch after an export that took place during the fetch. The heartbeats of the
// collector are missing, or its clock is wrong. The next export must contain the point.
//
// Requirements in docs/coverage.md: 14.3-03
func TestHistoryExport_losesNoPointsIfHeartbeatsAreMissing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		silence       time.Duration // how long the heartbeats of the collector are missing before the export
		ahead         time.Duration // by how much the clock of the collector is ahead
		otherDeclares bool          // another collector declares the collector dead
	}{
		"the heartbeat is late":                      {silence: 11 * time.Second},
		"another collector has declared it dead":     {silence: 11 * time.Second, otherDeclares: true},
		"the heartbeats are missing for a long time": {silence: 15 * time.Minute, otherDeclares: true},
		"the clock is behind":                        {ahead: -4 * time.Minute},
		"the clock is ahead":                         {ahead: 4 * time.Minute},
		"the clock is behind and heartbeats missing": {ahead: -4 * time.Minute, silence: time.Minute, otherDeclares: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, a *app) {
				c := a.newCaller(t, store.TierPremium)
				c.track(videoURL(0))
				open := func(ahead time.Duration) *store.Store {
					s, err := store.Open(t.Context(), store.Options{URL: a.URL, Now: func() time.Time { return a.Clock.Now().Add(ahead) }})
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, s.Close()) })
					return s
				}
				slow, fast := open(test.ahead), open(0)
				id, other := store.NewID(), store.NewID()
				heartbeat := func(s *store.Store, collector uuid.UUID, seconds int64) {
					_, err := s.Queue.Heartbeat(t.Context(), collector, 10*time.Second, []queue.Source{{Name: "vendor", FetchSeconds: seconds}})
					require.NoError(t, err)
				}
				a.Clock.Advance(10 * time.Minute) // the video is due for each clock
				heartbeat(slow, id, 600)
				claim, err := slow.Queue.Claim(t.Context(), storetest.NewClaimRequest(id, link.TikTok, "video", 1, 11*time.Minute, queue.Lanes...))
				require.NoError(t, err)
				require.Len(t, claim.Targets, 1)
				a.Clock.Advance(5 * time.Minute)
				heartbeat(slow, id, 600)
				_, first := c.readExport(url.Values{})
				if test.otherDeclares {
					heartbeat(fast, other, 60)
				}
				a.Clock.Advance(test.silence)
				if test.otherDeclares {
					heartbeat(fast, other, 60)
				}
				points, until := c.readExport(url.Values{})
				require.Empty(t, points)
				require.GreaterOrEqual(t, until, first)
				require.NoError(t, ingest.New(slow).Acknowledge(t.Context(), claim, claim.At, []ingest.Outcome{storetest.Outcome(a.DB, claim.Targets[0], storetest.Views(2))}))
				heartbeat(slow, id, 600)
				require.NoError(t, slow.Queue.RemoveCollector(t.Context(), id))
				a.Clock.Advance(time.Hour)
				next, _ := c.readExport(url.Values{"updated_since": {until}})
				require.Len(t, next, 1, "the fetch began before exported_until, but its point was not exported")
			})
		})
	}
}

// Requirements in docs/coverage.md: 14.3-03
func TestHistoryExport_ignoresACollectorThatWasKilledLongAgo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, _ := newCallerWithVideoHistory(t, a, store.TierPremium, 1)
		heartbeat := func() {
			_, err := a.Queue.Heartbeat(t.Context(), store.NewID(), 10*time.Second, []queue.Source{{Name: "vendor:slow", FetchSeconds: 600}})
			require.NoError(t, err)
		}
		heartbeat()
		killed := a.Clock.Now()
		exportAt := func() string {
			_, until := c.readExport(url.Values{})
			return until
		}
		require.Equal(t, exportedUntil(killed.Add(-11*time.Minute)), exportAt())
		a.Clock.Advance(20 * time.Minute)
		require.Equal(t, exportedUntil(killed.Add(-11*time.Minute)), exportAt(), "the collector may still store the answers to its fetches")
		a.Clock.Advance(time.Second)
		require.Equal(t, exportedUntil(a.Clock.Now().Add(-2*time.Minute)), exportAt())
		heartbeat()
		require.Equal(t, exportedUntil(a.Clock.Now().Add(-11*time.Minute)), exportAt())
	})
}

// exportedUntil returns the member exported_until of an export that has the points of all fetches before a time.
func exportedUntil(at time.Time) string {
	return at.Truncate(time.Minute).UTC().Format(time.RFC3339Nano)
}

func TestHistoryExport_hasTheSameEntriesInEachFormat(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, id := newCallerWithVideoHistory(t, a, store.TierPremium, 4)
		a.Clock.Advance(3 * time.Minute)
		asJSON := c.send(http.MethodGet, "/history/export", nil).requireStatus(http.StatusOK)
		page := decode[client.HistoryExport](asJSON)
		require.Len(t, page.Data, 4)
		require.Equal(t, id, page.Data[0].AdID.String())
		require.Contains(t, string(asJSON.body), `"exported_until":"`+asJSON.Header.Get("Exported-Until")+`"`)

		lines := c.send(http.MethodGet, "/history/export", nil, "Accept", "application/x-ndjson").requireStatus(http.StatusOK)
		require.Equal(t, "application/x-ndjson", lines.Header.Get("Content-Type"))
		require.Equal(t, asJSON.Header.Get("Exported-Until"), lines.Header.Get("Exported-Until"))
		var entries []client.ExportedPoint
		for scanner := bufio.NewScanner(bytes.NewReader(lines.body)); scanner.Scan(); {
			var entry client.ExportedPoint
			require.NoError(t, json.Unmarshal(scanner.Bytes(), &entry))
			entries = append(entries, entry)
		}
		require.Equal(t, page.Data, entries)
		c.send(http.MethodGet, "/history/export", nil, "Accept", "application/x-ndjson", "If-None-Match", lines.Header.Get("ETag")).requireStatus(http.StatusNotModified)

		rows := c.requestCSV("/history/export")
		require.Len(t, rows, 5)
		require.Equal(t, []string{"ad_id", "ad_link", "bookmarks", "comments", "date", "fetched_at", "likes", "platform", "rounded", "shares", "source", "views"}, rows[0])
		c.send(http.MethodGet, "/videos", nil, "Accept", "application/x-ndjson").requireProblem(http.StatusNotAcceptable, server.CodeNotAcceptable)
		c.send(http.MethodGet, "/history/export?limit=201", nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	})
}

func TestHistoryExport_returnsOneMaskedPointToLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		for _, tier := range []store.Tier{store.TierLimited, store.TierBasic} {
			c := a.newCaller(t, tier)
			c.track(videoURL(1))
			a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: new(int64(5))} })
			a.Clock.Advance(24 * time.Hour)
			a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: new(int64(6))} })
			a.Clock.Advance(time.Hour)
			points, _ := c.readExport(url.Values{})
			require.Len(t, points, 1)
			p := points[0]
			require.True(t, bool(*p.MetricsMasked))
			require.Nil(t, p.Views)
			require.Nil(t, p.FetchedAt)
			require.Nil(t, p.Source)
			require.Nil(t, p.Rounded)
		}
	})
}
