package store

// SetMaxSequenceRows changes the number of rows above which a list is not kept in memory.
func SetMaxSequenceRows(s *Store, rows int) { s.maxSequenceRows = rows }

// SetMaxTotalSequenceRows changes the maximum number of rows, added up over all lists, that are kept in memory.
func SetMaxTotalSequenceRows(s *Store, rows int64) { s.sequences.maxRows = rows }

// TotalSequenceRows returns the number of rows, added up over all lists, that are in memory.
func TotalSequenceRows(s *Store) int64 { return s.sequences.rows }
