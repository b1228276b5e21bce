package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// createReport creates a report of a collection and the collections below it, for the default period, and returns the id of the report.
func (c *caller) createReport(collection uuid.UUID) uuid.UUID {
	c.t.Helper()
	made := c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", map[string]any{"include_children": true}).requireStatus(http.StatusCreated)
	return decode[client.ReportSummary](made).ID
}

// Requirements in docs/coverage.md: 11.5-03, 11.5-04
func TestReport_doesNotChangeIfItsVideosChange(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newNestedCollections(t, a, 20, 12)
		body := map[string]any{"start_date": a.daysAgo(11), "include_children": true}
		made := c.send(http.MethodPost, c.path("/reports"), body, "Idempotency-Key", "one").requireStatus(http.StatusCreated)
		require.Equal(t, made.body, c.send(http.MethodPost, c.path("/reports"), body, "Idempotency-Key", "one").requireStatus(http.StatusCreated).body)
		summary := decode[client.ReportSummary](made)
		second := decode[client.ReportSummary](c.send(http.MethodPost, c.path("/reports"), body).requireStatus(http.StatusCreated))
		require.Equal(t, []int64{1, 2}, []int64{summary.Number, second.Number})
		path := "/reports/" + summary.ID.String()
		first := c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)
		sum := sha256.Sum256(first.body)
		require.Equal(t, hex.EncodeToString(sum[:]), *summary.Checksum)
		require.EqualValues(t, len(first.body), *summary.Bytes)
		require.Equal(t, `"`+base64.RawURLEncoding.EncodeToString(sum[:18])+`"`, first.Header.Get("ETag"))
		c.send(http.MethodGet, path, nil, "If-None-Match", first.Header.Get("ETag")).requireStatus(http.StatusNotModified)
		report := decode[client.Report](first)
		require.Len(t, report.Videos, 20)
		require.NotEmpty(t, report.Videos[0].Points)
		requireParts := func() {
			want, tags := decode[client.Report](first), map[string]bool{first.Header.Get("ETag"): true}
			for n := range want.Videos {
				want.Videos[n].Points = []client.ReportPoint{}
			}
			for _, query := range []string{"include_points=false", "include_points=false&include_videos=false", "include_videos=false"} {
				if strings.Contains(query, "include_videos") {
					want.Videos = []client.ReportVideo{}
				}
				part := c.send(http.MethodGet, path+"?"+query, nil).requireStatus(http.StatusOK)
				require.Equal(t, want, decode[client.Report](part), query)
				c.send(http.MethodGet, path+"?"+query, nil, "If-None-Match", part.Header.Get("ETag")).requireStatus(http.StatusNotModified)
				tags[part.Header.Get("ETag")] = true
			}
			require.Len(t, tags, 3, "the whole report, the report without points and the report without videos need different ETags")
		}
		requireParts()
		history := decode[[]client.CollectionHistoryPoint](c.send(http.MethodGet, c.path("/history?include_children=true&start_date="+a.daysAgo(11)), nil).requireStatus(http.StatusOK))
		require.Equal(t, history, report.Days)

		a.fetch(factsWithViews(1)) // the views are now lower than before, which changes the history points of today
		for id := range c.added {
			c.stopVideos(http.StatusOK, id.String())
		}
		for _, id := range c.collections {
			c.send(http.MethodDelete, "/collections/"+id.String(), nil).requireStatus(http.StatusOK)
		}
		a.Exec(t, "DELETE FROM snapshots_daily WHERE organisation_id = ?", c.org.ID) // delete all daily history points, as the removal of old points would do
		_, err := a.Migrate(t.Context())
		require.NoError(t, err)
		require.Equal(t, first.body, c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK).body)
		requireParts()
		listed := decode[client.ReportPage](c.send(http.MethodGet, c.path("/reports"), nil).requireStatus(http.StatusOK))
		require.Equal(t, []client.ReportSummary{second, summary}, listed.Data)
		c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)
		a.newCaller(t, store.TierPremium).send(http.MethodGet, path, nil).requireProblem(http.StatusNotFound, server.CodeNotFound)

		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(2 * time.Second)
		masked := decode[client.Report](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK))
		require.Nil(t, masked.Statistics.Views)
		require.Empty(t, masked.Days)
		require.Empty(t, masked.Videos)
		hidden := decode[client.ReportPage](c.send(http.MethodGet, c.path("/reports"), nil).requireStatus(http.StatusOK)).Data
		require.Len(t, hidden, 2)
		hidden = append(hidden, decode[client.ReportSummary](c.send(http.MethodPost, "/collections/"+c.createNamedCollection("Masked").String()+"/reports", body).requireStatus(http.StatusCreated)))
		for _, r := range hidden {
			require.Nil(t, r.Checksum, "counts could be guessed from the checksum")
			require.Nil(t, r.Bytes)
		}
	})
}

