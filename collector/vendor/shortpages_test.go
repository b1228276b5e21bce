package vendor_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// serveVideoList starts a server that simulates ScrapeCreators with one account. pageSize returns the number of videos on the given page of
// the list. isRepost returns true if another account published the entry with the given index. calls counts the requested pages. Each video was
// uploaded an hour before the previous one of the list, see uploadTimeOf.
func serveVideoList(t *testing.T, videoCount int, pageSize func(page int) int, isRepost func(entry int) bool) (base string, calls *atomic.Int32) {
	t.Helper()
	calls = &atomic.Int32{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/profile/videos") {
			_, _ = w.Write([]byte(`{"success":true,"user":{"id":"1","uniqueId":"mira.cooks"}}`))
			return
		}
		page := int(calls.Add(1)) - 1
		_, from, _ := strings.Cut(r.URL.Query().Get("max_cursor"), "-")
		start, _ := strconv.Atoi(from)
		end := min(start+pageSize(page), videoCount)
		var entries []string
		for i := start; i < end; i++ {
			author := 1
			if isRepost(i) {
				author = 2
			}
			entries = append(entries, fmt.Sprintf(`{"aweme_id":"75610000000000%05d","create_time":%d,"author":{"uid":"%d"}}`, i, uploadTimeOf(i).Unix(), author))
		}
		more := 0
		if end < videoCount {
			more = 1
		}
		_, _ = fmt.Fprintf(w, `{"success":true,"aweme_list":[%s],"has_more":%d,"max_cursor":"%d-%d"}`, strings.Join(entries, ","), more, page, end)
	}))
	t.Cleanup(web.Close)
	return web.URL, calls
}

// uploadTimeOf returns the upload time of the entry with the given index in the list of serveVideoList.
func uploadTimeOf(entry int) time.Time {
	return time.Unix(1760400000, 0).Add(-time.Duration(entry) * time.Hour)
}

func TestSource_requestsNextPageAfterShortPage(t *testing.T) {
	t.Parallel()
	of := func(size int) func(int) int { return func(int) int { return size } }
	for name, tt := range map[string]struct {
		depth, videos int
		size          func(page int) int
		class         source.Class
		found, calls  int
	}{
		"full pages":                                           {200, 500, of(10), source.OK, 200, 20},
		"pages with one entry too few":                         {200, 500, of(9), source.OK, 207, 23},
		"an empty second page":                                 {30, 500, func(page int) int { return 10 * min(page, 1) }, source.OK, 30, 4},
		"a list with fewer videos than requested":              {200, 25, of(9), source.OK, 25, 3},
		"pages that are longer than in the vendor description": {30, 500, of(35), source.OK, 35, 1},
		"pages with half of the entries":                       {200, 500, of(5), source.Temporary, 0, 24},
		// With depth 0, a fetch only looks for new videos.
		"depth 0, and pages with two entries": {0, 500, of(2), source.OK, 8, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, calls := serveVideoList(t, tt.videos, tt.size, func(int) bool { return false })
			s := newSource(t, "scrapecreators", base, nil)
			batch := []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", tt.depth)}
			budget := source.NewCallBudget(s.Plan(batch)[0])
			results, err := s.Fetch(t.Context(), batch, budget)
			require.NoError(t, err)
			require.Equal(t, tt.class, results[0].Class, results[0].Detail)
			require.EqualValues(t, tt.calls, calls.Load())
			require.GreaterOrEqual(t, budget.Spent()[0].Units, int64(1+tt.calls), "every call must be counted")
			if tt.class == source.OK {
				require.True(t, results[0].Account.Listed)
				require.Len(t, results[0].Account.Videos, tt.found)
			}
		})
	}
}

func TestSource_requestsFurtherPagesInPlaceOfReposts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		depth, entries int
		isRepost       func(entry int) bool
		found, calls   int
	}{
		"ten reposts among the newest thirty entries": {30, 500, func(entry int) bool { return entry < 10 }, 30, 4},
		"each third entry is a repost":                {30, 500, func(entry int) bool { return entry%3 == 0 }, 33, 5},
		"a short list with reposts":                   {30, 25, func(entry int) bool { return entry < 10 }, 15, 3},
		"only reposts":                                {30, 500, func(int) bool { return true }, 0, 5},
		"four of five entries are reposts":            {200, 500, func(entry int) bool { return entry%5 > 0 }, 48, 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, calls := serveVideoList(t, tt.entries, func(int) int { return 10 }, tt.isRepost)
			s := newSource(t, "scrapecreators", base, nil)
			batch := []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", tt.depth)}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			require.Equal(t, source.OK, results[0].Class, results[0].Detail)
			require.True(t, results[0].Account.Listed)
			require.Len(t, results[0].Account.Videos, tt.found)
			require.EqualValues(t, tt.calls, calls.Load())
		})
	}
}

// A repost can have any upload time. So only an own video shows since when the list is complete, and only if it cannot be pinned.
func TestSource_reportsSinceWhenAListWithRepostsIsComplete(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		isOwn         func(entry int) bool
		completeSince int // index of the entry whose upload time Account.CompleteSince must be; -1 if CompleteSince must be nil
	}{
		"only reposts":                          {func(int) bool { return false }, -1},
		"own videos that may be pinned":         {func(entry int) bool { return entry < 3 }, -1},
		"an own video after three entries":      {func(entry int) bool { return entry == 3 }, 3},
		"one own video on each page of entries": {func(entry int) bool { return entry%10 == 9 }, 39},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, _ := serveVideoList(t, 500, func(int) int { return 10 }, func(entry int) bool { return !tt.isOwn(entry) })
			s := newSource(t, "scrapecreators", base, nil)
			batch := []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", 0)}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			require.Equal(t, source.OK, results[0].Class, results[0].Detail)
			require.True(t, results[0].Account.ListContinues)
			if tt.completeSince < 0 {
				require.Nil(t, results[0].Account.CompleteSince)
				return
			}
			require.Equal(t, new(store.InstantOf(uploadTimeOf(tt.completeSince))), results[0].Account.CompleteSince)
		})
	}
}
