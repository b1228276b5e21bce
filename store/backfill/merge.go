package backfill

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// mergedVideo is a video of an import: the imported data, the stored video before the import, and the video after it.
type mergedVideo struct {
	in            *ImportVideo
	isNew         bool // the organisation did not have the video
	before, after store.Video
	stored        []storedPoint // points in the database except those in toDelete, the oldest first; an imported point can replace the row of a weekly point
	toDelete      []storedPoint // points in the database that were imported without counts, and that imported points with counts replace
	added         []Point       // imported points to add, the oldest first
	addedWeekly   []weeklyPoint // the weekly points for those points of added that are older than Retention.Daily
	addedDaily    []Point       // the other points of added
	named         string        // the handle in the import, or the handle of the account whose id is in the import
	username      string        // the handle of the account; "" if account is nil
	account       *uuid.UUID    // the id of the account that the import adds to a stored video without an account; otherwise nil
}

// classifyPoints returns the results for the imported points of the video. It also sets m.added, m.addedWeekly and m.addedDaily, and moves
// replaced points from m.stored to m.toDelete.
func (m *mergedVideo) classifyPoints(uploaded UploadDate, today db.Date, retention db.Retention) []ImportResult {
	results := make([]ImportResult, len(m.in.Points))
	oldest := today - retention.Daily
	for n, p := range m.in.Points {
		if results[n] = m.classifyPoint(p, uploaded, today, retention); results[n] == PointAdded {
			m.added = append(m.added, p)
		}
	}
	m.stored = slices.DeleteFunc(m.stored, func(s storedPoint) bool {
		replaced := slices.ContainsFunc(m.added, func(p Point) bool {
			day := p.At.Day()
			return s.isReplacedBy(p) && (s.Day == day || day < oldest && s.Day.Week() == day.Week())
		})
		if replaced {
			m.toDelete = append(m.toDelete, s)
		}
		return replaced
	})
	m.addedWeekly, m.addedDaily = rollUp(m.added, oldest)
	weekly := m.addedWeekly
	for n, p := range m.in.Points {
		switch {
		case results[n] != PointAdded || p.At.Day() >= oldest:
		case p.At == weekly[0].At: // p is the last point of its week
			weekly = weekly[1:]
		default:
			results[n] = PointRolledUp // the point gets no row of its own, but the sums in account_days and organisation_days include it
		}
	}
	return results
}

// classifyPoint returns the result for one imported point. It compares the point with the upload date and with the stored points.
func (m *mergedVideo) classifyPoint(p Point, uploaded UploadDate, today db.Date, retention db.Retention) ImportResult {
	day := p.At.Day()
	switch {
	case day < today-retention.Weekly:
		return PointTooOld
	case day < uploaded.Day-UploadMargin:
		return PointBeforeUpload
	}
	if n := slices.IndexFunc(m.stored, func(s storedPoint) bool { return s.Day == day }); n >= 0 {
		switch s := m.stored[n]; {
		// A stored weekly point can have counts that the imported point lacks, because the weekly point also has counts of earlier days of the week.
		case s.Equal(p.Counts) || s.Weekly && s.Includes(p.Counts):
			return PointUnchanged
		case !s.isReplacedBy(p):
			return PointConflicts
		}
	}
	for _, s := range m.stored {
		switch {
		case s.isReplacedBy(p):
		case day >= today-retention.Daily || s.Day.Week() != day.Week():
		// In all further cases, p is older than Retention.Daily, and s is in the same week.
		case !s.Weekly || !s.isImported():
			// Keep a daily point that is not rolled up yet. Also keep a weekly point whose last daily point was
			// measured, because the days of its other daily points are unknown.
			return PointConflicts
		// The last daily point of the weekly point s was imported, and its day is later than the day of p.
		case day < s.Day:
			return PointRolledUp
		}
	}
	return PointAdded
}

// roundedImport is the text that is stored as the source of an imported point if its counts are rounded.
var roundedImport = store.StoredSource(ImportSource, true)

// isImported returns true if s was imported.
func (s *storedPoint) isImported() bool { return s.Source == ImportSource || s.Source == roundedImport }

// isReplacedBy returns true if the stored point s must be replaced by the imported point p. This is so if s was imported without any count, and p has
// at least one.
func (s *storedPoint) isReplacedBy(p Point) bool {
	return s.isImported() && s.Counts == db.Counts{} && p.Counts != db.Counts{}
}

// UploadMargin is the highest number of days by which a point can precede its video's upload date.
// Such points exist because another tracker can use another time zone.
const UploadMargin db.Date = 1

// uploadDate returns the upload date of the video. The time in a video's id can be wrong by some hours, so it is used only if there is no
// other date.
func (m *mergedVideo) uploadDate() UploadDate {
	switch {
	case m.before.UploadedAt != nil:
		return UploadDate{*m.before.UploadedAt, UploadStored}
	case m.in.UploadedAt != nil:
		return UploadDate{*m.in.UploadedAt, UploadImported}
	}
	if at, ok := link.UploadTime(m.in.Link); ok {
		return UploadDate{db.DateOf(at), UploadInID}
	}
	return UploadDate{}
}

