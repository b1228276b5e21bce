package youtube

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

const kindChannels = "youtube#channelListResponse"

// account says how to request a channel from the API method channels.list: by its channel id or, if the id is "", by its names. The names
// are tried in their order, until one of them finds a channel.
type account struct {
	id    string
	names []name
}

// name is a query parameter of channels.list that selects a channel by a handle or a user name.
type name struct{ parameter, value string }

// accountOf returns how to request the channel of a target. It returns false if the target is not a valid YouTube account.
//
// The form of the link decides what NAME is:
//   - /@NAME: a handle.
//   - /user/NAME: a user name. The handle @NAME can belong to another channel.
//   - /c/NAME: a custom name, which today is usually also the channel's handle.
//   - /NAME: a user name or a custom name.
func accountOf(t source.Target) (account, bool) {
	if t.AccountID != "" {
		return account{id: t.AccountID}, channelID.MatchString(t.AccountID)
	}
	value, ok := strings.CutPrefix(t.ExternalID, "@")
	if !ok || fetch.ParseHandle(&value) == nil {
		return account{}, false
	}
	handle, user := name{"forHandle", "@" + value}, name{"forUsername", value}
	switch first, _, _ := strings.Cut(linkPath(t.Link), "/"); {
	case first == "user":
		return account{names: []name{user}}, true
	case first == "" || first == "c" || strings.HasPrefix(first, "@"):
		return account{names: []name{handle}}, true
	default:
		return account{names: []name{handle, user}}, true
	}
}

// linkPath returns the path of a link without the leading slash, or "" if the link is not a valid URL.
func linkPath(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// accountBatchSize returns the size of the largest batch in which an account may be fetched. It returns false if the account is not valid.
// An account whose uploads need several pages is fetched alone, because a batch of many such accounts would take minutes.
func accountBatchSize(t source.Target) (int, bool) {
	if t.ExternalID == "" {
		return batchSize, true
	}
	a, ok := accountOf(t)
	switch {
	case !ok:
		return 0, false
	case a.id == "" || wantedPages(t) > 1:
		return 1, true
	}
	return batchSize, true
}

// wantedPages returns how many pages of uploads are needed for the number of videos that the collector requires (t.Depth). It is at least
// 1, because the first page shows whether there are new videos.
func wantedPages(t source.Target) int { return max(1, (t.Depth+pageSize-1)/pageSize) }

// maxAccountUnits returns the maximum number of quota units that a batch of accounts can cost: one for all channel ids together, one for each
// name, and one for each page of uploads.
func maxAccountUnits(batch []source.Target) int64 {
	units, byID := 0, false
	for _, t := range batch {
		a, ok := accountOf(t)
		if !ok {
			continue
		}
		byID = byID || a.id != ""
		units += len(a.names) + wantedPages(t)
	}
	if byID {
		units++
	}
	return int64(max(units, 1))
}

// fetchAccounts requests channels and their uploads. If the first account fails, fetchAccounts returns the error. If a later account fails,
// no further calls are made, and this and all remaining accounts get the result source.UnansweredResult.
func (s *Source) fetchAccounts(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	var ids []string
	for _, t := range batch {
		if a, ok := accountOf(t); ok && a.id != "" && !slices.Contains(ids, a.id) {
			ids = append(ids, a.id)
		}
	}
	var known channels
	if len(ids) > 0 {
		var err error
		if known, err = s.fetchChannels(ctx, budget, "id="+strings.Join(ids, ","), ids); err != nil {
			return nil, err
		}
	}
	results := make([]source.Result, len(batch))
	var failed error
	for i, t := range batch {
		if failed != nil {
			results[i] = source.UnansweredResult(t, failed)
			continue
		}
		r, err := s.fetchAccount(ctx, budget, t, known)
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return nil, err
		}
		if err != nil {
			failed = err
			r = source.UnansweredResult(t, err)
		}
		r.Target = t
		results[i] = r
	}
	return results, nil
}

// fetchAccount requests the uploads of one channel. knownChannels are the channels that an earlier request of this batch has found. If the
// target has no channel id, fetchAccount first requests the channel by its handle or user name.
func (s *Source) fetchAccount(ctx context.Context, budget *source.CallBudget, t source.Target, knownChannels channels) (source.Result, error) {
	a, ok := accountOf(t)
	if !ok {
		return source.Result{Class: source.Unsupported, Detail: "not a YouTube account"}, nil
	}
	found, id := knownChannels, a.id
	for _, n := range a.names {
		var err error
		found, err = s.fetchChannels(ctx, budget, n.parameter+"="+url.QueryEscape(n.value), nil)
		if err != nil {
			return source.Result{}, err
		}
		if id = found.idOfSingleChannel(); id != "" || found.incomplete != "" {
			break
		}
	}
	r := found.resultFor(id)
	if r.Class != source.OK {
		return r, nil
	}
	s.handles.put(id, *r.Account.Username) // the handle is cached, so that later results for videos have the newest handle
	return s.addUploads(ctx, budget, t, r)
}

