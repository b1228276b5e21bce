// Package facebook collects from Facebook's Graph API with an access token: videos and reels of pages that the token may read,
// with insights where a page is the operator's own. People's profiles are not to be had there.
package facebook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// Name is the source's name in logs, metrics and provenance.
const Name = "facebook"

const (
	nameTTL     = 24 * time.Hour
	namesCached = 20_000
)

var (
	videoID = regexp.MustCompile(`^[0-9]{9,17}$`)
	pageID  = regexp.MustCompile(`^[0-9]{1,20}$`)
	vanity  = regexp.MustCompile(`^[a-z0-9._-]{2,80}$`)
)

// The metrics of insights that are asked for. The platform renames such now and then.
const (
	DefaultReelMetric  = "fb_reels_total_plays"
	DefaultVideoMetric = "total_video_views"
	metricActions      = "post_video_social_actions"
)

// Options of the source.
type Options struct {
	BaseURL string   // as graph.Options
	Token   string   // of the own page, or of a person or system user who has a role on the own pages; for others' pages its app needs Page Public Content Access
	PageIDs []string // of the own pages, whose insights may be read with the token, or with the pages' own ones that it gives
	// AppSecret is as graph.Options.
	AppSecret string
	// The metrics of the own pages' insights that are the views of a reel and of another video; "" means the defaults.
	ReelMetric, VideoMetric string
	Client                  *fetch.Client
	Now                     func() time.Time
	Logger                  *slog.Logger // nil means none
}

// Source asks Facebook's Graph API.
type Source struct {
	graph       *graph.Client
	own         []string
	reel, video string
	now         func() time.Time
	log         *slog.Logger

	mu     sync.Mutex
	names  map[string]pageName
	warned map[string]time.Time // by own page, of the last word on its insights
}

// pageName is a page's handle, its id when it has none.
type pageName struct {
	handle string
	at     time.Time
}

var (
	_ source.Source           = (*Source)(nil)
	_ source.NetworkSource    = (*Source)(nil)
	_ source.OwnAccountSource = (*Source)(nil)
)

