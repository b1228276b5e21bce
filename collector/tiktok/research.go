package tiktok

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// ResearchName is the name of the source in logs, metrics and provenance.
const ResearchName = "tiktok_research"

// BudgetRecords is the budget of Research that counts the rows of answers, in a day.
const BudgetRecords = "records"

const (
	researchBatch    = 100 // rows an answer
	researchRequests = 1_000
	researchRecords  = 100_000
	researchFields   = "id,create_time,username,video_description,video_duration,music_id,view_count,like_count,comment_count,share_count,favorites_count"
	researchProfile  = "display_name,bio_description,follower_count,following_count"
	// researchSpan is how many days apart the ends of a query may be.
	researchSpan = 30
	// idsToSpare is for how many ids of a batch a request is planned for a further page: TikTok's may be short though there are more.
	idsToSpare = 50
	// indexedWithin is how long a new video may take to be found; until then, its absence says nothing.
	indexedWithin = 10 * 24 * time.Hour
)

// ResearchOptions of the source.
type ResearchOptions struct {
	BaseURL                 string // "" means DefaultBaseURL; may have a path prefix
	ClientKey, ClientSecret string // of the approved research project
	Client                  *fetch.Client
	Now                     func() time.Time
	// What may be spent in a UTC day; 0 means 1,000 requests and 100,000 records, and less than 0 no known limit.
	Requests, Records int64
}

// Research asks TikTok's Research API for anybody's public videos and for profiles. It gives views, likes, comments, shares,
// bookmarks and the song's id; its numbers lag behind by days, so that it is asked last, and never sets a count back. It does
// not list the videos of an account.
type Research struct {
	app
	tokens  *clientTokens
	budgets []source.Budget
}

var (
	_ source.Source        = (*Research)(nil)
	_ source.NetworkSource = (*Research)(nil)
)

// NewResearch makes the source. It returns an error when a credential is missing or the base address is no http or https
// address.
func NewResearch(o ResearchOptions) (*Research, error) {
	a, err := newApp("tiktok research", o.BaseURL, o.ClientKey, o.ClientSecret, o.Client, o.Now)
	if err != nil {
		return nil, err
	}
	return &Research{app: a, tokens: &clientTokens{app: a, turn: newTurn()}, budgets: []source.Budget{
		{Name: BudgetRequests, Limit: limit(o.Requests, researchRequests), Window: utcDay},
		{Name: BudgetRecords, Limit: limit(o.Records, researchRecords), Window: utcDay},
	}}, nil
}

// Name returns ResearchName.
func (r *Research) Name() string { return ResearchName }

// Timeout returns the timeout of the HTTP client.
func (r *Research) Timeout() time.Duration { return r.api.Timeout() }

// Concurrency returns 2: a query answers for 100 videos, and the 1,000 requests of a day are spent within minutes anyway.
func (r *Research) Concurrency() int { return 2 }

// Group returns "": a batch may mix all targets of a kind.
func (r *Research) Group(source.Target) string { return "" }

// AsksByHandle returns false: TikTok finds videos by their ids.
func (r *Research) AsksByHandle(source.Target) bool { return false }

// Budgets lists the requests and the records of a UTC day.
func (r *Research) Budgets() []source.Budget { return r.budgets }

// Serves takes TikTok videos whose id carries a time, 100 at once, since a query needs the days of upload, and accounts by their
// handle, one a call, as long as no other source knows them by an id: its answers have none, so that whoever took over a handle
// would pass for them. A target without an id stands for all of its kind.
func (r *Research) Serves(t source.Target) (int, bool) {
	switch {
	case t.Platform != link.TikTok:
		return 0, false
	case t.Kind == source.KindVideo:
		_, ok := r.uploaded(t)
		return researchBatch, ok || t.ExternalID == ""
	case t.Kind == source.KindAccount:
		return 1, t.ExternalID == "" || handleOf(t) != "" && t.AccountID == "" && t.SourceID == ""
	}
	return 0, false
}

// uploaded is the time that a video's id carries.
func (r *Research) uploaded(t source.Target) (time.Time, bool) {
	if !isVideo(t) {
		return time.Time{}, false
	}
	at, ok := link.UploadTime(link.Link{Platform: link.TikTok, Kind: link.Video, ID: t.ExternalID})
	return at, ok && at.Before(r.now().Add(24*time.Hour))
}

