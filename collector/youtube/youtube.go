package youtube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"sync/atomic"
	"time"
	_ "time/tzdata" // embeds the time zone data: the quotas end at midnight in California, and the system may have no time zone files

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Name is the name of the source in logs, in metrics and in stored history points.
const Name = "youtube"

// These are the names of the budgets. YouTube counts the calls of batchGetStats (BudgetStats) separately from the calls of all other
// methods (BudgetCommon).
const (
	BudgetCommon = "common"
	BudgetStats  = "stats"
)

// DefaultBaseURL is the base URL of the public API.
const DefaultBaseURL = "https://youtube.googleapis.com/"

const (
	methodChannels = "channels"
	methodUploads  = "playlistItems"
)

const (
	batchSize       = 50 // maximum number of video or channel ids in one call
	concurrentCalls = 4
	defaultLimit    = 10_000
	// statsPause is how long videos.list replaces batchGetStats after YouTube refused batchGetStats. A
	// longer pause wastes fewer units, but the source notices later that Google has enabled
	// batchGetStats.
	statsPause    = 6 * time.Hour
	handleTTL     = 10 * time.Minute // how long a handle is cached; short, because another process may have fetched a newer handle
	handlesCached = 20_000
)

var videoID = regexp.MustCompile(`^[A-Za-z0-9_-]{11}$`)

// Options are the settings of a Source.
type Options struct {
	BaseURL string // base URL of the API, with or without a path prefix; "" means DefaultBaseURL
	APIKey  string
	Client  *fetch.Client
	Now     func() time.Time
	// CommonLimit and StatsLimit are the daily limits of BudgetCommon and BudgetStats. 0 means
	// 10,000 units, YouTube's default. A negative number means that no limit is known.
	CommonLimit, StatsLimit int64
}

// Source fetches videos and channels from the YouTube Data API.
type Source struct {
	*fetch.Endpoint
	key     string
	now     func() time.Time
	pacific *time.Location
	budgets []source.Budget
	handles *fetch.Cache[string] // handles by channel id
	// statsRefusedUntil is the Unix time in seconds from which batchGetStats may be called again. It is 0 if batchGetStats was never
	// refused.
	statsRefusedUntil atomic.Int64
}

var _ source.Source = (*Source)(nil)

// New returns a Source for the YouTube Data API. It returns an error if the key is missing or the base URL is not an http or https URL.
func New(o Options) (*Source, error) {
	if o.APIKey == "" {
		return nil, errors.New("youtube: the API key is missing")
	}
	if o.Client == nil || o.Now == nil {
		return nil, errors.New("youtube: the options \"Client\" and \"Now\" are required")
	}
	api, err := o.Client.Endpoint(o.BaseURL, DefaultBaseURL)
	if err != nil {
		return nil, fmt.Errorf("youtube: %s", fetch.Redact(err.Error(), o.APIKey)) //nolint:err113 // Redact has removed the key, so err is not wrapped
	}
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		return nil, fmt.Errorf("youtube: the time zone America/Los_Angeles cannot be loaded: %w", err)
	}
	s := &Source{
		Endpoint: api,
		key:      o.APIKey,
		now:      o.Now,
		pacific:  pacific,
	}
	s.handles = fetch.NewCache[string](handlesCached, handleTTL, s.now)
	s.budgets = []source.Budget{
		{Name: BudgetCommon, Limit: source.LimitOf(o.CommonLimit, defaultLimit), Window: s.pacificDay},
		{Name: BudgetStats, Limit: source.LimitOf(o.StatsLimit, defaultLimit), Window: s.pacificDay},
	}
	return s, nil
}

// pacificDay returns the current date in Pacific time and the midnight at which this date ends.
// YouTube counts its quotas per day in Pacific time.
func (s *Source) pacificDay(now time.Time) (string, time.Time) {
	local := now.In(s.pacific)
	year, month, day := local.Date()
	return local.Format(time.DateOnly), time.Date(year, month, day+1, 0, 0, 0, 0, s.pacific)
}

// Name returns "youtube".
func (s *Source) Name() string { return Name }

// Address returns the base URL of the API, including the version.
func (s *Source) Address() string { return s.Endpoint.Address() + "youtube/v3/" }

// Concurrency returns the maximum number of concurrent Fetch calls. More calls would only spend the
// daily quota sooner.
func (s *Source) Concurrency() int { return concurrentCalls }

// Group returns "" for every target. All targets then belong to the same group, so videos or channels of different accounts can be fetched
// in one batch.
func (s *Source) Group(queue.Target) string { return "" }