// New makes the source. It returns an error when the token is missing, a page's id is no number, a metric is no name, or the
// base address cannot be used.
func New(o Options) (*Source, error) {
	c, err := graph.New(graph.Options{Source: Name, BaseURL: o.BaseURL, Token: o.Token, AppSecret: o.AppSecret, Client: o.Client, Now: o.Now})
	if err != nil {
		return nil, err
	}
	for _, id := range o.PageIDs {
		if !pageID.MatchString(id) {
			return nil, fmt.Errorf("facebook: the id of an own page must be up to 20 digits, as 100064550044307, not %q", fetch.Redact(id, o.Token, o.AppSecret))
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Source{graph: c, own: o.PageIDs, reel: o.ReelMetric, video: o.VideoMetric, now: o.Now, log: o.Logger, names: map[string]pageName{}, warned: map[string]time.Time{}}
	for metric, standard := range map[*string]string{&s.reel: DefaultReelMetric, &s.video: DefaultVideoMetric} {
		if *metric == "" {
			*metric = standard
		}
		if strings.Trim(*metric, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return nil, fmt.Errorf("facebook: a metric is one name of small letters, digits and underscores, as %s, not %q", standard, fetch.Redact(*metric, o.Token, o.AppSecret))
		}
	}
	return s, nil
}

// Name returns Name.
func (s *Source) Name() string { return Name }

// Address is where the API is asked.
func (s *Source) Address() string { return s.graph.Address() }

// Clock is the server's.
func (s *Source) Clock(ctx context.Context) (time.Time, error) { return s.graph.Clock(ctx) }

// Timeout returns the timeout of the HTTP client.
func (s *Source) Timeout() time.Duration { return s.graph.Timeout() }

// Concurrency returns 8: each video costs a call of its own. Plan returns nil when much of Meta's hourly limit is used.
func (s *Source) Concurrency() int { return 8 }

// Group returns "": a batch may mix all targets of a kind.
func (s *Source) Group(source.Target) string { return "" }

// AsksByHandle returns false: Facebook finds videos by their ids.
func (s *Source) AsksByHandle(source.Target) bool { return false }

// Budgets lists the one budget, whose limit the platform tells in percent alone.
func (s *Source) Budgets() []source.Budget { return s.graph.Budgets() }

// Serves takes Facebook videos and accounts, one at a time.
func (s *Source) Serves(t source.Target) (int, bool) {
	switch {
	case t.Platform != link.Facebook:
		return 0, false
	case t.Kind == source.KindVideo && (t.ExternalID == "" || videoID.MatchString(t.ExternalID)):
		return 1, true
	case t.Kind == source.KindAccount && (t.ExternalID == "" || pathOf(t) != ""):
		return 1, true
	}
	return 0, false
}

// OwnAccountsOnly returns true if own pages are configured. Another page's video is then Unsupported only after an own page could be
// read, so that the token is not at fault.
func (s *Source) OwnAccountsOnly() bool { return len(s.own) > 0 }

// pathOf is what an account is asked for by: its id, else its name; "" when it has neither.
func pathOf(t source.Target) string {
	switch name := link.DisplayUsername(t.Handle); {
	case pageID.MatchString(t.AccountID):
		return t.AccountID
	case vanity.MatchString(name):
		return name
	}
	return ""
}

// Plan counts, for a video, one call for it, one for its page's name and some for its insights, and for an account one for
// the page and those for the pages of both its lists. There is no plan while the client spreads its calls.
func (s *Source) Plan(batch []source.Target) [][]source.Call {
	calls := 0
	for _, t := range batch {
		if t.Kind == source.KindAccount {
			calls += 1 + 2*listPages(t.Depth)
			continue
		}
		calls++
		if t.NeedDetails {
			calls++
		}
		if len(s.own) > 0 {
			calls++
		}
	}
	return s.graph.Plan(calls)
}

// Fetch asks for videos or accounts, one after the other.
func (s *Source) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	if calls := budget.Calls(); len(calls) != 1 {
		return nil, &source.Failure{Class: source.BadRequest, Detail: fmt.Sprintf("a plan of %d calls: facebook has one budget", len(calls))}
	}
	if len(batch) > 0 && batch[0].Kind == source.KindAccount {
		budget.MeterWithoutLimit()
	}
	return graph.Each(ctx, batch, func(ctx context.Context, t source.Target) (source.Result, error) {
		if _, ok := s.Serves(t); !ok || t.ExternalID == "" {
			return source.Result{Class: source.Unsupported, Detail: "neither a Facebook video nor a Facebook account"}, nil
		}
		if t.Kind == source.KindAccount {
			return s.fetchAccount(ctx, budget, t)
		}
		return s.fetchVideo(ctx, budget, t)
	})
}

// notReadable are the errors that concern one object. What is not there and what the token may not read are hardly told apart.
var notReadable = func() graph.Verdicts {
	v := graph.Verdicts{{Main: 100, Sub: 33}: source.Missing, {Main: 803}: source.Missing, {Main: 3}: source.Unsupported, {Main: 10}: source.Unsupported}
	for code := 200; code <= 299; code++ {
		v[graph.Code{Main: code}] = source.Unsupported
	}
	return v
}()

// get asks for an object. That it may not be read says nothing of the source as long as an own page may be.
// One that only a page's own token may read is asked for with the own pages'.
func (s *Source) get(ctx context.Context, budget *source.CallBudget, path string, parameters ...string) (graph.Answer, error) {
	res, err := s.getAs(ctx, budget, path, path, parameters...)
	for _, page := range s.own {
		if !errors.Is(err, graph.ErrPageToken) {
			break
		}
		own, failed := s.graph.GetAsPage(ctx, budget, page, path, notReadable, parameters...)
		if _, ok := graph.AsRefusal(failed); !ok { // of another of the own pages
			res, err = own, failed
		}
	}
	err = ofPage(err)
	if refusal, ok := graph.AsRefusal(err); ok && refusal.Class == source.Unsupported && len(s.own) > 0 {
		if _, err := s.graph.Get(ctx, budget, s.own[0], nil, "fields", "id"); err != nil {
			return graph.Answer{}, err
		}
	}
	return res, err
}

// ofPage makes one target's refusal of the failure of a call that only a page's own token may make.
func ofPage(err error) error {
	if f, ok := errors.AsType[*source.Failure](err); ok && errors.Is(err, graph.ErrPageToken) {
		return &graph.Refusal{Class: source.Unsupported, Detail: f.Detail}
	}
	return err
}

// getAs asks with a page's own token when it is one of the own pages.
func (s *Source) getAs(ctx context.Context, budget *source.CallBudget, page, path string, parameters ...string) (graph.Answer, error) {
	if slices.Contains(s.own, page) {
		return s.graph.GetAsPage(ctx, budget, page, path, notReadable, parameters...)
	}
	return s.graph.Get(ctx, budget, path, notReadable, parameters...)
}

const videoFields = "id,title,description,length,created_time,permalink_url,views,likes.summary(true).limit(0),comments.summary(true).limit(0),from"

// video is a video's node.
type video struct {
	ID          fetch.ID    `json:"id"`
	Title       *string     `json:"title"`
	Description *string     `json:"description"`
	Length      *float64    `json:"length"`
	CreatedTime *string     `json:"created_time"`
	Permalink   *string     `json:"permalink_url"`
	Views       fetch.Count `json:"views"`
	Likes       *edge       `json:"likes"`
	Comments    *edge       `json:"comments"`
	From        *struct {
		ID   fetch.ID `json:"id"`
		Name *string  `json:"name"`
	} `json:"from"`
}

type edge struct {
	Summary *struct {
		Total fetch.Count `json:"total_count"`
	} `json:"summary"`
}

func (e *edge) total() fetch.Count {
	if e == nil || e.Summary == nil {
		return fetch.Count{}
	}
	return e.Summary.Total
}

// fetchVideo asks for one video, for its insights where its page is an own one, and for its page's name when it is wanted.
func (s *Source) fetchVideo(ctx context.Context, budget *source.CallBudget, t source.Target) (source.Result, error) {
	res, err := s.get(ctx, budget, t.ExternalID, "fields", videoFields)
	if refusal, ok := graph.AsRefusal(err); ok {
		return refusal.Result(), nil
	}
	if err != nil {
		return source.Result{}, err
	}
	doubt := func(why string) (source.Result, error) {
		return source.Result{Class: source.Temporary, Detail: why, Sandbox: res.Sandbox}, nil
	}
	var v video
	if json.Unmarshal(res.Body, &v) != nil {
		return doubt("the video has a member of the wrong type")
	}
	if string(v.ID) != t.ExternalID {
		return doubt("an answer with a video that nobody asked for")
	}
	views, likes, comments := v.Views, v.Likes.total(), v.Comments.total()
	if views.Invalid() || likes.Invalid() || comments.Invalid() {
		return doubt("the video has a count that is no whole number")
	}
	if views.Value() == nil && likes.Value() == nil && comments.Value() == nil {
		return doubt("the video has no counts")
	}
	f := &source.Facts{
		Views: views.Value(), Likes: likes.Value(), Comments: comments.Value(), HiddenStats: new(likes.Value() == nil),
		Title: fetch.Text(v.Description), UploadedAt: graph.Time(v.CreatedTime, s.now()), Private: new(false),
	}
	if f.Title == nil || strings.TrimSpace(*f.Title) == "" {
		f.Title = fetch.Text(v.Title)
	}
	if v.Length != nil {
		f.LengthSeconds = fetch.Length(*v.Length)
	}
	r := source.Result{Class: source.OK, Facts: f, Sandbox: res.Sandbox}
	if v.From == nil || !pageID.MatchString(string(v.From.ID)) {
		return r, nil
	}
	id := string(v.From.ID)
	f.AccountID, f.AccountName = &id, fetch.Name(v.From.Name)
	if slices.Contains(s.own, id) {
		if r.Detail, err = s.addInsights(ctx, budget, id, v, f); err != nil {
			return source.Result{}, err
		}
	}
	if t.NeedDetails {
		f.Username, err = s.nameOf(ctx, budget, id)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return source.Result{}, err
			}
			r.Detail = "the page's name is unknown: " + err.Error() // which is not worth losing the counts
		}
	}
	return r, nil
}

// nameOf is a page's handle, or its id when it has none.
func (s *Source) nameOf(ctx context.Context, budget *source.CallBudget, id string) (*string, error) {
	now := s.now()
	s.mu.Lock()
	known, ok := s.names[id]
	s.mu.Unlock()
	if !ok || now.Sub(known.at) >= nameTTL {
		res, err := s.graph.Get(ctx, budget, id, nil, "fields", "id,username")
		if err != nil {
			return nil, err
		}
		var page struct {
			ID       fetch.ID `json:"id"`
			Username *string  `json:"username"`
		}
		if json.Unmarshal(res.Body, &page) != nil || string(page.ID) != id {
			return nil, graph.ErrShape
		}
		known.handle = id
		if handle := fetch.Handle(page.Username); handle != nil {
			known.handle = *handle
		}
		s.keepName(id, known.handle)
	}
	return &known.handle, nil
}

func (s *Source) keepName(id, handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= namesCached {
		clear(s.names)
	}
	s.names[id] = pageName{handle: handle, at: s.now()}
}
