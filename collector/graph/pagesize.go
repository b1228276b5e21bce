package graph

import (
	"errors"
	"strings"
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

// GetPage calls get with the size of a page, at most maxSize. As long as Meta answers that the page has too much data, GetPage calls get
// again with half the size, but not with a size below minPageSize. It returns the last answer and its page size. It caches a reduced size
// under listName for pageSizeTTL.
func (c *Client) GetPage(listName string, maxSize int, get func(size int) (Answer, error)) (res Answer, size int, err error) {
	size = maxSize
	if reduced, ok := c.sizes.Get(listName); ok {
		size = min(size, reduced)
	}
	for {
		res, err = get(size)
		if !errors.Is(err, ErrTooMuchData) || size/2 < minPageSize {
			return res, size, err
		}
		size /= 2
		c.sizes.Put(listName, size)
	}
}
