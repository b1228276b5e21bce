package store

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Video is a video that an organisation tracks or has tracked: see section 2.2 of docs/coverage.md.
type Video struct {
	OrganisationID  uuid.UUID `gorm:"primaryKey"`
	ID              uuid.UUID `gorm:"primaryKey"`
	Platform        link.Platform
	ExternalID      string     // the platform's own id of the video
	Link            string     // canonical link of the video
	Username        string     // handle of the account, in lower case and without "@"; "" while unknown
	LinkedAccountID *uuid.UUID // id of the account that posted the video; nil while unknown
	CreatedAt       db.Instant `gorm:"autoCreateTime:false"`
	Removed         bool       // the tracking of the video was stopped
	Pending         bool       // the video is saved but not fetched, because the organisation has no paid subscription
	Direct          bool       // the video is tracked by its own link, not only through its account
	CountedSince    *db.Date   // day from which on the account's rows of account_days include the video; nil if all rows include it, or if the day is unknown; not in VideoColumns
	UploadedAt      *db.Date
	SongName        *string
	SongLink        *string
	VideoLength     *string // in seconds, such as "58" or "58.5"
	ThumbnailURL    *string // address of the picture at the platform; nil if no source gave one
	Title           string  // the caption
	TitleFolded     string  // the result of db.FoldText for the caption, for searches; not in VideoColumns
	NotSafe         bool
	Private         bool
	HiddenStats     bool
	AdInfoShop      bool
	AdIsAd          bool
	AdProductIDShop *string

	// A count is nil if neither a source nor an import has given it. Likes are also nil while the platform hides them. LatestUpdatedAt is the time of
	// the newest counts: of the last fetch that returned counts, or of the newest imported point. It is nil while the video has no counts.
	Latest           db.Counts `gorm:"embedded;embeddedPrefix:latest_"`
	LatestEngagement *int64
	LatestUpdatedAt  *db.Instant

	// FirstViews are the views at the end of the first day on which they were known. It is nil if the views are unknown, and for videos that
	// already had views when an update of ReelTally added this number. VideoColumns leaves it out.
	FirstViews *int64

	OutlierMultiplier *float64 // views divided by the median views of the account's tracked videos; nil if a value is unknown or the median is 0
	Growth

	FetchState

	// Labels are the collections that contain the video, ordered by name and id. Org.Video sets Labels. ListVideos also sets Labels, unless
	// VideoQuery.WithoutLabels is true.
	Labels []*Label `gorm:"-"`
}

// Growth is how the views of a video grew in the days before its last fetch. ingest.SetGrowth computes it. A field is nil if it cannot be
// known.
type Growth struct {
	Increase1d    *float64 `gorm:"column:increase_1d"` // in percent, like Increase7d, Increase14d and Increase30d
	Increase7d    *float64 `gorm:"column:increase_7d"`
	Increase14d   *float64 `gorm:"column:increase_14d"`
	Increase30d   *float64 `gorm:"column:increase_30d"`
	ViewsGained7d *int64   `gorm:"column:views_gained_7d"`
}

// GrowthColumns are the columns of Growth, in the order of Growth.Values.
var GrowthColumns = []string{"increase_1d", "increase_7d", "increase_14d", "increase_30d", "views_gained_7d"}

// GrowthDefinitions are the columns of Growth with their SQL types.
var GrowthDefinitions = []string{"increase_1d double precision", "increase_7d double precision", "increase_14d double precision",
	"increase_30d double precision", "views_gained_7d bigint"}

// Values returns the fields in the order of GrowthColumns.
func (g *Growth) Values() []any {
	return []any{g.Increase1d, g.Increase7d, g.Increase14d, g.Increase30d, g.ViewsGained7d}
}

// Label is a collection that contains a video or account.
type Label struct {
	ID   uuid.UUID
	Name string
}

// Ref names a video or an account: by ID, or by Link if ID is the zero id.
type Ref struct {
	ID   uuid.UUID
	Link link.Link
}