// NeedsHandle returns false, because a video is requested by its id and not by the handle of its account.
func (s *Source) NeedsHandle(queue.Target) bool { return false }

// OnlyAccounts returns "", because the API shows the public videos of every channel.
func (s *Source) OnlyAccounts() string { return "" }

// Budgets returns the common budget and the budget of batchGetStats. Both are counted per day in Pacific time.
func (s *Source) Budgets() []source.Budget { return s.budgets }

// Serves returns true for a valid video or account of YouTube. It also returns the maximum number of such
// targets in a batch.
func (s *Source) Serves(t queue.Target) (int, bool) {
	switch {
	case t.Platform != link.YouTube:
		return 0, false
	case t.Kind == queue.KindAccount:
		return accountBatchSize(t)
	case t.Kind == queue.KindVideo && (t.ExternalID == "" || videoID.MatchString(t.ExternalID)):
		return batchSize, true
	}
	return 0, false
}

// canFetch returns true if the source serves the target and the target has an ExternalID.
func (s *Source) canFetch(t queue.Target) bool {
	_, ok := s.Serves(t)
	return ok && t.ExternalID != ""
}

// Plan returns the possible plans for a batch, the preferred plan first. While YouTube refuses
// batchGetStats, videos have only the plan with videos.list.
func (s *Source) Plan(batch []queue.Target) [][]source.Call {
	if source.AreAccounts(batch) {
		return [][]source.Call{{{Budget: BudgetCommon, Units: maxAccountUnits(batch)}}}
	}
	stats := []source.Call{{Budget: BudgetStats, Units: 1}}
	list := []source.Call{{Budget: BudgetCommon, Units: 1}}
	details, retry := false, false
	for _, t := range batch {
		details, retry = details || t.NeedDetails, retry || t.Attempts > 0
	}
	if details {
		list[0].Units = 2 // the second unit is for the handles of the channels
	}
	switch {
	case s.isStatsRefused():
		return [][]source.Call{list}
	case details, retry: // videos.list comes first, because batchGetStats returns few details and leaves out some existing videos
		return [][]source.Call{list, stats}
	default:
		return [][]source.Call{stats, list}
	}
}

func (s *Source) isStatsRefused() bool { return s.now().Unix() < s.statsRefusedUntil.Load() }

// Fetch requests up to 50 videos or accounts. The reserved budget decides whether videos are
// requested with batchGetStats or with videos.list.
func (s *Source) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	calls := budget.Calls()
	if len(batch) > batchSize || len(calls) != 1 {
		return nil, &source.Failure{
			Class:  source.BadRequest,
			Detail: fmt.Sprintf("targets in the batch: %d (must be at most %d); planned calls: %d (must be 1)", len(batch), batchSize, len(calls)),
		}
	}
	if source.AreAccounts(batch) {
		return s.fetchAccounts(ctx, batch, budget)
	}
	ids := make([]string, 0, len(batch))
	for _, t := range batch {
		if s.canFetch(t) && !slices.Contains(ids, t.ExternalID) {
			ids = append(ids, t.ExternalID)
		}
	}
	var answer videos
	if len(ids) > 0 {
		var err error
		if answer, err = s.fetchVideos(ctx, budget, calls[0].Budget, ids); err != nil {
			return nil, err
		}
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		if !s.canFetch(t) {
			results[i] = source.Result{Target: t, Class: source.Unsupported, Detail: "not a YouTube video"}
			continue
		}
		results[i] = answer.resultFor(t)
	}
	if calls[0].Budget == BudgetCommon && calls[0].Units > 1 {
		s.addHandles(ctx, budget, results)
	}
	return results, nil
}

// callMethod calls a method of the API. If YouTube's error concerns only the requested channel or
// its uploads, the returned error is a *targetError.
func (s *Source) callMethod(ctx context.Context, budget *source.CallBudget, budgetName, method, query string) (*fetch.Response, error) {
	res, err := s.Do(ctx, fetch.Request{
		URL:     s.Address() + method + "?" + query + "&key=" + url.QueryEscape(s.key),
		Secrets: []string{s.key},
		Budget:  budget,
	})
	if err != nil {
		return nil, err
	}
	jsonErr := fetch.CheckJSON(res.Body)
	if fetch.ClassOf(res.Status, jsonErr == nil) != source.OK {
		if jsonErr == nil && (method == methodChannels || method == methodUploads) {
			if e := targetErrorOf(res); e != nil {
				return nil, e
			}
		}
		return nil, s.parseFailure(res, jsonErr, budgetName)
	}
	return res, nil
}
