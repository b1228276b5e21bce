package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// sdk describes a client library in the folder gen, and how to run programs that use the library.
type sdk struct {
	name, interpreter, extension string
	// install makes the library available to the programs in dir. It returns environment variables that the programs need.
	install func(t *testing.T, dir string) []string
}

var sdks = []sdk{
	{"TypeScript", "node", ".mjs", func(t *testing.T, dir string) []string {
		t.Helper()
		text, err := os.ReadFile("../gen/typescript/package.json")
		require.NoError(t, err)
		var manifest struct{ Files []string }
		require.NoError(t, json.Unmarshal(text, &manifest))
		target := filepath.Join(dir, "node_modules/@reeltally/client")
		require.NoError(t, os.MkdirAll(target, 0o700))
		for _, file := range append(manifest.Files, "package.json") { // these are the files that `npm pack` would put into the package
			copyFile(t, filepath.Join("../gen/typescript", file), filepath.Join(target, file))
		}
		return nil
	}},
	{"Python", "python3", ".py", func(t *testing.T, _ string) []string {
		t.Helper()
		source, err := filepath.Abs("../gen/python/src")
		require.NoError(t, err)
		return []string{"PYTHONPATH=" + source, "PYTHONDONTWRITEBYTECODE=1"}
	}},
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}

// runProgram runs a program that uses the library, and returns its standard output.
func (s sdk) runProgram(t *testing.T, address, token, program string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, filepath.Base(program))
	copyFile(t, program, file)
	c := exec.CommandContext(t.Context(), s.interpreter, append([]string{file}, args...)...)
	c.Dir = dir
	c.Env = append(s.install(t, dir), "PATH="+os.Getenv("PATH"), "REELTALLY_URL="+address, "REELTALLY_TOKEN="+token)
	var failed strings.Builder
	c.Stderr = &failed
	out, err := c.Output()
	require.NoError(t, err, failed.String())
	return string(out)
}

// startFaultyProxy starts a proxy that forwards requests to the app. The first GET /authenticate
// and the first POST /collections fail. For each POST /collections, `keys` returns the
// Idempotency-Key.
func (a *app) startFaultyProxy(t *testing.T) (address string, keys func() []string) {
	t.Helper()
	target, err := url.Parse(a.http.URL)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	var mu sync.Mutex
	var limited bool
	var seen []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		refuse := r.URL.Path == "/authenticate" && !limited
		limited = limited || refuse
		lose := false
		if r.Method == http.MethodPost && r.URL.Path == "/collections" {
			seen = append(seen, r.Header.Get("Idempotency-Key"))
			lose = len(seen) == 1
		}
		mu.Unlock()
		switch {
		case refuse:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, "slow down")
		case lose:
			// The server handles the request, but the proxy drops the response.
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// Requirements in docs/coverage.md: 14.2-01, 14.2-02, 14.2-03
func TestSDKs_supportRetriesPagingAndTypedErrors(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, newSQLite(t))
			c := a.newCaller(t, store.TierPremium)
			links := make([]string, 10)
			for n := range links {
				links[n] = videoURL(n)
			}
			address, keys := a.startFaultyProxy(t)
			var got struct {
				Organisation, Created, ByLink string
				Collections, Statuses, IDs    []string
				Failed                        *bool
				First                         int
				Errors                        []struct {
					Status  int
					Code    string
					Request bool
					Names   []string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(s.runProgram(t, address, c.token, "testdata/sdk/check"+s.extension, links...)), &got))
			require.NotEmpty(t, got.Organisation)
			require.Equal(t, []string{"Launch"}, got.Collections, "the repeated request must not create a second collection")
			require.Len(t, keys(), 2)
			require.Equal(t, keys()[0], keys()[1])
			require.NotEmpty(t, keys()[0])
			require.Len(t, got.Statuses, 10)
			require.False(t, *got.Failed)
			require.Len(t, got.IDs, 10)
			want := map[string]bool{}
			for _, link := range links {
				want[c.track(link).String()] = true
			}
			for _, id := range got.IDs {
				require.True(t, want[id])
				delete(want, id)
			}
			require.Equal(t, c.track(links[0]).String(), got.ByLink)
			require.Zero(t, got.First)
			require.Len(t, got.Errors, 2)
			require.Equal(t, http.StatusNotFound, got.Errors[0].Status)
			require.Equal(t, "not_found", got.Errors[0].Code)
			require.True(t, got.Errors[0].Request)
			require.Equal(t, "invalid_request", got.Errors[1].Code)
			require.Equal(t, []string{"limit"}, got.Errors[1].Names)
		})
	}
}

