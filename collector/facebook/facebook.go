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
	"github.com/reeltally/reeltally/store/queue"
)

// Name is the name of the source in logs, in metrics and in stored history points.
const Name = "facebook"

const (
	handleTTL        = 24 * time.Hour
	maxCachedHandles = 20_000
)

var (
	videoID = regexp.MustCompile(`^[0-9]{9,17}$`)
	pageID  = regexp.MustCompile(`^[0-9]{1,20}$`)
	vanity  = regexp.MustCompile(`^[a-z0-9._-]{2,80}$`)
)

// These metrics are part of a video's insights, which only the owner of the page can read. Facebook
// renames metrics from time to time.
const (
	DefaultReelMetric  = "fb_reels_total_plays"
	DefaultVideoMetric = "total_video_views"
	metricActions      = "post_video_social_actions"
)

// Options are the settings of a Source.
type Options struct {
	BaseURL string // base URL with the API's version at its end; "" means graph.DefaultBaseURL
	// Token belongs to one of the operator's pages, or to a user with a role on these pages. Other
	// pages require the app feature Page Public Content Access.
	Token     string
	PageIDs   []string // the ids of the operator's own pages; their insights are requested with the token or with page tokens
	AppSecret string   // the secret of the app that issued the token; "" means that no appsecret_proof is sent
	// ReelMetric is Facebook's metric for the views of a reel. VideoMetric is the metric for the views of any other video. "" means
	// DefaultReelMetric or DefaultVideoMetric.
	ReelMetric, VideoMetric string
	Client                  *fetch.Client
	Now                     func() time.Time
	Logger                  *slog.Logger // nil disables logging
}

// Source fetches videos and pages from Facebook's Graph API.
type Source struct {
	*graph.Client
	ownPages                []string
	reelMetric, videoMetric string
	now                     func() time.Time
	log                     *slog.Logger

	handles *fetch.Cache[string] // handles by page id; a page without a handle has its id instead

	mu     sync.Mutex
	warned map[string]time.Time // maps a page id to the time of the last warning about refused insights
}

var _ source.Source = (*Source)(nil)

