package vendor_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

const facebookReel = "845589071817523"

func youtubeTarget() queue.Target {
	return queue.Target{Platform: link.YouTube, Kind: queue.KindVideo, ExternalID: "kJ4_q-Zx9W0", Link: "https://www.youtube.com/watch?v=kJ4_q-Zx9W0"}
}

func facebookTarget() queue.Target {
	return queue.Target{Platform: link.Facebook, Kind: queue.KindVideo, ExternalID: facebookReel, Link: "https://www.facebook.com/reel/" + facebookReel}
}

func TestScrapeCreators_marksRoundedCountsOfSomeFields(t *testing.T) {
	t.Parallel()
	for members, rounded := range map[string]bool{
		`"viewCountInt":1785524040,"likeCountInt":19174040,"commentCountInt":2400000`: true,
		`"viewCountInt":1785524040,"commentCountInt":1200`:                            true,
		`"viewCountInt":2400000,"likeCountInt":12000,"commentCountInt":900`:           false,
		`"viewCountInt":2400000,"commentCountInt":1234`:                               false,
	} {
		r := fetchTarget(t, "scrapecreators", http.StatusOK, `{"success":true,"id":"kJ4_q-Zx9W0",`+members+`}`, youtubeTarget())
		require.Equal(t, source.OK, r.Class, r.Detail)
		require.Equal(t, rounded, r.Facts.IsRounded(), members)
	}
	for members, rounded := range map[string]bool{`"view_count":133000,"like_count":2095`: true, `"view_count":1100`: true, `"view_count":133042,"like_count":2100`: false} {
		r := fetchTarget(t, "scrapecreators", http.StatusOK, `{"success":true,"post_id":"7",`+members+`}`, facebookTarget())
		require.Equal(t, rounded, r.Facts.IsRounded(), members)
		if rounded {
			require.Equal(t, store.Counts{Views: new(int64(1000))}, r.Facts.RoundedFrom, "only the views can be rounded, from 1,000 on")
		}
	}
}

func TestVendors_useAPictureThatCanBeDecoded(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		`"https://p.example/a.heic?x=1","https://p.example/a.jpeg?x=1"`:                                "https://p.example/a.jpeg?x=1",
		`"https://p.example/a.heic?x=1","https://p.example/a.webp?x=1","https://p.example/a.jpeg?x=1"`: "https://p.example/a.jpeg?x=1",
		`"https://p.example/a.heic?x=1","https://p.example/a.webp?x=1"`:                                "https://p.example/a.webp?x=1",
		`"https://p.example/a.image"`:                                                                  "https://p.example/a.image",
	} {
		item := `{"aweme_id":"` + pancakes + `","statistics":{"play_count":7},"video":{"cover":{"url_list":[` + list + `]}}}`
		for vendor, answer := range map[string]string{"scrapecreators": `{"success":true,"aweme_detail":` + item + `}`, "ensembledata": `{"data":[` + item + `]}`} {
			r := fetchTarget(t, vendor, http.StatusOK, answer, tiktokTarget(pancakes, "mira.cooks"))
			require.Equal(t, source.OK, r.Class, r.Detail)
			require.Equal(t, want, *r.Facts.ThumbnailURL, vendor)
		}
	}
	r := fetchTarget(t, "scrapecreators", http.StatusOK, `{"success":true,"post_id":"7","view_count":5,"video":{"thumbnail":"https://p.example/a.jpg"}}`, facebookTarget())
	require.Equal(t, new("https://p.example/a.jpg"), r.Facts.ThumbnailURL)
}

func TestVendors_readInstagramPostsWithOtherMembers(t *testing.T) {
	t.Parallel()
	r := fetchTarget(t, "scrapecreators", http.StatusOK, `{"success":true,"data":{"xdt_shortcode_media":{"shortcode":"`+reel+`","video_play_count":70,"comment_count":14}}}`, instagramTarget(reel))
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Equal(t, new(int64(14)), r.Facts.Comments)
	r = fetchTarget(t, "ensembledata", http.StatusOK, `{"data":{"code":"`+reel+`","ig_play_count":70,"reshare_count":31,"image_versions2":{"candidates":[{"url":"https://p.example/a.jpg"}]}}}`, instagramTarget(reel))
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Equal(t, new(int64(31)), r.Facts.Shares)
	require.Equal(t, new("https://p.example/a.jpg"), r.Facts.ThumbnailURL)
}

