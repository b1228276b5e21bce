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
	"github.com/reeltally/reeltally/store/queue"
)

// ResearchName is the name of the source in logs, in metrics and in stored history points.
const ResearchName = "tiktok_research"

// BudgetRecords is the name of the budget that counts the rows in the answers of the Research API, per UTC day.
const BudgetRecords = "records"

const (
	researchBatch    = 100 // maximum number of videos in a query and in an answer
	researchRequests = 1_000
	researchRecords  = 100_000
	researchFields   = "id,create_time,username,video_description,video_duration,music_id,view_count,like_count,comment_count,share_count,favorites_count"
	researchProfile  = "display_name,bio_description,follower_count,following_count"
	// researchSpan is the maximum number of days between the start date and the end date of a query.
	researchSpan = 30
	// idsPerExtraRequest is the number of video ids for which one additional request is reserved. A query needs additional requests if the
	// API returns short pages.
	idsPerExtraRequest = 50
	// indexingDelay is the longest time that passes after an upload until the API finds the video.
	indexingDelay = 10 * 24 * time.Hour
)

// ResearchOptions are the settings of Research.
type ResearchOptions struct {
	BaseURL                 string // base URL of the API, with or without a path prefix; "" means DefaultBaseURL
	ClientKey, ClientSecret string // client key and secret of the approved research project
	Client                  *fetch.Client
	Now                     func() time.Time
	// Requests and Records are limits per UTC day. 0 means the default: 1,000 requests or 100,000
	// records. A negative number means an unknown limit.
	Requests, Records int64
}

// Research fetches public videos and profiles from TikTok's Research API. The counts can be days
// old. The API cannot list the videos of an account.
type Research struct {
	app
	tokens  *clientTokens
	budgets []source.Budget
}

var _ source.Source = (*Research)(nil)

// NewResearch returns a Research. It returns an error if a credential is missing or the base URL is not an http or https URL.
func NewResearch(o ResearchOptions) (*Research, error) {
	a, err := newApp("tiktok research", o.BaseURL, o.ClientKey, o.ClientSecret, o.Client, o.Now)
	if err != nil {
		return nil, err
	}
	return &Research{app: a, tokens: &clientTokens{app: a, ctxMutex: newCtxMutex()}, budgets: []source.Budget{
		{Name: BudgetRequests, Limit: source.LimitOf(o.Requests, researchRequests), Window: utcDay},
		{Name: BudgetRecords, Limit: source.LimitOf(o.Records, researchRecords), Window: utcDay},
	}}, nil
}

// Name returns ResearchName.
func (r *Research) Name() string { return ResearchName }

// Concurrency returns the maximum number of concurrent Fetch calls: 2. Even two concurrent calls
// spend the 1,000 requests of a day within minutes.
func (r *Research) Concurrency() int { return 2 }

// Group returns "" for every target. All targets then belong to the same group, so videos of different accounts can be fetched in one
// batch.
func (r *Research) Group(queue.Target) string { return "" }

// NeedsHandle returns false, because a video is requested by its id and not by the handle of its account.
func (r *Research) NeedsHandle(queue.Target) bool { return false }

// OnlyAccounts returns "", because the API shows the public videos of every account.
func (r *Research) OnlyAccounts() string { return "" }

// Budgets returns two budgets per UTC day: one of requests, and one of records (rows in the answers).
func (r *Research) Budgets() []source.Budget { return r.budgets }

// Serves returns the size of the largest batch for a target, or false if the source cannot fetch
// the target.
func (r *Research) Serves(t queue.Target) (int, bool) {
	switch {
	case t.Platform != link.TikTok:
		return 0, false
	// A query needs the upload time, which the id of a video contains.
	case t.Kind == queue.KindVideo:
		_, ok := r.uploadTime(t)
		return researchBatch, ok || t.ExternalID == ""
	// The API finds profiles by handle and returns no id, so an account's id could not be verified.
	case t.Kind == queue.KindAccount:
		return 1, t.ExternalID == "" || handleOf(t) != "" && t.AccountID == "" && t.SourceID == ""
	}
	return 0, false
}

// uploadTime returns the upload time that a video's id contains, and false if the id contains no valid time.
func (r *Research) uploadTime(t queue.Target) (time.Time, bool) {
	if !isVideo(t) {
		return time.Time{}, false
	}
	at, ok := link.UploadTime(link.Link{Platform: link.TikTok, Kind: link.Video, ID: t.ExternalID})
	return at, ok && at.Before(r.now().Add(24*time.Hour))
}

