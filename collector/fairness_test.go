package collector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// maxDelay is the longest time that a single link may wait for its fetch after another organisation has added
// 500 links. On an idle machine, half of it is enough.
const maxDelay = 8 * time.Second

// clockSlowdown is the factor by which the clock of the test is slower than real time, so that a busy machine can keep up.
const clockSlowdown = 2

// hangTimeout is the timeout of calls in the test case whose platforms do not answer. A short
// timeout makes the test faster.
const hangTimeout = 6 * time.Second

// delayConfig configures how long the platforms' own APIs and the vendors take to answer a request, and how they fail. A nil function means
// no delay.
type delayConfig struct {
	platform, vendor func(*http.Request) time.Duration
	hangs            bool // the platforms' own APIs never answer
	refuses          bool // Facebook answers that every object is missing
	// headStart is the time between adding the 500 links and adding the single link.
	headStart time.Duration
}

func constantDelay(d time.Duration) func(*http.Request) time.Duration {
	return func(*http.Request) time.Duration { return d }
}

// variedDelay returns a delay of one to three seconds. Requests with the same URL get the same delay.
func variedDelay(r *http.Request) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.URL.RequestURI()))
	return time.Second + time.Duration(h.Sum32()%2001)*time.Millisecond
}

// delayedTransport is an HTTP transport that records all calls. After setDelays was called, it also delays them.
type delayedTransport struct {
	now    func() time.Time
	mu     sync.Mutex
	delays *delayConfig
	calls  []recordedCall
}

type recordedCall struct {
	text       string // the URL and the body of the call
	began, end time.Time
}

func (w *delayedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	text := r.URL.RequestURI()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text += " " + string(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	w.mu.Lock()
	delays, n := w.delays, len(w.calls)
	w.calls = append(w.calls, recordedCall{text: text, began: w.now()})
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls[n].end = w.now()
	}()
	if delays == nil {
		return noKeepAlive{}.RoundTrip(r)
	}
	delay := delays.vendor
	if !strings.HasPrefix(r.URL.Path, "/vendor") {
		delay = delays.platform
		if delays.hangs {
			delay = constantDelay(time.Hour)
		}
	}
	if delay != nil {
		t := time.NewTimer(clockSlowdown * delay(r))
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if delays.refuses && strings.HasPrefix(r.URL.Path, "/facebook/") {
		const missing = `{"error":{"message":"Unsupported get request.","type":"GraphMethodException","code":100,"error_subcode":33}}`
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}, reeltally.SandboxHeader: {"true"}},
			Body: io.NopCloser(strings.NewReader(missing)), Request: r}, nil
	}
	return noKeepAlive{}.RoundTrip(r)
}

func (w *delayedTransport) setDelays(delays *delayConfig) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delays, w.calls = delays, nil
}

// callsContaining returns the recorded calls that contain one of the words. inFlight is how long at least one
// such call was running in the time from start to end.
func (w *delayedTransport) callsContaining(words []string, start, end time.Time) (calls []string, inFlight time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	countedUntil := start // the time before countedUntil is ignored, so that the overlap of two calls is not counted twice
	for _, c := range w.calls {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(c.text, word) }) {
			continue
		}
		if c.end.IsZero() || c.end.After(end) {
			c.end = end
		}
		path, _, _ := strings.Cut(c.text, "?")
		calls = append(calls, fmt.Sprintf("call %s from %s to %s", path, c.began.Sub(start), c.end.Sub(start)))
		if c.began.After(countedUntil) {
			countedUntil = c.began
		}
		if c.end.After(countedUntil) {
			inFlight, countedUntil = inFlight+c.end.Sub(countedUntil), c.end
		}
	}
	return calls, inFlight
}

// fairnessTest runs a collector that asks each platform's own API first and then a vendor. The calls can be delayed.
type fairnessTest struct {
	*testSystem
	transport *delayedTransport
}

