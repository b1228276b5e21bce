package store

// SetMaxSequence changes the maximum number of rows of a list whose order is kept in memory.
func SetMaxSequence(s *Store, rows int) { s.maxSequence = rows }

// SetMaxSequenceRows changes the maximum number of rows of all lists whose order is kept in memory.
func SetMaxSequenceRows(s *Store, rows int64) { s.sequences.maxRows = rows }

// SequenceRows returns the number of rows of all lists whose order is in memory.
func SequenceRows(s *Store) int64 { return s.sequences.rows }
