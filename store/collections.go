package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Access says who may see a collection's share page.
type Access string

// The accesses of spec.md 2.1.
const (
	AccessPrivate   Access = "private"
	AccessPublic    Access = "public"
	AccessProtected Access = "protected"
)

// The refusals of a change to a collection.
var (
	ErrCycle            = errors.New("a collection cannot be its own parent or lie below itself")
	ErrTooDeep          = fmt.Errorf("collections can be nested at most %d deep", MaxCollectionDepth)
	ErrPasswordRequired = errors.New("a protected collection needs a password")
	ErrStale            = errors.New("changed in the meantime")
)

// MaxCollectionDepth is how many collections may lie in each other, the outermost included.
const MaxCollectionDepth = 16

const hashLength = 14

// Collection groups videos and accounts (spec.md 2.1). A video's labels are the collections that it is effectively in.
type Collection struct {
	OrganisationID  uuid.UUID `gorm:"primaryKey"`
	ID              uuid.UUID `gorm:"primaryKey"`
	ParentID        *uuid.UUID
	Name            string
	Access          Access
	PasswordHash    *string
	Hash            *string // names the share page; made when access first becomes public or protected
	DisplaySettings *string // a JSON object
	CreatedBy       uuid.UUID
	CreatedAt       Instant `gorm:"autoCreateTime:false"`
	UpdatedAt       Instant `gorm:"autoUpdateTime:false"`

	Hashtags []string `gorm:"-"` // folded, in alphabetical order; filled by the reads

	VideoCount   int64 `gorm:"->"` // of effective members that are not removed; only where counts were asked for
	AccountCount int64 `gorm:"->"`
}

type collectionVideo struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	CollectionID   uuid.UUID `gorm:"primaryKey"`
	VideoID        uuid.UUID `gorm:"primaryKey"`
	AddedAt        Instant
}

type collectionHashtag struct {
	OrganisationID uuid.UUID
	CollectionID   uuid.UUID
	Tag            string
}

// CollectionQuery says which collections are wanted.
type CollectionQuery struct {
	Roots    bool       // only those without a parent
	ParentID *uuid.UUID // only those below this one: its children, or with Subtree all its descendants
	Subtree  bool
	Order    Order // one of CollectionOrders
	Window   Window
}

// CollectionOrders are the columns by which collections can be ordered.
var CollectionOrders = map[string]bool{"created_at": true, "updated_at": true, "name": true, "video_count": true, "account_count": true}

// CollectionPage is a part of a list of collections.
type CollectionPage struct {
	Collections []Collection
	Total       int64
	Next        *Position
}

// effectiveMembers gives the pairs (collection_id, video_id) of tracked videos effectively in a collection of the
// organisation @org.
const effectiveMembers = `
SELECT m.collection_id, m.video_id FROM collection_videos m
  JOIN videos v ON v.organisation_id = m.organisation_id AND v.id = m.video_id
 WHERE m.organisation_id = @org AND NOT v.removed
UNION
SELECT ma.collection_id, va.id FROM collection_accounts ma
  JOIN videos va ON va.organisation_id = ma.organisation_id AND va.linked_account_id = ma.account_id
 WHERE ma.organisation_id = @org AND NOT va.removed
UNION
SELECT mh.collection_id, h.video_id FROM collection_hashtags mh
  JOIN video_hashtags h ON h.organisation_id = mh.organisation_id AND h.tag = mh.tag
  JOIN videos vh ON vh.organisation_id = h.organisation_id AND vh.id = h.video_id
 WHERE mh.organisation_id = @org AND NOT vh.removed`

const accountMembers = `
SELECT m.collection_id, m.account_id FROM collection_accounts m
  JOIN accounts a ON a.organisation_id = m.organisation_id AND a.id = m.account_id
 WHERE m.organisation_id = @org AND NOT a.removed`

// withCounts joins the counts of members to a query over collections.
func withCounts(q *gorm.DB, org uuid.UUID) *gorm.DB {
	args := map[string]any{"org": org}
	return q.Joins("LEFT JOIN (SELECT collection_id, COUNT(*) AS n FROM ("+effectiveMembers+") AS e GROUP BY collection_id) AS nv ON nv.collection_id = collections.id", args).
		Joins("LEFT JOIN (SELECT collection_id, COUNT(*) AS n FROM ("+accountMembers+") AS e GROUP BY collection_id) AS na ON na.collection_id = collections.id", args).
		Select("collections.*, COALESCE(nv.n, 0) AS video_count, COALESCE(na.n, 0) AS account_count")
}

