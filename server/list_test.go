package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

// createVideosWithManyLabels tracks the given number of videos. It also creates the given number of
// collections, and each video has all of these collections as labels.
func createVideosWithManyLabels(t *testing.T, c *caller, videos, collections int) {
	t.Helper()
	o := c.app.Org(c.org.ID)
	for first := 0; first < videos; first += 500 {
		var links []link.Link
		for n := first; n < min(first+500, videos); n++ {
			l, err := link.Parse(fmt.Sprintf("https://www.tiktok.com/@author%d/video/%d", n%10, 7300000000000000000+n))
			require.NoError(t, err)
			links = append(links, l)
		}
		_, err := o.Track(t.Context(), store.TrackRequest{Links: links})
		require.NoError(t, err)
	}
	batch := make([]backfill.SeedCollection, collections)
	for i := range batch {
		batch[i] = backfill.SeedCollection{ID: store.NewID(), Name: fmt.Sprintf("Collection %03d", i), CreatedAt: store.InstantOf(c.app.Clock.Now())}
	}
	require.NoError(t, backfill.Seed(t.Context(), o, backfill.SeedBatch{Collections: batch}))
	// Add every account to every collection. Each video of an account then has all collections as labels.
	c.app.Exec(t, `INSERT INTO collection_accounts (organisation_id, collection_id, account_id, added_at)
 SELECT c.organisation_id, c.id, a.id, 0 FROM collections c JOIN accounts a ON a.organisation_id = c.organisation_id WHERE c.organisation_id = ?`, c.org.ID)
}

// responseMeter is a ResponseWriter that records the size of the largest write, and the largest heap size during the writes.
type responseMeter struct {
	header      http.Header
	status      int
	keepBody    bool   // true if Write appends the written bytes to body
	body        []byte // response body; empty if keepBody is false
	size        int    // number of bytes written so far
	largest     int    // number of bytes in the largest call of Write
	heapBefore  uint64 // heap size in bytes before the request
	heapMax     uint64 // largest heap size in bytes during the request
	sampledSize int    // number of bytes written when the heap size was last measured
}

func (m *responseMeter) Header() http.Header    { return m.header }
func (m *responseMeter) WriteHeader(status int) { m.status = status }

func (m *responseMeter) Write(b []byte) (int, error) {
	m.size, m.largest = m.size+len(b), max(m.largest, len(b))
	if m.keepBody {
		m.body = append(m.body, b...)
	}
	if m.size-m.sampledSize > 4<<20 {
		m.sampledSize = m.size
		m.heapMax = max(m.heapMax, heapBytes())
	}
	return len(b), nil
}

// heapBytes returns the number of heap bytes in use after a garbage collection.
func heapBytes() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// measureGet sends a GET request directly to the HTTP handler and measures the response. It
// requires status 200. keepBody says whether to keep the response body.
func (c *caller) measureGet(target string, keepBody bool) *responseMeter {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, target, nil)
	require.NoError(c.t, err)
	r.RemoteAddr = "192.0.2.1:1"
	r.Header.Set("Authorization", "Bearer "+c.token)
	m := &responseMeter{header: http.Header{}, keepBody: keepBody, heapBefore: heapBytes()}
	c.app.server.Handler().ServeHTTP(m, r)
	require.Equal(c.t, http.StatusOK, m.status)
	return m
}

//nolint:paralleltest // the test measures the memory of the whole process
func TestListVideos_usesLittleMemoryForManyLabels(t *testing.T) {
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	createVideosWithManyLabels(t, c, 1000, 400)

	measured := c.measureGet("/videos?limit=5000", false)
	require.Greater(t, measured.size, 15<<20)
	require.Less(t, measured.largest, 256<<10, "each write must be smaller than 256 KiB")
	require.Less(t, int64(measured.heapMax)-int64(measured.heapBefore), int64(12<<20), "the heap must grow by less than 12 MiB during the request")

	got := c.measureGet("/videos?limit=5000", true)
	var page client.VideoPage
	require.NoError(t, json.Unmarshal(got.body, &page))
	require.Len(t, page.Data, 1000)
	for _, i := range []int{0, 199, 200, 999} {
		single := decode[client.Video](c.send(http.MethodGet, "/videos/"+page.Data[i].AdID.String(), nil).requireStatus(http.StatusOK))
		require.Equal(t, single, page.Data[i])
		require.Len(t, single.LabelIds, 400)
	}
	require.False(t, page.Pagination.HasMore)
}

