package store

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// maxCachedTotals is the maximum number of entries in a totalsCache.
	maxCachedTotals = 1000
	// maxCachedTotalsRows is the maximum number of videos and days in a totalsCache, added up over all entries. It limits the memory to about
	// 10 megabytes.
	maxCachedTotalsRows = 30_000
)

// totalsKey identifies an entry of a totalsCache.
type totalsKey struct {
	org     uuid.UUID
	version int64 // version of the organisation's data
	query   CollectionTotalsQuery
}

// totalsCache keeps results of CollectionTotals without stored points. So the statistics and the history of a collection are computed only once for a page. It is
// safe for concurrent use. Callers must not change the results.
type totalsCache struct {
	mu    sync.Mutex
	byKey *simplelru.LRU[totalsKey, CollectionTotals] // the least recently used entry is dropped first
	rows  int                                         // number of videos and days of all entries of byKey
}

func newTotalsCache() (*totalsCache, error) {
	c := &totalsCache{}
	var err error
	c.byKey, err = simplelru.NewLRU(maxCachedTotals, func(_ totalsKey, dropped CollectionTotals) { c.rows -= dropped.rows() })
	return c, err
}

// rows returns the number of videos and days.
func (c CollectionTotals) rows() int { return len(c.Videos) + len(c.Days) }

// get returns the totals of the key. It returns false if the cache does not have them.
func (c *totalsCache) get(key totalsKey) (CollectionTotals, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey.Get(key)
}

// put stores the totals of the key. The caller must have read key.version before the totals.
func (c *totalsCache) put(key totalsKey, totals CollectionTotals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey.Remove(key)
	c.byKey.Add(key, totals)
	for c.rows += totals.rows(); c.rows > maxCachedTotalsRows; {
		c.byKey.RemoveOldest()
	}
}

// CollectionTotals adds up the counts of a collection's videos on each day from q.From to q.To, but not
// after today. It can return ErrNotFound, *TooManyMembersError, *TooManyVideosError, *TooManyDaysError
// and *TooManyPointsError. The caller must not change the result, because
// the store keeps it for further calls, except if q.Points is true.
func (o *Org) CollectionTotals(ctx context.Context, q CollectionTotalsQuery) (CollectionTotals, error) {
	q.To = min(q.To, o.s.db.Now().Day())
	if q.Points {
		return o.readCollectionTotals(ctx, q)
	}
	version, err := o.version(ctx)
	if err != nil {
		return CollectionTotals{}, err
	}
	key := totalsKey{o.id, version.Version, q}
	if c, ok := o.s.totals.get(key); ok {
		return c, nil
	}
	c, err := o.readCollectionTotals(ctx, q)
	if err == nil {
		o.s.totals.put(key, c)
	}
	return c, err
}