func newFairnessTest(t *testing.T, engine string, timeout time.Duration) *fairnessTest {
	t.Helper()
	db := storetest.New(t, engine)
	w := &fairnessTest{testSystem: newTestSystem(t, db), transport: &delayedTransport{now: db.Clock.Now}}
	w.startSlowClock()
	// The collector uses a second store, because the SQL checks of the test store would take most of the time.
	fast, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fast.Close()) })
	settings := w.sandbox.Settings(w.url)
	client := fetch.New(fetch.Options{Timeout: clockSlowdown * timeout, Transport: w.transport})
	tt, err := tiktok.NewDisplay(tiktok.DisplayOptions{BaseURL: w.url + "/tiktok", ClientKey: sandbox.TikTokClientKey, ClientSecret: sandbox.TikTokClientSecret,
		RefreshToken: sandbox.TikTokRefreshToken, Client: client, Tokens: fast.Queue, Now: db.Clock.Now})
	require.NoError(t, err)
	ig, err := instagram.New(instagram.Options{BaseURL: settings["REELTALLY_INSTAGRAM_BASE_URL"], Token: sandbox.InstagramToken,
		AccountID: settings["REELTALLY_INSTAGRAM_ACCOUNT_ID"], Client: client, Now: db.Clock.Now})
	require.NoError(t, err)
	fb, err := facebook.New(facebook.Options{BaseURL: settings["REELTALLY_FACEBOOK_BASE_URL"], Token: sandbox.FacebookToken, Client: client, Now: db.Clock.Now})
	require.NoError(t, err)
	yt, err := youtube.New(youtube.Options{BaseURL: w.url + "/youtube/", APIKey: sandbox.YouTubeAPIKey, Client: client, Now: db.Clock.Now})
	require.NoError(t, err)
	sources := []source.Source{tt, ig, fb, yt}
	for _, name := range []string{"sandbox", "scrapecreators"} { // the vendor "scrapecreators" serves YouTube, and the vendor "sandbox" serves the other platforms
		config, err := vendor.Load(name)
		require.NoError(t, err)
		v, err := vendor.New(config, vendor.Options{BaseURL: w.url + "/vendor", Key: sandbox.VendorKey, Client: client, Now: db.Clock.Now})
		require.NoError(t, err)
		sources = append(sources, v)
	}
	c, err := collector.New(collector.Options{Store: fast, Sources: sources, Now: db.Clock.Now, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Poll: clockSlowdown * collector.DefaultPoll})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return w
}

// startSlowClock runs the test's clock until the test ends. The clock is slower than real time by the factor clockSlowdown. On a busy
// machine, it is even slower.
func (w *testSystem) startSlowClock() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(clockSlowdown * 5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.db.Clock.Advance(5 * time.Millisecond)
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); <-stopped })
}

// videoLink returns the link of a made-up video of a platform. Each n gives a different link.
func videoLink(p link.Platform, n int) string {
	switch p {
	case link.TikTok:
		return fmt.Sprintf("https://www.tiktok.com/@dancer%d/video/73%017d", n, n)
	case link.Instagram:
		return fmt.Sprintf("https://www.instagram.com/cook%d/reel/DCXkB8L%03dq/", n, n)
	case link.Facebook:
		return fmt.Sprintf("https://www.facebook.com/reel/10%013d", n)
	case link.YouTube:
		return fmt.Sprintf("https://www.youtube.com/shorts/fair%04dAAA", n)
	}
	return ""
}

func videoLinks(p link.Platform, from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = videoLink(p, from+i)
	}
	return out
}

// trackLinks tracks the links for an organisation, so that their videos are due immediately.
func (w *fairnessTest) trackLinks(org *store.Org, urls ...string) ([]store.Tracked, error) {
	parsed := make([]link.Link, len(urls))
	for i, url := range urls {
		var err error
		if parsed[i], err = link.Parse(url); err != nil {
			return nil, err
		}
	}
	return org.Track(w.t.Context(), store.TrackRequest{Links: parsed, Immediate: len(urls)})
}

// waitResult is the result of waitForSingleLink.
type waitResult struct {
	delay   time.Duration // time until the video had counts, minus the time in which calls for this video were in flight
	calls   []string      // the calls that fetched the video
	waiting int64         // number of videos without counts at the end of the wait
	err     error
}

