package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// maxCounts is the maximum number of row counts in the cache of a Store. Each list has one row count.
	maxCounts = 10_000
	// maxPageStarts is the maximum number of pages whose position a Store remembers.
	maxPageStarts = 10_000
	// maxSequenceRows is the maximum number of rows of a list in memory. Longer lists are not kept in memory.
	maxSequenceRows = 50_000
	// maxSequences is the maximum number of lists in memory.
	maxSequences = 10_000
	// maxTotalSequenceRows is the maximum number of rows in memory, added up over all lists. It limits the memory to about 25 megabytes.
	maxTotalSequenceRows = 500_000
)

// listReader reads one page of a list of videos or accounts. It has three ways to read:
//
//   - In order, from the beginning of the list. This is for pages near the beginning. If the Org has no version yet, the version and the
//     rows are read in one round trip.
//   - In order, from a position. This is for pages far from the beginning, because skipping all rows before the page takes long. The positions where
//     such pages begin are in memory.
//   - By ids. This is for the members of collections, because no index of the database has them in the order of the list. The ids of all members are in
//     memory, in order: see db.Sequence. If there are too many members, the list is read in order instead.
//
// If the rows are read in order, they can be passed one by one to a function, which writes their JSON without keeping them: see VideoQuery.Each.
//
// Some methods read videos without a listReader, because they also read points. Export and ListPoints return the points of videos. CollectionTotals and
// AccountGains compute sums and gains from them.
type listReader[R any] struct {
	org          *Org
	version      Version        // version of the data; the method read sets it before it calls the functions of spec
	spec         db.ListSpec[R] // without Total, Sequence, Before, Expected and Unchanged, which the method read sets
	rows         *gorm.DB       // selects the rows, without the conditions on collections, the order and the limit
	order        db.Order
	window       db.Window
	collectionID *uuid.UUID // the rows are members of this collection, if it is set
	collections  []string   // the rows are members of at least one collection with one of these names or ids, if there are any
	// limitTo limits a query to members of the collections with the given ids. If inOrder is true, the database should read the rows in the
	// requested order.
	limitTo func(q *gorm.DB, collections []uuid.UUID, inOrder bool) *gorm.DB
	// knownTotal returns the number of rows, which is a part of the version. It is nil if the rows must be counted.
	knownTotal   func(Version) int64
	withoutTotal bool // List.Total is not needed
	// inOrderOfCreation is true if the rows are all videos of the organisation, with or without the stopped ones, ordered by the time of their creation.
	inOrderOfCreation bool
}

// read returns the page.
func (l *listReader[R]) read(ctx context.Context) (*db.List[R], error) {
	ofCollections := l.collectionID != nil || len(l.collections) > 0
	if l.org.at == nil && !ofCollections && !l.window.NeedsTotal() {
		return l.readInOneRoundTrip(ctx)
	}
	var err error
	if l.version, err = l.org.Version(ctx); err != nil {
		return nil, err
	}
	filtered, inOrder := l.rows, l.rows
	if ofCollections {
		if l.spec.Sequence, err = l.readSequence(ctx); err != nil {
			return nil, err
		}
		if l.spec.Sequence == nil { // the cache cannot hold the ids of all members, because the collections have too many members
			if filtered, inOrder, err = l.limitToCollections(ctx); err != nil {
				return nil, err
			}
		}
	}
	if l.spec.Sequence == nil && !l.withoutTotal {
		if l.spec.Total, err = l.countRows(ctx, filtered); err != nil {
			return nil, err
		}
		l.spec.Unchanged = l.isUnchanged
	}
	if l.spec.Sequence == nil && l.window.NeedsTotal() {
		return l.readFromPosition(ctx, inOrder)
	}
	return db.ReadList(ctx, l.org.s.db, inOrder, l.spec, l.order, l.window)
}

// usualRows is the number of rows for which readInOneRoundTrip allocates memory if it does not know how many rows the list has.
const usualRows = 100

// readInOneRoundTrip reads the version together with the first rows, in one round trip to the database. The labels and the total can need further
// round trips.
func (l *listReader[R]) readInOneRoundTrip(ctx context.Context) (*db.List[R], error) {
	l.spec.Before = new(l.org.readVersion(&l.version))
	l.spec.Expected = func() int64 {
		if l.knownTotal == nil {
			return usualRows
		}
		return l.knownTotal(l.version)
	}
	list, err := db.ReadList(ctx, l.org.s.db, l.rows, l.spec, l.order, l.window)
	if err == nil && !l.withoutTotal {
		list.Total, err = l.countRows(ctx, l.rows)
	}
	return list, err
}

// limitToCollections returns two queries for the rows that are members of the collections. "filtered" is for counting or reading all of them;
// "inOrder" is for reading a page in the order of the list. The error is ErrNotFound if l.collectionID is unknown.
func (l *listReader[R]) limitToCollections(ctx context.Context) (filtered, inOrder *gorm.DB, err error) {
	groups, err := l.org.collectionGroups(ctx, l.collectionID, l.collections)
	filtered, inOrder = l.rows, l.rows
	for _, collections := range groups {
		filtered, inOrder = l.limitTo(filtered, collections, false), l.limitTo(inOrder, collections, true)
	}
	return filtered.Session(&gorm.Session{}), inOrder.Session(&gorm.Session{}), err
}

