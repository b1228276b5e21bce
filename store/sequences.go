package store

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// maxSequenceRows is the maximum number of rows of a list in memory. Longer lists are not kept in memory.
	maxSequenceRows = 50_000
	// maxSequences is the maximum number of lists in memory.
	maxSequences = 10_000
	// maxTotalSequenceRows is the maximum number of rows in memory, added up over all lists. It limits the memory to about 25 megabytes.
	maxTotalSequenceRows = 500_000
)

// newSequenceCache returns an empty cache for the order of lists of videos or accounts in collections: the ids of all rows, in order. The
// value nil means that a list has too many rows for the cache.
func newSequenceCache() *sizedCache[listKey, *db.Sequence] {
	return newSizedCache[listKey](maxSequences, maxTotalSequenceRows, (*db.Sequence).Len)
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