func TestReport_keepsTheAccountsAndCaptionsOfItsTime(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		c.addVideos(collection, c.track(videoURL(1)), c.track(videoURL(2)), c.track("https://www.youtube.com/shorts/v3AAAAAAAAA"), c.track("https://www.instagram.com/reel/C0000000004/"))
		fetch := func(views int64, title, suffix string) {
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				facts := ingest.VideoFacts{Views: new(views), Title: new(title), Username: new("maker" + suffix), UploadedAt: new(a.Clock.Now().AddDate(0, 0, -9))}
				switch target.Platform {
				case link.YouTube:
					facts.Username, *facts.Views = new("channel"+suffix), 7*views
				case link.Instagram:
					facts = ingest.VideoFacts{Likes: new(int64(1))}
				}
				return facts
			})
			a.Clock.Advance(24 * time.Hour)
		}
		long := strings.Repeat("é", 299)
		fetch(1000, long+"abc", "")
		fetch(1500, long+"abc", "")
		path := "/reports/" + c.createReport(collection).String()
		first := c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)
		report := decode[client.Report](first)
		require.Len(t, report.Accounts, 3)
		ids := map[string]uuid.UUID{}
		for n, want := range []client.ReportAccount{
			{Platform: client.PlatformYoutube, Username: new("channel"), Videos: 1, ViewsGained: new(int64(3500)), ViewsAtEnd: new(int64(10_500))},
			{Platform: client.PlatformTiktok, Username: new("maker"), Videos: 2, ViewsGained: new(int64(1000)), ViewsAtEnd: new(int64(3000))},
			{Platform: client.PlatformInstagram, Videos: 1, UnknownGains: 1, UnknownViews: 1},
		} {
			if want.Username != nil {
				ids[*want.Username] = *report.Accounts[n].AccountID
			}
			want.AccountID, want.ViewsToRegain, want.ViewsToRegainWithStart = report.Accounts[n].AccountID, new(int64(0)), new(int64(0))
			require.Equal(t, want, report.Accounts[n])
		}
		require.Nil(t, report.Accounts[2].AccountID)
		for _, v := range report.Videos {
			if strings.Contains(v.AdLink, "instagram") {
				require.Equal(t, []any{(*uuid.UUID)(nil), (*string)(nil), (*string)(nil)}, []any{v.AccountID, v.Username, v.Title})
				continue
			}
			require.Equal(t, ids[*v.Username], *v.AccountID)
			require.Equal(t, long+"a…", *v.Title)
			require.Equal(t, a.daysAgo(10), v.UploadedAt.String())
		}

		fetch(2000, "Renamed", "2")
		require.Equal(t, first.body, c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK).body)
		shown := c.newSignedInVisitor(t).visit("/collection/report" + strings.TrimPrefix(path, "/reports")).requireStatus(http.StatusOK)
		page := textOf(shown.parsePage())
		require.Contains(t, page, "@maker")
		require.NotContains(t, string(shown.body), "@maker2<")
		require.NotContains(t, page, "Renamed")
		require.NotContains(t, page, "are those of today")
	})
}