// addHashtagToAllCollections gives the same hashtag to all videos and to all collections of the organisation. It replaces the captions of the
// videos. The labels of a video then depend on the video, and not only on its account.
func addHashtagToAllCollections(t *testing.T, c *caller) {
	t.Helper()
	c.app.Exec(t, "UPDATE videos SET title = '#spring', title_folded = '#spring' WHERE organisation_id = ?", c.org.ID)
	c.app.Exec(t, "INSERT INTO video_hashtags (organisation_id, tag, video_id) SELECT organisation_id, 'spring', id FROM videos WHERE organisation_id = ?", c.org.ID)
	c.app.Exec(t, "INSERT INTO collection_hashtags (organisation_id, collection_id, tag) SELECT organisation_id, id, 'spring' FROM collections WHERE organisation_id = ?", c.org.ID)
}

//nolint:paralleltest // the test measures the memory of the whole process
func TestListVideos_usesLittleMemoryIfEachVideoHasItsOwnLabels(t *testing.T) {
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	createVideosWithManyLabels(t, c, 3000, 1000)
	addHashtagToAllCollections(t, c)
	collection := rowsIn(t, c.send(http.MethodGet, "/collections?limit=1", nil).requireStatus(http.StatusOK))[0].id()
	// For the first list, the labels are not in memory yet. For the list of a collection, the server always keeps the rows of the page in memory.
	for _, target := range []string{"/videos?limit=5000", "/collections/" + collection.String() + "/videos?limit=5000"} {
		measured := c.measureGet(target, false)
		require.Greater(t, measured.size, 30<<20)
		require.Less(t, int64(measured.heapMax)-int64(measured.heapBefore), int64(12<<20), "%s: the heap must grow by less than 12 MiB during the request", target)
	}
}

func TestListVideos_numberOfSQLStatementsDoesNotDependOnTheNumberOfLabels(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		count := func(collections int) int {
			c := a.newCaller(t, store.TierPremium)
			createVideosWithManyLabels(t, c, 30, collections)
			c.listVideos("") // this request caches the token, so the next request does not query the database for the token
			a.server.Close() // Close waits until the time of the token's last use is stored
			a.Guard.Statements()
			require.Len(t, c.listVideos("").Data[29].LabelIds, collections)
			return len(a.Guard.Statements())
		}
		one := count(1)
		require.Equal(t, one, count(50))
		require.LessOrEqual(t, one, 12)
	})
}