// String returns the id if it is set, and otherwise the canonical form of the link.
func (r Ref) String() string {
	if r.ID != uuid.Nil {
		return r.ID.String()
	}
	return r.Link.Canonical
}

// VideoQuery selects videos. A video must match all conditions that are set.
type VideoQuery struct {
	Username        *string // the account's handle in the form that link.FoldUsername returns: in lower case and without "@"
	LinkedAccountID *uuid.UUID
	Platform        *link.Platform
	Link            *link.Link   // the link of the video
	UploadedFrom    *db.Date     // the video was uploaded on this day or later
	UploadedTo      *db.Date     // the video was uploaded on this day or earlier
	UpdatedFrom     *db.Instant  // LatestUpdatedAt is this time or later
	UpdatedTo       *db.Instant  // LatestUpdatedAt is this time or earlier
	Shop            *bool        // true selects only ads for a shop; false selects only other videos
	ShopProduct     bool         // true selects only videos that are ads for a shop and have a product id
	HasMetrics      *bool        // if true, only videos whose LatestUpdatedAt is set; if false, only videos whose LatestUpdatedAt is nil
	Collections     []string     // names or ids of collections; at least one of them contains the video
	CollectionID    *uuid.UUID   // this collection contains the video; if the collection is unknown, the query fails with ErrNotFound
	Hashtag         *string      // the caption contains this hashtag, in upper or lower case, with or without "#"
	Words           *string      // words separated by spaces; the caption contains each of them, in upper or lower case
	IncludeRemoved  bool         // include videos whose tracking was stopped
	Status          *FetchStatus // only videos with this fetch status; queue.FetchStopped selects stopped videos even if IncludeRemoved is false
	Order           db.Order     // the column is one of VideoOrders
	Window          db.Window
	WithoutTotal    bool // do not count the matching videos; List.Total is then 0
	WithoutLabels   bool // do not set Video.Labels

	// Each is an optional function. If it is set, ListVideos can pass the videos to this function instead of returning them. A video and its texts
	// are valid only until Each returns.
	Each func(*Video) error `json:"-"`
}

// VideoOrders are the columns by which videos can be ordered. Each has an index.
var VideoOrders = db.SortColumns{
	"created_at":        db.SortBy("videos", "created_at", db.IntegerColumn),
	"uploaded_at":       db.SortByNullable("videos", "uploaded_at", db.DateColumn),
	"latest_views":      db.SortByNullable("videos", "latest_views", db.IntegerColumn),
	"latest_likes":      db.SortByNullable("videos", "latest_likes", db.IntegerColumn),
	"latest_comments":   db.SortByNullable("videos", "latest_comments", db.IntegerColumn),
	"latest_bookmarks":  db.SortByNullable("videos", "latest_bookmarks", db.IntegerColumn),
	"latest_shares":     db.SortByNullable("videos", "latest_shares", db.IntegerColumn),
	"latest_engagement": db.SortByNullable("videos", "latest_engagement", db.IntegerColumn),
	"latest_updated_at": db.SortByNullable("videos", "latest_updated_at", db.IntegerColumn),

	"outlier_multiplier": db.SortByNullable("videos", "outlier_multiplier", db.FloatColumn),
	"increase_1d":        db.SortByNullable("videos", "increase_1d", db.FloatColumn),
	"increase_7d":        db.SortByNullable("videos", "increase_7d", db.FloatColumn),
	"increase_14d":       db.SortByNullable("videos", "increase_14d", db.FloatColumn),
	"increase_30d":       db.SortByNullable("videos", "increase_30d", db.FloatColumn),
	"views_gained_7d":    db.SortByNullable("videos", "views_gained_7d", db.IntegerColumn),
}