// query is one call: ids that were uploaded within a month.
type query struct {
	from, to time.Time
	ids      []string
}

// queries parts a batch into as few calls as its days of upload allow. A day's margin on either side allows for an id that
// was drawn before midnight.
func (r *Research) queries(batch []source.Target) []query {
	type upload struct {
		id string
		at time.Time
	}
	var uploads []upload
	for _, t := range batch {
		if at, ok := r.uploaded(t); ok {
			uploads = append(uploads, upload{t.ExternalID, at.UTC().Truncate(24 * time.Hour)})
		}
	}
	slices.SortFunc(uploads, func(a, b upload) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	uploads = slices.CompactFunc(uploads, func(a, b upload) bool { return a.id == b.id })
	var out []query
	for _, u := range uploads {
		from, to := u.at.AddDate(0, 0, -1), u.at.AddDate(0, 0, 1)
		if last := len(out) - 1; last >= 0 && to.Sub(out[last].from) <= researchSpan*24*time.Hour {
			out[last].to, out[last].ids = to, append(out[last].ids, u.id)
			continue
		}
		out = append(out, query{from, to, []string{u.id}})
	}
	return out
}

// Plan counts a request for each month of uploads, with some to spare for answers that go on, and for each account, and a record for
// each target.
func (r *Research) Plan(batch []source.Target) [][]source.Call {
	requests := int64(len(batch))
	if len(batch) > 0 && batch[0].Kind == source.KindVideo {
		requests = int64(max(1, len(r.queries(batch)))) + int64((len(batch)+idsToSpare-1)/idsToSpare)
	}
	return [][]source.Call{{{Bucket: BudgetRequests, Units: requests}, {Bucket: BudgetRecords, Units: int64(max(1, len(batch)))}}}
}

// Fetch asks for up to 100 videos in as many queries as their upload days need, or for one profile. If a query fails after others were
// answered, its targets get the result source.Unanswered.
func (r *Research) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	calls := budget.Calls()
	account := len(batch) > 0 && batch[0].Kind == source.KindAccount
	if len(batch) > researchBatch || account && len(batch) > 1 || len(calls) != 2 {
		return nil, &source.Failure{Class: source.BadRequest,
			Detail: fmt.Sprintf("a batch of %d targets in %d calls: the Research API takes up to %d videos or one account in two", len(batch), len(calls), researchBatch)}
	}
	if account {
		got, err := r.profile(ctx, budget, batch[0])
		got.Target = batch[0]
		if err != nil {
			return nil, err
		}
		return []source.Result{got}, nil
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		results[i] = source.Result{Target: t, Class: source.Unsupported, Detail: "not a TikTok video, or one whose id carries no time"}
	}
	queries := r.queries(batch)
	left := calls[0].Units
	for i, q := range queries {
		said, asked, err := r.videos(ctx, budget, q, left-int64(len(queries)-i-1))
		left -= asked
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return nil, err
		}
		for j, t := range batch {
			switch {
			case !slices.Contains(q.ids, t.ExternalID):
			case err != nil:
				results[j] = source.Unanswered(t, err)
			default:
				results[j] = r.result(t, said)
			}
		}
	}
	return results, nil
}

// videos makes one query and follows its pages until all ids are found or there are no more, so many requests at the most. When a
// further page fails, what came before it stays.
func (r *Research) videos(ctx context.Context, budget *source.CallBudget, q query, most int64) (all videos, asked int64, err error) {
	type condition struct {
		Operation string   `json:"operation"`
		Field     string   `json:"field_name"`
		Values    []string `json:"field_values"`
	}
	body := struct {
		Query     map[string][]condition `json:"query"`
		StartDate string                 `json:"start_date"`
		EndDate   string                 `json:"end_date"`
		MaxCount  int                    `json:"max_count"`
		Cursor    *int64                 `json:"cursor,omitempty"`
		SearchID  fetch.ID               `json:"search_id,omitempty"`
	}{Query: map[string][]condition{"and": {{"IN", "video_id", q.ids}}}, StartDate: q.from.Format("20060102"), EndDate: q.to.Format("20060102"), MaxCount: researchBatch}
	for {
		asked++
		said, next, err := r.page(ctx, budget, q, body)
		switch {
		case err != nil && (asked == 1 || ctx.Err() != nil):
			return videos{}, asked, r.bucket(err)
		case err != nil:
			all.strange = "left out before a further page failed: " + err.Error()
			return all, asked, nil //nolint:nilerr // the targets that are left say so
		case asked == 1:
			all = said
		default:
			all.add(said)
		}
		again := body.Cursor != nil && next.Cursor.Value() != nil && *body.Cursor == *next.Cursor.Value()
		if !all.more || len(all.byID) == len(q.ids) || asked >= most || again || next.Cursor.Value() == nil || next.SearchID == "" {
			return all, asked, nil
		}
		body.Cursor, body.SearchID = next.Cursor.Value(), next.SearchID
	}
}

