package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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

// video returns the video with the given id or link.
func (c *caller) video(ref string) client.Video {
	c.t.Helper()
	return decode[client.Video](c.send(http.MethodGet, "/videos/"+url.PathEscape(ref), nil).requireStatus(http.StatusOK))
}

// Requirements in docs/coverage.md: 2.2-01, 2.2-02, 2.2-04, 2.2-05, 2.2-06, 2.2-09, 2.2-10, 2.2-11, 2.2-12, 2.2-18, 2.2-23, 2.2-24, 2.2-25
// Requirements in docs/coverage.md: 2.2-26, 4.2-19, 4.2-21
func TestGetVideo_returnsNullCountsBeforeTheFirstFetch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track("https://www.youtube.com/shorts/dQw4w9WgXcQ")
		got := c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK)
		created := a.Clock.Now().Format("2006-01-02T15:04:05.000000+00:00")
		require.JSONEq(t, fmt.Sprintf(`{"organisation_id":%q,"ad_id":%q,"username":"","display_username":"","platform":"youtube",
			"ad_link":%q,"created_at":%q,"removed":false,"linked_account_id":null,"uploaded_at":null,"song_name":null,"song_link":null,"thumbnail_url":null,
			"video_length":null,"title":"","not_safe":false,"private":false,"hidden_stats":false,"latest_views":null,"latest_likes":null,
			"latest_comments":null,"latest_bookmarks":null,"latest_shares":null,"latest_engagement":null,"latest_updated_at":null,
			"outlier_multiplier":null,"increase_1d":null,"increase_7d":null,"increase_14d":null,"increase_30d":null,"views_gained_7d":null,"ad_info_shop":false,"ad_is_ad":false,
			"ad_product_id_shop":"","label_ids":[],"label_names":[],"fetch_status":"pending","fetch_detail":%q,"last_attempt_at":null,"next_fetch_at":%q}`,
			c.org.ID, id, decode[client.Video](got).AdLink, created,
			"The video has not been fetched since tracking began, and no collector is running; it is due on "+a.Clock.Now().Format("2006-01-02 15:04")+" UTC.", created), string(got.body))
	})
}

// Requirements in docs/coverage.md: 2.2-03, 2.2-08, 2.2-09, 2.2-10, 2.2-11, 2.2-12, 2.2-13, 2.2-14, 2.2-15, 2.2-16, 2.2-17, 2.2-18, 2.2-19
// Requirements in docs/coverage.md: 2.2-22, 2.2-24, 2.2-27, 2.2-28, 4.2-07, 4.2-08
func TestGetVideo_returnsTheFetchedCountsAndTexts(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track("https://www.facebook.com/reel/1234567890123456")
		uploaded := time.Date(2026, 2, 28, 23, 30, 0, 0, time.UTC)
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(int64(3_000_000_000)), Likes: new(int64(7)), Comments: new(int64(0)), Title: new("<b>Größe</b> & 👩🏽‍🚀 \"x\" #Handmade"),
				Username: new("north~100087"), AccountID: new("100087"), UploadedAt: &uploaded, LengthSeconds: new(12.5), SongName: new("song"),
				SongLink: new("https://music.example.test/1"), ThumbnailURL: new("https://pictures.example.test/1"), NotSafe: new(true), Private: new(true), HiddenStats: new(true), IsAd: new(true),
				ShopAd: new(true), ShopProductID: new("p1")}
		})
		v := c.video(id.String())
		require.Equal(t, "north~100087", v.Username)
		require.Equal(t, "north", v.DisplayUsername)
		require.Equal(t, "2026-02-28", v.UploadedAt.String())
		require.Equal(t, "<b>Größe</b> & 👩🏽‍🚀 \"x\" #Handmade", v.Title)
		require.Equal(t, int64(3_000_000_000), *v.LatestViews)
		require.Equal(t, int64(0), *v.LatestComments)
		require.Nil(t, v.LatestShares, "a count that was never fetched must be null, not 0")
		require.Equal(t, int64(7), *v.LatestEngagement)
		require.Equal(t, "12.5", *v.VideoLength)
		require.Equal(t, []string{"song", "https://music.example.test/1", "https://pictures.example.test/1", "p1"},
			[]string{*v.SongName, *v.SongLink, *v.ThumbnailURL, v.AdProductIDShop})
		require.True(t, v.AdInfoShop)
		require.True(t, v.NotSafe && v.Private && v.HiddenStats && v.AdIsAd)
		require.NotNil(t, v.LinkedAccountID)
		require.True(t, v.LatestUpdatedAt.Equal(a.Clock.Now()))
		require.Len(t, c.listVideos("username=North~100087").Data, 1)
		require.Len(t, c.listVideos("linked_account_id="+v.LinkedAccountID.String()).Data, 1)
		require.Empty(t, c.listVideos("username=north").Data, "the username filter must compare the whole username, including the suffix ~100087")
	})
}

