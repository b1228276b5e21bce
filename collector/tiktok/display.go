package tiktok

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// DisplayName is the name of the source in logs, in metrics and in stored history points.
const DisplayName = "tiktok_display"

// BudgetRequests is the name of the budgets that limit the number of requests: per minute in Display, and per UTC day in Research.
const BudgetRequests = "requests"

const (
	displayBatch = 20 // maximum number of video ids in a call, and of videos on a page of a list
	// displayLimit is the default limit of calls in a calendar minute. It is half of TikTok's limit,
	// because TikTok counts any 60 seconds, which can overlap two calendar minutes.
	displayLimit  = 300
	displayFields = "id,create_time,cover_image_url,share_url,video_description,duration,title,like_count,comment_count,share_count,view_count"
	// usernameTTL is how long the handle of the account that has logged in to the operator's app is cached.
	usernameTTL = time.Hour
)

// DisplayOptions are the settings of a Display, the source that uses TikTok's Display API.
type DisplayOptions struct {
	Name                    string // name of the source; "" means DisplayName; two sources must not have the same name
	BaseURL                 string // base URL of the API, with or without a path prefix; "" means DefaultBaseURL
	ClientKey, ClientSecret string // client key and secret of the operator's app
	// RefreshToken is the first refresh token of the account's login. TikTok returns a newer refresh token at
	// each use. The newer tokens are stored in the field Tokens.
	RefreshToken string
	Client       *fetch.Client
	Tokens       TokenStore
	Now          func() time.Time
	Logger       *slog.Logger // nil disables logging
	// Limit is the maximum number of calls a minute. 0 means 300, and a negative number means that the limit is not known.
	Limit int64
}

// Display uses TikTok's Display API for one account that has logged in to the operator's app. The
// API returns no bookmarks, songs and advertising flags.
type Display struct {
	app
	name   string
	tokens *userTokens
	budget []source.Budget

	mu         sync.Mutex
	username   string    // the handle of the logged-in account; "" if it is not known
	usernameAt time.Time // the time at which the handle was fetched
	sourceID   string    // the id of the logged-in account; "" if it is not known
}

var _ source.Source = (*Display)(nil)

