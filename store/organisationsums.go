package store

import (
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// organisationTotals are the running sums of an organisation; every transaction that changes what they count changes
// them too.
type organisationTotals struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	Videos         int64     // tracked now
	VideosRemoved  int64     // tracked once, stopped
	Views          int64     // of the latest counts of all videos, also the stopped ones
	Likes          int64
	Comments       int64
	Shares         int64
	Bookmarks      int64
	Version        Instant // see Org.Version
}

func (organisationTotals) TableName() string { return "organisation_totals" }

// sums adds up the latest counts of videos, by organisation.
func sums(videos []Video) map[uuid.UUID]organisationTotals {
	byOrg := map[uuid.UUID]organisationTotals{}
	add := func(to *int64, n *int64) {
		if n != nil {
			*to += *n
		}
	}
	for i := range videos {
		t := byOrg[videos[i].OrganisationID]
		add(&t.Views, videos[i].LatestViews)
		add(&t.Likes, videos[i].LatestLikes)
		add(&t.Comments, videos[i].LatestComments)
		add(&t.Shares, videos[i].LatestShares)
		add(&t.Bookmarks, videos[i].LatestBookmarks)
		byOrg[videos[i].OrganisationID] = t
	}
	return byOrg
}

// addToTotals moves the organisations' sums by what changed and notes them as the day's.
func (w writer) addToTotals(before, after map[uuid.UUID]organisationTotals) error {
	if err := addSums(w.tx, before, after); err != nil {
		return err
	}
	return saveOrganisationDays(w.tx, slices.Collect(maps.Keys(after)), w.fetchedAt.Day())
}

// addSums moves the organisations' sums by what changed.
func addSums(tx *gorm.DB, before, after map[uuid.UUID]organisationTotals) error {
	for chunk := range slices.Chunk(distinct(slices.Collect(maps.Keys(after))), insertChunk) {
		rows := make([][]any, len(chunk))
		for i, org := range chunk {
			from, to := before[org], after[org]
			rows[i] = []any{org, to.Views - from.Views, to.Likes - from.Likes, to.Comments - from.Comments, to.Shares - from.Shares, to.Bookmarks - from.Bookmarks}
		}
		list, args := with(tx, "grown", []string{"organisation_id uuid", "views bigint", "likes bigint", "comments bigint", "shares bigint", "bookmarks bigint"}, rows)
		err := tx.Exec(list+`UPDATE organisation_totals SET views = organisation_totals.views + grown.views, likes = organisation_totals.likes + grown.likes,
 comments = organisation_totals.comments + grown.comments, shares = organisation_totals.shares + grown.shares, bookmarks = organisation_totals.bookmarks + grown.bookmarks
 FROM grown WHERE organisation_totals.organisation_id = grown.organisation_id`, args...).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// saveOrganisationDays notes the organisations' sums as the day's. Of a day after which others were noted already, since an
// answer came before midnight and is written after it, the sums are of the last of those: they hold what came later.
func saveOrganisationDays(tx *gorm.DB, orgs []uuid.UUID, day Date) error {
	for chunk := range slices.Chunk(distinct(orgs), insertChunk) {
		list, args := withOrgs(tx, chunk)
		err := tx.Exec(list+`INSERT INTO organisation_days (organisation_id, day, accounts, videos, followers, following, views, likes, comments, shares, bookmarks)
SELECT t.organisation_id, COALESCE((SELECT MAX(d.day) FROM organisation_days d WHERE d.organisation_id = t.organisation_id AND d.day > ?), CAST(? AS `+dateType(tx)+`)),
  t.accounts, t.videos, t.followers, t.following, t.views, t.likes, t.comments, t.shares, t.bookmarks
  FROM wanted CROSS JOIN organisation_totals t WHERE t.organisation_id = wanted.organisation_id
ON CONFLICT (organisation_id, day) DO UPDATE SET accounts = excluded.accounts, videos = excluded.videos, followers = excluded.followers,
 following = excluded.following, views = excluded.views, likes = excluded.likes, comments = excluded.comments, shares = excluded.shares,
 bookmarks = excluded.bookmarks`, append(args, day, day)...).Error
		if err != nil {
			return err
		}
	}
	return nil
}