// listKey identifies a list in the caches of a Store.
type listKey struct {
	list  [sha256.Size]byte // hash of the SQL statement, its arguments, and further values
	state listState
}

// listState identifies a state of an organisation's data. If two reads find equal states, a list has the same rows in the same order.
type listState struct{ version, videos int64 }

// key returns the cache key of the list of the rows of q in the given state. The parameter "more" has values that distinguish lists
// of the same query, such as the order.
func (l *listReader[R]) key(q *gorm.DB, state listState, more ...any) (listKey, error) {
	statement, args, err := db.Statement(q)
	if err != nil {
		return listKey{}, err
	}
	text, err := json.Marshal([]any{statement, args, more})
	return listKey{sha256.Sum256(text), state}, err
}

// orderState returns the state of the rows of the list and of their order. If the list is in the order of creation, new numbers of videos do not change
// this state, but only tracking and stopping do. The version of the labels rises whenever videos are tracked or stopped, except if they are tracked
// without collections. Then the number of tracked videos rises.
func (l *listReader[R]) orderState(v Version) listState {
	if l.inOrderOfCreation {
		return listState{v.labels, v.videos}
	}
	return listState{version: v.Version}
}

// countRows returns how many rows the query q selects. It caches the number for the version of the data,
// because counting can take longer than reading a page.
func (l *listReader[R]) countRows(ctx context.Context, q *gorm.DB) (n int64, err error) {
	if l.knownTotal != nil {
		return l.knownTotal(l.version), nil
	}
	q = q.Select("COUNT(*)")
	key, err := l.key(q, listState{version: l.version.Version})
	if err != nil {
		return 0, err
	}
	if n, ok := l.org.s.counts.get(key); ok {
		return n, nil
	}
	err = l.org.s.db.EachRow(ctx, q, func(row *db.Values) error {
		n = row.Count(0)
		return nil
	})
	if err == nil {
		l.org.s.counts.put(key, n)
	}
	return n, err
}

// newSequenceCache returns an empty cache for the order of lists of videos or accounts in collections: the ids of all rows, in order. A
// nil value says that the list has too many rows for the cache.
func newSequenceCache() *sizedCache[listKey, *db.Sequence] {
	return newSizedCache[listKey](maxSequences, maxTotalSequenceRows, (*db.Sequence).Len)
}

// readSequence returns the order of the members of the collections, or nil if there are too many rows for the cache.
func (l *listReader[R]) readSequence(ctx context.Context) (*db.Sequence, error) {
	key, err := l.key(l.rows, listState{version: l.version.Version}, l.collections, l.collectionID, l.order)
	if err != nil {
		return nil, err
	}
	if s, ok := l.org.s.sequences.get(key); ok {
		return s, nil
	}
	q, _, err := l.limitToCollections(ctx)
	if err != nil {
		return nil, err
	}
	// This reads all rows, because no database index has a collection's members in this order.
	s, err := db.ReadSequence(ctx, l.org.s.db, q, l.spec.Sort, l.order, l.org.s.maxSequenceRows)
	if err != nil && !errors.Is(err, db.ErrTooManyRows) {
		return nil, err
	}
	l.org.s.sequences.put(key, s)
	return s, nil
}

// pageStart identifies the beginning of a page of a list.
type pageStart struct {
	list   listKey // includes the order of the list, and its state
	offset int     // number of rows before the page
}

// readFromPosition reads a page of the rows of q that is far from the beginning of the list. It also stores where the page and the next page
// begin.
func (l *listReader[R]) readFromPosition(ctx context.Context, q *gorm.DB) (*db.List[R], error) {
	key, err := l.key(q, l.orderState(l.version), l.order)
	if err != nil {
		return nil, err
	}
	offset := l.window.Offset
	if start, ok := l.org.s.pageStarts.get(pageStart{key, offset}); ok {
		l.window.Offset, l.window.After = 0, &start
	}
	list, err := db.ReadList(ctx, l.org.s.db, q, l.spec, l.order, l.window)
	if err != nil {
		return nil, err
	}
	if list.Start != nil {
		l.org.s.pageStarts.put(pageStart{key, offset}, *list.Start)
	}
	if next := list.Next(); next != nil {
		l.org.s.pageStarts.put(pageStart{key, offset + list.Count()}, *next)
	}
	return list, nil
}

// isUnchanged returns true if the rows of the list and their order are still the same as in the version of the list.
func (l *listReader[R]) isUnchanged(ctx context.Context) (same bool, err error) {
	err = l.org.s.db.EachRow(ctx, l.org.scopedQuery(ctx, "organisation_totals").Select("version, labels_version, videos"), func(row *db.Values) error {
		same = l.orderState(Version{Version: row.Count(0), labels: row.Count(1), videos: row.Count(2)}) == l.orderState(l.version)
		return nil
	})
	return same, err
}
