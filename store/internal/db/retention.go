package db

import "cmp"

// Retention says for how many days the points of histories are kept. A zero field means its default.
type Retention struct {
	Daily  Date // number of days for which the point of each day is kept; older history has one point a week
	Weekly Date // number of days for which the point of each week is kept
}

// Retention returns for how many days the points of histories are kept.
func (d *DB) Retention() Retention {
	return Retention{Daily: cmp.Or(d.retention.Daily, DailyDays), Weekly: cmp.Or(d.retention.Weekly, WeeklyDays)}
}