// query is a search for videos by their ids. All videos of a query were uploaded in a period of at most 30 days.
type query struct {
	from, to time.Time // the first and the last day of the search period; all videos in ids were uploaded in this period
	ids      []string
}

// splitIntoQueries splits a batch into as few queries as possible. Videos whose id contains no
// valid upload time are left out.
func (r *Research) splitIntoQueries(batch []queue.Target) []query {
	type upload struct {
		id string
		at time.Time
	}
	var uploads []upload
	for _, t := range batch {
		if at, ok := r.uploadTime(t); ok {
			uploads = append(uploads, upload{t.ExternalID, at.UTC().Truncate(24 * time.Hour)})
		}
	}
	slices.SortFunc(uploads, func(a, b upload) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	uploads = slices.CompactFunc(uploads, func(a, b upload) bool { return a.id == b.id })
	var out []query
	for _, u := range uploads {
		// The upload time in an id is not exact, so the query also covers the day before and the day after.
		from, to := u.at.AddDate(0, 0, -1), u.at.AddDate(0, 0, 1)
		if last := len(out) - 1; last >= 0 && to.Sub(out[last].from) <= researchSpan*24*time.Hour {
			out[last].to, out[last].ids = to, append(out[last].ids, u.id)
			continue
		}
		out = append(out, query{from, to, []string{u.id}})
	}
	return out
}

// Plan returns the numbers of requests and records to reserve. For videos, it reserves one request for the
// first page of each query, and some requests for further pages.
func (r *Research) Plan(batch []queue.Target) [][]source.Call {
	requests := int64(len(batch))
	if len(batch) > 0 && batch[0].Kind == queue.KindVideo {
		requests = int64(max(1, len(r.splitIntoQueries(batch)))) + int64((len(batch)+idsPerExtraRequest-1)/idsPerExtraRequest)
	}
	return [][]source.Call{{{Budget: BudgetRequests, Units: requests}, {Budget: BudgetRecords, Units: int64(max(1, len(batch)))}}}
}

// Fetch requests up to 100 videos, or one profile. If the first query fails, Fetch returns an
// error. If a later query fails, its videos get source.UnansweredResult.
func (r *Research) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	budget.SpendAll() // TikTok counts records, and not only requests
	calls := budget.Calls()
	account := source.AreAccounts(batch)
	if len(batch) > researchBatch || account && len(batch) > 1 || len(calls) != 2 {
		return nil, &source.Failure{Class: source.BadRequest,
			Detail: fmt.Sprintf("targets in the batch: %d (must be at most %d videos or one account); planned calls: %d (must be 2)", len(batch), researchBatch, len(calls))}
	}
	if account {
		got, err := r.fetchProfile(ctx, budget, batch[0])
		got.Target = batch[0]
		if err != nil {
			return nil, err
		}
		return []source.Result{got}, nil
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		results[i] = source.Result{Target: t, Class: source.Unsupported, Detail: "the target is not a TikTok video, or its id contains no upload time"}
	}
	queries := r.splitIntoQueries(batch)
	left := calls[0].Units
	for i, q := range queries {
		found, requests, err := r.runQuery(ctx, budget, q, left-int64(len(queries)-i-1))
		left -= requests
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return nil, err
		}
		for j, t := range batch {
			switch {
			case !slices.Contains(q.ids, t.ExternalID):
			case err != nil:
				results[j] = source.UnansweredResult(t, err)
			default:
				results[j] = r.videoResult(t, found)
			}
		}
	}
	return results, nil
}

// runQuery requests up to maxRequests pages of a query, and at least one. If a later page fails,
// the videos of earlier pages are returned.
func (r *Research) runQuery(ctx context.Context, budget *source.CallBudget, q query, maxRequests int64) (all videos, requests int64, err error) {
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
		requests++
		found, next, err := r.fetchPage(ctx, budget, q, body)
		switch {
		case err != nil && (requests == 1 || ctx.Err() != nil):
			return videos{}, requests, r.withBudgetName(err)
		case err != nil:
			all.incomplete = "the received pages do not contain the video, and the request for the next page failed: " + err.Error()
			return all, requests, nil //nolint:nilerr // all.incomplete contains the error
		case requests == 1:
			all = found
		default:
			all.addPage(found)
		}
		sameCursor := body.Cursor != nil && next.Cursor.Value() != nil && *body.Cursor == *next.Cursor.Value()
		if !all.more || len(all.byID) == len(q.ids) || requests >= maxRequests || sameCursor || next.Cursor.Value() == nil || next.SearchID == "" {
			return all, requests, nil
		}
		body.Cursor, body.SearchID = next.Cursor.Value(), next.SearchID
	}
}

