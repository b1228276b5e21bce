package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// SetMaxRowsPerList changes the maximum number of rows of a list in memory. Longer lists are not kept in memory.
func SetMaxRowsPerList(s *Store, rows int) { s.maxSequenceRows = rows }

// SetMaxCachedRows changes how many rows can be in memory at most, added up over all lists.
func SetMaxCachedRows(s *Store, rows int64) { s.sequences.maxSize = rows }

// CountCachedRows returns how many rows are in memory, added up over all lists.
func CountCachedRows(s *Store) int64 { return s.sequences.total }

// CountTotalsPoints returns the number of points that are read for the sums of one video in a period. It assumes that the video once had every count.
func CountTotalsPoints(ctx context.Context, o *Org, video uuid.UUID, from, to db.Date) (int, error) {
	r := newTotalsReader(o, CollectionTotalsQuery{From: from, To: to}, from-1, 1)
	_, err := r.pointsOf(ctx, []CollectionVideo{{ID: video, counted: countSet{true, true, true, true, true}}})
	return r.read, err
}