// Requirements in docs/coverage.md: 2.2-29, 4.2-17
func TestGetVideo_returnsTheSameFieldsAsTheLists(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track(tiktokLink)
		a.fetch(factsWithViews(100))
		collection := c.createCollection(map[string]any{"name": "Launch"})
		c.addVideos(collection, id)
		account := c.video(id.String()).LinkedAccountID.String()
		single := c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK)
		for _, list := range []string{"/videos", "/collections/" + collection.String() + "/videos", "/accounts/" + account + "/videos?paginated=true"} {
			page := decode[struct{ Data []json.RawMessage }](c.send(http.MethodGet, list, nil).requireStatus(http.StatusOK))
			require.Len(t, page.Data, 1, list)
			require.JSONEq(t, string(single.body), string(page.Data[0]), list)
		}
	})
}

// Requirements in docs/coverage.md: 2.2-20, 2.2-21
func TestGetVideo_computesIncreasesAndOutlierMultiplier(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track(videoURL(1)).String()
		for n, l := range videoURLs(2, 5) {
			c.track(l)
			a.fetch(factsWithViews(int64(20 * (n + 1))))
		}
		last := 0
		for _, step := range []struct {
			day   int
			views int64
		}{{16, 125}, {23, 160}, {29, 200}, {30, 400}} {
			a.Clock.Advance(time.Duration(step.day-last) * 24 * time.Hour)
			last = step.day
			c.send(http.MethodPost, "/refresh/videos", map[string]any{"link": videoURL(1)}).requireStatus(http.StatusAccepted)
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				if target.Link != videoURL(1) {
					return ingest.VideoFacts{}
				}
				return ingest.VideoFacts{Views: &step.views}
			})
		}
		v := c.video(id)
		require.InDeltaSlice(t, []float64{100, 150, 220, 1900}, []float64{*v.Increase1D, *v.Increase7D, *v.Increase14D, *v.Increase30D}, 1e-9)
		require.EqualValues(t, 240, *v.ViewsGained7D)
		median := *c.account(v.LinkedAccountID.String()).MedianViews
		require.InDelta(t, 60, median, 1e-9, "median_views must be 60, the median of 20, 40, 60, 80 and 400")
		require.InDelta(t, 400/median, *v.OutlierMultiplier, 1e-9)
	})
}

// awkwardLinks contains links of one video with characters that must be percent-encoded in a path or a query.
var awkwardLinks = []string{
	tiktokLink, tiktokLink + "?a=1&b=2", tiktokLink + "#frag", tiktokLink + "?x=%20y", tiktokLink + "?x=%25", tiktokLink + "?x=%2F",
	tiktokLink + "?x=+", tiktokLink + "?x=,;", tiktokLink + "?x=é", tiktokLink + "/", "//www.tiktok.com/@northwind.studio/video/7338812345678901234",
}

// Requirements in docs/coverage.md: 4.2-19, 4.2-20, 4.2-22
func TestGetVideo_acceptsEveryFormOfTheLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track(tiktokLink)
		for _, raw := range awkwardLinks {
			upper := url.QueryEscape(raw) // QueryEscape also escapes slashes
			upper = strings.ReplaceAll(upper, "+", "%20")
			for _, escaped := range []string{upper, changeEscapesToLowerCase(upper)} {
				for _, suffix := range []string{"", "/history"} {
					c.send(http.MethodGet, "/videos/"+escaped+suffix, nil).requireStatus(http.StatusOK)
				}
				v := decode[client.Video](c.send(http.MethodGet, "/videos/"+escaped, nil).requireStatus(http.StatusOK))
				require.Equal(t, id, v.AdID, raw)
			}
			require.Len(t, c.listVideos("link="+url.QueryEscape(raw)).Data, 1, raw)
		}
		require.Equal(t, id, c.video(strings.ToUpper(id.String())).AdID)
		viaSDK, err := c.GetVideo(t.Context(), tiktokLink+"?a=1&b=2")
		require.NoError(t, err)
		require.Equal(t, id, viaSDK.AdID)
	})
}