// newAppWithVideos returns an app and one of its callers, who tracks three videos with 1234 views each.
func newAppWithVideos(t *testing.T) (*app, *caller) {
	t.Helper()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for n := range 3 {
		c.track(videoURL(n))
	}
	a.fetch(factsWithViews(1234))
	return a, c
}

// maxExampleLines is the maximum number of lines in the example that prints the top videos with
// their histories.
const maxExampleLines = 15

func TestSDKs_examplesRunWithoutErrors(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	a, c := newAppWithVideos(t)
	for _, s := range sdks {
		folder, top := "../gen/typescript/examples/", "top-videos"
		if s.name == "Python" {
			folder, top = "../gen/python/examples/", "top_videos"
		}
		text, err := os.ReadFile(folder + top + s.extension)
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(string(text), "\n"), maxExampleLines)
		out := s.runProgram(t, a.http.URL, c.token, folder+top+s.extension)
		require.Equal(t, 3, strings.Count(out, "1234 https://"), out)
		require.Contains(t, s.runProgram(t, a.http.URL, c.token, folder+"track"+s.extension, videoURL(7)), videoURL(7))
		require.Equal(t, 5, strings.Count(s.runProgram(t, a.http.URL, c.token, folder+"export"+s.extension), "\n"))
		c.stopVideos(http.StatusOK, c.track(videoURL(7)).String())
	}
}

// runGoExample runs an example of the Go client and returns its output.
func runGoExample(t *testing.T, c *caller, name string, args ...string) string {
	t.Helper()
	return c.runSample(t, "go", append([]string{"run", "../gen/client/examples/" + name}, args...)...)
}

func TestGoSDKExamples_runWithoutErrors(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	_, c := newAppWithVideos(t)
	source, err := os.ReadFile("../gen/client/examples/top-videos/main.go")
	require.NoError(t, err)
	_, functions, found := strings.Cut(string(source), "\n)\n\n") // the text before the separator contains the imports
	require.True(t, found)
	require.LessOrEqual(t, strings.Count(functions, "\n"), maxExampleLines)
	top := runGoExample(t, c, "top-videos")
	require.Equal(t, 3, strings.Count(top, " 1234\n"), top)
	require.Equal(t, 3, strings.Count(top, "https://"), top)
	require.Contains(t, runGoExample(t, c, "track", videoURL(7)), "tracked "+videoURL(7))
	require.Equal(t, 5, strings.Count(runGoExample(t, c, "export"), "\n"))
}

// codeBlock matches a block of code in Markdown. Its groups are the language and the code.
var codeBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// goFragment is a Go program with a placeholder. A block of Go code that is not a whole program is inserted at the placeholder.
const goFragment = `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/reeltally/reeltally/gen/client"
)

func run(ctx context.Context) error {
%s	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
`

func TestCodeInSDKReadmes_runsWithoutErrors(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	a, c := newAppWithVideos(t)
	byLanguage := map[string]sdk{"js": sdks[0], "python": sdks[1]}
	for readme, example := range map[string]string{"client": "top-videos/main.go", "typescript": "top-videos.mjs", "python": "top_videos.py"} {
		text, err := os.ReadFile("../gen/" + readme + "/README.md")
		require.NoError(t, err)
		top, err := os.ReadFile("../gen/" + readme + "/examples/" + example)
		require.NoError(t, err)
		blocks := codeBlock.FindAllStringSubmatch(string(text), -1)
		require.Len(t, blocks, 2, readme)
		require.Equal(t, string(top), blocks[1][2], "gen/%s/README.md must have the example of the top videos", readme)
		for _, block := range blocks {
			code := strings.NewReplacer("https://reeltally.example.com", a.http.URL, "rt_…", c.token).Replace(block[2])
			var out string
			if block[1] == "go" {
				if !strings.HasPrefix(code, "// Command") {
					code = fmt.Sprintf(goFragment, code)
				}
				program := filepath.Join(t.TempDir(), "main.go")
				require.NoError(t, os.WriteFile(program, []byte(code), 0o600))
				out = c.runSample(t, "go", "run", program)
			} else {
				library := byLanguage[block[1]]
				program := filepath.Join(t.TempDir(), "program"+library.extension)
				require.NoError(t, os.WriteFile(program, []byte(code), 0o600))
				out = library.runProgram(t, a.http.URL, c.token, program)
			}
			require.Equal(t, 3, strings.Count(out, "https://"), "%s: %s", readme, out)
		}
	}
}

