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
)

// DisplayName is the name of the source in logs, metrics and provenance.
const DisplayName = "tiktok_display"

// BudgetRequests is the budget of either source that counts calls: of Display in a minute, of Research in a day.
const BudgetRequests = "requests"

const (
	displayBatch = 20 // ids a call, and videos a page
	// displayLimit is half of what TikTok allows of each method in any sixty seconds: two windows of the budget may fall into them.
	displayLimit  = 300
	displayFields = "id,create_time,share_url,video_description,duration,title,like_count,comment_count,share_count,view_count"
	// usernameLife is for how long the account's own name is believed.
	usernameLife = time.Hour
)

// DisplayOptions of the source.
type DisplayOptions struct {
	Name                    string // "" means DisplayName; several accounts need a name each
	BaseURL                 string // "" means DefaultBaseURL; may have a path prefix
	ClientKey, ClientSecret string // of the operator's app
	// RefreshToken is the one that the account's login gave. It is used once; from then on, Tokens has its successors.
	RefreshToken string
	Client       *fetch.Client
	Tokens       TokenStore
	Now          func() time.Time
	Logger       *slog.Logger // nil means none
	// Limit is how many calls a minute may be made; 0 means 300, and less than 0 no known limit.
	Limit int64
}

// Display asks TikTok's Display API for the videos of the one account that has logged in. It gives views, likes, comments and
// shares; bookmarks, songs, and whether a video is private or not safe are not to be had there. What belongs to another account is
// Unsupported, so that the next source is asked.
type Display struct {
	app
	name   string
	tokens *userTokens
	budget []source.Budget

	mu         sync.Mutex
	username   string // of the account, "" while it is not known
	usernameAt time.Time
	sourceID   string // of the account, "" while it is not known
}

var (
	_ source.Source           = (*Display)(nil)
	_ source.NetworkSource    = (*Display)(nil)
	_ source.OwnAccountSource = (*Display)(nil)
)

