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

// listKey identifies a list in the caches of a Store: by the version of the organisation's data, and by a hash of the SQL statement that selects
// the rows. The hash includes the arguments of the statement, such as the organisation's id.
type listKey struct {
	list    [sha256.Size]byte
	version int64
}

// keyOfList returns the key of a list in a cache. The key contains the query of the list, the version of the organisation's data, and further
// values, such as the order of the list.
func keyOfList(v Version, q *gorm.DB, more ...any) (listKey, error) {
	statement, args, err := db.Statement(q)
	if err != nil {
		return listKey{}, err
	}
	text, err := json.Marshal([]any{statement, args, more})
	return listKey{sha256.Sum256(text), v.Version}, err
}

// countRows returns the number of rows that a query selects. It keeps the number in a cache until the version of the organisation's data
// changes, because counting can take longer than reading a page. The parameter v is the current version.
func (o *Org) countRows(ctx context.Context, v Version, q *gorm.DB) (n int64, err error) {
	q = q.Select("COUNT(*)")
	key, err := keyOfList(v, q)
	if err != nil {
		return 0, err
	}
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
