package backfill

import (
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// This file rolls up the points of old weeks, as retention does: for each week, one weekly point is stored instead of the daily points.

// weeklyPoint is the point that is stored for an old week. It has the time of the last point of the week, and the last known counts in the week.
type weeklyPoint struct {
	Point
	firstDay   db.Date // the day of the earliest point of the week
	firstViews *int64  // the views of this point; nil if they are unknown
}

// week returns the Monday of the week.
func (w *weeklyPoint) week() db.Date { return w.At.Day().Week() }

// firstDayForDailyPoints returns the first day for which daily points are stored. For older days, weekly points are stored.
func firstDayForDailyPoints(o *store.Org, today db.Date) db.Date {
	return today - store.DatabaseOf(o).Retention().Daily
}

// rollUp returns the weekly and the daily points that are stored for a video's points. A point before firstDaily belongs to the weekly point of its
// week. The points must be ordered by time, and so are the results.
func rollUp(points []Point, firstDaily db.Date) (weekly []weeklyPoint, daily []Point) {
	for n, p := range points {
		day := p.At.Day()
		if day >= firstDaily {
			return weekly, points[n:]
		}
		if last := len(weekly) - 1; last >= 0 && weekly[last].week() == day.Week() {
			weekly[last].add(p)
		} else {
			weekly = append(weekly, weeklyPoint{p, day, p.Views})
		}
	}
	return weekly, nil
}

// add adds a later point of the same week to w.
func (w *weeklyPoint) add(p Point) {
	w.At = p.At
	w.Update(p.Counts)
	w.Rounded = w.Rounded || p.Rounded
}

// addStored returns the weekly point that replaces the stored weekly point of the same week. It has the stored counts that w lacks.
func (w weeklyPoint) addStored(stored *storedPoint) weeklyPoint {
	counts := stored.Counts
	counts.Update(w.Counts)
	w.Counts = counts
	w.Rounded = w.Rounded || stored.Source == roundedImport
	if stored.firstDay() <= w.firstDay {
		w.firstDay, w.firstViews = stored.firstDay(), stored.FirstDayViews
	}
	return w
}

// pointColumns are the last columns of the tables of points.
var pointColumns = append(db.MetricNames(""), "fetched_at", "source")

// dailyColumns are the columns of snapshots_daily, in the order of the values in dailyRow.
var dailyColumns = slices.Concat([]string{"organisation_id", "video_id", "day", "week"}, pointColumns)

// dailyRow returns the row of a daily point.
func dailyRow(org, video uuid.UUID, p Point, source string) []any {
	day := p.At.Day()
	return slices.Concat([]any{org, video, day, day.Week()}, p.Values(), []any{p.At, source})
}

// weeklyColumns are the columns of snapshots_weekly, in the order of the values in weeklyRow.
var weeklyColumns = slices.Concat([]string{"organisation_id", "video_id", "week", "first_day", "first_day_views", "day"}, pointColumns)

// weeklyRow returns the row of a weekly point.
func weeklyRow(org, video uuid.UUID, w weeklyPoint, source string) []any {
	return slices.Concat([]any{org, video, w.week(), w.firstDay, w.firstViews, w.At.Day()}, w.Values(), []any{w.At, source})
}