// changeEscapesToLowerCase returns s with percent-encoding in lower case. For example, it changes %2F to %2f.
func changeEscapesToLowerCase(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			out.WriteString(strings.ToLower(s[i : i+3]))
			i += 2
			continue
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

func TestGetVideo_returns404ForUnknownVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, ref := range []string{unknownID, "00000000-0000-0000-0000-000000000000", "{" + unknownID + "}", "urn:uuid:" + unknownID,
		tiktokLink, "https://www.tiktok.com/@northwind", "https://example.com/", "../../etc/passwd", "..", "null", "15%off", "%2F", "a b", strings.Repeat("é", 2048)} {
		for _, suffix := range []string{"", "/history"} {
			if ref == ".." {
				ref = "%2e%2e"
			}
			p := c.send(http.MethodGet, "/videos/"+url.PathEscape(ref)+suffix, nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Contains(t, p.Detail, "no video")
		}
	}
	t.Run("GET /videos/bulk, which is not an operation", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got := c.send(method, "/videos/bulk", nil).requireStatus(http.StatusMethodNotAllowed)
			require.Equal(t, "OPTIONS, DELETE, POST", got.Header.Get("Allow"))
		}
	})
	t.Run("a text with NUL or invalid UTF-8", func(t *testing.T) {
		for _, broken := range []string{"a%00b", "%ff%fe"} {
			p := c.send(http.MethodGet, "/videos/"+broken, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Equal(t, "encoding", p.Errors[0].Code)
		}
		for _, length := range []int{2049, 30_000} {
			c.send(http.MethodGet, "/videos/"+strings.Repeat("a", length), nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		}
	})
}

func TestGetVideo_explainsThatALinkInThePathMustBeEncoded(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, path := range []string{tiktokLink, "https:/www.tiktok.com/@a/video/1", tiktokLink + "/history", "www.tiktok.com/@a/video/1"} {
		p := c.send(http.MethodGet, "/videos/"+path, nil).requireProblem(http.StatusBadRequest, server.CodeURLNotEncoded)
		require.Contains(t, p.Detail, "%2F")
		require.Contains(t, p.Detail, "GET /videos?link=")
	}
}

// newCallerWithFiveVideos creates an organisation with five tracked videos. Four videos were
// fetched and have titles. Some counts are equal, and some counts or upload dates are missing.
func newCallerWithFiveVideos(t *testing.T, a *app) *caller {
	t.Helper()
	c := a.newCaller(t, store.TierPremium)
	for n, facts := range []ingest.VideoFacts{
		{Views: new(int64(100)), Likes: new(int64(5)), Title: new("One #Summer dress"), UploadedAt: new(january(10)), Username: new("anna"), AccountID: new("1")},
		{Views: new(int64(300)), Likes: new(int64(1)), Title: new("Two #summer #shop"), UploadedAt: new(january(20)), ShopAd: new(true), ShopProductID: new("p1"), Username: new("anna"), AccountID: new("1")},
		{Views: new(int64(200)), Bookmarks: new(int64(9)), Title: new("Three 100% _wool_ \\ Größe"), UploadedAt: new(january(31)), ShopAd: new(true), Username: new("bert"), AccountID: new("2")},
		{Views: new(int64(200)), Shares: new(int64(4)), Comments: new(int64(3)), Title: new("Four"), Username: new("bert"), AccountID: new("2")},
	} {
		names := []string{"Odd"}
		if n%2 == 0 {
			names = []string{"Even", "a, b"}
		}
		c.send(http.MethodPost, "/videos", map[string]any{"link": fmt.Sprintf("https://www.tiktok.com/video/%d", 7300000000000000000+n), "collection_names": names}).requireStatus(http.StatusOK)
		a.fetch(func(queue.Target) ingest.VideoFacts { return facts })
	}
	c.track("https://www.youtube.com/shorts/dQw4w9WgXcQ")
	return c
}

// january returns the time 12:00 UTC on day d of January 2026.
func january(d int) time.Time {
	return time.Date(2026, time.January, d, 12, 0, 0, 0, time.UTC)
}

// videoNames sends GET /videos and returns the first word of each title, separated by commas. If
// the query contains no order_by, the words are sorted.
func videoNames(c *caller, query string) string {
	c.t.Helper()
	page := c.listVideos(query)
	names := make([]string, len(page.Data))
	for i, v := range page.Data {
		// The fifth video of newCallerWithFiveVideos has no title.
		if names[i], _, _ = strings.Cut(v.Title, " "); v.Title == "" {
			names[i] = "Five"
		}
	}
	if !strings.Contains(query, "order_by") {
		slices.Sort(names)
	}
	return strings.Join(names, ",")
}

// Requirements in docs/coverage.md: 4.2-01, 4.2-07, 4.2-08, 4.2-09, 4.2-10, 4.2-11, 4.2-12, 4.2-13, 4.2-14, 4.2-15, 4.2-16
func TestListVideos_appliesFilters(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithFiveVideos(t, a)
		all := "Five,Four,One,Three,Two"
		collections := map[string]string{}
		for _, v := range c.listVideos("").Data {
			for i, name := range v.LabelNames {
				collections[name] = v.LabelIds[i].String()
			}
		}
		third := c.listVideos("q=wool").Data[0]
		at := func(n time.Duration) string {
			return url.QueryEscape(third.LatestUpdatedAt.Add(n).Format("2006-01-02T15:04:05.999999-07:00"))
		}
		for query, want := range map[string]string{
			"":                               all,
			"&&":                             all,
			"username=anna":                  "One,Two",
			"username=%20@ANNA%20":           "One,Two",
			"username=nobody":                "",
			"linked_account_id=" + unknownID: "",
			"linked_account_id=" + third.LinkedAccountID.String():                                 "Four,Three",
			"uploaded_at_start=2026-01-20":                                                        "Three,Two",
			"uploaded_at_end=2026-01-20":                                                          "One,Two",
			"uploaded_at_start=2026-01-20&uploaded_at_end=2026-01-20":                             "Two",
			"latest_updated_at_start=" + at(0):                                                    "Four,Three",
			"latest_updated_at_end=" + at(0):                                                      "One,Three,Two",
			"latest_updated_at_start=" + at(1000) + "&latest_updated_at_end=2100-01-01T00:00:00Z": "Four",
			"ad_info_shop=true":                                                                   "Three,Two",
			"ad_info_shop=false":                                                                  "Five,Four,One",
			"ad_product_id_shop=true":                                                             "Two",
			"ad_product_id_shop=false":                                                            all,
			"has_metrics=true":                                                                    "Four,One,Three,Two",
			"has_metrics=false":                                                                   "Five",
			"has_metrics=false&collections=Odd,Even&order_by=latest_views":                        "",
			"collections=Odd":                                                                     "Four,Two",
			"collections=Odd,Even":                                                                "Four,One,Three,Two",
			"collections=Odd%2CEven":                                                              "Four,One,Three,Two",
			"collections=" + collections["a, b"]:                                                  "One,Three",
			"collections=" + collections["a, b"] + ",Odd,nonexistent":                             "Four,One,Three,Two",
			"collections=nonexistent":                                                             "",
			"platform=youtube":                                                                    "Five",
			"platform=instagram":                                                                  "",
			"hashtag=summer":                                                                      "One,Two",
			"hashtag=%23SUMMER":                                                                   "One,Two",
			"hashtag=summ":                                                                        "",
			"q=DRESS":                                                                             "One",
			"q=summer%20two":                                                                      "Two",
			"q=100%25":                                                                            "Three",
			"q=%25":                                                                               "Three",
			"q=_":                                                                                 "Three",
			"q=%5C":                                                                               "Three",
			"q=gr%C3%B6%C3%9Fe":                                                                   "Three",
			"link=" + url.QueryEscape("https://youtu.be/dQw4w9WgXcQ"): "Five",
			"link=" + url.QueryEscape(tiktokLink):                     "",
			"username=anna&ad_info_shop=true&hashtag=shop":            "Two",
			"ad_info_shop=True&has_metrics=TRUE":                      "Three,Two",
		} {
			require.Equal(t, want, videoNames(c, query), query)
		}
		t.Run("stopped videos with and without include_removed=true", func(t *testing.T) {
			c.send(http.MethodDelete, "/videos/"+third.AdID.String(), nil).requireStatus(http.StatusOK)
			require.Equal(t, "Five,Four,One,Two", videoNames(c, ""))
			require.Equal(t, all, videoNames(c, "include_removed=true"))
			require.Empty(t, videoNames(c, "q=wool&include_removed=false"))
		})
	})
}

