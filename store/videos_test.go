package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// library is an organisation with many kinds of videos, and with hashtags and collections. Tests run queries on it.
type library struct {
	org         *store.Org
	videos      []store.Video // all videos, including the stopped ones
	tags        map[uuid.UUID][]string
	collections map[string][]uuid.UUID // ids of the videos in each collection, by the name and by the id of the collection
	ids         []uuid.UUID            // ids of the collections of the organisation
}

var captions = []struct {
	title string
	tags  []string
}{
	{"", nil},
	{"100% real #Dog", []string{"dog"}},
	{"100 percent #dog #cat", []string{"dog", "cat"}},
	{"a_b and a\\b", nil},
	{"axb: Größe ÄÖÜ #Straße", []string{"straße"}},
	{"日本語の#猫 🐶", []string{"猫"}},
}

func newLibrary(t *testing.T, db *storetest.DB) library {
	t.Helper()
	lib := library{org: storetest.NewOrg(t, db), tags: map[uuid.UUID][]string{}, collections: map[string][]uuid.UUID{}}
	var links []link.Link
	for i := range 42 {
		if i%4 == 0 {
			id := fmt.Sprintf("dQw4w9W%02dcQ", i)
			links = append(links, link.Link{Platform: link.YouTube, Kind: link.Video, ID: id, Canonical: "https://www.youtube.com/watch?v=" + id})
		} else {
			links = append(links, storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@%s/video/73012345678%08d", []string{"ann", "bob", "cyd"}[i%3], i)))
		}
	}
	lib.collections["By hand"], lib.collections["By account"], lib.collections["By tag"] = nil, nil, nil
	for start := 0; start < len(links); start += 7 { // seven videos have the same created_at
		storetest.Track(t, lib.org, links[start:start+7]...)
		db.Clock.Advance(time.Minute)
	}
	small := func(i, of int) *int64 {
		if i%of == 0 {
			return nil
		}
		return new(int64(i % of))
	}
	fetches := [4]map[link.Link]ingest.VideoFacts{{}, {}, {}, {}} // the facts of four fetches, which are one minute apart
	for i, l := range links {
		if i%6 == 5 {
			continue // this video is never fetched
		}
		f := ingest.VideoFacts{Views: small(i, 5), Likes: small(i, 4), Comments: small(i, 3), Bookmarks: small(i, 7), Shares: small(i, 2),
			Title: new(captions[i%len(captions)].title), ShopAd: new(i%3 == 0)}
		if i%7 != 0 {
			f.UploadedAt = new(db.Clock.Now().AddDate(0, 0, -i%5))
		}
		if i%2 == 0 {
			f.ShopProductID = new("p")
		}
		fetches[i%4][l] = f
	}
	for minute, facts := range fetches {
		storetest.Measure(t, db, db.Clock.Now().Add(time.Duration(minute)*time.Minute), facts)
	}
	for i, l := range links {
		if i%4 > 0 {
			db.Exec(t, "UPDATE videos SET increase_1d = ?, increase_7d = ?, increase_14d = ?, increase_30d = ?, views_gained_7d = ? WHERE organisation_id = ? AND platform = ? AND external_id = ?",
				float64(i%5)/3-1, float64(i%6)/7, float64(i%7)*1e6/3, float64(i%3), i%5-2, lib.org.ID(), l.Platform, l.ID)
		}
	}
	storetest.StopVideos(t, lib.org, links[3], links[20], links[41])

	for i, l := range links {
		v := storetest.VideoOf(t, lib.org, l)
		lib.videos = append(lib.videos, v)
		if i%6 != 5 {
			lib.tags[v.ID] = captions[i%len(captions)].tags
		}
		if i%8 == 0 {
			lib.collections["By hand"] = append(lib.collections["By hand"], v.ID)
		}
		if v.Username == "ann" {
			lib.collections["By account"] = append(lib.collections["By account"], v.ID)
		}
		if slices.Contains(lib.tags[v.ID], "dog") {
			lib.collections["By tag"] = append(lib.collections["By tag"], v.ID)
		}
	}
	hand, accounts := storetest.Collection(t, lib.org, "By hand", nil), storetest.Collection(t, lib.org, "By account", nil)
	tag, err := lib.org.CreateCollection(t.Context(), store.NewCollection{Name: "By tag", Access: store.AccessPrivate, Hashtags: []string{" #DOG "}})
	require.NoError(t, err)
	_, err = lib.org.AddVideos(t.Context(), hand.ID, lib.collections["By hand"], nil)
	require.NoError(t, err)
	_, err = lib.org.AddAccounts(t.Context(), accounts.ID, []uuid.UUID{storetest.AccountByLink(t, lib.org, storetest.ParseLink(t, "https://www.tiktok.com/@ann")).ID})
	require.NoError(t, err)
	for _, c := range []store.Collection{hand, accounts, tag} {
		lib.collections[c.ID.String()] = lib.collections[c.Name]
		lib.ids = append(lib.ids, c.ID)
	}
	for i := range lib.videos {
		lib.videos[i] = storetest.VideoOf(t, lib.org, links[i])
	}
	return lib
}

// isMatch returns true if a query must return a video. It implements the conditions of VideoQuery a second time, in a simple way.
func (lib library) isMatch(q store.VideoQuery, v store.Video) bool {
	in := func(name string) bool { return slices.Contains(lib.collections[name], v.ID) }
	switch {
	case v.Removed && !q.IncludeRemoved,
		q.Username != nil && v.Username != *q.Username,
		q.LinkedAccountID != nil && (v.LinkedAccountID == nil || *v.LinkedAccountID != *q.LinkedAccountID),
		q.Platform != nil && v.Platform != *q.Platform,
		q.Link != nil && (v.Platform != q.Link.Platform || v.ExternalID != q.Link.ID),
		q.UploadedFrom != nil && (v.UploadedAt == nil || *v.UploadedAt < *q.UploadedFrom),
		q.UploadedTo != nil && (v.UploadedAt == nil || *v.UploadedAt > *q.UploadedTo),
		q.UpdatedFrom != nil && (v.LatestUpdatedAt == nil || *v.LatestUpdatedAt < *q.UpdatedFrom),
		q.UpdatedTo != nil && (v.LatestUpdatedAt == nil || *v.LatestUpdatedAt > *q.UpdatedTo),
		q.Shop != nil && v.AdInfoShop != *q.Shop,
		q.ShopProduct && (!v.AdInfoShop || v.AdProductIDShop == nil),
		q.HasMetrics != nil && (v.LatestUpdatedAt != nil) != *q.HasMetrics,
		len(q.Collections) > 0 && !slices.ContainsFunc(q.Collections, in),
		q.CollectionID != nil && !in(q.CollectionID.String()),
		q.Hashtag != nil && !slices.Contains(lib.tags[v.ID], strings.ToLower(strings.TrimPrefix(*q.Hashtag, "#"))):
		return false
	}
	if q.Words != nil {
		for word := range strings.FieldsSeq(strings.ToLower(*q.Words)) {
			if !strings.Contains(strings.ToLower(v.Title), word) {
				return false
			}
		}
	}
	return true
}

// columnValue returns the value that a video has in a column, as a number, or nil if the value is null.
func columnValue(v store.Video, column string) *float64 {
	switch column {
	case "uploaded_at":
		return toFloat(v.UploadedAt)
	case "latest_updated_at":
		return toFloat(v.LatestUpdatedAt)
	case "created_at":
		return toFloat(&v.CreatedAt)
	case "views_gained_7d":
		return toFloat(v.ViewsGained7d)
	}
	if n, isCount := map[string]*int64{"latest_views": v.Latest.Views, "latest_likes": v.Latest.Likes, "latest_comments": v.Latest.Comments,
		"latest_bookmarks": v.Latest.Bookmarks, "latest_shares": v.Latest.Shares, "latest_engagement": v.LatestEngagement}[column]; isCount {
		return toFloat(n)
	}
	return map[string]*float64{"outlier_multiplier": v.OutlierMultiplier, "increase_1d": v.Increase1d, "increase_7d": v.Increase7d,
		"increase_14d": v.Increase14d, "increase_30d": v.Increase30d}[column]
}

// toFloat converts an integer to a floating-point number. It converts nil to nil.
func toFloat[N ~int32 | ~int64 | ~int](n *N) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// compareVideos returns a comparison function that sorts videos in the given order. Videos without a value come last, and equal values are ordered by
// id.
func compareVideos(o store.Order) func(a, b store.Video) int {
	return func(a, b store.Video) int {
		ka, kb := columnValue(a, o.Column), columnValue(b, o.Column)
		if (ka == nil) != (kb == nil) {
			if ka == nil {
				return 1
			}
			return -1
		}
		c := slices.Compare(a.ID[:], b.ID[:])
		if ka != nil {
			c = cmp.Or(cmp.Compare(*ka, *kb), c)
		}
		if o.Descending {
			return -c
		}
		return c
	}
}

// expectedVideos returns the videos in lib that match the query, in the order that the query
// requests. The test compares them with the result of the store.
func (lib library) expectedVideos(q store.VideoQuery) []store.Video {
	out := slices.Clone(lib.videos)
	out = slices.DeleteFunc(out, func(v store.Video) bool { return !lib.isMatch(q, v) })
	slices.SortFunc(out, compareVideos(q.Order))
	return out
}

// randomOptional returns nil in four of five cases, and otherwise one of the values.
func randomOptional[T any](t *rapid.T, name string, values ...T) *T {
	if rapid.IntRange(0, 4).Draw(t, name+" is set") != 0 {
		return nil
	}
	return new(rapid.SampledFrom(values).Draw(t, name))
}

func (lib library) randomQuery(t *rapid.T) store.VideoQuery {
	some := lib.videos[rapid.IntRange(0, len(lib.videos)-1).Draw(t, "a video")]
	instant, day := lib.videos[0].CreatedAt.Add(8*time.Minute), lib.videos[0].CreatedAt.Day()
	q := store.VideoQuery{
		Username: randomOptional(t, "username", "ann", "bob", "nobody", ""), Platform: randomOptional(t, "platform", link.TikTok, link.YouTube, link.Facebook),
		LinkedAccountID: randomOptional(t, "account", store.NewID(), *lib.videos[1].LinkedAccountID),
		Link:            randomOptional(t, "link", link.Link{Platform: some.Platform, ID: some.ExternalID}),
		UploadedFrom:    randomOptional(t, "uploaded from", day-3, day-2, day), UploadedTo: randomOptional(t, "uploaded to", day-4, day-1, day),
		UpdatedFrom: randomOptional(t, "updated from", instant, instant.Add(time.Minute)), UpdatedTo: randomOptional(t, "updated to", instant, instant.Add(-time.Minute)),
		Shop: randomOptional(t, "shop", true, false), ShopProduct: rapid.IntRange(0, 5).Draw(t, "shop product") == 0, HasMetrics: randomOptional(t, "has metrics", true, false),
		Hashtag: randomOptional(t, "hashtag", "dog", "#Dog", "CAT", "straße", "猫", "do"), Words: randomOptional(t, "words", "100", "%", "_", `\`, "a_b", "größe äöü", "ÄÖÜ axb", "日本", "🐶", "real dog", " "),
		IncludeRemoved: rapid.Bool().Draw(t, "include removed"),
		Order:          store.Order{Column: rapid.SampledFrom(sortableVideoColumns()).Draw(t, "order"), Descending: rapid.Bool().Draw(t, "descending")},
		CollectionID:   randomOptional(t, "collection", lib.ids...),
	}
	if names := randomOptional(t, "collections", []string{"By hand"}, []string{"By tag", "By account"}, []string{lib.ids[0].String()}, []string{"Nothing"}); names != nil {
		q.Collections = *names
	}
	return q
}

// sortableVideoColumns returns the names of the columns by which videos can be ordered, in alphabetical order.
func sortableVideoColumns() []string {
	var columns []string
	for c := range store.VideoOrders {
		columns = append(columns, c)
	}
	slices.Sort(columns)
	return columns
}

func idsOf(videos []store.Video) []uuid.UUID {
	ids := []uuid.UUID{}
	for _, v := range videos {
		ids = append(ids, v.ID)
	}
	return ids
}

// readAllPages returns the ids of the videos on all pages of a query. It uses cursors if byCursor is
// true, and offsets otherwise.
func readAllPages(t *testing.T, o *store.Org, q store.VideoQuery, size int, byCursor bool) []uuid.UUID {
	t.Helper()
	ids := []uuid.UUID{}
	for q.Window.Limit = size; ; {
		page, err := o.ListVideos(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Rows), size)
		ids = append(ids, idsOf(page.Rows)...)
		if page.Next() == nil {
			return ids
		}
		require.Len(t, page.Rows, size, "every page except the last must be full")
		if byCursor {
			q.Window.After = page.Next()
		} else {
			q.Window.Offset += size
		}
	}
}

func TestVideos_returnsTheSameVideosAsASimpleImplementation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreateOrgWithData(t, db) // data of another organisation, which no query may return
		lib := newLibrary(t, db)
		for _, column := range sortableVideoColumns() {
			for _, descending := range []bool{false, true} {
				q := store.VideoQuery{IncludeRemoved: true, Order: store.Order{Column: column, Descending: descending}, Window: store.Window{Limit: 5000}}
				page := storetest.ListVideos(t, lib.org, q)
				require.Equal(t, lib.expectedVideos(q), page.Rows, "%s, descending %t", column, descending)
				require.Nil(t, page.Next())
				require.Equal(t, idsOf(page.Rows), readAllPages(t, lib.org, q, 17, true), column)
			}
		}
		both := store.VideoQuery{CollectionID: &lib.ids[0], Collections: []string{"By tag"}, Order: storetest.OrderedBy("created_at", true).Order, Window: store.Window{Limit: 5000}}
		require.NotEmpty(t, lib.expectedVideos(both))
		require.Equal(t, lib.expectedVideos(both), storetest.ListVideos(t, lib.org, both).Rows, "a query with both CollectionID and Collections")
		rapid.Check(t, func(rt *rapid.T) {
			for range 4 {
				q := lib.randomQuery(rt)
				want := idsOf(lib.expectedVideos(q))
				q.Window = store.Window{Limit: 5000}
				page := storetest.ListVideos(t, lib.org, q)
				require.Equal(rt, want, idsOf(page.Rows))
				require.EqualValues(rt, len(want), page.Total)
				size := rapid.IntRange(1, 9).Draw(rt, "page size")
				if len(want) > 4*size {
					continue // reading so many small pages would take too long
				}
				require.Equal(rt, want, readAllPages(t, lib.org, q, size, true), "by cursor")
				require.Equal(rt, want, readAllPages(t, lib.org, q, size, false), "by offset")
			}
		})
	})
}

func TestVideos_returnsEachVideoOnceIfVideosChangeBetweenPages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		links := storetest.VideoLinks(t, 12)
		for _, l := range links {
			storetest.Track(t, o, l)
			db.Clock.Advance(time.Second)
		}
		q := storetest.OrderedBy("created_at", true)
		q.Window.Limit = 4
		var seen []string
		for i := 0; ; i++ {
			page := storetest.ListVideos(t, o, q)
			for _, v := range page.Rows {
				seen = append(seen, v.ExternalID)
			}
			if page.Next() == nil {
				break
			}
			q.Window.After = page.Next()
			storetest.Track(t, o, storetest.VideoLink(t, 100+i))                  // the new video comes before the videos that were already read
			storetest.StopVideos(t, o, storetest.ParseLink(t, page.Rows[1].Link)) // stop the tracking of a video that was already read
			storetest.StopVideos(t, o, storetest.ParseLink(t, page.Rows[3].Link)) // stop the tracking of the last video of the page; the next page begins after this video
		}
		slices.Reverse(seen)
		for i, l := range links {
			require.Equal(t, l.ID, seen[i], "each video must be returned once, in order")
		}
	})
}

func TestVideos_returnsTheRightPageIfTheTotalIsOutdated(t *testing.T) {
	t.Parallel()
	changes := map[string]func(t *testing.T, o *store.Org, links []link.Link){
		"no change": func(*testing.T, *store.Org, []link.Link) {},
		"a new video": func(t *testing.T, o *store.Org, _ []link.Link) {
			storetest.Track(t, o, storetest.VideoLink(t, 1000))
		},
		"a stopped video": func(t *testing.T, o *store.Org, links []link.Link) {
			storetest.StopVideos(t, o, links[len(links)-1])
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o := storetest.NewOrg(t, db)
				links := storetest.VideoLinks(t, 450)
				for _, l := range links {
					storetest.Track(t, o, l)
					db.Clock.Advance(time.Second)
				}
				v, err := o.Version(t.Context())
				require.NoError(t, err)
				change(t, o, links)
				q := storetest.OrderedBy("created_at", false)
				q.Window = store.Window{Offset: 430, Limit: 5}
				page := storetest.ListVideos(t, o.AtVersion(v), q)
				require.Len(t, page.Rows, 5)
				for i, video := range page.Rows {
					require.Equal(t, links[430+i].ID, video.ExternalID)
				}
			})
		})
	}
}

func TestVideos_returnsAnEmptyPageAfterTheLastVideo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 3)...)
		q := storetest.OrderedBy("created_at", true)
		q.Window.Offset = 3
		page := storetest.ListVideos(t, o, q)
		require.Empty(t, page.Rows)
		require.EqualValues(t, 3, page.Total)
		require.Nil(t, page.Next())
		q.WithoutTotal = true
		require.Zero(t, storetest.ListVideos(t, o, q).Total)
	})
}

func TestVideos_refusesAPositionThatDoesNotFitTheOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for column, value := range map[string]string{"latest_views": "2024-02-29", "uploaded_at": "17", "created_at": ""} {
			q := storetest.OrderedBy(column, true)
			q.Window.After = &store.Position{Value: value, ID: store.NewID()}
			_, err := o.ListVideos(t.Context(), q)
			require.ErrorContains(t, err, "position", column)
		}
	})
}

func TestVideos_returnsNotFoundForAnUnknownCollection(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, foreign := storetest.NewOrg(t, db), storetest.Collection(t, storetest.NewOrg(t, db), "Foreign", nil)
		q := storetest.OrderedBy("created_at", true)
		q.CollectionID = &foreign.ID
		_, err := o.ListVideos(t.Context(), q)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, foreign.ID.String())
	})
}

func TestVideos_returnsAllLabelsOnAPageOfMoreThan1000Videos(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const many = 1001 // one more than the maximum number of ids in a SQL statement
		o := storetest.NewOrg(t, db)
		_, err := o.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinks(t, many), CollectionNames: []string{"b", "a"}})
		require.NoError(t, err)
		videos := storetest.ListVideos(t, o, storetest.OrderedBy("created_at", false)).Rows
		require.Len(t, videos, many)
		for _, v := range videos {
			require.Len(t, v.Labels, 2)
			require.Equal(t, "a", v.Labels[0].Name)
			require.Equal(t, "b", v.Labels[1].Name)
		}
	})
}

func TestTrackedVideoIDs_returnsIDsInTheOrderOfTheLinks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		tracked := storetest.Track(t, o, storetest.VideoLink(t, 1), storetest.ParseLink(t, storetest.YouTubeURL), storetest.VideoLink(t, 2))
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 3))
		storetest.StopVideos(t, o, storetest.VideoLink(t, 2))
		ids, err := o.TrackedVideoIDs(t.Context(), []link.Link{storetest.VideoLink(t, 3), storetest.ParseLink(t, storetest.YouTubeURL), {}, storetest.VideoLink(t, 2), storetest.VideoLink(t, 1), storetest.VideoLink(t, 1)})
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{uuid.Nil, tracked[1].ID, uuid.Nil, uuid.Nil, tracked[0].ID, tracked[0].ID}, ids)
		ids, err = o.TrackedVideoIDs(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, ids)
	})
}