// refusingRateStore is a RateStore that refuses every twentieth request and tells the caller to wait two seconds. So clients also meet refusals on a
// slow machine, where they send too few requests to reach the real limit.
type refusingRateStore struct {
	server.RateStore
	started  bool // false while no request is refused or counted
	mu       sync.Mutex
	requests int
	refused  int
	tooEarly int       // the number of requests that came within two seconds after a refused one
	waitTo   time.Time // the end of the two seconds after the last refused request
}

func (s *refusingRateStore) Count(ctx context.Context, key string, calls, limit int64, window time.Duration) (server.Quota, error) {
	if calls < 0 {
		return s.RateStore.Count(ctx, key, calls, limit, window)
	}
	const wait = 2 * time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.started {
		return server.Quota{Remaining: 1, Reset: wait}, nil
	}
	if now.Before(s.waitTo) {
		s.tooEarly++
	}
	if s.requests++; s.requests%20 == 0 {
		s.refused++
		s.waitTo = now.Add(wait)
		return server.Quota{Exceeded: true, Reset: wait}, nil
	}
	return server.Quota{Remaining: 1, Reset: wait}, nil
}

// Requirements in docs/coverage.md: 14.2-04
func TestSDKs_readEachOf10000VideosOnceDespiteRateLimits(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	const videos = 10_000
	read := map[string]func(address, token string) []string{
		"Go": func(address, token string) (ids []string) {
			sdk, err := client.New(address, token)
			require.NoError(t, err)
			for video, err := range sdk.AllVideos(t.Context(), client.ListVideosOptions{OrderBy: client.VideoOrderCreatedAt, Limit: 200}) {
				require.NoError(t, err)
				ids = append(ids, video.AdID.String())
			}
			return ids
		},
	}
	for _, s := range sdks {
		read[s.name] = func(address, token string) []string {
			return strings.Fields(s.runProgram(t, address, token, "testdata/sdk/ids"+s.extension))
		}
	}
	rates := &refusingRateStore{RateStore: server.NewMemoryRateStore()}
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = rates })
	c := a.newCaller(t, store.TierPremium)
	want := map[string]bool{}
	for first := 1; first <= videos; first += 500 {
		for _, entry := range c.trackVideos(http.StatusOK, videoURLs(first, first+499)).Results {
			want[entry.VideoID.String()] = true
		}
	}
	require.Len(t, want, videos)
	rates.started = true
	for name, ids := range read {
		before := rates.refused
		left := maps.Clone(want)
		for _, id := range ids(a.http.URL, c.token) {
			require.True(t, left[id], "%s: the id %s is unknown or was read before", name, id)
			delete(left, id)
		}
		require.Empty(t, left, name)
		require.Greater(t, rates.refused, before, "%s must have reached the rate limit", name)
		require.Zero(t, rates.tooEarly, "%s must wait before it repeats a refused request", name)
	}
}

func TestGoSDK_supportsRetriesPagingAndTypedErrors(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	want := map[string]bool{}
	for n := range 10 {
		want[c.track(videoURL(n)).String()] = true
	}
	address, keys := a.startFaultyProxy(t)
	sdk, err := client.New(address, c.token)
	require.NoError(t, err)
	who, err := sdk.Authenticate(t.Context()) // the proxy answers the first GET /authenticate with status 429
	require.NoError(t, err)
	require.NotEmpty(t, who.Organisation.Name)
	_, err = sdk.CreateCollection(t.Context(), client.CreateCollectionOptions{Name: "Launch"}) // the proxy drops the response to the first POST /collections
	require.NoError(t, err)
	require.Len(t, keys(), 2)
	require.Equal(t, keys()[0], keys()[1])
	require.NotEmpty(t, keys()[0])
	require.Len(t, decode[client.CollectionList](c.send(http.MethodGet, "/collections", nil).requireStatus(http.StatusOK)).Data, 1, "the repeated request must not create a second collection")
	for video, err := range sdk.AllVideos(t.Context(), client.ListVideosOptions{Limit: 3}) {
		require.NoError(t, err)
		require.True(t, want[video.AdID.String()])
		delete(want, video.AdID.String())
	}
	require.Empty(t, want)
	_, err = sdk.GetVideo(t.Context(), uuid.NewString())
	var failed *client.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, http.StatusNotFound, failed.StatusCode)
	require.Equal(t, "not_found", failed.Code)
	for _, err := range sdk.AllVideos(t.Context(), client.ListVideosOptions{Limit: 5001}) {
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "invalid_request", failed.Code)
	}
}