// Requirements in docs/coverage.md: 4.2-18
func TestListVideos_responseContainsTheAppliedFilters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	got := c.send(http.MethodGet, "/videos?username=@Anna&linked_account_id="+unknownID+"&uploaded_at_start=2026-01-01&uploaded_at_end=2026-01-31"+
		"&latest_updated_at_start=2026-02-01T01:00:00%2B01:00&ad_info_shop=false&ad_product_id_shop=true&has_metrics=true&collections=A,B"+
		"&link=youtu.be/dQw4w9WgXcQ&platform=youtube&hashtag=%23Summer&q=dress&include_removed=true&fetch_status=failing", nil).requireStatus(http.StatusOK)
	var page map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(got.body, &page))
	l, err := link.Parse("https://youtu.be/dQw4w9WgXcQ")
	require.NoError(t, err)
	require.JSONEq(t, `{"username":"anna","linked_account_id":"`+unknownID+`","uploaded_at_range":{"start":"2026-01-01","end":"2026-01-31"},
		"latest_updated_at_range":{"start":"2026-02-01T00:00:00.000000+00:00","end":null},"ad_info_shop":false,"ad_product_id_shop":true,
		"has_metrics":true,"collections":["A","B"],"link":"`+l.Canonical+`","platform":"youtube","hashtag":"summer","q":"dress","include_removed":true,"fetch_status":"failing"}`,
		string(page["filters"]))
	require.JSONEq(t, `{"username":null,"linked_account_id":null,"uploaded_at_range":{"start":null,"end":null},"latest_updated_at_range":{"start":null,"end":null},
		"ad_info_shop":null,"ad_product_id_shop":null,"has_metrics":null,"collections":[],"link":null,"platform":null,"hashtag":null,"q":null,"include_removed":false,"fetch_status":null}`,
		string(decode[map[string]json.RawMessage](c.send(http.MethodGet, "/videos", nil))["filters"]))
}

