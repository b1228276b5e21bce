package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// maxCounts is the number of counts that a Store remembers.
const maxCounts = 10_000

// countKey identifies a count: the statement with its arguments, one of which is the id of the organisation, and the version of the
// organisation's data.
type countKey struct {
	statement [sha256.Size]byte
	version   int64
}

// count returns the number of rows of q. v is the organisation's version, which was read before. As long as the version stays the same, count
// counts only once, because counting the rows of a filter can take longer than reading a page of them.
func (o *Org) count(ctx context.Context, v Version, q *gorm.DB) (n int64, err error) {
	q = q.Select("COUNT(*)")
	statement, args, err := db.Statement(q)
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal([]any{statement, args})
	if err != nil {
		return 0, err
	}
	key := countKey{sha256.Sum256(text), v.Version}
	if n, ok := o.s.counts.Get(key); ok {
		return n, nil
	}
	err = o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		n = row.Count(0)
		return nil
	})
	if err == nil {
		o.s.counts.Add(key, n)
	}
	return n, err
}