func TestSDKs_canClearSomeFieldsAndKeepOthers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	sdk, err := client.New(a.http.URL, c.token)
	require.NoError(t, err)
	parent, err := sdk.CreateCollection(t.Context(), client.CreateCollectionOptions{Name: "Parent"})
	require.NoError(t, err)
	change := map[string]func(collection, webhook uuid.UUID) string{
		"Go": func(collection, webhook uuid.UUID) string {
			require.NoError(t, sdk.UpdateCollection(t.Context(), collection, client.UpdateCollectionOptions{Name: "Changed"}))
			kept, err := sdk.GetCollection(t.Context(), collection, client.GetCollectionOptions{})
			require.NoError(t, err)
			changed, err := sdk.UpdateWebhook(t.Context(), webhook, client.UpdateWebhookOptions{URL: "https://example.com/changed"})
			require.NoError(t, err)
			require.NoError(t, sdk.UpdateCollection(t.Context(), collection, client.UpdateCollectionOptions{
				ParentID: nullable.NewNullNullable[uuid.UUID](), ShareExpiresAt: nullable.NewNullNullable[time.Time](), Hashtags: nullable.NewNullableWithValue([]string{}),
			}))
			_, err = sdk.UpdateWebhook(t.Context(), webhook, client.UpdateWebhookOptions{
				Description: nullable.NewNullableWithValue(""), EventTypes: nullable.NewNullableWithValue([]client.EventType{}),
			})
			require.NoError(t, err)
			return fmt.Sprintln(kept.ParentID, kept.ShareExpiresAt.Format("2006-01-02T15:04:05.000000-07:00"), changed.Description)
		},
	}
	for _, s := range sdks {
		change[s.name] = func(collection, webhook uuid.UUID) string {
			return s.runProgram(t, a.http.URL, c.token, "testdata/sdk/clear"+s.extension, collection.String(), webhook.String())
		}
	}
	for name, changeWith := range change {
		expires := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
		created, err := sdk.CreateCollection(t.Context(), client.CreateCollectionOptions{Name: name, ParentID: parent.ID, Hashtags: []string{"sea"}})
		require.NoError(t, err)
		require.NoError(t, sdk.UpdateCollection(t.Context(), created.ID, client.UpdateCollectionOptions{ShareExpiresAt: nullable.NewNullableWithValue(expires)}))
		webhook, err := sdk.CreateWebhook(t.Context(), client.CreateWebhookOptions{
			URL: "https://example.com/" + name, Description: "note", EventTypes: []client.EventType{client.EventTypeVideoRemoved},
		})
		require.NoError(t, err)

		printed := changeWith(created.ID, webhook.ID)
		require.Equal(t, fmt.Sprintln(parent.ID, expires.Format("2006-01-02T15:04:05.000000-07:00"), "note"), printed, name)
		cleared, err := sdk.GetCollection(t.Context(), created.ID, client.GetCollectionOptions{})
		require.NoError(t, err)
		require.Equal(t, "Changed", cleared.Name, name)
		require.Nil(t, cleared.ParentID, name)
		require.Nil(t, cleared.ShareExpiresAt, name)
		require.Empty(t, cleared.Hashtags, name)
		changed, err := sdk.GetWebhook(t.Context(), webhook.ID)
		require.NoError(t, err)
		require.Equal(t, "https://example.com/changed", changed.URL, name)
		require.Empty(t, changed.Description, name)
		require.Empty(t, changed.EventTypes, name)
	}
}

func TestSDKs_changeACollectionOnlyIfItHasTheETag(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	sdk, err := client.New(a.http.URL, c.token)
	require.NoError(t, err)
	var manyHashtags []string
	for n := range 40 {
		manyHashtags = append(manyHashtags, fmt.Sprintf("hashtag%030d", n))
	}
	withoutETags := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(withoutETags.Close)
	for _, s := range sdks {
		// The JSON of a collection with many hashtags is so long that the server compresses it if the client allows that. Then it has another ETag.
		for _, hashtags := range [][]string{nil, manyHashtags} {
			created, err := sdk.CreateCollection(t.Context(), client.CreateCollectionOptions{Name: "Old", Hashtags: hashtags})
			require.NoError(t, err)
			printed := s.runProgram(t, a.http.URL, c.token, "testdata/sdk/etag"+s.extension, created.ID.String(), withoutETags.URL)
			require.Equal(t, "Old\nNew\n412\n412\ndeleted\n"+
				"200 the server answered with status 200 and no ETag: does a proxy remove it?\n", printed, s.name)
		}
	}
}
