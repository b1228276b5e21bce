package store

import (
	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// OrganisationTotals is the row with the current sums over all videos of an organisation. Every transaction that changes videos or their
// latest counts updates the row.
type OrganisationTotals struct {
	OrganisationID uuid.UUID  `gorm:"primaryKey"`
	Videos         int64      // number of tracked videos
	VideosRemoved  int64      // number of videos whose tracking was stopped
	VideoSums                 // sums over all videos, including stopped videos
	Version        db.Instant // rises with every change of the organisation's data
}

// TableName returns the name of the table for GORM.
func (OrganisationTotals) TableName() string { return "organisation_totals" }

// VideoSums are sums over several videos of an organisation.
type VideoSums struct {
	Sums             // sums of the latest counts
	FirstViews int64 // sum of Video.FirstViews
}

// AddVideo adds the latest counts and the first views of a video to the sums. It skips unknown numbers.
func (s *VideoSums) AddVideo(v *Video) {
	s.Add(v.Latest)
	if v.FirstViews != nil {
		s.FirstViews += *v.FirstViews
	}
}

// SumsByOrganisation adds up the numbers of the given videos for each organisation. The key is the id of the organisation.
func SumsByOrganisation(videos []Video) map[uuid.UUID]VideoSums {
	byOrg := map[uuid.UUID]VideoSums{}
	for i := range videos {
		sums := byOrg[videos[i].OrganisationID]
		sums.AddVideo(&videos[i])
		byOrg[videos[i].OrganisationID] = sums
	}
	return byOrg
}

// StatementsForOrganisationDays returns statements that write the organisations' current totals for the given
// day. If an organisation already has rows for later days, the row of its latest day is updated instead.
func StatementsForOrganisationDays(tx *gorm.DB, orgs []uuid.UUID, day db.Date) []db.Write {
	return db.Orgs(db.Distinct(orgs)).StatementsForExec(tx, organisationDaysInsert(tx, ""), day, day, 0, 0)
}

// statementsForToday returns statements that write the organisation's totals for today, with the given number of videos added. This number must be
// added to the totals later. Before the first fetch, the statements write nothing, because no counts are known.
func (t OrgTx) statementsForToday(newVideos int) []db.Write {
	today := t.Now.Day()
	return db.Orgs([]uuid.UUID{t.id}).StatementsForExec(t.Tx, organisationDaysInsert(t.Tx, " AND EXISTS (SELECT 1 FROM organisation_days d WHERE d.organisation_id = {org})"),
		today, today, 0, newVideos)
}

// organisationDaysInsert returns an INSERT of totals into organisation_days. Its parameters are the day, twice, and the numbers of accounts and
// videos that are added to the stored totals. The condition is appended to the WHERE clause.
func organisationDaysInsert(tx *gorm.DB, condition string) string {
	// A later row can exist if a fetch from before midnight is stored after midnight. The totals then include
	// fetches of the later day.
	return `INSERT INTO organisation_days (organisation_id, day, accounts, videos, first_views, followers, following, ` + db.MetricColumns("{m}") + `)
SELECT t.organisation_id, COALESCE((SELECT MAX(d.day) FROM organisation_days d WHERE d.organisation_id = {org} AND d.day > ?), CAST(? AS ` + db.DateType(tx) + `)),
  t.accounts + ?, t.videos + ?, t.first_views, ` + nullIfUnknown("followers", "accounts", "latest_followers_count") + `, ` + nullIfUnknown("following", "accounts", "latest_following_count") + `,
  ` + db.MetricColumns(nullIfUnknown("{m}", "videos", "latest_{m}")) + `
  FROM wanted CROSS JOIN organisation_totals t WHERE t.organisation_id = {org}` + condition + `
ON CONFLICT (organisation_id, day) DO UPDATE SET accounts = excluded.accounts, videos = excluded.videos, first_views = excluded.first_views,
 followers = excluded.followers, following = excluded.following, ` + db.MetricColumns("{m} = excluded.{m}")
}

// nullIfUnknown returns a SQL expression for a total of organisation_totals, which is the sum of the given column of a table. The expression is
// NULL if the column is NULL in all rows of the organisation.
func nullIfUnknown(total, table, column string) string {
	// The database reads the maximum only if the total is 0. It finds the maximum in the first entry of an index.
	return `CASE WHEN t.` + total + ` <> 0 OR (SELECT MAX(s.` + column + `) FROM ` + table + ` s WHERE s.organisation_id = {org}) IS NOT NULL THEN t.` + total + ` END`
}