// storedWeek returns the stored weekly point of the week that begins on monday, or nil if that week has no weekly point.
func (m *mergedVideo) storedWeek(monday db.Date) *storedPoint {
	n := slices.IndexFunc(m.stored, func(s storedPoint) bool { return s.Weekly && s.Day.Week() == monday })
	if n < 0 {
		return nil
	}
	return &m.stored[n]
}

// step has the counts of a video on the day `day` and on all later days until the next step. A count that is
// nil does not change.
type step struct {
	day db.Date
	db.Counts
}

// convertToStep converts the stored point to a step on its firstDay.
func (s *storedPoint) convertToStep() step { return step{day: s.firstDay(), Counts: s.Counts} }

// firstDay returns the day of the earliest point that s replaces, or Monday if this day is unknown. For a daily point, it returns its day.
func (s *storedPoint) firstDay() db.Date {
	switch {
	case !s.Weekly:
		return s.Day
	case s.FirstDay == nil:
		return s.Day.Week()
	}
	return *s.FirstDay
}

// steps converts the video's points to steps, and returns the oldest step first. If afterImport is
// false, steps uses the points that the video had before the import.
func (m *mergedVideo) steps(afterImport bool) []step {
	out := make([]step, 0, len(m.stored)+len(m.added))
	for _, s := range m.stored {
		out = append(out, s.convertToStep())
	}
	if !afterImport {
		for _, s := range m.toDelete {
			out = append(out, s.convertToStep())
		}
	}
	if afterImport {
		for _, p := range m.added {
			out = append(out, step{day: p.At.Day(), Counts: p.Counts})
		}
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(a.day, b.day) })
	return out
}

// firstStepWithViews returns the first step that has views, or nil if none has. For afterImport, see steps.
func (m *mergedVideo) firstStepWithViews(afterImport bool) *step {
	steps := m.steps(afterImport)
	n := slices.IndexFunc(steps, func(s step) bool { return s.Views != nil })
	if n < 0 {
		return nil
	}
	return &steps[n]
}

// setFirstViews sets the first views of the video if the import adds the earliest views.
func (m *mergedVideo) setFirstViews() {
	oldFirst, newFirst := m.firstStepWithViews(false), m.firstStepWithViews(true)
	if newFirst == nil || oldFirst != nil && oldFirst.day <= newFirst.day {
		return
	}
	// If the video had views, but their first day or the first views are not stored, the sums of the days could not be corrected.
	if m.before.Latest.Views != nil && (oldFirst == nil || m.before.FirstViews == nil) {
		return
	}
	m.after.FirstViews = newFirst.Views
}

// setLatestCounts computes LatestUpdatedAt, the latest counts and the growth of the video. It uses all points that the video has after the import.
func (m *mergedVideo) setLatestCounts() {
	v := &m.after
	if v.LatestUpdatedAt != nil && slices.ContainsFunc(m.toDelete, func(s storedPoint) bool { return s.FetchedAt == *v.LatestUpdatedAt }) {
		v.LatestUpdatedAt = nil
		for n := range m.stored {
			if at := m.stored[n].FetchedAt; v.LatestUpdatedAt == nil || at > *v.LatestUpdatedAt {
				v.LatestUpdatedAt = &at
			}
		}
	}
	for n := range m.added {
		if at := m.added[n].At; v.LatestUpdatedAt == nil || at > *v.LatestUpdatedAt {
			v.LatestUpdatedAt = &at
		}
	}
	if v.LatestUpdatedAt == nil || len(m.added) == 0 {
		return
	}
	points := make([]Point, 0, len(m.stored)+len(m.added))
	for _, s := range m.stored {
		points = append(points, Point{At: db.InstantOf(s.Day.Time()), Counts: s.Counts})
	}
	points = append(points, m.added...)
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.At.Day(), b.At.Day()) })
	var was, is, newer db.Counts
	for _, s := range m.stored {
		was.Update(s.Counts)
	}
	for _, p := range points {
		is.Update(p.Counts)
		if n := len(m.stored); n == 0 || p.At.Day() > m.stored[n-1].Day {
			newer.Update(p.Counts)
		}
	}
	hidden := m.areLikesHidden()
	for n, latest := range v.Latest.Fields() {
		if hidden && n == likesMetric {
			continue
		}
		if *latest != nil && was.All()[n] == nil {
			// No stored point has a value of this metric, so the day of the latest value is unknown. Only
			// imported points that are newer than all stored points may replace it.
			db.AssignPointer(latest, newer.All()[n])
			continue
		}
		db.AssignPointer(latest, is.All()[n])
	}
	v.LatestEngagement = v.Latest.Engagement()
	day := v.LatestUpdatedAt.Day()
	ingest.SetGrowth(v, day, lastDayWithViews(points), viewsBefore(points, day))
}
