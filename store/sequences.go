package store

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// maxSequenceRows is the maximum number of rows of a list in memory. Longer lists are not kept in memory.
	maxSequenceRows = 50_000
	// maxSequences is the maximum number of lists in a sequenceCache.
	maxSequences = 10_000
	// maxTotalSequenceRows is the maximum number of rows in a sequenceCache, added up over all lists. It limits the memory to about 25 megabytes.
	maxTotalSequenceRows = 500_000
)

// sequenceCache keeps the order of lists of videos or accounts in collections: the ids of all rows,
// in order. It is safe for concurrent use.
type sequenceCache struct {
	mu      sync.Mutex
	byList  *simplelru.LRU[listKey, *db.Sequence] // the value is nil if the list has too many rows; a full cache drops the least recently used list
	rows    int64                                 // number of rows of all lists in byList
	maxRows int64                                 // maximum number of rows of all lists; if it is exceeded, the least recently used lists are dropped
}

func newSequenceCache() (*sequenceCache, error) {
	c := &sequenceCache{maxRows: maxTotalSequenceRows}
	var err error
	c.byList, err = simplelru.NewLRU(maxSequences, func(_ listKey, dropped *db.Sequence) { c.rows -= dropped.Len() })
	return c, err
}

// get returns the order of a list. It returns false if the cache does not have the list.
func (c *sequenceCache) get(key listKey) (s *db.Sequence, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byList.Get(key)
}

// put stores the order s of the rows of a list. The value nil means that the list has too many rows for the
// cache.
func (c *sequenceCache) put(key listKey, s *db.Sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byList.Remove(key)
	c.byList.Add(key, s)
	for c.rows += s.Len(); c.rows > c.maxRows; {
		c.byList.RemoveOldest()
	}
}

// readSequence returns the order of a list, or nil if the list has too many rows. The field key.version must be
// the version that was current before this call.
func (o *Org) readSequence(ctx context.Context, key listKey, order db.Order, sort db.SortColumns, listQuery func() (*gorm.DB, error)) (*db.Sequence, error) {
	if s, ok := o.s.sequences.get(key); ok {
		return s, nil
	}
	q, err := listQuery()
	if err != nil {
		return nil, err
	}
	// This reads all rows, because no database index has a collection's members in this order.
	s, err := db.ReadSequence(ctx, o.s.db, q, sort, order, o.s.maxSequenceRows)
	if err != nil && !errors.Is(err, db.ErrTooManyRows) {
		return nil, err
	}
	o.s.sequences.put(key, s)
	return s, nil
}
