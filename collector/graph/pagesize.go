package graph

import (
	"errors"
	"strings"
	"sync"
	"time"
)

const (
	minPageSize     = 6
	pageSizeTTL     = 24 * time.Hour // after this time, a list is requested with full pages again
	maxCachedSizes  = 20_000
	tooMuchDataText = "reduce the amount of data"
)

// ErrTooMuchData is the cause of a failure if Meta refuses to return a page of a list because the page has
// too much data.
var ErrTooMuchData = errors.New("the page of the list has too much data for Meta")

// asksForLessData returns true if Meta asks for a request that returns less data. Meta sends this error
// with the code of unknown errors.
func (e apiError) asksForLessData() bool {
	return e.Error.Code == codeUnknown && strings.Contains(strings.ToLower(e.Error.Message), tooMuchDataText)
}

// pageSizes is a cache of page sizes that are smaller than the size that the caller wants.
type pageSizes struct {
	mu    sync.Mutex
	known map[string]pageSize // maps the name of a list to its page size
}

type pageSize struct {
	size int
	at   time.Time // time at which Meta refused a larger page
}

// GetPage calls get with the size of a page, at most maxSize. As long as Meta answers that the page has too much data, GetPage calls get
// again with half the size. It returns the last answer and its page size. It caches the size under listName for pageSizeTTL.
func (c *Client) GetPage(listName string, maxSize int, get func(size int) (Answer, error)) (res Answer, size int, err error) {
	size = c.cachedPageSize(listName, maxSize)
	for {
		res, err = get(size)
		if !errors.Is(err, ErrTooMuchData) || size/2 < minPageSize {
			return res, size, err
		}
		size /= 2
		c.cachePageSize(listName, size)
	}
}

func (c *Client) cachedPageSize(listName string, maxSize int) int {
	c.sizes.mu.Lock()
	defer c.sizes.mu.Unlock()
	if known, ok := c.sizes.known[listName]; ok && c.now().Sub(known.at) < pageSizeTTL {
		return min(known.size, maxSize)
	}
	return maxSize
}

func (c *Client) cachePageSize(listName string, size int) {
	c.sizes.mu.Lock()
	defer c.sizes.mu.Unlock()
	if c.sizes.known == nil || len(c.sizes.known) >= maxCachedSizes {
		c.sizes.known = map[string]pageSize{}
	}
	c.sizes.known[listName] = pageSize{size: size, at: c.now()}
}
