package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// sharePage is a row of share_pages: the collection to which the hash of a share page belongs.
type sharePage struct {
	Hash           string `gorm:"primaryKey"`
	OrganisationID uuid.UUID
	CollectionID   uuid.UUID
	OpenedAt       *db.Instant `gorm:"->"` // when a visitor last opened the page; nil if the page was never opened
}

// Share is what a share page shows: a public or protected collection, and its organisation.
type Share struct {
	Organisation Organisation
	Collection   Collection  // the collection, without hashtags and counts
	OpenedAt     *db.Instant // when a visitor last opened the share page, accurate to ShareVisitInterval; nil if the page was never opened
}

// Share returns the collection whose share page has the given hash. It returns ErrNotFound if the
// hash is unknown, the collection is private or the page has expired.
func (s *Store) Share(ctx context.Context, hash string) (Share, error) {
	// The same statements run for an unknown hash and for a private collection, so their duration does not
	// reveal that a private collection exists.
	var page sharePage
	if err := s.db.Read(ctx).Where("hash = ?", hash).Limit(1).Find(&page).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	var org Organisation
	if err := s.db.Read(ctx).Where("id = ?", page.OrganisationID).Limit(1).Find(&org).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	var found []Collection
	if err := s.Org(page.OrganisationID).scopedQuery(ctx, "collections").Where("collections.id = ?", page.CollectionID).Limit(1).Find(&found).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	if len(found) == 0 || found[0].Access == AccessPrivate || found[0].isShareExpired(s.db.Now()) {
		return Share{}, db.NotFound("share page", hash)
	}
	return Share{Organisation: org, Collection: found[0], OpenedAt: page.OpenedAt}, nil
}

// isShareExpired returns true if the share page of the collection is closed now because it has expired.
func (c Collection) isShareExpired(now db.Instant) bool {
	return c.ShareExpiresAt != nil && *c.ShareExpiresAt <= now
}

// ShareVisitInterval is the accuracy of Org.LastShareVisit. If many visitors open a share page, the time is written at most once in this
// interval.
const ShareVisitInterval = 10 * time.Minute

// SaveShareVisit stores that a visitor opens a share page now. It writes nothing if share.OpenedAt is less than ShareVisitInterval ago.
func (s *Store) SaveShareVisit(ctx context.Context, share Share) error {
	now := s.db.Now()
	if share.OpenedAt != nil && now.Sub(*share.OpenedAt) < ShareVisitInterval {
		return nil
	}
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE share_pages SET opened_at = ? WHERE hash = ?", now, *share.Collection.Hash).Error
	})
}

// LastShareVisit returns when a visitor last opened the share page with the given hash. The
// time can be too early by up to ShareVisitInterval. It is nil if the organisation has no such page, or
// the page was never opened.
func (o *Org) LastShareVisit(ctx context.Context, hash string) (*db.Instant, error) {
	var page sharePage
	err := o.s.db.Read(ctx).Where("hash = ?", hash).Limit(1).Find(&page).Error
	if err != nil || page.OrganisationID != o.id {
		return nil, db.Translate(err)
	}
	return page.OpenedAt, nil
}