// nextPage has the parameters with which the next page of a query is requested.
type nextPage struct {
	Cursor   fetch.Number `json:"cursor"`
	SearchID fetch.ID     `json:"search_id"`
}

func (r *Research) fetchPage(ctx context.Context, budget *source.CallBudget, q query, body any) (found videos, next nextPage, err error) {
	got, err := r.callWithToken(ctx, budget, r.tokens, request{path: "v2/research/video/query/", fields: researchFields, body: body})
	if err != nil {
		return videos{}, nextPage{}, err
	}
	if found, err = decodeVideos(got, q.ids, r.now()); err == nil && json.Unmarshal(got.data, &next) != nil {
		next = nextPage{} // the parameters of the next page are malformed, so no further page is requested
	}
	return found, next, err
}

// videoResult returns the result for a video from the decoded answers to its query.
func (r *Research) videoResult(t queue.Target, decoded videos) source.Result {
	got, ok := decoded.resultFor(t)
	got.Lags = true
	if ok {
		return got
	}
	at, _ := r.uploadTime(t)
	switch {
	case decoded.incomplete != "":
		got.Class, got.Detail = source.Temporary, decoded.incomplete
	case decoded.noList:
		got.Class, got.Detail = source.Temporary, "the answer has no list of videos"
	case decoded.more:
		got.Class, got.Detail = source.Temporary, "not on the requested pages, but more pages follow"
	case r.now().Before(at.Add(indexingDelay)):
		got.Class, got.Detail = source.Temporary, "not found yet: the Research API finds new videos only after some days"
	default:
		got.Class, got.Detail = source.Missing, "missing from TikTok's answer: the video is deleted or private, or excluded from research"
	}
	return got
}

// withBudgetName returns err. If err says that the quota is spent, withBudgetName sets the budget in err to BudgetRequests.
func (r *Research) withBudgetName(err error) error {
	if f, ok := errors.AsType[*source.Failure](err); ok && f.Class == source.QuotaSpent {
		f.Budget = BudgetRequests
	}
	return err
}

// fetchProfile requests the profile of an account by the account's handle.
func (r *Research) fetchProfile(ctx context.Context, budget *source.CallBudget, t queue.Target) (source.Result, error) {
	handle := handleOf(t)
	if handle == "" || t.Platform != link.TikTok {
		return source.Result{Class: source.Unsupported, Detail: "the target is not a TikTok account, or its handle is not known"}, nil
	}
	got, err := r.callWithToken(ctx, budget, r.tokens, request{path: "v2/research/user/info/", fields: researchProfile, body: map[string]string{"username": handle}})
	if f, ok := errors.AsType[*source.Failure](err); ok && f.Class == source.BadRequest {
		// TikTok returns this error for a handle that does not exist. The error does not mean that the request was malformed.
		return source.Result{Class: source.Unsupported, Detail: f.Detail}, nil
	}
	if err != nil {
		return source.Result{}, r.withBudgetName(err)
	}
	return decodeProfile(got, handle), nil
}

// decodeProfile decodes an answer as the result for the account with the given handle. The result has the class Temporary if the profile is
// malformed.
func decodeProfile(a answer, handle string) source.Result {
	var data struct {
		DisplayName fetch.Optional[string] `json:"display_name"`
		Bio         fetch.Optional[string] `json:"bio_description"`
		Followers   fetch.Count            `json:"follower_count"`
		Following   fetch.Count            `json:"following_count"`
	}
	res := source.Result{Class: source.Temporary, Detail: errFormat.Error(), Sandbox: a.sandbox, Lags: true}
	switch {
	case json.Unmarshal(a.data, &data) != nil || data.DisplayName.Value() == nil && data.Followers.Value() == nil:
	case data.Followers.Invalid() || data.Following.Invalid():
		res.Detail = "the profile has an invalid count"
	default:
		res.Class, res.Detail = source.OK, ""
		res.Account = &source.AccountFacts{Username: &handle, Name: fetch.CleanName(data.DisplayName.Value()), Bio: fetch.CleanName(data.Bio.Value()),
			Followers: data.Followers.Value(), Following: data.Following.Value()}
	}
	return res
}
