// Package youtube collects from the YouTube Data API v3 with an API key: anybody's public and unlisted videos, and
// channels with their uploads. It gives views, likes and comments; shares, bookmarks, songs and advertising flags are not to be had there.
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
	_ "time/tzdata" // quotas end at midnight Pacific time, also where no zone files are installed

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// Name is the source's name in logs, metrics and provenance.
const Name = "youtube"

// The source's budgets. YouTube counts batchGetStats apart from everything else.
const (
	BudgetCommon = "common"
	BudgetStats  = "stats"
)

// DefaultBaseURL is where the API is served.
const DefaultBaseURL = "https://youtube.googleapis.com/"

const (
	methodChannels = "channels"
	methodUploads  = "playlistItems"
)

const (
	batchSize       = 50 // ids a call, of videos and of channels
	concurrentCalls = 4
	defaultLimit    = 10_000
	// statsPause is how long videos.list stands in after batchGetStats was refused: long enough not to waste a unit
	// on every batch, short enough to notice when a project is given the method.
	statsPause    = 6 * time.Hour
	handleTTL     = 10 * time.Minute // a former handle must not outlive what another process has learnt
	handlesCached = 20_000
)

var videoID = regexp.MustCompile(`^[A-Za-z0-9_-]{11}$`)

// Options of the source.
type Options struct {
	BaseURL string // "" means DefaultBaseURL; may have a path prefix
	APIKey  string
	Client  *fetch.Client
	Now     func() time.Time
	// The units a day that the project has, per budget; 0 means 10,000, YouTube's default, and less than 0 no known limit.
	CommonLimit, StatsLimit int64
}

// Source asks the YouTube Data API.
type Source struct {
	api     *fetch.Endpoint
	key     string
	now     func() time.Time
	pacific *time.Location
	budgets []source.Budget
	handles *handleCache
	// statsRefusedUntil is when batchGetStats may be tried again, in Unix seconds; 0 when it was never refused.
	statsRefusedUntil atomic.Int64
}

var (
	_ source.Source        = (*Source)(nil)
	_ source.NetworkSource = (*Source)(nil)
)

// New makes the source. It returns an error when the key is missing or the base address is no http or https address.
func New(o Options) (*Source, error) {
	if o.APIKey == "" {
		return nil, errors.New("youtube: the API key is missing")
	}
	if o.Client == nil || o.Now == nil {
		return nil, errors.New("youtube: Client and Now are required")
	}
	api, err := o.Client.Endpoint(o.BaseURL, DefaultBaseURL)
	if err != nil {
		return nil, fmt.Errorf("youtube: %s", fetch.Redact(err.Error(), o.APIKey)) //nolint:err113 // with the key left out
	}
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		return nil, fmt.Errorf("youtube: no Pacific time zone: %w", err)
	}
	s := &Source{
		api:     api,
		key:     o.APIKey,
		now:     o.Now,
		pacific: pacific,
	}
	s.handles = newHandleCache(handlesCached, handleTTL, s.now)
	s.budgets = []source.Budget{
		{Name: BudgetCommon, Limit: limit(o.CommonLimit), Window: s.window},
		{Name: BudgetStats, Limit: limit(o.StatsLimit), Window: s.window},
	}
	return s, nil
}

func areAccounts(batch []source.Target) bool {
	return len(batch) > 0 && batch[0].Kind == source.KindAccount
}

func limit(option int64) int64 {
	switch {
	case option == 0:
		return defaultLimit
	case option < 0:
		return 0
	default:
		return option
	}
}

// window is the Pacific day of now: its date, and the midnight that ends it.
func (s *Source) window(now time.Time) (string, time.Time) {
	local := now.In(s.pacific)
	year, month, day := local.Date()
	return local.Format(time.DateOnly), time.Date(year, month, day+1, 0, 0, 0, 0, s.pacific)
}

// Name returns Name.
func (s *Source) Name() string { return Name }

// Address is where the API is asked.
func (s *Source) Address() string { return s.api.Address() + "youtube/v3/" }

// Clock is the server's.
func (s *Source) Clock(ctx context.Context) (time.Time, error) { return s.api.Clock(ctx) }

// Timeout returns the timeout of the HTTP client.
func (s *Source) Timeout() time.Duration { return s.api.Timeout() }

// Concurrency returns concurrentCalls: a call takes less than a second and answers for 50 videos, so that
// more calls would only spend the daily quota sooner.
func (s *Source) Concurrency() int { return concurrentCalls }

// Group returns "": a batch may mix all targets of a kind.
func (s *Source) Group(source.Target) string { return "" }

