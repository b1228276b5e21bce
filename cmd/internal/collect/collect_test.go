package collect_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommand_failsIfNoSourceIsConfigured(t *testing.T) {
	t.Parallel()
	status, _, stderr := boottest.Run(t, collect.Command, nil, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")})
	require.Equal(t, 2, status)
	for _, want := range []string{"no source is configured", "REELTALLY_YOUTUBE_API_KEY", "REELTALLY_VENDOR_KEY", "ensembledata", "reeltally sandbox"} {
		require.Contains(t, stderr, want)
	}
}

func TestCommand_runsCollectorWithAllSourcesUntilStopped(t *testing.T) {
	t.Parallel()
	p := boottest.Start(t, collect.Command, nil, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite"),
		"REELTALLY_VENDOR": "ensembledata,scrapecreators", "REELTALLY_VENDOR_KEY": "one-key,two-key", "REELTALLY_YOUTUBE_API_KEY": "yt-key",
		"REELTALLY_INSTAGRAM_ACCESS_TOKEN": "ig-key", "REELTALLY_INSTAGRAM_ACCOUNT_ID": "17841405822304914", "REELTALLY_FACEBOOK_ACCESS_TOKEN": "fb-key",
		"REELTALLY_TIKTOK_CLIENT_KEY": "tt-key", "REELTALLY_TIKTOK_CLIENT_SECRET": "tt-secret-key", "REELTALLY_TIKTOK_REFRESH_TOKEN": "rft.one-key,rft.two-key",
		"REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY": "rs-key", "REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET": "rs-secret-key"})
	line := p.Stderr.Await(t, 2*time.Minute, `"the collector has started"`)
	require.Contains(t, line, `["youtube","tiktok_display","tiktok_display:2","instagram","facebook","vendor:ensembledata","vendor:scrapecreators","tiktok_research"]`,
		"the collector must first ask the platforms' APIs, then the vendors in the configured order, and last the Research API")
	require.Zero(t, p.Stop())
	p.Stderr.Await(t, time.Second, "stopped collecting")
	require.NotContains(t, p.Stderr.String(), "-key", "the log must contain no credential")
}

