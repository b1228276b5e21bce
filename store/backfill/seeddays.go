package backfill

import (
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// daySums has the sums of the counts of all videos at the end of one day, for one account or for an organisation.
type daySums struct {
	videos, accounts     int64
	counts               db.Counts
	firstViews           int64
	followers, following *int64 // nil if they are unknown

	fetchedAt *db.Instant // time of the last fetch on the day; nil if there was no fetch
}

// gainedViews are the columns views_gained and views_gained_7d of an account.
type gainedViews struct{ total, in7Days *int64 }

// viewsGained returns the views that the videos have gained until the end of the day, or nil if no views are known.
func (d *daySums) viewsGained() *int64 {
	if d.counts.Views == nil {
		return nil
	}
	return new(*d.counts.Views - d.firstViews)
}

// addDays adds the sums over the account's videos on each day to s.accountDays and s.days. If a value of a day is unknown, addDays uses the last known
// value. It returns the views that the account has gained until today.
func (s *seedState) addDays(a *store.Account, in *SeedAccount) (gained gainedViews) {
	first, today := firstDay(in), s.now.Day()
	if first > today {
		return gained
	}
	days := make([]daySums, today-first+1)
	for i := range in.Videos {
		in.Videos[i].addTo(days, first)
	}
	if s.days == nil {
		s.days = map[db.Date]*daySums{}
	}
	var known FollowerCounts
	next := 0
	for at := range days {
		day, d := first+db.Date(at), &days[at]
		for next < len(in.Days) && in.Days[next].Day <= day {
			db.AssignPointer(&known.Followers, in.Days[next].Followers)
			db.AssignPointer(&known.Following, in.Days[next].Following)
			next++
		}
		row := slices.Concat([]any{s.ID(), a.ID, day, known.Followers, known.Following, d.videos, d.viewsGained()}, d.counts.Values(), []any{d.fetchedAt, nil})
		if d.fetchedAt != nil {
			row[len(row)-1] = s.source
		}
		s.accountDays = append(s.accountDays, row)
		s.addDay(day, d, a.Tracked, known)
	}
	gained.total = days[today-first].viewsGained()
	if today-first >= 7 {
		if before := days[today-first-7].viewsGained(); before != nil {
			gained.in7Days = new(*gained.total - *before)
		}
	}
	return gained
}

// addTo adds the video to the sums of an account's days. days[0] is the sum of the day first.
func (v *SeedVideo) addTo(days []daySums, first db.Date) {
	var known db.Counts
	var firstViews *int64
	next := 0
	for at := range days {
		for next < len(v.Points) && v.Points[next].At.Day() <= first+db.Date(at) {
			known.Update(v.Points[next].Counts)
			if days[at].fetchedAt == nil || *days[at].fetchedAt < v.Points[next].At {
				days[at].fetchedAt = &v.Points[next].At
			}
			next++
		}
		if next == 0 {
			continue
		}
		if firstViews == nil {
			firstViews = known.Views
		}
		days[at].counts.Add(known)
		days[at].firstViews += valueOrZero(firstViews)
		if !v.Removed {
			days[at].videos++
		}
	}
}

// addDay adds the sums of an account on a day to s.days. known has the last known numbers of followers of the account; they count only if it is tracked.
func (s *seedState) addDay(day db.Date, d *daySums, tracked bool, known FollowerCounts) {
	total := s.days[day]
	if total == nil {
		total = &daySums{}
		s.days[day] = total
	}
	total.videos += d.videos
	total.counts.Add(d.counts)
	total.firstViews += d.firstViews
	if tracked {
		total.accounts++
		total.followers, total.following = db.AddKnown(total.followers, known.Followers), db.AddKnown(total.following, known.Following)
	}
}

// firstDay returns the first day for which the account has a point or a number of followers. If there is no such day, it returns MaxDate.
func firstDay(a *SeedAccount) db.Date {
	first := store.MaxDate
	if len(a.Days) > 0 {
		first = a.Days[0].Day
	}
	for i := range a.Videos {
		if p := a.Videos[i].Points; len(p) > 0 {
			first = min(first, p[0].At.Day())
		}
	}
	return first
}

// addToTotals adds the totals of the batch to the organisation's totals.
func (s *seedState) addToTotals() error {
	t := s.totals
	args := append(t.Sums.Values(), t.FirstViews, t.Videos, t.VideosRemoved, s.trackedAccounts, s.stoppedAccounts, s.followers, s.following, s.ID())
	return s.tx.Exec(`UPDATE organisation_totals SET `+db.MetricColumns("{m} = {m} + ?")+`, first_views = first_views + ?, videos = videos + ?, videos_removed = videos_removed + ?,
 accounts = accounts + ?, accounts_removed = accounts_removed + ?, followers = followers + ?, following = following + ? WHERE organisation_id = ?`, args...).Error
}

// organisationDay is a row of the table organisation_days: the sums of an organisation at the end of one day.
type organisationDay struct {
	OrganisationID uuid.UUID
	Day            db.Date
	Videos         int64
	db.Counts
	FirstViews           *int64 // nil if it was not stored on that day
	Accounts             int64
	Followers, Following *int64
}

// organisationUploads is a row of organisation_uploads: the number of videos that were uploaded on a day.
type organisationUploads struct {
	OrganisationID uuid.UUID
	Day            db.Date
	Uploads        int64
}

// addToDays adds the daily sums of the batch to organisation_days, and the numbers of uploaded videos to organisation_uploads.
func (s *seedState) addToDays() error {
	// The sums in organisation_days are correct only if Seed wrote all data of the organisation.
	var days []organisationDay
	for _, day := range slices.Sorted(maps.Keys(s.days)) {
		d := s.days[day]
		days = append(days, organisationDay{s.ID(), day, d.videos, d.counts, &d.firstViews, d.accounts, d.followers, d.following})
	}
	if err := s.addRows("organisation_days", days, append(db.MetricNames(""), "first_views", "videos", "accounts", "followers", "following")...); err != nil {
		return err
	}
	var uploads []organisationUploads
	for _, day := range slices.Sorted(maps.Keys(s.uploads)) {
		uploads = append(uploads, organisationUploads{s.ID(), day, s.uploads[day]})
	}
	return s.addRows("organisation_uploads", uploads, "uploads")
}

// addRows inserts rows into a table whose key is the organisation and the day. If a row exists,
// addRows adds the values of the named columns to this row. A value that is NULL adds nothing.
func (s *seedState) addRows(table string, rows any, columnNames ...string) error {
	sums := map[string]any{}
	for _, c := range columnNames {
		sums[c] = gorm.Expr("COALESCE(" + table + "." + c + " + excluded." + c + ", " + table + "." + c + ", excluded." + c + ")")
	}
	return s.tx.Table(table).Clauses(clause.OnConflict{
		Columns: db.Columns([]string{"organisation_id", "day"}), DoUpdates: clause.Assignments(sums),
	}).CreateInBatches(rows, db.InsertChunk).Error
}