// Requirements in docs/coverage.md: 4.2-04, 4.2-05, 4.2-06
func TestListVideos_sortsByTheParameterOrderBy(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithFiveVideos(t, a)
		for query, want := range map[string]string{
			"order_by=created_at&order_direction=asc":         "One,Two,Three,Four,Five",
			"order_by=created_at":                             "Five,Four,Three,Two,One",
			"order_by=uploaded_at":                            "Three,Two,One,Five,Four",
			"order_by=uploaded_at&order_direction=asc":        "One,Two,Three,Four,Five",
			"order_by=latest_updated_at":                      "Four,Three,Two,One,Five",
			"order_by=latest_views":                           "Two,Four,Three,One,Five",
			"order_by=latest_views&order_direction=asc":       "One,Three,Four,Two,Five",
			"order_by=latest_likes":                           "One,Two,Five,Four,Three",
			"order_by=latest_comments":                        "Four,Five,Three,Two,One",
			"order_by=latest_bookmarks":                       "Three,Five,Four,Two,One",
			"order_by=latest_shares&order_direction=asc":      "Four,One,Two,Three,Five",
			"order_by=latest_engagement":                      "Three,Four,One,Two,Five",
			"order_by=latest_engagement&order_direction=desc": "Three,Four,One,Two,Five",
		} {
			require.Equal(t, want, videoNames(c, query), query)
		}
		p := c.listVideos("").Pagination
		require.Equal(t, client.VideoOrderLatestUpdatedAt, p.OrderBy, "the default order must be latest_updated_at")
		require.Equal(t, client.OrderDirectionDesc, p.OrderDirection)
	})
}