func TestLists_moveRowsToTheNextPageIfAPageIsTooLarge(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWith23Videos(t, a)
		collection := c.createCollection(map[string]any{"name": "Launch"})
		account := *c.listVideos("limit=1").Data[0].LinkedAccountID
		c.addAccounts(collection, account)
		for n := range 12 {
			other := c.createCollection(map[string]any{"name": strings.Repeat("<é> ", 10) + fmt.Sprint(n)})
			c.addAccounts(other, account)
			c.addAccounts(collection, c.trackAccountLink(fmt.Sprintf("https://www.tiktok.com/@other%d", n)))
		}
		for _, size := range []int64{1, 7000, 40_000} {
			a.server.SetMaxPageBytes(size)
			for list, want := range map[string]int{
				"/videos?order_by=latest_views":                     23,
				"/collections?order_by=name":                        13,
				"/collections?paginated=true":                       13,
				"/collections/" + collection.String() + "/videos":   23,
				"/collections/" + collection.String() + "/accounts": 13,
				"/accounts?include_linked=true":                     13,
				"/accounts/" + account.String() + "/videos":         23,
				"/accounts/" + account.String() + "/videos?order_by=latest_views&order_direction=asc&limit=9": 23,
			} {
				seen := map[uuid.UUID]bool{}
				base, err := url.Parse(list)
				require.NoError(t, err)
				pages := 0
				for target := list; target != ""; pages++ {
					got := c.send(http.MethodGet, target, nil).requireStatus(http.StatusOK)
					rows := rowsIn(t, got)
					require.True(t, len(rows) == 1 || int64(len(got.body)) <= size+2000, "%s: the page is too large: it has %d bytes in %d rows", target, len(got.body), len(rows))
					for _, row := range rows {
						id := row.id()
						require.False(t, seen[id], "%s was returned twice", id)
						seen[id] = true
					}
					header := got.Header.Get("Link")
					if strings.HasPrefix(string(got.body), "{") && !strings.Contains(string(got.body), `"count":`) {
						require.Equal(t, header != "", !strings.Contains(string(got.body), `"next_cursor":null`), "%s: the response must have a Link header if and only if next_cursor is not null", target)
					}
					if target = ""; header != "" {
						next, err := base.Parse(strings.TrimSuffix(strings.TrimPrefix(header, "<"), `>; rel="next"`))
						require.NoError(t, err)
						target = next.String()
					}
				}
				if strings.Contains(list, "limit=9") && size == 40_000 {
					continue // this page has all 9 requested rows, so no Link header leads to the next page
				}
				require.Len(t, seen, want, "the pages of %s must contain each item once, if the maximum page size is %d bytes", list, size)
				if size == 1 {
					require.Equal(t, want, pages, "each page must have one row if the maximum page size is 1 byte")
				}
			}
		}
	})
}

// row is a row of a list response. Its id is in the field AdID for a video, in AccountID for an account, and in
// ID for a collection.
type row struct {
	AdID      uuid.UUID `json:"ad_id"`
	AccountID uuid.UUID `json:"account_id"`
	ID        uuid.UUID `json:"id"`
}

// id returns the id of the video, account or collection.
func (r row) id() uuid.UUID {
	for _, id := range []uuid.UUID{r.AdID, r.AccountID} {
		if id != uuid.Nil {
			return id
		}
	}
	return r.ID
}

// rowsIn returns the rows of a list response. The response is an array, or an object whose member "data" is an array.
func rowsIn(t *testing.T, a response) []row {
	t.Helper()
	if strings.HasPrefix(string(a.body), "[") {
		return decode[[]row](a)
	}
	return decode[struct{ Data []row }](a).Data
}

func TestListVideos_neverReturnsAnIncompleteListIfTheDatabaseFails(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	createVideosWithManyLabels(t, c, 700, 1)
	c.listVideos("limit=1")
	for _, statement := range []string{"organisation_totals", "ORDER BY videos.latest_updated_at"} { // the database fails in this statement and in all later ones
		a.Guard.BeforeStatement(statement, func() { a.breakDatabase(store.ErrUnavailable) })
		c.send(http.MethodGet, "/videos", nil).problem(http.StatusServiceUnavailable)
		a.databaseError.Store(nil)
	}
	require.Len(t, c.listVideos("").Data, 700)
}

func TestCreateCollection_refusesMoreThan1000Collections(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	createVideosWithManyLabels(t, c, 0, store.DefaultMaxCollections-1)
	c.createCollection(map[string]any{"name": "The last"}) // the organisation now has the maximum number of collections
	for path, body := range map[string]map[string]any{
		"/collections": {"name": "One more"},
		"/videos":      {"link": tiktokLink, "collection_names": []string{"One more"}},
		"/accounts":    {"link": accountLink, "collection_names": []string{"One more"}},
	} {
		p := c.send(http.MethodPost, path, body).requireProblem(http.StatusConflict, server.CodeTooManyCollections)
		require.Contains(t, p.Detail, "at most 1000 are allowed")
	}
	require.Empty(t, c.listVideos("").Data, "a refused request must not track a video")
	c.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink, "collection_names": []string{"The last"}}).requireStatus(http.StatusOK)
}

