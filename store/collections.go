package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// The errors of CreateCollection, UpdateCollection and DeleteCollection.
var (
	ErrCycle            = errors.New("a collection cannot be moved below itself or below one of its descendants")
	ErrTooDeep          = fmt.Errorf("collections can be nested at most %d levels deep", MaxCollectionDepth)
	ErrPasswordRequired = errors.New("a protected collection needs a password")
	ErrStale            = errors.New("the collection has changed since it was read")
)

// MaxCollectionDepth is the highest number of nested levels of collections, including the root.
const MaxCollectionDepth = 16

// MaxLabels is the maximum number of labels that openapi.yaml allows for a video or account. So an organisation must not have more collections.
const MaxLabels = 10_000

// DefaultMaxCollections is how many collections an organisation can have if Options.MaxCollections is 0. This
// limit also holds for the labels of a video, because they are collections.
const DefaultMaxCollections = 1000

// Collection groups videos and accounts. The labels of a video are the collections that contain it.
type Collection struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	ParentID       *uuid.UUID
	Name           string
	Sharing                   // the share page of the collection
	CreatedBy      uuid.UUID  // id of the API token with which the collection was created
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`
	UpdatedAt      db.Instant `gorm:"autoUpdateTime:false"`

	Hashtags []string `gorm:"-"` // hashtags in the form that FoldTag returns, in alphabetical order; the methods that read collections set the field

	VideoCount   int64 `gorm:"->"` // number of tracked videos in the collection; set only if the caller asks for counts
	AccountCount int64 `gorm:"->"` // number of accounts in the collection, without accounts whose tracking was stopped; set only if the caller asks for counts
}

// CollectionHashtag is a row of collection_hashtags. All videos with the hashtag Tag belong to the collection.
type CollectionHashtag struct {
	OrganisationID uuid.UUID
	CollectionID   uuid.UUID
	Tag            string
	AddedAt        db.Instant
}

// CollectionQuery selects collections. The zero value selects all collections of the organisation.
type CollectionQuery struct {
	Roots    bool       // select only collections without a parent
	ParentID *uuid.UUID // select only the children of this collection
	Subtree  bool       // select all descendants of ParentID, and not only its children
	Order    db.Order   // the column is one of CollectionOrders
	Window   db.Window
}

// CollectionOrders are the columns by which collections can be ordered. Each column has an index, except the two counts: see orderByCount.
var CollectionOrders = db.SortColumns{
	"created_at":    db.SortBy("collections", "created_at", db.IntegerColumn),
	"updated_at":    db.SortBy("collections", "updated_at", db.IntegerColumn),
	"name":          db.SortBy("collections", "name", db.TextColumn),
	"video_count":   db.SortByCount("collections"),
	"account_count": db.SortByCount("collections"),
}

// ListCollections returns one page of the collections that match the query. If query.ParentID is unknown, the list is empty.
func (o *Org) ListCollections(ctx context.Context, query CollectionQuery) (*db.List[Collection], error) {
	q := o.scopedQuery(ctx, "collections")
	switch {
	case query.Roots:
		q = q.Where("collections.parent_id IS NULL")
	case query.ParentID != nil && query.Subtree:
		q = q.Where("collections.id IN (?)", o.s.db.Read(ctx).Raw(subtree, map[string]any{"org": o.id, "parent": *query.ParentID}))
	case query.ParentID != nil:
		q = q.Where("collections.parent_id = ?", *query.ParentID)
	}
	var total int64
	if err := q.Session(&gorm.Session{}).Count(&total).Error; err != nil {
		return nil, db.Translate(err)
	}
	var sequence *db.Sequence
	if column := query.Order.Column; column == "account_count" || column == "video_count" {
		var err error
		if sequence, err = o.orderByCount(ctx, q, query.Order); err != nil {
			return nil, err
		}
	}
	return db.ReadList(ctx, o.s.db, q, db.ListSpec[Collection]{
		Sequence: sequence,
		Sort:     CollectionOrders, Table: "collections", Columns: collectionColumns, ID: func(c *Collection) uuid.UUID { return c.ID }, Total: total,
		Complete: func(ctx context.Context, collections []Collection, _ int64) (completed int, bytes int64, err error) {
			bytes, err = o.fillHashtags(ctx, collections)
			return len(collections), bytes, err
		},
	}, query.Order, query.Window)
}

// orderByCount returns the order of the collections that the query q selects, by their numbers of tracked videos or accounts. It can return a
// *LimitError.
func (o *Org) orderByCount(ctx context.Context, q *gorm.DB, order db.Order) (*db.Sequence, error) {
	var ids []uuid.UUID
	err := o.s.db.EachRow(ctx, q.Session(&gorm.Session{}).Select("collections.id"), func(row *db.Values) error {
		ids = append(ids, row.ID(0))
		return nil
	})
	if err != nil {
		return nil, err
	}
	counts := map[uuid.UUID]int64{}
	if order.Column == "account_count" {
		accounts := o.s.db.Read(ctx).Raw(strings.ReplaceAll(accountCounts, "{m}", "TRUE"), map[string]any{"org": o.id})
		err = o.s.db.EachRow(ctx, accounts, func(row *db.Values) error {
			counts[row.ID(0)] = row.Count(1)
			return nil
		})
	} else {
		var sums map[uuid.UUID]CollectionSum
		sums, err = o.CollectionSums(ctx)
		for id, sum := range sums {
			counts[id] = sum.Videos
		}
	}
	return db.NewCountSequence(CollectionOrders, order, ids, counts), err
}

// subtree is a SQL query for the ids of all descendants of the collection @parent.
const subtree = `
WITH RECURSIVE below AS (
  SELECT c.organisation_id, c.id FROM collections c WHERE c.organisation_id = @org AND c.parent_id = @parent
  UNION
  SELECT d.organisation_id, d.id FROM collections d JOIN below b ON b.organisation_id = d.organisation_id AND b.id = d.parent_id
   WHERE d.organisation_id = @org)
