package store

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// sizedCache keeps values in memory. It limits the number of values and the sum of their sizes. If a limit is exceeded, it drops the least
// recently used values. The methods get and put are safe for concurrent use. All caches of a Store are sizedCaches.
type sizedCache[K comparable, V any] struct {
	mu      sync.Mutex
	values  *simplelru.LRU[K, V]
	size    func(V) int64
	maxSize int64
	total   int64 // sum of the sizes of all values
}

// newSizedCache returns an empty cache. maxValues must be at least 1.
func newSizedCache[K comparable, V any](maxValues int, maxSize int64, size func(V) int64) *sizedCache[K, V] {
	c := &sizedCache[K, V]{size: size, maxSize: maxSize}
	values, err := simplelru.NewLRU(maxValues, func(_ K, dropped V) { c.total -= size(dropped) })
	if err != nil { // NewLRU fails only for a size below 1
		panic(err)
	}
	c.values = values
	return c
}

// get returns the value of a key. It returns false if the cache does not have the key.
func (c *sizedCache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values.Get(key)
}

// put stores or replaces the value of a key. A value that is larger than the limit is not kept.
func (c *sizedCache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(key, v)
}

// replace is like put, but the caller must have locked c.mu.
func (c *sizedCache[K, V]) replace(key K, v V) {
	c.values.Remove(key) // Add would replace the value without the callback that subtracts its size
	c.values.Add(key, v)
	for c.total += c.size(v); c.total > c.maxSize; {
		c.values.RemoveOldest()
	}
}
