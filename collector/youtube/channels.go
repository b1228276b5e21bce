package youtube

import (
	"container/list"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// channelID is looser than UC and 22: what it guards is the query, not the shape.
var channelID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// nameAccounts sets the handle of every result that knows its channel, asking for at most 50 channels that were not
// asked for lately. A failure leaves the handles unknown and a word about it in Detail: the counts are good.
func (s *Source) nameAccounts(ctx context.Context, budget *source.CallBudget, results []source.Result) {
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
		handle, ok := s.handles.get(id)
		handles[id] = handle
		if !ok {
			unknown = append(unknown, id)
		}
	}
	detail := ""
	if len(unknown) > 0 {
		found, err := s.askHandles(ctx, budget, unknown)
		if err != nil {
			detail = "the account's handle is unknown: " + err.Error()
		}
		for id, handle := range found {
			if _, asked := handles[id]; asked {
				handles[id] = handle
				s.handles.put(id, handle)
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

// askHandles returns the handles of channels by channel id, without those that YouTube leaves out.
func (s *Source) askHandles(ctx context.Context, budget *source.CallBudget, ids []string) (map[string]string, error) {
	res, err := s.call(ctx, budget, BudgetCommon, methodChannels, "part=snippet,statistics,contentDetails&id="+strings.Join(ids, ","))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Items fetch.Items `json:"items"`
	}
	if json.Unmarshal(res.Body, &answer) != nil {
		return nil, errShape
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
		if handle := fetch.Handle(item.Snippet.CustomURL); handle != nil {
			handles[string(item.ID)] = *handle
		} else {
			// Old channels have no handle. Their id stands in, unfolded: the case of an id matters.
			handles[string(item.ID)] = string(item.ID)
		}
	}
	return handles, nil
}

// handleCache keeps the handles of the channels asked for last, each for a limited time.
type handleCache struct {
	size int
	ttl  time.Duration
	now  func() time.Time

	mu    sync.Mutex
	order *list.List // of *cachedHandle, the one used last in front
	byID  map[string]*list.Element
}

type cachedHandle struct {
	id, handle string
	until      time.Time
}

func newHandleCache(size int, ttl time.Duration, now func() time.Time) *handleCache {
	return &handleCache{size: size, ttl: ttl, now: now, order: list.New(), byID: make(map[string]*list.Element)}
}

func (c *handleCache) get(id string) (handle string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byID[id]
	if !ok {
		return "", false
	}
	cached := element.Value.(*cachedHandle)
	if !c.now().Before(cached.until) {
		c.drop(element)
		return "", false
	}
	c.order.MoveToFront(element)
	return cached.handle, true
}

func (c *handleCache) put(id, handle string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byID[id]; ok {
		c.drop(element)
	}
	c.byID[id] = c.order.PushFront(&cachedHandle{id: id, handle: handle, until: c.now().Add(c.ttl)})
	if c.order.Len() > c.size {
		c.drop(c.order.Back())
	}
}

func (c *handleCache) drop(element *list.Element) {
	c.order.Remove(element)
	delete(c.byID, element.Value.(*cachedHandle).id)
}