func TestConfig_reportsTheInvalidSetting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env   map[string]string
		wants []string
	}{
		"a key without a vendor":                {map[string]string{"REELTALLY_VENDOR_KEY": "s3cret"}, []string{"REELTALLY_VENDOR_KEY is set but REELTALLY_VENDOR is not", "ensembledata"}},
		"a base URL without a vendor":           {map[string]string{"REELTALLY_VENDOR_BASE_URL": "http://x"}, []string{"REELTALLY_VENDOR_BASE_URL is set but REELTALLY_VENDOR is not"}},
		"a vendor without a key":                {map[string]string{"REELTALLY_VENDOR": "apify"}, []string{"the number of vendors in REELTALLY_VENDOR is 1 (apify), but the number of keys in REELTALLY_VENDOR_KEY is 0"}},
		"two vendors, but only one key":         {map[string]string{"REELTALLY_VENDOR": "apify,ensembledata", "REELTALLY_VENDOR_KEY": "s3cret"}, []string{"the number of vendors in REELTALLY_VENDOR is 2", "the number of keys in REELTALLY_VENDOR_KEY is 1", "each vendor needs its own key"}},
		"two vendors with one base URL":         {map[string]string{"REELTALLY_VENDOR": "apify,ensembledata", "REELTALLY_VENDOR_KEY": "s3cret,s3cret", "REELTALLY_VENDOR_BASE_URL": "http://x"}, []string{"the number of URLs in REELTALLY_VENDOR_BASE_URL is 1"}},
		"an unknown vendor":                     {map[string]string{"REELTALLY_VENDOR": "nobody", "REELTALLY_VENDOR_KEY": "s3cret"}, []string{`"nobody"`, "scrapecreators"}},
		"a missing description file":            {map[string]string{"REELTALLY_VENDOR": "./none.json", "REELTALLY_VENDOR_KEY": "s3cret"}, []string{"none.json"}},
		"an invalid vendor URL":                 {map[string]string{"REELTALLY_VENDOR": "apify", "REELTALLY_VENDOR_KEY": "s3cret", "REELTALLY_VENDOR_BASE_URL": "gopher://x"}, []string{"REELTALLY_VENDOR_BASE_URL", "gopher"}},
		"an invalid YouTube URL":                {map[string]string{"REELTALLY_YOUTUBE_API_KEY": "s3cret", "REELTALLY_YOUTUBE_BASE_URL": "gopher://x"}, []string{"REELTALLY_YOUTUBE_BASE_URL", "gopher"}},
		"a TikTok app without refresh token":    {map[string]string{"REELTALLY_TIKTOK_CLIENT_KEY": "s3cret", "REELTALLY_TIKTOK_CLIENT_SECRET": "s3cret"}, []string{"REELTALLY_TIKTOK_REFRESH_TOKEN", "go together"}},
		"a research project without its secret": {map[string]string{"REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY": "s3cret"}, []string{"REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET", "go together"}},
		"an invalid TikTok URL": {map[string]string{"REELTALLY_TIKTOK_CLIENT_KEY": "k", "REELTALLY_TIKTOK_CLIENT_SECRET": "s3cret", "REELTALLY_TIKTOK_REFRESH_TOKEN": "s3cret", "REELTALLY_TIKTOK_BASE_URL": "gopher://x"},
			[]string{"REELTALLY_TIKTOK_BASE_URL", "gopher"}},
		"an invalid Research API URL": {map[string]string{"REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY": "k", "REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET": "s3cret", "REELTALLY_TIKTOK_RESEARCH_BASE_URL": "gopher://x"},
			[]string{"REELTALLY_TIKTOK_RESEARCH_BASE_URL", "gopher"}},
		"an interval that is no duration":         {map[string]string{"REELTALLY_FETCH_INTERVALS": "basic=x"}, []string{"--fetch-intervals (REELTALLY_FETCH_INTERVALS)", `basic: "x" is not a duration`}},
		"an interval of eight days":               {map[string]string{"REELTALLY_FETCH_INTERVALS": "basic=8d"}, []string{"--fetch-intervals (REELTALLY_FETCH_INTERVALS)", `basic is 8d; it must be from 1h to 7d`}},
		"two intervals of a tier":                 {map[string]string{"REELTALLY_FETCH_INTERVALS": "basic=2d,basic=3d"}, []string{"--fetch-intervals (REELTALLY_FETCH_INTERVALS)", `"basic" occurs twice`}},
		"an interval of an unknown tier":          {map[string]string{"REELTALLY_FETCH_INTERVALS": "gold=1d"}, []string{"--fetch-intervals (REELTALLY_FETCH_INTERVALS)", `"gold" is not a tier`}},
		"an interval that is too long":            {map[string]string{"REELTALLY_FETCH_INTERVALS": "basic=2w"}, []string{"basic is 14d; it must be from 1h to 7d"}},
		"a limit of zero requests":                {map[string]string{"REELTALLY_TIKTOK_RESEARCH_REQUESTS": "0"}, []string{"REELTALLY_TIKTOK_RESEARCH_REQUESTS", "it must be 1 or more, or -1 for no limit"}},
		"a token without an account id":           {map[string]string{"REELTALLY_INSTAGRAM_ACCESS_TOKEN": "s3cret"}, []string{"REELTALLY_INSTAGRAM_ACCESS_TOKEN and REELTALLY_INSTAGRAM_ACCOUNT_ID go together"}},
		"an account id without a token":           {map[string]string{"REELTALLY_INSTAGRAM_ACCOUNT_ID": "17841405822304914"}, []string{"REELTALLY_INSTAGRAM_ACCESS_TOKEN and REELTALLY_INSTAGRAM_ACCOUNT_ID go together"}},
		"an account id that is not a number":      {map[string]string{"REELTALLY_INSTAGRAM_ACCESS_TOKEN": "s3cret", "REELTALLY_INSTAGRAM_ACCOUNT_ID": "natgeo"}, []string{`"natgeo"`, "the account id must be up to 20 digits"}},
		"an Instagram URL without version":        {map[string]string{"REELTALLY_INSTAGRAM_ACCESS_TOKEN": "s3cret", "REELTALLY_INSTAGRAM_ACCOUNT_ID": "1", "REELTALLY_INSTAGRAM_BASE_URL": "https://graph.facebook.com/"}, []string{"REELTALLY_INSTAGRAM_BASE_URL", "the base address must be an http or https address that ends in a version"}},
		"a page id without a token":               {map[string]string{"REELTALLY_FACEBOOK_PAGE_ID": "1"}, []string{"REELTALLY_FACEBOOK_PAGE_ID is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not"}},
		"an Instagram app secret without a token": {map[string]string{"REELTALLY_INSTAGRAM_APP_SECRET": "s3cret"}, []string{"REELTALLY_INSTAGRAM_APP_SECRET is set but REELTALLY_INSTAGRAM_ACCESS_TOKEN is not"}},
		"a Facebook app secret without a token":   {map[string]string{"REELTALLY_FACEBOOK_APP_SECRET": "s3cret"}, []string{"REELTALLY_FACEBOOK_APP_SECRET is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not"}},
		"a page id that is not a number":          {map[string]string{"REELTALLY_FACEBOOK_ACCESS_TOKEN": "s3cret", "REELTALLY_FACEBOOK_PAGE_ID": "1,natgeo"}, []string{"REELTALLY_FACEBOOK_PAGE_ID", `"natgeo"`}},
		"an invalid metric name":                  {map[string]string{"REELTALLY_FACEBOOK_ACCESS_TOKEN": "s3cret", "REELTALLY_FACEBOOK_REEL_METRIC": "a,b"}, []string{"REELTALLY_FACEBOOK_REEL_METRIC", `"a,b"`, "fb_reels_total_plays"}},
		"an address of metrics without a port":    {map[string]string{"REELTALLY_METRICS_LISTEN": "foo"}, []string{"REELTALLY_METRICS_LISTEN", `"foo"; it must be HOST:PORT`}},
		"a budget of zero":                        {map[string]string{"REELTALLY_YOUTUBE_API_KEY": "s3cret", "REELTALLY_YOUTUBE_UNITS": "0"}, []string{"REELTALLY_YOUTUBE_UNITS", "it must be 1 or more, or -1 for no limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.env["REELTALLY_DATABASE_URL"] = storetest.CreateEmptyDatabase(t, "sqlite")
			status, _, stderr := boottest.Run(t, collect.Command, nil, c.env)
			require.Equal(t, 2, status)
			for _, want := range c.wants {
				require.Contains(t, stderr, want)
			}
			require.NotContains(t, stderr, "s3cret")
		})
	}
}

