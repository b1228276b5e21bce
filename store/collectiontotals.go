package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// This file adds up the counts of a collection's videos by day. A video counts once, even if the
// collection's descendants also contain the video.

const (
	// MaxTotalsVideos is the highest number of videos whose counts CollectionTotals adds up. For a larger collection, CollectionTotals returns a
	// *LimitError.
	MaxTotalsVideos = 5000
	// MaxTotalsVideoDays limits the number of videos multiplied by the number of days. docs/evidence/reads.md has the CPU time at the limit.
	MaxTotalsVideoDays = 155_000
	// MaxReportPoints is the highest number of stored points that are read for a report.
	MaxReportPoints = 75_000
	// maxCachedTotals is the maximum number of results of CollectionTotals in memory.
	maxCachedTotals = 1000
	// maxCachedTotalsRows is the maximum number of videos and days of these results, added up over all results. It limits the memory to about
	// 10 megabytes.
	maxCachedTotalsRows = 30_000
)

// CollectionTotalsQuery is the argument of the method Org.CollectionTotals. It selects the videos and the days whose counts this method adds up.
type CollectionTotalsQuery struct {
	Collection      uuid.UUID
	IncludeChildren bool    // include the videos of all collections below the collection
	From, To        db.Date // first and last day of the period
	// ForReport is true if the result must also contain the details of each video, and its stored points: the counts of single days.
	ForReport bool
	// WithPrevious is true if the result must also contain the numbers of the previous period: the days before From, as many as the period has.
	WithPrevious bool
}

// CollectionTotals has the counts of the videos of a collection, added up for each day.
type CollectionTotals struct {
	Collections []CollectionName  // the collection, and all collections below it if CollectionTotalsQuery.IncludeChildren is true
	Days        []CollectionDay   // one entry for each day on which the collection had a video, the oldest first
	Videos      []CollectionVideo // the videos, ordered by id, without videos that were added after the last day
	// Previous has the numbers of the previous period. It is set if CollectionTotalsQuery.WithPrevious is true. If both periods together have too many
	// days for the number of videos, Gained is nil and Counted is 0.
	Previous *PreviousPeriod
}

// PreviousPeriod says how many views the videos of a collection gained in a previous period.
type PreviousPeriod struct {
	Gained *int64 // sum of the known gains, as CollectionGains.Gained of the previous period; nil if no gain is known
	// Counted is the number of videos whose gains count on all days of the previous period. On the day before it, these videos were already in the
	// collection, and their views were known.
	Counted int64
}

// CollectionName is the id and name of a collection.
type CollectionName struct {
	ID   uuid.UUID
	Name string
}

// CollectionDay has the counts of one day, added up over the videos that are in the collection on that day.
type CollectionDay struct {
	Day          db.Date
	Videos       int64 // number of videos in the collection on this day
	Added        int64 // number of videos that were added on this day
	Measured     int64 // number of videos with a stored point of this day
	Rounded      int64 // number of videos for which the source has probably rounded a count of this day
	Interpolated int64 // number of videos without a point of this day, but with points before and after it; some or all of their counts can be unknown
	Carried      int64 // number of videos whose last point is of an earlier day; the counts of that day are used
	WithoutPoint int64 // number of videos with no stored point up to this day
	Sums               // sums of the last known counts of the videos, up to this day
	Unknown      Sums  // for each metric: the number of videos whose count is unknown on this day and before
	// UnknownEngagements is the number of videos whose likes, comments, bookmarks and shares are all unknown.
	UnknownEngagements int64

	ViewsGained    int64 // sum over all videos: views minus the last known views before this day
	KnownGains     int64 // number of videos that ViewsGained includes: those whose views were known before this day, and that were not added on it
	ViewsCorrected int64 // sum of the changes of the videos whose views fell: 0 or a negative number; ViewsGained includes it
	ViewsFromAdded int64 // sum of the views at the end of this day, but only of videos that were added on this day
	// ViewsFromKnown is the sum of the views of videos whose views were unknown until this day. Views changes from day to day by
	// ViewsGained + ViewsFromAdded + ViewsFromKnown.
	ViewsFromKnown int64
}

