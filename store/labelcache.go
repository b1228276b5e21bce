package store

import (
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// maxCachedMembers is the maximum number of members in an organisation's cached labels. If there are more,
	// the store reads only the members on a page instead, because reading all members would take much longer.
	maxCachedMembers = 50_000
	// maxLabelledOrgs is the maximum number of organisations in a labelCache.
	maxLabelledOrgs = 10_000
	// maxCachedEntries is the highest number of entries in a labelCache: all members and all collections of all its organisations. It limits the
	// memory to some tens of megabytes.
	maxCachedEntries = 500_000
)

// labelCache has the labels of organisations, and all members of these labels. A caller asks for the version
// that the database has, so the caller never gets old labels.
type labelCache struct {
	// The methods get, peek and put lock mu, so they are safe for concurrent use.
	mu      sync.Mutex
	byOrg   *simplelru.LRU[uuid.UUID, cachedLabels] // the least recently used organisation is dropped first
	entries int                                     // number of members plus number of collections, added up over all organisations in byOrg
}

// cachedLabels has the labels of an organisation, and the version that they had when they were read.
type cachedLabels struct {
	version int64
	labels  *labels // nil if the labels of this version were not read yet, or if tooMany is true
	tooMany bool    // the collections have more than maxCachedMembers members, so the labels are not cached
}

// newLabelCache returns an empty cache. The parameter orgs is the maximum number of organisations in the cache.
func newLabelCache(orgs int) (*labelCache, error) {
	c := &labelCache{}
	var err error
	c.byOrg, err = simplelru.NewLRU(orgs, func(_ uuid.UUID, dropped cachedLabels) { c.entries -= dropped.labels.countEntries() })
	return c, err
}

// get returns the labels of an organisation, or nil if the cache does not have the labels of the given version. If the result `load`
// is true, the caller should read all members and call put.
func (c *labelCache) get(org uuid.UUID, version int64) (l *labels, load bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byOrg.Get(org)
	switch {
	case ok && known.version == version:
		return known.labels, known.labels == nil && !known.tooMany
	case !ok || known.version < version: // a slow request can ask for a version that is older than the version in the cache
		// The first call with a new version returns false for "load", because collections that have just
		// changed often change again soon.
		c.replaceLabels(org, cachedLabels{version: version})
	}
	return nil, false
}

// peek returns the labels of an organisation, or nil if the cache does not have the labels of the given version. Unlike get, peek does not record
// that this version was requested.
func (c *labelCache) peek(org uuid.UUID, version int64) *labels {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.byOrg.Get(org); ok && known.version == version {
		return known.labels
	}
	return nil
}

// put stores the labels l of an organisation. The caller must have read the version before the labels. If the
// collections have too many members for the cache, l must be nil.
func (c *labelCache) put(org uuid.UUID, version int64, l *labels) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replaceLabels(org, cachedLabels{version: version, labels: l, tooMany: l == nil})
	for c.entries > maxCachedEntries {
		c.byOrg.RemoveOldest()
	}
}

// replaceLabels replaces the labels of an organisation in the cache. The caller must have locked c.mu.
func (c *labelCache) replaceLabels(org uuid.UUID, l cachedLabels) {
	c.byOrg.Remove(org)
	c.entries += l.labels.countEntries()
	c.byOrg.Add(org, l)
}

// countEntries returns the number of members and collections, or 0 if the labels are nil.
func (l *labels) countEntries() int {
	if l == nil {
		return 0
	}
	return l.count + len(l.all)
}