// Collections lists collections. An unknown parent has no children.
func (o *Org) Collections(ctx context.Context, query CollectionQuery) (CollectionPage, error) {
	q := o.q(ctx, "collections")
	switch {
	case query.Roots:
		q = q.Where("collections.parent_id IS NULL")
	case query.ParentID != nil && query.Subtree:
		q = q.Where("collections.id IN (?)", o.s.read.Raw(subtree, map[string]any{"org": o.id, "parent": *query.ParentID}))
	case query.ParentID != nil:
		q = q.Where("collections.parent_id = ?", *query.ParentID)
	}
	var page CollectionPage
	if err := q.Session(&gorm.Session{}).Count(&page.Total).Error; err != nil {
		return page, translate(err)
	}
	rows := q.Session(&gorm.Session{})
	column := "collections." + query.Order.Column
	switch query.Order.Column {
	case "video_count":
		rows, column = withCounts(rows, o.id), "COALESCE(nv.n, 0)"
	case "account_count":
		rows, column = withCounts(rows, o.id), "COALESCE(na.n, 0)"
	}
	window := query.Window
	window.Limit++
	rows, err := orderedBy(rows, column, "collections.id", collectionColumnKind(query.Order.Column), query.Order, window)
	if err != nil {
		return page, err
	}
	if err := rows.Find(&page.Collections).Error; err != nil {
		return page, translate(err)
	}
	if len(page.Collections) > query.Window.Limit {
		page.Collections = page.Collections[:query.Window.Limit]
		page.Next = page.Collections[len(page.Collections)-1].position(query.Order.Column)
	}
	return page, o.fillHashtags(ctx, page.Collections)
}

// subtree gives the ids of all descendants of @parent.
const subtree = `
WITH RECURSIVE below AS (
  SELECT c.organisation_id, c.id FROM collections c WHERE c.organisation_id = @org AND c.parent_id = @parent
  UNION
  SELECT d.organisation_id, d.id FROM collections d JOIN below b ON b.organisation_id = d.organisation_id AND b.id = d.parent_id
   WHERE d.organisation_id = @org)
SELECT id FROM below`

func collectionColumnKind(column string) columnKind {
	if column == "name" {
		return textColumn
	}
	return integerColumn
}

func (c *Collection) position(column string) *Position {
	p := Position{ID: c.ID}
	switch column {
	case "name":
		p.Value = c.Name
	case "video_count":
		p.Value = strconv.FormatInt(c.VideoCount, 10)
	case "account_count":
		p.Value = strconv.FormatInt(c.AccountCount, 10)
	case "updated_at":
		p.Value = strconv.FormatInt(int64(c.UpdatedAt), 10)
	default:
		p.Value = strconv.FormatInt(int64(c.CreatedAt), 10)
	}
	return &p
}

// Collection returns one collection, with counts when they are asked for, or ErrNotFound.
func (o *Org) Collection(ctx context.Context, id uuid.UUID, counts bool) (Collection, error) {
	found := make([]Collection, 0, 1)
	q := o.q(ctx, "collections").Where("collections.id = ?", id).Limit(1)
	if counts {
		args := map[string]any{"org": o.id, "id": id}
		q = q.Select(`collections.*, (SELECT COUNT(*) FROM (`+effectiveMembers+`) AS e WHERE e.collection_id = @id) AS video_count,
 (SELECT COUNT(*) FROM (`+accountMembers+`) AS e WHERE e.collection_id = @id) AS account_count`, args)
	}
	if err := q.Find(&found).Error; err != nil {
		return Collection{}, translate(err)
	}
	if len(found) == 0 {
		return Collection{}, notFound("collection", id.String())
	}
	err := o.fillHashtags(ctx, found)
	return found[0], err
}

func (o *Org) fillHashtags(ctx context.Context, collections []Collection) error {
	at := make(map[uuid.UUID]int, len(collections))
	for i := range collections {
		at[collections[i].ID] = i
	}
	for chunk := range slices.Chunk(collections, labelChunk) {
		ids := make([]uuid.UUID, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].ID
		}
		var rows []collectionHashtag
		if err := o.q(ctx, "collection_hashtags").Where("collection_id IN ?", ids).Order("tag").Find(&rows).Error; err != nil {
			return translate(err)
		}
		for _, r := range rows {
			c := &collections[at[r.CollectionID]]
			c.Hashtags = append(c.Hashtags, r.Tag)
		}
	}
	return nil
}