// fixedSource is a source that answers every call with the same results and error.
type fixedSource struct {
	source.Source
	results []source.Result
	err     error
}

func (fixedSource) Name() string { return "test" }

func (s fixedSource) Fetch(context.Context, []queue.Target, *source.CallBudget) ([]source.Result, error) {
	return s.results, s.err
}

func TestCountCalls_countsCallsAndResultsOfSources(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	video := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo}
	counted, results := collect.CountCalls(registry, []source.Source{
		fixedSource{results: []source.Result{{Target: video, Class: source.OK}, {Target: video, Class: source.Gone}}},
		fixedSource{err: &source.Failure{Class: source.RateLimited}},
		fixedSource{err: errors.New("broken")},
	})
	for _, s := range counted {
		_, _ = s.Fetch(t.Context(), nil, nil)
	}
	require.Equal(t, map[string]map[string]int64{"test": {"ok": 1, "gone": 1}}, results())
	families, err := registry.Gather()
	require.NoError(t, err)
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			lines = append(lines, f.GetName()+" "+strings.Join(labels, " "))
		}
	}
	require.Equal(t, []string{
		"reeltally_source_call_seconds class=error source=test", "reeltally_source_call_seconds class=ok source=test",
		"reeltally_source_call_seconds class=rate_limited source=test",
		"reeltally_source_results_total class=gone kind=video source=test", "reeltally_source_results_total class=ok kind=video source=test",
	}, lines)
}