// channels is the decoded answer of the API method channels.list.
type channels struct {
	byID       map[string]source.Result // maps a channel id to the result for the channel; Result.Target and the videos are not set
	incomplete string                   // reason why the answer may lack channels that exist; "" if the answer is complete
	err        *targetError             // error that concerns only the requested channels, such as a suspended channel; nil if the answer was a success
	sandbox    bool
}

// idOfSingleChannel returns the id of the channel in an answer that has at most one channel. It returns "" if the answer has no channel.
func (c channels) idOfSingleChannel() string {
	for id := range c.byID {
		return id
	}
	return ""
}

// resultFor returns the result for the channel with the given id. If the channel is missing from the answer, its class is Gone. If the answer
// is incomplete, the class is Temporary instead, because the channel may exist.
func (c channels) resultFor(id string) source.Result {
	r, ok := c.byID[id]
	switch {
	case ok:
		if r.Account != nil {
			account := *r.Account // the account is copied, so that two results for the same channel do not share it
			r.Account = &account
		}
	case c.err != nil:
		return c.err.asResult()
	case c.incomplete != "":
		r = source.Result{Class: source.Temporary, Detail: c.incomplete}
	default:
		r = source.Result{Class: source.Gone, Detail: "YouTube has no such channel: it is deleted or terminated, or never existed"}
	}
	r.Sandbox = c.sandbox
	return r
}

// fetchChannels calls channels.list. The argument "parameter" is added to the query of the URL. It selects several channels by their ids, or
// one channel by a name. If channels are selected by ids, channelIDs has these ids without duplicates. If one channel is selected by a name,
// channelIDs is nil.
func (s *Source) fetchChannels(ctx context.Context, budget *source.CallBudget, parameter string, channelIDs []string) (channels, error) {
	res, err := s.callMethod(ctx, budget, BudgetCommon, methodChannels, "part=snippet,statistics&maxResults=50&"+parameter)
	if e, ok := errors.AsType[*targetError](err); ok {
		if len(channelIDs) > 1 { // the error does not name the channel that it concerns
			e.class = source.Temporary
		}
		return channels{err: e}, nil
	}
	if err != nil {
		return channels{}, err
	}
	answer, err := decodeChannels(res.Body, channelIDs)
	if err != nil {
		return channels{}, &source.Failure{Class: source.Temporary, Detail: err.Error()}
	}
	answer.sandbox = res.Sandbox
	return answer, nil
}

// channel is an item in the answer of channels.list.
type channel struct {
	Snippet *struct {
		Title       *string `json:"title"`
		Description *string `json:"description"`
		CustomURL   *string `json:"customUrl"`
	} `json:"snippet"`
	Statistics *struct {
		Subscribers fetch.Count `json:"subscriberCount"`
		Hidden      *bool       `json:"hiddenSubscriberCount"`
	} `json:"statistics"`
}

// decodeChannels decodes an answer of channels.list. The caller has checked its JSON with fetch.CheckJSON. If a name was requested,
// requestedIDs is nil. A name belongs to at most one channel. If YouTube finds no channel, its answer has no member "items".
func decodeChannels(body []byte, requestedIDs []string) (channels, error) {
	var answer struct {
		Kind  string      `json:"kind"`
		Items fetch.Items `json:"items"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return channels{}, errFormat
	}
	out := channels{byID: make(map[string]source.Result, len(answer.Items))}
	if answer.Kind != kindChannels {
		out.incomplete = "missing from the answer; the answer has an unexpected value in its member \"kind\""
	}
	for _, raw := range answer.Items {
		var item struct {
			ID fetch.ID `json:"id"`
		}
		if json.Unmarshal(raw, &item) != nil || !channelID.MatchString(string(item.ID)) || requestedIDs != nil && !slices.Contains(requestedIDs, string(item.ID)) {
			out.incomplete = "missing from the answer; the answer has an item that was not requested"
			continue
		}
		if _, twice := out.byID[string(item.ID)]; !twice {
			out.byID[string(item.ID)] = decodeChannel(raw, string(item.ID))
		}
	}
	if requestedIDs == nil && len(out.byID) > 1 {
		return channels{}, errors.New("the answer has several channels for one name")
	}
	return out, nil
}

// decodeChannel decodes the JSON of one channel as the result for the channel with the given id. The result has the class Temporary if the
// JSON is malformed.
func decodeChannel(raw []byte, id string) source.Result {
	var c channel
	if json.Unmarshal(raw, &c) != nil {
		return source.Result{Class: source.Temporary, Detail: "the item has a JSON field of the wrong type"}
	}
	if c.Snippet == nil || c.Statistics == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no snippet or no statistics"}
	}
	if c.Statistics.Subscribers.Invalid() {
		return source.Result{Class: source.Temporary, Detail: "the item has a count that is not a whole number"}
	}
	f := &source.AccountFacts{
		ID: &id, Name: fetch.CleanName(c.Snippet.Title), Bio: fetch.CleanName(c.Snippet.Description), Private: new(bool),
		Username: fetch.ParseHandle(c.Snippet.CustomURL),
	}
	if f.Username == nil {
		f.Username = &id // old channels have no handle, so the channel id is used instead
	}
	if c.Statistics.Hidden == nil || !*c.Statistics.Hidden {
		f.Followers = c.Statistics.Subscribers.Value()
	}
	return source.Result{Class: source.OK, Account: f}
}