// ListVideos returns one page of the videos that match the query.
func (o *Org) ListVideos(ctx context.Context, query VideoQuery) (*db.List[Video], error) {
	l := &listReader[Video]{org: o, rows: o.matchingVideos(ctx, query).Session(&gorm.Session{}), order: query.Order, window: query.Window, withoutTotal: query.WithoutTotal,
		collectionID: query.CollectionID, collections: query.Collections, limitTo: o.limitVideosToCollections,
		spec: db.ListSpec[Video]{Sort: VideoOrders, Table: "videos", Columns: videoColumns, ID: func(v *Video) uuid.UUID { return v.ID }, InIndexOrder: !query.hasFilters()}}
	l.spec.Complete = func(ctx context.Context, videos []Video, maxBytes int64) (completed int, bytes int64, err error) {
		return fillFields(ctx, o, l.version, videos, query.WithoutLabels, maxBytes)
	}
	if query.Each != nil {
		l.spec.Each = func() func(*Video) error { return o.fillAndPass(l.version, query.WithoutLabels, query.Each) }
	}
	if !query.hasFilters() {
		l.inOrderOfCreation = query.Order.Column == "created_at"
		l.knownTotal = func(v Version) int64 {
			if query.IncludeRemoved {
				return v.videos + v.stopped
			}
			return v.videos
		}
	}
	list, err := l.read(ctx)
	return list, db.Translate(err)
}

// fields returns the fields of the video that fillFields reads and sets.
func (v *Video) fields() rowFields {
	return rowFields{&v.FetchState, v.LatestUpdatedAt, &v.Labels, labelled{v.ID, v.Title, v.LinkedAccountID}}
}

// fillAndPass returns a function for the videos of a list. For each video, this function sets the fields that fillFields sets, and then calls each. If
// the labels are needed and the memory does not have those of version v, fillAndPass returns nil.
func (o *Org) fillAndPass(v Version, withoutLabels bool, each func(*Video) error) func(*Video) error {
	now := o.s.db.Now()
	var cached *labels
	if !withoutLabels {
		if cached = o.s.labels.peek(o.id, v.labels); cached == nil {
			return nil
		}
	}
	return func(video *Video) error {
		f := video.fields()
		f.state.setStatusAt(now, f.lastFetch)
		if cached != nil {
			*f.labels = cached.labelsOf(f.labelled).labels
		}
		return each(video)
	}
}

// hasFilters returns true if the query has any condition except IncludeRemoved.
func (q VideoQuery) hasFilters() bool {
	return q.Username != nil || q.LinkedAccountID != nil || q.Platform != nil || q.Link != nil || q.UploadedFrom != nil ||
		q.UploadedTo != nil || q.UpdatedFrom != nil || q.UpdatedTo != nil || q.Shop != nil || q.ShopProduct ||
		q.HasMetrics != nil || len(q.Collections) > 0 || q.CollectionID != nil || q.Hashtag != nil || q.Words != nil || q.Status != nil
}

// matchingVideos returns a database query for the videos that match a VideoQuery. It leaves out the
// conditions on collections, the order and the limit.
func (o *Org) matchingVideos(ctx context.Context, query VideoQuery) *gorm.DB {
	q := o.scopedQuery(ctx, "videos")
	where := func(set bool, condition string, args ...any) {
		if set {
			q = q.Where(condition, args...)
		}
	}
	where(!query.IncludeRemoved && !isStopped(query.Status), "NOT videos.removed")
	if query.Status != nil {
		q = filterByStatus(q, "videos", *query.Status, o.s.db.Now())
	}
	where(query.Username != nil, "videos.username = ?", query.Username)
	where(query.LinkedAccountID != nil, "videos.linked_account_id = ?", query.LinkedAccountID)
	where(query.Platform != nil, "videos.platform = ?", query.Platform)
	if query.Link != nil {
		q = q.Where("videos.platform = ? AND videos.external_id = ?", query.Link.Platform, query.Link.ID)
	}
	where(query.UploadedFrom != nil, "videos.uploaded_at >= ?", query.UploadedFrom)
	where(query.UploadedTo != nil, "videos.uploaded_at <= ?", query.UploadedTo)
	where(query.UpdatedFrom != nil, "videos.latest_updated_at >= ?", query.UpdatedFrom)
	where(query.UpdatedTo != nil, "videos.latest_updated_at <= ?", query.UpdatedTo)
	where(query.Shop != nil, "videos.ad_info_shop = ?", query.Shop)
	where(query.ShopProduct, "videos.ad_info_shop AND videos.ad_product_id_shop IS NOT NULL")
	if query.HasMetrics != nil {
		where(*query.HasMetrics, "videos.latest_updated_at IS NOT NULL")
		where(!*query.HasMetrics, "videos.latest_updated_at IS NULL")
	}
	if query.Hashtag != nil {
		q = q.Where("EXISTS (SELECT 1 FROM video_hashtags h WHERE h.organisation_id = ? AND h.tag = ? AND h.video_id = videos.id)",
			o.id, FoldTag(*query.Hashtag))
	}
	if query.Words != nil {
		for word := range strings.FieldsSeq(db.FoldText(*query.Words)) {
			q = q.Where(`videos.title_folded LIKE ? ESCAPE '\'`, db.LikePattern(word))
		}
	}
	return q
}

