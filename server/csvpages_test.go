package server_test

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// table parses a CSV file and returns its rows. The first row has the names of the columns.
func (a response) table() [][]string {
	a.t.Helper()
	a.requireStatus(http.StatusOK)
	require.Equal(a.t, "text/csv; charset=utf-8; header=present", a.Header.Get("Content-Type"))
	require.Contains(a.t, a.Header.Get("Content-Disposition"), "attachment; filename=")
	rows, err := csv.NewReader(bytes.NewReader(a.body)).ReadAll()
	require.NoError(a.t, err)
	return rows
}

func TestDashboardCSV_hasTheRowsAndColumnsOfThePage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		v := c.newSignedInVisitor(t)
		rows := v.visit("/video?csv=videos&order_by=latest_likes&columns=likes&columns=views&columns=fetch_status").table()
		require.Equal(t, []string{"link", "platform", "username", "title", "views", "likes", "fetch_status"}, rows[0])
		want := decode[client.VideoPage](c.send(http.MethodGet, "/videos?order_by=latest_likes", nil).requireStatus(http.StatusOK)).Data
		require.Len(t, rows, len(want)+1)
		for n, video := range want {
			require.Equal(t, []string{video.AdLink, "tiktok", "northwind.studio", video.Title, digits(video.LatestViews), digits(video.LatestLikes), string(video.FetchStatus)}, rows[n+1])
		}
		require.Empty(t, rows[3][5], "an unknown number must be an empty field, not 0")
		require.Equal(t, rows[1:2], v.visit("/video?csv=videos&columns=likes,views,fetch_status&username=northwind.studio&page=7&order_by=latest_likes").table()[1:2], "a CSV file must begin with the first row of the list, although the query has page=7")
		require.Equal(t, []string{"views", "views_gained_7d", "likes", "comments", "outlier_multiplier", "uploaded_at", "fetch_status"}, v.visit("/video?csv=videos&columns=unknown").table()[0][4:])
		require.Len(t, v.visit("/collection/"+collection.String()+"?csv=videos").table(), 4)
		require.Len(t, v.visit("/account?include_linked=true&csv=accounts").table(), 2)

		history := decode[client.VideoHistory](c.send(http.MethodGet, "/videos/"+videos[0].String()+"/history?include=quality", nil).requireStatus(http.StatusOK))
		points := v.visit("/video/tiktok/" + videos[0].String() + "?csv=history").table()
		require.Equal(t, []string{"date", "views", "likes", "comments", "shares", "bookmarks", "quality", "source", "fetched_at"}, points[0])
		require.Len(t, points, len(history)+1)
		oldest := history[len(history)-1]
		require.Equal(t, []string{oldest.Date.String(), digits(oldest.Views), digits(oldest.Likes)}, points[1][:3], "the oldest day must come first")
		for _, page := range []string{"/", "/collection/" + collection.String(), "/account/tiktok/" + want[0].LinkedAccountID.String()} {
			require.Equal(t, "date", v.visit(page + "?csv=history").table()[0][0], page)
		}
		for _, wrong := range []string{"/?csv=videos", "/video?csv=history", "/collection/" + collection.String() + "?csv=x", "/video/tiktok/" + videos[0].String() + "?csv=videos"} {
			require.Contains(t, string(v.visit(wrong).requireStatus(http.StatusBadRequest).body), "this page has no such file", wrong)
		}
		path := c.shareCollection(collection, "public", nil)
		require.Equal(t, []string{"date", "views", "likes", "comments", "gained", "videos_interpolated", "videos_carried"}, (&visitor{app: a, t: t}).visit(path + "?csv=history").table()[0])
		require.Equal(t, []string{"date", "gained", "views", "engagements", "videos", "videos_joined", "videos_interpolated", "videos_carried"}, v.visit("/collection/" + collection.String() + "?csv=history").table()[0])
	})
}

// TestDashboardCSV_hasTheGainsOfViewsThatThePageShows requires the column "gained" in the CSV files of the history. A program cannot compute these
// gains from the totals, because the gains leave out the views that a video already had when it was added.
func TestDashboardCSV_hasTheGainsOfViewsThatThePageShows(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(4), "collection_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
	a.fetch(factsWithViews(9000))
	v := c.newSignedInVisitor(t)
	shared := c.shareCollection(collection, "public", nil)
	for page, gains := range map[string][]string{"/": {"", "333", "333", "333", "0", "20001"}, shared: {"", "333", "333", "333", "9999", "10002"}} {
		var shown []string
		for _, cell := range findElements(v.visit(page).parsePage(), "td") {
			if attributeValue(cell, "data-gain") == "views" {
				shown = slices.Insert(shown, 0, attributeValue(findElements(cell, "data")[0], "value"))
			}
		}
		rows := v.visit(page + "?csv=history").table()
		column := slices.Index(rows[0], "gained")
		require.Positive(t, column, page)
		var saved []string
		for _, row := range rows[1:] {
			saved = append(saved, row[column])
		}
		require.Equal(t, shown, saved, page)
		require.Equal(t, gains, saved, page)
	}
	hidden := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"metrics": []string{"likes"}}})
	require.Equal(t, []string{"date", "likes", "videos_interpolated", "videos_carried"}, v.visit(hidden + "?csv=history").table()[0], "a page that hides views must not give their gains")
}

