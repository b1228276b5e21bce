package store

import (
	"context"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// maxPageStarts is the maximum number of pages whose position a Store remembers.
const maxPageStarts = 10_000

// pageStart identifies the beginning of a page of a list.
type pageStart struct {
	list   listKey // includes the order of the list and the version of the data
	offset int     // number of rows before the page
}

// readList reads the window w as db.ReadList does. If w is far from the beginning of the list,
// readList also stores where w and the next window begin.
func readList[R any](ctx context.Context, o *Org, v Version, q *gorm.DB, spec db.ListSpec[R], order db.Order, w db.Window) (*db.List[R], error) {
	if spec.Sequence != nil || !w.NeedsTotal() {
		return db.ReadList(ctx, o.s.db, q, spec, order, w)
	}
	key, err := keyOfList(v, q, order)
	if err != nil {
		return nil, db.Translate(err)
	}
	offset := w.Offset
	if start, ok := o.s.pageStarts.get(pageStart{key, offset}); ok {
		w.Offset, w.After = 0, &start
	}
	list, err := db.ReadList(ctx, o.s.db, q, spec, order, w)
	if err != nil {
		return nil, err
	}
	if list.Start != nil {
		o.s.pageStarts.put(pageStart{key, offset}, *list.Start)
	}
	if next := list.Next(); next != nil {
		o.s.pageStarts.put(pageStart{key, offset + list.Count()}, *next)
	}
	return list, nil
}