// NewDisplay makes the source. It returns an error when a credential is missing or the base address is no http or https
// address.
func NewDisplay(o DisplayOptions) (*Display, error) {
	a, err := newApp("tiktok display", o.BaseURL, o.ClientKey, o.ClientSecret, o.Client, o.Now)
	switch {
	case err != nil:
		return nil, err
	case o.RefreshToken == "":
		return nil, errors.New("tiktok display: the refresh token is missing")
	case o.Tokens == nil:
		return nil, errors.New("tiktok display: Tokens is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Display{app: a, name: o.Name, budget: []source.Budget{{Name: BudgetRequests, Limit: limit(o.Limit, displayLimit), Window: minute}}}
	if d.name == "" {
		d.name = DisplayName
	}
	d.tokens, err = newUserTokens(a, o.RefreshToken, o.Tokens, o.Logger)
	return d, err
}

// Name returns DisplayName, or the name that was chosen.
func (d *Display) Name() string { return d.name }

// Timeout returns the timeout of the HTTP client.
func (d *Display) Timeout() time.Duration { return d.api.Timeout() }

// Concurrency returns 4: with calls of about a second, four at a time nearly reach the 300 calls a minute.
func (d *Display) Concurrency() int { return 4 }

// Group returns "": a batch may mix all targets of a kind.
func (d *Display) Group(source.Target) string { return "" }

// AsksByHandle returns false: TikTok finds videos by their ids.
func (d *Display) AsksByHandle(source.Target) bool { return false }

// Budgets lists the calls of a minute.
func (d *Display) Budgets() []source.Budget { return d.budget }

// Serves takes any TikTok video, 20 a call, since only TikTok knows whose it is, and accounts by their handle, one a call,
// unless it is known to be another's. A target without an id stands for all of its kind.
func (d *Display) Serves(t source.Target) (int, bool) {
	switch {
	case t.Platform != link.TikTok:
		return 0, false
	case t.Kind == source.KindVideo && (t.ExternalID == "" || videoID.MatchString(t.ExternalID)):
		return displayBatch, true
	case t.Kind == source.KindAccount && t.ExternalID == "":
		return 1, true
	case t.Kind == source.KindAccount:
		own, known := d.knownUsername()
		handle := handleOf(t)
		return 1, handle != "" && (!known || handle == own || t.SourceID != "" && t.SourceID == d.knownID())
	}
	return 0, false
}

// OwnAccountsOnly returns true: the Display API shows only the videos of the account that has logged in.
func (d *Display) OwnAccountsOnly() bool { return true }

// Plan counts a call for videos, and for an account the profile and every page of its list, with some to spare, since
// TikTok's pages may be short.
func (d *Display) Plan(batch []source.Target) [][]source.Call {
	units := int64(1)
	if len(batch) > 0 && batch[0].Kind == source.KindAccount {
		units = 0
		for _, t := range batch {
			units += 1 + maxPages(t)
		}
	}
	return [][]source.Call{{{Bucket: BudgetRequests, Units: units}}}
}

// Fetch asks video/query for up to 20 videos, or user/info and video/list for one account.
func (d *Display) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	calls := budget.Calls()
	account := len(batch) > 0 && batch[0].Kind == source.KindAccount
	if len(batch) > displayBatch || account && len(batch) > 1 || len(calls) != 1 {
		return nil, &source.Failure{Class: source.BadRequest,
			Detail: fmt.Sprintf("a batch of %d targets in %d calls: the Display API takes up to %d videos or one account in one", len(batch), len(calls), displayBatch)}
	}
	if account {
		budget.Meter()
		r, err := d.fetchAccount(ctx, budget, batch[0])
		if err != nil {
			return nil, err
		}
		r.Target = batch[0]
		return []source.Result{r}, nil
	}
	ids := make([]string, 0, len(batch))
	for _, t := range batch {
		if isVideo(t) && !slices.Contains(ids, t.ExternalID) {
			ids = append(ids, t.ExternalID)
		}
	}
	var said videos
	if len(ids) > 0 {
		type filters struct {
			VideoIDs []string `json:"video_ids"`
		}
		got, err := d.ask(ctx, budget, d.tokens, request{path: "v2/video/query/", fields: displayFields, body: struct {
			Filters filters `json:"filters"`
		}{filters{ids}}})
		if err != nil {
			return nil, err
		}
		if said, err = decodeVideos(got, ids, d.now()); err != nil {
			return nil, err
		}
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		r, ok := said.result(t)
		switch {
		case !isVideo(t):
			r = source.Result{Target: t, Class: source.Unsupported, Detail: "not a TikTok video"}
		case !ok:
			var err error
			if r.Class, r.Detail, err = d.leftOut(ctx, budget, t, said); err != nil {
				return nil, err
			}
		case r.Facts != nil:
			d.learn(&source.AccountFacts{Username: r.Facts.Username})
		}
		results[i] = r
	}
	return results, nil
}

// leftOut returns the class of a video that the answer does not contain. If the handle is not that of the account that has logged in, the
// class is Unsupported. Otherwise it is Missing for a confirmed handle and Unconfirmed for a handle that only a caller's link names.
func (d *Display) leftOut(ctx context.Context, budget *source.CallBudget, t source.Target, said videos) (source.Class, string, error) {
	if said.strange != "" {
		return source.Temporary, said.strange, nil
	}
	const another = "not among the public videos of the account that has logged in"
	handle := fetch.Handle(&t.Handle)
	if handle == nil {
		return source.Unsupported, another, nil
	}
	own, known := d.knownUsername()
	if !known {
		_, err := d.profile(ctx, budget)
		failure, failed := errors.AsType[*source.Failure](err)
		switch {
		case failed && failure.Class != source.AuthFailed: // without the scope, the name is never known
			return source.Temporary, "whose it is cannot be told: " + failure.Detail, nil
		case err != nil && !failed:
			return "", "", err
		}
		own, _ = d.knownUsername()
	}
	switch {
	case own == "" || !strings.EqualFold(*handle, own):
		return source.Unsupported, another, nil
	case said.unlisted:
		return source.Temporary, "left out of an answer without a list", nil
	case t.HandleClaimed:
		return source.Unconfirmed, another + ", which a caller's link alone names", nil
	}
	return source.Missing, "left out of TikTok's answer: deleted, made private, or not of the account that the link names", nil
}

// knownUsername is the account's own handle; false when it is not known, or no longer believed.
func (d *Display) knownUsername() (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.username, d.username != "" && d.now().Before(d.usernameAt.Add(usernameLife))
}

func (d *Display) knownID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sourceID
}

// learn notes what an answer says of who has logged in.
func (d *Display) learn(f *source.AccountFacts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Username != nil {
		d.username, d.usernameAt = *f.Username, d.now()
	}
	if f.SourceID != nil {
		d.sourceID = *f.SourceID
	}
}
