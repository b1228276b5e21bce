package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// maxCounts is the maximum number of counts that a Store has in its cache.
const maxCounts = 10_000

// countKey is the key of a count in the cache: a hash of the statement and its arguments, and the version of the organisation's data. One
// of the arguments is the id of the organisation.
type countKey struct {
	statement [sha256.Size]byte
	version   int64
}

// count returns the number of rows of the query q. The parameter v is the organisation's version, which the caller has read before. count
// caches the number until the version changes, because counting the rows of a list with a filter can take longer than reading a page of the
// list.
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