// NewDisplay returns a Display. It returns an error if a credential is missing or the base URL is not an http or https URL.
func NewDisplay(o DisplayOptions) (*Display, error) {
	a, err := newApp("tiktok display", o.BaseURL, o.ClientKey, o.ClientSecret, o.Client, o.Now)
	switch {
	case err != nil:
		return nil, err
	case o.RefreshToken == "":
		return nil, errors.New("tiktok display: the refresh token is missing")
	case o.Tokens == nil:
		return nil, errors.New("tiktok display: the option Tokens is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Display{app: a, name: o.Name, budget: []source.Budget{{Name: BudgetRequests, Limit: source.LimitOf(o.Limit, displayLimit), Window: minuteOf}}}
	if d.name == "" {
		d.name = DisplayName
	}
	d.tokens, err = newUserTokens(a, o.RefreshToken, o.Tokens, o.Logger)
	return d, err
}

// Name returns the name in DisplayOptions, or DisplayName if that name is empty.
func (d *Display) Name() string { return d.name }

// Concurrency returns the maximum number of concurrent Fetch calls: 4. A call takes about a second, so four concurrent calls nearly reach
// the limit of 300 calls a minute.
func (d *Display) Concurrency() int { return 4 }

// Group returns "" for every target. All targets then belong to the same group, so videos of different accounts can be fetched in one
// batch.
func (d *Display) Group(queue.Target) string { return "" }

// NeedsHandle returns false, because a video is requested by its id and not by the handle of its account.
func (d *Display) NeedsHandle(queue.Target) bool { return false }

// Budgets returns the budget that counts calls per minute.
func (d *Display) Budgets() []source.Budget { return d.budget }

// Serves returns the size of the largest batch for a target, or false if the source cannot fetch
// the target.
func (d *Display) Serves(t queue.Target) (int, bool) {
	switch {
	case t.Platform != link.TikTok:
		return 0, false
	// Only TikTok's answer shows whether the video belongs to the logged-in account.
	case t.Kind == queue.KindVideo && (t.ExternalID == "" || videoID.MatchString(t.ExternalID)):
		return displayBatch, true
	case t.Kind == queue.KindAccount && t.ExternalID == "":
		return 1, true
	// An account is refused if it is known to differ from the logged-in account.
	case t.Kind == queue.KindAccount:
		own, known := d.ownUsername()
		handle := handleOf(t)
		return 1, handle != "" && (!known || handle == own || t.SourceID != "" && t.SourceID == d.ownID())
	}
	return 0, false
}

// OnlyAccounts returns "TikTok accounts of the operator", because the Display API shows only the account that has logged in, and its videos.
func (d *Display) OnlyAccounts() string { return "TikTok accounts of the operator" }

// Plan returns how many calls to reserve. Videos need one call; they rarely need a second one, which is not reserved. An account needs one call for its
// profile, and more calls for its list of videos.
func (d *Display) Plan(batch []queue.Target) [][]source.Call {
	units := int64(1)
	if source.AreAccounts(batch) {
		units = 0
		for _, t := range batch {
			units += 1 + maxPages(t)
		}
	}
	return [][]source.Call{{{Budget: BudgetRequests, Units: units}}}
}

// Fetch calls video/query for up to 20 videos, or user/info and video/list for one account.
func (d *Display) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	calls := budget.Calls()
	account := source.AreAccounts(batch)
	if len(batch) > displayBatch || account && len(batch) > 1 || len(calls) != 1 {
		return nil, &source.Failure{Class: source.BadRequest,
			Detail: fmt.Sprintf("targets in the batch: %d (must be at most %d videos or one account); planned calls: %d (must be 1)", len(batch), displayBatch, len(calls))}
	}
	if account {
		r, err := d.fetchAccount(ctx, budget, batch[0])
		if err != nil {
			return nil, err
		}
		r.Target = batch[0]
		return []source.Result{r}, nil
	}
	budget.AllowMoreRequests() // the profile of the account is requested if a video is missing, and a request is repeated if TikTok refuses the token
	ids := make([]string, 0, len(batch))
	for _, t := range batch {
		if isVideo(t) && !slices.Contains(ids, t.ExternalID) {
			ids = append(ids, t.ExternalID)
		}
	}
	var found videos
	if len(ids) > 0 {
		type filters struct {
			VideoIDs []string `json:"video_ids"`
		}
		got, err := d.callWithToken(ctx, budget, d.tokens, request{path: "v2/video/query/", fields: displayFields, body: struct {
			Filters filters `json:"filters"`
		}{filters{ids}}})
		if err != nil {
			return nil, err
		}
		if found, err = decodeVideos(got, ids, d.now()); err != nil {
			return nil, err
		}
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		r, ok := found.resultFor(t)
		switch {
		case !isVideo(t):
			r = source.Result{Target: t, Class: source.Unsupported, Detail: "not a TikTok video"}
		case !ok:
			var err error
			if r.Class, r.Detail, err = d.classifyMissingVideo(ctx, budget, t, found); err != nil {
				return nil, err
			}
		case r.Facts != nil:
			d.rememberAccount(&source.AccountFacts{Username: r.Facts.Username})
		}
		results[i] = r
	}
	return results, nil
}

// classifyMissingVideo returns the class and the reason for a video that is missing from an answer.
// It may request the handle of the logged-in account.
func (d *Display) classifyMissingVideo(ctx context.Context, budget *source.CallBudget, t queue.Target, decoded videos) (source.Class, string, error) {
	if decoded.incomplete != "" {
		return source.Temporary, decoded.incomplete, nil
	}
	const notOwn = "not among the public videos of the account that has logged in"
	handle := fetch.ParseHandle(&t.Handle)
	if handle == nil {
		return source.Unsupported, notOwn, nil
	}
	own, known := d.ownUsername()
	if !known {
		_, err := d.fetchProfile(ctx, budget)
		failure, failed := errors.AsType[*source.Failure](err)
		switch {
		case failed && failure.Class != source.AuthFailed: // AuthFailed means that the token may not read the handle of its account; after any other failure, a retry may succeed
			return source.Temporary, "the account of the video cannot be verified: " + failure.Detail, nil
		case err != nil && !failed:
			return "", "", err
		}
		own, _ = d.ownUsername()
	}
	switch {
	case own == "" || !strings.EqualFold(*handle, own):
		return source.Unsupported, notOwn, nil
	case decoded.noList:
		return source.Temporary, "the answer has no list of videos", nil
	case t.HandleClaimed:
		return source.Unconfirmed, notOwn + "; the video's account is known only from a caller's link", nil
	}
	// The handles are equal, and a source has confirmed the video's handle.
	return source.Missing, "missing from TikTok's answer: the video is deleted or private, or belongs to another account than its link says", nil
}

// ownUsername returns the cached handle of the logged-in account. It returns false if the handle was never fetched, or was fetched more
// than usernameTTL ago.
func (d *Display) ownUsername() (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.username, d.username != "" && d.now().Before(d.usernameAt.Add(usernameTTL))
}

// ownID returns the id of the logged-in account, or "" if the id is not known.
func (d *Display) ownID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sourceID
}

// rememberAccount caches the handle and the id of the logged-in account.
func (d *Display) rememberAccount(f *source.AccountFacts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Username != nil {
		d.username, d.usernameAt = *f.Username, d.now()
	}
	if f.SourceID != nil {
		d.sourceID = *f.SourceID
	}
}