// Video returns the video that ref identifies, or ErrNotFound if there is no such video. It also finds videos whose tracking was stopped.
func (o *Org) Video(ctx context.Context, ref Ref) (Video, error) {
	var v Version
	found, err := db.ReadRows(ctx, o.s.db, addVideoCondition(o.scopedQuery(ctx, "videos"), ref), "videos", videoColumns, o.readVersion(&v))
	if err != nil {
		return Video{}, err
	}
	if len(found) == 0 {
		return Video{}, db.NotFound("video", ref.String())
	}
	_, _, err = fillFields(ctx, o, v, found, false, 0)
	return found[0], db.Translate(err)
}

// videoID returns the id of the video that ref identifies, or ErrNotFound if there is no such video.
func (o *Org) videoID(ctx context.Context, ref Ref) (id uuid.UUID, err error) {
	err = o.s.db.EachRow(ctx, addVideoCondition(o.scopedQuery(ctx, "videos"), ref).Select("videos.id"), func(row *db.Values) error {
		id = row.ID(0)
		return nil
	})
	if err == nil && id == uuid.Nil {
		err = db.NotFound("video", ref.String())
	}
	return id, err
}

// addVideoCondition limits a query to the video that ref identifies.
func addVideoCondition(q *gorm.DB, ref Ref) *gorm.DB {
	if ref.ID != uuid.Nil {
		return q.Where("videos.id = ?", ref.ID)
	}
	return q.Where("videos.platform = ? AND videos.external_id = ?", ref.Link.Platform, ref.Link.ID)
}

// newColumns are the columns that are written when a video is inserted, with their SQL types. All other columns are NULL until the first
// fetch.
var newColumns = []string{"organisation_id uuid", "id uuid", "platform text", "external_id text", "link text", "username text", "linked_account_id uuid",
	"created_at bigint", "removed boolean", "pending boolean", "direct boolean", "title text", "title_folded text", "not_safe boolean", "private boolean",
	"hidden_stats boolean", "ad_info_shop boolean", "ad_is_ad boolean", "fetch_status text", "fetch_reason text", "next_fetch_at bigint"}

// statementsForNewVideos returns the statements that insert new videos. The organisation must not have any of these.
func statementsForNewVideos(tx *gorm.DB, videos []Video) []db.Write {
	rows := make([][]any, len(videos))
	for i := range videos {
		v := &videos[i]
		rows[i] = []any{v.OrganisationID, v.ID, v.Platform, v.ExternalID, v.Link, v.Username, v.LinkedAccountID,
			v.CreatedAt, v.Removed, v.Pending, v.Direct, v.Title, v.TitleFolded, v.NotSafe, v.Private,
			v.HiddenStats, v.AdInfoShop, v.AdIsAd, v.FetchStatus, v.FetchReason, v.NextFetchAt}
	}
	// This transaction has raised the organisation's version, so no other transaction can insert the
	// same videos.
	return db.StatementsForInsert(tx, "videos", newColumns, rows, "")
}

// Key returns the key of the video's row: the id of its organisation and its own id.
func (v *Video) Key() db.RowKey { return db.RowKey{Org: v.OrganisationID, ID: v.ID} }