// TestReportPage_showsPresentNamesForOlderReports creates a report without captions and accounts, as an earlier version did. The page of the report must
// show the present captions and account names, and say so. The share page must not show them.
func TestReportPage_showsPresentNamesForOlderReports(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	older := decode[map[string]any](c.send(http.MethodGet, "/reports/"+c.createReport(collection).String(), nil).requireStatus(http.StatusOK))
	delete(older, "accounts")
	for _, v := range older["videos"].([]any) {
		for _, member := range []string{"account_id", "username", "title", "uploaded_at"} {
			delete(v.(map[string]any), member)
		}
	}
	today := store.DateOf(a.Clock.Now())
	made, err := a.Org(c.org.ID).CreateReport(t.Context(), store.NewReport{CollectionID: collection, From: today, To: today,
		Document: func(w io.Writer, _ store.Report, _ store.CollectionTotals) error {
			return json.NewEncoder(w).Encode(older)
		}})
	require.NoError(t, err)
	shown := c.newSignedInVisitor(t).visit("/collection/report/" + made.ID.String()).requireStatus(http.StatusOK)
	require.Equal(t, 3, strings.Count(string(shown.body), "<bdi>@northwind.studio</bdi>"))
	require.Contains(t, textOf(shown.parsePage()), "are those of today")
	part := c.send(http.MethodGet, "/reports/"+made.ID.String()+"?include_points=false", nil).requireStatus(http.StatusOK)
	require.NotContains(t, string(part.body), `"accounts"`)

	path := c.shareReport(collection, made.ID, map[string]any{"access": "public", "display_settings": map[string]any{"show_captions": true, "show_accounts": true}})
	visitor := &visitor{app: a, t: t}
	require.NotContains(t, string(visitor.visit(path).requireStatus(http.StatusOK).body), "@northwind.studio</bdi>", "a share page must show nothing that is not in the report")
	visitor.visit(path + "?csv=accounts").requireStatus(http.StatusBadRequest)
	settings := textOf(c.newSignedInVisitor(t).visit("/collection/report/" + made.ID.String()).parsePage())
	require.Contains(t, settings, "They see no captions, no accounts and nothing else")
	require.Contains(t, settings, "contains only links, so visitors see no captions")
}

func TestLargeCollections_areNotOrderedByVideoCountButListed(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	createVideosWithManyLabels(t, c, 500, store.MaxSumMembers/500) // each collection also contains 10 accounts
	a.Exec(t, `INSERT INTO collection_videos (organisation_id, collection_id, video_id, added_at)
		SELECT c.organisation_id, c.id, v.id, 0 FROM collections c JOIN videos v ON v.organisation_id = c.organisation_id`)
	p := c.send(http.MethodGet, "/collections?limit=1&order_by=video_count", nil).requireProblem(http.StatusConflict, server.CodeCollectionTooLarge)
	require.Equal(t, "The collections have more than 500000 added videos and accounts in total; the counts of at most 500000 can be added up.", p.Detail)
	c.send(http.MethodGet, "/collections?limit=1", nil).requireStatus(http.StatusOK)
}