// Requirements in docs/coverage.md: 11.6-01
func TestVideoLists_sortByGrowth(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		numbers, ids, last := map[string]int{}, []string{}, 0
		for _, step := range []struct {
			day   int
			views []int64 // views of the videos 1 to 4 on this day; video 4 is tracked only on the last day
		}{{0, []int64{100, 10, 500}}, {16, []int64{100, 1000, 100}}, {23, []int64{100, 1000, 250}}, {29, []int64{350, 1000, 400}}, {30, []int64{400, 1500, 500, 9000}}} {
			a.Clock.Advance(time.Duration(step.day-last) * 24 * time.Hour)
			last = step.day
			for n := range step.views {
				if n == len(ids) {
					ids = append(ids, c.track(videoURL(n+1)).String())
					numbers[ids[n]] = n + 1
					continue
				}
				c.send(http.MethodPost, "/refresh/videos", map[string]any{"link": videoURL(n + 1)}).requireStatus(http.StatusAccepted)
			}
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				for n := range step.views {
					if target.Link == videoURL(n+1) {
						return ingest.VideoFacts{Views: &step.views[n]}
					}
				}
				return ingest.VideoFacts{}
			})
		}
		collection := decode[client.Collection](c.send(http.MethodPost, "/collections", map[string]any{"name": "All"}).requireStatus(http.StatusCreated)).ID.String()
		c.send(http.MethodPost, "/collections/"+collection+"/videos", map[string]any{"video_ids": ids}).requireStatus(http.StatusOK)
		for _, list := range []string{"/videos?", "/accounts/" + c.video(ids[0]).LinkedAccountID.String() + "/videos?paginated=true&", "/collections/" + collection + "/videos?"} {
			for order, want := range map[string][]int{ // the growth of the fourth video is null and comes last, because the video has no earlier history point
				"increase_1d":                            {2, 3, 1, 4},
				"increase_1d&order_direction=asc":        {1, 3, 2, 4},
				"increase_7d":                            {1, 3, 2, 4},
				"increase_14d":                           {3, 1, 2, 4},
				"increase_30d":                           {2, 1, 3, 4},
				"increase_30d&order_direction=asc":       {3, 1, 2, 4},
				"views_gained_7d":                        {2, 1, 3, 4},
				"views_gained_7d&order_direction=asc":    {3, 1, 2, 4},
				"outlier_multiplier":                     {4, 2, 3, 1},
				"outlier_multiplier&order_direction=asc": {1, 3, 2, 4},
			} {
				var got []int
				for _, v := range decode[client.VideoPage](c.send(http.MethodGet, list+"order_by="+order, nil).requireStatus(http.StatusOK)).Data {
					got = append(got, numbers[v.AdID.String()])
				}
				require.Equal(t, want, got, "%sorder_by=%s", list, order)
			}
		}
		fourth := c.video(ids[3])
		require.Nil(t, fourth.ViewsGained7D)
		require.Nil(t, fourth.Increase1D)
		require.Zero(t, *c.video(ids[2]).Increase30D, "the growth must be 0 if the views did not change")
		require.EqualValues(t, 250, *c.video(ids[2]).ViewsGained7D)
	})
}