// New returns a Source for Facebook's Graph API. It returns an error for a missing token or an
// invalid page id, metric or base URL.
func New(o Options) (*Source, error) {
	c, err := graph.New(graph.Options{Source: Name, BaseURL: o.BaseURL, Token: o.Token, AppSecret: o.AppSecret, Client: o.Client, Now: o.Now})
	if err != nil {
		return nil, err
	}
	for _, id := range o.PageIDs {
		if !pageID.MatchString(id) {
			return nil, fmt.Errorf("facebook: a page id must be up to 20 digits, such as 100064550044307, not %q", fetch.Redact(id, o.Token, o.AppSecret))
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Source{
		Client: c, ownPages: o.PageIDs, reelMetric: o.ReelMetric, videoMetric: o.VideoMetric, now: o.Now, log: o.Logger,
		handles: fetch.NewCache[string](maxCachedHandles, handleTTL, o.Now), warned: map[string]time.Time{},
	}
	for metric, standard := range map[*string]string{&s.reelMetric: DefaultReelMetric, &s.videoMetric: DefaultVideoMetric} {
		if *metric == "" {
			*metric = standard
		}
		if strings.Trim(*metric, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return nil, fmt.Errorf("facebook: a metric must be one name of lower-case letters, digits and underscores, such as %s, not %q", standard, fetch.Redact(*metric, o.Token, o.AppSecret))
		}
	}
	return s, nil
}

// Name returns "facebook".
func (s *Source) Name() string { return Name }

// Concurrency returns the maximum number of concurrent Fetch calls: 8, because each video needs a separate request. Near Meta's hourly
// limit, Plan slows the calls down.
func (s *Source) Concurrency() int { return 8 }

// Group returns "" for every target, because no target is requested through a list of its account.
func (s *Source) Group(queue.Target) string { return "" }

// NeedsHandle returns false, because a video is requested by its id and not by the handle of its account.
func (s *Source) NeedsHandle(queue.Target) bool { return false }

// Budgets returns one budget, which counts all requests to the Graph API. Its limit is not known, because Facebook reports only which
// percentage of the limit is used.
func (s *Source) Budgets() []source.Budget { return s.Client.Budgets() }

// Serves returns 1 and true for a Facebook video with a valid id, and for an account with a valid id or handle.
// A batch thus has only one target.
func (s *Source) Serves(t queue.Target) (int, bool) {
	switch {
	case t.Platform != link.Facebook:
		return 0, false
	case t.Kind == queue.KindVideo && (t.ExternalID == "" || videoID.MatchString(t.ExternalID)):
		return 1, true
	case t.Kind == queue.KindAccount && (t.ExternalID == "" || accountPath(t) != ""):
		return 1, true
	}
	return 0, false
}

// OnlyAccounts returns words for the readable pages if pages of the operator are configured. The class Unsupported then never means a wrong
// token, because getObject checks the token. Without such pages, OnlyAccounts returns "".
func (s *Source) OnlyAccounts() string {
	if len(s.ownPages) == 0 {
		return ""
	}
	return "Facebook pages that the operator's token can read"
}

// accountPath returns the path of a profile in the Graph API: the account's id, or else its handle.
// It returns "" if neither is valid.
func accountPath(t queue.Target) string {
	switch name := link.DisplayUsername(t.Handle); {
	case pageID.MatchString(t.AccountID):
		return t.AccountID
	case vanity.MatchString(name):
		return name
	}
	return ""
}

// Plan returns how many calls to reserve for a batch. It returns nil while calls must be delayed
// because of Meta's limit.
func (s *Source) Plan(batch []queue.Target) [][]source.Call {
	calls := 0
	for _, t := range batch {
		if t.Kind == queue.KindAccount {
			// one call for the profile, and the calls for the two lists of videos
			calls += 1 + 2*maxListRequests(t.Depth)
			continue
		}
		// one call for the counts of the video
		calls++
		if t.NeedDetails {
			// one call for the handle of the video's page
			calls++
		}
		if len(s.ownPages) > 0 {
			// one call for the insights
			calls++
		}
	}
	return s.Client.Plan(calls)
}

// Fetch requests the targets of a batch one after the other. The targets are either all videos or all accounts.
func (s *Source) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	if calls := budget.Calls(); len(calls) != 1 {
		return nil, &source.Failure{Class: source.BadRequest, Detail: fmt.Sprintf("the plan has %d calls, but the source facebook needs a plan with 1 call", len(calls))}
	}
	budget.AllowMoreRequests()
	return source.FetchEach(ctx, batch, func(ctx context.Context, t queue.Target) (source.Result, error) {
		if _, ok := s.Serves(t); !ok || t.ExternalID == "" {
			return source.Result{Class: source.Unsupported, Detail: "neither a Facebook video nor a Facebook account"}, nil
		}
		if t.Kind == queue.KindAccount {
			return s.fetchAccount(ctx, budget, t)
		}
		return s.fetchVideo(ctx, budget, t)
	})
}

// notReadable maps error codes of Meta to classes of results. Facebook often returns the same error
// for a missing object and for a forbidden object.
var notReadable = graph.ErrorClasses{
	{Main: 100, Sub: 33}: source.Missing, {Main: 803}: source.Missing, {Main: 3}: source.Unsupported,
}.WithPermissions(source.Unsupported)

// getObject requests an object, such as a video or a page. If Facebook requires a page token,
// getObject tries the tokens of the operator's pages.
func (s *Source) getObject(ctx context.Context, budget *source.CallBudget, path string, parameters ...string) (graph.Answer, error) {
	res, err := s.getWithPageToken(ctx, budget, path, path, parameters...)
	for _, page := range s.ownPages {
		if !errors.Is(err, graph.ErrPageToken) {
			break
		}
		ownRes, ownErr := s.Client.GetWithPageToken(ctx, budget, page, path, notReadable, parameters...)
		if _, ok := graph.AsTargetError(ownErr); !ok { // an error about the object does not replace the earlier error
			res, err = ownRes, ownErr
		}
	}
	err = asTargetError(err)
	// An invalid token may be the cause of the error. So check the token with a request for one of the operator's pages.
	if e, ok := graph.AsTargetError(err); ok && e.Class == source.Unsupported && len(s.ownPages) > 0 {
		if _, err := s.Client.Get(ctx, budget, s.ownPages[0], nil, "fields", "id"); err != nil {
			return graph.Answer{}, err
		}
	}
	return res, err
}

// asTargetError turns graph.ErrPageToken into an error of the class Unsupported, which concerns
// only the requested object. It returns other errors unchanged.
func asTargetError(err error) error {
	if f, ok := errors.AsType[*source.Failure](err); ok && errors.Is(err, graph.ErrPageToken) {
		return &graph.TargetError{Class: source.Unsupported, Detail: f.Detail}
	}
	return err
}

// nodeType matches Meta's error for an object that lacks a requested field. Its group is the type of the object.
var nodeType = regexp.MustCompile(`code 100/0: .*nonexisting field .* on node type \(([A-Za-z]+)\)`)

// asTypeError turns the error for an object of another type than wantedType, such as a photo, into an error of
// the class Unsupported. It returns other errors unchanged.
func asTypeError(err error, wantedType string) error {
	f, ok := errors.AsType[*source.Failure](err)
	if !ok {
		return err
	}
	if m := nodeType.FindStringSubmatch(f.Detail); m != nil && m[1] != wantedType {
		return &graph.TargetError{Class: source.Unsupported, Detail: f.Detail}
	}
	return err
}

// getWithPageToken sends a request with the token of the given page if the page belongs to the operator. For any other page, it uses the
// configured token.
func (s *Source) getWithPageToken(ctx context.Context, budget *source.CallBudget, page, path string, parameters ...string) (graph.Answer, error) {
	if slices.Contains(s.ownPages, page) {
		return s.Client.GetWithPageToken(ctx, budget, page, path, notReadable, parameters...)
	}
	return s.Client.Get(ctx, budget, path, notReadable, parameters...)
}

const videoFields = "id,title,description,length,created_time,permalink_url,views,likes.summary(true).limit(0),comments.summary(true).limit(0),from"

// video is a video in the format of the Graph API.
type video struct {
	ID          fetch.ID               `json:"id"`
	Title       fetch.Optional[string] `json:"title"`
	Description fetch.Optional[string] `json:"description"`
	Length      fetch.OptionalLength   `json:"length"`
	CreatedTime fetch.Optional[string] `json:"created_time"`
	Permalink   fetch.Optional[string] `json:"permalink_url"`
	Views       fetch.Count            `json:"views"`
	Likes       *edge                  `json:"likes"`
	Comments    *edge                  `json:"comments"`
	From        fetch.Optional[owner]  `json:"from"`
}

// owner is the page that published a video.
type owner struct {
	ID   fetch.ID               `json:"id"`
	Name fetch.Optional[string] `json:"name"`
}

// edge is the summary of the likes or the comments of a video.
type edge struct {
	Summary *struct {
		Total fetch.Count `json:"total_count"`
	} `json:"summary"`
}

// totalCount returns the number of likes or comments in the summary, or the zero Count if the summary is missing.
func (e *edge) totalCount() fetch.Count {
	if e == nil || e.Summary == nil {
		return fetch.Count{}
	}
	return e.Summary.Total
}

// fetchVideo requests a video. It also requests the insights if the video's page belongs to the operator, and the handle of the page if
// t.NeedDetails is true.
func (s *Source) fetchVideo(ctx context.Context, budget *source.CallBudget, t queue.Target) (source.Result, error) {
	res, err := s.getObject(ctx, budget, t.ExternalID, "fields", videoFields)
	err = asTypeError(err, "Video")
	if e, ok := graph.AsTargetError(err); ok {
		return e.Result(), nil
	}
	if err != nil {
		return source.Result{}, err
	}
	v, problem := decodeVideo(res.Body, t.ExternalID)
	if problem != "" {
		return source.Result{Class: source.Temporary, Detail: problem, Sandbox: res.Sandbox}, nil
	}
	f := v.facts(s.now())
	r := source.Result{Class: source.OK, Facts: f, Sandbox: res.Sandbox}
	if f.AccountID == nil {
		return r, nil
	}
	if slices.Contains(s.ownPages, *f.AccountID) {
		if r.Detail, err = s.addInsights(ctx, budget, *f.AccountID, v, f); err != nil {
			return source.Result{}, err
		}
	}
	if t.NeedDetails {
		f.Username, err = s.pageHandle(ctx, budget, *f.AccountID)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return source.Result{}, err
			}
			unknown := "the page's handle is unknown: " + err.Error() // the counts are returned although the handle is missing
			if r.Detail != "" {
				unknown = r.Detail + "; " + unknown
			}
			r.Detail = unknown
		}
	}
	return r, nil
}

