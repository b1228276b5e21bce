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

// account says how to request an account from channels.list: by its channel id, or by names that are tried in the given order.
type account struct {
	id    string
	names []name
}

// name is a query parameter of channels.list that names a channel, with the value of the parameter.
type name struct{ parameter, value string }

// accountOf returns how to request the account of a target from channels.list. ok is false if the target is not a valid YouTube account.
//
// In older forms of links, the name in the link can also be the handle of another channel. /user/NAME contains a user name, never a handle.
// /c/NAME contains a custom name, which is usually the handle today and never a user name. /NAME contains either a custom name or a user
// name.
func accountOf(t source.Target) (account, bool) {
	if t.AccountID != "" {
		return account{id: t.AccountID}, channelID.MatchString(t.AccountID)
	}
	value, ok := strings.CutPrefix(t.ExternalID, "@")
	if !ok || fetch.Handle(&value) == nil {
		return account{}, false
	}
	handle, user := name{"forHandle", "@" + value}, name{"forUsername", value}
	switch first, _, _ := strings.Cut(path(t.Link), "/"); {
	case first == "user":
		return account{names: []name{user}}, true
	case first == "" || first == "c" || strings.HasPrefix(first, "@"):
		return account{names: []name{handle}}, true
	default:
		return account{names: []name{handle, user}}, true
	}
}

// path returns the path of a link without the leading slash, or "" if the link is not a valid URL.
func path(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// accountBatch returns how many accounts like t one Fetch may request, and false if t is not a valid account. An account whose uploads need
// several pages is fetched alone, because a Fetch of many such accounts would take minutes.
func accountBatch(t source.Target) (int, bool) {
	if t.ExternalID == "" {
		return batchSize, true
	}
	a, ok := accountOf(t)
	switch {
	case !ok:
		return 0, false
	case a.id == "" || pages(t) > 1:
		return 1, true
	}
	return batchSize, true
}

// pages returns how many pages of uploads are needed for t.Depth videos. It is at least 1, because the first page is needed to find new
// videos.
func pages(t source.Target) int { return max(1, (t.Depth+pageSize-1)/pageSize) }

// accountUnits returns the maximum number of units that a batch of accounts can cost: one unit for all channel ids, one for each name, and
// one for each page of uploads.
func accountUnits(batch []source.Target) int64 {
	units, byID := 0, false
	for _, t := range batch {
		a, ok := accountOf(t)
		if !ok {
			continue
		}
		byID = byID || a.id != ""
		units += len(a.names) + pages(t)
	}
	if byID {
		units++
	}
	return int64(max(units, 1))
}

// fetchAccounts requests channels and their uploads. If a call fails after the first account was answered, the remaining targets get the
// result source.Unanswered.
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
			results[i] = source.Unanswered(t, failed)
			continue
		}
		r, err := s.fetchAccount(ctx, budget, t, known)
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return nil, err
		}
		if err != nil {
			failed = err
			r = source.Unanswered(t, err)
		}
		r.Target = t
		results[i] = r
	}
	return results, nil
}

// fetchAccount requests one account and its uploads. known are the channels that were already requested by channel id. An account without a
// channel id is requested by its names.
func (s *Source) fetchAccount(ctx context.Context, budget *source.CallBudget, t source.Target, known channels) (source.Result, error) {
	a, ok := accountOf(t)
	if !ok {
		return source.Result{Class: source.Unsupported, Detail: "not a YouTube account"}, nil
	}
	found, id := known, a.id
	for _, n := range a.names {
		var err error
		found, err = s.fetchChannels(ctx, budget, n.parameter+"="+url.QueryEscape(n.value), nil)
		if err != nil {
			return source.Result{}, err
		}
		if id = found.onlyID(); id != "" || found.incomplete != "" {
			break
		}
	}
	r := found.result(id)
	if r.Class != source.OK {
		return r, nil
	}
	s.handles.put(id, *r.Account.Username) // cached, so that later results for videos have the newest handle
	return s.addUploads(ctx, budget, t, r)
}

// channels is the decoded answer of the API method channels.list.
type channels struct {
	byID       map[string]source.Result // results without Target and without videos, by channel id
	incomplete string                   // reason why a channel that is missing from the answer may still exist; "" if missing channels are gone
	err        *targetError             // error that concerns the requested channels; nil if the answer was a success
	sandbox    bool
}

