package db

import (
	"cmp"
	"strings"
)

// MetricCount is the number of metrics.
const MetricCount = 5

// metricColumns are the metrics' columns, in the order of Counts.All. To add a metric:
//
//   - extend Counts and store.Sums and their methods, and the columns of Video and Account in store/rows.go
//   - add the columns NAME, latest_NAME and total_NAME in a migration
//   - extend ingest.VideoFacts, store.VideoOrders and the API contract
var metricColumns = [MetricCount]string{"views", "likes", "comments", "shares", "bookmarks"}

// MetricColumns makes a copy of format for each metric, and joins the copies with ", ". In each copy, it replaces {m} by the name of the metric's
// column.
func MetricColumns(format string) string { return JoinMetrics(format, ", ") }

// JoinMetrics makes a copy of format for each metric, and joins the copies with separator. In each copy, it replaces {m} by the name of the
// metric's column.
func JoinMetrics(format, separator string) string {
	var parts [MetricCount]string
	for i, column := range metricColumns {
		parts[i] = strings.ReplaceAll(format, "{m}", column)
	}
	return strings.Join(parts[:], separator)
}

// MetricNames returns, for each metric, the prefix followed by the name of the metric's column.
func MetricNames(prefix string) []string {
	names := make([]string, MetricCount)
	for i, column := range metricColumns {
		names[i] = prefix + column
	}
	return names
}

// MetricDefinitions returns the name and the SQL type of the column of each metric. For the prefix "latest_", the first text is "latest_views bigint".
func MetricDefinitions(prefix string) []string {
	return strings.Split(MetricColumns(prefix+"{m} bigint"), ", ")
}

// Counts are the metrics of a video at one time. A metric is nil if the source did not report it. The order of the metrics is
// the order of the fields.
type Counts struct {
	Views     *int64
	Likes     *int64
	Comments  *int64
	Shares    *int64
	Bookmarks *int64
}

// All returns the counts in the order of the metrics.
func (c *Counts) All() [MetricCount]*int64 {
	return [MetricCount]*int64{c.Views, c.Likes, c.Comments, c.Shares, c.Bookmarks}
}

// Fields returns pointers to the counts in the order of the metrics, so that a caller can set the counts.
func (c *Counts) Fields() [MetricCount]**int64 {
	return [MetricCount]**int64{&c.Views, &c.Likes, &c.Comments, &c.Shares, &c.Bookmarks}
}

// Values returns the counts in the order of the metrics, to be used as parameters of a SQL statement.
func (c *Counts) Values() []any {
	values := make([]any, MetricCount)
	for i, n := range c.All() {
		values[i] = n
	}
	return values
}

// EngagementCounts returns the four counts that Engagement adds up.
func (c Counts) EngagementCounts() [4]*int64 {
	return [4]*int64{c.Likes, c.Comments, c.Bookmarks, c.Shares}
}

// Engagement returns likes + comments + bookmarks + shares. An unknown count adds nothing. If all four counts are unknown, the sum is nil.
func (c Counts) Engagement() *int64 {
	var sum int64
	known := false
	for _, n := range c.EngagementCounts() {
		if n != nil {
			sum, known = sum+*n, true
		}
	}
	if !known {
		return nil
	}
	return &sum
}

// HasLowerCountThan returns true if at least one count is lower than its older value. It ignores counts that are unknown, and counts whose older
// value is unknown.
func (c Counts) HasLowerCountThan(older Counts) bool {
	was := older.All()
	for i, now := range c.All() {
		if now != nil && was[i] != nil && *now < *was[i] {
			return true
		}
	}
	return false
}

// Update sets each count to its newer value. A count whose newer value is unknown stays the same.
func (c *Counts) Update(newer Counts) {
	given := newer.All()
	for i, field := range c.Fields() {
		AssignPointer(field, given[i])
	}
}

// Add adds the given counts. An unknown count adds nothing.
func (c *Counts) Add(other Counts) {
	given := other.All()
	for i, sum := range c.Fields() {
		*sum = AddKnown(*sum, given[i])
	}
}

// AddKnown returns a + b. If one of them is nil, it returns the other. If both are nil, it returns nil.
func AddKnown(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// Equal returns true if all counts are equal. An unknown count is equal only to an unknown count.
func (c Counts) Equal(other Counts) bool {
	others := other.All()
	for i, n := range c.All() {
		if (n == nil) != (others[i] == nil) || n != nil && *n != *others[i] {
			return false
		}
	}
	return true
}

// Includes returns true if each known count in other has the same value in c.
func (c Counts) Includes(other Counts) bool {
	known := c
	known.Update(other)
	return c.Equal(known)
}