// tiktokSource is a source of TikTok videos.
type tiktokSource struct{ fixedSource }

func (tiktokSource) Serves(t queue.Target) (int, bool) {
	return 1, t.Platform == link.TikTok && t.Kind == queue.KindVideo
}
func (tiktokSource) Timeout() time.Duration              { return time.Second }
func (tiktokSource) Concurrency() int                    { return 2 }
func (tiktokSource) Group(queue.Target) string           { return "" }
func (tiktokSource) NeedsHandle(queue.Target) bool       { return false }
func (tiktokSource) OnlyAccounts() string                { return "" }
func (tiktokSource) Budgets() []source.Budget            { return nil }
func (tiktokSource) Plan([]queue.Target) [][]source.Call { return [][]source.Call{{}} }

// ownVideosSource is a source that answers for every video that the video belongs to another account.
type ownVideosSource struct{ tiktokSource }

func (ownVideosSource) OnlyAccounts() string { return "accounts of the operator" }
func (ownVideosSource) Fetch(_ context.Context, batch []queue.Target, _ *source.CallBudget) ([]source.Result, error) {
	return []source.Result{{Target: batch[0], Class: source.Unsupported, Detail: "not in the answer"}}, nil
}

func TestService_saysThatCountedSourcesServeOnlyOwnAccounts(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	org := db.Org(o.ID)
	l, err := link.Parse("https://www.tiktok.com/@some.body/video/7106594312292453675")
	require.NoError(t, err)
	_, err = org.Track(t.Context(), store.TrackRequest{Links: []link.Link{l}, Immediate: 1})
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	sources, _ := collect.CountCalls(registry, []source.Source{ownVideosSource{}})
	service, err := collect.Config{}.NewService(db.Store, sources, registry, &boot.Traces{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- service(ctx) }()
	var v store.Video
	require.Eventually(t, func() bool {
		v, err = org.Video(t.Context(), store.Ref{Link: l})
		return err != nil || v.LastAttemptAt != nil
	}, 30*time.Second, 10*time.Millisecond)
	stop()
	require.NoError(t, <-done)
	require.NoError(t, err)
	require.Equal(t, "The configured sources give numbers only of accounts of the operator and their videos, and this video is not one of these", v.FetchReason)
}

// panickingSource is a source of TikTok videos that panics in every call.
type panickingSource struct{ tiktokSource }

func (panickingSource) Fetch(context.Context, []queue.Target, *source.CallBudget) ([]source.Result, error) {
	panic("test panic")
}

func TestService_recoversFromPanicOfSourceAndCountsIt(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	l, err := link.Parse("https://www.tiktok.com/@some.body/video/7106594312292453675")
	require.NoError(t, err)
	_, err = db.Org(o.ID).Track(t.Context(), store.TrackRequest{Links: []link.Link{l}, Immediate: 1})
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	service, err := collect.Config{}.NewService(db.Store, []source.Source{panickingSource{}}, registry, &boot.Traces{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- service(ctx) }()
	require.Eventually(t, func() bool {
		families, err := registry.Gather()
		for _, f := range families {
			if f.GetName() == "reeltally_collector_panics_total" {
				return f.GetMetric()[0].GetCounter().GetValue() > 0
			}
		}
		return err != nil
	}, 30*time.Second, 10*time.Millisecond)
	require.Empty(t, done, "the service must still run after the panic")
	stop()
	require.NoError(t, <-done)
}
