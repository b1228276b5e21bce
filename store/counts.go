package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// maxCounts is the maximum number of row counts in the cache of a Store. Each list has one row count.
const maxCounts = 10_000

// listKey identifies a list in the caches of a Store.
type listKey struct {
	list    [sha256.Size]byte // hash of the SQL statement, its arguments, and further values
	version int64             // version of the organisation's data
}

// keyOfList returns the cache key of a list. The parameter "more" has values that distinguish lists
// of the same query, such as the order.
func keyOfList(v Version, q *gorm.DB, more ...any) (listKey, error) {
	statement, args, err := db.Statement(q)
	if err != nil {
		return listKey{}, err
	}
	text, err := json.Marshal([]any{statement, args, more})
	return listKey{sha256.Sum256(text), v.Version}, err
}

// countRows returns how many rows a query selects. It caches the number for the data version v,
// because counting can take longer than reading a page.
func (o *Org) countRows(ctx context.Context, v Version, q *gorm.DB) (n int64, err error) {
	q = q.Select("COUNT(*)")
	key, err := keyOfList(v, q)
	if err != nil {
		return 0, err
	}
	if n, ok := o.s.counts.get(key); ok {
		return n, nil
	}
	err = o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		n = row.Count(0)
		return nil
	})
	if err == nil {
		o.s.counts.put(key, n)
	}
	return n, err
}