// waitForSingleLink tracks one video for an organisation and waits until the video has counts.
func (w *fairnessTest) waitForSingleLink(org *store.Org, p link.Platform) waitResult {
	const n = 700
	began := w.db.Clock.Now()
	tracked, err := w.trackLinks(org, videoLink(p, n))
	if err != nil {
		return waitResult{err: err}
	}
	v, err := org.Video(w.t.Context(), store.Ref{ID: tracked[0].ID})
	if err != nil {
		return waitResult{err: err}
	}
	words := []string{v.ExternalID}
	if v.Username != "" {
		words = append(words, v.Username)
	}
	if correct, ok := w.sandbox.World().Video(p, v.ExternalID, began); ok {
		words = append(words, correct.Account.ID) // a call about the video's account contains the id of this account
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for v.Latest.Views == nil {
		if <-look.C; w.db.Clock.Now().Sub(began) > 3*time.Minute {
			return waitResult{err: errors.New("the video has no counts three minutes after it was tracked")}
		}
		if v, err = org.Video(w.t.Context(), store.Ref{ID: tracked[0].ID}); err != nil {
			return waitResult{err: err}
		}
	}
	elapsed := w.db.Clock.Now().Sub(began)
	calls, inFlight := w.transport.callsContaining(words, began, began.Add(elapsed))
	var waiting int64
	err = w.db.QueryRow(w.t.Context(), "SELECT COUNT(*) FROM videos WHERE latest_views IS NULL", &waiting)
	return waitResult{delay: elapsed - inFlight, calls: calls, waiting: waiting, err: err}
}

// One organisation adds 500 links. Another organisation then adds a single link. For its fetch, the single link
// must wait at most maxDelay, without the time that its own calls take.
//
// Only claims depend on the engine. So two cases run on every engine, and each other case runs on one of the engines.
//
//nolint:paralleltest // the test measures seconds, which other tests would disturb
func TestFairness_burstDoesNotDelayOtherOrganisations(t *testing.T) {
	storetest.SkipIfShort(t)
	engines := storetest.StoreEngines()
	for i, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for n, c := range []struct {
				name       string
				delays     delayConfig
				platforms  []link.Platform
				eachEngine bool // run the case on every engine
			}{
				{"all sources answer after one to three seconds", delayConfig{platform: variedDelay, vendor: variedDelay}, link.Platforms, true},
				{"the vendors answer after twelve seconds, and the single link is added four seconds later", delayConfig{vendor: constantDelay(12 * time.Second), headStart: 4 * time.Second}, []link.Platform{link.TikTok}, true},
				{"Instagram answers after one to three seconds", delayConfig{platform: variedDelay, vendor: variedDelay}, []link.Platform{link.Instagram}, false},
				{"TikTok answers after one to three seconds", delayConfig{platform: variedDelay, vendor: variedDelay}, []link.Platform{link.TikTok}, false},
				{"YouTube answers after one to three seconds", delayConfig{platform: variedDelay, vendor: variedDelay}, []link.Platform{link.YouTube}, false},
				{"Facebook refuses all videos", delayConfig{platform: variedDelay, vendor: variedDelay, refuses: true}, []link.Platform{link.Facebook}, false},
				{"the platforms answer after ten seconds", delayConfig{platform: constantDelay(10 * time.Second)}, []link.Platform{link.Instagram}, false},
				{"the vendors answer after ten seconds", delayConfig{vendor: constantDelay(10 * time.Second)}, []link.Platform{link.TikTok}, false},
				{"the platforms do not answer", delayConfig{hangs: true}, []link.Platform{link.Instagram, link.TikTok}, false},
			} {
				if c.eachEngine || n%len(engines) == i {
					t.Run(c.name, func(t *testing.T) { requireFairness(t, engine, c.delays, c.platforms) })
				}
			}
		})
	}
}

func requireFairness(t *testing.T, engine string, delays delayConfig, platforms []link.Platform) {
	t.Helper()
	timeout := fetch.DefaultTimeout
	if delays.hangs {
		timeout = hangTimeout
	}
	w := newFairnessTest(t, engine, timeout)
	for _, p := range link.Platforms { // a fetch from each platform before the measurement, so that the access tokens are cached
		w.waitForCounts(w.trackVideos(videoLink(p, 999)))
	}
	w.transport.setDelays(&delays)
	o, err := w.db.CreateOrganisation(t.Context(), "Another", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	for n := 0; n < 500; n += 50 {
		_, err := w.trackLinks(w.org, videoLinks(platforms[n/50%len(platforms)], n, 50)...)
		require.NoError(t, err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for began := w.db.Clock.Now(); w.db.Clock.Now().Sub(began) < delays.headStart; {
		<-look.C
	}
	results := make([]waitResult, len(platforms))
	var all sync.WaitGroup
	for i, p := range platforms {
		all.Go(func() { results[i] = w.waitForSingleLink(w.db.Org(o.ID), p) })
	}
	all.Wait()
	for i, r := range results {
		require.NoError(t, r.err, platforms[i])
		t.Logf("a link of %s waited %s in addition to its calls %q; %d of the 500 links were still waiting", platforms[i], r.delay, r.calls, r.waiting)
		require.LessOrEqual(t, r.delay, maxDelay, platforms[i])
		require.NotEmpty(t, r.calls, platforms[i])
		require.Greater(t, r.waiting, int64(100), "%s: more than 100 of the 500 links must still be waiting when the single link is fetched", platforms[i])
	}
}
