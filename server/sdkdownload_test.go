package server_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// startTruncatingServer starts a server whose first response has the given status and an incomplete
// body. The server forwards all later requests to the app. The result `requests` counts all requests.
func (a *app) startTruncatingServer(t *testing.T, status int) (address string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	truncating := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"organisation":`)
			return // the body is shorter than Content-Length, so the server closes the connection
		}
		a.http.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(truncating.Close)
	return truncating.URL, requests
}

func TestSDKs_repeatARequestWhoseResponseIsIncomplete(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, s := range sdks {
		// A client library treats status 422 with the type application/json as a result, not as an error. So it must repeat a
		// request whose response with status 422 is incomplete.
		for _, status := range []int{http.StatusOK, http.StatusUnprocessableEntity, http.StatusServiceUnavailable} {
			address, requests := a.startTruncatingServer(t, status)
			require.Equal(t, "accepted\n", s.runProgram(t, address, c.token, "testdata/sdk/authenticate"+s.extension), "%s, %d", s.name, status)
			require.EqualValues(t, 2, requests.Load(), "%s, %d", s.name, status)
		}
		address, requests := a.startTruncatingServer(t, http.StatusForbidden)
		require.Equal(t, "refused\n", s.runProgram(t, address, c.token, "testdata/sdk/authenticate"+s.extension), s.name)
		require.EqualValues(t, 1, requests.Load(), s.name)
	}
}

func TestGoSDK_repeatsARequestWhoseResponseIsIncomplete(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	address, requests := a.startTruncatingServer(t, http.StatusOK)
	sdk, err := client.New(address, c.token)
	require.NoError(t, err)
	who, err := sdk.Authenticate(t.Context())
	require.NoError(t, err)
	require.Equal(t, c.org.ID, who.Organisation.ID)
	require.EqualValues(t, 2, requests.Load())

	address, requests = a.startTruncatingServer(t, http.StatusOK)
	sdk, err = client.New(address, c.token)
	require.NoError(t, err)
	created, err := sdk.CreateCollection(t.Context(), client.CreateCollectionOptions{Name: "Launch"}) // the client may repeat this POST request, because it sends an idempotency key
	require.NoError(t, err)
	require.Equal(t, "Launch", created.Name)
	require.EqualValues(t, 2, requests.Load())

	c.track(videoURL(1))
	c.track(videoURL(2))
	address, requests = a.startTruncatingServer(t, http.StatusOK)
	sdk, err = client.New(address, c.token)
	require.NoError(t, err)
	list := c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
	for video, err := range sdk.AllJSON(t.Context(), "/videos", url.Values{"limit": {"1"}}) {
		require.NoError(t, err)
		require.Contains(t, string(list.body), string(video), "the client must return the JSON of the API unchanged")
	}
	require.EqualValues(t, 3, requests.Load(), "the list has two pages, and one request must be repeated")

	var part bytes.Buffer
	address, requests = a.startTruncatingServer(t, http.StatusOK)
	sdk, err = client.New(address, c.token)
	require.NoError(t, err)
	_, err = sdk.Download(t.Context(), &part, "/videos", nil, client.XLSX)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualValues(t, 1, requests.Load(), "the client must not repeat a download that fails after its first bytes")
}

func TestGoSDK_readsAllPagesOrSaysThatThereAreNone(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	c.send(http.MethodGet, "/events", nil).requireStatus(http.StatusOK) // from the first read on, events are recorded
	c.addVideos(collection, c.track(videoURL(1)), c.track(videoURL(2)), c.track(videoURL(3)))
	a.fetch(viewsByVideo(map[byte]int64{'1': 1, '2': 2, '3': 3}))
	a.Clock.Advance(time.Hour)
	sdk, err := client.New(a.http.URL, c.token)
	require.NoError(t, err)
	count := func(path string, query url.Values) (entries int, err error) {
		for _, err := range sdk.AllJSON(t.Context(), path, query) {
			if err != nil {
				return entries, err
			}
			entries++
		}
		return entries, nil
	}
	one := url.Values{"limit": {"1"}}
	for path, want := range map[string]int{"/videos": 3, "/history/export": 3, "/events": 3, "/collections/" + collection.String() + "/videos": 3} {
		entries, err := count(path, one)
		require.NoError(t, err, path)
		require.Equal(t, want, entries, path)
	}
	_, err = count("/collections", nil)
	require.ErrorContains(t, err, "the response of /collections has no pages; add paginated=true to the query")
	entries, err := count("/collections", url.Values{"paginated": {"true"}})
	require.NoError(t, err)
	require.Equal(t, 1, entries)

	report := c.createReport(collection)
	whole, err := sdk.GetReport(t.Context(), report, client.GetReportOptions{})
	require.NoError(t, err)
	require.Len(t, whole.Videos, 3)
	part, err := sdk.GetReport(t.Context(), report, client.GetReportOptions{IncludeVideos: new(false)})
	require.NoError(t, err)
	require.Empty(t, part.Videos)

	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer full.Close()
	sdk, err = client.New(full.URL, c.token)
	require.NoError(t, err)
	_, err = sdk.Authenticate(t.Context())
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, time.Hour, refused.RetryAfter)
}

// downloadWithEachLibrary downloads a list with each client library. By the name of the library, it returns the
// downloaded file and the value of the header Exported-Until.
func (a *app) downloadWithEachLibrary(t *testing.T, token, path, query, format string) (files map[string][]byte, until map[string]string) {
	t.Helper()
	files, until = map[string][]byte{}, map[string]string{}
	sdk, err := client.New(a.http.URL, token)
	require.NoError(t, err)
	parameters, err := url.ParseQuery(query)
	require.NoError(t, err)
	var out bytes.Buffer
	headers, err := sdk.Download(t.Context(), &out, path, parameters, format)
	require.NoError(t, err)
	files["Go"], until["Go"] = out.Bytes(), headers.Get("Exported-Until")
	for _, s := range sdks {
		file := filepath.Join(t.TempDir(), "file")
		printed := strings.Fields(s.runProgram(t, a.http.URL, token, "testdata/sdk/download"+s.extension, path, query, format, file))
		require.Len(t, printed, 2)
		until[s.name] = strings.TrimPrefix(printed[0], "-")
		files[s.name], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	return files, until
}

// Requirements in docs/coverage.md: 14.2-05
func TestSDKs_downloadListsAndHistories(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for n := range 7 {
		c.track(videoURL(n))
	}
	a.fetch(factsWithViews(1234))
	file := func(accept, path string) []byte {
		t.Helper()
		return c.send(http.MethodGet, path, nil, "Accept", accept).requireStatus(http.StatusOK).body
	}
	for _, format := range []string{client.CSV, client.CSVSemicolon} {
		want := file(format, "/videos?order_by=created_at")
		files, _ := a.downloadWithEachLibrary(t, c.token, "/videos", "order_by=created_at&limit=3", format) // the list has three pages
		for name, got := range files {
			require.Equal(t, string(want), string(got), "%s: %s", name, format)
		}
	}
	files, _ := a.downloadWithEachLibrary(t, c.token, "/videos", "order_by=created_at", client.XLSX)
	for name, got := range files {
		book, err := excelize.OpenReader(bytes.NewReader(got))
		require.NoError(t, err, name)
		rows, err := book.GetRows(book.GetSheetName(0))
		require.NoError(t, err)
		require.Len(t, rows, 8, name)
	}
	a.Clock.Advance(3 * time.Minute) // an export contains only points that are at least two minutes old
	for _, format := range []string{client.CSV, client.NDJSON} {
		files, until := a.downloadWithEachLibrary(t, c.token, "/history/export", "limit=2", format)
		want := 7
		if format == client.CSV {
			rows, err := csv.NewReader(bytes.NewReader(files["Go"])).ReadAll()
			require.NoError(t, err)
			require.Len(t, rows, 8)
			want = 8
		}
		for name, got := range files {
			require.Equal(t, want, bytes.Count(got, []byte("\n")), "%s: %s", name, format)
			require.NotEmpty(t, until[name])
			require.Equal(t, string(files["Go"]), string(got), name)
		}
	}
}

// writeLines writes the same line again and again, up to the given number of bytes.
func writeLines(w io.Writer, size int64) {
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for ; size > 0; size -= int64(len(line)) {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// Requirements in docs/coverage.md: 14.2-05
func TestSDKs_downloadsNeedLittleMemory(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	const small, large, allowed = 1 << 20, 100 << 20, 64 << 20 // in bytes
	big := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		size, _ := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64)
		writeLines(w, size)
	}))
	t.Cleanup(big.Close)
	for _, s := range sdks {
		memory := map[int]int64{}
		for _, size := range []int{small, large} {
			file := filepath.Join(t.TempDir(), "file")
			printed := strings.Fields(s.runProgram(t, big.URL, "rt_x", "testdata/sdk/download"+s.extension, "/videos", fmt.Sprintf("size=%d", size), client.CSV, file))
			kibibytes, err := strconv.ParseInt(printed[1], 10, 64)
			require.NoError(t, err)
			memory[size] = kibibytes << 10
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.EqualValues(t, size, info.Size())
		}
		t.Logf("%s used %d MiB of memory for a download of 1 MiB, and %d MiB for a download of 100 MiB", s.name, memory[small]>>20, memory[large]>>20)
		require.Less(t, memory[large]-memory[small], int64(allowed), s.name)
	}
}

func TestGoSDK_downloadsWithLittleMemory(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	big := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		writeLines(w, size)
	}))
	t.Cleanup(big.Close)
	sdk, err := client.New(big.URL, "rt_x")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var largest, written int64
	_, err = sdk.Download(ctx, writerFunc(func(part []byte) { largest, written = max(largest, int64(len(part))), written+int64(len(part)) }), "/videos", nil, client.CSV)
	require.NoError(t, err)
	require.EqualValues(t, size, written)
	require.Less(t, largest, int64(1<<20), "the response must be written in small parts")
}

// writerFunc is a writer that calls a function with the bytes of each call of Write.
type writerFunc func(part []byte)

func (f writerFunc) Write(part []byte) (int, error) {
	f(part)
	return len(part), nil
}