SELECT id FROM below`

// Collection returns the collection with the given id, or ErrNotFound. If withCounts is true, Collection also sets VideoCount and AccountCount.
func (o *Org) Collection(ctx context.Context, id uuid.UUID, withCounts bool) (Collection, error) {
	q := o.scopedQuery(ctx, "collections").Where("collections.id = ?", id)
	if withCounts {
		videos := o.limitVideosToCollections(o.scopedQuery(ctx, "videos").Where("NOT videos.removed"), []uuid.UUID{id}, false).Select("COUNT(*)")
		q = q.Select(`collections.*, (?) AS video_count, COALESCE((SELECT ac.n FROM (?) AS ac), 0) AS account_count`, videos,
			o.s.db.Read(ctx).Raw(strings.ReplaceAll(accountCounts, "{m}", "m.collection_id = @id"), map[string]any{"org": o.id, "id": id}))
	}
	c, err := db.FindOne[Collection](q, "collection", id)
	if err != nil {
		return Collection{}, err
	}
	found := []Collection{c}
	_, err = o.fillHashtags(ctx, found)
	return found[0], err
}

// fillHashtags reads the hashtags of the collections and sets the Hashtags of each collection. It returns the number of bytes that the hashtags take
// in JSON.
func (o *Org) fillHashtags(ctx context.Context, collections []Collection) (bytes int64, err error) {
	ids, at := make([]uuid.UUID, len(collections)), make(map[uuid.UUID]int, len(collections))
	for i := range collections {
		ids[i], at[collections[i].ID] = collections[i].ID, i
	}
	q := o.scopedQuery(ctx, "collection_hashtags")
	condition, arg := db.AnyOf(q, "collection_id", "?", ids)
	err = o.s.db.EachRow(ctx, q.Where(condition, arg).Select("collection_id, tag").Order("tag"), func(row *db.Values) error {
		c, tag := &collections[at[row.ID(0)]], row.String(1)
		c.Hashtags = append(c.Hashtags, tag)
		bytes += jsonBytes(tag)
		return nil
	})
	return bytes, err
}

// NewCollection has the values with which CreateCollection creates a collection.
type NewCollection struct {
	ID        uuid.UUID // the EffectID of the request's IdempotencyKey; if it is zero, CreateCollection makes an id
	Name      string
	ParentID  *uuid.UUID
	Access    Access
	Hashtags  []string
	CreatedBy uuid.UUID // id of the API token that is stored as the creator of the collection
}

// CreateCollection creates a collection. Its errors include ErrNotFound for an unknown parent,
// ErrPasswordRequired for AccessProtected, ErrTooDeep and *LimitError.
func (o *Org) CreateCollection(ctx context.Context, n NewCollection) (Collection, error) {
	// A new collection has no password yet.
	if n.Access == AccessProtected {
		return Collection{}, ErrPasswordRequired
	}
	var c Collection
	err := o.changeData(ctx, func(t OrgTx) error {
		c = Collection{OrganisationID: o.id, ID: n.ID, ParentID: n.ParentID, Name: n.Name, Sharing: Sharing{Access: n.Access},
			CreatedBy: n.CreatedBy, CreatedAt: t.Now, UpdatedAt: t.Now}
		if c.ID == uuid.Nil {
			c.ID = db.NewID()
		} else if made, err := t.collectionForUpdate(c.ID, nil); !errors.Is(err, db.ErrNotFound) {
			c = made // an earlier attempt of the request created the collection, but the server crashed before it sent the response
			return err
		}
		if n.ParentID != nil {
			if err := t.checkNewParent(uuid.Nil, *n.ParentID); err != nil {
				return err
			}
		}
		if err := CheckCollectionCount(o, t.Tx, 1); err != nil {
			return err
		}
		if err := c.assignHash(t.Tx, sharePage{OrganisationID: o.id, CollectionID: c.ID}); err != nil {
			return err
		}
		if err := t.Tx.Create(&c).Error; err != nil {
			return err
		}
		c.Hashtags = n.Hashtags
		return t.saveHashtags(&c)
	})
	return c, err
}

// CheckCollectionCount returns a *LimitError if n more collections would exceed the
// organisation's limit. The transaction must hold the organisation's lock, so that concurrent calls
// wait.
func CheckCollectionCount(o *Org, tx *gorm.DB, n int) error {
	var have int64
	if err := db.Scoped(tx, "collections", o.id).Count(&have).Error; err != nil {
		return err
	}
	if int(have)+n > o.s.maxCollections {
		return limitError(LimitCollections, "the organisation has %d collections, and this request makes %d more; at most %d are allowed", have, n, o.s.maxCollections)
	}
	return nil
}

// saveHashtags replaces the stored hashtags of the collection by c.Hashtags. It first converts c.Hashtags with FoldTag and sorts them. A
// hashtag that was already stored keeps its AddedAt.
func (t OrgTx) saveHashtags(c *Collection) error {
	for i, tag := range c.Hashtags {
		c.Hashtags[i] = FoldTag(tag)
	}
	slices.Sort(c.Hashtags)
	c.Hashtags = slices.DeleteFunc(slices.Compact(c.Hashtags), func(tag string) bool { return tag == "" })
	var before []CollectionHashtag
	if err := db.Scoped(t.Tx, "collection_hashtags", t.id).Where("collection_id = ?", c.ID).Find(&before).Error; err != nil {
		return err
	}
	rows := make([]CollectionHashtag, len(c.Hashtags))
	for i, tag := range c.Hashtags {
		rows[i] = CollectionHashtag{t.id, c.ID, tag, t.Now}
		if n := slices.IndexFunc(before, func(h CollectionHashtag) bool { return h.Tag == tag }); n >= 0 {
			rows[i].AddedAt = before[n].AddedAt
		}
	}
	if err := t.Tx.Exec("DELETE FROM collection_hashtags WHERE organisation_id = ? AND collection_id = ?", t.id, c.ID).Error; err != nil || len(rows) == 0 {
		return err
	}
	return t.Tx.Create(&rows).Error
}

// CollectionPatch is a change to a collection. Fields that are nil stay unchanged.
type CollectionPatch struct {
	SharingPatch
	Name     *string
	Parent   *Change[uuid.UUID] // the id of the new parent; Change.To is nil if the collection becomes a root collection
	Hashtags *[]string
	// ExpectedUpdatedAt, if set, is the UpdatedAt that the collection had when the caller read it. If the stored UpdatedAt differs, UpdateCollection
	// returns ErrStale.
	ExpectedUpdatedAt *db.Instant
}

// UpdateCollection changes a collection and returns it. After an error, nothing is changed. The errors
// include ErrNotFound for an unknown collection or parent, ErrCycle, ErrTooDeep,
// ErrPasswordRequired and ErrStale.
func (o *Org) UpdateCollection(ctx context.Context, id uuid.UUID, p CollectionPatch) (Collection, error) {
	var c Collection
	err := o.changeData(ctx, func(t OrgTx) (err error) {
		if c, err = t.collectionForUpdate(id, p.ExpectedUpdatedAt); err != nil {
			return err
		}
		if p.Parent != nil {
			if p.Parent.To != nil {
				if err := t.checkNewParent(id, *p.Parent.To); err != nil {
					return err
				}
			}
			c.ParentID = p.Parent.To
		}
		db.Assign(&c.Name, p.Name)
		if err := c.change(t.Tx, p.SharingPatch, sharePage{OrganisationID: o.id, CollectionID: id}, t.Now); err != nil {
			return err
		}
		c.UpdatedAt = max(t.Now, c.UpdatedAt+1) // UpdatedAt is the version of the collection, so it must rise even if the clock shows the same time
		err = db.Scoped(t.Tx, "collections", o.id).Where("collections.id = ?", id).Updates(map[string]any{
			"parent_id": c.ParentID, "name": c.Name, "access": c.Access, "password_hash": c.PasswordHash, "hash": c.Hash, "share_expires_at": c.ShareExpiresAt,
			"display_settings": c.DisplaySettings, "updated_at": c.UpdatedAt}).Error
		if err != nil {
			return err
		}
		if p.Hashtags == nil {
			c.Hashtags = nil
			return db.Scoped(t.Tx, "collection_hashtags", o.id).Where("collection_id = ?", id).Order("tag").Pluck("tag", &c.Hashtags).Error
		}
		c.Hashtags = *p.Hashtags
		return t.saveHashtags(&c)
	})
	return c, err
}

// collectionForUpdate returns a collection without its hashtags, or ErrNotFound. It returns
// ErrStale if expectedUpdatedAt is set and differs from UpdatedAt. The transaction must hold the
// organisation's lock.
func (t OrgTx) collectionForUpdate(id uuid.UUID, expectedUpdatedAt *db.Instant) (Collection, error) {
	c, err := t.findCollection(id)
	if err == nil && expectedUpdatedAt != nil && c.UpdatedAt != *expectedUpdatedAt {
		return Collection{}, ErrStale
	}
	return c, err
}

// findCollection returns a collection without its hashtags, or ErrNotFound.
func (t OrgTx) findCollection(id uuid.UUID) (Collection, error) {
	return db.FindOne[Collection](db.Scoped(t.Tx, "collections", t.id).Where("collections.id = ?", id), "collection", id)
}

// checkNewParent returns ErrNotFound, ErrCycle or ErrTooDeep if the collection cannot be a child of
// parentID. The parameter id is zero if the collection is not stored yet.
func (t OrgTx) checkNewParent(id, parentID uuid.UUID) error {
	above := 0
	for at := &parentID; at != nil; above++ {
		if *at == id && id != uuid.Nil {
			return ErrCycle
		}
		if above == MaxCollectionDepth {
			return ErrTooDeep
		}
		parent, err := t.findCollection(*at)
		if err != nil {
			return err
		}
		at = parent.ParentID
	}
	below, err := t.subtreeHeight(id)
	if err == nil && above+below > MaxCollectionDepth {
		err = ErrTooDeep
	}
	return err
}

// subtreeHeight returns the number of levels of the subtree of the collection with the given id. The collection itself is one level. If the id is
// zero, the result is 1.
func (t OrgTx) subtreeHeight(id uuid.UUID) (int, error) {
	levels, ids := 1, []uuid.UUID{id}
	for id != uuid.Nil {
		var children []uuid.UUID
		if err := db.Scoped(t.Tx, "collections", t.id).Where("collections.parent_id IN ?", ids).Pluck("id", &children).Error; err != nil {
			return 0, err
		}
		if len(children) == 0 {
			break
		}
		levels, ids = levels+1, children
	}
	return levels, nil
}

// DeleteCollection deletes a collection, and moves its children to its parent. Videos and accounts stay tracked. DeleteCollection can return
// ErrNotFound, and also ErrStale if expectedUpdatedAt is set.
func (o *Org) DeleteCollection(ctx context.Context, id uuid.UUID, expectedUpdatedAt *db.Instant) error {
	return o.changeData(ctx, func(t OrgTx) error {
		c, err := t.collectionForUpdate(id, expectedUpdatedAt)
		if err != nil {
			return err
		}
		// UpdatedAt of each child must rise: it becomes the current time or, if it is already later or equal, rises by one microsecond.
		err = db.Scoped(t.Tx, "collections", o.id).Where("collections.parent_id = ?", id).
			Updates(map[string]any{"parent_id": c.ParentID, "updated_at": gorm.Expr("CASE WHEN updated_at < ? THEN ? ELSE updated_at + 1 END", t.Now, t.Now)}).Error
		if err != nil {
			return err
		}
		if c.Hash != nil {
			if err := t.Tx.Exec("DELETE FROM share_pages WHERE hash = ?", *c.Hash).Error; err != nil {
				return err
			}
		}
		return t.Tx.Exec("DELETE FROM collections WHERE organisation_id = ? AND id = ?", o.id, id).Error
	})
}