// CollectionVideo is a video of a collection, with the views that it gained in the period.
type CollectionVideo struct {
	ID      uuid.UUID
	Link    string
	Removed bool
	AddedAt db.Instant // when the video became a member of the collection

	// counted says for each metric whether a stored point can have its count.
	counted countSet

	// FrozenViews are the video's views at the end of the earlier report, if the totals are for a report that continues an earlier one. They are used in
	// place of the views of the day before the period. They are nil for other totals, if the video was added to the collection after the end of the
	// earlier report, or if that report has no views of it.
	FrozenViews *int64  `gorm:"-"`
	FrozenDay   db.Date `gorm:"-"` // the day of FrozenViews
	// LateFrozenDay is true if the views of FrozenDay changed after the earlier report, so that a part of the gain is of this day.
	LateFrozenDay bool `gorm:"-"`

	StartDay   *db.Date `gorm:"-"` // the day of StartViews; nil if no views are known
	EndDay     *db.Date `gorm:"-"` // the last day whose views are known, up to the end of the period; nil if no views are known
	StartViews *int64   `gorm:"-"` // the views of the day before the period, or else the first known views in the period
	EndViews   *int64   `gorm:"-"` // the views of EndDay; nil if no views are known
	// Gained is EndViews minus StartViews. It is nil if no views are known. It is also nil if EndDay is not after StartDay, unless EndViews differs from
	// FrozenViews.
	Gained *int64 `gorm:"-"`

	StoredPoints []Point      `gorm:"-"` // the points from which the counts are computed, the oldest first; only set if CollectionTotalsQuery.ForReport is true
	Details      VideoDetails `gorm:"-"` // only set if CollectionTotalsQuery.ForReport is true, and by DetailedCollectionTotals
}

// VideoDetails are the facts that a report has of a video, besides its link and its counts.
type VideoDetails struct {
	ID         uuid.UUID // id of the video
	Platform   link.Platform
	AccountID  *uuid.UUID // the account of the video; nil if it is unknown
	Username   string     // name of the account; "" if it is unknown
	Title      string     // at most 300 characters of the caption, with "…" if it is longer
	UploadedAt *db.Date   // nil if it is unknown
}

// IsNewInPeriod returns true if a video was uploaded in the period from the day from to the day to, and its first known views are of a day of the period, too.
// The views at the start of such a video are not part of its gain, but they are views of this period.
func IsNewInPeriod(uploaded, start, from, to db.Date) bool {
	return start >= from && uploaded >= from && uploaded <= to
}

// CompareGains compares two gains for sorting: the higher gain comes first, and a gain that is unknown (nil) comes last.
func CompareGains(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*b, *a)
}

// countedColumns has a SQL column for each metric: whether a stored point of the video v can have a count of it. A count without a latest value was never
// known, except for likes that the platform hides now.
var countedColumns = strings.Replace(db.MetricColumns("v.latest_{m} IS NOT NULL"), "v.latest_likes IS NOT NULL", "(v.latest_likes IS NOT NULL OR v.hidden_stats)", 1)

// videosForTotalsQuery selects the videos in the collections @in. The column added_at tells when a video first became a member. For a member through
// an account or hashtag, this is never before the video was tracked. For speed, the query reads the videos of each account and hashtag only once,
// with the earliest time at which one of the collections got the account or hashtag.
var videosForTotalsQuery = `SELECT v.id, v.link, v.removed, j.added_at, ` + countedColumns + ` FROM (
 SELECT r.video_id, MIN(r.added_at) AS added_at FROM (
  SELECT m.video_id, m.added_at FROM collection_videos m WHERE m.organisation_id = @org AND m.collection_id IN @in
  UNION ALL
  SELECT va.id AS video_id, CASE WHEN va.created_at > ma.added_at THEN va.created_at ELSE ma.added_at END AS added_at
    FROM (SELECT a.account_id, MIN(a.added_at) AS added_at FROM collection_accounts a WHERE a.organisation_id = @org AND a.collection_id IN @in GROUP BY a.account_id) AS ma
    JOIN videos va ON va.organisation_id = @org AND va.linked_account_id = ma.account_id
  UNION ALL
  SELECT vh.id AS video_id, CASE WHEN vh.created_at > mh.added_at THEN vh.created_at ELSE mh.added_at END AS added_at
    FROM (SELECT h.video_id, MIN(t.added_at) AS added_at
      FROM (SELECT c.tag, MIN(c.added_at) AS added_at FROM collection_hashtags c WHERE c.organisation_id = @org AND c.collection_id IN @in GROUP BY c.tag) AS t
      JOIN video_hashtags h ON h.organisation_id = @org AND h.tag = t.tag GROUP BY h.video_id) AS mh
    JOIN videos vh ON vh.organisation_id = @org AND vh.id = mh.video_id
 ) AS r GROUP BY r.video_id
) AS j JOIN videos v ON v.organisation_id = @org AND v.id = j.video_id WHERE j.added_at < @until ORDER BY v.id LIMIT @limit`