// NewCollection is what a collection is made from.
type NewCollection struct {
	ID        uuid.UUID // of an IdempotencyKey; the zero id: one is made
	Name      string
	ParentID  *uuid.UUID
	Access    Access
	Hashtags  []string
	CreatedBy uuid.UUID // the token
}

// CreateCollection makes a collection. ErrNotFound for an unknown parent, ErrTooDeep, ErrPasswordRequired (a new
// collection has none, so that it cannot be protected from the start).
func (o *Org) CreateCollection(ctx context.Context, n NewCollection) (Collection, error) {
	if n.Access == AccessProtected {
		return Collection{}, ErrPasswordRequired
	}
	var c Collection
	err := o.s.tx(ctx, func(tx *gorm.DB) error {
		now := o.s.now()
		c = Collection{OrganisationID: o.id, ID: n.ID, ParentID: n.ParentID, Name: n.Name, Access: n.Access,
			CreatedBy: n.CreatedBy, CreatedAt: now, UpdatedAt: now}
		if c.ID == uuid.Nil {
			c.ID = NewID()
		} else if made, err := o.lockCollection(tx, c.ID, nil); !errors.Is(err, ErrNotFound) {
			c = made // the request was repeated after its server had died
			return err
		}
		if n.ParentID != nil {
			if err := o.lock(tx); err != nil { // two moves at once could close a circle that neither sees
				return err
			}
			if err := o.checkParent(tx, uuid.Nil, *n.ParentID); err != nil {
				return err
			}
		}
		if err := c.share(); err != nil {
			return err
		}
		if err := tx.Create(&c).Error; err != nil {
			return err
		}
		c.Hashtags = n.Hashtags
		return o.saveHashtags(tx, &c)
	})
	return c, err
}

// share gives a collection the hash of its share page, once it may have one. A hash is never taken away or changed.
func (c *Collection) share() error {
	if c.Hash != nil || c.Access == AccessPrivate {
		return nil
	}
	hash, err := randomBase62(hashLength)
	c.Hash = &hash
	return err
}

func (o *Org) saveHashtags(tx *gorm.DB, c *Collection) error {
	for i, tag := range c.Hashtags {
		c.Hashtags[i] = FoldTag(tag)
	}
	slices.Sort(c.Hashtags)
	c.Hashtags = slices.DeleteFunc(slices.Compact(c.Hashtags), func(t string) bool { return t == "" })
	rows := make([]collectionHashtag, len(c.Hashtags))
	for i, tag := range c.Hashtags {
		rows[i] = collectionHashtag{o.id, c.ID, tag}
	}
	if err := tx.Exec("DELETE FROM collection_hashtags WHERE organisation_id = ? AND collection_id = ?", o.id, c.ID).Error; err != nil || len(rows) == 0 {
		return err
	}
	return tx.Create(&rows).Error
}

// CollectionPatch is a change to a collection; nil members stay as they are.
type CollectionPatch struct {
	Name            *string
	Parent          *ParentChange
	Access          *Access
	PasswordHash    *string // made by HashPassword
	DisplaySettings *json.RawMessage
	Hashtags        *[]string
	// Unchanged, when set, is the UpdatedAt that the caller has seen: any other is ErrStale.
	Unchanged *Instant
}

// ParentChange moves a collection below another, or with a nil To to the root.
type ParentChange struct{ To *uuid.UUID }

