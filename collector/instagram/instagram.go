package instagram

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Name is the name of the source in logs, in metrics and in stored history points.
const Name = "instagram"

const (
	// batchSize is the largest number of videos in a batch. One call usually returns all videos of the batch that belong to the same
	// account.
	batchSize = 25
	pageSize  = 50
	// maxPages is the maximum number of pages to search for a video in an account's list of posts.
	maxPages = 20
	// ownProfileTTL is how long the profile of the operator's account is cached. It must be requested again at times, because the handle of
	// the account can change.
	ownProfileTTL = 24 * time.Hour
)

var (
	shortcode  = regexp.MustCompile(`^[A-Za-z0-9_-]{10,12}$`)
	handle     = regexp.MustCompile(`^[a-z0-9_.]{1,30}$`)
	accountNum = regexp.MustCompile(`^[0-9]{1,20}$`)
)

// Options are the settings of a Source.
type Options struct {
	BaseURL   string // base URL with the API's version at its end; "" means graph.DefaultBaseURL
	Token     string // token of a Facebook login with the permissions instagram_basic, instagram_manage_insights and pages_read_engagement
	AppSecret string // the secret of the app that issued the token; "" means that no appsecret_proof is sent
	AccountID string // id of the operator's professional account in the Graph API; every request for another account contains it
	Client    *fetch.Client
	Now       func() time.Time
}

// Source fetches posts and accounts from the Instagram Graph API.
type Source struct {
	*graph.Client
	own ownAccount
	now func() time.Time
}

var _ source.Source = (*Source)(nil)

// New returns a Source for the Instagram Graph API. It returns an error if the token is missing, or if the account id or the base URL is
// not valid.
func New(o Options) (*Source, error) {
	c, err := graph.New(graph.Options{Source: Name, BaseURL: o.BaseURL, Token: o.Token, AppSecret: o.AppSecret, Client: o.Client, Now: o.Now})
	if err != nil {
		return nil, err
	}
	if !accountNum.MatchString(o.AccountID) {
		return nil, fmt.Errorf("instagram: the account id must be up to 20 digits, such as 17841405822304914, not %q", fetch.Redact(o.AccountID, o.Token, o.AppSecret))
	}
	return &Source{Client: c, own: ownAccount{id: o.AccountID, lock: make(chan struct{}, 1)}, now: o.Now}, nil
}

// Name returns "instagram".
func (s *Source) Name() string { return Name }

// Concurrency returns the maximum number of concurrent Fetch calls: 8, because each account needs a separate request. Near Meta's hourly
// limit, Plan slows the calls down.
func (s *Source) Concurrency() int { return 8 }

// Budgets returns one budget, which counts all requests to the Graph API. Its limit is not known, because Meta reports only which
// percentage of the limit is used.
func (s *Source) Budgets() []source.Budget { return s.Client.Budgets() }

// Serves returns how many targets one call of Fetch can request: 25 videos or 1 account. For an
// unsupported target, it returns 0 and false.
func (s *Source) Serves(t queue.Target) (int, bool) {
	switch {
	case t.Platform != link.Instagram:
		return 0, false
	case t.Kind == queue.KindVideo && (t.ExternalID == "" || shortcode.MatchString(t.ExternalID)):
		return batchSize, true
	case t.Kind == queue.KindAccount && (t.ExternalID == "" || handle.MatchString(t.Handle)):
		return 1, true
	}
	return 0, false
}

// NeedsHandle returns true for a video, because Fetch looks for the video in the account's list of posts. It requests this list by the
// handle of the account.
func (s *Source) NeedsHandle(t queue.Target) bool { return t.Kind == queue.KindVideo }

// OnlyAccounts returns "professional Instagram accounts", because the Graph API does not show personal accounts. A video whose account is
// not known is found only if it belongs to the operator's own account.
func (s *Source) OnlyAccounts() string {
	return "professional Instagram accounts (business or creator)"
}

// Group returns the handle of the account whose list of posts must contain the target. It returns ""
// if the handle is not known.
func (s *Source) Group(t queue.Target) string { return accountOf(t, "") }

// Plan returns the number of calls to reserve for a batch. It returns nil while calls must be delayed
// because of Meta's limit.
func (s *Source) Plan(batch []queue.Target) [][]source.Call {
	if source.AreAccounts(batch) {
		calls := 0
		for _, t := range batch {
			calls += maxListRequests(t.Depth)
		}
		return s.Client.Plan(calls)
	}
	accounts := map[string]bool{}
	for _, t := range batch {
		accounts[accountOf(t, "")] = true
	}
	// Reserve one call for the operator's account, one for the list of each account, and one for the insights
	// of each video.
	return s.Client.Plan(1 + len(accounts) + len(batch))
}

// Fetch requests up to 25 targets: either videos, or accounts with their newest videos. It searches
// for a video in its account's list of posts.
func (s *Source) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	calls := budget.Calls()
	if len(batch) > batchSize || len(calls) != 1 {
		return nil, &source.Failure{
			Class:  source.BadRequest,
			Detail: fmt.Sprintf("targets in the batch: %d (must be at most %d); planned calls: %d (must be 1)", len(batch), batchSize, len(calls)),
		}
	}
	budget.AllowMoreRequests()
	if source.AreAccounts(batch) {
		return source.FetchEach(ctx, batch, func(ctx context.Context, t queue.Target) (source.Result, error) {
			if !s.canFetch(t) {
				return source.Result{Class: source.Unsupported, Detail: "not an Instagram account, or an account without a valid handle"}, nil
			}
			return s.fetchAccount(ctx, budget, t)
		})
	}
	return s.fetchVideos(ctx, batch, budget)
}

// fetchVideos looks for the videos of a batch in their accounts' lists of posts. It requests each list only once.
func (s *Source) fetchVideos(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	results := map[string]map[string]source.Result{} // maps the handle of an account and the code of a post to the result for the post
	return source.FetchEach(ctx, batch, func(ctx context.Context, t queue.Target) (source.Result, error) {
		if !s.canFetch(t) {
			return source.Result{Class: source.Unsupported, Detail: "not an Instagram video"}, nil
		}
		self, err := s.ownProfile(ctx, budget)
		if err != nil {
			return source.Result{}, err
		}
		own := *fetch.ParseHandle(self.Username)
		name := accountOf(t, own)
		if results[name] == nil {
			var codes []string
			for _, other := range batch {
				if s.canFetch(other) && accountOf(other, own) == name && !slices.Contains(codes, other.ExternalID) {
					codes = append(codes, other.ExternalID)
				}
			}
			if results[name], err = s.findPosts(ctx, budget, name, codes, self); err != nil {
				return source.Result{}, err
			}
		}
		r := results[name][t.ExternalID]
		if name == "" && t.Handle != own && r.Class == source.Missing {
			r.Class, r.Detail = source.Unsupported, "the link does not contain the account, which Instagram needs to find a video: track a link that contains the account, such as instagram.com/USER/reel/CODE/, or track the account"
		}
		return r.ForTarget(t), nil
	})
}

// canFetch returns true if the source can fetch the target and the target has an id.
func (s *Source) canFetch(t queue.Target) bool {
	_, ok := s.Serves(t)
	return ok && t.ExternalID != ""
}

// accountOf returns the handle of the account whose list can contain the target. It returns "" for the
// operator's account, and for an invalid handle.
func accountOf(t queue.Target, ownHandle string) string {
	if t.Handle == ownHandle || !handle.MatchString(t.Handle) {
		return ""
	}
	return t.Handle
}
