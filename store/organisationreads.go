package store

import (
	"context"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// AccountPoint is the state of an account on one day. A pointer is nil if the number is unknown.
type AccountPoint struct {
	Day       db.Date
	Followers *int64
	Following *int64
	Videos    int64 // number of tracked videos
	db.Counts       // sums of the latest counts of the tracked videos
	// The quality in Provenance is "corrected" if a sum is lower than in the previous point, although the number of videos is not lower. This does not prove
	// that a count fell: if a video was stopped and another one was added, the sum can fall too. No table says which videos a stored sum includes.
	Provenance
}

// accountDays selects an account's points in a range of days, the newest first, and the last point
// before the range.
var accountDays = "SELECT day, followers, following, videos, " + db.MetricColumns("{m}") + `, source, fetched_at FROM account_days
 WHERE organisation_id = @org AND account_id = @account AND day <= @to AND day >= COALESCE((SELECT MAX(d.day) FROM account_days d
 WHERE d.organisation_id = @org AND d.account_id = account_days.account_id AND d.day < @from), @from) ORDER BY day DESC`

// AccountHistory returns the points of an account on the days from..to, both inclusive, the newest first. It returns ErrNotFound for an
// unknown account.
func (o *Org) AccountHistory(ctx context.Context, ref Ref, from, to db.Date) ([]AccountPoint, error) {
	a, err := o.Account(ctx, ref)
	if err != nil {
		return nil, err
	}
	points := []AccountPoint{}
	args := map[string]any{"org": o.id, "account": a.ID, "from": from, "to": to}
	err = o.eachRow(ctx, o.s.queries.accountDays.Select(args, func(row *db.Values) error {
		p := AccountPoint{Day: row.Day(0), Followers: row.OptionalInt(1), Following: row.OptionalInt(2), Videos: row.Count(3),
			Provenance: Provenance{Quality: QualityMeasured, Source: row.OptionalText(4 + db.MetricCount), FetchedAt: row.OptionalInstant(5 + db.MetricCount)}}
		for i, count := range p.Fields() {
			*count = row.OptionalInt(4 + i)
		}
		points = append(points, p)
		return nil
	}))
	for i := range points {
		if i+1 < len(points) && points[i].Videos >= points[i+1].Videos && points[i].HasLowerCountThan(points[i+1].Counts) {
			points[i].Quality = QualityCorrected
		}
	}
	if n := len(points); n > 0 && points[n-1].Day < from {
		points = points[:n-1]
	}
	return points, err
}

// OrganisationPoint has the totals of an organisation at the end of one day. A total is nil if no video had a known count. Followers and Following are
// nil if no account had a known number.
type OrganisationPoint struct {
	Day       db.Date
	Accounts  int64 // number of tracked accounts
	Videos    int64 // number of tracked videos
	Uploads   int64 // number of the organisation's videos that were uploaded on that day
	Followers *int64
	Following *int64
	db.Counts // sums of the latest counts of all videos, including stopped videos
	// ViewsGained is the number of views that the videos gained since the previous point with totals. The views of a video on its first day are no gain.
	// ViewsGained is nil if no views are known, if there is no previous point, or if the sum of the first views is not stored for both points.
	ViewsGained *int64
	UploadsOnly bool // true if no totals are stored for the day; all numbers except Uploads are then unknown, and Accounts and Videos are 0 in the point
}

// organisationDays is a SQL query for the points of an organisation in a range of days, the newest first. It also reads the last point with totals
// before the range. A day has a point if totals are stored for it, or if videos were uploaded on it.
var organisationDays = "SELECT day, MAX(accounts), MAX(videos), MAX(uploads), MAX(followers), MAX(following), MAX(first_views), " + db.MetricColumns("MAX({m})") + ` FROM (
 SELECT day, accounts, videos, NULL AS uploads, followers, following, first_views, ` + db.MetricColumns("{m}") + ` FROM organisation_days WHERE organisation_id = @org AND day <= @to
 AND day >= COALESCE((SELECT MAX(d.day) FROM organisation_days d WHERE d.organisation_id = @org AND d.day < @from), @from)
 UNION ALL SELECT day, NULL AS accounts, NULL AS videos, uploads, NULL AS followers, NULL AS following, NULL AS first_views, ` + db.MetricColumns("NULL AS {m}") + ` FROM organisation_uploads WHERE organisation_id = @org AND day BETWEEN @from AND @to
 ) days GROUP BY day ORDER BY day DESC`

// OrganisationHistory returns the organisation's points of the days from..to, both inclusive, the newest first.
func (o *Org) OrganisationHistory(ctx context.Context, from, to db.Date) ([]OrganisationPoint, error) {
	points := []OrganisationPoint{}
	var gains []totalGain
	args := map[string]any{"org": o.id, "from": from, "to": to}
	err := o.eachRow(ctx, o.s.queries.organisationDays.Select(args, func(row *db.Values) error {
		p := OrganisationPoint{Day: row.Day(0), Accounts: row.Count(1), Videos: row.Count(2), Uploads: row.Count(3), Followers: row.OptionalInt(4), Following: row.OptionalInt(5),
			UploadsOnly: row.OptionalInt(2) == nil}
		for i, sum := range p.Fields() {
			*sum = row.OptionalInt(7 + i)
		}
		firstViews, known := row.Int(6)
		points, gains = append(points, p), append(gains, totalGain{row.Count(7) - firstViews, known})
		return nil
	}))
	setViewsGained(points, gains)
	if n := len(points); n > 0 && points[n-1].Day < from {
		points = points[:n-1]
	}
	return points, err
}

// totalGain is the views minus the first views of an organisation at the end of a day. It is known only if the sum of the first views is stored for
// the day.
type totalGain struct {
	views int64
	known bool
}

// setViewsGained sets ViewsGained of the points, which are ordered with the newest first. gains has the total of each point.
func setViewsGained(points []OrganisationPoint, gains []totalGain) {
	next := -1 // index of the point with totals that follows in time, which is the previous one in the slice
	for i := range points {
		if points[i].UploadsOnly {
			continue
		}
		if next >= 0 && points[next].Views != nil && gains[next].known && gains[i].known {
			gains[next].views -= gains[i].views
			points[next].ViewsGained = &gains[next].views
		}
		next = i
	}
}

// Statistics has the numbers of tracked and stopped videos of an organisation, or the numbers of its tracked and stopped accounts.
type Statistics struct {
	Total      int64                   // number of tracked videos, or of tracked accounts
	Removed    int64                   // number of videos, or of accounts, whose tracking was stopped
	ByPlatform map[link.Platform]int64 // number of tracked videos or accounts of each platform; platforms without a video or account are left out
	ByStatus   map[FetchStatus]int64   // number of tracked and stopped videos or accounts for each fetch status; statuses without a video or account are left out
}

// VideoStatistics counts the organisation's tracked and stopped videos.
func (o *Org) VideoStatistics(ctx context.Context) (Statistics, error) {
	return o.countByPlatform(ctx, "videos", "NOT removed")
}

// AccountStatistics counts the organisation's tracked and stopped accounts. It does not count accounts that exist only because videos are
// linked to them.
func (o *Org) AccountStatistics(ctx context.Context) (Statistics, error) {
	return o.countByPlatform(ctx, "accounts", "tracked")
}

// countByPlatform counts the tracked and stopped rows of the table by platform. trackedCondition is a SQL condition that is true for tracked rows.
func (o *Org) countByPlatform(ctx context.Context, table, trackedCondition string) (Statistics, error) {
	s := Statistics{ByPlatform: map[link.Platform]int64{}, ByStatus: map[FetchStatus]int64{}}
	var rows []struct {
		Platform link.Platform
		Status   FetchStatus
		Tracked  int64
		Removed  int64
	}
	err := o.scopedQuery(ctx, table).Select("platform, "+statusSQL+" AS status, SUM(CASE WHEN "+trackedCondition+" THEN 1 ELSE 0 END) AS tracked, SUM(CASE WHEN removed THEN 1 ELSE 0 END) AS removed",
		queue.DelayableStatuses, lateCutoff(o.s.db.Now()), queue.FetchDelayed).Group("1, 2").Find(&rows).Error
	for _, r := range rows {
		s.Total, s.Removed = s.Total+r.Tracked, s.Removed+r.Removed
		if r.Tracked > 0 {
			s.ByPlatform[r.Platform] += r.Tracked
		}
		if n := r.Tracked + r.Removed; n > 0 {
			s.ByStatus[r.Status] += n
		}
	}
	return s, db.Translate(err)
}
