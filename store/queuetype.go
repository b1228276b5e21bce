package store

// Queue is the fetch queue. Its methods may be called concurrently.
type Queue struct{ db *DB }

// NewQueue returns the queue of a database. Callers outside store use Store.Queue.
func NewQueue(d *DB) *Queue { return &Queue{db: d} }