// onlyID returns the id of the only channel in an answer, or "" if the answer has no channel.
func (c channels) onlyID() string {
	for id := range c.byID {
		return id
	}
	return ""
}

// result returns the result for the channel with the given id. A channel that is missing from the answer gets the class Gone or, if the
// answer is incomplete, Temporary.
func (c channels) result(id string) source.Result {
	r, ok := c.byID[id]
	switch {
	case ok:
		if r.Account != nil {
			account := *r.Account // copied, so that two results for the same channel do not share the account
			r.Account = &account
		}
	case c.err != nil:
		return c.err.result()
	case c.incomplete != "":
		r = source.Result{Class: source.Temporary, Detail: c.incomplete}
	default:
		r = source.Result{Class: source.Gone, Detail: "YouTube has no such channel: it is deleted or terminated, or never existed"}
	}
	r.Sandbox = c.sandbox
	return r
}

// fetchChannels calls channels.list. filter is the query parameter that selects the channels. ids are the distinct channel ids in filter,
// or nil if filter contains a name.
func (s *Source) fetchChannels(ctx context.Context, budget *source.CallBudget, filter string, ids []string) (channels, error) {
	res, err := s.call(ctx, budget, BudgetCommon, methodChannels, "part=snippet,statistics&maxResults=50&"+filter)
	if e, ok := errors.AsType[*targetError](err); ok {
		if len(ids) > 1 { // the error does not name the channel that it concerns
			e.class = source.Temporary
		}
		return channels{err: e}, nil
	}
	if err != nil {
		return channels{}, err
	}
	answer, err := decodeChannels(res.Body, ids)
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

// decodeChannels decodes an answer of channels.list that fetch.CheckJSON has accepted. ids are the requested ids, or nil if a name was
// requested. A name belongs to at most one channel. If YouTube finds no channel, its answer has no member with the name items.
func decodeChannels(body []byte, ids []string) (channels, error) {
	var answer struct {
		Kind  string      `json:"kind"`
		Items fetch.Items `json:"items"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return channels{}, errFormat
	}
	out := channels{byID: make(map[string]source.Result, len(answer.Items))}
	if answer.Kind != kindChannels {
		out.incomplete = "the answer has an unexpected kind and lacks the target"
	}
	for _, raw := range answer.Items {
		var item struct {
			ID fetch.ID `json:"id"`
		}
		if json.Unmarshal(raw, &item) != nil || !channelID.MatchString(string(item.ID)) || ids != nil && !slices.Contains(ids, string(item.ID)) {
			out.incomplete = "missing from an answer with an item that was not requested"
			continue
		}
		if _, twice := out.byID[string(item.ID)]; !twice {
			out.byID[string(item.ID)] = decodeChannel(raw, string(item.ID))
		}
	}
	if ids == nil && len(out.byID) > 1 {
		return channels{}, errors.New("the answer has several channels for one name")
	}
	return out, nil
}

// decodeChannel decodes an item as the result for the channel with the given id. The result is Temporary if the item is malformed.
func decodeChannel(raw []byte, id string) source.Result {
	var c channel
	if json.Unmarshal(raw, &c) != nil {
		return source.Result{Class: source.Temporary, Detail: "the item has a member of the wrong type"}
	}
	if c.Snippet == nil || c.Statistics == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no snippet or no statistics"}
	}
	if c.Statistics.Subscribers.Invalid() {
		return source.Result{Class: source.Temporary, Detail: "the item has a count that is not a whole number"}
	}
	f := &source.AccountFacts{
		ID: &id, Name: fetch.Name(c.Snippet.Title), Bio: fetch.Name(c.Snippet.Description), Private: new(bool),
		Username: fetch.Handle(c.Snippet.CustomURL),
	}
	if f.Username == nil {
		f.Username = &id // old channels have no handle, so the channel id is used instead
	}
	if c.Statistics.Hidden == nil || !*c.Statistics.Hidden {
		f.Followers = c.Statistics.Subscribers.Value()
	}
	return source.Result{Class: source.OK, Account: f}
}
