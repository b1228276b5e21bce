package store

import (
	"github.com/google/uuid"
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
// that the database has, so the caller never gets old labels. All methods are safe for concurrent use.
type labelCache struct {
	byOrg *sizedCache[uuid.UUID, cachedLabels] // the size of a value is the number of members plus the number of collections
}

// cachedLabels has the labels of an organisation, and the version that they had when they were read.
type cachedLabels struct {
	version int64
	labels  *labels // nil if the labels of this version were not read yet, or if tooMany is true
	tooMany bool    // the collections have more than maxCachedMembers members, so the labels are not cached
}

// newLabelCache returns an empty cache.
func newLabelCache() *labelCache {
	return &labelCache{newSizedCache[uuid.UUID](maxLabelledOrgs, maxCachedEntries, func(l cachedLabels) int64 { return l.labels.countEntries() })}
}

// get returns the labels of an organisation, or nil if the cache does not have the labels of the given version. If the result `load`
// is true, the caller should read all members and call put.
func (c *labelCache) get(org uuid.UUID, version int64) (l *labels, load bool) {
	c.byOrg.mu.Lock() // another request must not change the entry between reading and replacing it
	defer c.byOrg.mu.Unlock()
	known, ok := c.byOrg.values.Get(org)
	switch {
	case ok && known.version == version:
		return known.labels, known.labels == nil && !known.tooMany
	case !ok || known.version < version: // a slow request can ask for a version that is older than the version in the cache
		// The first call with a new version returns false for "load", because collections that have just
		// changed often change again soon.
		c.byOrg.replace(org, cachedLabels{version: version})
	}
	return nil, false
}

// peek returns the labels of an organisation, or nil if the cache does not have the labels of the given version. Unlike get, peek does not record
// that this version was requested.
func (c *labelCache) peek(org uuid.UUID, version int64) *labels {
	if known, ok := c.byOrg.get(org); ok && known.version == version {
		return known.labels
	}
	return nil
}

// put stores the labels l of an organisation. The caller must have read the version before the labels. If the
// collections have too many members for the cache, l must be nil.
func (c *labelCache) put(org uuid.UUID, version int64, l *labels) {
	c.byOrg.put(org, cachedLabels{version: version, labels: l, tooMany: l == nil})
}

// countEntries returns the number of members and collections, or 0 if the labels are nil.
func (l *labels) countEntries() int64 {
	if l == nil {
		return 0
	}
	return int64(l.count + len(l.all))
}