func TestListsOfAccountsAndCollections_linkToTheirCSVFiles(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	launch, _ := createDashboardData(a, c)
	below := decode[client.CreatedCollection](c.send(http.MethodPost, "/collections", map[string]any{"name": "=Below", "parent_id": launch, "hashtags": []string{"sale"}}).requireStatus(http.StatusCreated))
	c.trackAccountLink("https://www.tiktok.com/@other")
	v := c.newSignedInVisitor(t)
	csvLink := func(page, text string) string {
		for _, link := range findElements(v.visit(page).requireStatus(http.StatusOK).parsePage(), "a") {
			if textOf(link) == text {
				return attributeValue(link, "href")
			}
		}
		require.Fail(t, "no link with the text "+text, page)
		return ""
	}
	require.Len(t, v.visit("/account"+csvLink("/account", "CSV of 1 account")).table(), 2)
	require.Len(t, v.visit("/account"+csvLink("/account?include_linked=true", "CSV of 2 accounts")).table(), 3)
	rows := v.visit("/collection" + csvLink("/collection", "CSV of 2 collections")).table()
	require.Equal(t, []string{"name", "parent", "videos", "views", "access", "hashtags", "created_at", "id"}, rows[0])
	require.Equal(t, []string{"Spring", "", "3", "6999", "private", ""}, rows[1][:6])
	require.Equal(t, []string{"'=Below", "Spring", "0", "", "private", "sale"}, rows[2][:6])
	require.Equal(t, below.ID.String(), rows[2][7])
	require.Contains(t, string(v.visit("/collection?csv=x").requireStatus(http.StatusBadRequest).body), "this page has no such file")
}

func TestDashboardCSV_hasTheRowsOfAllPagesOfTheAPI(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Title: new("A title"), Views: new(int64(5000))}
		})
		c.trackAccountLink("https://www.tiktok.com/@other")
		report := c.createReport(collection)
		account := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK)).LinkedAccountID
		v := c.newSignedInVisitor(t)
		lists := map[string]int{
			"/video?csv=videos&order_by=latest_views":               3,
			"/collection/" + collection.String() + "?csv=videos":    3,
			"/account?include_linked=true&csv=accounts":             2,
			"/account/tiktok/" + account.String() + "?csv=videos":   3,
			"/video?csv=videos&platform=tiktok&order_by=created_at": 3,
		}
		whole := map[string][][]string{}
		for path, rows := range lists {
			whole[path] = v.visit(path).table()
			require.Len(t, whole[path], rows+1, path)
		}
		a.server.SetMaxPageBytes(1) // each page of the API then has one row
		for path := range lists {
			require.Equal(t, whole[path], v.visit(path).table(), path)
		}
		page := string(v.visit("/collection/report/" + report.String()).requireStatus(http.StatusOK).body)
		require.Equal(t, 3, strings.Count(page, "A title"), "the page of a report must show the captions of all its videos")
	})
}

func TestDashboardCSV_textsAreNotRunAsFormulas(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	titles := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\tx", "a=1", "\"quoted\", twice"}
	for n := range titles {
		c.track(videoURL(n))
	}
	a.fetch(func(target queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Title: &titles[target.ExternalID[len(target.ExternalID)-1]-'0'], Username: new("northwind"), Views: new(int64(5))}
	})
	var got []string
	for _, row := range c.newSignedInVisitor(t).visit("/video?csv=videos&order_by=created_at&order_direction=asc").table()[1:] {
		got = append(got, row[3])
	}
	require.ElementsMatch(t, []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "a=1", "\"quoted\", twice"}, got)
}

func TestDashboardCSV_fileNameSaysThatNumbersAreMadeUp(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []bool{true, false} {
		a := newApp(t, newSQLite(t), func(o *server.Options) { o.Sandbox = sandbox })
		file := a.newCaller(t, store.TierPremium).newSignedInVisitor(t).visit("/video?csv=videos").requireStatus(http.StatusOK)
		want := map[bool]string{true: "filename=made-up-videos-", false: "filename=videos-"}[sandbox]
		require.Contains(t, file.Header.Get("Content-Disposition"), want)
	}
}
