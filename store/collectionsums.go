package store

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// videoSums is a SQL query for two sums over the tracked videos of each collection: their number, and their known latest views. A video counts
// only once in a collection. For speed, the query first counts each account's videos.
const videoSums = `
SELECT counts.collection_id, SUM(counts.n) AS n, SUM(counts.views) AS views FROM (
SELECT m.collection_id, SUM(per.n) AS n, SUM(per.views) AS views FROM collection_accounts m
  JOIN (SELECT v.linked_account_id, COUNT(*) AS n, SUM(v.latest_views) AS views FROM videos v WHERE v.organisation_id = @org AND {v} AND NOT v.removed GROUP BY v.linked_account_id) AS per
    ON per.linked_account_id = m.account_id
 WHERE m.organisation_id = @org AND {m} GROUP BY m.collection_id
UNION ALL
SELECT d.collection_id, COUNT(*) AS n, SUM(vd.latest_views) AS views FROM collection_videos d
  JOIN videos vd ON vd.organisation_id = d.organisation_id AND vd.id = d.video_id
 WHERE d.organisation_id = @org AND {d} AND NOT vd.removed
   AND NOT EXISTS (SELECT 1 FROM collection_accounts da WHERE da.organisation_id = @org AND da.collection_id = d.collection_id AND da.account_id = vd.linked_account_id)
 GROUP BY d.collection_id
UNION ALL
SELECT tagged.collection_id, COUNT(*) AS n, SUM(vh.latest_views) AS views FROM (
 SELECT DISTINCT mh.collection_id, h.video_id FROM collection_hashtags mh
   JOIN video_hashtags h ON h.organisation_id = mh.organisation_id AND h.tag = mh.tag
  WHERE mh.organisation_id = @org AND {mh}) AS tagged
  JOIN videos vh ON vh.organisation_id = @org AND vh.id = tagged.video_id
 WHERE NOT vh.removed
   AND NOT EXISTS (SELECT 1 FROM collection_accounts ha WHERE ha.organisation_id = @org AND ha.collection_id = tagged.collection_id AND ha.account_id = vh.linked_account_id)
   AND NOT EXISTS (SELECT 1 FROM collection_videos hv WHERE hv.organisation_id = @org AND hv.collection_id = tagged.collection_id AND hv.video_id = vh.id)
 GROUP BY tagged.collection_id) AS counts GROUP BY counts.collection_id`

// accountCounts is a SQL query for the number of accounts by collection. It leaves out accounts
// whose tracking was stopped.
const accountCounts = `
SELECT m.collection_id, COUNT(*) AS n FROM collection_accounts m
  JOIN accounts a ON a.organisation_id = m.organisation_id AND a.id = m.account_id
 WHERE m.organisation_id = @org AND {m} AND NOT a.removed GROUP BY m.collection_id`

// forAll and forOne replace the placeholders in videoSums and accountCounts. forAll selects every
// collection of the organisation, and forOne selects the collection @id.
var (
	forAll = strings.NewReplacer("{m}", "TRUE", "{d}", "TRUE", "{mh}", "TRUE",
		"{v}", "v.linked_account_id IN (SELECT va.account_id FROM collection_accounts va WHERE va.organisation_id = @org)")
	forOne = strings.NewReplacer("{m}", "m.collection_id = @id", "{d}", "d.collection_id = @id", "{mh}", "mh.collection_id = @id",
		"{v}", "v.linked_account_id IN (SELECT va.account_id FROM collection_accounts va WHERE va.organisation_id = @org AND va.collection_id = @id)")
)

// CollectionSum has the sums over the tracked videos of a collection, without the videos of the collections below it.
type CollectionSum struct {
	Videos int64  // number of tracked videos; equal to Collection.VideoCount
	Views  *int64 // sum of the known latest views; nil if the views of no video are known
}

// CollectionSums returns the sums of each collection of the organisation. The key is the id of the collection. Collections without tracked
// videos are not in the map.
func (o *Org) CollectionSums(ctx context.Context) (map[uuid.UUID]CollectionSum, error) {
	sums := map[uuid.UUID]CollectionSum{}
	// PostgreSQL adds up integers as numeric, which EachRow cannot read.
	q := o.s.db.Read(ctx).Raw("SELECT s.collection_id, CAST(s.n AS bigint), CAST(s.views AS bigint) FROM ("+forAll.Replace(videoSums)+") AS s", map[string]any{"org": o.id})
	err := o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		sums[row.ID(0)] = CollectionSum{Videos: row.Count(1), Views: row.OptionalInt(2)}
		return nil
	})
	return sums, err
}
