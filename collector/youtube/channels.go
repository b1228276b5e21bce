package youtube

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// channelID matches ids that need no escaping in a query. It accepts more than YouTube's real channel ids, which are UC followed by 22
// characters.
var channelID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// addHandles adds the channel's handle to the result of each video. If the request for a handle
// fails, Detail contains the error.
func (s *Source) addHandles(ctx context.Context, budget *source.CallBudget, results []source.Result) {
	handles := make(map[string]string)
	var unknown []string
	for _, r := range results {
		if r.Facts == nil || r.Facts.AccountID == nil || !channelID.MatchString(*r.Facts.AccountID) {
			continue
		}
		id := *r.Facts.AccountID
		if _, seen := handles[id]; seen {
			continue
		}
		handle, ok := s.handles.Get(id)
		handles[id] = handle
		if !ok {
			unknown = append(unknown, id)
		}
	}
	detail := ""
	if len(unknown) > 0 {
		// One request is enough for all handles, because a batch has at most 50 videos.
		found, err := s.fetchHandles(ctx, budget, unknown)
		if err != nil {
			detail = "the account's handle is unknown: " + err.Error()
		}
		for id, handle := range found {
			if _, requested := handles[id]; requested {
				handles[id] = handle
				s.handles.Put(id, handle)
			}
		}
	}
	for i := range results {
		if f := results[i].Facts; f != nil && f.AccountID != nil {
			if handle := handles[*f.AccountID]; handle != "" {
				f.Username = &handle
			} else {
				results[i].Detail = detail
			}
		}
	}
}

// fetchHandles requests channels and returns a map from channel ids to handles. A channel that is missing from YouTube's answer has no
// entry.
func (s *Source) fetchHandles(ctx context.Context, budget *source.CallBudget, ids []string) (map[string]string, error) {
	res, err := s.callMethod(ctx, budget, BudgetCommon, methodChannels, "part=snippet,statistics,contentDetails&id="+strings.Join(ids, ","))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Items fetch.Items `json:"items"`
	}
	if json.Unmarshal(res.Body, &answer) != nil {
		return nil, errFormat
	}
	handles := make(map[string]string, len(answer.Items))
	for _, raw := range answer.Items {
		var item struct {
			ID      fetch.ID `json:"id"`
			Snippet *struct {
				CustomURL *string `json:"customUrl"`
			} `json:"snippet"`
		}
		if json.Unmarshal(raw, &item) != nil || item.ID == "" || item.Snippet == nil {
			continue
		}
		if handle := fetch.ParseHandle(item.Snippet.CustomURL); handle != nil {
			handles[string(item.ID)] = *handle
		} else {
			// An old channel has no handle, so its id is used instead. The id is not converted to lower case, because ids are
			// case-sensitive.
			handles[string(item.ID)] = string(item.ID)
		}
	}
	return handles, nil
}
