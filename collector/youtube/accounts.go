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

// account is a target of kind account, as it can be asked for: by its id, or by names to be tried one after the other.
type account struct {
	id    string
	names []name
}

// name is a parameter of channels.list and its value.
type name struct{ parameter, value string }

// accountOf says how a target can be asked for; false when it names no YouTube account.
//
// The name in a link of the older forms may belong to another channel as a handle: /user/NAME is never a handle, /c/NAME
// and /NAME mostly became one. No /c/NAME is a user name, which may be another channel's.
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

// path is a link's path without the first slash, "" when there is none.
func path(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// accountBatch is how many accounts like t fit into one call of Fetch. Those whose uploads take several pages come one at
// a time, so that no batch takes minutes.
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

// pages is how many pages of the uploads hold the videos that are wanted. The first is always asked for: it shows what is
// new.
func pages(t source.Target) int { return max(1, (t.Depth+pageSize-1)/pageSize) }

// accountUnits is the most that a batch can cost: a call for all ids, one for each name that is tried, and every page.
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

// fetchAccounts asks for channels and their uploads. When a call fails after others have been answered, the targets that
// are left are Temporary.
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
		if known, err = s.askChannels(ctx, budget, "id="+strings.Join(ids, ","), ids); err != nil {
			return nil, err
		}
	}
	results := make([]source.Result, len(batch))
	var failed error
	for i, t := range batch {
		r, err := source.Result{}, failed
		if failed == nil {
			r, err = s.fetchAccount(ctx, budget, t, known)
		}
		switch {
		case err == nil:
		case i == 0 || ctx.Err() != nil:
			return nil, err
		default:
			failed = err
			r = source.Result{Class: source.Temporary, Detail: "a call of the batch failed: " + err.Error()}
		}
		r.Target = t
		results[i] = r
	}
	return results, nil
}

// fetchAccount asks for one account: by its names unless its channel is among the known, and for its uploads.
func (s *Source) fetchAccount(ctx context.Context, budget *source.CallBudget, t source.Target, known channels) (source.Result, error) {
	a, ok := accountOf(t)
	if !ok {
		return source.Result{Class: source.Unsupported, Detail: "not a YouTube account"}, nil
	}
	found, id := known, a.id
	for _, n := range a.names {
		var err error
		found, err = s.askChannels(ctx, budget, n.parameter+"="+url.QueryEscape(n.value), nil)
		if err != nil {
			return source.Result{}, err
		}
		if id = found.only(); id != "" || found.doubtful != "" {
			break
		}
	}
	r := found.result(id)
	if r.Class != source.OK {
		return r, nil
	}
	s.handles.put(id, *r.Account.Username) // a video's answer must not bring an older one back
	return s.addUploads(ctx, budget, t, r)
}

// channels is what an answer says, by channel id.
type channels struct {
	byID     map[string]source.Result // without Target and videos
	doubtful string                   // as of videos
	refusal  *refusal
	sandbox  bool
}

// only is the id of the one channel of an answer to a name.
func (c channels) only() string {
	for id := range c.byID {
		return id
	}
	return ""
}

func (c channels) result(id string) source.Result {
	r, ok := c.byID[id]
	switch {
	case ok:
		if r.Account != nil {
			own := *r.Account // a target may stand in a batch twice
			r.Account = &own
		}
	case c.refusal != nil:
		return c.refusal.result()
	case c.doubtful != "":
		r = source.Result{Class: source.Temporary, Detail: c.doubtful}
	default:
		r = source.Result{Class: source.Gone, Detail: "YouTube knows no such channel: deleted, terminated or never there"}
	}
	r.Sandbox = c.sandbox
	return r
}

// askChannels asks for channels by distinct ids, or by a name when there are none.
func (s *Source) askChannels(ctx context.Context, budget *source.CallBudget, filter string, ids []string) (channels, error) {
	res, err := s.call(ctx, budget, BudgetCommon, methodChannels, "part=snippet,statistics&maxResults=50&"+filter)
	if refusal, ok := errors.AsType[*refusal](err); ok {
		if len(ids) > 1 { // it does not say whose
			refusal.class = source.Temporary
		}
		return channels{refusal: refusal}, nil
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

// channel is an item of channels.list.
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

// decodeChannels reads an answer that CheckJSON has passed; ids are those asked for, nil when a name was, which one
// channel at most can have. An answer that finds nothing has no items at all.
func decodeChannels(body []byte, ids []string) (channels, error) {
	var answer struct {
		Kind  string      `json:"kind"`
		Items fetch.Items `json:"items"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return channels{}, errShape
	}
	out := channels{byID: make(map[string]source.Result, len(answer.Items))}
	if answer.Kind != kindChannels {
		out.doubtful = "left out of an answer that does not say that it is YouTube's"
	}
	for _, raw := range answer.Items {
		var item struct {
			ID fetch.ID `json:"id"`
		}
		if json.Unmarshal(raw, &item) != nil || !channelID.MatchString(string(item.ID)) || ids != nil && !slices.Contains(ids, string(item.ID)) {
			out.doubtful = "left out of an answer with an item that nobody asked for"
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

func decodeChannel(raw []byte, id string) source.Result {
	var c channel
	if json.Unmarshal(raw, &c) != nil {
		return source.Result{Class: source.Temporary, Detail: "the item has a member of the wrong type"}
	}
	if c.Snippet == nil || c.Statistics == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has no snippet or no statistics"}
	}
	if c.Statistics.Subscribers.Wrong() {
		return source.Result{Class: source.Temporary, Detail: "the item has a count that is no whole number"}
	}
	f := &source.AccountFacts{
		ID: &id, Name: fetch.Name(c.Snippet.Title), Bio: fetch.Name(c.Snippet.Description), Private: new(bool),
		Username: fetch.Handle(c.Snippet.CustomURL),
	}
	if f.Username == nil {
		f.Username = &id // old channels have no handle; see askHandles
	}
	if c.Statistics.Hidden == nil || !*c.Statistics.Hidden {
		f.Followers = c.Statistics.Subscribers.Value()
	}
	return source.Result{Class: source.OK, Account: f}
}
