package store

// SetMaxSequence changes the maximum number of rows of a list whose order is kept in memory.
func SetMaxSequence(s *Store, rows int) { s.maxSequence = rows }