// further is by what the next page of a query is asked for.
type further struct {
	Cursor   fetch.Count `json:"cursor"`
	SearchID fetch.ID    `json:"search_id"`
}

// page makes one request of a query.
func (r *Research) page(ctx context.Context, budget *source.CallBudget, q query, body any) (said videos, next further, err error) {
	got, err := r.ask(ctx, budget, r.tokens, request{path: "v2/research/video/query/", fields: researchFields, body: body})
	if err != nil {
		return videos{}, further{}, err
	}
	if said, err = decodeVideos(got, q.ids, r.now()); err == nil && json.Unmarshal(got.data, &next) != nil {
		next = further{} // of a shape in which nothing can be asked for
	}
	return said, next, err
}

// result is what a query's answer says of a target.
func (r *Research) result(t source.Target, said videos) source.Result {
	got, ok := said.result(t)
	got.Lags = true
	if ok {
		return got
	}
	at, _ := r.uploaded(t)
	switch {
	case said.strange != "":
		got.Class, got.Detail = source.Temporary, said.strange
	case said.unlisted:
		got.Class, got.Detail = source.Temporary, "left out of an answer without a list"
	case said.more:
		got.Class, got.Detail = source.Temporary, "left out of an answer that goes on"
	case r.now().Before(at.Add(indexedWithin)):
		got.Class, got.Detail = source.Temporary, "not found yet: research data lag behind by days"
	default:
		got.Class, got.Detail = source.Missing, "left out of TikTok's answer: deleted, private or not open to research"
	}
	return got
}

// bucket names the budget that a spent quota concerns.
func (r *Research) bucket(err error) error {
	if f, ok := errors.AsType[*source.Failure](err); ok && f.Class == source.QuotaSpent {
		f.Bucket = BudgetRequests
	}
	return err
}

// profile asks for an account by its handle.
func (r *Research) profile(ctx context.Context, budget *source.CallBudget, t source.Target) (source.Result, error) {
	handle := handleOf(t)
	if handle == "" || t.Platform != link.TikTok {
		return source.Result{Class: source.Unsupported, Detail: "not a TikTok account with a handle"}, nil
	}
	got, err := r.ask(ctx, budget, r.tokens, request{path: "v2/research/user/info/", fields: researchProfile, body: map[string]string{"username": handle}})
	if f, ok := errors.AsType[*source.Failure](err); ok && f.Class == source.BadRequest {
		// So TikTok answers for a name that it does not find, and for one that cannot be: it says nothing of the source.
		return source.Result{Class: source.Unsupported, Detail: f.Detail}, nil
	}
	if err != nil {
		return source.Result{}, r.bucket(err)
	}
	return decodeProfile(got, handle), nil
}

func decodeProfile(a answer, handle string) source.Result {
	var data struct {
		DisplayName *string     `json:"display_name"`
		Bio         *string     `json:"bio_description"`
		Followers   fetch.Count `json:"follower_count"`
		Following   fetch.Count `json:"following_count"`
	}
	res := source.Result{Class: source.Temporary, Detail: errShape.Error(), Sandbox: a.sandbox, Lags: true}
	switch {
	case json.Unmarshal(a.data, &data) != nil || data.DisplayName == nil && data.Followers.Value() == nil:
	case data.Followers.Invalid() || data.Following.Invalid():
		res.Detail = "the profile has a count that is no whole number"
	default:
		res.Class, res.Detail = source.OK, ""
		res.Account = &source.AccountFacts{Username: &handle, Name: fetch.Name(data.DisplayName), Bio: fetch.Name(data.Bio),
			Followers: data.Followers.Value(), Following: data.Following.Value()}
	}
	return res
}
