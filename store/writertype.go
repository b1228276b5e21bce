package store

// Writer writes what sources answer to the data of all organisations that track the target. Its methods may be called concurrently.
type Writer struct{ db *DB }

// NewWriter returns a Writer for a store.
func NewWriter(s *Store) *Writer { return &Writer{db: s.DB()} }