// decodeVideo decodes the video with the given id. If the answer is not valid, "problem" says why.
func decodeVideo(body []byte, id string) (v video, problem string) {
	if json.Unmarshal(body, &v) != nil {
		return v, "the video has a JSON field of the wrong type"
	}
	counts := []fetch.Count{v.Views, v.Likes.totalCount(), v.Comments.totalCount()}
	switch {
	case string(v.ID) != id:
		return v, "the answer has a video that was not requested"
	case slices.ContainsFunc(counts, fetch.Count.Invalid):
		return v, "the video has an invalid count"
	case !slices.ContainsFunc(counts, func(c fetch.Count) bool { return c.Value() != nil }):
		return v, "the video has no counts"
	}
	return v, ""
}

// facts returns the facts of a video without its insights and its page's handle. AccountID is nil if the page of the video is not known.
func (v video) facts(now time.Time) *source.Facts {
	likes := v.Likes.totalCount().Value()
	f := &source.Facts{
		Views: v.Views.Value(), Likes: likes, Comments: v.Comments.totalCount().Value(), HiddenStats: new(likes == nil),
		Title: fetch.CleanText(v.Description.Value()), UploadedAt: graph.ParseTime(v.CreatedTime.Value(), now),
		LengthSeconds: v.Length.Value(), Private: new(false),
	}
	if f.Title == nil || strings.TrimSpace(*f.Title) == "" {
		f.Title = fetch.CleanText(v.Title.Value())
	}
	if from := v.From.Value(); from != nil && pageID.MatchString(string(from.ID)) {
		f.AccountID, f.AccountName = new(string(from.ID)), fetch.CleanName(from.Name.Value())
	}
	return f
}

// pageHandle returns the handle of a page, or the page's id if there is no handle. Cached handles
// are valid for handleTTL.
func (s *Source) pageHandle(ctx context.Context, budget *source.CallBudget, id string) (*string, error) {
	if handle, ok := s.handles.Get(id); ok {
		return &handle, nil
	}
	res, err := s.Client.Get(ctx, budget, id, nil, "fields", "id,username")
	if err != nil {
		return nil, err
	}
	var page struct {
		ID       fetch.ID `json:"id"`
		Username *string  `json:"username"`
	}
	if json.Unmarshal(res.Body, &page) != nil || string(page.ID) != id {
		return nil, graph.ErrFormat
	}
	handle := fetch.ParseHandle(page.Username)
	if handle == nil {
		handle = &id
	}
	s.handles.Put(id, *handle)
	return handle, nil
}
