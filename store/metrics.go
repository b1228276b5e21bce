package store

import "github.com/reeltally/reeltally/store/internal/db"

// Sums are the counts of several videos added up. An unknown count adds nothing.
type Sums struct {
	Views     int64
	Likes     int64
	Comments  int64
	Shares    int64
	Bookmarks int64
}

// Fields returns pointers to the sums in the order of the metrics, so that a caller can change the sums.
func (s *Sums) Fields() [db.MetricCount]*int64 {
	return [db.MetricCount]*int64{&s.Views, &s.Likes, &s.Comments, &s.Shares, &s.Bookmarks}
}

// Values returns the sums in the order of the metrics, to be used as parameters of a SQL statement.
func (s *Sums) Values() []any {
	values := make([]any, db.MetricCount)
	for i, n := range s.Fields() {
		values[i] = *n
	}
	return values
}

// Add adds the given counts to the sums. It skips unknown counts.
func (s *Sums) Add(c db.Counts) {
	for i, sum := range s.Fields() {
		if n := c.All()[i]; n != nil {
			*sum += *n
		}
	}
}

// Subtract subtracts the sums of other from s, metric by metric.
func (s *Sums) Subtract(other Sums) {
	for i, sum := range s.Fields() {
		*sum -= *other.Fields()[i]
	}
}