func TestLargeCollections_areRefusedByStatisticsAndReports(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.createNamedCollection("Launch")
		createVideosWithManyLabels(t, c, store.MaxTotalsVideos, 0)
		member := func(n int) {
			a.Exec(t, `INSERT INTO collection_videos (organisation_id, collection_id, video_id, added_at)
				SELECT organisation_id, ?, id, 0 FROM videos WHERE organisation_id = ? ORDER BY id LIMIT ? ON CONFLICT DO NOTHING`, id, c.org.ID, n)
		}
		member(store.MaxTotalsVideos)
		path := "/collections/" + id.String()
		for _, read := range []string{"/history", "/statistics"} {
			c.send(http.MethodGet, path+read, nil).requireStatus(http.StatusOK)
			p := c.send(http.MethodGet, path+read+"?start_date="+a.daysAgo(31), nil).requireProblem(http.StatusConflict, server.CodeCollectionTooLarge)
			require.Equal(t, "The collection has 5000 videos, and the period has 32 days; for so many videos, the period can have at most 31 days.", p.Detail)
		}
		today := store.DateOf(a.Clock.Now())
		for back := range 16 { // each of the 5,000 videos gets a history point on 16 days, which makes 80,000 points
			day := today - store.Date(back)
			a.Exec(t, `INSERT INTO snapshots_daily (organisation_id, video_id, day, week, views, fetched_at, source)
				SELECT organisation_id, id, ?, ?, 1, 0, 'tiktok' FROM videos WHERE organisation_id = ?`, day, day.Week(), c.org.ID)
		}
		p := c.send(http.MethodPost, path+"/reports", map[string]any{}).requireProblem(http.StatusConflict, server.CodeCollectionTooLarge)
		require.Contains(t, p.Detail, "more than 75000 stored points")
		require.Empty(t, decode[client.ReportPage](c.send(http.MethodGet, path+"/reports", nil).requireStatus(http.StatusOK)).Data)

		c.track(videoURL(9_999_999))
		member(store.MaxTotalsVideos + 1)
		p = c.send(http.MethodGet, path+"/statistics", nil).requireProblem(http.StatusConflict, server.CodeCollectionTooLarge)
		require.Equal(t, "The collection has more than 5000 videos; the counts of at most 5000 videos can be added up.", p.Detail)
	})
}

// TestReport_keepsTheGainOfTheFirstWeek makes a report of the first days of a video before and after its daily points were rolled up, and after an import of
// old points. The gain begins with the views of the first day.
func TestReport_keepsTheGainOfTheFirstWeek(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		for a.Clock.Now().Weekday() != time.Tuesday {
			a.Clock.Advance(24 * time.Hour)
		}
		c.addVideos(collection, c.track(videoURL(1)))
		monday := store.DateOf(a.Clock.Now()) - 1
		views := []int64{1000, 40_000, 80_000, 90_000, 95_000, 100_000, 101_000, 102_000, 103_000}
		var points []backfill.Point
		for day, n := range views {
			a.fetch(viewsByVideo(map[byte]int64{'1': n}))
			points = append(points, backfill.Point{At: store.InstantOf(a.Clock.Now()), Counts: store.Counts{Views: &views[day]}})
			a.Clock.Advance(24 * time.Hour)
		}
		requireGain := func(gained int64) {
			t.Helper()
			_, report := c.createReportWith(collection, map[string]any{"start_date": monday.String(), "end_date": (monday + 9).String()})
			for _, v := range report.Videos {
				require.Equal(t, []any{int64(1000), gained, (monday + 1).String()}, []any{*v.ViewsAtStart, *v.ViewsGained, v.StartDay.String()})
			}
		}
		requireGain(102_000)
		a.Clock.Advance(100 * 24 * time.Hour)
		_, err := a.ApplyRetention(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		requireGain(102_000)

		l, err := link.Parse(videoURL(2))
		require.NoError(t, err)
		for _, file := range [][]backfill.Point{points[:3], points} { // the second file has later points of the same week
			_, err = backfill.Import(t.Context(), a.Org(c.org.ID), []backfill.ImportVideo{{Link: l, Points: file}}, false)
			require.NoError(t, err)
		}
		var imported []uuid.UUID
		for _, v := range c.listVideos("limit=5").Data {
			if v.AdLink == videoURL(2) {
				imported = append(imported, v.AdID)
			}
		}
		c.send(http.MethodPost, "/collections/"+collection.String()+"/videos", map[string]any{"video_ids": imported, "counts_from": monday.String()}).requireStatus(http.StatusOK)
		requireGain(102_000)
	})
}
