package store

import (
	"context"
	"math"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// SetMaxRowsPerList changes the maximum number of rows of a list in memory. Longer lists are not kept in memory.
func SetMaxRowsPerList(s *Store, rows int) { s.maxSequenceRows = rows }

// SetMaxCachedRows changes how many rows can be in memory at most, added up over all lists.
func SetMaxCachedRows(s *Store, rows int64) { s.sequences.maxSize = rows }

// CountCachedRows returns how many rows are in memory, added up over all lists.
func CountCachedRows(s *Store) int64 { return s.sequences.total }

// CountTotalsPoints returns the number of points that the query collectionTotalsPoints selects for one video.
func CountTotalsPoints(ctx context.Context, o *Org, video uuid.UUID, from, to db.Date) (int, error) {
	return o.eachVideoWithPoints(ctx, collectionTotalsPointsSQL, map[string]any{"ids": []uuid.UUID{video}}, from, to, math.MaxInt, func(uuid.UUID, []Point) {})
}
