// Package instagram collects from the Instagram Graph API with an access token of one professional account: its own posts
// with their insights, and the posts of other professional accounts by business discovery.
//
// The API has no look-up by a post's code. A post is found in the list of its account, so that the account's handle must be
// known; without it only the own account is looked through.
package instagram

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// Name is the source's name in logs, metrics and provenance.
const Name = "instagram"

const (
	// batchSize is how many videos go together: those of one account cost one call as a rule, each other account one more.
	batchSize = 25
	pageSize  = 50
	// maxPages is how far back an account's list is looked through for a video.
	maxPages = 20
	ownTTL   = 24 * time.Hour
)

var (
	shortcode  = regexp.MustCompile(`^[A-Za-z0-9_-]{10,11}$`)
	handle     = regexp.MustCompile(`^[a-z0-9_.]{1,30}$`)
	accountNum = regexp.MustCompile(`^[0-9]{1,20}$`)
)

// Options of the source.
type Options struct {
	BaseURL   string // as graph.Options
	Token     string // of a Facebook login, with instagram_basic, instagram_manage_insights and pages_read_engagement
	AppSecret string // as graph.Options
	AccountID string // the own professional account's id in the Graph API: business discovery goes through it
	Client    *fetch.Client
	Now       func() time.Time
}

// Source asks the Instagram Graph API.
type Source struct {
	graph *graph.Client
	own   ownAccount
	now   func() time.Time
}

// ownAccount is the account that asks. A name may change, so that it is asked for again after a day.
type ownAccount struct {
	id    string
	turn  chan struct{} // held by who asks; below it:
	self  profile
	at    time.Time
	tries atomic.Int64
	err   error // of the last try
}

var (
	_ source.Source           = (*Source)(nil)
	_ source.NetworkSource    = (*Source)(nil)
	_ source.OwnAccountSource = (*Source)(nil)
)

// New makes the source. It returns an error when the token is missing, the account's id is no number, or the base address
// cannot be used.
func New(o Options) (*Source, error) {
	c, err := graph.New(graph.Options{Source: Name, BaseURL: o.BaseURL, Token: o.Token, AppSecret: o.AppSecret, Client: o.Client, Now: o.Now})
	if err != nil {
		return nil, err
	}
	if !accountNum.MatchString(o.AccountID) {
		return nil, fmt.Errorf("instagram: the own account's id must be up to 20 digits, as 17841405822304914, not %q", fetch.Redact(o.AccountID, o.Token, o.AppSecret))
	}
	return &Source{graph: c, own: ownAccount{id: o.AccountID, turn: make(chan struct{}, 1)}, now: o.Now}, nil
}

// Name returns Name.
func (s *Source) Name() string { return Name }

// Address is where the API is asked.
func (s *Source) Address() string { return s.graph.Address() }

// Clock is the server's.
func (s *Source) Clock(ctx context.Context) (time.Time, error) { return s.graph.Clock(ctx) }

// Timeout returns the timeout of the HTTP client.
func (s *Source) Timeout() time.Duration { return s.graph.Timeout() }

// Concurrency returns 8: each account costs a call of its own. Plan returns nil when much of Meta's hourly limit is used.
func (s *Source) Concurrency() int { return 8 }

// Budgets lists the one budget, whose limit the platform tells in percent alone.
func (s *Source) Budgets() []source.Budget { return s.graph.Budgets() }

// Serves takes Instagram videos, 25 at once, and accounts by their handle, one at a time.
func (s *Source) Serves(t source.Target) (int, bool) {
	switch {
	case t.Platform != link.Instagram:
		return 0, false
	case t.Kind == source.KindVideo && (t.ExternalID == "" || shortcode.MatchString(t.ExternalID)):
		return batchSize, true
	case t.Kind == source.KindAccount && (t.ExternalID == "" || handle.MatchString(t.Handle)):
		return 1, true
	}
	return 0, false
}