// totalsKey identifies a result of CollectionTotals in memory.
type totalsKey struct {
	org     uuid.UUID
	account uuid.UUID // the account of a result of AccountGains; the zero value for CollectionTotals
	version int64     // version of the organisation's data; the caller must read it before the result
	query   CollectionTotalsQuery
}

// newTotalsCache returns an empty cache for results of CollectionTotals without stored points. So the statistics and the history of a
// collection are computed only once for a page.
func newTotalsCache() *sizedCache[totalsKey, CollectionTotals] {
	return newSizedCache[totalsKey](maxCachedTotals, maxCachedTotalsRows, func(c CollectionTotals) int64 { return int64(len(c.Videos) + len(c.Days)) })
}

// CollectionTotals adds up the counts of a collection's videos on each day from q.From to q.To, but not after today. It can return ErrNotFound,
// *LimitError. Unless q.ForReport is true, the caller must not change the
// result, because the store keeps the result for further calls.
func (o *Org) CollectionTotals(ctx context.Context, q CollectionTotalsQuery) (CollectionTotals, error) {
	q.To = min(q.To, o.s.db.Now().Day())
	if q.ForReport {
		return o.readCollectionTotals(ctx, q, nil)
	}
	version, err := o.Version(ctx)
	if err != nil {
		return CollectionTotals{}, err
	}
	key := totalsKey{org: o.id, version: version.Version, query: q}
	key.query.WithPrevious = false // a result with the previous period also answers queries without it
	if c, ok := o.s.totals.get(key); ok && (c.Previous != nil || !q.WithPrevious) {
		return c, nil
	}
	c, err := o.readCollectionTotals(ctx, q, nil)
	if err == nil {
		o.s.totals.put(key, c)
	}
	return c, err
}

// DetailedCollectionTotals is like CollectionTotals, but the videos have their details. q.ForReport must be false.
func (o *Org) DetailedCollectionTotals(ctx context.Context, q CollectionTotalsQuery) (CollectionTotals, error) {
	c, err := o.CollectionTotals(ctx, q)
	if err != nil {
		return CollectionTotals{}, err
	}
	c.Videos = slices.Clone(c.Videos) // the store keeps the videos for further calls
	return c, o.readVideoDetails(ctx, c.Videos)
}

// readCollectionTotals is like CollectionTotals, but always reads the counts from the database. q.To must not be after today. frozen has the views at the
// end of a continued report by the id of the video; it is nil without such a report.
func (o *Org) readCollectionTotals(ctx context.Context, q CollectionTotalsQuery, frozen map[uuid.UUID]FrozenViews) (CollectionTotals, error) {
	c := CollectionTotals{Days: []CollectionDay{}}
	if q.WithPrevious {
		c.Previous = &PreviousPeriod{}
	}
	var err error
	if c.Collections, err = o.queriedCollections(ctx, q); err != nil {
		return c, err
	}
	ids := make([]uuid.UUID, len(c.Collections))
	for n, collection := range c.Collections {
		ids[n] = collection.ID
	}
	if err := o.checkMembers(ctx, ids, MaxTotalsMembers, MaxTotalsHashtags); err != nil {
		return c, err
	}
	args := map[string]any{"org": o.id, "in": ids, "until": db.InstantOf((q.To + 1).Time()), "limit": MaxTotalsVideos + 1}
	err = o.s.db.EachRow(ctx, o.s.db.Read(ctx).Raw(videosForTotalsQuery, args), func(row *db.Values) error {
		v := CollectionVideo{ID: row.ID(0), Link: row.String(1), Removed: row.IsTrue(2), AddedAt: row.Instant(3)}
		for n := range v.counted {
			v.counted[n] = row.IsTrue(4 + n)
		}
		if views, found := frozen[v.ID]; found && v.AddedAt.Day() < q.From {
			v.FrozenViews, v.FrozenDay = &views.Views, views.Day
		}
		c.Videos = append(c.Videos, v)
		return nil
	})
	if err != nil {
		return c, err
	}
	if len(c.Videos) > MaxTotalsVideos {
		return c, limitError(LimitTotals, "the collection has more than %d videos; the counts of at most %[1]d videos can be added up", MaxTotalsVideos)
	}
	if q.To < q.From || len(c.Videos) == 0 {
		return c, nil
	}
	days := int(q.To - q.From + 1)
	if len(c.Videos)*days > MaxTotalsVideoDays {
		return c, limitError(LimitTotals, "the collection has %d videos, and the period has %d days; for so many videos, the period can have at most %d days",
			len(c.Videos), days, MaxTotalsVideoDays/len(c.Videos))
	}
	q.WithPrevious = q.WithPrevious && len(c.Videos)*2*days <= MaxTotalsVideoDays
	t := newTally(q)
	if err := o.tallyVideos(ctx, q, t, c.Videos); err != nil {
		return c, err
	}
	c.Days = t.finishDays()
	if q.WithPrevious {
		before := &t.previous.days[0] // the day before the previous period
		*c.Previous = PreviousPeriod{Gained: t.previousGained, Counted: before.Videos - before.Unknown.Views}
	}
	if q.ForReport {
		return c, o.readVideoDetails(ctx, c.Videos)
	}
	return c, nil
}