// UpdateCollection changes a collection and returns it as it is then. ErrNotFound for an unknown collection or parent;
// ErrCycle, ErrTooDeep, ErrPasswordRequired, ErrStale: nothing changed.
func (o *Org) UpdateCollection(ctx context.Context, id uuid.UUID, p CollectionPatch) (Collection, error) {
	var c Collection
	err := o.s.tx(ctx, func(tx *gorm.DB) (err error) {
		if p.Parent != nil {
			if err := o.lock(tx); err != nil { // two moves at once could close a circle that neither sees
				return err
			}
		}
		if c, err = o.lockCollection(tx, id, p.Unchanged); err != nil {
			return err
		}
		if p.Parent != nil {
			if p.Parent.To != nil {
				if err := o.checkParent(tx, id, *p.Parent.To); err != nil {
					return err
				}
			}
			c.ParentID = p.Parent.To
		}
		set(&c.Name, p.Name)
		set(&c.Access, p.Access)
		setPointer(&c.PasswordHash, p.PasswordHash)
		if p.DisplaySettings != nil {
			text := string(*p.DisplaySettings)
			c.DisplaySettings = &text
			if text == "null" {
				c.DisplaySettings = nil
			}
		}
		if c.Access == AccessProtected && c.PasswordHash == nil {
			return ErrPasswordRequired
		}
		if err := c.share(); err != nil {
			return err
		}
		c.UpdatedAt = max(o.s.now(), c.UpdatedAt+1) // two changes within a microsecond are two versions
		err = scoped(tx, "collections", o.id).Where("collections.id = ?", id).Updates(map[string]any{
			"parent_id": c.ParentID, "name": c.Name, "access": c.Access, "password_hash": c.PasswordHash, "hash": c.Hash,
			"display_settings": c.DisplaySettings, "updated_at": c.UpdatedAt}).Error
		if err != nil {
			return err
		}
		if p.Hashtags == nil {
			c.Hashtags = nil
			return scoped(tx, "collection_hashtags", o.id).Where("collection_id = ?", id).Order("tag").Pluck("tag", &c.Hashtags).Error
		}
		c.Hashtags = *p.Hashtags
		return o.saveHashtags(tx, &c)
	})
	return c, err
}

func (o *Org) lockCollection(tx *gorm.DB, id uuid.UUID, unchanged *Instant) (Collection, error) {
	q := scoped(tx, "collections", o.id).Where("collections.id = ?", id).Limit(1)
	if o.s.dialect.skipLocked() {
		q = q.Clauses(forUpdate)
	}
	var found []Collection
	switch err := q.Find(&found).Error; {
	case err != nil:
		return Collection{}, err
	case len(found) == 0:
		return Collection{}, notFound("collection", id.String())
	case unchanged != nil && found[0].UpdatedAt != *unchanged:
		return Collection{}, ErrStale
	}
	return found[0], nil
}

// checkParent says whether a collection (the zero id: a new one) may lie below parent.
func (o *Org) checkParent(tx *gorm.DB, id, parent uuid.UUID) error {
	above := 0
	for at := &parent; at != nil; above++ {
		if *at == id && id != uuid.Nil {
			return ErrCycle
		}
		if above == MaxCollectionDepth {
			return ErrTooDeep
		}
		var found []Collection
		if err := scoped(tx, "collections", o.id).Where("collections.id = ?", *at).Limit(1).Find(&found).Error; err != nil {
			return err
		}
		if len(found) == 0 {
			return notFound("collection", at.String())
		}
		at = found[0].ParentID
	}
	below, err := o.height(tx, id)
	if err == nil && above+below > MaxCollectionDepth {
		err = ErrTooDeep
	}
	return err
}

// height is how many levels a collection's tree has, itself included.
func (o *Org) height(tx *gorm.DB, id uuid.UUID) (int, error) {
	levels, ids := 1, []uuid.UUID{id}
	for id != uuid.Nil {
		var children []uuid.UUID
		if err := scoped(tx, "collections", o.id).Where("collections.parent_id IN ?", ids).Pluck("id", &children).Error; err != nil {
			return 0, err
		}
		if len(children) == 0 {
			break
		}
		levels, ids = levels+1, children
	}
	return levels, nil
}

// DeleteCollection removes a collection and its associations; its children move up to its parent, its videos and
// accounts stay tracked. ErrNotFound, or ErrStale when unchanged is set and another UpdatedAt is found.
func (o *Org) DeleteCollection(ctx context.Context, id uuid.UUID, unchanged *Instant) error {
	return o.s.tx(ctx, func(tx *gorm.DB) error {
		if err := o.lock(tx); err != nil {
			return err
		}
		c, err := o.lockCollection(tx, id, unchanged)
		if err != nil {
			return err
		}
		now := o.s.now() // later than what the children have, as in UpdateCollection
		err = scoped(tx, "collections", o.id).Where("collections.parent_id = ?", id).
			Updates(map[string]any{"parent_id": c.ParentID, "updated_at": gorm.Expr("CASE WHEN updated_at < ? THEN ? ELSE updated_at + 1 END", now, now)}).Error
		if err != nil {
			return err
		}
		return tx.Exec("DELETE FROM collections WHERE organisation_id = ? AND id = ?", o.id, id).Error
	})
}