func TestConditionalRequest_unchangedListIsNotReadFromTheDatabase(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		other := a.newCaller(t, store.TierPremium)
		paths := c.examplePaths()
		for _, single := range []string{"/authenticate", "/videos/{ad_id}", "/accounts/{account_id}", "/collections/{collection_id}", "/reports/{report_id}", "/tokens", "/webhooks", "/webhooks/{webhook_id}"} {
			delete(paths, single) // these operations return few rows, and the server reads the rows to compute the ETag
		}
		for _, target := range paths {
			tag := c.send(http.MethodGet, target, nil).requireStatus(http.StatusOK).Header.Get("ETag")
			a.Guard.Statements()
			c.send(http.MethodGet, target, nil, "If-None-Match", tag).requireStatus(http.StatusNotModified)
			for _, statement := range a.Guard.Statements() {
				if strings.HasPrefix(statement, "SELECT version, ") {
					continue // this statement reads only the version of the organisation's data; the server computes the ETag from the version
				}
				require.NotRegexp(t, `\b(videos|accounts|collections|snapshots_\w+|\w+_days|collection_\w+)\b`, statement, target)
			}
			c.send(http.MethodGet, target, nil, "If-None-Match", "*").requireStatus(http.StatusNotModified)
			other.createCollection(map[string]any{"name": "Another organisation's"})
			c.send(http.MethodGet, target, nil, "If-None-Match", tag).requireStatus(http.StatusNotModified)
			c.createCollection(map[string]any{"name": "A change"})
			changed := c.send(http.MethodGet, target, nil, "If-None-Match", tag).requireStatus(http.StatusOK).Header.Get("ETag")
			require.NotEqual(t, tag, changed)
		}
		first := c.send(http.MethodGet, "/videos?limit=1", nil).requireStatus(http.StatusOK).Header.Get("ETag")
		require.NotEqual(t, first, c.send(http.MethodGet, "/videos?limit=2", nil).requireStatus(http.StatusOK).Header.Get("ETag"), "the ETag must depend on the query")
		require.NotEqual(t, first, other.send(http.MethodGet, "/videos?limit=1", nil).requireStatus(http.StatusOK).Header.Get("ETag"), "the ETag must depend on the organisation")
		a.Clock.Advance(24 * 3600 * 1e9)
		require.NotEqual(t, first, c.send(http.MethodGet, "/videos?limit=1", nil).requireStatus(http.StatusOK).Header.Get("ETag"), "the ETag must depend on the day")
		c.send(http.MethodGet, "/collections/"+unknownID+"/videos", nil, "If-None-Match", "*").requireStatus(http.StatusNotFound)
	})
}

func TestRateLimit_counts304ResponsesAgainstASeparateLimit(t *testing.T) {
	t.Parallel()
	a := newRateLimitedApp(t)
	c := a.newCaller(t, store.TierLimited)
	tag := c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK).Header.Get("ETag")
	for range 4 * 5 {
		got := c.send(http.MethodGet, "/videos", nil, "If-None-Match", tag).requireStatus(http.StatusNotModified)
		require.Equal(t, 4, headerNumber(t, got, "RateLimit-Remaining"), "a 304 response must not count towards the limit of the operation")
	}
	refused := c.send(http.MethodGet, "/videos", nil, "If-None-Match", tag)
	refused.requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
	require.Positive(t, headerNumber(t, refused, "Retry-After"))
	c.send(http.MethodGet, "/collections", nil).requireStatus(http.StatusOK)
	c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
}

func TestMaxLabels_isTheLimitOfTheContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Video", "Account"} {
		schema := sharedContract().doc.Components.Schemas[name]
		require.NotNil(t, schema, name)
		for _, member := range []string{"label_ids", "label_names"} {
			require.EqualValues(t, store.MaxLabels, *schema.Value.Properties[member].Value.MaxItems, "%s.%s", name, member)
		}
	}
}
