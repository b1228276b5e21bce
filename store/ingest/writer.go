package ingest

import (
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// Writer stores the answers of sources. It stores the answer for a target in the data of each organisation that tracks the target. The methods of
// Writer can be called concurrently.
type Writer struct {
	store *store.Store
	db    *db.DB
}

// New returns a Writer for a store.
func New(s *store.Store) *Writer { return &Writer{store: s, db: s.DB()} }