func TestScrapeCreators_prefersExactFollowers(t *testing.T) {
	t.Parallel()
	const answer = `{"success":true,"user":{"id":"1","uniqueId":"mira.cooks"},"stats":{"followerCount":11000,"followingCount":1200},
		"statsV2":{"followerCount":"10963","followingCount":"1203"},"aweme_list":[],"has_more":0}`
	r := fetchTarget(t, "scrapecreators", http.StatusOK, answer, accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0))
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Equal(t, []*int64{new(int64(10963)), new(int64(1203))}, []*int64{r.Account.Followers, r.Account.Following})
}

func TestVendors_classifyAccountsThatAreNotPublic(t *testing.T) {
	t.Parallel()
	page := accountTarget(t, "https://www.facebook.com/mira.cooks", 0)
	for _, tt := range []struct {
		vendor, answer string
		target         queue.Target
		class          source.Class
	}{
		{"scrapecreators", `{"success":true,"credits_remaining":7,"account_status":"private","isPrivate":true,"message":"Profile is private"}`, page, source.Private},
		{"scrapecreators", `{"success":true,"credits_remaining":7,"account_status":"age-restricted","message":"Profile is age-restricted"}`, page, source.AgeLimited},
		{"apify", `[{"error":"This profile is private","errorCode":"PROFILE_PRIVATE","input":"mira.cooks"}]`, accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0), source.Private},
		{"apify", `[{"error":"Another error","errorCode":"OTHER","input":"mira.cooks"}]`, accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0), source.Temporary},
	} {
		require.Equal(t, tt.class, fetchTarget(t, tt.vendor, http.StatusOK, tt.answer, tt.target).Class, tt.answer)
	}
}

func TestVendors_leaveOutReelsOfOtherAccounts(t *testing.T) {
	t.Parallel()
	const ownReel, jointReel = "DPWuK2sNkQ8", "DPWuK2sNkQ9"
	items := `{"media":{"code":"` + ownReel + `","user":{"pk":"178","username":"mira_cooks"}}},
		{"media":{"code":"` + jointReel + `","user":{"pk":"179","username":"rails_rain"},"coauthor_producers":[{"pk":"178"}]}}`
	for vendor, answer := range map[string]string{
		"scrapecreators": `{"success":true,"data":{"user":{"id":"178","username":"mira_cooks"}},"items":[` + items + `],"paging_info":{"more_available":false}}`,
		"ensembledata":   `{"data":{"id":"178","username":"mira_cooks","reels":[` + items + `]}}`,
	} {
		r := fetchTarget(t, vendor, http.StatusOK, answer, accountTarget(t, "https://www.instagram.com/mira_cooks/", 0))
		require.Equal(t, source.OK, r.Class, r.Detail)
		require.Len(t, r.Account.Videos, 1, vendor)
		require.Equal(t, ownReel, r.Account.Videos[0].ID)
	}
}

func TestScrapeCreators_requestsTheNextPageOfReelsWithBothPositions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		secondPage string
		videos     int
		continues  bool
	}{
		"the second page has other reels":                    {`{"success":true,"reels":[{"video_id":"845589071817525"}]}`, 2, false},
		"the second page repeats the first":                  {`{"success":true,"reels":[{"video_id":"845589071817524"}],"cursor":"c1","next_page_id":"p 1"}`, 1, true},
		"the second page is empty and repeats the positions": {`{"success":true,"reels":[],"cursor":"c1","next_page_id":"p 1"}`, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var queries []string
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := `{"success":true,"id":"100012345678901","name":"Mira Cooks"}`
				if r.URL.Path == "/v1/facebook/profile/reels" {
					queries = append(queries, r.URL.Query().Get("cursor")+" "+r.URL.Query().Get("next_page_id"))
					answer = `{"success":true,"reels":[{"video_id":"845589071817524"}],"cursor":"c1","next_page_id":"p 1"}`
					if len(queries) > 1 {
						answer = tt.secondPage
					}
				}
				_, _ = w.Write([]byte(answer))
			}))
			t.Cleanup(web.Close)
			s := newSource(t, "scrapecreators", web.URL, nil)
			batch := []queue.Target{accountTarget(t, "https://www.facebook.com/mira.cooks", 0)}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			require.Equal(t, source.OK, results[0].Class, results[0].Detail)
			require.Equal(t, []string{" ", "c1 p 1"}, queries)
			require.Len(t, results[0].Account.Videos, tt.videos)
			require.Equal(t, tt.continues, results[0].Account.ListContinues)
		})
	}
}
