package fetch

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache keeps values that were requested from a source, by the ids to which they belong. If the cache is full, a new value replaces the least recently used
// one. All methods may be called concurrently.
type Cache[V any] struct {
	values *lru.Cache[string, cachedValue[V]]
	ttl    time.Duration
	now    func() time.Time
}

type cachedValue[V any] struct {
	value   V
	expires time.Time
}

// NewCache returns a cache for up to the given number of values, at least 1. A value expires after the duration ttl.
func NewCache[V any](size int, ttl time.Duration, now func() time.Time) *Cache[V] {
	values, err := lru.New[string, cachedValue[V]](size)
	if err != nil { // lru.New fails only for a size below 1
		panic(err)
	}
	return &Cache[V]{values: values, ttl: ttl, now: now}
}

// Get returns the value for an id, and false if there is none or it has expired.
func (c *Cache[V]) Get(id string) (value V, ok bool) {
	cached, ok := c.values.Get(id)
	if !ok || !c.now().Before(cached.expires) {
		return value, false
	}
	return cached.value, true
}

// Put stores the value for an id.
func (c *Cache[V]) Put(id string, value V) {
	c.values.Add(id, cachedValue[V]{value, c.now().Add(c.ttl)})
}