// AsksByHandle returns false: YouTube finds videos by their ids.
func (s *Source) AsksByHandle(source.Target) bool { return false }

// Budgets lists the common budget and that of batchGetStats, both for a Pacific day.
func (s *Source) Budgets() []source.Budget { return s.budgets }

// Serves takes well-formed YouTube videos, 50 a call, and accounts: 50 a call of those whose id is known and of whose uploads
// a page is enough, else one. A target without an id stands for all of its kind.
func (s *Source) Serves(t source.Target) (int, bool) {
	switch {
	case t.Platform != link.YouTube:
		return 0, false
	case t.Kind == source.KindAccount:
		return accountBatch(t)
	case t.Kind == source.KindVideo && (t.ExternalID == "" || videoID.MatchString(t.ExternalID)):
		return batchSize, true
	}
	return 0, false
}

// asks is whether a target can stand in a request.
func (s *Source) asks(t source.Target) bool {
	_, ok := s.Serves(t)
	return ok && t.ExternalID != ""
}

// Plan prefers videos.list with the channels' handles when details are wanted, and batchGetStats, with a budget of
// its own, when they are not. Each stands in for the other: counts are better than nothing. For accounts it counts every
// call that may have to be made; those whose list ends early cost less.
func (s *Source) Plan(batch []source.Target) [][]source.Call {
	if areAccounts(batch) {
		return [][]source.Call{{{Bucket: BudgetCommon, Units: accountUnits(batch)}}}
	}
	stats := []source.Call{{Bucket: BudgetStats, Units: 1}}
	list := []source.Call{{Bucket: BudgetCommon, Units: 1}}
	details, again := false, false
	for _, t := range batch {
		details, again = details || t.NeedDetails, again || t.Attempts > 0
	}
	if details {
		list[0].Units = 2
	}
	switch {
	case s.statsRefused():
		return [][]source.Call{list}
	case details, again: // batchGetStats may leave out what is there
		return [][]source.Call{list, stats}
	default:
		return [][]source.Call{stats, list}
	}
}

func (s *Source) statsRefused() bool { return s.now().Unix() < s.statsRefusedUntil.Load() }

// Fetch asks for up to 50 videos by batchGetStats or by videos.list, whichever plan names. It asks for the channels'
// handles as well when plan has a second unit of the common budget; when that fails, the videos come without handles.
//
// For up to 50 accounts it asks channels.list and then playlistItems.list for the uploads of each.
func (s *Source) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	calls := budget.Calls()
	if len(batch) > batchSize || len(calls) != 1 {
		return nil, &source.Failure{
			Class:  source.BadRequest,
			Detail: fmt.Sprintf("a batch of %d targets in %d calls: youtube takes up to %d in one", len(batch), len(calls), batchSize),
		}
	}
	if areAccounts(batch) {
		budget.Meter()
		return s.fetchAccounts(ctx, batch, budget)
	}
	ids := make([]string, 0, len(batch))
	for _, t := range batch {
		if s.asks(t) && !slices.Contains(ids, t.ExternalID) {
			ids = append(ids, t.ExternalID)
		}
	}
	var answer videos
	if len(ids) > 0 {
		var err error
		if answer, err = s.askVideos(ctx, budget, calls[0].Bucket, ids); err != nil {
			return nil, err
		}
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		if !s.asks(t) {
			results[i] = source.Result{Target: t, Class: source.Unsupported, Detail: "not a YouTube video"}
			continue
		}
		results[i] = answer.result(t)
	}
	if calls[0].Bucket == BudgetCommon && calls[0].Units > 1 {
		s.nameAccounts(ctx, budget, results)
	}
	return results, nil
}

// call asks one method. Every answer that is not a success with JSON comes back as a failure of the budget, or, where it
// concerns the channel that was asked for, as a *refusal.
func (s *Source) call(ctx context.Context, budget *source.CallBudget, bucket, method, query string) (*fetch.Response, error) {
	res, err := s.api.Do(ctx, fetch.Request{
		URL:     s.Address() + method + "?" + query + "&key=" + url.QueryEscape(s.key),
		Secrets: []string{s.key},
		Budget:  budget,
	})
	if err != nil {
		return nil, err
	}
	broken := fetch.CheckJSON(res.Body)
	if fetch.ClassOf(res.Status, broken == nil) != source.OK {
		if broken == nil && (method == methodChannels || method == methodUploads) {
			if r := refusalOf(res); r != nil {
				return nil, r
			}
		}
		return nil, s.failure(res, broken, bucket)
	}
	return res, nil
}
