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
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

const kindChannels = "youtube#channelListResponse"

// account says how to request a channel with channels.list: by its channel id or by its name.
type account struct {
	id   string // "" if the channel is requested by its name
	name name   // empty if the channel is requested by its id
}

// name is a query parameter of channels.list that selects a channel by a handle or a user name.
type name struct{ parameter, value string }

// accountOf returns how to request the channel of a target. It returns false if the target is not a
// valid YouTube account.
func accountOf(t queue.Target) (account, bool) {
	if t.AccountID != "" {
		return account{id: t.AccountID}, channelID.MatchString(t.AccountID)
	}
	if user, ok := link.YouTubeUser(t.Platform, t.Handle); ok {
		// A link /user/NAME has a user name. The handle @NAME can belong to another channel.
		return account{name: name{"forUsername", user}}, fetch.ParseHandle(&user) != nil
	}
	// The custom name in a link /NAME or /c/NAME is usually also the channel's handle.
	value, ok := strings.CutPrefix(t.ExternalID, "@")
	if !ok || fetch.ParseHandle(&value) == nil {
		return account{}, false
	}
	return account{name: name{"forHandle", "@" + value}}, true
}

// accountBatchSize returns the size of the largest batch in which an account may be fetched. It
// returns false if the account is not valid.
func accountBatchSize(t queue.Target) (int, bool) {
	if t.ExternalID == "" {
		return batchSize, true
	}
	a, ok := accountOf(t)
	switch {
	case !ok:
		return 0, false
	case a.id == "" || wantedPages(t) > 1:
		// A batch of accounts with several pages of uploads each would take minutes.
		return 1, true
	}
	return batchSize, true
}

// wantedPages returns how many pages of uploads are needed for t.Depth videos. The first page is
// always needed to find new videos.
func wantedPages(t queue.Target) int { return max(1, (t.Depth+pageSize-1)/pageSize) }

// maxAccountUnits returns the maximum number of quota units that a batch of accounts can cost.
func maxAccountUnits(batch []queue.Target) int64 {
	units, byID := 0, false
	for _, t := range batch {
		a, ok := accountOf(t)
		if !ok {
			continue
		}
		// Looking up a name costs one unit, and so does each page of the list of uploads.
		units += wantedPages(t)
		if a.id == "" {
			units++
		} else {
			byID = true
		}
	}
	// All channel ids together cost one unit.
	if byID {
		units++
	}
	return int64(max(units, 1))
}

// fetchAccounts requests channels and their uploads: all channels whose id is known in one call, and then the rest of each account.
func (s *Source) fetchAccounts(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
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
	return source.FetchEach(ctx, batch, func(ctx context.Context, t queue.Target) (source.Result, error) {
		return s.fetchAccount(ctx, budget, t, known)
	})
}

// fetchAccount returns the profile and the newest uploads of one channel. knownChannels are the channels that an earlier request of this
// batch has found. If the channel is not known by its id, fetchAccount requests it by its name.
func (s *Source) fetchAccount(ctx context.Context, budget *source.CallBudget, t queue.Target, knownChannels channels) (source.Result, error) {
	a, ok := accountOf(t)
	if !ok {
		return source.Result{Class: source.Unsupported, Detail: "not a YouTube account"}, nil
	}
	found, id := knownChannels, a.id
	// If the channel id is unknown, request the channel by its handle or user name.
	if id == "" {
		var err error
		found, err = s.fetchChannels(ctx, budget, a.name.parameter+"="+url.QueryEscape(a.name.value), nil)
		if err != nil {
			return source.Result{}, err
		}
		id = found.idOfSingleChannel()
	}
	r := found.resultFor(id)
	if r.Class != source.OK {
		return r, nil
	}
	s.handles.Put(id, *r.Account.Username) // the handle is cached, so that later results for videos have the newest handle
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

// resultFor returns the result for the channel with the given id. If a complete answer lacks the
// channel, the class is Gone.
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
		// The channel may exist.
		r = source.Result{Class: source.Temporary, Detail: c.incomplete}
	default:
		r = source.Result{Class: source.Gone, Detail: "YouTube has no such channel: it is deleted or terminated, or never existed"}
	}
	r.Sandbox = c.sandbox
	return r
}

// fetchChannels calls channels.list with a query parameter that selects channels. channelIDs are
// the distinct ids in the parameter. If the parameter contains a name instead, channelIDs is nil.
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
		Title       fetch.Optional[string] `json:"title"`
		Description fetch.Optional[string] `json:"description"`
		CustomURL   fetch.Optional[string] `json:"customUrl"`
	} `json:"snippet"`
	Statistics *struct {
		Subscribers fetch.Count `json:"subscriberCount"`
		Hidden      *bool       `json:"hiddenSubscriberCount"`
	} `json:"statistics"`
}

// decodeChannels decodes an answer of channels.list that fetch.CheckJSON has accepted. If a name
// was requested, requestedIDs is nil.
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
	// If YouTube finds no channel, its answer has no member "items".
	for _, raw := range answer.Items {
		var item struct {
			ID fetch.ID `json:"id"`
		}
		if json.Unmarshal(raw, &item) != nil || !channelID.MatchString(string(item.ID)) || requestedIDs != nil && !slices.Contains(requestedIDs, string(item.ID)) {
			out.incomplete = "missing from the answer; the answer has an item that was not requested"
			continue
		}
		source.AddResult(out.byID, string(item.ID), decodeChannel(raw, string(item.ID)))
	}
	if requestedIDs == nil && len(out.byID) > 1 {
		return channels{}, errors.New("the answer has several channels for one name")
	}
	return out, nil
}

// decodeChannel decodes the JSON of one channel as the result for the channel with the given id. The result has the class Temporary if the
// JSON is malformed, lacks the snippet or the statistics, or has an invalid number of subscribers.
func decodeChannel(raw []byte, id string) source.Result {
	var c channel
	if json.Unmarshal(raw, &c) != nil {
		return source.Result{Class: source.Temporary, Detail: "the item has a JSON field of the wrong type"}
	}
	if c.Snippet == nil || c.Statistics == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no snippet or no statistics"}
	}
	if c.Statistics.Subscribers.Invalid() {
		return source.Result{Class: source.Temporary, Detail: "the item has an invalid count"}
	}
	f := &source.AccountFacts{
		ID: &id, Name: fetch.CleanName(c.Snippet.Title.Value()), Bio: fetch.CleanName(c.Snippet.Description.Value()), Private: new(bool),
		Username: fetch.ParseHandle(c.Snippet.CustomURL.Value()),
	}
	if f.Username == nil {
		f.Username = &id // old channels have no handle, so the channel id is used instead
	}
	if c.Statistics.Hidden == nil || !*c.Statistics.Hidden {
		f.Followers = c.Statistics.Subscribers.Value()
	}
	return source.Result{Class: source.OK, Account: f}
}