// Requirements in docs/coverage.md: 4.2-02, 4.2-03, 4.2-04, 4.2-06, 8-09, 8-10
func TestListVideos_refusesInvalidParameters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for query, want := range map[string]string{ // invalid queries, each with the name of the parameter and the code of the fault
		"limit=0":                              "limit minimum",
		"limit=5001":                           "limit maximum",
		"limit=20000":                          "limit maximum",
		"limit=-1":                             "limit minimum",
		"limit=":                               "limit empty",
		"limit=ten":                            "limit type",
		"limit=1e3":                            "limit type",
		"limit=1.0":                            "limit type",
		"limit=0x10":                           "limit type",
		"limit=99999999999999999999":           "limit type",
		"limit=NaN":                            "limit type",
		"page=0":                               "page minimum",
		"page=4294967296":                      "page type",
		"order_by=views":                       "order_by enum",
		"order_by=latest_views;DROP":           "order_by syntax",
		"order_direction=up":                   "order_direction enum",
		"order_direction=DESC":                 "order_direction enum",
		"username=":                            "username min_length",
		"username=@":                           "username pattern",
		"username=%20":                         "username pattern",
		"username=a%00b":                       "username encoding",
		"username=%ff":                         "username encoding",
		"username=" + strings.Repeat("a", 201): "username max_length",
		"linked_account_id=1":                  "linked_account_id format",
		"linked_account_id=%7B" + unknownID + "%7D":                                                      "linked_account_id format",
		"uploaded_at_start=2026-02-30":                                                                   "uploaded_at_start format",
		"uploaded_at_start=2026-1-1":                                                                     "uploaded_at_start format",
		"uploaded_at_start=0000-01-01":                                                                   "uploaded_at_start format",
		"uploaded_at_end=9999-12-31":                                                                     "uploaded_at_end format",
		"uploaded_at_start=2026-01-01T00:00:00Z":                                                         "uploaded_at_start format",
		"uploaded_at_start=2026-02-02&uploaded_at_end=2026-02-01":                                        "uploaded_at_start range",
		"latest_updated_at_start=2026-02-02":                                                             "latest_updated_at_start format",
		"latest_updated_at_start=2026-02-02T00:00:00":                                                    "latest_updated_at_start format",
		"latest_updated_at_start=2026-02-02T00:00:00+00:00":                                              "latest_updated_at_start format",
		"latest_updated_at_start=2026-02-02T1:00:00%2B00:00":                                             "latest_updated_at_start format",
		"latest_updated_at_start=2026-02-02T01:00:00,5Z":                                                 "latest_updated_at_start format",
		"latest_updated_at_start=2026-02-02T00:00:00%2B99:99":                                            "latest_updated_at_start format",
		"latest_updated_at_end=294277-01-01T00:00:00Z":                                                   "latest_updated_at_end format",
		"latest_updated_at_start=2026-02-02T00:00:01Z&latest_updated_at_end=2026-02-02T01:00:00%2B01:00": "latest_updated_at_start range",
		"ad_info_shop=yes":                                                                               "ad_info_shop type",
		"ad_info_shop=":                                                                                  "ad_info_shop empty",
		"has_metrics=maybe":                                                                              "has_metrics type",
		"collections=":                                                                                   "collections empty",
		"collections=a,,b":                                                                               "collections min_length",
		"collections=a&collections=&collections=b":                                                       "collections min_length",
		"platform=vimeo":                                                                                 "platform enum",
		"platform=TikTok":                                                                                "platform enum",
		"hashtag=%23":                                                                                    "hashtag pattern",
		"q=%20%20":                                                                                       "q pattern",
		"link=nonsense":                                                                                  "link invalid_url",
		"link=https://example.com/x":                                                                     "link unsupported_platform",
		"link=https://www.tiktok.com/@northwind":                                                         "link wrong_kind",
		"cursor=abc":                                                                                     "cursor invalid_cursor",
		"cursor=%21":                                                                                     "cursor pattern",
		"limit=1&limit=2":                                                                                "limit repeated_parameter",
		"limit=1&limit=1":                                                                                "limit repeated_parameter",
		"%zz=1":                                                                                          "%zz syntax",
		"q=%zz":                                                                                          "q syntax",
		"a=1;b=2":                                                                                        "a syntax",
		"Limit=1":                                                                                        "Limit unknown_parameter",
		"limit[]=1":                                                                                      "limit[] unknown_parameter",
		"paginated=true":                                                                                 "paginated unknown_parameter",
	} {
		p := c.send(http.MethodGet, "/videos?"+query, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Len(t, p.Errors, 1, "%s: %s", query, p.Detail)
		require.Equal(t, client.FaultLocationQuery, p.Errors[0].Location)
		require.Equal(t, want, *p.Errors[0].Name+" "+p.Errors[0].Code, query)
	}
	t.Run("several faults in one request", func(t *testing.T) {
		p := c.send(http.MethodGet, "/videos?limit=20000&page=0&order_by=views&uploaded_at_start=tomorrow&colour=red", nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Len(t, p.Errors, 5)
		require.Contains(t, p.Errors[2].Detail+p.Errors[1].Detail, "at most 5000, not 20000")
	})
}
