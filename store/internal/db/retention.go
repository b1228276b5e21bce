package db

import "cmp"

// Retention says for how many days the points of histories are kept. If a field is 0, its default is used.
type Retention struct {
	Daily  Date // number of days for which the point of each day is kept; for older days, only one point a week is kept
	Weekly Date // number of days for which one point of each week is kept; older points are deleted
}

// Retention returns for how many days the points of histories are kept.
func (d *DB) Retention() Retention {
	return Retention{Daily: cmp.Or(d.retention.Daily, DailyDays), Weekly: cmp.Or(d.retention.Weekly, WeeklyDays)}
}
