package ingest

import (
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// Writer writes the answers of sources to the data of all organisations that track a target. Its methods can be called concurrently.
type Writer struct {
	store *store.Store
	db    *db.DB
}

// New returns a Writer for a store.
func New(s *store.Store) *Writer { return &Writer{store: s, db: s.DB()} }
