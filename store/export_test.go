package store

// SetMaxRowsPerList changes the maximum number of rows of a list in memory. Longer lists are not kept in memory.
func SetMaxRowsPerList(s *Store, rows int) { s.maxSequenceRows = rows }

// SetMaxCachedRows changes the maximum number of rows of all lists in memory together.
func SetMaxCachedRows(s *Store, rows int64) { s.sequences.maxRows = rows }

// CountCachedRows returns the number of rows of all lists in memory together.
func CountCachedRows(s *Store) int64 { return s.sequences.rows }