// AsksByHandle returns true for every video.
func (s *Source) AsksByHandle(t source.Target) bool { return t.Kind == source.KindVideo }

// OwnAccountsOnly returns true: a video whose link does not name its account is looked up in the own account only.
func (s *Source) OwnAccountsOnly() bool { return true }

// Group is the handle of the account in whose list a target stands, "" where it is not known.
func (s *Source) Group(t source.Target) string { return accountOf(t, "") }

// Plan counts one call for each account in the batch and one more for each video, since those of the own account have
// insights. A video that lies deep in its account's list costs more, which nobody knows before. There is no plan while the
// client spreads its calls.
func (s *Source) Plan(batch []source.Target) [][]source.Call {
	if len(batch) > 0 && batch[0].Kind == source.KindAccount {
		calls := 0
		for _, t := range batch {
			calls += listPages(t.Depth)
		}
		return s.graph.Plan(calls)
	}
	accounts := map[string]bool{}
	for _, t := range batch {
		accounts[accountOf(t, "")] = true
	}
	return s.graph.Plan(1 + len(accounts) + len(batch))
}

// Fetch looks videos up in the lists of their accounts, and asks for accounts with their newest videos. A video that its
// account's list does not show is source.Missing: deleted, archived, or posted together with another account that owns it.
func (s *Source) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	calls := budget.Calls()
	if len(batch) > batchSize || len(calls) != 1 {
		return nil, &source.Failure{
			Class:  source.BadRequest,
			Detail: fmt.Sprintf("a batch of %d targets in %d calls: instagram takes up to %d in one", len(batch), len(calls), batchSize),
		}
	}
	if len(batch) > 0 && batch[0].Kind == source.KindAccount {
		budget.MeterWithoutLimit()
		return graph.Each(ctx, batch, func(ctx context.Context, t source.Target) (source.Result, error) {
			if !s.asks(t) {
				return source.Result{Class: source.Unsupported, Detail: "not an Instagram account with a handle"}, nil
			}
			return s.fetchAccount(ctx, budget, t)
		})
	}
	return s.fetchVideos(ctx, batch, budget)
}

// fetchVideos asks account by account.
func (s *Source) fetchVideos(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	groups := map[string]map[string]source.Result{} // by handle, then by code
	return graph.Each(ctx, batch, func(ctx context.Context, t source.Target) (source.Result, error) {
		if !s.asks(t) {
			return source.Result{Class: source.Unsupported, Detail: "not an Instagram video"}, nil
		}
		self, err := s.whoAmI(ctx, budget)
		if err != nil {
			return source.Result{}, err
		}
		own := *fetch.Handle(self.Username)
		name := accountOf(t, own)
		if groups[name] == nil {
			var codes []string
			for _, other := range batch {
				if s.asks(other) && accountOf(other, own) == name && !slices.Contains(codes, other.ExternalID) {
					codes = append(codes, other.ExternalID)
				}
			}
			if groups[name], err = s.find(ctx, budget, name, codes, self); err != nil {
				return source.Result{}, err
			}
		}
		r := groups[name][t.ExternalID]
		if r.Facts != nil {
			facts := *r.Facts // a target may stand in a batch twice
			r.Facts = &facts
		}
		if name == "" && t.Handle != own && r.Class == source.Missing {
			r.Class, r.Detail = source.Unsupported, "Instagram finds a video by its account alone: track the account, or a link that names it, as instagram.com/USER/reel/CODE/"
		}
		return r, nil
	})
}

// asks is whether a target can be asked for.
func (s *Source) asks(t source.Target) bool {
	_, ok := s.Serves(t)
	return ok && t.ExternalID != ""
}

// accountOf is the handle by whose list a video is looked up: "" for the own account's, and for those of which the account is
// not known.
func accountOf(t source.Target, own string) string {
	if t.Handle == own || !handle.MatchString(t.Handle) {
		return ""
	}
	return t.Handle
}