// maxReportTitle is the number of characters of a caption that a report has.
const maxReportTitle = 300

// readVideoDetails sets the details of videos that are ordered by id.
func (o *Org) readVideoDetails(ctx context.Context, videos []CollectionVideo) error {
	for part := range slices.Chunk(videos, db.InsertChunk) {
		ids := make([]uuid.UUID, len(part))
		for n := range part {
			ids[n] = part[n].ID
		}
		var found []VideoDetails
		err := o.scopedQuery(ctx, "videos").Joins("LEFT JOIN accounts a ON a.organisation_id = videos.organisation_id AND a.id = videos.linked_account_id").
			Select("videos.id, videos.platform, a.id AS account_id, COALESCE(a.username, videos.username) AS username, SUBSTR(videos.title, 1, ?) AS title, videos.uploaded_at", maxReportTitle+1).
			Where("videos.id IN ?", ids).Order("videos.id").Find(&found).Error
		if err != nil {
			return db.Translate(err)
		}
		if len(found) != len(part) {
			return errors.New("a video was deleted while the videos were read")
		}
		for n := range part {
			part[n].Details = found[n]
			if title := []rune(found[n].Title); len(title) > maxReportTitle {
				part[n].Details.Title = string(title[:maxReportTitle]) + "…"
			}
		}
	}
	return nil
}

// queriedCollections returns the collection of a query, and the collections below it if the query includes them.
func (o *Org) queriedCollections(ctx context.Context, q CollectionTotalsQuery) ([]CollectionName, error) {
	if err := o.requireCollection(ctx, q.Collection); err != nil {
		return nil, err
	}
	selected := o.scopedQuery(ctx, "collections").Where("collections.id = ?", q.Collection)
	if q.IncludeChildren {
		selected = o.scopedQuery(ctx, "collections").Where("collections.id = ? OR collections.id IN (?)", q.Collection,
			o.s.db.Read(ctx).Raw(subtree, map[string]any{"org": o.id, "parent": q.Collection}))
	}
	var found []CollectionName
	err := selected.Select("collections.id, collections.name").Order("collections.id").Find(&found).Error
	return found, db.Translate(err)
}

// tallyVideos reads the points of the videos and adds the counts to the tally.
func (o *Org) tallyVideos(ctx context.Context, q CollectionTotalsQuery, t *tally, videos []CollectionVideo) error {
	from := q.From - 1
	switch {
	case q.ForReport:
		from = 0 // read all earlier points too, because the quality of a point depends on them
	case q.WithPrevious:
		from = t.previous.from - 1
	}
	r := newTotalsReader(o, q, from, min(len(videos), db.InsertChunk))
	for part := range slices.Chunk(videos, db.InsertChunk) {
		points, err := r.pointsOf(ctx, part)
		if err != nil {
			return err
		}
		for n, of := range points {
			v := &part[n]
			if q.ForReport {
				v.StoredPoints = pointsForDays(of, v.gainStartDay(q.From), q.To)
			}
			t.addVideo(v, of)
		}
	}
	return nil
}
